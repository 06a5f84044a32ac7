"""The structure of scikit-learn's trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles.member import MemberTree


def member_of(tree: Any, weight: float = 1.0) -> MemberTree:
    """Give a fitted ``DecisionTreeClassifier`` or ``DecisionTreeRegressor`` as a member.

    scikit-learn sends a sample left where its single-precision value is at most the threshold.
    """
    source = tree.tree_
    left = source.children_left.astype(np.int64)
    return MemberTree(
        left=left,
        right=source.children_right.astype(np.int64),
        feature=np.where(left < 0, -1, source.feature).astype(np.int64),
        threshold=source.threshold.astype(np.float64),
        weight=weight,
    )


def leaf_outputs(tree: Any) -> tuple[FloatArray, FloatArray]:
    """Value of each leaf of a fitted ``DecisionTreeRegressor``, and the weight of the samples in it."""
    source = tree.tree_
    is_leaf: IntArray = source.children_left < 0
    return source.value[is_leaf, 0, 0], source.weighted_n_node_samples[is_leaf]
