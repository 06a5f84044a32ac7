"""The local search over hyperplanes: proven optima, bounds, the gap, limits, and what it refuses."""

from dataclasses import replace
from itertools import pairwise
from time import monotonic

import numpy as np
import pytest
from seeds import few_of
from tolerance import at_least, at_most, less, same

import mipforest
from mipforest.data import Dataset
from mipforest.errors import NotAllowed, Unsupported
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.searches.hyperplanes import HyperplaneProblem, Hyperplanes
from mipforest.searches.hyperplanes import search as search_module
from mipforest.searches.hyperplanes.gap import made_feasible, move_out_of_gap
from mipforest.searches.hyperplanes.plugin import proven_bound
from mipforest.searches.hyperplanes.search import local_search
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.solution import Status

Margot = mipforest.get_formulation("margot")


def drawn(seed: int, n: int = 14, p: int = 2, weighted: bool = False) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, p)) if seed % 2 else rng.integers(0, 4, size=(n, p)) / 3.0
    y = (X[:, 0] > 0.5) ^ (X[:, -1] > 0.4) ^ (rng.random(n) < 0.1)
    y[:2] = 0, 1
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    return Dataset.from_arrays(X, y, weights=weight)


#: What the search takes, with parameters for random C.
MODELS = {
    "margot": lambda C: Margot(C=C),
    "hfs-margot": lambda C: mipforest.get_formulation("hfs-margot")(C=C, B=1),
    "sfs-margot": lambda C: mipforest.get_formulation("sfs-margot")(C=C, B=1, alpha=0.1 * C),
    "olct": lambda C: mipforest.get_formulation("olct")(C=C),
}


def compared(model: str, seed: int) -> bool:
    """Compare with routing's optimum on random data; return whether the search reaches it."""
    data = drawn(seed, n=10 + seed % 5, p=2 + seed % 2, weighted=seed % 3 == 0)
    problem = MODELS[model](10.0 ** np.random.default_rng(seed).uniform(-1, 3)).build(data, depth=2)
    optimum = problem.solve("routing", threads=1)
    for options in ({"starts": 5, "kicks": 6}, {}):  # a fraction of the defaults is enough for most
        found = problem.solve("local-search", threads=1, solver_options=options)
        assert found.bound > 0 or not optimum.objective > 0, seed
        assert found.verified, seed
        assert at_least(found.objective, optimum.bound), seed
        assert at_most(found.bound, optimum.objective), seed
        if at_most(found.objective, optimum.objective * (1 + 1e-4)):  # routing's own gap
            return True
    return False


@pytest.mark.parametrize("model", few_of(MODELS))
def test_small_optima_are_reached_and_nothing_is_below_them(model):
    assert sum(compared(model, seed) for seed in range(3)) >= 2


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1000, 1025), marks=pytest.mark.slow),
        pytest.param(range(1000, 1125), marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("model", MODELS)
def test_of_small_optima_95_percent_are_reached_and_nothing_is_below_them(model, seeds):
    assert sum(compared(model, seed) for seed in seeds) >= int(0.95 * len(seeds))


def many(n: int = 9000, p: int = 4, seed: int = 0) -> HyperplaneProblem:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, p))
    y = ((X[:, 0] > 0.5) & (X[:, 1] > X[:, 2])) ^ (rng.random(n) < 0.05)
    return HyperplaneProblem(
        X, np.where(y, 1.0, -1.0), np.ones(n), np.full(3, 10.0), np.array([[1.0, 1.0]]), 1e-3
    )


@pytest.mark.slow
def test_many_samples_are_searched_on_parts_first():
    problem = many()
    found = local_search(problem, starts=3, kicks=4)
    again = local_search(problem, starts=3, kicks=4, threads=2)
    assert problem.feasible(found.tree)
    assert found.ended
    assert same(found.tree.value, problem.valued(found.tree).value)
    assert np.array_equal(found.tree.w, again.tree.w)  # exact: the same computation on other threads
    assert at_least(found.tree.value, proven_bound(problem))
    root = problem.best_hyperplane(0, np.arange(len(problem.X)))
    alone = problem.refitted(Hyperplanes(np.tile(root[0], (3, 1)), np.full(3, root[1])))
    assert less(found.tree.value, alone.value)


@pytest.mark.parametrize("depth", few_of([1, 4, 6]))
def test_any_depth(depth):
    data = drawn(1, n=60, p=3)
    problem = Margot(C=10).build(data, depth=depth, declare=depth < 6)
    options = {"starts": 3, "kicks": 2}
    found = problem.solve("local-search", solver_options=options, time_limit=20)
    assert found.status in (Status.BEST_FOUND, Status.OPTIMAL, Status.TIME_LIMIT)
    assert at_most(found.objective, problem.formulation.evaluate(problem.start_tree(), problem.instance))
    if depth == 1:  # the root is all there is
        assert found.status == Status.OPTIMAL
        assert found.objective == pytest.approx(found.bound, rel=1e-8)


@pytest.mark.slow
def test_penalties_by_level_and_weights_are_those_of_the_definition():
    data = drawn(3, n=80, p=3, weighted=True)
    problem = Margot(C=(1, 100)).build(data, depth=2)
    found = problem.solve("local-search", solver_options={"starts": 4, "kicks": 4})
    value = problem.formulation.evaluate(found.tree.unscaled(), problem.instance)
    assert same(found.objective, value)
    assert found.verified


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("loss", "regulariser"),
    [
        ("hinge", "l2"),
        ("squared-hinge", "l2"),
        ("logistic", "l1"),
        *(
            pytest.param(loss, regulariser, marks=pytest.mark.slow)
            for loss, regulariser in (("hinge", "l1"), ("squared-hinge", "l1"), ("logistic", "l2"))
        ),
    ],
)
def test_loss_optimal(loss, regulariser):
    loss_optimal = mipforest.get_formulation("loss-optimal")
    problem = loss_optimal(loss=loss, tangents="V2", regulariser=regulariser, C=10).build(
        drawn(5, n=40, p=3), depth=2
    )
    found = problem.solve("local-search", solver_options={"starts": 4, "kicks": 4})
    assert found.verified
    assert at_most(found.objective, problem.formulation.evaluate(problem.start_tree(), problem.instance))
    assert at_most(found.bound, found.objective)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_tree():
    problem = Margot(C=10).build(drawn(7, n=60, p=4), depth=3)
    options = {"starts": 3, "kicks": 3}
    trees = [
        problem.solve("local-search", seed=seed, threads=threads, solver_options=options).tree
        for seed, threads in ((1, 1), (1, 2), (1, 1))
    ]
    for tree in trees[1:]:
        assert np.array_equal(tree.w, trees[0].w)  # exact: the same computation
        assert np.array_equal(tree.b, trees[0].b)  # exact: the same computation


# ---------------------------------------------------------------------- the bound


def test_the_bound_is_below_every_tree():
    for seed in range(6):
        problem, rng = many(n=300, seed=seed), np.random.default_rng(seed)
        bound = proven_bound(problem)
        for _ in range(20):
            w = rng.normal(size=(3, 4)) * 10.0 ** rng.uniform(-2, 1)
            tree = problem.refitted(Hyperplanes(w, -0.5 * w.sum(axis=1)))
            assert at_least(tree.value, bound)


def test_equal_samples_of_both_classes_pay_at_every_level():
    X = np.repeat([[0.0], [0.5], [1.0]], 4, axis=0)
    y = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1])
    problem = Margot(C=(1, 10)).build(Dataset.from_arrays(X, y), depth=2)
    found = problem.solve("local-search", solver_options={"starts": 2, "kicks": 2})
    optimum = problem.solve("routing")
    # One and two samples of the lesser class: they pay 2 C each on both levels.
    assert at_least(found.bound, 2 * 3 * (1 + 10) * (1 - 1e-6))
    assert at_most(found.bound, optimum.objective)


# ---------------------------------------------------------------------- the gap


def test_a_tree_within_the_gap_is_made_feasible():
    problem, rng = replace(many(n=2000), epsilon=0.02), np.random.default_rng(0)
    w = rng.normal(size=(3, 4))
    tree = problem.valued(Hyperplanes(w, -0.5 * w.sum(axis=1)))
    assert not problem.feasible(tree)
    repaired = made_feasible(problem, tree, accuracy=1e-6)
    moved = move_out_of_gap(problem, tree, rng, accuracy=1e-6)
    for found in (repaired, moved):
        assert problem.feasible(found)
        for t, _, scores in problem.visits(found):
            if t < problem.n_upper:
                assert not ((scores < 0) & (scores > -problem.epsilon)).any()  # exact: sides are
    assert at_most(moved.value, repaired.value)


def test_an_infeasible_tree_is_never_the_incumbent():
    problem, rng = replace(many(n=2000), epsilon=0.02), np.random.default_rng(0)
    w = rng.normal(size=(3, 4))
    tree = Hyperplanes(w, -0.5 * w.sum(axis=1))
    found = local_search(problem, starts=0, kicks=0, trees=[tree], deadline=monotonic() - 1.0)
    assert not np.isfinite(found.tree.value)
    assert not found.ended


@pytest.mark.slow
def test_scores_keep_clear_of_the_sides():
    problem = Margot(C=100).build(drawn(9, n=60, p=3), depth=3)
    found = problem.solve("local-search", solver_options={"starts": 2, "kicks": 4}).tree.unscaled()
    scores = found.scores(problem.data.X)[:, list(problem.topology.upper_branches)]
    here = found.decision_path(problem.data.X)[:, list(problem.topology.upper_branches)]
    between = here & (scores < 0.0) & (scores > -problem.formulation.epsilon + FEASIBILITY_TOLERANCE)
    assert not between.any()


# ---------------------------------------------------------------------- limits


def test_a_time_limit_and_a_stop_end_it_with_a_tree_and_a_bound():
    data = drawn(11, n=400, p=5)
    problem = Margot(C=10).build(data, depth=3)
    found = problem.solve("local-search", time_limit=0.3)
    assert found.status == Status.TIME_LIMIT
    assert found.bound > 0
    assert found.verified
    stopped = problem.solve("local-search", on_progress=lambda event: event.nodes >= 1)
    assert stopped.status == Status.INTERRUPTED
    assert stopped.verified


@pytest.mark.slow
def test_many_samples_are_stopped_within_a_step():
    problem, began = many(n=40_000, p=8), monotonic()
    found = local_search(problem, starts=10, kicks=100, deadline=began + 1.0)
    assert not found.ended
    assert monotonic() - began < 8.0  # a step of a second on a machine that others use too


@pytest.mark.slow
def test_events_never_get_worse():
    problem, values = Margot(C=10).build(drawn(13, n=60, p=4), depth=2), []
    problem.solve(
        "local-search",
        on_progress=lambda event: values.append((event.objective, event.bound)) or False,
        solver_options={"starts": 3, "kicks": 4},
    )
    assert all(at_most(after[0], before[0]) for before, after in pairwise(values))
    assert at_most(values[-1][1], values[-1][0])


# ---------------------------------------------------------------------- who takes what


@pytest.mark.parametrize(
    ("model", "parameters", "words"),
    [
        ("loss-optimal", {"levels": "last", "regulariser": "l2", "variant": "paper"}, "not charged"),
        ("loss-optimal", {"loss": "misclassification", "regulariser": "l2"}, "not convex"),
        ("margot", {"variant": "paper"}, "constants"),
    ],
)
def test_what_it_does_not_take_is_refused_in_words(model, parameters, words):
    problem = mipforest.get_formulation(model)(**parameters).build(drawn(0), depth=2)
    with pytest.raises(Unsupported, match=words):
        problem.solve("local-search")


def test_options_that_it_would_not_use_are_refused():
    problem = Margot().build(drawn(0), depth=2)
    with pytest.raises(NotAllowed, match="hyperplanes"):
        problem.solve("local-search", solver_options={"hyperplanes": 3})


@pytest.mark.slow
def test_auto_chooses_it_above_the_limit_of_routing_and_no_rows_are_declared(monkeypatch):
    monkeypatch.setattr("mipforest.searches.routing.plugin.MAX_GROUPS", 50)
    monkeypatch.setattr("mipforest.searches.routing.plugin.MAX_MANY", 50)
    monkeypatch.setattr("mipforest.searches.hyperplanes.plugin.MANY_SAMPLES", 50)
    monkeypatch.setattr("mipforest.problem.formulation.MAX_ASSIGNED", 100)
    from mipforest.problem.tree_search import Auto

    problem = Margot().build(drawn(1, n=80, p=3), depth=2, solver=Auto(), whole=False)
    assert problem.unfinished
    found = problem.solve("auto", time_limit=2)
    assert found.solution.solver == "local-search"
    assert "routing does not take this problem" in found.solution.message
    assert found.bound > 0
    # Where routing refuses for another reason, it refuses too.
    other = Margot(variant="paper").build(drawn(1, n=80, p=3), depth=2)
    assert other.solve("auto", time_limit=2).solution.solver == "highs"


@pytest.mark.slow
def test_its_tree_is_a_start_of_other_solvers():
    problem = Margot(C=10).build(drawn(15, n=40, p=3), depth=2)
    found = problem.solve("routing", start="local-search", threads=1)
    assert found.status == Status.OPTIMAL
    assert at_most(found.objective, found.solution.start_objective)


def test_the_structure_is_that_of_other_packages_too():
    problem = Margot().build(drawn(0), depth=2)
    assert isinstance(problem.structure, NodeProblems)
    assert mipforest.problem.tree_search.get_search("local-search").takes(problem)


def test_samples_grow_to_all(monkeypatch):
    monkeypatch.setattr(search_module, "SAMPLES", (200, 600))
    problem = many(n=1500)
    seen = search_module._Search(problem, 0, 1, np.inf, monotonic, lambda value, steps: False)._samples()
    assert [len(part.X) for part in seen] == [200, 600, 1500]
    for part in seen:
        assert same(part.weight.sum(), problem.weight.sum())
