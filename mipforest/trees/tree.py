"""A fitted decision tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.trees.samples import as_samples
from mipforest.trees.topology import Topology


class FeaturesUsed(NamedTuple):
    """Features with a non-zero weight.

    Attributes
    ----------
    per_node
        For each branch node, the numbers of its features, ascending.
    overall
        The numbers of the features of all branch nodes together, ascending.
    """

    per_node: tuple[tuple[int, ...], ...]
    overall: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A complete binary tree of hyperplane splits with a constant prediction per leaf.

    Branch node t has the score ``w_t . ((x - offset) / scale) + b_t``; a sample goes right where the score is
    >= 0, left where it is < 0. A univariate split has one non-zero weight; a node with none sends every
    sample to the side of the sign of ``b_t``. All methods that take ``X`` take it in **original units**;
    :meth:`unscaled` gives the same tree for data that are scaled already.

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    w
        (|B|, p) weights, by branch node in heap order.
    b
        (|B|,) intercepts.
    leaf_value
        (|L|,) prediction of each leaf, left to right: the number of a class, or a real value (regression).
    classes
        Names of the classes; ``()`` makes the tree a regression tree.
    features
        Names of the p features, or ``()``.
    offset, scale
        (p,) scaling of the features, ``scale > 0``, or both ``None`` for none.

    Raises
    ------
    ValueError
        If shapes do not fit, a number is not finite, a scale is not positive, a class number is out of
        range, or names repeat.
    """

    depth: int
    w: FloatArray
    b: FloatArray
    leaf_value: IntArray | FloatArray
    classes: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    offset: FloatArray | None = None
    scale: FloatArray | None = None

    def __post_init__(self) -> None:
        topology = Topology(self.depth)
        w = np.array(self.w, dtype=np.float64)
        if w.ndim != 2 or len(w) != topology.n_branches or w.shape[1] == 0:
            raise ValueError(
                f"w must have shape ({topology.n_branches}, p) at depth {self.depth}, p >= 1, got {w.shape}"
            )
        self._store("w", w, w.shape)
        self._store("b", self.b, (topology.n_branches,))
        self._store("leaf_value", self.leaf_value, (topology.n_leaves,))
        object.__setattr__(self, "depth", topology.depth)
        object.__setattr__(self, "classes", tuple(map(str, self.classes)))
        object.__setattr__(self, "features", tuple(map(str, self.features)))
        self._check_names()
        self._check_scaling()
        if self.is_classifier:
            self._make_leaf_values_classes()

    def _store(self, name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> None:
        """Keep a read-only float copy of ``value`` as attribute ``name``."""
        array = np.array(value, dtype=np.float64)
        if array.shape != shape:
            raise ValueError(
                f"{name} must have shape {shape} in a tree of depth {self.depth}, got {array.shape}"
            )
        if not np.isfinite(array).all():
            position = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
            raise ValueError(f"{name} must be finite, but its entry {position} is {array[position]}")
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def _check_names(self) -> None:
        if self.features and len(self.features) != self.n_features:
            raise ValueError(
                f"{len(self.features)} feature names for w of shape {self.w.shape}; "
                f"give {self.n_features} names or none"
            )
        for kind, names in (("feature", self.features), ("class", self.classes)):
            repeated = [name for position, name in enumerate(names) if name in names[:position]]
            if repeated:
                raise ValueError(f"{kind} names must differ, but {repeated[0]!r} comes more than once")

    def _check_scaling(self) -> None:
        if self.offset is None and self.scale is None:
            return
        if self.offset is None or self.scale is None:
            raise ValueError("offset and scale come together: give both, or neither")
        self._store("offset", self.offset, (self.n_features,))
        self._store("scale", self.scale, (self.n_features,))
        if (self.scale <= 0).any():
            j = int(np.argmax(self.scale <= 0))
            raise ValueError(
                f"scale must be above 0, but feature {self.feature_names[j]!r} has {self.scale[j]}; "
                f"use 1 for a constant feature"
            )

    def _make_leaf_values_classes(self) -> None:
        numbers = self.leaf_value.astype(np.int64)
        wrong = (numbers != self.leaf_value) | (numbers < 0) | (numbers >= len(self.classes))
        if wrong.any():
            raise ValueError(
                f"leaf_value must hold class numbers, 0 to {len(self.classes) - 1} for the classes "
                f"{', '.join(self.classes)}, but holds {self.leaf_value[wrong][0]:g}; "
                f"leave classes empty for a regression tree"
            )
        numbers.setflags(write=False)
        object.__setattr__(self, "leaf_value", numbers)

    def __repr__(self) -> str:
        kind = f"{len(self.classes)} classes" if self.is_classifier else "regression"
        return f"Tree(depth={self.depth}, {self.n_features} features, {kind}, {self.n_splits} splits)"

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
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; ``x0, x1, ...`` where none were given."""
        return self.features or tuple(f"x{j}" for j in range(self.n_features))

    @property
    def is_classifier(self) -> bool:
        """Whether leaves predict classes (else real values)."""
        return bool(self.classes)

    @property
    def n_splits(self) -> int:
        """Number of branch nodes with a non-zero weight."""
        return int(self.w.any(axis=1).sum())

    def is_trivial(self, t: int) -> bool:
        """Whether branch node t has no weight, and so sends every sample to one side."""
        return not self.w[t].any()

    def features_used(self, tolerance: float = 0.0) -> FeaturesUsed:
        """Features with ``|w_tj| > tolerance`` (weights of scaled features), per branch node and overall.

        Nodes that no sample can reach, because an ancestor is trivial, count like any other.
        """
        used = np.abs(self.w) > tolerance
        per_node = tuple(tuple(map(int, np.flatnonzero(row))) for row in used)
        return FeaturesUsed(per_node, tuple(map(int, np.flatnonzero(used.any(axis=0)))))

    def original_units(self) -> tuple[FloatArray, FloatArray]:
        """Weights (|B|, p) and intercepts (|B|,) of the same scores over features in original units."""
        if self.offset is None or self.scale is None:
            return self.w, self.b
        w = self.w / self.scale
        return w, self.b - w @ self.offset

    # The same tree for other data

    def unscaled(self) -> Tree:
        """Give the same tree without its scaling: it takes data that are scaled already."""
        return replace(self, offset=None, scale=None)

    def with_scaling(self, offset: npt.ArrayLike, scale: npt.ArrayLike) -> Tree:
        """Give the same weights over features scaled by ``(X - offset) / scale``, (p,) each."""
        return replace(self, offset=np.asarray(offset, dtype=float), scale=np.asarray(scale, dtype=float))

    # What the tree does with samples

    def scores(self, X: Any) -> FloatArray:
        """(n, |B|) score of every sample at every branch node, whether or not it passes the node.

        Parameters
        ----------
        X
            (n, p) samples in original units: array-like, or a DataFrame (columns matched by name).

        Raises
        ------
        ValueError
            If X does not have the tree's features, or holds something else than finite numbers.
        """
        samples = as_samples(X, self.features, self.n_features)
        if self.offset is not None and self.scale is not None:
            samples = (samples - self.offset) / self.scale
        scores: FloatArray = samples @ self.w.T + self.b
        return scores

    def apply(self, X: Any) -> IntArray:
        """(n,) number of the leaf that each sample reaches, 2^depth - 1 to 2^(depth + 1) - 2."""
        goes_right = self.scores(X) >= 0
        samples = np.arange(len(goes_right))
        node = np.zeros(len(goes_right), dtype=np.int64)
        for _ in range(self.depth):
            node = 2 * node + 1 + goes_right[samples, node]
        return node

    def branch_of(self, X: Any) -> IntArray:
        """(n,) number of the last branch node that each sample passes: the parent of its leaf."""
        return (self.apply(X) - 1) // 2

    def decision_path(self, X: Any) -> BoolArray:
        """(n, n_nodes) whether each sample passes each node, the root and its leaf included."""
        node = self.apply(X)
        samples = np.arange(len(node))
        passed = np.zeros((len(node), self.topology.n_nodes), dtype=np.bool_)
        for _ in range(self.depth):
            passed[samples, node] = True
            node = (node - 1) // 2
        passed[:, 0] = True
        return passed

    def predict(self, X: Any) -> IntArray | FloatArray:
        """(n,) prediction: class numbers, or real values of a regression tree."""
        return self.leaf_value[self.apply(X) - self.topology.n_branches]

    def predict_labels(self, X: Any) -> npt.NDArray[np.str_]:
        """(n,) names of the predicted classes; a regression tree has none (ValueError)."""
        if not self.is_classifier:
            raise ValueError("a regression tree predicts no classes; use predict for its values")
        return np.asarray(self.classes)[self.predict(X)]
