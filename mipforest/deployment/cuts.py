"""What all forms of a tree share: splits of one feature as comparisons, their columns, what missing values count as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data.encoding import Encoding
from mipforest.meanings import MissingEnd
from mipforest.trees import NodeStatistics, Predictor, Tree, leaf_shares
from mipforest.trees.sides import exact_cuts


@dataclass(frozen=True, eq=False)
class Cuts:
    """Splits of one feature: ``x >= cut`` is the upper side.

    Attributes
    ----------
    feature
        (|B|,) number of the feature of each branch node; 0 at a trivial one.
    cut
        (|B|,) smallest double on the upper side; ``-inf`` or ``inf`` where every sample is on one side.
    upper_is_right
        (|B|,) whether the upper side is the right one.
    """

    feature: IntArray
    cut: FloatArray
    upper_is_right: BoolArray

    def only_side(self, t: int) -> bool | None:
        """Return the side that branch node t sends every sample to, true for right; ``None`` if there are two."""
        if np.isfinite(self.cut[t]):
            return None
        return bool((self.cut[t] < 0) == self.upper_is_right[t])


def cuts_of(tree: Tree) -> Cuts:
    """Return the splits of a tree without splits of several features as comparisons."""
    feature = (tree.w != 0).argmax(axis=1)
    weight = tree.w[np.arange(len(feature)), feature]
    cut = np.where(tree.b >= 0, -np.inf, np.inf)
    splits = weight != 0
    if splits.any():
        at = feature[splits]
        offset = np.zeros(len(at)) if tree.offset is None else tree.offset[at]
        scale = np.ones(len(at)) if tree.scale is None else tree.scale[at]
        cut[splits] = exact_cuts(weight[splits], tree.b[splits], offset, scale)
    return Cuts(feature, cut, weight >= 0)


def labels_by_target(tree: Tree, classes: Any) -> list[npt.NDArray[Any]]:
    """Return the labels of each of several targets: those in place of the names of their classes, where given."""
    if classes is None:
        return list(map(np.asarray, tree.target_classes))
    return [np.asarray(classes)] if len(tree.targets) == 1 else list(map(np.asarray, classes))


def leaf_probabilities(tree: Tree, statistics: NodeStatistics | None) -> FloatArray:
    """Return the (|L|, K) probabilities of the leaves: shares of training samples, or 1 for the label without these."""
    return np.eye(len(tree.classes))[tree.leaf_value] if statistics is None else leaf_shares(tree, statistics)


@dataclass(frozen=True, eq=False)
class Inputs:
    """The columns that a form reads: a column of numbers with missing values is one, though it has two features.

    Attributes
    ----------
    names
        Names of the k columns.
    source
        (p,) column of each feature.
    missing
        (p,) what a missing value of the column counts as in the feature: ``-inf`` or ``inf``; NaN for other features.
    least, most
        (p,) range that known values are brought to, so that they are not taken for missing ones; infinite for others.
    """

    names: tuple[str, ...]
    source: IntArray
    missing: FloatArray
    least: FloatArray
    most: FloatArray

    @property
    def two_sided(self) -> bool:
        """Whether some column has a feature for either side of its missing values."""
        return len(self.names) < len(self.source)

    def table(self, X: FloatArray) -> FloatArray:
        """Return the (n, k) columns of (n, p) features, NaN where a value is missing."""
        first = np.array([int(np.argmax(self.source == k)) for k in range(len(self.names))])
        values = X[:, first]
        gone = np.where(self.missing < 0, self.least > X, self.most < X)
        return np.where(gone[:, first], np.nan, values)


def inputs_of(fitted: Predictor) -> Inputs:
    """Return the columns that a tree or card reads, from what its features say of columns."""
    names: list[str] = []
    ends: dict[str, int] = {}
    p = fitted.n_features
    source, missing = np.zeros(p, dtype=np.int64), np.full(p, np.nan)
    least, most = np.full(p, -np.inf), np.full(p, np.inf)
    meanings = fitted.levels or (None,) * p
    for j, (name, meaning) in enumerate(zip(fitted.feature_names, meanings, strict=True)):
        if not isinstance(meaning, MissingEnd):
            source[j] = len(names)
            names.append(name)
            continue
        if meaning.column not in ends:
            ends[meaning.column] = len(names)
            names.append(meaning.column)
        source[j] = ends[meaning.column]
        if meaning.low:
            missing[j], least[j] = -np.inf, meaning.known
        else:
            missing[j], most[j] = np.inf, meaning.known
    return Inputs(tuple(names), source, missing, least, most)


def fill_ins(encoding: Encoding | None, n_features: int) -> FloatArray:
    """Return the (p,) number that a missing value of each feature counts as; NaN where none is known.

    Features that stand for levels of a column have none: there a level is missing, not a number.
    """
    filled = np.full(n_features, np.nan)
    if encoding is not None:
        j = 0
        for column in encoding.columns:
            if column.levels is None and column.fill is not None:
                filled[j] = float(column.fill) - column.base
            j += len(column.features)
    return filled
