"""Tables of many features, whose classes are counted by bits, against plain loops and walks."""

from dataclasses import replace

import numpy as np
import pytest
from seeds import seeds
from test_boxes import check_box
from tolerance import at_least, same
from univariate_cases import hold_for_all

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import entry
from mipforest.searches.exact import counted, plain, tables
from mipforest.searches.exact import search as search_module
from mipforest.searches.exact.cover_search import CoverSearch
from mipforest.searches.exact.domains import COLUMNS, OUT, ROOT
from mipforest.searches.exact.search import exact_search
from mipforest.searches.exact.tables import (
    DistinctRows,
    _all_rows,
    _counted_tables,
    _plain_side,
    plain_tables,
)


@entry
def by_bits(tables, side, sides, f, below, first, cost, enough, at, out):
    """Both numbers of a pair, on all rows or on a side of a threshold."""
    if at[0] < 0:
        return counted.pair(tables, side, f, below, first, cost, enough, out, out)
    counted.restrict(tables, sides, at[0], at[1])
    return counted.pair(tables, sides[at[2]], f, below, first, cost, enough, out, out)


@entry
def by_loops(tables, side, sides, f, below, first, cost, at, out):
    """The same, row by row."""
    if at[0] < 0:
        return plain.pair(tables, side, f, below, first, cost, np.inf, out, out)
    plain.restrict(tables, sides, at[0], at[1])
    return plain.pair(tables, sides[at[2]], f, below, first, cost, np.inf, out, out)


def table(rng: np.random.Generator, n: int, p: int, K: int) -> UnivariateProblem:
    """Features of few, of many and of mostly equal values; classes with noise, and sometimes weights."""
    X = rng.random((n, p))
    for f in range(p):
        kind = rng.integers(4)
        if kind == 0:
            X[:, f] = rng.integers(0, int(rng.integers(2, 50)), n)
        elif kind == 1:
            X[rng.random(n) < 0.8, f] = 0.5
    y = ((X[:, 0] > 0.5).astype(int) + (X[:, -1] > np.median(X[:, -1]))) % K
    y = np.where(rng.random(n) < 0.3, rng.integers(0, K, n), y)
    y[:K] = np.arange(K)
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None
    data = Dataset.from_arrays(X, y)
    return UnivariateProblem(thresholds=find_thresholds(data), y=data.y, loss=ClassLoss(), weight=weight)


def counted_rows(problem: UnivariateProblem, monkeypatch) -> DistinctRows:
    """Distinct rows whose classes are counted by bits."""
    monkeypatch.setattr(search_module, "MAX_BYTES", 0)
    monkeypatch.setattr(tables, "MOST_BITS", np.inf)
    rows = search_module.distinct_rows(problem)[0]
    assert rows.is_counted
    return rows


@pytest.mark.slow  # compiles loops of its own
@pytest.mark.parametrize("seed", range(200))
def test_pairs_are_those_of_plain_loops(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, p, K = (int(rng.integers(*limits)) for limits in ((5, 700), (1, 6), (2, 6)))
    rows = counted_rows(table(rng, n, p, K), monkeypatch)
    cost = float(rng.choice([0.0, 1.3]))
    use = np.ones((2, 2, p + COLUMNS), np.uint8)
    use[:, :, p:] = 0
    if rng.random() < 0.5:  # masks: features that some nodes may not have, and nodes that have to split
        use[:, :, :p] = rng.random((2, 2, p)) < 0.7
        use[:, :, p] = rng.random((2, 2)) < 0.5
    masks = {"use": use, "group": np.arange(p)}
    bits, loops = _counted_tables(rows)._replace(**masks), plain_tables(rows)._replace(**masks)
    every, whole = _all_rows(bits), _all_rows(loops)
    sides = tuple(_all_rows(bits) for _ in range(2))
    order = np.empty_like(loops.order)
    parts = tuple(_plain_side(loops, order) for _ in range(2))
    for _ in range(12):
        f, g = rng.integers(0, p, 2)
        if rows.n_values[f] < 2 or rows.n_values[g] < 2:
            continue
        below, first = sorted(rng.integers(1, rows.n_values[f], 2).tolist())
        if rng.random() < 0.5:
            first = below
        at = np.array([g if rng.random() < 0.5 else -1, rng.integers(1, rows.n_values[g]), rng.integers(2)])
        out, numbers = np.zeros(OUT, np.int64), np.zeros(OUT)
        out[ROOT] = numbers[ROOT] = -1
        expected = by_loops(loops, whole, parts, f, below, first, cost, at, numbers)
        found = by_bits(bits, every, sides, f, below, first, cost, np.inf, at, out)
        if np.isinf(sum(expected)):  # no tree
            assert np.isinf(sum(found))
            continue
        assert found == pytest.approx(expected)
        # What is enough ends it early, with bounds.
        enough = sum(expected) * float(rng.random() * 1.2)
        left, right = by_bits(bits, every, sides, f, below, first, cost, enough, at, out)
        assert at_least(expected[0], left)
        assert at_least(expected[1], right)
        assert at_least(left + right, enough) or (left, right) == pytest.approx(expected)


@pytest.mark.parametrize("depth", [2, 3])
def test_best_tree_of_a_box(depth, monkeypatch):
    monkeypatch.setattr(search_module, "search_for", lambda *_: CoverSearch)
    monkeypatch.setattr(search_module, "MAX_BYTES", 0)
    monkeypatch.setattr(tables, "MOST_BITS", np.inf)
    hold_for_all(lambda seed: check_box(depth, seed), range(0, 60, 2))  # those of classes


@pytest.mark.parametrize("seed", seeds(4, 40))
@pytest.mark.parametrize("depth", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_searches_by_bits_prove_what_others_prove(seed, depth, monkeypatch):
    monkeypatch.setattr(search_module, "search_for", lambda *_: CoverSearch)
    rng = np.random.default_rng(100 + seed)
    problem = replace(
        table(rng, int(rng.integers(20, 400 if depth == 2 else 120)), 4, 2 + seed % 3),
        split_cost=float(rng.choice([0.0, 0.7])),
        N_min=(1, 4)[seed % 4 == 3],
    )
    walked = exact_search(problem, depth)
    monkeypatch.setattr(search_module, "MAX_BYTES", 0)
    monkeypatch.setattr(tables, "MOST_BITS", np.inf)
    again = replace(problem, y=problem.y.copy())  # rows of the same arrays are kept
    by_counts = exact_search(again, depth)
    assert search_module.rows_of(again)[0].is_counted
    assert same(walked.value, by_counts.value)
    assert same(walked.bound, by_counts.bound)
    complete = exact_search(again, depth, complete=depth == 2)
    assert same(walked.value, complete.value)
    if depth == 2:
        monkeypatch.undo()
        expected = exact_search(replace(problem), 2, complete=True)
        assert complete.by_threshold == pytest.approx(expected.by_threshold)
