"""First bounds from sums over the bins of pairs of features, against enumeration."""

from dataclasses import replace

import numpy as np
import pytest
from seeds import seeds
from tolerance import at_least, at_most, less, same

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss, SquaredLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact import quantiles
from mipforest.searches.exact import search as search_module
from mipforest.searches.exact.cover_search import CoverSearch
from mipforest.searches.exact.quantiles import bound_of_medians, cover_of_bins
from mipforest.searches.exact.search import exact_search, rows_of


def table(seed: int, n: int = 300) -> UnivariateProblem:
    """Numbers or classes that follow two features of many values, one of few, and one of mostly equal values."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((n, 2)), rng.integers(0, 5, n), rng.random(n) * (rng.random(n) < 0.2)])
    y = np.where(X[:, 0] > 0.4, X[:, 1], X[:, 2] / 4) + 0.2 * rng.normal(size=n)
    is_numbers = seed % 2 == 0
    y = y if is_numbers else (y > 0.3).astype(int) + (y > 0.8)
    data = Dataset.from_arrays(X, y, task="regression" if is_numbers else "classification")
    weight = rng.integers(1, 4, n) * (0.5 if seed % 4 > 1 else 1.0)
    loss = SquaredLoss() if is_numbers else ClassLoss()
    cost = 0.3 * (seed % 3 == 1)
    return UnivariateProblem(
        thresholds=find_thresholds(data), y=data.y, loss=loss, weight=weight, split_cost=cost
    )


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_bounds_of_bins_are_below_the_trees_of_every_threshold(seed):
    problem = table(seed)
    rows, base = rows_of(problem)
    cover = cover_of_bins(rows, problem.split_cost)
    values, first = exact_search(problem, 2, complete=True).by_threshold, problem.thresholds.first
    seen = np.zeros(len(values), dtype=int)
    for f, low, high, _, left, right in cover.tolist():
        own = slice(int(first[f]) + low - 1, int(first[f]) + high)
        seen[own] += 1
        assert at_most((left + right + problem.split_cost + base) / problem.unit, values[own].min())
    assert (seen == 1).all()
    # Nearly all that trees lose is known before any is searched.
    least = (cover["left"] + cover["right"]).min() + problem.split_cost + base
    assert at_least(least / problem.unit, 0.5 * values.min())


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_the_bound_of_medians_is_below_all_trees(seed, monkeypatch):
    monkeypatch.setattr(search_module, "MAX_BYTES", 0)
    problem, rng = table(2 * seed + 1, n=120), np.random.default_rng(seed)
    X, weight = problem.thresholds.X, np.rint(problem.weights + 0.5)
    y = np.where(rng.random(len(X)) < 0.4, rng.permutation(problem.y), problem.y)
    y = y if seed % 2 else np.minimum(y, 1)
    if seed % 4 > 1:  # few values, and a feature of one
        X = np.column_stack([X[:, 0] > 0.5, X[:, 2], np.rint(20 * X[:, 1]), np.ones(len(X))])
    problem = replace(
        problem, thresholds=find_thresholds(Dataset.from_arrays(X, y)), y=y, weight=weight, N_min=1 + seed % 3
    )
    rows, base = rows_of(problem)
    assert rows.is_counted
    bound = bound_of_medians(rows, problem.split_cost)
    assert at_most(bound + base, exact_search(problem, 2, complete=True).by_threshold.min() * problem.unit)
    assert less(problem.split_cost, bound)


@pytest.mark.parametrize("seed", seeds(4, 20))
def test_a_search_that_begins_with_them_finds_the_same(seed, monkeypatch):
    monkeypatch.setattr(search_module, "search_for", lambda *_: CoverSearch)
    problem = replace(table(seed), N_min=(1, 7)[seed % 4 == 3])
    without = exact_search(problem, 2)
    monkeypatch.setattr(quantiles, "LEAST", 0)
    found = exact_search(problem, 2)
    assert found.ended
    assert same(without.value, found.value)
    assert found.bound == pytest.approx(without.bound)
