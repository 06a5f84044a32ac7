from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from margin_data import random_data

from formulations.oct import Oct
from mipforest.data import load
from mipforest.model import Model
from mipforest.problem.formulation import Formulation
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.problem.tree_search import solver_or_search
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology


@dataclass(frozen=True, kw_only=True)
class Cheapest(Formulation):
    """The least a formulation has to state: minimise ``price x``."""

    name = "cheapest"
    summary = "smallest formulation"
    source = "none"
    variants = ("tight", "paper")

    price: float = parameter(2.0, "price", above=0)

    def declare(self, m, instance):
        assert isinstance(instance, Instance)
        x = m.binary("x", instance.data.samples)
        m.minimize(self.price * x.sum())

    def encode(self, tree, instance):
        return {"x": np.zeros(instance.data.n)}

    def decode(self, values, instance):
        return self.start("cart", instance)

    def evaluate(self, tree, instance):
        return 0.0


DATA = random_data(0, n=6, p=2)


def test_defaults_and_variants():
    assert Cheapest().variant == "tight"
    assert Cheapest(variant="paper", price=3).price == 3.0
    assert replace(Cheapest(price=5), variant="paper") == Cheapest(price=5, variant="paper")
    with pytest.raises(ParameterError, match="no variant 'loose'; choose from: tight, paper"):
        Cheapest(variant="loose")
    with pytest.raises(ParameterError, match="price is 0"):
        Cheapest(price=0)


def test_an_abstract_formulation_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Formulation()


def test_a_small_formulation_is_built_solved_and_checked():
    problem = Cheapest().build(DATA, 1)
    assert isinstance(problem.model, Model)
    assert problem.model.name == "cheapest-random-d1"
    assert problem.prepare_seconds >= 0
    assert problem.build_seconds > 0
    result = problem.solve("highs")
    assert result.verified
    assert result.status == "optimal"
    assert result.solution.bridges == ()
    assert result.solution.start_objective == 0.0


def test_custom_constraints_of_a_model_that_leaves_nothing_out():
    problem = Cheapest().build(DATA, 1)
    problem.model.add("two", problem.model["x"].sum() >= 2)
    result = problem.solve("highs")
    assert (result.status, result.objective, result.bound) == ("optimal", 4.0, pytest.approx(4.0))
    # The tree's value by the definition is 0: the solver's point is no encoding of it.
    assert not result.verified


def test_an_unknown_start_names_the_known_ones():
    with pytest.raises(ParameterError, match=r"no start 'warm'; choose from: cart, none, or a tree\.json"):
        Cheapest().start("warm", Instance(data=DATA, topology=Topology(1)))


def test_depth_and_start_tree():
    with pytest.raises(ValueError, match="depth must be 1 to 10"):
        Cheapest().build(DATA, 0)
    assert Cheapest().start("cart", Instance(data=DATA, topology=Topology(2))).depth == 2


class Clock:
    """A clock that only the operations of a formulation move."""

    now = 0.0

    def __call__(self):
        return self.now


@dataclass(frozen=True, kw_only=True)
class Slow(Cheapest):
    """Takes its time for every operation."""

    clock: Clock = field(default_factory=Clock)

    def bind(self, data, topology, budget=None):
        self.clock.now += 1
        return super().bind(data, topology, budget)

    def declare(self, m, instance):
        self.clock.now += 2
        super().declare(m, instance)

    def start(self, name, instance, *, seed=0):
        self.clock.now += 4
        return super().start(name, instance, seed=seed)


def test_the_seconds_of_all_phases_add_up_to_the_total():
    slow = Slow()
    problem = slow.build(DATA, 1, budget=TimeBudget(900.0, clock=slow.clock))
    result = problem.solve("highs")
    seconds = result.phase_seconds
    assert list(seconds) == ["prepare", "build", "load", "start", "solve", "check"]
    assert (seconds["prepare"], seconds["build"], seconds["start"]) == (1.0, 2.0, 4.0)
    assert sum(seconds.values()) == slow.clock.now  # exact: ticks of a clock of the test
    assert result.to_dict()["phase_seconds"] == seconds


def test_without_time_for_the_solver_the_start_is_the_outcome():
    budget = TimeBudget(1e9)
    problem = Cheapest().build(DATA, 1, budget=budget)
    budget.stop()
    result = problem.solve("highs")
    assert result.verified
    assert (result.status, result.objective, result.bound) == ("interrupted", 0.0, -np.inf)
    assert "highs was not called: it was stopped" in result.solution.warnings[0]
    assert problem.solve("highs").status == "optimal"  # a further solve has its own time


def test_a_model_that_is_not_built_in_time_leaves_the_start(monkeypatch):
    monkeypatch.setattr("mipforest.problem.formulation.DECLARED_AT_ONCE", 0.0)
    slow = Slow()
    problem = slow.build(DATA, 1, budget=TimeBudget(2.0, clock=slow.clock), whole=False)
    assert problem.unfinished
    assert problem.model.n_columns == 0
    result = problem.solve("highs")
    assert (result.status, result.objective, result.evaluated_objective) == ("time_limit", 0.0, 0.0)
    assert (result.bound, result.proven_for) == (-np.inf, None)
    assert result.tree is not None
    assert "came while the model was built" in result.solution.warnings[0]
    assert result.to_dict()["max_violation"] is None
    stopped = TimeBudget(clock=slow.clock)
    stopped.stop()
    result = slow.build(DATA, 1, budget=stopped, whole=False).solve("highs")
    assert result.status == "interrupted"
    assert result.solution.warnings[0].startswith("it was stopped while the model was built")
    # Whoever adds rows needs all of it.
    whole = slow.build(DATA, 1, budget=TimeBudget(2.0, clock=slow.clock))
    assert not whole.unfinished
    assert whole.solve("highs").verified
    assert not slow.build(DATA, 1, budget=TimeBudget(clock=slow.clock), whole=False).unfinished


def test_the_bound_of_a_model_that_is_not_built_is_what_no_tree_falls_below(monkeypatch):
    monkeypatch.setattr("mipforest.problem.formulation.DECLARED_AT_ONCE", 0.0)
    monkeypatch.setattr(Slow, "least_objective", -1.0)
    slow = Slow()
    result = slow.build(DATA, 1, budget=TimeBudget(2.0, clock=slow.clock), whole=False).solve("highs")
    assert (result.bound, result.solution.bound_by) == (-1.0, ("definition",))


def test_a_model_that_no_solver_would_be_called_with_is_not_built(monkeypatch):
    monkeypatch.setattr("mipforest.problem.formulation.HAND_OVER", 1.0)  # seconds per entry
    problem = Cheapest().build(DATA, 1, budget=TimeBudget(0.6), whole=False)
    assert problem.unfinished
    assert problem.entries_given_up > 0
    result = problem.solve("highs")
    assert (result.status, result.objective) == ("limit", 0.0)
    assert "entries, which are too many for a solver" in result.solution.warnings[0]
    assert not Cheapest().build(DATA, 1, budget=TimeBudget(0.6)).unfinished  # whoever adds rows needs them
    monkeypatch.setattr("mipforest.problem.formulation.MAX_ENTRIES", 1)
    assert Cheapest().build(DATA, 1, whole=False).unfinished


def test_nothing_is_declared_for_a_tree_search_where_the_model_would_be_large(monkeypatch):
    data = load("iris")
    search = solver_or_search("local-search")
    assert not Oct().build(data, 2, solver=search, whole=False).unfinished
    monkeypatch.setattr("mipforest.problem.formulation.MAX_ASSIGNED", 4 * data.n - 1)
    problem = Oct().build(data, 2, solver=search, whole=False)
    assert problem.unfinished
    result = problem.solve(search)
    assert result.verified
    assert result.status == "best_found"
    assert result.objective == pytest.approx(Oct().build(data, 2).solve(search).objective)
    # Who reads rows has them.
    assert not Oct().build(data, 2, solver=search).unfinished
    assert not Oct().build(data, 2, whole=False).unfinished
    refused = Oct(variant="paper").build(data, 2, solver=solver_or_search("routing"), whole=False)
    assert not refused.unfinished
