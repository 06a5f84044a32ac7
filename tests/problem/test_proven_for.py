"""What an outcome is proven for: the definition of the model, or the constants of a variant."""

from dataclasses import replace

import numpy as np
import pytest

from formulations.margot import Margot
from formulations.oct import Oct
from formulations.olct import Olct
from formulations.ort_l import OrtL
from mipforest.data import Dataset
from mipforest.problem.proofs import with_least_objective
from mipforest.problem.result import provers_in_words, status_in_words
from mipforest.solvers.base import get_solver
from mipforest.solvers.solution import Event, Solution, Status

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": 60, "gap": 1e-7}
POINTS = Dataset.from_arrays(
    np.array([0, 0.01, 0.02, 0.5, 0.98, 0.99, 1.0])[:, None], np.array([0, 1, 0, 0, 1, 0, 1])
)
#: A steep rise, then a plateau.
RISE = Dataset.from_arrays(
    np.array([0, 0.016, 0.032, 0.048, 0.064, 0.08, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])[:, None],
    np.array([0, 0.2, 0.4, 0.6, 0.8, 1.0, *[0.3] * 6]),
    task="regression",
)


def margot(variant, C):
    return Margot(C=C, variant=variant).build(POINTS, 2).solve("highs", **PROVEN)


def test_an_optimum_for_constants_that_cut_off_a_better_tree_is_not_called_one_of_the_definition():
    true, cut = margot("valid", (1e3, 1e5)), margot("paper", (1e3, 1e5))
    assert true.objective == pytest.approx(230498.3165, rel=1e-6)
    assert cut.objective == pytest.approx(361268.6461, rel=1e-6)
    assert (true.proven_for, true.bound_for) == ("definition", "definition")
    assert (cut.proven_for, cut.bound_for) == ("constants", "constants")
    found = cut.to_dict()
    assert found["status"] == "optimal"  # why the solver stopped
    assert found["outcome"].startswith("optimal for the paper's constants")
    assert status_in_words(true.to_dict()).startswith("optimal, proven")
    assert status_in_words(cut.to_dict()).startswith("optimal for the paper's constants")


def test_constants_that_suffice_prove_the_definition():
    result = margot("paper", 1.0)
    assert result.objective == pytest.approx(margot("valid", 1.0).objective, rel=1e-5)
    assert result.proven_for == "definition"
    assert Olct(C=1e4, variant="paper").build(POINTS, 1).solve("highs", **PROVEN).proven_for == "definition"


def test_nothing_is_proven_before_the_end():
    result = Margot(variant="paper").build(POINTS, 2).solve("highs", time_limit=0)
    assert result.proven_for is None


def test_without_a_tree_the_constants_of_the_paper_prove_nothing():
    problem = Margot(variant="paper").build(POINTS, 2)
    problem.model["w"].set_bounds(lower=1e4)
    problem.model.add("flat", problem.model["w"].sum() <= 1)
    result = problem.solve("highs", **PROVEN)
    assert result.status == "infeasible"
    assert status_in_words(result.to_dict()).startswith("infeasible for the paper's constants")


@pytest.mark.parametrize(
    ("parameters", "best", "cut_off"),
    [({}, 0.120424, 0.522358), ({"lam": 5e-4, "loss": "absolute"}, 0.00625, 0.582824)],
)
def test_rising_leaves_are_proven_with_constants_that_extrapolation_cannot_break(parameters, best, cut_off):
    found = {}
    for variant in OrtL.variants:
        problem = OrtL(variant=variant, **parameters).build(RISE, 1)
        problem.model.add("rising", problem.model["beta"] >= 0)
        found[variant] = problem.solve("highs", time_limit=60)
        assert found[variant].verified
    assert found["tight"].proven_for == "definition"
    assert found["tight"].objective == pytest.approx(best, rel=1e-3)
    assert found["paper"].objective == pytest.approx(cut_off, rel=1e-3)
    assert (found["paper"].proven_for, found["paper"].bound_for) == ("constants", "constants")
    assert not any("paper" in text for text in found["tight"].solution.warnings)


def test_no_bound_of_a_sum_of_losses_is_below_zero():
    """A solver that stops early says -inf or -0.3, of the start alone nothing is known: 0 is true of every tree."""
    problem = Margot().build(POINTS, 1)
    for alone in (problem.solve("highs", time_limit=0), problem.solve("highs", time_limit=0, start="none")):
        assert alone.bound == 0
        assert alone.to_dict()["bound_by"] == ["definition"]
    solved = problem.solve("highs", time_limit=0)
    low = replace(solved.solution, bound=-0.3, events=(Event(0.1, 5.0, -1.0),))
    raised = with_least_objective(problem, low, 1e-4)
    assert (raised.bound, raised.events[0].bound) == (0, 0)
    problem.model["xi"].set_bounds(lower=-1.0)  # now there is less than any tree costs
    assert with_least_objective(problem, low, 1e-4).bound == -0.3  # exact: a given number


def test_an_objective_of_zero_is_proven_by_the_definition_whatever_the_constants():
    data = Dataset.from_arrays(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1]))
    result = Oct(alpha=0.0, N_min=1, variant="paper").build(data, 1).solve("highs", time_limit=0)
    assert (result.status, result.objective, result.gap) == ("optimal", 0, 0)
    assert (result.proven_for, result.bound_for) == ("definition", "definition")
    noise = replace(result.solution, objective=4e-9, bound=-2e-9, status=Status.OPTIMAL)
    noisy = replace(result, solution=noise)
    assert status_in_words(noisy.to_dict()) == "optimal, proven"  # and not up to a gap of 150 percent
    assert "gap 6e-09, absolute" in repr(noisy)


@pytest.mark.parametrize(
    ("solver", "variant", "by"),
    [
        ("highs", "tight", ["solver", "exact-search", "definition"]),
        ("highs", "paper", ["solver", "definition"]),
        ("exact-search", "tight", ["solver", "definition"]),  # the search before the solve is the same one
    ],
)
def test_of_an_optimum_of_zero_all_who_vouch_are_named(solver, variant, by):
    data = Dataset.from_arrays(np.arange(4.0)[:, None], np.array([0, 0, 1, 1]))
    found = Oct(alpha=0.0, N_min=1, variant=variant).build(data, 1).solve(solver).to_dict()
    assert (found["objective"], found["bound_by"]) == (0, by)


def test_a_sum_of_losses_is_never_called_unbounded():
    """HiGHS says so where C is 1e10."""
    data = Dataset.from_arrays(np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([0, 1, 0, 1]))
    result = Margot(C=1e10).build(data, 1).solve("highs", time_limit=5)
    assert result.status != "unbounded"
    assert result.bound >= 0
    assert result.verified  # the start is offered at least


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ("UNBOUNDED", "limit"),
        ("INFEASIBLE_OR_UNBOUNDED", "limit"),
        ("INFEASIBLE", "error"),
        ("LIMIT", "limit"),
    ],
)
def test_where_a_solver_ends_without_a_point_the_start_is_offered(claim, status, monkeypatch):
    data = Dataset.from_arrays(np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([0, 1, 0, 1]))
    problem = Margot().build(data, 1)
    solver = get_solver("highs")

    def nothing(*_):
        return replace(
            Solution(Status[claim], None, {}, np.nan, -np.inf, 0, 0.0, "highs", ""), warnings=("told",)
        )

    monkeypatch.setattr("mipforest.solving._bridged", nothing)
    result = problem.solve(solver)
    assert result.status == status
    assert result.bound == 0.0 or claim == "INFEASIBLE"
    assert result.verified
    assert result.proven_for is None
    assert result.objective == pytest.approx(problem.known_value())
    assert result.solution.warnings[0] == "told"
    assert "highs ends without a solution: the tree is the start" in result.solution.warnings
    nothing_known = problem.solve(solver, start=None)
    assert nothing_known.tree is None


def test_a_solver_that_runs_out_of_memory_loses_no_start(monkeypatch):
    def greedy(*_):
        raise MemoryError

    data = Dataset.from_arrays(np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([0, 1, 0, 1]))
    problem = Olct().build(data, 1)
    for place, name in (
        ("mipforest.solving._bridged", "highs"),  # while it takes the model
        ("mipforest.solvers.highs.HighsSession._run", "HiGHS"),  # while it runs
    ):
        with monkeypatch.context() as patched:
            patched.setattr(place, greedy)
            result = problem.solve("highs")
        assert (result.status, result.verified, result.proven_for) == ("limit", True, None)
        assert any(f"{name} ran out of memory" in told for told in result.solution.warnings)
    monkeypatch.setattr("mipforest.solving._bridged", greedy)
    with pytest.raises(MemoryError):
        problem.solve("highs", start=None)


def test_the_bound_names_who_vouches_for_it():
    data = Dataset.from_arrays(np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 1, 0]))
    searched = Oct(alpha=0.1, N_min=1).build(data, 1).solve("highs").to_dict()
    assert searched["bound_by"] == ["solver", "exact-search"]
    alone = Oct(alpha=0.1, N_min=1, variant="paper").build(data, 1).solve("highs").to_dict()
    assert provers_in_words(alone) == "bound computed by highs"
    both = {"solver": "highs", "bound_by": ["solver", "exact-search"]}
    assert provers_in_words(both) == "bound computed by highs and the search before the solve, which agree"
