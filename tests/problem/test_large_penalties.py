"""Penalties times tolerances: no claim beyond what is attainable, however large C is."""

import numpy as np
import pytest
from tolerance import at_most

from formulations.loss_optimal import LossOptimal
from formulations.margot import Margot
from mipforest.data import Dataset
from mipforest.errors import SolverError
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.base import solver_classes

pytestmark = pytest.mark.usefixtures("few_penalties")

SOLVERS = [name for name in ("highs", "scip", "gurobi") if solver_classes()[name].available()]

#: Relative difference of two values that count as equal.
EQUAL = 2e-5

#: Two samples of different classes 5e-10 apart, which solvers take for none.
NEAR = Dataset.from_arrays(np.array([[0.0], [5e-10], [1.0]]), np.array([0, 1, 1]))
MIXED = Dataset.from_arrays(np.array([0.0, 0.3, 0.4, 0.7, 1.0])[:, None], np.array([0, 1, 0, 1, 0]))
#: The linear programme of a start at C = 1e9 is one that HiGHS gives up.
DRAWN = Dataset.from_arrays(np.sort(np.random.default_rng(0).random(5))[:, None], np.array([0, 1, 1, 0, 1]))


def attained_by_a_threshold(data, C, epsilon):
    """Return the least C times errors plus the weight of a split of one feature, from the definition.

    A row may be missed by the tolerance: so may the gap epsilon be.
    """
    x, right = data.X[:, 0], data.y == 1
    values = [C * min(right.sum(), (~right).sum())]  # no split: the intercept alone
    for low, high in zip(np.unique(x)[:-1], np.unique(x)[1:], strict=True):
        errors = ((x >= high) != right).sum()
        values.append(C * min(errors, len(x) - errors) + (epsilon + FEASIBILITY_TOLERANCE) / (high - low))
    return min(values)


def assert_no_claim_beyond(result, attained):
    most = attained + EQUAL * attained
    assert at_most(result.bound, most)
    assert result.status not in ("infeasible", "unbounded")
    if result.proven_for is not None:
        assert at_most(result.objective, most)


def check_errors(data, C, solver):
    problem = LossOptimal(loss="misclassification", regulariser="l1", C=C).build(data, 1)
    result = problem.solve(solver, start="none", gap=1e-6, time_limit=5, threads=1)
    assert_no_claim_beyond(result, attained_by_a_threshold(data, C, problem.formulation.epsilon))


def check_margot(data, C, solver, depth):
    problem = Margot(C=C).build(data, depth)
    attained = problem.solve("routing", gap=1e-6, threads=1).objective
    try:
        result = problem.solve(solver, start="none", gap=1e-6, time_limit=5, threads=1)
    except SolverError:
        return  # a solver that fails claims nothing
    if result.verified:
        attained = min(attained, result.evaluated_objective)
    assert_no_claim_beyond(result, attained)


@pytest.mark.parametrize("solver", SOLVERS)
def test_errors_at_a_large_price(solver):
    check_errors(NEAR, 1e10, solver)
    check_errors(DRAWN, 1e9, solver)


def test_margins_at_a_large_price():
    check_margot(MIXED, 1e9, "highs", 2)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_all_prices_from_a_million_on(solver):
    for data in (NEAR, MIXED, DRAWN):
        for C in 10.0 ** np.arange(6, 13):
            check_errors(data, C, solver)
            for depth in (1, 2):
                check_margot(data, C, solver, depth)
