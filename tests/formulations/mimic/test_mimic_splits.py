"""Splits in MIRET's box, with its labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.mimic.trees import scale_into_box, swapped_subtrees, with_fixed_labels
from mipforest.trees import Topology, Tree

FEW = "random-forest:trees=5"


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
