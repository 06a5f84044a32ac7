"""OPT-L: the lasso of a leaf, the definition by direct summation, the model and both searches against each other."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from tolerance import at_least

from formulations.opt import Opt
from formulations.opt_l import OptL, OptLH, lasso
from mipforest.data import Dataset
from mipforest.trees import Topology


def small(n: int, seed: int, m: int = 2, p: int = 2) -> Dataset:
    """Random features; outcomes are linear, with other slopes under each treatment."""
    rng = np.random.default_rng(seed)
    X, had = rng.random((n, p)), rng.permutation(np.arange(n) % m)
    y = X[:, 0] * (1 - 2 * had) + 2 * X[:, 1] + 0.1 * rng.standard_normal(n)
    return Dataset.from_arrays(X, np.round(y, 3), treatments=had)


@pytest.mark.parametrize("lam", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("k", [2, 8, 40])
def test_the_lasso_of_a_leaf_holds_its_optimality_conditions(lam, k):
    rng = np.random.default_rng(k)
    X, y = rng.random((k, 4)), rng.standard_normal(k)
    beta, charged = lasso(X, y, lam)
    residuals = y - y.mean() - (X - X.mean(axis=0)) @ beta
    slope = 2 * (X - X.mean(axis=0)).T @ residuals
    assert np.abs(slope).max() <= lam * (1 + 1e-7)
    np.testing.assert_allclose(slope[beta != 0], lam * np.sign(beta[beta != 0]), rtol=1e-7)
    assert charged == pytest.approx(residuals @ residuals + lam * np.abs(beta).sum())
    other = Lasso(alpha=lam / (2 * k), tol=1e-10, max_iter=100_000).fit(X, y)
    error = y - other.predict(X)
    assert charged <= error @ error + lam * np.abs(other.coef_).sum() + 1e-9


def test_the_value_of_a_tree_is_the_definition_summed_sample_by_sample():
    data = small(40, 1, 3)
    formulation = OptL(mu=0.4, n_treatment=5, lam=0.2)
    instance = formulation.bind(data, Topology(1))
    tree = formulation.relabel(Opt(n_treatment=5).build(data, 1).solve().tree.unscaled(), instance)
    estimates, tau = tree.predict_outcomes(data.X), tree.predict(data.X)
    rows = np.arange(data.n)
    under = np.where(tau == data.treatments, data.y, estimates[rows, tau])
    error = (data.y - estimates[rows, data.treatments]) ** 2
    sizes = np.abs(tree.outcome_w[np.unique(tree.apply(data.X)) - 1]).sum()
    direct = 0.4 * under.mean() + 0.6 * (error.mean() + 0.2 * sizes / data.n)
    assert formulation.evaluate(tree, instance) == pytest.approx(direct, abs=1e-10)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("mu", [0.5, 1.0])
@pytest.mark.parametrize("m", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_model_and_searches_have_the_same_optimum(mu, m):
    data = small(10, m, m)
    formulation = OptL(mu=mu, n_treatment=2, alpha=0.01, lam=0.2)
    result = formulation.build(data, 1).solve("highs", start=None, gap=1e-6)
    assert (result.status, result.verified) == ("optimal", True)
    for solver, status in (("prescription-search", "optimal"), ("local-search", "best_found")):
        found = formulation.build(data, 1).solve(solver)
        assert (found.status, found.verified) == (status, True)
        assert found.objective == pytest.approx(result.objective, abs=1e-5)


def test_with_a_high_weight_estimates_are_constant():
    data = small(30, 3)
    for depth in (1, 2):
        linear = OptL(n_treatment=2, lam=1e4).build(data, depth).solve()
        constant = Opt(n_treatment=2).build(data, depth).solve()
        assert linear.tree.outcome_w is None
        assert linear.objective == pytest.approx(constant.objective, abs=1e-7)


def test_linear_estimates_survive_original_units_and_files(tmp_path):
    from mipforest.trees import load, save, to_text

    rng = np.random.default_rng(5)
    X, had = 100 * rng.random((60, 2)) - 30, rng.integers(0, 2, 60)
    y = np.where(had == 0, 3 + 0.5 * X[:, 0], 40 - 0.2 * X[:, 1])
    data = Dataset.from_arrays(X, y, treatments=had)
    tree = OptL(n_treatment=2, lam=1e-4).build(data, 1).solve().tree
    np.testing.assert_allclose(tree.predict_outcomes(X)[had == 0, 0], y[had == 0], atol=0.05)
    save(tree, tmp_path / "tree.json")
    np.testing.assert_array_equal(load(tmp_path / "tree.json").predict_outcomes(X), tree.predict_outcomes(X))
    np.testing.assert_allclose(
        tree.rescaled([0.0, 0.0], [1.0, 1.0]).predict_outcomes(X), tree.predict_outcomes(X)
    )
    assert "0.5 x0" in to_text(tree) or "0.4999 x0" in to_text(tree)
    assert set(tree.features_used().overall) == {0, 1}


@pytest.mark.slow
def test_linear_estimates_find_the_step_of_the_first_experiment():
    from mipforest.data import load, treatment_experiment

    shares = []
    for seed in range(2):
        data = load(f"synthetic:treatments,experiment=1,functions=centred,n=300,seed={seed}")
        found = OptL(lam=1.0).build(data, 1).solve("local-search", solver_options={"starts": 1, "kicks": 0})
        X, outcomes = treatment_experiment(data.name).draw(5000, seed)
        shares.append((found.tree.predict(X) == outcomes.argmin(axis=1)).mean())
        (feature,) = found.tree.features_used().per_node[0]
        assert feature == 0
    assert np.mean(shares) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "least", "within"), [(0.5, 0.95, 0.2), (0.2, 0.98, 0.06)])
def test_exact_trees_of_the_first_experiment_split_at_its_step(mu, least, within):
    """Ten draws of 1000 samples; the step is at x1 = 1."""
    from mipforest.data import load, treatment_experiment

    grid = np.zeros((4001, 20))
    grid[:, 0] = np.linspace(-1, 3, 4001)
    shares = []
    for seed in range(10):
        data = load(f"synthetic:treatments,experiment=1,functions=centred,n=1000,seed={seed}")
        found = OptL(lam=0.1, mu=mu).build(data, 1).solve("prescription-search")
        assert found.status == "optimal"
        X, outcomes = treatment_experiment(data.name).draw(20_000, seed)
        shares.append((found.tree.predict(X) == outcomes.argmin(axis=1)).mean())
        leaves = found.tree.apply(grid)
        (change,) = np.flatnonzero(np.diff(leaves))
        assert abs(grid[change, 0] - 1) <= within
    assert at_least(np.mean(shares), least)


def test_hyperplanes_take_linear_estimates():
    result = (
        OptLH(n_treatment=3, lam=0.1)
        .build(small(30, 6), 1)
        .solve("local-search", solver_options={"starts": 2, "kicks": 2})
    )
    assert result.verified
