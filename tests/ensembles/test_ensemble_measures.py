"""Frequencies and proximities: a forest written by hand, and definitions spelled out."""

import numpy as np
import pytest
from handmade_forest import LEAF, TREES, forest_of, forests, member_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance import same

import mipforest.ensembles.ensemble as measures_module
from mipforest.ensembles import EnsembleError, close_samples, level_frequencies, node_uses, proximity
from mipforest.ensembles.ensemble import output_variance


def test_frequencies_of_a_forest_written_by_hand():
    forest = forest_of(TREES, 4)
    assert forest.depth == 2
    assert node_uses(forest, 2).tolist() == [[2, 0, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0]]
    assert level_frequencies(forest, 2) == pytest.approx(
        np.array([[2 / 3, 0, 0, 1 / 3], [0, 2 / 6, 1 / 6, 0]])
    )


def test_weights_scale_what_a_tree_counts():
    forest = forest_of(TREES, 4, weights=[3.0, 0.0, 1.0])
    assert level_frequencies(forest, 2) == pytest.approx(
        np.array([[3 / 4, 0, 0, 1 / 4], [0, 2 * 3 / (2 * 4), 0, 0]])
    )


def test_levels_beyond_the_trees_are_empty():
    assert not level_frequencies(forest_of(TREES, 4), 5)[2:].any()


def uses_by_walking(tree, depth, level=0):
    """(level, feature) of every split above a depth."""
    if tree == LEAF or level == depth:
        return []
    feature, _, left, right = tree
    below = [use for child in (left, right) for use in uses_by_walking(child, depth, level + 1)]
    return [(level, feature), *below]


@settings(max_examples=20)
@given(forests(), st.integers(1, 4))
def test_level_frequencies_are_counts_of_splits(drawn, depth):
    trees, weights = drawn
    expected = np.zeros((depth, 3))
    for tree, weight in zip(trees, weights, strict=True):
        for level, feature in uses_by_walking(tree, depth):
            expected[level, feature] += weight / (2**level * sum(weights))
    found = level_frequencies(forest_of(trees, 3, weights), depth)
    assert found == pytest.approx(expected)
    assert (found.sum(axis=1) <= 1 + 1e-12).all()


@settings(max_examples=20)
@given(forests())
def test_depth_is_that_of_the_deepest_member(drawn):
    trees, weights = drawn
    depth = max((level + 1 for tree in trees for level, _ in uses_by_walking(tree, 9)), default=0)
    assert forest_of(trees, 3, weights).depth == depth


@settings(max_examples=20)
@given(forests(), st.lists(st.tuples(*[st.floats(0, 1)] * 3), min_size=1, max_size=7))
def test_proximity_is_the_share_of_members_with_a_common_leaf(drawn, points):
    trees, weights = drawn
    forest = forest_of(trees, 3, weights)
    X = np.array(points)
    leaves = forest.leaves(X)
    n = len(X)
    expected = [[np.average(leaves[i] == leaves[k], weights=weights) for k in range(n)] for i in range(n)]
    found = proximity(forest, X)
    assert found == pytest.approx(np.array(expected))
    assert same(found, found.T)
    assert (found.diagonal() == 1).all()
    together = (leaves[:, None] == leaves[None]).all(axis=2)
    assert (found[together] == 1).all()


@settings(max_examples=20)
@given(forests(), st.lists(st.tuples(*[st.floats(0, 1)] * 3), min_size=1, max_size=7), st.floats(0.05, 1))
def test_close_samples_are_those_of_the_matrix(drawn, points, threshold):
    trees, weights = drawn
    forest, X = forest_of(trees, 3, weights), np.array(points)
    found = close_samples(forest, X, threshold)
    pairs = found.close.toarray()[np.ix_(found.kind, found.kind)]
    np.testing.assert_array_equal(pairs, proximity(forest, X) >= threshold)


def test_where_no_member_may_differ_any_number_of_samples_will_do(monkeypatch):
    monkeypatch.setattr(measures_module, "LARGEST_PROXIMITY", 100)
    forest, X = forest_of(TREES, 4), np.random.default_rng(0).random((50, 4))
    leaves = forest.leaves(X)
    found = close_samples(forest, X, 1.0)
    alike = (leaves[:, None] == leaves[None]).all(axis=2)
    np.testing.assert_array_equal(found.kind[:, None] == found.kind, alike)
    with pytest.raises(EnsembleError, match="the proximities of"):
        close_samples(forest, X, 0.5)


def test_proximity_in_several_blocks(monkeypatch):
    forest = forest_of(TREES, 4, weights=[0.1, 0.2, 0.3])
    X = np.random.default_rng(0).random((11, 4))
    whole = proximity(forest, X)
    monkeypatch.setattr(measures_module, "BLOCK", 4)
    assert same(proximity(forest, X), whole)


def test_proximity_refuses_what_does_not_fit_in_memory():
    with pytest.raises(EnsembleError, match=r"100000 samples take 74\.5 GiB; take at most 16384"):
        proximity(forest_of(TREES, 4), np.zeros((100_000, 4)))


def test_heap_positions():
    member = member_of((0, 0.5, (1, 0.2, LEAF, LEAF), LEAF))
    assert member.heap_positions(2).tolist() == [0, 1, 3, 4, 2]
    assert member.heap_positions(1).tolist() == [0, 1, -1, -1, 2]
    assert member.heap_positions(0).tolist() == [0, -1, -1, -1, -1]


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(1, 9)), min_size=1, max_size=6))
def test_output_variance_is_that_of_the_samples(leaves):
    values, counts = zip(*leaves, strict=True)
    found = output_variance(np.array(values), np.array(counts, dtype=float))
    assert found == pytest.approx(np.var(np.repeat(values, counts)), abs=1e-12)


def test_leaves_without_samples_have_no_variance():
    assert output_variance(np.array([1.0, 2.0]), np.zeros(2)) == 0
