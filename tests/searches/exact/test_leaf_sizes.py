"""Leaves of a least size: walks that count samples, and bounds that hold for all thresholds of an interval."""

from dataclasses import replace

import numpy as np
import pytest
from enumerate_trees import best_tree_value
from seeds import seeds
from tolerance import at_least, at_most, same

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import entry
from mipforest.searches.exact import search as search_module
from mipforest.searches.exact.classes import ManyClasses, TwoClasses
from mipforest.searches.exact.cover_search import CoverSearch, OuterInterval
from mipforest.searches.exact.covers import restrict, sized_pair
from mipforest.searches.exact.domains import COLUMNS, MUST, OUT, ROOT, SIDE, UPPER
from mipforest.searches.exact.gathered import GatheredTables
from mipforest.searches.exact.plain import PlainTables
from mipforest.searches.exact.search import rows_of
from mipforest.searches.exact.tables import tables_of


@entry
def asked(loops, sides, root, t, low, high, side, f, ends, samples, is_exact, node, losses) -> None:
    """Write the rows of both sides of a threshold and their samples, and ask for a sized pair on one of them."""
    restrict(loops, sides, root, t, low, high)
    rows = sides[0] if side == 0 else sides[1]
    losses[0], losses[1] = sized_pair(
        loops, rows, f, ends[0], ends[1], samples[0], samples[1], is_exact, 0.7, np.inf, node, losses
    )


def problem_of(seed, n, *, N_min, n_values=12):
    """A problem of two to four classes with equal samples: weights in vectors of 16 bits, 32 bits, or doubles."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (n, 1 + seed % 3)).astype(float)
    y = rng.integers(0, 2 + seed // 3 % 3, n)
    fractions = rng.choice([0.3, 1.0], n) * (1.0, 1e10)[seed % 2]
    weight = (np.ones(n), rng.integers(1, 20_000, n).astype(float), fractions)[seed % 3]
    thresholds = find_thresholds(Dataset.from_arrays(X, np.arange(float(n)), task="regression"))
    return UnivariateProblem(thresholds=thresholds, y=y, loss=ClassLoss(), weight=weight, N_min=N_min), X


def enumerated(rows, weighed, counted, use):
    """The least loss of at most one split of the weighed rows whose leaves have enough of the counted ones."""
    label, weight = rows.value[:, 0].astype(int), rows.value[:, 1] * weighed

    def leaf(chosen):
        if rows.size[chosen & counted].sum() < rows.N_min:
            return np.inf
        return weight[chosen].sum() - np.bincount(label[chosen], weight[chosen], 5).max()

    values = [leaf(np.ones(len(label), dtype=bool))]
    for g in np.flatnonzero(use):
        for t in range(1, int(rows.n_values[g])):
            left = rows.rank[g] < t
            values.append(0.7 + leaf(left) + leaf(~left))
    return min(values)


@pytest.mark.parametrize("seed", seeds(9, 180))
def test_pairs_count_samples_of_all_rows_of_an_interval(seed):
    rng = np.random.default_rng(seed)
    problem, _ = problem_of(seed, 80, N_min=int(rng.integers(2, 12)))
    rows, _ = rows_of(problem)
    p, tables = len(rows.rank), tables_of(rows)
    assert isinstance(tables.own, TwoClasses if rows.n_classes == 2 else ManyClasses)
    use = (rng.random((2, 2, p + COLUMNS)) < 0.8).astype(np.uint8)
    use[:, :, p:] = 0
    tables = tables.masked(use, np.arange(p), np.zeros(2, np.uint8), parts_none=False)
    sides = tables.sides()
    for _ in range(60):
        root, f, side = (int(one) for one in (rng.integers(p), rng.integers(p), rng.integers(2)))
        low, t, high = np.sort(rng.integers(1, rows.n_values[root], 3)).tolist()
        first, c, last = np.sort(rng.integers(1, rows.n_values[f], 3)).tolist()
        node, losses = np.zeros(OUT, np.int64), np.zeros(2)
        node[[SIDE, ROOT, UPPER]] = side, root, f
        # A threshold in the middle of an interval, and the interval.
        for below, beyond in ((c, c), (first, last)):
            asked(
                tables.loops, sides, root, t, low, high, side, f, (below, beyond), (first, last), False, node, losses
            )  # fmt: skip
            of_root, of_pair = rows.rank[root], rows.rank[f]
            weighed = of_root < t if side == 0 else of_root >= t
            counted = of_root < high if side == 0 else of_root >= low
            expected = [
                enumerated(rows, weighed & inside, counted & sized, use[side, child, :p])
                for child, (inside, sized) in enumerate(
                    [(of_pair < below, of_pair < last), (of_pair >= beyond, of_pair >= first)]
                )
            ]
            assert all(x == y == np.inf or same(x, y) for x, y in zip(losses, expected, strict=True))


@pytest.mark.parametrize("seed", seeds(9, 180))
def test_pairs_of_one_threshold_are_those_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    problem, _ = problem_of(seed, 60, N_min=int(rng.integers(2, 12)))
    rows, _ = rows_of(problem)
    p, own = len(rows.rank), tables_of(rows)
    use = (rng.random((2, 2, p + COLUMNS)) < 0.8).astype(np.uint8)
    use[:, :, p:] = 0
    use[:, :, p + MUST] = rng.random((2, 2)) < 0.5
    masks = use, np.arange(p), np.zeros(2, np.uint8)
    by_loops = tables_of(replace(rows, kind=None, n_bins=0))
    assert isinstance(by_loops.own, PlainTables)
    both = [tables.masked(*masks, parts_none=True) for tables in (own, by_loops)]
    sides = [one.sides() for one in both]
    for _ in range(60):
        root, f, side = (int(one) for one in (rng.integers(p), rng.integers(p), rng.integers(2)))
        t, c = int(rng.integers(1, rows.n_values[root])), int(rng.integers(1, rows.n_values[f]))
        node, found = np.zeros(OUT, np.int64), np.zeros((2, 2))
        node[[SIDE, ROOT, UPPER]] = side, root, f
        for one, of_one, losses in zip(both, sides, found, strict=True):
            asked(one.loops, of_one, root, t, t, t, side, f, (c, c), (c, c), True, node, losses)
        assert all(x == y == np.inf or same(x, y) for x, y in zip(*found, strict=True))


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("seed", seeds(6, 60))
def test_bounds_of_stopped_searches_are_below_the_best_tree(seed, depth):
    n = 9 if depth == 4 else 16
    problem, X = problem_of(3 * seed, n, N_min=2 + seed % 3, n_values=8)
    rows, base = rows_of(problem)

    def cost(chosen):
        return len(chosen) - np.bincount(problem.y[np.asarray(list(chosen))]).max()

    best = best_tree_value(X, cost, depth, 0.0, problem.N_min)
    bounds = []
    for pairs in (1, 3, 10, 30, 100, 1000, 10**6):
        search = CoverSearch(rows, depth, cost=0.0, tolerance=0.0, incumbent=np.inf, most_pairs=pairs)
        ended = search.solve()
        bounds.append(search.bound + base)
        assert at_most(bounds[-1], best)
        assert at_least(search.incumbent + base, best)
    assert ended
    assert same(search.incumbent + base, best)
    assert at_most(max(bounds), bounds[-1])


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_relaxed_sides_lose_no_more_than_those_of_other_thresholds(seed):
    """Of the sides of all thresholds of an interval, with leaves of a least size, the relaxed one is a lower bound."""
    problem, _ = problem_of(3 * seed, 40, N_min=2 + seed % 5)
    rows, _ = rows_of(problem)
    search = CoverSearch(rows, 3, cost=0.0, tolerance=0.0, incumbent=np.inf)
    rng, f = np.random.default_rng(seed), 0

    def least(part):
        one = CoverSearch(part, 2, cost=0.0, tolerance=0.0, incumbent=np.inf)
        assert one.solve()
        return one.incumbent

    low, t, high = np.sort(rng.integers(1, rows.n_values[f], 3)).tolist()
    interval = OuterInterval(0.0, 0.0, 0, f, low, high)
    left, right = (least(search._relaxed(interval, t, side)) for side in range(2))
    for other in range(low, high + 1):
        if other >= t:
            assert at_most(left, least(rows.subset(rows.rank[f] < other)))
        if other <= t:
            assert at_most(right, least(rows.subset(rows.rank[f] >= other)))


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_gathered_ranks_take_leaf_sizes(seed, monkeypatch):
    monkeypatch.setattr(search_module, "MAX_BYTES", 0)
    monkeypatch.setattr(search_module, "fit_bits", lambda times: False)
    problem, X = problem_of(3 * seed, 14, N_min=2 + seed % 3, n_values=8)
    rows, base = rows_of(problem)
    assert isinstance(tables_of(rows).own, GatheredTables)

    def cost(chosen):
        return len(chosen) - np.bincount(problem.y[np.asarray(list(chosen))]).max()

    search = CoverSearch(rows, 3, cost=0.0, tolerance=0.0, incumbent=np.inf)
    assert search.solve()
    assert same(search.incumbent + base, best_tree_value(X, cost, 3, 0.0, problem.N_min))
    # Sizes are counted by plain loops: none stand behind the weights.
    own = tables_of(rows).own
    assert len(own.classes.walk) == len(own.row)
