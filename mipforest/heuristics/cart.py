"""CART (scikit-learn), as a complete tree of this package."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import IntArray
from mipforest.data import Dataset
from mipforest.trees import Topology, Tree, midpoint


def cart(
    data: Dataset, topology: Topology, *, min_leaf: int = 1, seed: int = 0, random_splits: bool = False
) -> Tree:
    """Grow a CART tree down to a depth.

    Parameters
    ----------
    data
        Scaled features; a class or a real target.
    topology
        The tree; CART's leaves above the last level become nodes without a split, which send all samples to
        the right.
    min_leaf
        Least number of samples per leaf.
    seed
        Seed of CART's choice among equally good splits, or of random ones.
    random_splits
        Draw the splits: the best of one random threshold for each of a few random features.

    Returns
    -------
    Tree
        For scaled features. It routes and predicts every sample of the data as scikit-learn's tree does.
    """
    from sklearn.tree import (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
    )  # takes seconds; only CART needs it

    is_classification = data.task == "classification"
    learner = DecisionTreeClassifier if is_classification else DecisionTreeRegressor
    drawn = {"splitter": "random", "max_features": "sqrt"} if random_splits else {}
    fitted = learner(max_depth=topology.depth, min_samples_leaf=min_leaf, random_state=seed, **drawn).fit(
        data.X, data.y
    )
    source = fitted.tree_
    prediction = (
        fitted.classes_[source.value[:, 0].argmax(axis=1)] if is_classification else source.value[:, 0, 0]
    )
    w = np.zeros((topology.n_branches, data.X.shape[1]))
    b = np.ones(topology.n_branches)
    leaf_value = np.zeros(topology.n_leaves)

    def copy(node: int, t: int, members: IntArray) -> None:
        """Copy scikit-learn's node, which the given samples reach, to node t, and all that lies below."""
        left, right = int(source.children_left[node]), int(source.children_right[node])
        if t >= topology.n_branches:
            leaf_value[t - topology.n_branches] = prediction[node]
        elif left == -1:
            copy(node, 2 * t + 1, members[:0])
            copy(node, 2 * t + 2, members)
        else:
            x = data.X[members, source.feature[node]]
            # scikit-learn compares single-precision samples; the midpoint of the double-precision ones
            # splits alike.
            goes_left = x.astype(np.float32) <= source.threshold[node]
            w[t, source.feature[node]] = 1.0
            b[t] = -midpoint(x[goes_left].max(), x[~goes_left].min())
            copy(left, 2 * t + 1, members[goes_left])
            copy(right, 2 * t + 2, members[~goes_left])

    copy(0, 0, np.arange(len(data.X)))
    classes = tuple(data.classes) if is_classification else ()
    return Tree(topology.depth, w, b, leaf_value, classes, tuple(data.features.labels))
