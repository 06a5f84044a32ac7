"""Routing keeps given splits: the optimum is that of the rows, which leave a node its weight alone."""

import numpy as np
import pytest
from routed_models import GAP, MODELS, NAMES, SAME, check_beside, refusal, solved_by_both
from scipy.optimize import minimize_scalar
from tolerance import at_least, at_most

import mipforest
from mipforest.data import Dataset
from mipforest.problem.constraints import AtMostFeatures, Forbid, MinLeaf, Recall, Split
from mipforest.searches.routing.given_splits import best_weight, least_gains

#: What a numerical minimum of one weight may be above the exact one, relatively.
MINIMUM = 1e-6


def case(seed, n=12):
    """Return a problem with one or two given splits and, at times, another constraint; models and depths take turns."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 3)), 2)
    y = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n)
    data = Dataset.from_arrays(X, (y > np.median(y)).astype(int), features=NAMES)
    model, parameters = MODELS[seed % len(MODELS)]
    depth = 1 + seed // len(MODELS) % 2
    problem = mipforest.get_formulation(model)(**parameters).build(data, depth)
    nodes = rng.choice(2**depth - 1, min(1 + seed // 10 % 2, 2**depth - 1), replace=False)
    for t in nodes.tolist():
        j = int(rng.integers(3))
        values = np.unique(X[:, j])
        k = int(rng.integers(1, len(values)))
        # At a value itself, or between two.
        at = values[k] if rng.random() < 0.5 else (values[k - 1] + values[k]) / 2
        problem.constrain(Split(NAMES[j], float(at), t))
    others = [MinLeaf(2), Recall("1", 0.8), Forbid("a"), Forbid(("b",), (2**depth - 2,)), AtMostFeatures(2)]
    if seed // 20 % 2:
        problem.constrain(others[int(rng.integers(len(others)))])
    return problem


@pytest.mark.first_cases(6)  # each model, and two levels
@pytest.mark.parametrize("seed", range(100))
def test_the_matrix_solver_finds_the_same_optimum(seed):
    problem = case(seed)
    if why := refusal(problem):
        pytest.skip(why)
    result, other = solved_by_both(problem, case(seed))
    assert result.status == other.status
    if result.status == "infeasible":
        return
    check_beside(result, other)
    assert result.objective == pytest.approx(other.objective, rel=SAME)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_three_levels(seed):
    """The subtrees below the root have bounds of their own, with the features that their nodes may use."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((9, 3)), 2)
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)
    data = Dataset.from_arrays(X, np.where([*y[:-1], not y[0]], 1, 0), features=NAMES)
    at = float(np.sort(X[:, 2])[4])
    own = [Forbid("a", (0, 3)), Forbid(("b", "c"), (2,))] if seed % 2 else [Split("c", at, seed // 2 % 3)]
    name, parameters = MODELS[0] if seed < 6 else MODELS[2]
    results = []
    for solver in ("routing", "highs"):
        problem = mipforest.get_formulation(name)(**parameters).build(data, 3)
        problem.constrain(*own)
        results.append(problem.solve(solver, gap=GAP, time_limit=60, start=None))
    result, other = results
    assert result.status == "optimal"
    assert result.verified, result.failed_checks
    assert at_most(other.bound, result.objective * (1 + GAP))
    assert at_most(result.bound, other.objective * (1 + GAP))


@pytest.mark.parametrize("seed", range(30))
def test_the_best_weight_is_the_minimum_and_gains_are_below_what_a_term_costs(seed):
    rng = np.random.default_rng(seed)
    l1, m = bool(seed % 2), int(rng.integers(0, 12))
    a, r, u = rng.standard_normal(m), rng.choice([-0.5, 0.0, 1.0], m), rng.random(m)
    a[rng.random(m) < 0.2] = 0.0
    least = float(rng.choice([1e-3, 0.5, 2.0]))

    def charge(w, a, r, u):
        return (w if l1 else w * w / 2) + float(u @ np.maximum(0.0, r - a * w))

    def minimum(a, r, u):
        """Return the least charge, from the kinks and a search between them."""
        ends = sorted({least, *(float(k) for k in r[a != 0] / a[a != 0] if k > least)})
        values = [charge(w, a, r, u) for w in ends]
        for low, high in zip(ends, [*ends[1:], ends[-1] + u.sum() * 4 + 1], strict=True):
            values.append(minimize_scalar(charge, (low, high), (low, high), (a, r, u), method="bounded").fun)
        return min(values)

    best = best_weight(a, r, u, least=least, l1=l1)
    assert at_least(best.weight, least)
    assert best.value == pytest.approx(charge(best.weight, a, r, u))
    assert best.value == pytest.approx(minimum(a, r, u), rel=MINIMUM)
    further = rng.standard_normal(5), rng.choice([-0.5, 0.0, 1.0], 5), rng.random(5) * 3
    gains = least_gains(best, *further, l1=l1)
    for k in range(5):
        more = [np.append(one, other[k]) for one, other in zip((a, r, u), further, strict=True)]
        assert at_most(best.value + gains[k], minimum(*more) * (1 + MINIMUM) + MINIMUM)
        assert at_least(gains[k], 0.0)


def test_a_given_split_on_a_forbidden_feature_is_refused():
    problem = case(0)
    (split,) = problem.constraints
    problem.constrain(Forbid(split.feature))
    assert "is forbidden there" in refusal(problem)
