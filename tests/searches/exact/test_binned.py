"""Best splits by sums over bins against plain loops, vector walks and enumeration."""

from dataclasses import replace

import numpy as np
import pytest
from enumerate_trees import best_tree_value
from seeds import seeds
from tolerance import at_least, at_most, same

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import (
    ClassLoss,
    LabelsLoss,
    PinballLoss,
    PoissonLoss,
    SquaredLoss,
    TableLoss,
)
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import entry
from mipforest.searches.exact import tables
from mipforest.searches.exact.binned import BinnedTables
from mipforest.searches.exact.cells import CellTables
from mipforest.searches.exact.classes import ManyClasses
from mipforest.searches.exact.covers import pair, restrict
from mipforest.searches.exact.domains import COLUMNS, OUT, ROOT, SIDE, UPPER
from mipforest.searches.exact.plain import PlainTables
from mipforest.searches.exact.search import distinct_rows, exact_search, rows_of

#: Weights of labels compile loops of their own, which differ from those of labels by a factor.
KINDS = (
    "labels",
    pytest.param("weighted labels", marks=pytest.mark.slow),
    "numbers",
    "rates",
    "quantiles",
    "table",
    "classes",
)


@entry
def asked(loops, sides, root, t, side, f, below, first, cost, enough, node, losses) -> None:
    """Write the rows of both sides of a threshold, and ask for a pair on one of them."""
    restrict(loops, sides, root, t, t, t)
    rows = sides[0] if side == 0 else sides[1]
    losses[0], losses[1] = pair(loops, rows, f, below, first, cost, enough, node, losses)


def problem_of(seed, kind, n):
    """A random problem of a kind of loss, and the cost of a leaf by the definition of the loss."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 1 + seed % 3)) * rng.choice([3, 8, 1000])) / 10
    weight = rng.choice([0.3, 0.5, 1.0, 2.0], n) if seed // 2 % 2 else np.ones(n)
    if kind in ("labels", "weighted labels"):
        y = rng.integers(0, 3, (n, 3))
        loss = LabelsLoss(np.ones(3) if kind == "labels" else np.array([1.0, 0.5, 2.2]))
    elif kind == "numbers":
        y, loss = rng.normal(size=(n, 2)), SquaredLoss()
    elif kind == "rates":
        y, loss = rng.poisson(1.0, n).astype(float), PoissonLoss()
    elif kind == "quantiles":
        y, loss = np.round(rng.normal(size=n), seed % 3), PinballLoss((0.5, 0.8, 0.1)[seed % 3])
    elif kind == "classes":
        y, loss = rng.integers(0, 4, n), ClassLoss()
    else:
        table = np.round(3.0 * rng.random((n, 4)), 1)
        y, loss = table.argmin(axis=1), TableLoss(table)

    def cost(rows):
        rows = np.asarray(list(rows))
        own = loss.subset(rows)
        return own.total(own.best_constant(y[rows].astype(float), weight[rows]), y[rows], weight[rows])

    thresholds = find_thresholds(Dataset.from_arrays(X, np.arange(float(n)), task="regression"))
    given = {"weight": weight, "N_min": 1 + seed % 4 // 3 * 2}
    return UnivariateProblem(thresholds=thresholds, y=y, loss=loss, **given), X, cost


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(2, 60))
def test_searches_by_bins_are_enumeration(kind, seed, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_OF_BIN", 2)
    monkeypatch.setattr(tables, "LEAST_BINS", 1)
    monkeypatch.setattr(tables, "MANY_COUNTS", 0)
    problem, X, cost = problem_of(seed, kind, 8 + seed % 6)
    problem = replace(problem, split_cost=(0.0, 0.4)[seed % 2])
    assert rows_of(problem)[0].n_bins
    for depth in (2, 3):
        found = exact_search(problem, depth)
        expected = best_tree_value(X, cost, depth, problem.split_cost, problem.N_min)
        assert found.ended
        assert same(found.value, expected)
        assert at_most(found.bound, expected)


def test_a_part_of_the_rows_has_bins_up_to_the_last():
    problem, *_ = problem_of(5, "table", 200)
    rows, _ = distinct_rows(replace(problem, N_min=1))
    low = rows.subset(rows.rank[0] < rows.n_values[0] // 2)
    own = tables.tables_of(replace(low, n_bins=8)).own
    assert own.bin.max() == 7
    for f, bins in enumerate(own.bin):
        count = np.bincount(bins[low.rank[f]], minlength=8)
        assert (np.diff(bins.astype(int)) >= 0).all()
        assert count.sum() == low.rank.shape[1]
        if rows.n_values[f] > 8:
            assert count.min() > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(3, 60))
def test_pairs_by_bins_are_those_of_plain_loops(kind, seed):
    problem, *_ = problem_of(seed, kind, 90)
    rows, _ = distinct_rows(replace(problem, N_min=1))
    rng, p = np.random.default_rng(seed), len(rows.rank)
    use = (rng.random((2, 2, p + COLUMNS)) < (1.0, 0.6)[seed % 2]).astype(np.uint8)
    use[:, :, p:] = rng.random((2, 2, COLUMNS)) < (0.0, 0.3)[seed % 2]
    masks = use, np.arange(p), np.zeros(2, np.uint8)
    bins = min(2 + seed % 7, int(rows.n_values.max()))
    both = [tables.tables_of(replace(rows, n_bins=n)).masked(*masks, parts_none=True) for n in (0, bins)]
    walked = ManyClasses if kind == "classes" else PlainTables
    assert [type(one.own) for one in both] == [walked, CellTables if kind == "quantiles" else BinnedTables]
    sides = [one.sides() for one in both]
    for _ in range(40):
        f, root = rng.integers(0, p, 2)
        t, (below, first) = (
            rng.integers(1, rows.n_values[root]),
            np.sort(rng.integers(1, rows.n_values[f], 2)),
        )
        first = below if rng.random() < 0.5 else first
        side, cost = int(rng.integers(2)), float(rng.choice([0.0, 0.7]))
        node = np.zeros(OUT, np.int64)
        node[[SIDE, ROOT, UPPER]] = side, root, f
        found = np.zeros((3, 2))
        for losses, k, enough in zip(found, (0, 1, 1), (np.inf, np.inf, rng.random() * 90.0), strict=True):
            asked(
                both[k].loops, sides[k], int(root), int(t), side, int(f), int(below), int(first), cost, enough, node,
                losses,
            )  # fmt: skip
        exact, by_bins, bounds = found
        # Where one of both is infinite, any bound on the other will do.
        assert by_bins.sum() == exact.sum() == np.inf or all(map(same, by_bins, exact))
        assert all(x == y == np.inf or at_most(x, y) for x, y in zip(bounds, exact, strict=True))
        # Bounds alone are returned where they are enough.
        assert bounds.sum() == np.inf or at_least(bounds.sum(), min(enough, exact.sum()))
