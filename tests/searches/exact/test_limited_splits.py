"""Trees with a limited number of splits, by sums over pairs of thresholds."""

import numpy as np
import pytest
from seeds import seeds
from test_pair_search import KINDS, indicators
from tolerance import at_most, same

from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.covers import NO_LIMIT
from mipforest.searches.exact.limited_splits import LimitedPairSearch, LimitedRoots, search_three_limited
from mipforest.searches.exact.pair_counts import PairWork
from mipforest.searches.exact.pair_search import PairSearch
from mipforest.searches.exact.search import exact_search, in_whole_units, rows_of, takes_most_splits

COUNTED = ("two classes", "three classes", "whole weights", "weights of classes")


def counted(seed, kind):
    """A problem whose rows are counted; with weights, leaves have any size."""
    least = 5 if seed % 2 and kind in COUNTED[:2] else 1
    return indicators(seed, n=80, p=7, **KINDS[kind], N_min=least, split_cost=(0.0, 0.8)[seed // 2 % 2])


@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("kind", COUNTED)
@pytest.mark.parametrize("seed", seeds(2, 24))
def test_more_splits_lose_no_more_and_all_of_them_what_trees_without_a_limit_lose(seed, kind, depth):
    problem = counted(seed, kind)
    assert takes_most_splits(problem, depth)
    every, B = exact_search(problem, depth), 2**depth - 1
    values = []
    for most in range(1, B + 1, depth - 2):
        found = exact_search(problem, depth, most_splits=most)
        assert found.ended
        assert same(found.bound, found.value)
        assert np.count_nonzero(found.chosen >= 0) <= most
        values.append(found.value)
    assert all(at_most(*pair) for pair in zip(values[1:], values, strict=False))
    assert same(exact_search(problem, depth, most_splits=B).value, every.value)


@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("seed", seeds(4, 24))
def test_bounds_of_a_search_that_is_stopped_are_bounds(seed, depth):
    problem, between = counted(seed, COUNTED[seed % 2]), 0
    for most in (2, 5, 9):
        whole = exact_search(problem, depth, most_splits=most)
        value = whole.value
        for share in (0.0, 0.1, 0.3, 0.6, 0.8, 0.9):
            found = exact_search(problem, depth, most_splits=most, most_nodes=int(share * whole.nodes))
            assert at_most(found.bound, value)
            assert at_most(value, found.value)
            if found.ended:
                assert same(found.bound, value)
            between += 0.0 < found.bound < value
    assert between


def test_the_tree_is_the_same_for_any_number_of_threads():
    rows, _ = rows_of(in_whole_units(indicators(3, n=300, p=12)))
    found = []
    for threads in (1, 2, 4):
        search = LimitedPairSearch(rows, 4, cost=0.0, tolerance=0.0, incumbent=np.inf, most_splits=6)
        search.run(gap=0.0, deadline=np.inf, threads=threads, should_stop=lambda: False)
        found.append((search.incumbent, search.tree()))
    assert found[0] == found[1] == found[2]


def test_roots_inherit_trees_below_pairs_of_thresholds_by_number_of_splits():
    """A search that keeps no such bounds has to evaluate more."""
    rows, _ = rows_of(in_whole_units(indicators(1, n=400, p=14)))
    pairs = []
    for most in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mipforest.searches.exact.pair_search.MOST_OF_PAIRS", most)
            search = LimitedPairSearch(rows, 4, cost=0.0, tolerance=0.0, incumbent=np.inf, most_splits=7)
            assert search.solve()
            pairs.append((search.pairs, search.incumbent))
    assert pairs[1][0] < 0.9 * pairs[0][0]
    assert pairs[0][1] == pairs[1][1]  # exact: whole numbers


def test_without_a_limit_that_says_something_the_search_is_that_of_all_trees():
    rows, _ = rows_of(in_whole_units(indicators(2)))
    kept = {"cost": 0.0, "tolerance": 0.0, "incumbent": np.inf}
    limited, every = LimitedPairSearch(rows, 4, most_splits=15, **kept), PairSearch(rows, 4, **kept)
    assert limited.solve()
    assert every.solve()
    assert limited.incumbent == every.incumbent  # exact: whole numbers


@pytest.mark.parametrize("kind", COUNTED)
def test_bounds_that_roots_inherit_never_exceed_what_their_sides_lose(kind):
    problem = in_whole_units(indicators(5, n=60, p=6, values=12, **KINDS[kind], split_cost=0.3))
    rows, _ = rows_of(problem)
    known = {"cost": problem.split_cost, "tolerance": 1e-9}
    search = LimitedPairSearch(rows, 4, incumbent=0.8 * rows.leaf(), most_splits=9, **known)
    right, T = search.tables.right, len(search.tables.feature)
    truth, of_two = np.zeros((2, 8, T)), np.zeros((2, 4, T))
    order, work, every = np.arange(T), PairWork.of(search._counts, 2), np.full(8, np.inf)
    for r in range(T):
        for side, chosen in enumerate((~right[r], right[r])):
            part = search._part(side, chosen, 1, every.copy())
            assert part.search(*known.values(), NO_LIMIT, search.stop)
            truth[side, :, r] = part.bounds(problem.split_cost)
        alone = LimitedRoots.of(T, every.copy())
        search_three_limited(
            search._counts, *known.values(), 1, order[r : r + 1], NO_LIMIT, search.stop, work, alone
        )
        of_two[:, :, r] = alone.of_side[:, :, r]
    inherited = 0
    for r in range(0, T, 2):
        search._close_root(search._evaluate_root(r))
        assert (search._of_number <= truth + 1e-6).all()
        inherited = max(inherited, int((search._of_number[:, :, 1::2] > 0).sum()))
    assert inherited > T
    for evaluated in range(1, T):
        roots = LimitedRoots.of(T, every.copy())
        search_three_limited(
            search._counts, *known.values(), 1, order, evaluated * T, search.stop, work, roots
        )
        assert (roots.of_side <= of_two + 1e-6).all()
        inherited += int((roots.of_side[:, :, evaluated:] > 0).any())
    assert inherited > T


@pytest.mark.parametrize("depth", [3, 4])
def test_nodes_that_have_to_split_count(depth):
    """With as many splits as nodes that have to, and with any number; no tree is known before."""
    problem = indicators(4, n=90, p=6, split_cost=0.7)
    B, p = 2**depth - 1, 6
    must = np.isin(np.arange(B), [0, 2, 5])
    box = Box(np.ones((B, p), dtype=bool), must, np.full(p, -1))
    least, every = (exact_search(problem, depth, box=box, most_splits=most) for most in (3, B))
    assert np.flatnonzero(least.chosen >= 0).tolist() == [0, 2, 5]
    assert same(least.bound, least.value)
    assert same(every.value, exact_search(problem, depth, box=box).value)
    assert at_most(every.value, least.value)
    assert (every.chosen[must] >= 0).all()
