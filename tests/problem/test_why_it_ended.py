"""The reason that a result gives for its end is the reason."""

import numpy as np
import pytest

from mipforest.constraints import min_samples_leaf
from mipforest.data import Dataset
from mipforest.problem import problem as problems
from mipforest.problem.registry import make_formulation
from mipforest.time_budget import Stopped, TimeBudget


def small(name, depth=2):
    """Build a problem that no solver solves at once."""
    formulation = make_formulation(name)
    rng = np.random.default_rng(0)
    X, noise = rng.random((40, 3)), rng.random(40)
    y = X[:, 0] + noise if formulation.task == "regression" else (X[:, 0] + noise > 1).astype(int)
    task = formulation.task or "classification"
    data = Dataset.from_arrays(X, y, name="small", task=task, scaling=formulation.scaling)
    return formulation.build(data, depth if formulation.gives.is_tree else None, budget=TimeBudget(60.0))


@pytest.mark.parametrize(
    ("name", "solver"),
    [("hfs-margot", "routing"), ("ogrs", "card-enumeration"), ("olct", "routing"), ("ort-h", "highs")],
)
def test_a_stop_that_leaves_a_search_no_time_is_no_time_limit(name, solver):
    problem = small(name)
    problem.budget.stop()
    result = problem.solve(solver)
    assert result.status == "interrupted"
    assert result.tree is not None


def test_a_model_that_is_too_large_for_the_time_left_ends_by_a_limit_not_by_the_time(monkeypatch):
    problem = small("ort-h")
    monkeypatch.setattr(problems, "HAND_OVER", 1.0)  # seconds per entry
    result = problem.solve("highs", time_limit=50)
    assert result.status == "limit"
    assert any("was not called: the " in warning for warning in result.solution.warnings)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["ort-l", "ort-lh"])
@pytest.mark.parametrize("how", ["rows", "leaves"])
def test_constraints_that_no_tree_with_linear_leaves_satisfies_are_infeasible(name, how):
    problem = small(name)
    if how == "leaves":
        min_samples_leaf(problem, problem.data.n + 1)
    else:
        in_first = problem.model["z"].sum(axis=0)[0]
        problem.model.add("many", in_first >= 3)
        problem.model.add("few", in_first <= 1)
    result = problem.solve("highs")
    assert result.status == "infeasible"
    assert result.tree is None


def test_a_constraint_that_some_tree_with_linear_leaves_satisfies_is_feasible():
    problem = small("ort-l", depth=1)
    min_samples_leaf(problem, problem.data.n // 2)
    result = problem.solve("highs", time_limit=5)
    assert result.tree is not None


def test_a_search_that_is_stopped_while_it_is_compiled_leaves_the_start(monkeypatch):
    from mipforest.problem.tree_search import solver_or_search

    search = solver_or_search("local-search")

    def stopped(*args, **kwargs):
        raise Stopped

    monkeypatch.setattr(search, "search", stopped)
    problem = small("ort")
    result = problem.solve(search)
    assert result.status == "interrupted"
    assert result.verified
    with pytest.raises(KeyboardInterrupt):
        problem.solve(search, start="none")
