"""Shares of classes at leaves, by hand."""

import numpy as np

from mipforest.trees import Tree, leaf_shares, node_statistics

#: x < 0 goes left. Leaves predict b, a, c, a.
TREE = Tree(2, [[1.0], [1.0], [1.0]], [0.0, 2.0, -2.0], [1, 0, 2, 0], classes=("a", "b", "c"))


def test_shares_are_counted_and_an_empty_leaf_gives_its_label():
    X = np.array([[-1.0], [-1.0], [-1.0], [-1.0], [3.0]])
    shares = leaf_shares(TREE, node_statistics(TREE, X, np.array([0, 0, 0, 2, 1])))
    # Nobody is in the first and the third leaf; in the last one the label a is not the most frequent class.
    np.testing.assert_array_equal(shares, [[0, 1, 0], [0.75, 0, 0.25], [0, 0, 1], [0, 1, 0]])


def test_a_label_among_equals_is_found_first():
    X = np.array([[-3.0], [-3.0], [1.0], [1.0]])
    shares = leaf_shares(TREE, node_statistics(TREE, X, np.array([0, 1, 1, 2])))
    assert shares[0].argmax() == 1
    assert shares[2].argmax() == 2
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-15)
