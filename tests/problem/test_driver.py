"""The gate of all searches: which trees count, and which status follows from value and bound."""

from dataclasses import replace
from time import monotonic

import numpy as np
import pytest
from margin_data import random_tree
from tolerance import at_most, less, same

import mipforest
from mipforest.data import Dataset
from mipforest.problem.constraints import Forbid
from mipforest.problem.driver import Driver, Incumbent
from mipforest.problem.proofs import judged
from mipforest.problem.structure import UnivariateProblem
from mipforest.problem.tree_search import SearchResult, TreeSearch, get_search
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Solution, Status
from mipforest.trees import Tree


def half_split(n=30, seed=0, task="classification"):
    """Samples whose first feature tells the classes apart, without a gap between them."""
    X = np.round(np.random.default_rng(seed).random((n, 2)), 3)
    y = (X[:, 0] > 0.5).astype(int)
    return Dataset.from_arrays(
        X, y if task == "classification" else y.astype(float), task=task, scaling="minmax"
    )


def stump(data, depth=1):
    """The tree that parts the classes, and no other sample, at the root."""
    x = np.sort(data.X[:, 0])
    threshold = (
        x[data.y[np.argsort(data.X[:, 0])] == 0].max() + x[data.y[np.argsort(data.X[:, 0])] == 1].min()
    ) / 2
    w, b = np.zeros((2**depth - 1, data.p)), np.zeros(2**depth - 1)
    w[0, 0], b[0] = 1.0, -threshold
    values = np.repeat([0, 1], 2 ** (depth - 1))
    return Tree(depth, w, b, values, tuple(data.classes), tuple(data.features.labels))


@pytest.mark.parametrize("declare", [True, False])
@pytest.mark.parametrize(
    ("name", "search", "parameters"),
    [
        ("oct-h", "oblique-search", {"alpha": 0.01, "mu": 0.3, "max_features": 2}),
        ("oct-h", "local-search", {"alpha": 0.01, "mu": 0.3, "max_features": 2}),
        ("ort-h", "oblique-search", {"alpha": 0.01, "mu": 0.3, "max_features": 2}),
        ("ort-h", "local-search", {"alpha": 0.01, "mu": 0.3, "max_features": 2}),
        ("miret", "oblique-search", {"alpha": 0.01, "epsilon": 0.9, "ensemble": "random-forest:trees=3"}),
    ],
)
def test_a_start_without_the_gap_is_none(name, search, parameters, declare):
    data = half_split(task="regression" if name == "ort-h" else "classification")
    problem = mipforest.get_formulation(name)(**parameters).build(data, 1, declare=declare)
    start = stump(data)
    assert "breaks the" in problem.outside(start)
    alone = problem.solve(search, start="none", time_limit=10, threads=1)
    result = problem.solve(search, start=start, time_limit=10, threads=1)
    assert same(result.objective, alone.objective)
    assert (result.status, result.verified) == (alone.status, True)
    assert not problem.outside(result.solved_tree.unscaled())
    if name != "miret":  # whose tree without a split is what the start becomes
        assert any("did not begin with the start" in warning for warning in result.solution.warnings)


@pytest.mark.parametrize("declare", [True, False])
def test_routing_counts_no_tree_whose_scores_lie_in_the_gap(declare):
    data = half_split()
    problem = mipforest.get_formulation("margot")(C=1, epsilon=0.9).build(data, 2, declare=declare)
    result = problem.solve("routing", start="cart", time_limit=20, threads=1)
    assert (result.status, result.verified) == ("optimal", True)
    assert result.objective == pytest.approx(23.97356, rel=1e-4)


def test_a_value_that_may_prune_is_that_of_a_tree_of_the_model():
    data = half_split()
    problem = mipforest.get_formulation("margot")(C=1, epsilon=0.3).build(data, 2, declare=False)
    incumbent, rng = Incumbent(problem), np.random.default_rng(0)
    best = np.inf
    for _ in range(200):
        tree = random_tree(rng, data, 2, epsilon=1e-3)
        inside = not problem.outside(tree)
        value = problem.formulation.evaluate(tree, problem.instance)
        told = incumbent.offer(tree)
        assert told == (value if inside or value >= best else np.inf)  # exact: a copy
        best = min(best, value) if inside else best
        assert incumbent.value == best  # exact: a copy
    assert np.isfinite(best)
    assert same(problem.formulation.evaluate(incumbent.tree, problem.instance), best)


def test_least_leaf_sizes_and_splits_below_none_are_part_of_the_gate():
    data = half_split()
    problem = mipforest.get_formulation("oct")(N_min=20).build(data, 2, declare=False)
    assert "least leaf size of 20" in problem.outside(stump(data, 2))
    tree = stump(data, 2)
    lower = replace(tree, w=tree.w[[1, 0, 2]], b=tree.b[[1, 0, 2]])
    plain = mipforest.get_formulation("oct")().build(data, 2, declare=False)
    assert not plain.outside(tree)
    assert "hierarchy" in plain.outside(lower)
    assert "weights of 1" in plain.outside(replace(tree, w=0.5 * tree.w, b=0.5 * tree.b))


@pytest.mark.parametrize(
    ("objective", "bound", "said", "expected"),
    [
        (1.0, 0.5, Status.OPTIMAL, Status.LIMIT),
        (1.0, 1.0, Status.TIME_LIMIT, Status.OPTIMAL),
        (1.0, 0.99, Status.TIME_LIMIT, Status.TIME_LIMIT),
        (1.0, 1.0 - 1e-5, Status.LIMIT, Status.OPTIMAL),
        (1.0, -np.inf, Status.BEST_FOUND, Status.BEST_FOUND),
        (1.0, 1.0, Status.IMPORTED, Status.IMPORTED),
    ],
)
def test_the_status_follows_from_value_and_bound(objective, bound, said, expected):
    problem = mipforest.get_formulation("oct")().build(half_split(), 1)
    solution = Solution(said, np.zeros(1), {}, objective, bound, 0, 0.0, "any", "1")
    found = judged(problem, solution, 1e-4)
    assert found.status is expected
    hidden = said is Status.OPTIMAL and expected is Status.LIMIT
    assert bool(found.warnings) == hidden
    assert not hidden or "nothing is left to search, and rounding hides a gap of 50" in found.warnings[0]


def test_a_search_that_says_optimal_beside_a_gap_is_not_believed(monkeypatch):
    problem = mipforest.get_formulation("oct")().build(half_split(), 1)
    search = get_search("exact-search")
    wrong = replace(
        search.search(problem, mipforest.SolveSettings(), start=None, on_progress=None), bound=-1.0
    )
    poor = problem.formulation.polish(replace(stump(problem.data), b=np.array([-0.1])), problem.instance)
    monkeypatch.setattr(
        type(search), "search", lambda *_, **__: SearchResult(poor, wrong.bound, Status.OPTIMAL)
    )
    result = problem.solve("exact-search")
    assert result.status == "limit"
    assert any("rounding hides a gap" in warning for warning in result.solution.warnings)


# ---------------------------------------------------------------------- the driver


class Proving(TreeSearch):
    """A search that proves bounds, and one that leaves no gap at its end."""

    name, summary, structures = "proving", "for tests", (UnivariateProblem,)

    def search(self, problem, settings, *, start, on_progress):
        raise NotImplementedError


class Complete(Proving):
    complete = True


class Heuristic(Proving):
    proves = False


def driver_of(search=Proving, limit=None, on_progress=None):
    problem = mipforest.get_formulation("oct")(alpha=0.01).build(half_split(), 1)
    return Driver(search(), problem, SolveSettings(time_limit=limit), on_progress)


@pytest.mark.parametrize(
    ("search", "limit", "ended", "status"),
    [
        (Proving, None, True, Status.LIMIT),
        (Complete, None, True, Status.OPTIMAL),
        (Heuristic, None, True, Status.BEST_FOUND),
        (Proving, 0.0, False, Status.TIME_LIMIT),
        (Proving, None, False, Status.LIMIT),
    ],
)
def test_the_status_says_what_ended_the_search(search, limit, ended, status):
    driver = driver_of(search, limit)
    driver.offer(stump(driver.problem.data))
    assert driver.result(0.0, ended=ended).status is status


def test_a_search_without_a_tree_and_with_an_infinite_bound_has_proven_that_there_is_none():
    assert driver_of().result(np.inf, ended=True).status is Status.INFEASIBLE
    assert driver_of().result(np.inf, ended=False).status is not Status.INFEASIBLE


def test_a_stop_is_heard_and_a_lost_cluster_is_told():
    driver = driver_of(on_progress=lambda event: True)
    assert driver.report()
    assert driver.result(0.0, ended=False).status is Status.INTERRUPTED
    lost = driver_of(limit=100.0)
    lost.lost = "the scheduler has gone"
    result = lost.result(0.0, ended=False)
    assert result.status is Status.LIMIT
    assert "the scheduler has gone" in result.warnings[0]


def test_loading_and_compiling_eat_nothing_of_the_limit():
    driver = driver_of(limit=10.0)
    before = driver.left
    driver.problem.budget.exclude("compile", 1000.0)
    assert driver.deadline > monotonic() + 1000.0
    assert driver.left > before - 1.0
    assert not driver.over()
    assert driver.over(reserved=5000.0)
    with driver.without_limit():
        assert driver.left == np.inf


def test_reported_bounds_rise_and_stay_below_the_value():
    events = []
    driver = driver_of(on_progress=lambda event: bool(events.append(event)))
    driver.report(0.02, 3)
    driver.offer(stump(driver.problem.data))
    driver.report(0.01, 2)
    driver.report(1.0, 5)
    result = driver.result(0.01, ended=True)
    assert [event.bound for event in events[:2]] == pytest.approx([0.02, min(0.02, driver.value)])
    assert all(at_most(event.bound, event.objective) for event in events)
    assert result.events[-1].nodes == result.nodes == 5


def test_of_trees_beyond_the_constraints_the_best_within_is_kept_apart():
    data = half_split()
    problem = mipforest.get_formulation("oct")(alpha=0.01).build(data, 1)
    problem.constrain(Forbid((data.features.labels[0],)))
    driver = Driver(Proving(), problem, keeps_constraints=False)
    best = stump(data)
    assert np.isfinite(driver.offer(best))
    assert driver.within.tree is None
    assert driver.result(0.0, ended=False).tree is best  # for the caller to look near it
    leaf = replace(best, w=np.zeros_like(best.w), b=np.zeros(1), leaf_value=np.zeros(2, dtype=np.int64))
    driver.offer(leaf)
    assert driver.result(0.0, ended=False).tree is leaf
    assert less(driver.value, driver.within.value)
