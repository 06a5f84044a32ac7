"""Starts of MIRET keep groups together and find cheap splits; splits are in MIRET's box, with its labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from miret_data import blobs
from sklearn.ensemble import RandomForestClassifier
from tolerance import at_most

from formulations.mimic.trees import GroupedNode, scale_into_box, swapped_subtrees, with_fixed_labels
from formulations.miret import Miret
from mipforest.data import Dataset
from mipforest.trees import Topology, Tree

FEW = "random-forest:trees=5"


@given(seed=st.integers(0, 10**6))
def test_the_cheapest_threshold_of_one_feature_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((12, 1)), 1)
    group = np.unique(rng.integers(0, 8, 12), return_inverse=True)[1]
    sides = np.round(rng.random((group.max() + 1, 2)), 3)
    node = GroupedNode(X, group, sides, np.array([0.2]), 1e-3)
    w, b = node.cheapest_split(np.array([0]))  # never None: all costs are finite
    values = [sides[:, 0].sum(), sides[:, 1].sum()]
    for direction in (1.0, -1.0):
        for threshold in np.arange(0.05, 1, 0.1):
            right = direction * (X[:, 0] - threshold) > 0
            where = [right[group == g] for g in range(len(sides))]
            if all(each.all() or not each.any() for each in where) and len({bool(e[0]) for e in where}) == 2:
                values.append(0.2 + sum(sides[g, int(each[0])] for g, each in enumerate(where)))
    goes_right = X @ w + b >= 0
    found = sum(sides[g, int(goes_right[group == g][0])] for g in range(len(sides))) + 0.2 * w.any()
    assert all(len(set(goes_right[group == g])) == 1 for g in range(len(sides)))
    assert found == pytest.approx(min(values))


def test_a_split_that_no_group_may_take_is_none():
    X, group = np.array([[0.0], [0.0], [1.0]]), np.array([0, 1, 1])
    for sides in ([[np.inf, np.inf], [0, 0]], [[np.inf, 0], [0, np.inf]]):
        node = GroupedNode(X, group, np.array(sides), np.array([0.1]), 1e-3)
        assert node.cheapest_split(np.array([0])) is None


def test_splits_keep_their_gaps_when_those_above_send_them_other_samples():
    rng = np.random.default_rng(2)
    X = rng.random((50, 3))
    y = (X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=50)) > 0
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, y)
    formulation = Miret(ensemble=forest, alpha=0.01, proximity=1.1, epsilon=0.1)
    problem = formulation.build(Dataset.from_arrays(X, y), 3)
    assert problem.instance.known.w.any()
    assert problem.model.violations(problem.encoded(problem.instance.known)).max <= 1e-8


def test_thresholds_allow_a_least_intercept():
    node = GroupedNode(np.array([[0.0], [0.9]]), np.arange(2), np.zeros((2, 2)), np.zeros(1), 0.2, least=0.0)
    assert node.thresholds(np.array([1.0])).intercept.tolist() == [-0.45]  # reversed it is 0.45
    shifted = GroupedNode(
        np.array([[-0.1], [0.15]]), np.arange(2), np.zeros((2, 2)), np.zeros(1), 0.2, least=0.0
    )
    assert not len(
        shifted.thresholds(np.array([1.0])).last
    )  # neither -0.1 nor 0.05 leaves an intercept of 0 or more


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0, 1.5])
def test_starts_keep_groups_together_and_features_allowed(threshold):
    data = blobs(11, 30, 3)
    formulation = Miret(ensemble=FEW, proximity=threshold, alpha=0.05, gamma_percentile=40)
    problem = formulation.build(data, 2)
    instance = problem.instance
    for name in formulation.starts:
        tree = formulation.start(name, instance)
        assert np.isfinite(formulation.evaluate(tree, instance))
        assert problem.model.violations(formulation.encode(tree, instance)).max <= 1e-6
    constant = formulation.start("constant", instance)
    assert at_most(formulation.evaluate(instance.known, instance), formulation.evaluate(constant, instance))


@given(seed=st.integers(0, 10**6))
def test_a_split_in_the_box_keeps_its_sides(seed):
    rng = np.random.default_rng(seed)
    X, w = rng.random((12, 3)), rng.uniform(-3, 3, 3)
    score = np.sort(X @ w)
    k = int(rng.integers(0, 13))  # the k lowest go left
    b = -float(score[k - 1] + score[k]) / 2 if 0 < k < 12 else float(rng.uniform(-5, 5))
    scale, low, high = scale_into_box(w, b, score[k:], score[:k], 1e-3)
    assert np.abs(scale * w).max() <= 1 + 1e-12
    if low <= high:
        for intercept in (low, high):
            assert abs(intercept) <= 1
            assert (scale * score[k:] + intercept >= -1e-9).all()
            assert (scale * score[:k] + intercept <= -1e-3 + 1e-9).all()
    else:
        assert 0 < k < 12
        assert scale * (score[k] - score[k - 1]) < 1e-3


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_subtrees_change_places(depth):
    tree = Topology(depth)
    for t in tree.branches:
        number = swapped_subtrees(t, tree)
        np.testing.assert_array_equal(number[number], np.arange(tree.n_nodes))
        assert number[tree.left(t)] == tree.right(t)
        moved = np.flatnonzero(number != np.arange(tree.n_nodes))
        assert all(tree.level(node) == tree.level(number[node]) for node in moved)
        if t in tree.upper_branches:
            leaves = np.asarray(tree.leaves)
            np.testing.assert_array_equal(number[leaves] % 2, leaves % 2)


@given(seed=st.integers(0, 10**6), depth=st.integers(1, 3))
def test_fixed_labels_keep_predictions(seed, depth):
    rng = np.random.default_rng(seed)
    X = rng.random((20, 2))
    n = 2**depth
    tree = Tree(
        depth, rng.uniform(-1, 1, (n - 1, 2)), rng.uniform(-1, 1, n - 1), rng.integers(0, 2, n), ("a", "b")
    )
    np.testing.assert_array_equal(with_fixed_labels(tree).predict(X), tree.predict(X))
