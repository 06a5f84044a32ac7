from importlib.metadata import version

import numpy as np
import pytest
from enumerate_trees import best_tree_value
from scipy.optimize import linprog
from sklearn.linear_model import Lasso

from formulations.ort_l import LinearLeaves, OrtL
from mipforest.constraints import forbid_features
from mipforest.data import Dataset
from mipforest.heuristics.thresholds import univariate_tree
from mipforest.objectives.leaf_losses import error_loss
from mipforest.problem.formulation import deepened
from mipforest.solvers.highs import DENIED
from mipforest.trees import Topology

PROVEN = {"time_limit": None, "gap": 1e-9}


def regression(X, y):
    return Dataset.from_arrays(np.asarray(X, dtype=float), np.asarray(y, dtype=float), task="regression")


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("variant", OrtL.variants)
def test_recovers_a_piecewise_linear_truth(variant, loss):
    x = np.linspace(0, 10, 12)
    other = np.tile([0.0, 3.0, 1.0, 2.0], 3)
    y = np.where(x < 4.5, 3 + 2 * x, 30 - x - 2 * other)
    data = regression(np.column_stack([x, other]), y)
    result = (
        OrtL(lam=1e-4, loss=loss, variant=variant).build(data, 1).solve("highs", time_limit=None, gap=1e-6)
    )
    assert result.verified, result.failed_checks
    assert result.objective - result.bound <= 1e-6
    np.testing.assert_allclose(result.tree.predict(data.X_raw), y, atol=0.05)
    slopes, constants = result.tree.leaves_in_original_units()
    np.testing.assert_allclose(slopes, [[2, 0], [-1, -2]], atol=0.05)
    np.testing.assert_allclose(constants, [3, 30], atol=0.2)


def linear_leaf_cost(data, loss, lam):
    """Relative loss and l1 penalty of a best linear leaf, by scipy's linear programme or scikit-learn's lasso."""
    y = (data.y - data.y.min()) / np.ptp(data.y)
    X, baseline = data.X, error_loss(loss).baseline(y, data.weights)

    def least_absolute(rows):
        n, p = len(rows), X.shape[1]
        c = np.concatenate([np.full(2 * n, 1 / baseline), np.full(2 * p, lam), [0.0, 0.0]])
        one = np.ones((n, 1))
        A = np.hstack([np.eye(n), -np.eye(n), X[rows], -X[rows], one, -one])
        return linprog(c, A_eq=A, b_eq=y[rows]).fun

    def least_squares(rows):
        lasso = Lasso(alpha=lam * baseline / (2 * len(rows)), tol=1e-12, max_iter=10**6).fit(X[rows], y[rows])
        errors = lasso.predict(X[rows]) - y[rows]
        return (errors**2).sum() / baseline + lam * np.abs(lasso.coef_).sum()

    return least_absolute if loss == "absolute" else least_squares


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)  # other N_min
def test_linear_leaves_agree_with_enumeration(seed, loss):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (8, 1 + seed % 2))
    data = regression(X, rng.integers(0, 9, 8))
    alpha, n_min, lam = (0.0, 0.05)[seed % 2], 1 + seed % 3, 0.03
    expected = best_tree_value(data.X, linear_leaf_cost(data, loss, lam), 1, alpha, n_min)
    result = OrtL(alpha=alpha, N_min=n_min, lam=lam, loss=loss).build(data, 1).solve("highs", **PROVEN)
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(expected, abs=1e-6)
    assert result.bound == pytest.approx(expected, abs=1e-6)


def steep_data():
    """A steep line on the left, a flat one on the right: the former leaves the range of the target elsewhere."""
    x = np.arange(11) / 10
    return regression(x[:, None], np.where(x < 0.25, 5 * x, 0.0))


def test_the_thesis_constant_cuts_off_the_optimum():
    data = steep_data()
    best = univariate_tree(data, Topology(1), np.array([0]), np.array([0.25]))
    values = {}
    for variant in OrtL.variants:
        formulation = OrtL(lam=0.001, loss="squared", variant=variant)
        problem = formulation.build(data, 1)
        tree = formulation.polish(best, problem.instance)
        # The line of the left leaf, 5 in scaled units, stands 5 above its samples at the right end; M_f is below 4.
        values[variant] = formulation.evaluate(tree, problem.instance)
        violation = problem.model.violations(formulation.encode(tree, problem.instance)).max
        assert (violation > 0.5) == (variant == "paper")
    result = OrtL(lam=0.001).build(data, 1).solve("highs", **PROVEN)
    literal = OrtL(lam=0.001, variant="paper").build(data, 1).solve("highs", **PROVEN)
    assert result.verified
    assert literal.verified
    assert result.objective == pytest.approx(values["tight"], abs=1e-6)
    assert literal.objective > result.objective + 1e-4


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("regulariser", ["l1", "l0"])
def test_a_linear_leaf_is_the_best_of_its_kind(regulariser, loss):
    rng = np.random.default_rng(3)
    lam, error = 0.05, error_loss(loss)
    data = regression(rng.integers(0, 5, (12, 2)) / 4, rng.random(12))
    leaves = LinearLeaves(data, error, lam=lam, regulariser=regulariser, M_r=10.0)
    X, y = data.X, leaves.y
    fit = leaves.fit(X, y, data.weights)

    def cost(beta):
        residual, n = y - X @ beta, data.weights
        size = np.abs(beta).sum() if regulariser == "l1" else np.count_nonzero(np.abs(beta) > 1e-12)
        return error.total(error.best_constant(residual, n), residual, n) / error.baseline(y, n) + lam * size

    assert fit.cost == pytest.approx(cost(fit.beta))
    grid = np.linspace(-1, 1, 41)
    others = min(cost(np.array([a, b])) for a in grid for b in grid)
    assert fit.cost <= others + 1e-7
    for _ in range(50):
        assert fit.cost <= cost(fit.beta + 0.01 * rng.normal(size=2)) + 1e-7


def test_l0_counts_the_features_of_the_leaves():
    x = np.arange(12) / 11
    X = np.column_stack([x, (np.arange(12) * 5 % 12) / 11])
    y = np.where(x < 0.5, X[:, 0], 2 - X[:, 1])
    y = y + 0.01 * np.sin(7 * np.arange(12))
    data = regression(X, y)
    formulation = OrtL(regulariser="l0", lam=0.02, loss="absolute")
    result = formulation.build(data, 1).solve("highs", time_limit=30, gap=1e-6)
    assert result.verified, result.failed_checks
    used = np.count_nonzero(result.tree.leaf_w)
    assert used == np.count_nonzero(result.solution["r"] > 0.5) == 2
    errors = np.abs(result.tree.predict(data.X_raw) - y).sum() / np.abs(y - np.median(y)).sum()
    assert result.objective == pytest.approx(errors + 0.02 * used, abs=1e-6)
    dear = OrtL(regulariser="l0", lam=2.0, loss="absolute").build(data, 1).solve("highs", **PROVEN)
    assert np.count_nonzero(dear.tree.leaf_w) == 0


def test_a_coefficient_beyond_its_limit_is_no_solution():
    data = steep_data()
    tree = univariate_tree(data, Topology(1), np.array([0]), np.array([0.25]))
    free, narrow, literal = (OrtL(lam=0), OrtL(lam=0, M_r=2.0), OrtL(lam=0, M_r=2.0, variant="paper"))
    tree = free.polish(tree, free.bind(data, Topology(1)))
    assert np.isfinite(free.evaluate(tree, free.bind(data, Topology(1))))
    assert narrow.evaluate(tree, narrow.bind(data, Topology(1))) == np.inf
    assert np.isfinite(literal.evaluate(tree, literal.bind(data, Topology(1))))
    limited = OrtL(lam=0, M_r=2.0).build(data, 1).solve("highs", **PROVEN)
    assert limited.verified
    assert np.abs(limited.tree.leaf_w).max() <= 2.0 * np.ptp(data.y) + 1e-6


def test_a_tree_with_linear_leaves_is_deepened_with_them():
    data = steep_data()
    formulation = OrtL()
    shallow = formulation.bind(data, Topology(1))
    tree = formulation.start("cart", shallow)
    np.testing.assert_allclose(deepened(tree).predict(data.X), tree.predict(data.X))
    problem = formulation.build(data, 2)
    start = formulation.start("previous-depth", problem.instance)
    assert formulation.evaluate(start, problem.instance) <= formulation.evaluate(tree, shallow) + 1e-9
    assert problem.model.violations(formulation.encode(start, problem.instance)).max <= 1e-6


def test_a_model_that_highs_calls_infeasible_after_its_presolve_has_its_optimum():
    X = [[1.0], [0.290991936978169], [0.01871114319214872], [0.4538803239250674], [0.0], [1.0]]
    data = regression(X, [0.5, 2.0, -0.5, 0.4, 0.2, 0.3])
    problem = OrtL(variant="paper", alpha=0.1, regulariser="l0", lam=0.0).build(data, 2)
    forbid_features(problem, "x0", nodes=[2])
    # By default the presolve rule that is wrong here is off. Version 1.16 of HiGHS has it right.
    wrong = {"presolve_rule_off": 0}
    old = version("highspy").startswith("1.15.")
    for options, denied in (({}, False), (wrong, old)):
        result = problem.solve("highs", gap=1e-6, start="none", solver_options=options)
        assert (result.status, result.verified) == ("optimal", True), result.solution.message
        assert result.objective == pytest.approx(0.2109605313617)
        assert (DENIED in result.solution.warnings) == denied
