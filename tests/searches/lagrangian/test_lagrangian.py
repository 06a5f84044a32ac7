"""Limits on labels: the optimum of enumeration where the gap closes, and a bound that no tree within them is below."""

from itertools import pairwise

import numpy as np
import pytest
from seeds import seeds
from tolerance import at_least, at_most, same

from formulations.oct import Oct
from formulations.policy import Policy
from mipforest import constraints
from mipforest.data import DataError, Dataset, load
from mipforest.searches.lagrangian import closing
from mipforest.searches.lagrangian import search as lagrangian
from mipforest.searches.lagrangian.limited import LimitedTrees

#: Two sums of the same costs in another order, relative to what all samples may cost together.
SUMS = 1e-9


def subtrees(X, here, sums, depth, alpha, n_min):
    """(m, 1 + r) costs and uses of all trees for some samples, from the definition: sums (n, K, 1 + r)."""
    if len(here) < n_min:
        return np.zeros((0, sums.shape[2]))
    found = [sums[here].sum(axis=0)]
    for j in range(X.shape[1] if depth else 0):
        for low, high in pairwise(np.unique(X[here, j])):
            left = X[here, j] < (low + high) / 2
            one, other = (subtrees(X, here[side], sums, depth - 1, alpha, n_min) for side in (left, ~left))
            both = (one[:, None] + other[None]).reshape(-1, sums.shape[2])
            both[:, 0] += alpha
            found.append(both)
    return np.concatenate(found)


def limited_case(seed):
    """Return a problem with limits, and (n, K, 1 + r) costs and uses with (r,) most, straight from what was asked."""
    rng = np.random.default_rng(seed)
    n, K, depth = int(rng.integers(4, 9)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    X = rng.integers(0, 4, (n, 2)) / 3 if seed % 2 else rng.random((n, 2))
    weights = rng.integers(1, 4, n).astype(float) if seed % 3 == 0 else np.ones(n)
    n_min, alpha = int(rng.choice([1, 1, 2])), float(rng.choice([0.0, 0.02]))
    if seed % 5 == 4:
        y = np.arange(n) % K
        data = Dataset.from_arrays(X, y, weights=weights)
        problem = Oct(alpha=alpha, N_min=n_min).build(data, depth)
        cost, unit = problem.instance.charges, problem.instance.baseline
    else:
        R = rng.normal(size=(n, K)) if seed % 7 else rng.integers(-1, 2, (n, K)).astype(float)
        R *= np.where(rng.random((n, K)) < 0.5, 1e6, 1e-6) if seed % 11 == 3 else 1.0
        R[0, 0] += 1.0
        data = Dataset.from_arrays(X, rewards=R, weights=weights)
        problem = Policy(alpha=alpha, N_min=n_min).build(data, depth)
        cost, unit = weights[:, None] * (R.max(axis=1, keepdims=True) - R), float(weights.sum())
    label, share = int(rng.integers(K)), float(rng.choice([0.2, 0.34, 0.5]))
    paid = rng.random(n) if seed % 4 == 1 else weights
    constraints.limit_label(problem, problem.data.classes[label], share, cost=paid)
    use = np.zeros((n, K, 1))
    use[:, label, 0] = paid / paid.sum()
    most = [share]
    if seed % 3 == 1:
        group = np.arange(n) % 2
        constraints.demographic_parity(problem, group, 0.3)
        signed = np.where(group == 0, 1 / (group == 0).sum(), -1 / (group == 1).sum())
        for sign in (1, -1):
            column = np.zeros((n, K, 1))
            column[:, K - 1, 0] = sign * signed
            use, most = np.concatenate([use, column], axis=2), [*most, 0.3]
    if seed % 4 == 2:
        constraints.forbid_label(problem, problem.data.classes[0], [0, 1])
        column = np.zeros((n, K, 1))
        column[:2, 0, 0] = 1.0
        use, most = np.concatenate([use, column], axis=2), [*most, 0.0]
    sums = np.concatenate([cost[:, :, None], use], axis=2)
    return problem, sums, np.array(most), alpha * unit, unit


def best_value(problem, sums, most, alpha, unit):
    """Least objective of a tree within the limits, by enumeration; infinite where there is none."""
    # Samples are scaled, which keeps their order.
    data, n_min = problem.data, problem.formulation.N_min
    found = subtrees(data.X, np.arange(data.n), sums, problem.topology.depth, alpha, n_min)
    within = (found[:, 1:] <= most + SUMS).all(axis=1)
    return float(found[within, 0].min(initial=np.inf)) / unit


# Bounds of 24 are those of roots that are closed.
@pytest.mark.parametrize("seed", [24, *(seed for seed in seeds(8, 100) if seed.values != (24,))])
def test_the_optimum_is_that_of_enumeration(seed):
    agree_with_enumeration(seed)


@pytest.mark.parametrize("seed", seeds(3, 100))
def test_prices_that_are_guessed_first_lead_to_the_same_optimum(seed, monkeypatch):
    monkeypatch.setattr(lagrangian, "MAX_COMPLETE", 0)  # as if an exact tree took long
    agree_with_enumeration(seed)


def agree_with_enumeration(seed):
    problem, *case = limited_case(seed)
    expected, size = best_value(problem, *case), float(case[0][:, :, 0].max()) / case[-1]
    result = problem.solve("exact-search")
    if not np.isfinite(expected):
        assert result.status == "infeasible"
        return
    # A gap that rounding makes of large costs is left, and said.
    assert result.status == "optimal" or at_most(result.objective - result.bound, SUMS * size), result.status
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(expected, rel=1e-4, abs=SUMS * size)
    assert at_most(result.bound, expected + SUMS * size)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", seeds(8, 100))
def test_rows_have_the_same_optimum(seed):
    if seed % 11 == 3:
        return  # costs of 1e6 beside 1e-6 are beyond a solver's tolerances
    problem, *_ = limited_case(seed)
    result, found = problem.solve("highs", gap=1e-7), problem.solve("exact-search", gap=1e-7)
    assert result.status == found.status
    if result.status == "optimal":
        assert found.objective == pytest.approx(result.objective, rel=1e-5, abs=1e-6)
        assert at_most(found.bound, result.objective + 1e-6)
    assert problem.solve().solution.solver == "exact-search"


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("solver", ["exact-search", "highs"])
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(s, marks=pytest.mark.slow) for s in range(3, 30))])
def test_rewards_of_1e9_beside_1e9th_under_a_budget(seed, solver):
    """The optimum up to what sums of such rewards are rounded by; what is below is told, not called proven."""
    rng = np.random.default_rng(seed)
    n, K, depth = int(rng.integers(4, 9)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    X, R = rng.integers(0, 4, (n, 2)) / 3, rng.normal(size=(n, K))
    R *= np.where(rng.random((n, (1, K)[seed % 2])) < 0.5, 1e9, 1e-9)
    problem = Policy(alpha=(0.0, 0.02)[seed // 2 % 2]).build(Dataset.from_arrays(X, rewards=R), depth)
    constraints.limit_label(problem, problem.data.classes[0], 0.34)
    use = np.zeros((n, K, 1))
    use[:, 0, 0] = 1 / n
    sums = np.concatenate([(R.max(axis=1, keepdims=True) - R)[:, :, None], use], axis=2)
    alpha, size = problem.formulation.alpha * n, float(sums[:, :, 0].sum()) / n
    expected = best_value(problem, sums, np.array([0.34]), alpha, float(n))
    result = problem.solve(solver, gap=1e-6, time_limit=60)
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(expected, rel=1e-5, abs=SUMS * size)
    assert at_most(result.bound, expected + SUMS * size)
    if solver == "exact-search" and result.status != "optimal":
        assert result.status == "limit"
        assert at_most(result.objective - result.bound, SUMS * size)
        assert "which rounding may make of costs" in result.solution.message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_gap_that_remains_is_told(seed):
    """At depth 3 the bound is that of the relaxation; enumeration lies between bound and tree."""
    rng = np.random.default_rng(seed)
    X, R = rng.random((7, 1)), rng.normal(size=(7, 2))
    problem = Policy().build(Dataset.from_arrays(X, rewards=R), 3)
    constraints.limit_label(problem, problem.data.classes[1], 0.3)
    use = np.zeros((7, 2, 1))
    use[:, 1, 0] = 1 / 7
    sums = np.concatenate([(R.max(axis=1, keepdims=True) - R)[:, :, None], use], axis=2)
    expected = best_value(problem, sums, np.array([0.3]), 0.0, 7.0)
    result = problem.solve("exact-search")
    assert result.verified
    assert at_most(result.bound, expected + SUMS)
    assert at_least(result.objective, expected - SUMS)
    assert result.status == ("optimal" if result.gap <= 1e-4 else "limit")


@pytest.mark.slow
def test_budgets_that_no_tree_keeps_say_by_how_much():
    X = np.arange(6.0)[:, None]
    problem = Policy().build(Dataset.from_arrays(X, rewards=np.eye(6)[:, :2], classes=["a", "b"]), 2)
    constraints.limit_label(problem, "a", 0.25)
    constraints.limit_label(problem, "b", 0.5)
    result = problem.solve("exact-search")
    assert result.status == "infeasible"
    assert "at_most_a by 0.125" in result.solution.message
    assert "at_most_b by 0.125" in result.solution.message
    problem = Policy().build(Dataset.from_arrays(X, rewards=np.eye(6)[:, :2], classes=["a", "b"]), 1)
    problem.model.add("few", sum_of(problem, 0) + sum_of(problem, 1) <= 4)
    result = problem.solve("exact-search")
    assert result.status == "infeasible"
    assert "few by 2 at least" in result.solution.message


def sum_of(problem, k):
    expressions = problem.formulation.expressions(problem.model, problem.instance)
    return expressions.predicted(k).sum()


def test_limits_on_labels_hold_beside_others_and_without_rows_that_read_labels():
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.random((20, 2)), rewards=rng.normal(size=(20, 2)))
    problem = Policy().build(data, 1)
    constraints.limit_label(problem, problem.data.classes[1], 0.5)
    constraints.forbid_features(problem, problem.data.features.labels[0])
    result = problem.solve()
    assert (result.solution.solver, result.status) == ("exact-search", "optimal")
    assert problem.data.features.labels[0] not in result.features_used
    problem = Policy(variant="paper").build(data, 1)
    constraints.limit_label(problem, problem.data.classes[1], 0.5)
    result = problem.solve("exact-search")
    assert result.status == "optimal"
    assert (np.asarray(result.tree.predict(data.X_raw)) == 1).sum() <= 10  # exact: a count
    with pytest.raises(DataError, match="sample 20"):
        constraints.forbid_label(problem, problem.data.classes[0], [20])


@pytest.mark.parametrize("alpha", [0.0, 0.3, 2.5])
def test_bounds_are_raised_to_the_next_value_of_a_tree_and_no_further(alpha):
    rng = np.random.default_rng(5)
    X, y = rng.random((30, 2)), rng.integers(0, 2, 30)
    base = min((y == 0).sum(), (y == 1).sum())
    problem = Oct(alpha=alpha / base).build(Dataset.from_arrays(X, y), 2)
    constraints.limit_label(problem, problem.data.classes[1], 0.3)
    trees = LimitedTrees.of(problem.structure, 2, problem.restrictions.sums)
    values = np.unique([k + alpha * splits for k in range(-5, 40) for splits in range(4)])
    bounds = np.concatenate([rng.uniform(0, 12, 200), values[(values >= 0) & (values < 12)] + SUMS])
    for bound, raised in zip(bounds, trees.rounded_up(bounds), strict=True):
        assert at_least(raised, bound)
        # What is within rounding of a value is that value.
        assert not ((values > bound + 1e-3) & (values < raised - 1e-3)).any(), (bound, raised)
        assert np.abs(values - raised).min() < 1e-3, (bound, raised)
    weighted = Oct().build(Dataset.from_arrays(X, y, weights=rng.random(30)), 2)
    constraints.limit_label(weighted, weighted.data.classes[1], 0.3)
    trees = LimitedTrees.of(weighted.structure, 2, weighted.restrictions.sums)
    assert same(float(trees.rounded_up(3.4)), 3.4)


@pytest.mark.parametrize("few", [0, 1000])
def test_subtrees_of_a_priced_cost_are_those_of_all_that_have_it(few, monkeypatch):
    monkeypatch.setattr(closing, "FEW", few)  # sums of all thresholds, or of each by itself
    rng = np.random.default_rng(3)
    problem = Policy(alpha=0.05, N_min=2).build(
        Dataset.from_arrays(rng.integers(0, 6, (40, 3)) / 5, rewards=rng.normal(size=(40, 4))), 2
    )
    constraints.limit_label(problem, problem.data.classes[1], 0.2)
    constraints.forbid_label(problem, problem.data.classes[0], [3, 4])
    trees = LimitedTrees.of(problem.structure, 2, problem.restrictions.sums)
    pairs = closing.Closing(trees, np.full(len(trees.use), 0.7))
    for here in (np.ones(len(pairs.size), dtype=bool), pairs.table[:, 0, 0] > 0.5):
        every = pairs.subtrees(here)
        least = pairs._least_of_one_split(here, -1, 0)
        assert same(every.priced.min(), least)
        monkeypatch.setattr(closing, "SUMS", 50)
        for most in (least - 0.1, least + 0.1, least + 2.0, least + 20.0):
            kept, some = every.subset(every.priced <= most), pairs.subtrees(here, most=most)
            assert (kept.threshold == some.threshold).all()
            assert (kept.labels == some.labels).all()
            np.testing.assert_allclose(some.cost, kept.cost, rtol=1e-12, atol=SUMS)
            np.testing.assert_allclose(some.use, kept.use, rtol=1e-12, atol=SUMS)


def test_whole_errors_close_what_prices_leave():
    problem = Oct().build(load("breast_cancer"), 3)
    constraints.limit_label(problem, "malignant", 0.298)
    assert problem.solve("exact-search", time_limit=60).status == "optimal"
