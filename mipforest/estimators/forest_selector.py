"""Forest selectors: a forest is grown, and every sample is predicted by one of its trees, whose path explains it.

Source: the chapter on choosing one tree of a forest per sample (CCT, CRT) of the thesis behind OLCT. It trains a policy
network on the rewards of drawn trees; here all rewards are used, and simpler gates are there, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.table import checked_weights
from mipforest.estimators.base import EstimatorType, learn_features, read_features, seed_of
from mipforest.estimators.gates import (
    Entropy,
    Gate,
    NeighbourGate,
    Objective,
    Scale,
    SingleGate,
    Training,
    TreeGate,
    best_single,
    grow_gate,
    rewards_of_labels,
    rewards_of_values,
    train_network,
    without_own_samples,
)
from mipforest.estimators.generic import logarithms, read_classes, read_values
from mipforest.estimators.scikit import BaseEstimator, ClassifierMixin, RegressorMixin
from mipforest.formatting import percent
from mipforest.heuristics.cart import class_shares, from_scikit_learn
from mipforest.problem.parameters import Number, ParameterError, WholeNumber
from mipforest.trees import MAX_DEPTH, Topology, Tree
from mipforest.trees.text import format_number, path_to_text

GATES = ("tree", "network", "neighbours", "single")


@dataclass(frozen=True, eq=False, repr=False)
class SelectionReport:
    """What a selector does with samples, and what simpler predictors do with them.

    Attributes
    ----------
    measure
        ``"accuracy"`` or ``"RMSE"``.
    values
        The measure of the ``"selector"``; of the ``"best single tree"``, that with the largest mean reward in
        training; of the ``"mean tree"``, the mean of the trees' measures; of the ``"oracle"``, which knows the
        target and chooses the best tree for each sample; of the whole ``"forest"``; and of CART of the depth of the
        trees, and of that and the gate's together (``"CART, depth 4"``).
    shares
        (B,) share of the samples that each tree predicts, summing to 1.
    seed
        Seed of forest and gate.
    """

    measure: str
    values: Mapping[str, float]
    shares: FloatArray
    seed: int

    def __repr__(self) -> str:
        used = [int(a) for a in np.argsort(-self.shares, kind="stable") if self.shares[a] > 0]
        frequent = ", ".join(f"tree {a} {percent(self.shares[a])}" for a in used[:5])
        rest = f", {len(used) - 5} more" if len(used) > 5 else ""
        width = max(map(len, self.values))
        lines = [f"{'':{width}}  {self.measure}"]
        lines += [f"{name:{width}}  {format_number(value)}" for name, value in self.values.items()]
        return "\n".join([*lines, f"{len(used)} of {len(self.shares)} trees used: {frequent}{rest}"])


@dataclass(eq=False, repr=False)
class ForestSelector(BaseEstimator, metaclass=EstimatorType):
    """What both forest selectors share.

    Parameters
    ----------
    depth
        Depth of the trees of the forest, 1 to 10.
    n_trees
        Number B of trees, at least 1.
    forest
        A ``RandomForest...`` or ``ExtraTrees...`` of scikit-learn to fit instead, whose trees are of depth 10 at most;
        ``depth`` and ``n_trees`` do not count then. Its seed is ``random_state`` unless it has one.
    gate
        What chooses a tree for a sample: ``"tree"``, a tree of its own, whose path the explanation begins with;
        ``"network"``, a policy network; ``"neighbours"``, the best tree on the nearest training samples; ``"single"``,
        the best single tree for all samples.
    out_of_bag
        Whether a tree's rewards count only on samples that it was not grown on; those on its own are optimistic.
    gate_depth, gate_min_leaf
        Levels of splits of the gate tree (0: the best single tree), and its least number of samples in a leaf.
    n_neighbours
        Number of neighbours, Euclidean in standard deviations of the features.
    objective
        Of the network: ``"expected"``, the rewards of all trees, or ``"sampled"``, that of one drawn tree for each
        sample, as in the thesis.
    entropy
        Of the policy, added to the objective: ``"full"``, or ``"printed"``, the thesis' term of one tree, which
        concentrates the policy instead of spreading it.
    entropy_weight
        Its weight, at least 0.
    epochs
        Passes of the network over the samples, at least 1.
    missing, handle_unknown
        As for :class:`~mipforest.estimators.base.TreeEstimator`.
    random_state
        Seed of forest and gate: a whole number, a ``RandomState``, or ``None`` for another one at each fit.

    Attributes
    ----------
    trees_
        The B trees of the forest, as :class:`~mipforest.trees.Tree` with thresholds in the middle between training
        samples.
    gate_
        The fitted gate.
    forest_
        The forest of scikit-learn that the trees were taken from; classes are numbers there, those of ``classes_``.
    best_single_
        Number of the tree with the largest mean reward in training.
    training_rewards_
        (B,) mean rewards of the trees in training.
    seed_
        Seed that was used.
    n_features_in_, feature_names_in_
        Columns of X; names only if X was a DataFrame with text names.

    Notes
    -----
    A whole weight is as many equal rows to gate, rewards and comparisons. To the forest it is not quite: a tree of
    scikit-learn's forest draws rows, and each draw of a row counts its weight. The thesis' dropout and early stopping
    are left out: its widths, batches and patience are not stated.
    """

    depth: int = 4
    n_trees: int = 50
    _: KW_ONLY
    forest: Any = None
    gate: str = "tree"
    out_of_bag: bool = False
    gate_depth: int = 3
    gate_min_leaf: int = 20
    n_neighbours: int = 25
    objective: str = "expected"
    entropy: str = "full"
    entropy_weight: float = 1e-4
    epochs: int = 300
    missing: str = "error"
    handle_unknown: str = "error"
    random_state: Any = 0

    # ------------------------------------------------------------------ what a subclass says

    @abstractmethod
    def _read(self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...]) -> Dataset:
        """Check the targets and put them together with the features; weight 0 leaves a sample out."""

    @abstractmethod
    def _learners(self) -> tuple[type, tuple[type, ...]]:
        """Return scikit-learn's class of trees, and those of forests, the usual one first."""

    @abstractmethod
    def _rewards(self, predicted: FloatArray, y: Any) -> FloatArray:
        """Return (n, B) rewards of (n, B) predictions."""

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the forest, and learn which of its trees to choose.

        Parameters
        ----------
        X
            (n, p) features, as for :meth:`TreeEstimator.fit <mipforest.estimators.base.TreeEstimator.fit>`.
        y
            (n,) targets.
        sample_weight
            (n,) weights of the samples, at least 0; 1 unless given. A sample of weight 0 is left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed.
        """
        self.__dict__.pop("gate_", None)  # a fit that fails must not leave an earlier one behind
        self._check_settings()
        self.seed_ = seed_of(self.random_state)
        self._encoding, X_raw = learn_features(self, X, sample_weight)
        weights = checked_weights(sample_weight, len(X_raw), "sample_weight")
        data = self._read(X_raw, y, weights, self._encoding.features)
        weights = np.ones(data.n) if data.weights is None else data.weights
        self.forest_ = self._unfitted_forest().fit(data.X, data.y, sample_weight=weights)
        self.trees_ = tuple(
            _complete_tree(grown, data).with_levels(self._encoding.levels)
            for grown in self.forest_.estimators_
        )
        rewards = self._rewards(self._predictions(data.X), data.y)
        if self.out_of_bag:
            in_bag = np.zeros(rewards.shape, dtype=bool)
            for a, drawn in enumerate(self.forest_.estimators_samples_):
                in_bag[drawn, a] = True
            rewards = without_own_samples(rewards, in_bag)
        self.training_rewards_ = np.average(rewards, axis=0, weights=weights)
        self.best_single_ = best_single(self.training_rewards_)
        cart, depth = self._learners()[0], max(tree.depth for tree in self.trees_)
        self._carts = {
            f"CART, depth {levels}": cart(max_depth=levels, random_state=self.seed_).fit(
                data.X, data.y, sample_weight=weights
            )
            for levels in (depth, depth + self.gate_depth)
        }
        self.gate_ = self._fitted_gate(data, rewards, weights)
        return self

    def _check_settings(self) -> None:
        WholeNumber(at_least=1, below=MAX_DEPTH + 1).check("depth", self.depth)
        WholeNumber(at_least=0, below=MAX_DEPTH + 1).check("gate_depth", self.gate_depth)
        for name in ("n_trees", "gate_min_leaf", "n_neighbours", "epochs"):
            WholeNumber(at_least=1).check(name, getattr(self, name))
        Number(at_least=0).check("entropy_weight", self.entropy_weight)
        known = {
            "gate": GATES,
            "objective": get_args(Objective),
            "entropy": get_args(Entropy),
            "missing": ("error", "impute"),
            "handle_unknown": ("error", "ignore"),
        }
        for name, values in known.items():
            check_choice(name, getattr(self, name), values)

    def _unfitted_forest(self) -> Any:
        forests = self._learners()[1]
        if self.forest is None:
            return forests[0](self.n_trees, max_depth=self.depth, random_state=self.seed_)
        if not isinstance(self.forest, forests):
            names = " or ".join(cls.__name__ for cls in forests)
            raise ParameterError(f"parameter forest is {self.forest!r:.80}; give a {names}, or None")
        forest = clone(self.forest)
        if self.out_of_bag and not forest.bootstrap:
            raise ParameterError(
                "out_of_bag=True, but the forest has bootstrap=False: every tree has seen all samples; set one of both"
            )
        return forest if forest.random_state is not None else forest.set_params(random_state=self.seed_)

    def _fitted_gate(self, data: Dataset, rewards: FloatArray, weights: FloatArray) -> Gate:
        if self.gate == "network":
            training = Training(
                cast("Objective", self.objective),
                cast("Entropy", self.entropy),
                self.entropy_weight,
                self.epochs,
                self.seed_,
            )
            return train_network(data.X, rewards, weights, training)
        if self.gate == "neighbours":
            return NeighbourGate.of(data.X, rewards, weights, self.n_neighbours)
        if self.gate == "tree" and self.gate_depth > 0:
            tree = grow_gate(data, rewards, weights, self.gate_depth, self.gate_min_leaf, self.seed_)
            return TreeGate(tree.with_levels(self._encoding.levels))
        return SingleGate(self.best_single_)

    # ------------------------------------------------------------------ what it does with samples

    def _features(self, X: Any) -> FloatArray:
        check_is_fitted(self, "gate_")
        return read_features(self, self._encoding, X, "none" if self.handle_unknown == "ignore" else "error")

    def _predictions(self, X_raw: FloatArray) -> FloatArray:
        """Return (n, B) predictions of all trees: numbers of classes, or values."""
        return np.column_stack([np.asarray(tree.predict(X_raw), dtype=np.float64) for tree in self.trees_])

    def _chosen(self, X_raw: FloatArray) -> FloatArray:
        """Return (n,) predictions of the chosen trees."""
        selected, predicted = self.gate_.select(X_raw), np.empty(len(X_raw))
        for a in np.unique(selected):
            rows = selected == a
            predicted[rows] = self.trees_[a].predict(X_raw[rows])
        return predicted

    def select(self, X: Any) -> IntArray:
        """Return (n,) the number of the tree, in ``trees_``, that predicts each sample."""
        X_raw = self._features(X)
        return self.gate_.select(X_raw)

    def explain(self, x: Any) -> str:
        """Write why one sample is predicted as it is: its path through the chosen tree, a gate tree's path before it.

        Parameters
        ----------
        x
            (p,) features, or a table of one row.

        Raises
        ------
        ValueError
            If it is more than one sample.
        """
        X_raw = self._features(np.reshape(x, (1, -1)) if np.ndim(x) == 1 else x)
        if len(X_raw) != 1:
            raise ValueError(f"explain takes one sample, x has {len(X_raw)}; give one row, such as X[:1]")
        chosen = int(self.gate_.select(X_raw)[0])
        lines = [f"tree {chosen} of 0 to {len(self.trees_) - 1}", path_to_text(self.trees_[chosen], X_raw)]
        if isinstance(self.gate_, TreeGate):
            lines = ["gate", path_to_text(self.gate_.tree, X_raw), *lines]
        return "\n".join(lines)

    def report(self, X: Any, y: Any, sample_weight: Any = None) -> SelectionReport:
        """Compare the selector with simpler predictors, and say which trees it uses.

        Parameters
        ----------
        X, y, sample_weight
            (n, p) samples, (n,) targets, and (n,) weights that measures and shares take, 1 unless given.
        """
        X_raw = self._features(X)
        check_consistent_length(X_raw, y)
        weights = checked_weights(sample_weight, len(X_raw), "sample_weight")
        predicted, (measure, score, best) = self._predictions(X_raw), self._measure(y, weights)
        trees = [score(column) for column in predicted.T]
        values = {
            "selector": score(self._chosen(X_raw)),
            "best single tree": trees[self.best_single_],
            "mean tree": float(np.mean(trees)),
            "oracle": score(predicted[np.arange(len(X_raw)), best(predicted)]),
            "forest": score(self.forest_.predict(X_raw)),
            **{name: score(grown.predict(X_raw)) for name, grown in self._carts.items()},
        }
        shares = np.bincount(self.gate_.select(X_raw), weights, len(self.trees_)) / weights.sum()
        return SelectionReport(measure, values, shares, self.seed_)

    @abstractmethod
    def _measure(self, y: Any, weights: FloatArray) -> tuple[str, Any, Any]:
        """Return the name of the measure, and functions: measure of (n,) predictions, each sample's best of (n, B)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse a value that is none of the known ones."""
    if value not in known:
        raise ParameterError(f"parameter {name} is {value!r}; choose {' or '.join(map(repr, known))}")


def _complete_tree(grown: Any, data: Dataset) -> Tree:
    """Return a tree of the forest as a complete tree."""
    depth = max(grown.get_depth(), 1)
    if depth > MAX_DEPTH:
        raise ParameterError(
            f"a tree of the forest has depth {depth}; give it max_depth={MAX_DEPTH} or less, so that a path can be read"
        )
    return from_scikit_learn(grown, data, Topology(depth))


@dataclass(eq=False, repr=False)
class ForestSelectorClassifier(ClassifierMixin, ForestSelector):
    """Classifier that chooses one tree of a random forest for every sample (CCT); any number of classes.

    A tree's reward on a sample is 1 where it predicts the sample's class, else -1.

    Parameters
    ----------
    class_weight
        What the weights of a class's samples are multiplied with, as for
        :class:`~mipforest.estimators.generic.TreeClassifier`.
    depth, and all others
        As for :class:`~mipforest.estimators.forest_selector.ForestSelector`, and so are the attributes.

    Attributes
    ----------
    classes_
        (K,) labels, sorted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = ForestSelectorClassifier(depth=2, n_trees=10, gate_depth=1).fit(X, y)
    >>> selector.select(X.iloc[:2]).shape, bool(selector.score(X, y) > 0.9)
    ((2,), True)
    """

    _: KW_ONLY
    class_weight: Any = None

    def _learners(self) -> tuple[type, tuple[type, ...]]:
        return DecisionTreeClassifier, (RandomForestClassifier, ExtraTreesClassifier)

    def _read(self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...]) -> Dataset:
        return read_classes(self, X_raw, y, weights, features, "none")

    def _rewards(self, predicted: FloatArray, y: Any) -> FloatArray:
        return rewards_of_labels(predicted, y)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return (n,) labels predicted by the chosen trees, of :attr:`classes_`."""
        X_raw = self._features(X)
        labels: npt.NDArray[Any] = self.classes_[self._chosen(X_raw).astype(np.int64)]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return (n, K) shares of the classes, among the samples drawn for the chosen tree, in the leaf reached."""
        X_raw = self._features(X)
        selected, found = self.gate_.select(X_raw), np.empty((len(X_raw), len(self.classes_)))
        for a in np.unique(selected):
            rows, tree = selected == a, self.trees_[a]
            shares = class_shares(self.forest_.estimators_[a], tree.topology)
            found[rows] = shares[tree.apply(X_raw[rows]) - tree.topology.n_branches]
        return found

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return (n, K) natural logarithms of :meth:`predict_proba`; minus infinity where a probability is 0."""
        return logarithms(self.predict_proba(X))

    def _measure(self, y: Any, weights: FloatArray) -> tuple[str, Any, Any]:
        labels = np.asarray(y)
        # A label that training did not have is no class: every prediction of it is wrong.
        known = np.isin(labels, self.classes_)
        numbers = np.where(
            known, np.searchsorted(self.classes_, np.where(known, labels, self.classes_[0])), -1
        )
        return (
            "accuracy",
            lambda predicted: float(np.average(predicted == numbers, weights=weights)),
            lambda predicted: (predicted == numbers[:, None]).argmax(axis=1),
        )


@dataclass(eq=False, repr=False)
class ForestSelectorRegressor(RegressorMixin, ForestSelector):
    """Regressor that chooses one tree of a random forest for every sample (CRT).

    Parameters
    ----------
    reward
        Unit of the squared errors that rewards are made of: ``"global"``, one for all samples; ``"per_sample"``, each
        sample's own range over the trees, as in the thesis; see :func:`~mipforest.estimators.gates.rewards_of_values`.
    depth, and all others
        As for :class:`~mipforest.estimators.forest_selector.ForestSelector`, and so are the attributes.
    """

    _: KW_ONLY
    reward: str = "global"

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("reward", self.reward, get_args(Scale))

    def _learners(self) -> tuple[type, tuple[type, ...]]:
        return DecisionTreeRegressor, (RandomForestRegressor, ExtraTreesRegressor)

    def _read(self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...]) -> Dataset:
        values = read_values(self, y)
        check_consistent_length(X_raw, values)
        return Dataset.from_arrays(
            X_raw, values, features=features, task="regression", scaling="none", weights=weights
        )

    def _rewards(self, predicted: FloatArray, y: Any) -> FloatArray:
        return rewards_of_values(predicted, y, cast("Scale", self.reward))

    def predict(self, X: Any) -> FloatArray:
        """Return (n,) values predicted by the chosen trees, in the target's units."""
        X_raw = self._features(X)
        return self._chosen(X_raw)

    def _measure(self, y: Any, weights: FloatArray) -> tuple[str, Any, Any]:
        targets = np.asarray(y, dtype=np.float64)
        return (
            "RMSE",
            lambda predicted: float(np.sqrt(np.average((predicted - targets) ** 2, weights=weights))),
            lambda predicted: np.abs(predicted - targets[:, None]).argmin(axis=1),
        )
