from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipforest.trees import MAX_DEPTH, Nodes, Topology

depths = pytest.mark.parametrize("depth", range(1, 7))


def follow(path):
    """The node that a string of L and R leads to from the root, and the nodes on the way with their turns."""
    node, turns = 0, []
    for turn in path:
        turns.append((node, turn))
        node = 2 * node + (1 if turn == "L" else 2)
    return node, turns


def paths(length):
    return [
        format(k, f"0{length}b").replace("0", "L").replace("1", "R") if length else ""
        for k in range(2**length)
    ]


@depths
def test_sets_are_what_the_paths_from_the_root_reach(depth):
    topology = Topology(depth)
    levels = [[follow(path)[0] for path in paths(h)] for h in range(depth + 1)]
    assert [list(topology.at_level(h)) for h in range(depth + 1)] == levels
    assert list(topology.branches) == list(chain(*levels[:-1]))
    assert list(topology.last_branches) == levels[-2]
    assert list(topology.upper_branches) == list(chain(*levels[:-2]))
    assert list(topology.leaves) == levels[-1]
    assert topology.levels.tolist() == [h for h in range(depth) for _ in levels[h]]
    assert (topology.n_branches, topology.n_leaves, topology.n_nodes) == (
        2**depth - 1,
        2**depth,
        2 ** (depth + 1) - 1,
    )


@settings(deadline=None)
@given(st.data(), st.integers(1, MAX_DEPTH))
def test_ancestors_parents_children_and_levels_follow_the_path(data, depth):
    topology = Topology(depth)
    path = data.draw(st.text("LR", max_size=depth))
    node, turns = follow(path)
    assert topology.level(node) == len(path)
    if path:
        parent, turn = turns[-1]
        assert topology.parent(node) == topology.parents[node] == parent
        assert (topology.left(parent) if turn == "L" else topology.right(parent)) == node


@depths
def test_reach_matrices_agree_with_the_paths(depth):
    topology = Topology(depth)
    expected = {
        name: np.zeros(getattr(topology, name).shape) for name in ("reach", "reach_left", "reach_right")
    }
    for row, path in enumerate(paths(depth - 1)):
        last, turns = follow(path)
        expected["reach"][row, last] = 1
        for t, turn in turns:
            expected["reach"][row, t] = 1
            expected["reach_left" if turn == "L" else "reach_right"][row, t] = 1
    for name, matrix in expected.items():
        np.testing.assert_array_equal(getattr(topology, name).toarray(), matrix)
    assert topology.reach.shape == (len(topology.last_branches), len(topology.branches))
    assert (
        topology.reach_left.shape
        == topology.reach_right.shape
        == (len(topology.last_branches), len(topology.upper_branches))
    )


@depths
def test_leaf_reach_matrices_agree_with_the_ancestors(depth):
    topology = Topology(depth)
    for matrix, side in ((topology.leaf_reach_left, "L"), (topology.leaf_reach_right, "R")):
        assert matrix.shape == (len(topology.leaves), len(topology.branches))
        assert [np.flatnonzero(row).tolist() for row in matrix.toarray()] == [
            [t for t, turn in follow(path)[1] if turn == side] for path in paths(depth)
        ]
        assert matrix.format == "csr"
        assert matrix.dtype == np.float64
        assert set(matrix.data) <= {1.0}


def test_the_largest_tree_is_quick_and_sparse():
    topology = Topology(MAX_DEPTH)
    assert topology.reach.nnz == MAX_DEPTH * 2 ** (MAX_DEPTH - 1)
    assert topology.leaf_reach_left.nnz + topology.leaf_reach_right.nnz == MAX_DEPTH * 2**MAX_DEPTH


@pytest.mark.parametrize("depth", [0, -1, MAX_DEPTH + 1])
def test_depths_out_of_range_are_refused(depth):
    with pytest.raises(ValueError, match=f"1 to {MAX_DEPTH}, got {depth}"):
        Topology(depth)


@pytest.mark.parametrize("depth", [2.0, "2", True, None])
def test_depths_that_are_no_integers_are_refused(depth):
    with pytest.raises(TypeError, match="integer"):
        Topology(depth)


def test_nodes_that_do_not_exist_are_refused():
    topology = Topology(2)
    for wrong in (lambda: topology.level(7), lambda: topology.level(-1), lambda: topology.parent(7)):
        with pytest.raises(ValueError, match="nodes are 0 to 6"):
            wrong()
    with pytest.raises(ValueError, match="no parent"):
        topology.parent(0)
    with pytest.raises(ValueError, match="leaf"):
        topology.left(3)
    with pytest.raises(ValueError, match="levels 0 to 2"):
        topology.at_level(3)


def test_nodes_are_a_labelled_sequence_and_a_numpy_index():
    nodes = Topology(2).last_branches
    assert nodes.labels == ("n1", "n2")
    assert (len(nodes), nodes[0], nodes[-1], list(nodes), 2 in nodes, 3 in nodes) == (
        2,
        1,
        2,
        [1, 2],
        True,
        False,
    )
    assert nodes[1:] == Nodes((2,))
    assert repr(nodes) == "Nodes(n1, n2)"
    values = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(values[nodes], values[[1, 2]])  # exact: whole numbers
    np.testing.assert_array_equal(values[:, nodes], values[:, [1, 2]])  # exact: whole numbers
    nothing = Topology(1).upper_branches
    assert len(nothing) == 0
    assert values[:, nothing].shape == (3, 0)


def test_equal_depths_are_equal_topologies():
    assert Topology(3) == Topology(np.int64(3))
    assert hash(Topology(3)) == hash(Topology(3))
