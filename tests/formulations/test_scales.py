"""Data whose numbers a solver's tolerances do not fit: the same tree as in other units, or no claim of a proof."""

import numpy as np
import pytest
from seeds import few_of

from formulations.loss_optimal import LossOptimal
from formulations.margot import Margot
from formulations.olct import BudgetedOlct, Olct
from formulations.opt import Opt, OptH
from formulations.opt_l import OptL, lasso
from mipforest import constraints
from mipforest.data import Dataset
from mipforest.model import Model
from mipforest.problem.expressions import NotExpressed
from mipforest.solvers.base import solver_classes
from mipforest.solving import solve

pytestmark = pytest.mark.usefixtures("few_penalties")

SOLVERS = [name for name in ("highs", "scip", "gurobi") if solver_classes()[name].available()]

#: Features of 1e9: 14 figures, of which the first make the distances.
LARGE = np.array(
    [
        [-32442109.445756815, 1371774147.446278, -1586406655.2582376],
        [89756566.34622777, -620520139.2271491, 468856700.9446112],
        [-150181778.56295255, 831609958.3033551, 385261394.2217257],
        [-1203601178.941635, -1335607184.2433975, -1189303383.188701],
    ]
)


def labelled(X, y):
    return Dataset.from_arrays(X, y, scaling="none")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_features_of_1e9_give_the_tree_of_features_of_1(solver):
    """With w = w' / 1e9 the norm is 1e-9 times that of w': no sample may be on the wrong side of its margin."""
    data = labelled(LARGE, [0, 0, 1, 1])
    result = BudgetedOlct(C=1e5, B=1).build(data, 1).solve(solver, start="none", time_limit=20)
    assert result.verified, result.failed_checks
    assert result.tree.predict(LARGE).tolist() == [0, 0, 1, 1] or result.objective < 1e5
    assert result.bound <= 2.36e-8, "a tree of 2.36e-8 is known: no greater bound is one"


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("tiny", "plain", "unit"),
    [
        (Olct(C=1e-8), Olct(C=10.0), 1e-9),
        (
            LossOptimal(C=1e-8, loss="misclassification", regulariser="l1"),
            LossOptimal(C=10.0, loss="misclassification", regulariser="l1"),
            1e-9,
        ),
    ],
    ids=["olct", "loss-optimal"],
)
def test_an_objective_below_the_tolerances_is_proven_in_its_own_units(solver, depth, tiny, plain, unit):
    """Features of 1e9, C = 1e-8: 1e-9 times the objective with features of 1 and C = 10."""
    X, y = np.array([[1.0], [2.0], [3.0], [1.0], [2.0]]), [1, 0, 0, 0, 1]
    expected = unit * plain.build(labelled(X, y), depth).solve("highs", time_limit=20, gap=1e-6).objective
    result = tiny.build(labelled(1e9 * X, y), depth).solve(solver, start="none", time_limit=20, gap=1e-6)
    assert result.verified, result.failed_checks
    assert result.bound <= expected * (1 + 1e-5)
    assert result.objective >= expected * (1 - 1e-5)
    if result.status == "optimal":
        assert result.objective == pytest.approx(expected, rel=1e-5)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_proof_is_claimed_where_the_trees_value_is_not_the_solvers(solver):
    """Two samples at 1 and two at 2 are of both classes: at depth two 8 slacks are left, 8e-8; tolerances part them."""
    X, y = 1e9 * np.array([[1.0], [2.0], [3.0], [1.0], [2.0]]), [1, 0, 0, 0, 1]
    result = Margot(C=1e-8).build(labelled(X, y), 2).solve(solver, start="none", time_limit=20)
    least = 8e-8
    assert result.objective >= least * (1 - 1e-6)
    assert result.bound <= least * (1 + 1e-6)
    assert result.status != "optimal" or result.objective <= least * (1 + 1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_row_that_spans_too_much_proves_nothing(solver):
    m = Model("span")
    x, z = m.continuous("x", lower=0, upper=1e3), m.binary("z")
    m.add("row", x + 4e9 * z >= 1)
    m.minimize(x + 10 * z)
    solution = solve(m, solver)
    assert solution.status != "optimal"
    assert solution.bound == -np.inf
    assert any("row row span 1 to 4e+09" in told for told in solution.warnings)


def test_what_rounding_leaves_of_a_cost_changes_nothing():
    m = Model("residue")
    x = m.binary("x", 3)
    m.add("one", x.sum() >= 1)
    m.minimize([1e-17, 1.0, 2.0] @ x)
    solution = solve(m)
    assert solution.status == "optimal"
    assert solution.bridges == ()


def test_an_error_of_the_solver_is_told(monkeypatch):
    from dataclasses import replace

    from mipforest.solvers.highs import Highs
    from mipforest.solvers.solution import Status

    plain = Highs.solve

    def failing(self, *args, **named):
        return replace(plain(self, *args, **named), status=Status.ERROR, message="it broke")

    monkeypatch.setattr(Highs, "solve", failing)
    m = Model("any")
    m.minimize(m.nonnegative("x"))
    assert any("highs ended in an error: it broke" in told for told in solve(m).warnings)


# ---------------------------------------------------------------------- outcomes


def experiment(outlier):
    rng = np.random.default_rng(0)
    X, treatment = rng.random((30, 3)).round(2), np.arange(30) % 2
    y = X[:, 0] + np.where(X[:, 1] > 0.5, 1 - 2 * treatment, 2 * treatment - 1) + 0.1 * rng.random(30)
    y[3] = outlier
    return Dataset.from_arrays(X, y, task="regression", treatments=treatment)


@pytest.mark.parametrize(
    "formulation", few_of([Opt(n_treatment=2), OptH(n_treatment=2), OptL(n_treatment=2)])
)
@pytest.mark.parametrize(
    "outlier", [1e7, *(pytest.param(outlier, marks=pytest.mark.slow) for outlier in (1e3, 1e5))]
)
def test_an_outlying_outcome_leaves_the_value_that_of_the_definition(formulation, outlier):
    result = formulation.build(experiment(outlier), 1).solve(
        time_limit=5 if formulation.name == "opt-h" else 60
    )
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(result.evaluated_objective, rel=1e-6)
    assert result.bound <= result.objective + 1e-6 * abs(result.objective)
    if isinstance(formulation, OptL) or formulation.name == "opt":
        assert result.status == "optimal"


def test_the_lasso_of_dependent_features_holds_its_conditions_beside_an_outlier():
    X = np.array([[0.96, 0.86, 0.0], [0.23, 0.92, 0.06], [0.81, 0.22, 0.05]])  # rank two once centred
    y, lam = np.array([1e5, -0.67, 1.87]), 0.1
    beta, _ = lasso(X, y, lam)
    centred = X - X.mean(axis=0)
    slope = 2 * centred.T @ (y - y.mean() - centred @ beta) / lam
    assert np.abs(slope).max() <= 1 + 1e-3
    assert slope[beta != 0] == pytest.approx(np.sign(beta[beta != 0]), abs=1e-3)


@pytest.mark.parametrize(
    "constrain",
    [
        lambda p: constraints.max_false_negatives(p, 0),
        lambda p: constraints.equal_opportunity(p, p.data.treatments, 0.1),
    ],
)
def test_outcomes_are_no_true_classes(constrain):
    problem = Opt(n_treatment=2).build(experiment(1.0), 1)
    with pytest.raises(NotExpressed, match="the leaves of model opt prescribe or decide"):
        constrain(problem)
