"""SCIP's own quadratic objective against HiGHS with tangents, on a model that is meant to be solved."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from formulations.margot import Margot
from mipforest import solve
from mipforest.data import Dataset
from mipforest.problem.problem import Problem

pytest.importorskip("pyscipopt")


def margot(n: int) -> Problem:
    X, y = load_breast_cancer(return_X_y=True)
    chosen = np.random.default_rng(0).choice(len(X), n, replace=False)
    return Margot(C=1.0).build(Dataset.from_arrays(X[chosen, :8], y[chosen]), depth=2)


@pytest.mark.slow  # tests of the formulation hold SCIP's value against its own by default
def test_margot_has_the_value_that_highs_finds_through_tangents() -> None:
    problem = margot(24)
    by_highs = solve(problem.model, "highs", gap=1e-7)
    by_scip = solve(problem.model, "scip", gap=1e-7)
    assert by_highs.bridges == ("quadratic_to_tangents",)
    assert by_scip.bridges == ()
    assert by_scip.objective == pytest.approx(by_highs.objective, rel=1e-6)
    assert by_scip.bound == pytest.approx(by_highs.bound, rel=1e-6)


@pytest.mark.slow
def test_margot_is_solved_from_its_start_and_verified() -> None:
    result = margot(20).solve(solver="scip", start="svm-path", time_limit=60)
    assert result.verified
    assert np.isfinite(result.solution.start_objective)
    assert result.solution.objective <= result.solution.start_objective * (1 + 1e-6)
