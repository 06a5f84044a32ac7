"""The choice of solver that is left to the toolkit."""

import numpy as np
import pytest
from margin_data import random_data
from tolerance import at_most, less

from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.olct import Olct
from mipforest.data import load
from mipforest.errors import NotAllowed
from mipforest.problem.problem_data import StartError
from mipforest.problem.tree_search import Auto, solver_or_search
from mipforest.settings import SolveSettings
from mipforest.time_budget import TimeBudget

pytestmark = pytest.mark.usefixtures("few_penalties")


def margot():
    return Margot().build(random_data(0, n=8, p=2), 2)


def changed():
    problem = margot()
    problem.model.add("no_first", problem.model["w"][:, 0] == 0)
    return problem


@pytest.mark.parametrize("formulation", [Margot(), HfsMargot(B=1), SfsMargot(B=1), Olct()])
def test_auto_takes_the_exact_search_where_nothing_was_added(formulation):
    chosen, why = Auto().choose(formulation.build(random_data(0, n=8, p=2), 2), SolveSettings())
    assert chosen.name == "routing"
    assert why == "an exact tree search takes this problem"


@pytest.mark.parametrize(
    ("problem", "settings", "reason"),
    [
        (changed, SolveSettings(), "the model was changed"),
        (
            lambda: OctH().build(random_data(0, n=8, p=2), 1),
            SolveSettings(),
            "no exact tree search takes this problem",
        ),
        (margot, SolveSettings(solver_options={"mip_lp_solver": "ipm"}), "solver options and bridges"),
        (margot, SolveSettings(bridges=("quadratic",)), "solver options and bridges"),
        (
            lambda: Margot(variant="paper").build(random_data(0, n=8, p=2), 2),
            SolveSettings(),
            "routing does not",
        ),
        (margot, SolveSettings(time_limit=0), "without time there is nothing to search"),
    ],
)
def test_auto_falls_back_on_a_matrix_solver_and_says_why(problem, settings, reason):
    chosen, why = Auto().choose(problem(), settings)
    assert chosen.name == "highs"
    assert reason in why


def test_a_solve_by_auto_says_who_solved_it_and_why():
    result = margot().solve("auto", threads=1)
    assert isinstance(solver_or_search("auto"), Auto)
    assert result.solution.solver == "routing"
    assert result.solution.message.startswith("auto: an exact tree search takes")
    assert result.status == "optimal"
    assert np.isfinite(result.objective)


def test_options_are_checked_although_no_time_is_left_for_the_solver():
    budget = TimeBudget(1e9)
    budget.stop()
    problem = Margot().build(random_data(0, n=8, p=2), 2, budget=budget)
    with pytest.raises(NotAllowed, match="mip_rel_gab"):
        problem.solve(solver_options={"mip_rel_gab": 1.0})


@pytest.mark.parametrize("asked", [{"solver_options": {"threads": 1}}, {"bridges": "quadratic"}])
def test_an_option_that_no_search_would_use_is_refused(asked):
    problem = Oct().build(load("iris"), 1)
    with pytest.raises(NotAllowed, match="would not use"):
        problem.solve("exact-search", **asked)


def test_a_search_gives_the_start_of_a_matrix_solver():
    problem = margot()
    best = problem.solve("routing", threads=1).objective
    found = problem.solve("highs", start="routing", time_limit=0)
    assert found.solution.solver == "highs"
    assert found.solution.start_objective == pytest.approx(best, rel=1e-4)
    assert found.verified


def test_a_start_that_breaks_what_was_added_is_repaired():
    problem = changed()
    problem.model.add("weights", problem.model["w"][0].sum() <= 1)  # no search keeps it
    found = problem.solve("highs", start="routing", time_limit=0)
    assert found.verified
    assert not found.solved_tree.unscaled().w[:, 0].any()
    assert any("no_first" in warning for warning in found.solution.warnings)


def test_what_the_search_for_a_start_proves_bounds_a_constrained_model_too():
    optimum = margot().solve("routing", threads=1, gap=1e-6).objective
    problem = changed()
    problem.model.add("weights", problem.model["w"][0].sum() <= 1)
    found = problem.solve("highs", start="routing", time_limit=0)
    assert optimum * (1 - 1e-4) <= found.bound
    assert at_most(found.bound, optimum)
    assert less(optimum, found.objective)
    assert (found.bound_for, found.solution.bound_by) == ("definition", ("exact-search",))
    loosened = margot()
    loosened.model.constraints["margin"].remove()
    assert loosened.solve("highs", start="routing", time_limit=0).bound == -np.inf


def test_a_search_that_keeps_what_was_added_starts_and_bounds_within_it():
    free, within = margot().solve("routing", gap=1e-6), changed().solve("routing", gap=1e-6)
    found = changed().solve("highs", start="routing", time_limit=0)
    assert found.verified
    assert less(free.objective, found.bound)
    assert found.bound <= within.objective * (1 + 1e-4)  # both within the default gap
    assert found.objective == pytest.approx(within.objective, rel=1e-4)


def test_a_search_that_does_not_take_the_model_is_no_start():
    with pytest.raises(StartError, match="start 'exact-search': it takes trees of univariate splits"):
        margot().solve("highs", start="exact-search")
