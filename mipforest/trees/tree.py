"""A fitted decision tree, and what all solutions of models have in common: they predict samples in original units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import close_names, suggestion
from mipforest.meanings import Meaning, meaning_of
from mipforest.special import expit
from mipforest.trees.sides import class_probabilities
from mipforest.trees.topology import Topology

if TYPE_CHECKING:
    from mipforest.trees import Picture


class FeaturesUsed(NamedTuple):
    """Features with a non-zero weight.

    Attributes
    ----------
    per_node
        For each branch node, the numbers of its features, ascending; a score card counts as one node.
    overall
        The numbers of the features of all branch nodes and linear leaves together, ascending.
    """

    per_node: tuple[tuple[int, ...], ...]
    overall: tuple[int, ...]


class Predictor(ABC):
    """A fitted :class:`~mipforest.trees.Tree`, or a :class:`~mipforest.cards.ScoreCard`: what the core asks of either.

    What only one of them has, such as the nodes of a tree or the points of a card, is read where it is shown: in texts,
    pictures and pages.

    Attributes
    ----------
    noun
        What it is called in sentences.
    is_tree
        Whether it is a tree.
    features
        Names of the p features, or ``()``.
    classes
        Names of the classes, or ``()`` where values are predicted.
    levels
        As of :class:`~mipforest.trees.Tree`.
    logistic
        Whether :meth:`predict_proba` gives probabilities of its own.
    """

    noun: ClassVar[str]
    is_tree: ClassVar[bool] = False
    features: tuple[str, ...]
    classes: tuple[str, ...]
    levels: tuple[Meaning, ...]
    logistic: bool

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features, p."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; ``x0, x1, ...`` where none were given."""
        return self.features or tuple(f"x{j}" for j in range(self.n_features))

    @property
    def is_classifier(self) -> bool:
        """Whether classes are predicted (else real values)."""
        return bool(self.classes)

    @property
    def prescribes(self) -> bool:
        """Whether its classes are treatments, with estimated outcomes."""
        return False

    @property
    def gives_probabilities(self) -> bool:
        """Whether it predicts probabilities of the classes by its own model (see :meth:`predict_proba`)."""
        return self.logistic

    @abstractmethod
    def features_used(self, tolerance: float = 0.0) -> FeaturesUsed:
        """Return the features that predictions depend on."""

    @abstractmethod
    def unscaled(self) -> Self:
        """Return the same for data that are scaled already."""

    @abstractmethod
    def with_scaling(self, offset: npt.ArrayLike, scale: npt.ArrayLike) -> Self:
        """Return the same over features scaled by ``(X - offset) / scale``, (p,) each."""

    def with_levels(self, levels: tuple[Meaning, ...]) -> Self:
        """Return the same with what its features say of columns."""
        return cast(Self, replace(cast(Any, self), levels=levels))

    @abstractmethod
    def apply(self, X: Any) -> IntArray:
        """Return the (n,) number of the group of samples predicted alike that each is in: its leaf, or its total."""

    @abstractmethod
    def predict(self, X: Any) -> IntArray | FloatArray:
        """Return the (n,) predictions, class numbers, or values in the target's units; (n, T) of several targets."""

    @abstractmethod
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the (n, K) probabilities of the classes; ValueError if it has none of its own."""

    def predict_outcomes(self, X: Any) -> FloatArray:  # noqa: ARG002
        """Return the (n, m) outcomes estimated under each treatment; ValueError where none is prescribed."""
        raise ValueError(f"{self!r} prescribes no treatment and estimates no outcomes; use predict")

    def predict_labels(self, X: Any) -> npt.NDArray[np.str_]:
        """Return the (n,) names of the predicted classes; ValueError where values are predicted."""
        if not self.is_classifier:
            raise ValueError(f"a regression {self.noun} predicts no classes; use predict for its values")
        return np.asarray(self.classes)[self.predict(X)]

    @abstractmethod
    def explanations(self, X: Any) -> list[str]:
        """Return, for each sample, a line that says why it is predicted as it is."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""

    @abstractmethod
    def plot(
        self, X: Any = None, y: npt.ArrayLike | None = None, *, max_terms: int = 3, training: bool = False
    ) -> Picture:
        """Draw it, with samples counted if some are given; of training samples, without leaves that have none."""

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.plot()._repr_svg_()}"


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Predictor):
    """A complete binary tree of hyperplane splits with a constant or a linear prediction per leaf.

    Branch node t has the score ``w_t . ((x - offset) / scale) + b_t``; a sample goes right where the score is
    >= 0, left where it is < 0. A univariate split has one non-zero weight; a node with none sends every
    sample to the side of the sign of ``b_t``. Leaf l predicts ``leaf_value_l``, or, in a regression tree with
    linear leaves, ``leaf_value_l + leaf_w_l . ((x - offset) / scale)``. All methods that take ``X`` take it
    in **original units**; :meth:`unscaled` gives the same tree for data that are scaled already.

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    w
        (|B|, p) weights, by branch node in heap order.
    b
        (|B|,) intercepts.
    leaf_value
        (|L|,) prediction of each leaf, left to right: the number of a class, or a real value in the target's
        units (regression); (|L|, T) where there are ``targets``.
    classes
        Names of the classes; ``()`` makes the tree a regression tree.
    features
        Names of the p features, or ``()``.
    offset, scale
        (p,) scaling of the features, ``scale > 0``, or both ``None`` for none.
    levels
        Of each of the p features what it says of a column (:class:`~mipforest.meanings.LevelSet`,
        :class:`~mipforest.meanings.MissingEnd`, or the names of a column and a level); ``None`` for a column of
        numbers. Texts say ``city is Roma``. ``()`` where all are columns of numbers.
    outcomes
        (|L|, m) outcome that a prescriptive tree estimates in each leaf under each treatment; ``classes`` then names
        the m treatments, and ``leaf_value`` is the one that a leaf prescribes. ``None`` for other trees.
    outcome_w
        (|L|, m, p) coefficients of these estimates over scaled features, where they are linear.
    leaf_w
        (|L|, p) coefficients of linear leaves over scaled features, regression only; ``None`` for constant
        leaves.
    logistic
        Whether the score at the last branch node that a sample passes is the log-odds of the second of two
        classes (see :meth:`predict_proba`). Left leaves then predict class 0, right ones class 1.
    targets, target_classes
        Names of the T targets that each leaf predicts at once, and of the classes of each target, ``()`` where targets
        are numbers; ``classes`` is ``()`` then, and leaves are constant. Both are ``()`` for one target.

    Raises
    ------
    ValueError
        If shapes do not fit, a number is not finite, a scale is not positive, a class number is out of
        range, names repeat, a classifier has linear leaves, or the classes of a logistic tree do not follow
        the sides.
    """

    noun: ClassVar[str] = "tree"
    is_tree: ClassVar[bool] = True

    depth: int
    w: FloatArray
    b: FloatArray
    leaf_value: IntArray | FloatArray
    classes: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    offset: FloatArray | None = None
    scale: FloatArray | None = None
    leaf_w: FloatArray | None = None
    logistic: bool = False
    levels: tuple[Meaning, ...] = ()
    outcomes: FloatArray | None = None
    outcome_w: FloatArray | None = None
    targets: tuple[str, ...] = ()
    target_classes: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        topology = Topology(self.depth)
        w = np.array(self.w, dtype=np.float64)
        if w.ndim != 2 or len(w) != topology.n_branches or w.shape[1] == 0:
            raise ValueError(
                f"w must have shape ({topology.n_branches}, p) at depth {self.depth}, p >= 1, got {w.shape}"
            )
        self._store("w", w, w.shape)
        self._store("b", self.b, (topology.n_branches,))
        several = (len(self.targets),) if self.targets else ()
        self._store("leaf_value", self.leaf_value, (topology.n_leaves, *several))
        object.__setattr__(self, "depth", topology.depth)
        object.__setattr__(self, "classes", tuple(map(str, self.classes)))
        object.__setattr__(self, "features", tuple(map(str, self.features)))
        object.__setattr__(self, "levels", tuple(map(meaning_of, self.levels)))
        check_names(self.features, self.classes, self.levels, self.w)
        if self.offset is not None or self.scale is not None:
            for name, value in checked_scaling(self.offset, self.scale, self.feature_names).items():
                self._store(name, value, (self.n_features,))
        if self.leaf_w is not None:
            self._store("leaf_w", self.leaf_w, (topology.n_leaves, self.n_features))
        if self.is_classifier:
            check_class_numbers(self.classes, self.leaf_value, self.leaf_w)
            self._store("leaf_value", self.leaf_value, (topology.n_leaves,), np.int64)
        object.__setattr__(self, "targets", tuple(map(str, self.targets)))
        named = tuple(tuple(map(str, names)) for names in self.target_classes)
        object.__setattr__(self, "target_classes", named)
        if self.targets or self.target_classes:
            check_targets(self)
        if self.target_classes:
            self._store("leaf_value", self.leaf_value, (topology.n_leaves, *several), np.int64)
        if self.outcomes is not None:
            self._store("outcomes", self.outcomes, (topology.n_leaves, len(self.classes)))
        if self.outcome_w is not None:
            self._store("outcome_w", self.outcome_w, (topology.n_leaves, len(self.classes), self.n_features))
        object.__setattr__(self, "logistic", bool(self.logistic))
        if self.logistic:
            check_logistic(self.classes, self.leaf_value)

    def _store(self, name: str, value: npt.ArrayLike, shape: tuple[int, ...], dtype: type = float) -> None:
        """Keep a read-only copy of ``value`` as attribute ``name``."""
        array: npt.NDArray[Any] = np.array(value, dtype=dtype)
        if array.shape != shape:
            raise ValueError(
                f"{name} must have shape {shape} in a tree of depth {self.depth}, got {array.shape}"
            )
        if not np.isfinite(array).all():
            position = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
            raise ValueError(f"{name} must be finite, but its entry {position} is {array[position]}")
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        kind = "treatments" if self.prescribes else "classes"
        kind = f"{len(self.classes)} {kind}" if self.is_classifier else "regression"
        if self.targets:
            kind = f"{len(self.targets)} targets"
        if self.has_linear_leaves:
            kind += " with linear leaves"
        if self.logistic:
            kind += ", logistic"
        return f"Tree(depth={self.depth}, {self.n_features} features, {kind}, {self.n_splits} splits)"

    def plot(
        self, X: Any = None, y: npt.ArrayLike | None = None, *, max_terms: int = 3, training: bool = False
    ) -> Picture:
        """Draw the tree, with the samples at each node if some are given; see :func:`~mipforest.trees.plot_tree`.

        ``training`` says that these are the training samples: leaves without any are left out.
        """
        from mipforest.trees import plot_tree  # loads matplotlib

        # Without axes it makes its own figure.
        return cast("Picture", plot_tree(self, X, y, max_terms=max_terms, training=training))

    def explanations(self, X: Any) -> list[str]:
        """Return the path of each sample on one line; see :func:`~mipforest.trees.text.explanations`."""
        from mipforest.trees import explanations  # which reads trees

        return explanations(self, as_samples(X, self.features, self.n_features))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it; :func:`mipforest.trees.from_dict` reads it."""
        from mipforest.trees import to_dict  # which reads trees

        return to_dict(self)

    # What the tree is

    @cached_property
    def topology(self) -> Topology:
        """Index sets of the tree."""
        return Topology(self.depth)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.w.shape[1])

    @property
    def prescribes(self) -> bool:
        """Whether its classes are treatments, with estimated outcomes."""
        return self.outcomes is not None

    @property
    def has_linear_leaves(self) -> bool:
        """Whether leaves predict linear functions of the features (else constants)."""
        return self.leaf_w is not None

    @property
    def n_splits(self) -> int:
        """Number of branch nodes with a non-zero weight."""
        return int(self.w.any(axis=1).sum())

    @property
    def is_oblique(self) -> bool:
        """Whether some split has more than one feature."""
        return bool((np.count_nonzero(self.w, axis=1) > 1).any())

    def is_trivial(self, t: int) -> bool:
        """Return whether branch node t has no weight, and so sends every sample to one side."""
        return not self.w[t].any()

    def features_used(self, tolerance: float = 0.0) -> FeaturesUsed:
        """Return the features with ``|w_tj| > tolerance`` (weights of scaled features), per branch node and overall.

        Overall, coefficients of linear leaves count too, and nodes that no sample can reach.
        """
        used = np.abs(self.w) > tolerance
        per_node = tuple(tuple(map(int, np.flatnonzero(row))) for row in used)
        somewhere = used.any(axis=0)
        if self.leaf_w is not None:
            somewhere |= (np.abs(self.leaf_w) > tolerance).any(axis=0)
        if self.outcome_w is not None:
            somewhere |= (np.abs(self.outcome_w) > tolerance).any(axis=(0, 1))
        return FeaturesUsed(per_node, tuple(map(int, np.flatnonzero(somewhere))))

    def original_units(self) -> tuple[FloatArray, FloatArray]:
        """Return weights (|B|, p) and intercepts (|B|,) of the same scores over features in original units."""
        return self._in_original_units(self.w, self.b)

    def leaves_in_original_units(self) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (|L|, p) and constants (|L|,) of the leaves over features in original units.

        Leaf l predicts ``coefficients_l . x + constant_l``; coefficients of constant leaves are 0. Of a prescriptive
        tree, (|L|, m, p) and (|L|, m) of the outcomes that it estimates; a ValueError for any other classifier.
        """
        if self.outcomes is not None:
            none = np.zeros((*self.outcomes.shape, self.n_features))
            return self._in_original_units(none if self.outcome_w is None else self.outcome_w, self.outcomes)
        if self.is_classifier:
            raise ValueError("the leaves of a classifier predict classes, no numbers; see leaf_value")
        if self.leaf_w is None:
            return np.zeros((self.topology.n_leaves, self.n_features)), self.leaf_value.astype(np.float64)
        return self._in_original_units(self.leaf_w, self.leaf_value.astype(np.float64))

    def _in_original_units(self, weights: FloatArray, constants: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.offset is None or self.scale is None:
            return weights, constants
        unscaled = weights / self.scale
        return unscaled, constants - unscaled @ self.offset

    # The same tree for other data

    def of_target(self, number: int) -> Tree:
        """Return the tree of one of several targets, by number: a tree of its label, or of its number."""
        value, known = self.leaf_value[:, number], self.target_classes
        if known:
            value = value.astype(np.int64)
        return replace(
            self, leaf_value=value, classes=known[number] if known else (), targets=(), target_classes=()
        )

    def unscaled(self) -> Tree:
        """Return the same weights and leaves without the scaling: a tree for data that are scaled already."""
        return replace(self, offset=None, scale=None)

    def with_scaling(self, offset: npt.ArrayLike, scale: npt.ArrayLike) -> Tree:
        """Return the same weights and leaves over features scaled by ``(X - offset) / scale``, (p,) each."""
        return replace(self, offset=np.asarray(offset, dtype=float), scale=np.asarray(scale, dtype=float))

    def rescaled(self, offset: npt.ArrayLike, scale: npt.ArrayLike) -> Tree:
        """Return the same function of original units over features scaled by ``(X - offset) / scale``.

        Unlike :meth:`with_scaling`, weights, intercepts and leaves change, so that scores and predictions
        stay (up to rounding). Both are (p,), ``scale > 0``.
        """
        offset, scale = np.asarray(offset, dtype=float), np.asarray(scale, dtype=float)
        old_offset = np.zeros(self.n_features) if self.offset is None else self.offset
        old_scale = np.ones(self.n_features) if self.scale is None else self.scale
        factor, shift = scale / old_scale, (offset - old_offset) / old_scale
        tree = replace(self, w=self.w * factor, b=self.b + self.w @ shift, offset=offset, scale=scale)
        if self.outcomes is not None and self.outcome_w is not None:
            moved = self.outcomes + self.outcome_w @ shift
            return replace(tree, outcomes=moved, outcome_w=self.outcome_w * factor)
        if self.leaf_w is None:
            return tree
        return replace(tree, leaf_w=self.leaf_w * factor, leaf_value=self.leaf_value + self.leaf_w @ shift)

    # What the tree does with samples

    def scores(self, X: Any) -> FloatArray:
        """Return the (n, |B|) score of every sample at every branch node, whether or not it passes the node.

        Parameters
        ----------
        X
            (n, p) samples in original units: array-like, or a DataFrame (columns matched by name).

        Raises
        ------
        ValueError
            If X does not have the tree's features, or holds something else than finite numbers.
        """
        return self._scores(self._scaled(X))

    def _scaled(self, X: Any) -> FloatArray:
        samples = as_samples(X, self.features, self.n_features)
        if self.offset is None or self.scale is None:
            return samples
        return (samples - self.offset) / self.scale

    def _scores(self, scaled: FloatArray) -> FloatArray:
        scores: FloatArray = scaled @ self.w.T + self.b
        return scores

    def apply(self, X: Any) -> IntArray:
        """Return the (n,) number of the leaf that each sample reaches, 2^depth - 1 to 2^(depth + 1) - 2."""
        return self._reached(self._scaled(X))

    def _reached(self, scaled: FloatArray) -> IntArray:
        """Return the leaf of each scaled sample; of univariate splits, from the feature of each node on its path."""
        used = self.w != 0
        if (used.sum(axis=1) > 1).any() or self.n_features == 0:
            return self._leaves(self._scores(scaled))
        feature, rows = used.argmax(axis=1), np.arange(len(self.w))
        weight, samples = self.w[rows, feature], np.arange(len(scaled))
        node = np.zeros(len(scaled), dtype=np.int64)
        for _ in range(self.depth):
            # The same sums as those of all features, whose other products are 0.
            score = scaled[samples, feature[node]] * weight[node] + self.b[node]
            node = 2 * node + 1 + (score >= 0)
        return node

    def _leaves(self, scores: FloatArray) -> IntArray:
        goes_right = scores >= 0
        samples = np.arange(len(goes_right))
        node = np.zeros(len(goes_right), dtype=np.int64)
        for _ in range(self.depth):
            node = 2 * node + 1 + goes_right[samples, node]
        return node

    def decision_path(self, X: Any) -> BoolArray:
        """Return (n, n_nodes) whether each sample passes each node, the root and its leaf included."""
        node, parents = self.apply(X), self.topology.parents
        samples = np.arange(len(node))
        passed = np.zeros((len(node), self.topology.n_nodes), dtype=np.bool_)
        for _ in range(self.depth):
            passed[samples, node] = True
            node = parents[node]
        passed[:, 0] = True
        return passed

    def predict(self, X: Any) -> IntArray | FloatArray:
        """Return the (n,) predictions, class numbers or values in the target's units; (n, T) of several targets."""
        scaled = self._scaled(X)
        leaf = self._reached(scaled) - self.topology.n_branches
        if self.leaf_w is None:
            return self.leaf_value[leaf]
        slopes: FloatArray = (scaled * self.leaf_w[leaf]).sum(axis=1)
        return self.leaf_value[leaf] + slopes

    def predict_labels(self, X: Any) -> npt.NDArray[np.str_]:
        """Return the (n,) names of the predicted classes, (n, T) of several targets; ValueError of numbers."""
        if not self.target_classes:
            return super().predict_labels(X)
        predicted = self.predict(X).T
        names = [np.asarray(of)[k] for of, k in zip(self.target_classes, predicted, strict=True)]
        return np.column_stack(names)

    def predict_outcomes(self, X: Any) -> FloatArray:
        """Return the (n, m) outcomes that a prescriptive tree estimates under each treatment; ValueError of others."""
        if self.outcomes is None:
            raise ValueError(f"{self!r} prescribes no treatment and estimates no outcomes; use predict")
        scaled, leaf = self._scaled(X), self.apply(X) - self.topology.n_branches
        constant = self.outcomes[leaf]
        slopes = 0.0 if self.outcome_w is None else np.einsum("nj,nmj->nm", scaled, self.outcome_w[leaf])
        return constant + slopes

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the (n, 2) probabilities of the classes by a logistic tree, in the order of :attr:`classes`.

        That of the second class is the sigmoid of the score at the last branch node that the sample passes
        (Aldinucci, ch. 3, "Interpreting OLCTs"). Rows sum to 1; the larger one belongs to the class that
        :meth:`predict` gives, also where the score is 0.

        Raises
        ------
        ValueError
            If the tree is not logistic, or as for :meth:`scores`.
        """
        self._check_probabilities()
        scores = self.scores(X)
        last = self.topology.parents[self._leaves(scores)]
        return class_probabilities(scores[np.arange(len(scores)), last])

    def path_confidences(self, X: Any) -> FloatArray:
        """Return the (n, depth) confidence of a logistic tree in each decision on a path, root first.

        The sigmoid of the score's size, 0.5 to 1: how clearly the sample goes to the side it goes to. At the
        last branch node this is the probability of the predicted class. Above it, training also weighs what
        the nodes below make of a score, so it is a confidence rather than a probability (the same source).
        ``path_confidences(X).prod(axis=1)`` is the confidence in the whole path. Errors as for :meth:`predict_proba`.
        """
        self._check_probabilities()
        scores = self.scores(X)
        samples, node = np.arange(len(scores)), self._leaves(scores)
        confidences = np.empty((len(scores), self.depth))
        for level in reversed(range(self.depth)):
            node = self.topology.parents[node]
            confidences[:, level] = expit(np.abs(scores[samples, node]))
        return confidences

    def _check_probabilities(self) -> None:
        if not self.logistic:
            raise ValueError(
                f"only the scores of a logistic tree are log-odds; {self!r} has no probabilities: use predict "
                f"for its {'classes' if self.is_classifier else 'values'}, scores for how clearly splits decide"
            )


def as_samples(X: Any, features: tuple[str, ...], n_features: int) -> FloatArray:
    """Return the samples as an (n, p) float array.

    Parameters
    ----------
    X
        (n, p) array-like, or a pandas DataFrame. The columns of a DataFrame are matched to ``features`` by
        name, in any order, and others are ignored; without names, position decides.
    features
        Feature names, or ``()``.
    n_features
        p.

    Raises
    ------
    ValueError
        If a feature is missing or doubled, the width is not p, or an entry is not a finite number.
    """
    if features and hasattr(X, "columns"):
        X = X.iloc[:, _positions([str(column) for column in X.columns], features)]
    try:
        samples = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must be a table of numbers: {error}; encode categorical features first"
        ) from error
    if samples.ndim != 2:
        raise ValueError(
            f"X must have shape (n, {n_features}), got {samples.shape}; pass a single sample x as x[None, :]"
        )
    if samples.shape[1] != n_features:
        raise ValueError(
            f"X has {samples.shape[1]} features (shape {samples.shape}), the tree has {n_features}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(
            samples.sum()
        )  # quicker than to ask every entry, which a great sum does not spare
    if not is_finite and not np.isfinite(samples).all():
        row, column = np.argwhere(~np.isfinite(samples))[0]
        name = repr(features[column]) if features else str(column)
        raise ValueError(
            f"X holds {samples[row, column]} in row {row}, feature {name}; a split needs a number: "
            f"impute it or drop the row"
        )
    return samples


def _positions(columns: list[str], features: tuple[str, ...]) -> list[int]:
    missing = [feature for feature in features if feature not in columns]
    if missing:
        near = close_names(missing[0], columns)
        hint = f"; is {missing[0]!r} the column {near[0]!r}?" if near else ""
        raise ValueError(
            f"X lacks {len(missing)} of the tree's {len(features)} features: {', '.join(missing)}{hint}"
        )
    doubled = [feature for feature in features if columns.count(feature) > 1]
    if doubled:
        raise ValueError(
            f"X has more than one column named {doubled[0]!r}; keep the one the tree was fitted on"
        )
    return [columns.index(feature) for feature in features]


def class_numbers(classes: tuple[str, ...], y: npt.ArrayLike, n_samples: int) -> IntArray:
    """Return the (n,) class number of each sample.

    Numbers are taken as class numbers, 0 to K - 1; strings as names in ``classes``.

    Raises
    ------
    ValueError
        If y does not have shape (n,), or holds an unknown number or name.
    """
    labels = _as_targets(y, n_samples)
    if labels.dtype.kind in "OUST" and all(isinstance(label, str) for label in labels):
        position = {name: k for k, name in enumerate(classes)}
        for label in labels:
            if label not in position:
                hint = suggestion(label, classes)
                raise ValueError(
                    f"y holds {str(label)!r}, which is no class of the tree ({', '.join(classes)}){hint}"
                )
        return np.array([position[label] for label in labels], dtype=np.int64)
    values = target_values(labels, n_samples)
    wrong = (values != np.floor(values)) | (values < 0) | (values >= len(classes))
    if wrong.any():
        raise ValueError(
            f"y holds {values[wrong][0]:g}, but numbers in y mean classes 0 to {len(classes) - 1}; "
            f"give class names as strings ({', '.join(classes)})"
        )
    return values.astype(np.int64)


def target_values(y: npt.ArrayLike, n_samples: int) -> FloatArray:
    """Return (n,) real targets; ValueError if one is not a finite number."""
    targets = _as_targets(y, n_samples)
    try:
        values = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers: {error}") from error
    if not np.isfinite(values).all():
        raise ValueError(f"y must be finite, but its entry {int(np.argmin(np.isfinite(values)))} is not")
    return values


def _as_targets(y: npt.ArrayLike, n_samples: int) -> npt.NDArray[Any]:
    targets = np.asarray(y)
    if targets.shape != (n_samples,):
        raise ValueError(
            f"y has shape {targets.shape}, but X has {n_samples} samples; y must have shape ({n_samples},)"
        )
    return targets


def checked_scaling(
    offset: npt.ArrayLike | None, scale: npt.ArrayLike | None, names: tuple[str, ...]
) -> dict[str, npt.ArrayLike]:
    """Return offset and scale by name; a ValueError if one is missing, or the scale is not above 0 throughout."""
    if offset is None or scale is None:
        raise ValueError("offset and scale come together: give both, or neither")
    divisors = np.asarray(scale, dtype=np.float64).ravel()
    if (divisors <= 0).any():
        j = int(np.argmax(divisors <= 0))
        name = repr(names[j]) if j < len(names) else str(j)
        raise ValueError(
            f"scale must be above 0, but feature {name} has {divisors[j]}; use 1 for a constant feature"
        )
    return {"offset": offset, "scale": scale}


def check_class_numbers(
    classes: tuple[str, ...], leaf_value: FloatArray | IntArray, leaf_w: FloatArray | None
) -> None:
    """Refuse leaves of a classifier that predict something else than its classes, with a ValueError."""
    if leaf_w is not None:
        raise ValueError(
            f"leaf_w makes leaves linear, which predict numbers, but the tree has the classes "
            f"{', '.join(classes)}; leave leaf_w out, or leave classes empty for a regression tree"
        )
    wrong = (leaf_value != np.floor(leaf_value)) | (leaf_value < 0) | (leaf_value >= len(classes))
    if wrong.any():
        raise ValueError(
            f"leaf_value must hold class numbers, 0 to {len(classes) - 1} for the classes "
            f"{', '.join(classes)}, but holds {leaf_value[wrong][0]:g}; leave classes empty for a regression tree"
        )


def check_targets(tree: Tree) -> None:
    """Refuse a tree of several targets with anything but constant leaves of theirs, with a ValueError."""
    if tree.classes or tree.leaf_w is not None or tree.outcomes is not None or tree.logistic:
        raise ValueError(
            f"leaves that predict several targets ({', '.join(tree.targets)}) are constants: leave classes, leaf_w, "
            "outcomes and logistic out"
        )
    for names in (tree.targets, *tree.target_classes):
        repeated = [name for position, name in enumerate(names) if name in names[:position]]
        if repeated:
            raise ValueError(f"names must differ, but {repeated[0]!r} comes more than once")
    if not tree.target_classes:
        return
    if len(tree.target_classes) != len(tree.targets):
        raise ValueError(f"{len(tree.target_classes)} lists of classes for {len(tree.targets)} targets")
    for name, classes, column in zip(tree.targets, tree.target_classes, tree.leaf_value.T, strict=True):
        wrong = (column != np.floor(column)) | (column < 0) | (column >= len(classes))
        if wrong.any():
            raise ValueError(
                f"leaf_value must hold class numbers of {name}, 0 to {len(classes) - 1} for {', '.join(classes)}, but "
                f"holds {column[wrong][0]:g}"
            )


def check_logistic(classes: tuple[str, ...], leaf_value: IntArray | FloatArray) -> None:
    """Refuse a logistic tree whose leaves do not follow the sign of the scores.

    Parameters
    ----------
    classes
        Names of the classes.
    leaf_value
        (|L|,) class number of each leaf, left to right.

    Raises
    ------
    ValueError
        If there are not two classes, or a left leaf does not predict class 0, or a right one not class 1.
    """
    if len(classes) != 2:
        kind = f"the {len(classes)} classes {', '.join(classes)}" if classes else "no classes"
        raise ValueError(
            f"a logistic tree tells two classes apart, but this one has {kind}; leave logistic out"
        )
    wrong = leaf_value != np.arange(len(leaf_value)) % 2
    if wrong.any():
        position = int(np.argmax(wrong))
        side = "right" if position % 2 else "left"
        raise ValueError(
            f"in a logistic tree every left leaf predicts class 0 ({classes[0]}) and every right one class 1 "
            f"({classes[1]}), but leaf_value[{position}], a {side} leaf, is {int(leaf_value[position])}; turn "
            f"the signs of the weights and the intercept above it, or leave logistic out"
        )


def check_names(
    features: tuple[str, ...],
    classes: tuple[str, ...],
    levels: tuple[Meaning, ...],
    w: FloatArray,
) -> None:
    """Refuse names that repeat, and names or levels that are not one for each column of the weights (ValueError)."""
    if levels and len(levels) != w.shape[1]:
        raise ValueError(f"{len(levels)} levels for w of shape {w.shape}; give {w.shape[1]} or none")
    if features and len(features) != w.shape[1]:
        raise ValueError(
            f"{len(features)} feature names for w of shape {w.shape}; give {w.shape[1]} names or none"
        )
    for kind, names in (("feature", features), ("class", classes)):
        repeated = [name for position, name in enumerate(names) if name in names[:position]]
        if repeated:
            raise ValueError(f"{kind} names must differ, but {repeated[0]!r} comes more than once")
