"""Matrix solvers begin with the best tree within constraints, where a search that keeps them finds it."""

import numpy as np
import pytest
from tolerance import at_least, at_most, same

import mipforest
from mipforest.data import Dataset
from mipforest.problem.constraints import AtMostFeatures, AtMostSplits, Forbid, MinLeaf, OncePerPath, Recall

#: What the search may miss of the optimum.
GAP = 1e-4

NAMES = ["a", "b", "c", "d"]
BY = "it is replaced by the best tree of exact-search within the constraints"


def built(model, depth=2, seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 4)), 2)
    score = X[:, 0] + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(n)
    if model == "ort":
        data = Dataset.from_arrays(X, score, features=NAMES, task="regression")
    elif model == "policy":
        data = Dataset.from_arrays(X, rewards=np.column_stack([score, 1.5 - score]), features=NAMES)
    else:
        data = Dataset.from_arrays(X, (score > np.median(score)).astype(int), features=NAMES)
    return mipforest.get_formulation(model)().build(data, depth)


ASKED = {
    "forbid": [Forbid(("a",))],
    "features": [AtMostFeatures(1)],
    "splits": [AtMostSplits(1)],
    "leaf and path": [MinLeaf(9), OncePerPath()],
    "recall": [Recall("1", 1.0)],
}


@pytest.mark.parametrize("model", ["oct", "ort", "policy"])
@pytest.mark.parametrize("kind", ASKED)
def test_the_start_is_the_optimum_of_the_search(model, kind):
    if kind == "recall" and model != "oct":
        pytest.skip("there are no labels")
    problem = built(model, seed=1)
    problem.constrain(*ASKED[kind])
    tree = problem.start_tree()
    values, warnings = problem.start_values(tree, may_search=True)
    best = problem.solve("exact-search", gap=0.0)
    assert best.status == "optimal"
    assert problem.worst_violation(values) == ""
    assert same(problem.model.objective(values), best.objective)
    assert not warnings or warnings[1] == BY


@pytest.mark.parametrize("constraints", [[Recall("1", 1.0)], [Recall("1", 0.8), MinLeaf(2)]], ids=str)
def test_beside_a_search_that_has_not_ended_the_better_tree_is_taken(constraints):
    problem = built("margot", seed=2, n=12)
    problem.constrain(*constraints)
    tree = problem.start_tree()
    searched, _ = problem.start_values(tree, may_search=True)
    repaired, _ = problem.start_values(tree)
    assert problem.worst_violation(searched) == ""
    assert repaired is None or at_most(
        problem.model.objective(searched), problem.model.objective(repaired) * (1 + GAP)
    )


def test_a_solver_begins_with_it_and_proves_by_itself():
    problem = built("ort")
    problem.constrain(AtMostFeatures(1))
    result = problem.solve("highs", time_limit=2)
    assert BY in result.solution.warnings
    assert same(result.solution.start_objective, built_best("ort", AtMostFeatures(1)))
    assert at_least(result.solution.start_objective, result.objective)
    assert result.verified, result.failed_checks


def built_best(model, *constraints):
    problem = built(model)
    problem.constrain(*constraints)
    return problem.solve("exact-search", gap=0.0).objective


def test_a_tree_that_a_user_gives_is_repaired():
    problem = built("oct")
    tree = problem.start_tree()
    problem.constrain(Forbid((NAMES[int(np.abs(tree.w[0]).argmax())],)))
    given = problem.solve("highs", time_limit=2, start=tree)
    assert any("violates the model" in text for text in given.solution.warnings)
    assert BY not in given.solution.warnings
    at_once = problem.solve("highs", time_limit=0)
    assert BY not in at_once.solution.warnings


def test_beside_an_own_objective_it_is_repaired():
    """No search knows what was added."""
    problem = built("oct", n=20)
    problem.constrain(AtMostFeatures(1))
    problem.model.minimize(problem.model.objective_expression + 0.1 * problem.model["d"].sum())
    result = problem.solve("highs", time_limit=2)
    assert BY not in result.solution.warnings
