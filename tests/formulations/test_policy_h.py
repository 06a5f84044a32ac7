"""Policy trees of hyperplane splits: the value of all trees, by rows, by SCIP and by a search; budgets; starts."""

from itertools import product

import numpy as np
import pytest
from independent_routes import scip_optimum
from searches.oblique.every_tree import is_parted, optimum
from tolerance import at_most

from formulations.policy import Policy, PolicyH, regrets
from mipforest.constraints import limit_label
from mipforest.data import DataError, Dataset
from mipforest.problem.repair import feasible_values
from mipforest.searches.oblique.problem import ObliqueProblem

#: Two sums of the same rewards in another order, and a solver's tolerances, relative to the largest loss.
SUMS = 1e-6


def random_case(seed):
    """Return data and a model: rewards of any sign, or of 1e9 beside 1e-9; weights, least leaf sizes, costs."""
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(5, 8)), int(rng.integers(2, 4))
    X, R = rng.integers(0, 5, (n, 2)) / 4, rng.normal(size=(n, K))
    if seed % 4 == 3:
        R *= np.where(rng.random((n, K)) < 0.5, 1e9, 1e-9)
    data = Dataset.from_arrays(X, rewards=R, weights=rng.integers(1, 4, n) if seed % 3 == 0 else None)
    alpha = (0.0, 0.03)[seed // 2 % 2] * float(regrets(data).sum() / data.weights.sum())
    return data, PolicyH(alpha=alpha, N_min=1 + seed % 3 // 2, mu=0.05, max_features=seed // 4 % 3)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "seed",
    [0, 3, 5, 7, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 4, 6, *range(8, 20)))],
)  # more data
def test_rows_scip_and_the_search_have_the_optimum_of_all_trees(seed):
    data, model = random_case(seed)
    depth, scale = 1 + seed % 2, float(regrets(data).max())
    problem = model.build(data, depth)
    expected = optimum(ObliqueProblem.of(problem.structure, data.X, depth)) / problem.structure.unit
    off = {"rel": SUMS, "abs": SUMS * scale}
    result = problem.solve("highs", gap=1e-9, time_limit=None)
    assert result.verified
    assert result.objective == pytest.approx(expected, **off)
    assert scip_optimum(problem.model.matrix()) == pytest.approx(expected, **off)
    searched = problem.solve("oblique-search", gap=0, time_limit=60)
    assert searched.verified
    assert searched.objective == pytest.approx(expected, **off)
    assert at_most(searched.bound, expected + SUMS * scale)
    own = data.rewards[np.arange(data.n), result.tree.predict(data.X_raw).astype(int)]
    lost = np.average(data.rewards.max(axis=1) - own, weights=data.weights)
    assert result.objective == pytest.approx(lost + model.alpha * (result.tree.w != 0).sum(), **off)


@pytest.mark.parametrize("seed", range(4))
def test_a_budget_may_want_another_decision_than_the_best_of_a_leaf(seed):
    rng = np.random.default_rng(seed)
    X, R = (
        rng.integers(0, 4, (6, 2)) / 3,
        rng.normal(size=(6, 2 + seed % 2)) + ([1.0, 0.0, 0.0][: 2 + seed % 2]),
    )
    data = Dataset.from_arrays(X, rewards=R)
    problem = PolicyH(mu=0.05).build(data, 1)
    own = ObliqueProblem.of(problem.structure, data.X, 1)
    group = np.unique(data.X, axis=0, return_inverse=True)[1].ravel()
    limit_label(problem, "0", 1 / 3)
    lost, best = R.max(axis=1, keepdims=True) - R, np.inf
    for sides in product([0, 1], repeat=own.n_groups):
        left, right = (tuple(np.flatnonzero(np.array(sides) == side)) for side in (0, 1))
        if left and right and not is_parted(own, (0, 1), left, right):
            continue
        for labels in product(range(R.shape[1]), repeat=2):
            decided = np.array(labels)[np.array(sides)[group]]
            if (decided == 0).sum() <= 2:
                best = min(best, lost[np.arange(6), decided].mean())
    result = problem.solve("highs", gap=1e-9, time_limit=None)
    assert result.verified
    assert result.objective == pytest.approx(best, abs=SUMS)


def noisy_trial(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 20, (n, 2)) / 20
    gained = np.where(X.sum(axis=1) > 0.9, 1.0, -1.0) + 0.3 * rng.normal(size=n)
    return Dataset.from_arrays(
        X, rewards=np.column_stack([np.zeros(n), gained, 0.2 * gained]), classes=["a", "b", "c"]
    )


@pytest.mark.parametrize("start", PolicyH.starts)
def test_starts_are_points_of_the_model(start):
    problem = PolicyH(alpha=0.01, N_min=3).build(noisy_trial(20), 2)
    tree = problem.formulation.start(start, problem.instance)
    assert feasible_values(problem, tree) is not None


def test_the_tree_of_univariate_splits_is_a_start_and_hyperplanes_are_better():
    data = noisy_trial()
    univariate = Policy(alpha=0.01).build(data, 1).solve("exact-search")
    problem = PolicyH(alpha=0.01).build(data, 1)
    assert problem.formulation.evaluate(univariate.solved_tree, problem.instance) == pytest.approx(
        univariate.objective
    )
    assert feasible_values(problem, univariate.solved_tree) is not None
    local = problem.solve("local-search", start=univariate.tree, time_limit=60)
    assert local.verified
    assert at_most(local.objective, 0.8 * univariate.objective)


def test_data_without_rewards_are_refused():
    with pytest.raises(DataError, match="policy-h takes rewards"):
        PolicyH().build(Dataset.from_arrays(np.arange(4.0)[:, None], [0, 1, 0, 1]), 1)
