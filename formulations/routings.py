"""The three ways in which models route samples to leaves, behind one face: any leaves go with any routing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from formulations.class_leaves import leaves_of
from formulations.cuts import Cuts, declare_cuts, declare_group_leaves, decode_cuts, encode_cuts
from formulations.hyperplane_splits import (
    declare_hyperplane_splits,
    decode_hyperplane_splits,
    encode_hyperplane_splits,
)
from formulations.univariate_splits import (
    chosen_features,
    declare_univariate_splits,
    decode_univariate_splits,
    encode_univariate_splits,
    univariate_tree,
)
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import LinearExpr, Model, Values, VarArray
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False)
class Routed:
    """What a routing declares for the rest of a model.

    Attributes
    ----------
    z
        (g, |L|) assignment of groups of equal samples (or of single samples) to leaves.
    X
        (g, p) features of each group.
    group
        (n,) group of each sample.
    complexity
        Number of splits, or of features in splits.
    """

    z: VarArray
    X: FloatArray
    group: IntArray
    complexity: LinearExpr


class Routing(ABC):
    """How samples get to leaves.

    Parameters
    ----------
    n_min
        Least number of samples in a leaf that holds any.
    """

    def __init__(self, n_min: int) -> None:
        self.n_min = n_min

    @abstractmethod
    def declare(self, m: Model, data: Dataset, tree: Topology) -> Routed:
        """Write splits and assignment."""

    @abstractmethod
    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        """Values of those blocks for a tree (for scaled features)."""

    @abstractmethod
    def decode(self, values: Values, data: Dataset, tree: Topology) -> Tree:
        """Read the splits off a solution; all leaves predict 0 still."""

    def complexity(self, fitted: Tree) -> FloatArray:
        """(|B|,) complexity of each split."""
        return fitted.w.any(axis=1).astype(float)

    def rows(self, data: Dataset) -> tuple[FloatArray, IntArray]:
        """(g, p) features of the groups, and (n,) the group of each sample."""
        return data.X, np.arange(data.n)


class UnivariateRouting(Routing):
    """Dunn's rows for univariate splits (:mod:`formulations.univariate_splits`)."""

    def declare(self, m: Model, data: Dataset, tree: Topology) -> Routed:
        leaf = declare_univariate_splits(m, data, tree, self.n_min)
        return Routed(leaf.z, *self.rows(data), leaf.splits.sum())

    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        return encode_univariate_splits(fitted, data)

    def decode(self, values: Values, data: Dataset, tree: Topology) -> Tree:
        feature, threshold = decode_univariate_splits(values, data, tree)
        return univariate_tree(feature, threshold, np.zeros(tree.n_leaves), tree, data)


class CutRouting(Routing):
    """Univariate splits by discrete cuts on groups of equal samples (:mod:`formulations.cuts`).

    Parameters
    ----------
    n_min
        Least number of samples in a leaf that holds any.
    cuts
        The cuts of the data.
    """

    def __init__(self, n_min: int, cuts: Cuts) -> None:
        super().__init__(n_min)
        self.cuts = cuts

    def declare(self, m: Model, data: Dataset, tree: Topology) -> Routed:
        cuts = self.cuts
        d = m.binary("d", tree.branches)
        left = declare_cuts(m, cuts, tree, d)
        weight = np.bincount(cuts.group).astype(float)
        z = declare_group_leaves(m, tree, d, left, weight, self.n_min)
        return Routed(z, cuts.X, cuts.group, d.sum())

    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        cuts = self.cuts
        feature = chosen_features(fitted)
        z = leaves_of(fitted, cuts.X)
        values = {
            "d": (feature >= 0).astype(float),
            "u": encode_cuts(feature, -fitted.b, cuts, fitted.topology.branches),
            "z": z,
        }
        return values | {"l": z.any(axis=0).astype(float)} if self.n_min > 1 else values

    def decode(self, values: Values, data: Dataset, tree: Topology) -> Tree:
        feature, threshold = decode_cuts(values["u"], self.cuts)
        return univariate_tree(feature, threshold, np.zeros(tree.n_leaves), tree, data)

    def rows(self, data: Dataset) -> tuple[FloatArray, IntArray]:
        return self.cuts.X, self.cuts.group


class HyperplaneRouting(Routing):
    """Dunn's rows for hyperplane splits (:mod:`formulations.hyperplane_splits`).

    Parameters
    ----------
    n_min
        Least number of samples in a leaf that holds any.
    mu
        Margin that stands for the strict inequality to the left.
    """

    def __init__(self, n_min: int, mu: float) -> None:
        super().__init__(n_min)
        self.mu = mu

    def declare(self, m: Model, data: Dataset, tree: Topology) -> Routed:
        leaf = declare_hyperplane_splits(m, data, tree, self.n_min, self.mu)
        return Routed(leaf.z, *self.rows(data), m["s"].sum())

    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        return encode_hyperplane_splits(fitted, data, self.mu)

    def decode(self, values: Values, data: Dataset, tree: Topology) -> Tree:
        return decode_hyperplane_splits(values, data, tree)

    def complexity(self, fitted: Tree) -> FloatArray:
        features: FloatArray = (fitted.w != 0).sum(axis=1).astype(float)
        return features
