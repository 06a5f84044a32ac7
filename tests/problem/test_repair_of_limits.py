"""Proofs under added constraints: limits are computed anew from a solution that satisfies them."""

import numpy as np
import pytest
from margin_data import random_data
from tolerance import same

from formulations.margot import HfsMargot, Margot
from formulations.olct import Olct
from mipforest import constraints
from mipforest.problem.repair import rebuilt_with_cutoff

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": 60, "gap": 1e-6}
DATA = random_data(3, n=7, p=2)
GROUP = np.arange(7) % 2

ADDED = {
    "fix_split": lambda p: constraints.fix_split(p, "x0", float(np.median(DATA.X_raw[:, 0])) + 1e-3),
    "min_samples_leaf": lambda p: constraints.min_samples_leaf(p, 3),
    "demographic_parity": lambda p: constraints.demographic_parity(p, GROUP, 0.1),
    "forbid_features": lambda p: constraints.forbid_features(p, "x0"),
    "feature_budget": lambda p: constraints.feature_budget(p, 1),
    "slacks": lambda p: p.model.add("slacks", p.model["xi"].sum() <= 100),
}


@pytest.mark.first_cases(5)
@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("formulation", [Margot(C=10), Olct(C=1.0)], ids=["margot", "olct"])
def test_an_optimum_under_a_constraint_is_proven(formulation, name):
    data = DATA.with_scaling(formulation.scaling)
    problem = formulation.build(data, 1)
    ADDED[name](problem)
    result = problem.solve("highs", **PROVEN)
    assert result.verified, result.failed_checks
    assert result.status == "optimal"
    assert result.proven_for == "definition"
    free = formulation.build(data, 1).solve("highs", **PROVEN)
    assert result.objective >= free.objective * (1 - 1e-6)


@pytest.mark.slow  # a fixed split: above, of one level; limits found anew at depth two: test_problem
def test_a_fixed_root_above_other_splits_is_proven():
    data = random_data(3, n=5, p=2)
    problem = Margot(C=10).build(data, 2)
    paper = Margot(C=10, variant="paper").build(data, 2)
    for each in (problem, paper):
        constraints.fix_split(each, "x0", float(np.median(data.X_raw[:, 0])) + 1e-3)
    result, truth = problem.solve("highs", **PROVEN), paper.solve("highs", **PROVEN)
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(truth.objective, rel=1e-4)


def test_the_model_built_again_has_the_same_columns_rows_and_priorities():
    problem = HfsMargot(C=10, B=1).build(DATA, 2)
    m = problem.model
    v = m.continuous("v", lower=0.0, upper=5.0)
    m.add("largest", v >= m["w"][0, 0])
    m["w"].set_bounds(lower=-7.0)
    m.set_priority("z", 3)
    for name in ("min_samples_leaf", "demographic_parity"):
        ADDED[name](problem)
    constraints.require_features(problem, "x1")
    again = rebuilt_with_cutoff(problem, 10 * problem.known_value())
    assert again.model.matrix().columns == m.matrix().columns
    assert set(again.model.constraints) == set(m.constraints)
    assert (again.model["w"].lower == -7).all()
    assert (again.model["w"].upper >= m["w"].upper).all()
    assert again.model["v"].upper == 5
    assert (again.model.priorities["z"] == 3).all()
    assert same(again.valid_below(), 10 * problem.known_value())
    again.model.add("more", again.model["b"] >= 1)
    assert again.valid_below() == -np.inf
