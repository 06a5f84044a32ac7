"""CART (scikit-learn): trees as complete ones of this package, plain, with wide margins, and at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import midpoint

#: Seconds that scikit-learn takes for a sample, feature and level of a tree, where they are many; and the most samples
#: for which that is never too long.
SECONDS_OF_CART, FEW = 3e-7, 5000

#: Share of the time left that a tree of CART may take.
SHARE_OF_CART = 0.2

#: Trees of a forest that are grown between two looks at the clock.
TREES_AT_ONCE = 5


def cart(
    data: Dataset,
    topology: Topology,
    *,
    min_leaf: int = 1,
    seed: int = 0,
    random_splits: bool = False,
    budget: TimeBudget | None = None,
) -> Tree:
    """Grow a CART tree down to a depth.

    Parameters
    ----------
    data
        Scaled features; a class or a real target, or several targets.
    topology
        Index sets of the tree; CART's leaves above the last level become nodes without a split, which send all
        samples to the right.
    min_leaf
        Least number of samples per leaf, whatever their weights.
    seed
        Seed of CART's choice among equally good splits, or of random ones.
    random_splits
        Draw the splits: the best of one random threshold for each of a few random features.
    budget
        Time that is left; loading scikit-learn does not count. Where growing the tree would take more than a share of
        it, every second sample grows it, or every third, and so on.

    Returns
    -------
    Tree
        For scaled features. It routes and predicts every sample of the data as scikit-learn's tree does.
    """
    budget = budget or TimeBudget()
    with budget.loading():  # takes seconds; only CART needs it
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    is_classification = data.task == "classification" or bool(data.target_classes)
    learner = DecisionTreeClassifier if is_classification else DecisionTreeRegressor
    drawn = {"splitter": "random", "max_features": "sqrt"} if random_splits else {}
    learner = learner(max_depth=topology.depth, min_samples_leaf=min_leaf, random_state=seed, **drawn)
    affordable = SHARE_OF_CART * budget.remaining / (SECONDS_OF_CART * data.p * topology.depth)
    every = slice(None, None, max(1, math.ceil(data.n / max(FEW, affordable))))
    weights = data.weights[every] if data.weighted else None
    grown = learner.fit(data.X[every], data.y[every], sample_weight=weights)
    return from_scikit_learn(grown, data, topology)


def from_scikit_learn(grown: Any, data: Dataset, topology: Topology) -> Tree:
    """Return a decision tree of scikit-learn as a complete tree, with thresholds that route the samples of data alike.

    scikit-learn compares single-precision values with its thresholds. Each is put between the two neighbouring values
    of the samples on its sides, so that the tree sends every sample where scikit-learn does.

    Parameters
    ----------
    grown
        A fitted ``DecisionTreeClassifier`` or ``DecisionTreeRegressor``, no deeper than the topology.
    data
        Scaled features, in which the tree was grown.
    topology
        Index sets of the tree; leaves above the last level become nodes without a split.
    """
    source, is_classification = grown.tree_, data.task == "classification"
    if data.target_classes:
        best = source.value.argmax(axis=2).T
        of_target = [grown.classes_] if len(best) == 1 else grown.classes_
        prediction = np.column_stack([known[k] for known, k in zip(of_target, best, strict=True)])
    elif data.targets:
        prediction = source.value[:, :, 0]
    elif is_classification:
        prediction = grown.classes_[source.value[:, 0].argmax(axis=1)]
    else:
        prediction = source.value[:, 0, 0]
    w = np.zeros((topology.n_branches, data.X.shape[1]))
    b = np.ones(topology.n_branches)
    leaf_value = np.zeros((topology.n_leaves, *data.y.shape[1:]))

    def copy(node: int, t: int, members: IntArray) -> None:
        """Copy scikit-learn's node, which the given samples reach, to node t, and all that lies below."""
        left, right = int(source.children_left[node]), int(source.children_right[node])
        if t >= topology.n_branches:
            leaf_value[t - topology.n_branches] = prediction[node]
        elif left == -1:
            copy(node, topology.left(t), members[:0])
            copy(node, topology.right(t), members)
        else:
            x = data.X[members, source.feature[node]]
            goes_left = x.astype(np.float32) <= source.threshold[node]
            w[t, source.feature[node]] = 1.0
            parted = goes_left.any() and not goes_left.all()
            b[t] = -(midpoint(x[goes_left].max(), x[~goes_left].min()) if parted else source.threshold[node])
            copy(left, topology.left(t), members[goes_left])
            copy(right, topology.right(t), members[~goes_left])

    copy(0, 0, np.arange(len(data.X)))
    classes = tuple(data.classes) if is_classification else ()
    return Tree(
        topology.depth,
        w,
        b,
        leaf_value,
        classes,
        tuple(data.features.labels),
        targets=data.targets,
        target_classes=data.target_classes,
    )


def class_shares(grown: Any, topology: Topology) -> FloatArray:
    """Return (n_leaves, K) shares of the classes, in training, in the leaves of :func:`from_scikit_learn`'s tree."""
    source = grown.tree_
    shares = np.zeros((topology.n_leaves, source.value.shape[2]))

    def copy(node: int, t: int) -> None:
        if t >= topology.n_branches:
            counts = source.value[node, 0]
            shares[t - topology.n_branches] = counts / counts.sum()
        elif source.children_left[node] == -1:  # a node without a split sends all samples to the right
            copy(node, topology.right(t))
        else:
            copy(int(source.children_left[node]), topology.left(t))
            copy(int(source.children_right[node]), topology.right(t))

    copy(0, 0)
    return shares


def forest_trees(
    data: Dataset,
    topology: Topology,
    number: int,
    *,
    min_leaf: int = 1,
    seed: int = 0,
    halted: Callable[[], bool] = lambda: False,
) -> list[Tree]:
    """Grow the trees of a random forest (scikit-learn), down to a depth, as complete trees.

    Parameters
    ----------
    data, topology, min_leaf, seed
        As for :func:`cart`.
    number
        How many, at least 0.
    halted
        Asked after every :data:`TREES_AT_ONCE` trees whether to leave out the rest.
    """
    if number == 0:
        return []
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    is_classification = data.task == "classification" or bool(data.target_classes)
    y = data.y.ravel() if data.y.shape[1:] == (1,) else data.y
    forest = RandomForestClassifier if is_classification else RandomForestRegressor
    grown = forest(max_depth=topology.depth, min_samples_leaf=min_leaf, random_state=seed, warm_start=True)
    for count in range(TREES_AT_ONCE, number + TREES_AT_ONCE, TREES_AT_ONCE):
        grown.set_params(n_estimators=min(count, number))
        grown.fit(data.X, y, sample_weight=data.weights if data.weighted else None)
        if halted():
            break
    return [from_scikit_learn(tree, data, topology) for tree in grown.estimators_]


def cart_with_margin(
    data: Dataset, topology: Topology, margin: float, *, min_leaf: int = 1, seed: int = 0
) -> Tree:
    """Grow a CART tree whose splits all keep the samples of their two sides a margin apart.

    Neighbouring values of a feature less than ``margin`` apart are taken as one value; CART then has no threshold
    between them to choose.

    Parameters
    ----------
    data, topology, min_leaf, seed
        As for :func:`cart`.
    margin
        Least distance between the greatest value sent left and the least sent right, in scaled units.

    Returns
    -------
    Tree
        For scaled features, each threshold in the middle of its margin.
    """
    merged = np.column_stack([_merged(column, margin) for column in data.X.T])
    grown = cart(replace(data, X=merged), topology, min_leaf=min_leaf, seed=seed)
    reaches, goes_right = grown.decision_path(merged), grown.scores(merged) >= 0
    b = np.zeros(topology.n_branches)
    for t in np.flatnonzero(grown.w.any(axis=1)):
        here, x = reaches[:, t], data.X @ grown.w[t]
        b[t] = -midpoint(x[here & ~goes_right[:, t]].max(), x[here & goes_right[:, t]].min())
    return replace(grown, b=b)


def _merged(column: FloatArray, margin: float) -> FloatArray:
    """Replace each value by the number of its run: neighbours less than ``margin`` apart are in one run."""
    values, inverse = np.unique(column, return_inverse=True)
    run = np.concatenate([[0], np.cumsum(np.diff(values) >= margin)])
    numbers: FloatArray = run[inverse].astype(float)
    return numbers


#: Labellings per random tree: all of them at depth 2 and two classes.
LABELLINGS = 16


def random_trees(data: Dataset, topology: Topology, min_leaf: int) -> Iterator[Tree]:
    """Yield randomly split classification trees without end: each with CART's labels, then with other ones.

    One of them may satisfy a constraint that better trees break.

    Parameters
    ----------
    data
        Scaled features, classes.
    topology
        Index sets of the tree.
    min_leaf
        Least number of samples per leaf.
    """
    rng = np.random.default_rng(0)
    K, n_leaves = len(data.classes), topology.n_leaves
    seed = 0
    while True:
        tree = cart(data, topology, min_leaf=min_leaf, seed=seed, random_splits=True)
        seed += 1
        yield tree
        if K**n_leaves <= LABELLINGS:
            labellings = np.array(list(product(range(K), repeat=n_leaves)))
        else:
            labellings = rng.integers(0, K, (LABELLINGS, n_leaves))
        for labels in labellings:
            yield replace(tree, leaf_value=labels)
