"""The search of prescriptive trees with linear estimates, beside the definition."""

import numpy as np
import pytest

from formulations.opt_l import OptL
from mipforest.data import Dataset, load
from mipforest.errors import Unsupported


def samples(n: int, seed: int, p: int = 2, weighted: bool = False) -> Dataset:
    """Features with ties; outcomes with a step, and a slope that depends on the treatment."""
    rng = np.random.default_rng(seed)
    X, had = np.round(rng.random((n, p)), 1), rng.integers(0, 2, n)
    y = X[:, 0] * (1 - 2 * had) + 2.0 * (X[:, 1] > 0.5) + 0.1 * rng.standard_normal(n)
    weight = 1.0 + rng.integers(0, 3, n) if weighted else None
    return Dataset.from_arrays(X, np.round(y, 3), treatments=had, weights=weight)


def best_charge(problem, here, depth):
    """Return what the best subtree of the samples ``here`` is charged, each leaf fitted by the definition."""
    leaves, formulation = problem.instance.leaves, problem.formulation
    if here.sum() < formulation.N_min:
        return np.inf
    best = leaves.cost(leaves.fit(here))
    if depth == 0:
        return best
    for column in problem.data.X.T:
        for value in np.unique(column[here])[1:]:
            sides = (here & (column < value), here & (column >= value))
            split = formulation.alpha * leaves.baseline
            best = min(best, split + sum(best_charge(problem, side, depth - 1) for side in sides))
    return best


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("depth", "n", "weighted", "mu", "lam", "alpha"),
    [
        (1, 24, False, 0.5, 0.05, 0.0),
        (1, 24, True, 0.2, 1.0, 0.1),
        (1, 24, False, 1.0, 0.3, 0.0),
        (2, 10, False, 0.5, 0.2, 0.01),
    ],
)
def test_it_is_the_best_of_all_trees(depth, n, weighted, mu, lam, alpha):
    data = samples(n, seed=1, weighted=weighted)
    problem = OptL(mu=mu, n_treatment=2, N_min=3, lam=lam, alpha=alpha).build(data, depth)
    result = problem.solve("prescription-search", start=None)
    assert (result.status, result.verified) == ("optimal", True)
    best = best_charge(problem, np.ones(n, dtype=bool), depth) / problem.instance.leaves.total_weight
    assert result.objective == pytest.approx(best, abs=1e-9)
    assert result.bound == pytest.approx(result.objective, abs=1e-7)
    local = problem.solve("local-search", solver_options={"starts": 2, "kicks": 2})
    assert result.objective <= local.objective + 1e-9


@pytest.mark.slow
def test_the_second_experiment_is_solved_at_depth_1():
    data = load("synthetic:treatments,experiment=2,n=300")
    result = OptL(lam=3.0).build(data, 1).solve()
    assert (result.status, result.verified, result.solution.solver) == (
        "optimal",
        True,
        "prescription-search",
    )
    local = OptL(lam=3.0).build(data, 1).solve("local-search", solver_options={"starts": 2, "kicks": 2})
    assert result.objective <= local.objective + 1e-9


def test_with_features_that_say_the_same_the_bound_holds_for_all_minima():
    # Where the features agree, under the first treatment, lassos have many minima; under the second they differ.
    rng = np.random.default_rng(0)
    X, had = rng.random((16, 2)), np.arange(16) % 2
    X[had == 0, 1] = X[had == 0, 0]
    X[had == 1, 1] *= 0.2
    X[1], X[3] = 0.0, 1.0  # so that scaling leaves them equal
    y = np.where(had == 0, 3 * X[:, 0], 10.0)
    data = Dataset.from_arrays(X, y, treatments=had)
    problem = OptL(mu=0.8, n_treatment=3, N_min=8, lam=0.1).build(data, 1)
    found = problem.solve("prescription-search", start=None)
    assert found.status == "limit"
    assert "several minima" in found.solution.message
    model = problem.solve("highs", start=None, gap=1e-6, time_limit=60)
    assert found.bound <= model.bound + 1e-6
    assert found.bound <= found.objective - 1e-3


def test_depth_2_is_refused_where_it_would_take_hours():
    data = load("synthetic:treatments,experiment=1,n=300")
    with pytest.raises(Unsupported, match="local-search, which proves nothing"):
        OptL().build(data, 2).solve("prescription-search")
