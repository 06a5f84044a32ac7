"""Samples whose values are all distinct: each threshold moves one sample, where what a move can change is tight."""

import numpy as np
import pytest

from formulations.oct import Oct
from formulations.ort import Ort
from mipforest.data import Dataset
from mipforest.searches.exact.search import exact_search


def least_loss(X, amounts, of_sums, depth, cost):
    """Return the least loss of a tree by enumeration; ``of_sums`` gives that of leaves by sums (..., V) of amounts."""
    whole = amounts.sum(axis=0)
    best = float(of_sums(whole))
    if len(X) < 2:
        return best
    for column in X.T:
        order = np.argsort(column)
        if depth == 1:
            below = amounts[order].cumsum(axis=0)[:-1]
            best = min(best, cost + float((of_sums(below) + of_sums(whole - below)).min()))
            continue
        for cut in range(1, len(X)):
            sides = order[:cut], order[cut:]
            below = (least_loss(X[at], amounts[at], of_sums, depth - 1, cost) for at in sides)
            best = min(best, cost + sum(below))
    return best


def errors(sums):
    return sums.sum(axis=-1) - sums.max(axis=-1)


def squares(sums):
    """Of weight, weighted target, and weighted square."""
    return sums[..., 2] - sums[..., 1] ** 2 / np.where(sums[..., 0] > 0, sums[..., 0], 1.0)


@pytest.mark.parametrize(("depth", "n", "cases"), [(2, 40, 12), (3, 16, 8)])
@pytest.mark.parametrize("K", [2, 3])
def test_the_errors_are_those_of_enumeration(depth, n, cases, K):
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        X, y = rng.permuted(np.tile(np.arange(n), (2, 1)), axis=1).T.astype(float), rng.integers(0, K, n)
        y[:K], weights = np.arange(K), rng.integers(1, 3, n).astype(float) if seed % 2 else np.ones(n)
        data = Dataset.from_arrays(X, y, weights=weights)
        charged = Oct(alpha=[0.0, 0.0, 0.04][seed % 3]).build(data, depth, declare=False).structure
        found = exact_search(charged, depth)
        expected = (
            least_loss(X, weights[:, None] * np.eye(K)[y], errors, depth, charged.split_cost) / charged.unit
        )
        assert found.value == pytest.approx(expected, abs=1e-9), seed
        assert found.bound == pytest.approx(expected, abs=1e-8), seed


@pytest.mark.parametrize(("depth", "n", "cases"), [(2, 40, 6), (3, 16, 4)])
def test_the_squares_are_those_of_enumeration(depth, n, cases):
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        X = rng.permuted(np.tile(np.arange(n), (2, 1)), axis=1).T.astype(float)
        y = np.round(3 * np.sin(X[:, 0] / 5) + rng.normal(size=n), 2)
        charged = (
            Ort(alpha=[0.0, 0.02][seed % 2], N_min=1)
            .build(Dataset.from_arrays(X, y, task="regression"), depth, declare=False)
            .structure
        )
        found = exact_search(charged, depth)
        amounts = np.column_stack([np.ones(n), charged.y, charged.y**2])
        expected = least_loss(X, amounts, squares, depth, charged.split_cost) / charged.unit
        assert found.value == pytest.approx(expected, abs=1e-7), seed
        assert found.bound == pytest.approx(expected, abs=1e-6), seed
