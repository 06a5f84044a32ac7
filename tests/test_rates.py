"""Rates of two classes: the greatest F1 is that of enumeration, and helpers keep the trees that reach a rate."""

from itertools import pairwise

import numpy as np
import pytest
from seeds import seeds
from tolerance import at_least, at_most

from formulations.oct import Oct
from formulations.oct_h import OctH
from mipforest import constraints
from mipforest.data import DataError, Dataset
from mipforest.problem.parameters import ParameterError
from mipforest.rates import best_f1, f1_score

#: Quotients of sums in another order.
SUMS = 1e-9


def counts(X, y, w, here, depth, n_min):
    """Yield (TP, FP) of all trees for some samples, each leaf with either label."""
    if len(here) < n_min:
        return
    yield 0.0, 0.0
    yield float(w[here] @ y[here]), float(w[here] @ (1 - y[here]))
    for j in range(X.shape[1] if depth else 0):
        for low, high in pairwise(np.unique(X[here, j])):
            left = X[here, j] < (low + high) / 2
            one, other = ({*counts(X, y, w, here[side], depth - 1, n_min)} for side in (left, ~left))
            yield from {(a + c, b + d) for a, b in one for c, d in other}


def rates_case(seed):
    rng = np.random.default_rng(seed)
    n, depth = int(rng.integers(5, 11)), int(rng.integers(1, 3))
    X = rng.integers(0, 5, (n, 2)) / 4 if seed % 2 else rng.random((n, 2))
    y = (rng.random(n) < 0.35).astype(int)
    y[:2] = 0, 1
    w = rng.integers(1, 4, n).astype(float) if seed % 3 == 0 else np.ones(n)
    n_min = int(rng.choice([1, 1, 2]))
    data = Dataset.from_arrays(X, y, weights=w if seed % 3 == 0 else None)
    return data, depth, n_min, {*counts(X, y, w, np.arange(n), depth, n_min)}, float(w @ y)


@pytest.mark.first_cases(5)
@pytest.mark.parametrize("seed", seeds(15, 100))
def test_the_greatest_f1_is_that_of_enumeration(seed):
    data, depth, n_min, found, P = rates_case(seed)
    expected = max(2 * tp / (P + tp + fp) for tp, fp in found)
    best = best_f1(Oct(N_min=n_min), data, depth)
    assert best.value == pytest.approx(expected, rel=SUMS)
    assert best.bound == pytest.approx(expected, rel=1e-6)
    assert at_least(best.bound, expected - SUMS)
    assert f1_score(data, best.tree.predict(data.X_raw), 1) == pytest.approx(expected, rel=SUMS)


@pytest.mark.parametrize("solver", ["exact-search", pytest.param("highs", marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", seeds(2, 24))
def test_helpers_keep_the_trees_that_reach_a_rate(seed, solver):
    data, depth, n_min, found, P = rates_case(seed)
    N = float(data.weights.sum()) - P
    problem = Oct(N_min=n_min).build(data, depth)
    add, holds = {
        0: (lambda: constraints.min_f1(problem, 0.7), lambda tp, fp: 2 * tp >= 0.7 * (P + tp + fp)),
        1: (
            lambda: (constraints.min_recall(problem, 0.8), constraints.min_precision(problem, 0.6)),
            lambda tp, fp: tp >= 0.8 * P and tp >= 0.6 * (tp + fp),
        ),
        2: (
            lambda: constraints.min_balanced_accuracy(problem, 0.8),
            lambda tp, fp: tp / P + 1 - fp / N >= 1.6,
        ),
        3: (lambda: constraints.min_recall(problem, 0.9, positive="0"), lambda tp, fp: N - fp >= 0.9 * N),
    }[seed % 4]
    add()
    result = problem.solve(solver)
    within = [P - tp + fp for tp, fp in found if holds(tp - SUMS, fp - SUMS) or holds(tp + SUMS, fp)]
    if not within:
        assert result.status == "infeasible"
        return
    assert result.status == "optimal"
    assert result.verified, result.failed_checks
    assert result.objective * problem.structure.unit == pytest.approx(min(within), abs=1e-6)


def test_a_search_that_stops_keeps_a_bound():
    rng = np.random.default_rng(0)
    X, y = rng.random((80, 4)), (rng.random(80) < 0.3).astype(int)
    data = Dataset.from_arrays(X, y)
    stopped, best = best_f1(Oct(), data, 2, time_limit=0), best_f1(Oct(), data, 2)
    assert at_least(stopped.bound, best.value)
    assert at_most(stopped.value, best.value)


def test_what_has_no_rate_is_refused():
    X, y = np.arange(6.0)[:, None], np.array([0, 1, 2, 0, 1, 2])
    three, two = Dataset.from_arrays(X, y), Dataset.from_arrays(X, y % 2)
    with pytest.raises(DataError, match="3 classes"):
        best_f1(Oct(), three, 1)
    with pytest.raises(ParameterError, match="alpha=0"):
        best_f1(Oct(alpha=0.1), two, 1)
    with pytest.raises(DataError, match="no class 'yes'"):
        best_f1(Oct(), two, 1, positive="yes")
    with pytest.raises(DataError, match="from 0 to 1"):
        constraints.min_recall(OctH().build(two, 1), 1.5)
