"""Starts under added constraints are repaired, and constraints that contradict each other are called so."""

import numpy as np
import pytest
from margin_data import random_data

from formulations.margot import Margot
from formulations.olct import Olct
from mipforest import constraints

pytestmark = pytest.mark.usefixtures("few_penalties")

DATA = random_data(4, n=16, p=4)

ADDED = {
    "forbid": lambda p: constraints.forbid_features(p, "x0"),
    "budget": lambda p: constraints.feature_budget(p, 1),
    "at_most": lambda p: p.model.add("at_most", constraints.features_used(p).sum() <= 2),
    "leaf_size": lambda p: constraints.min_samples_leaf(p, 6),
}


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize(
    "formulation",
    # The same repairs of other node problems, as the test below asks; those are solved in test_logistic_starts.
    [pytest.param(Margot(C=10), id="margot"), pytest.param(Olct(C=1.0), id="olct", marks=pytest.mark.slow)],
)
def test_a_start_is_there_whatever_the_constraint(formulation, name):
    problem = formulation.build(DATA.with_scaling(formulation.scaling), 2)
    ADDED[name](problem)
    result = problem.solve("highs", time_limit=0.0)
    assert np.isfinite(result.solution.start_objective), result.solution.warnings
    assert result.verified, result.failed_checks


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("formulation", [Margot(C=10), Olct(C=1.0)], ids=["margot", "olct"])
def test_leaves_that_no_data_can_fill_are_infeasible_at_once(formulation):
    problem = formulation.build(DATA.with_scaling(formulation.scaling), 2)
    constraints.min_samples_leaf(problem, 1000)
    result = problem.solve("highs", time_limit=20)
    assert result.status == "infeasible"
    assert result.proven_for == "definition"
    assert any("no tree satisfies the constraints" in text for text in result.solution.warnings)
