"""A preparation that is stopped."""

import numpy as np
import pytest
from margin_data import random_data
from tolerance import at_least, at_most, less

from formulations.margot import HfsMargot, Margot
from formulations.miret import Miret
from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.ort import Ort
from formulations.ort_l import OrtL
from mipforest import constraints
from mipforest.data import Dataset
from mipforest.ensembles import ensemble_for
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology

DATA = random_data(2, n=40, p=3)
NUMBERS = Dataset.from_arrays(DATA.X_raw, DATA.X_raw @ [3.0, -1.0, 0.5], task="regression")


@pytest.mark.parametrize("formulation", [Oct(), Oct(variant="paper"), Margot()])
def test_a_preparation_that_is_stopped_keeps_a_tree_and_an_honest_bound(formulation):
    budget = TimeBudget(1e9)
    budget.stop()
    result = formulation.build(DATA, 2, budget=budget).solve("highs")
    optimum = Oct().build(DATA, 2).solve("highs").objective if isinstance(formulation, Oct) else np.inf
    assert result.verified
    # The exact search may have come to its end before it asked.
    assert result.status in (("interrupted", "optimal") if isinstance(formulation, Oct) else ("interrupted",))
    assert result.bound >= 0.0
    assert at_most(result.bound, result.objective)
    assert at_least(result.objective, optimum if np.isfinite(optimum) else 0.0)


@pytest.mark.parametrize("formulation", [Oct(), Ort()], ids=["oct", "ort"])
def test_a_large_model_whose_start_is_proven_needs_no_solver(formulation, monkeypatch):
    data = NUMBERS if formulation.task == "regression" else DATA
    problem = formulation.build(data, 2)
    witnessed = problem.solve("highs", gap=1e-6)
    monkeypatch.setattr(type(formulation), "most_witnessed", 0)
    result = problem.solve("highs", gap=1e-6)
    assert witnessed.solution.solver == "highs"
    assert result.solution.solver == "exact-search"
    assert "highs was not called" in result.solution.message
    assert result.solution.bound_by == ("exact-search",)
    assert (result.status, result.proven_for, result.verified) == ("optimal", "definition", True)
    assert result.objective == pytest.approx(witnessed.objective, abs=1e-9)
    # Without the start, or with another objective, there is nothing that would be proven.
    assert problem.solve("highs", start="none", time_limit=0.0).solution.solver == "highs"
    problem.model.minimize(-problem.model["d"].sum())
    assert problem.solve("highs", time_limit=0.0).solution.solver == "highs"


@pytest.mark.parametrize("formulation", [Oct(), Ort()], ids=["oct", "ort"])
def test_a_search_that_is_cut_short_leaves_no_worse_tree_than_cart(formulation, monkeypatch):
    monkeypatch.setattr("formulations.splits.univariate.MAX_COMPLETE", 0)
    monkeypatch.setattr("formulations.splits.univariate.MAX_SCANNED", {1: 0, 2: 0})
    for seed in range(10):
        drawn = random_data(seed, n=60, p=4)
        data = drawn
        if formulation.task == "regression":
            data = Dataset.from_arrays(drawn.X_raw, drawn.X_raw @ [3.0, -1.0, 0.5, 2.0], task="regression")
        for depth in (1, 2):
            instance = formulation.bind(data, Topology(depth))
            known, grown = (
                formulation.evaluate(t, instance)
                for t in (instance.known, formulation.start("cart", instance))
            )
            assert at_most(known, grown)


class Looks:
    """A clock that stands still for some looks at it, and then is far beyond every limit."""

    def __init__(self, most):
        self.left = most

    def __call__(self):
        self.left -= 1
        return 0.0 if self.left >= 0 else 1e9


@pytest.mark.parametrize("looks", [4, 30])
@pytest.mark.parametrize(
    ("formulation", "start"),
    [
        (Margot(), "default"),
        (HfsMargot(B=1), "default"),
        (Oct(), "previous-depth"),
        (OctH(), "greedy"),
        (OctH(), "previous-depth"),
        (Ort(), "depth-two"),
        (OrtL(), "cart"),
        (Miret(ensemble=ensemble_for("random-forest:trees=3", DATA, 2)), "default"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_wherever_time_runs_out_there_is_a_verified_tree(formulation, start, looks):
    data = NUMBERS if formulation.task == "regression" else DATA
    budget = TimeBudget(0.2, clock=Looks(looks))
    result = formulation.build(data, 2, budget=budget).solve("highs", start=start)
    assert result.verified
    assert not less(result.objective, result.solution.bound)  # nan where there is none


@pytest.fixture
def stopped():
    budget = TimeBudget()
    budget.stop()
    return budget


def refuse(*_, **__):
    raise AssertionError("there is no time for this")


def test_without_time_no_node_is_solved_for_the_greedy_start(stopped, monkeypatch):
    monkeypatch.setattr(OctH, "_best_split", refuse)
    instance = OctH().bind(DATA, Topology(2), stopped)
    assert not OctH().start("greedy", instance).w.any()


def test_without_time_no_leaf_is_fitted_by_a_solver(stopped, monkeypatch):
    monkeypatch.setattr("formulations.ort_l.solve", refuse)
    assert not OrtL().bind(NUMBERS, Topology(2), stopped).known.leaf_w.any()


def test_without_time_the_model_with_one_level_less_is_not_solved(stopped, monkeypatch):
    monkeypatch.setattr("mipforest.problem.problem.solve", refuse)
    instance = OctH().bind(DATA, Topology(2), stopped)
    assert OctH().start("previous-depth", instance).depth == 2


def test_without_time_a_start_is_not_repaired(stopped, monkeypatch):
    problem = Oct().build(DATA, 2, budget=stopped)
    constraints.forbid_features(problem, problem.data.features.labels)
    monkeypatch.setattr("mipforest.problem.repair.solve", refuse)
    values, told = problem.start_values(problem.instance.known)
    assert values is None
    assert "no time is left" in told[-1]
