"""The search for trees with labelled leaves: depth three against all trees, what a core proves, stops and threads."""

from dataclasses import replace

import numpy as np
import pytest
from every_tree import optimum, value_of
from miret_data import blobs
from tolerance import at_most

from formulations.miret import Miret
from mipforest.searches.oblique.cores import BITS
from mipforest.searches.oblique.labelled import LabelledSearch
from mipforest.searches.oblique.problem import ObliqueProblem
from mipforest.searches.oblique.search import ObliqueSearch

#: What rows may be missed by, over the smallest unit of charges here: a tree within it counts.
NEAR = 1e-6


def random_problem(seed, *, depth, n_groups, p):
    """A random problem: groups of several points, ties, charges of both labels, prices from small to large, gaps."""
    rng = np.random.default_rng(seed)
    size = 1 + rng.binomial(2, 0.3, n_groups)
    X = rng.random((size.sum(), p)) if seed % 2 else rng.integers(0, 4, (size.sum(), p)) / 3
    charges = np.eye(2)[rng.integers(0, 2, n_groups)] * (0.5 + rng.random((n_groups, 1)))
    if seed % 3 == 0:
        charges += 0.2 * rng.random((n_groups, 2))
    prices = rng.random((depth, p)) * rng.choice([0.05, 0.3, 1.0])
    prices[rng.random((depth, p)) < 0.1] = np.inf
    improved = seed % 4 == 1 and bool(np.isfinite(prices).any())
    return ObliqueProblem(
        X=X,
        first=np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        size=size.astype(np.int64),
        charges=charges,
        prices=prices,
        gap=float(rng.choice([1e-3, 0.1])),
        l1=False,
        given_labels=True,
        upper_intercepts=0.0 if improved else -1.0,
        least_price=float(prices[np.isfinite(prices)].min(initial=np.inf)) if improved else 0.0,
    )


def searched(problem, threads=1, kind=LabelledSearch):
    """Return a search that has ended, and the best value that it has found."""
    best = [float(problem.charges.sum())]

    def adopt(tree):
        best[0] = min(best[0], value_of(problem, tree))
        return best[0]

    search = kind(problem, best[0], adopt=adopt, halted=lambda *_: False, threads=threads)
    assert search.run()
    return search, best[0]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 60))])
def test_the_optimum_of_three_levels_is_that_of_all_trees(seed):
    problem = random_problem(seed, depth=3, n_groups=5 + seed % 2, p=2)
    search, value = searched(problem)
    expected = optimum(problem, problem.upper_intercepts)
    assert value == pytest.approx(expected, abs=NEAR)
    assert search.bound == pytest.approx(expected, abs=NEAR)


def of_two_classes(seed, *, n_groups, depth=2):
    """A random problem of two classes, weights of absolute sum 1: ties, weights, prices from 0 on, gaps."""
    rng = np.random.default_rng(seed)
    p = 2 + (seed % 4 == 0)
    X = rng.random((n_groups, p)) if seed % 2 else rng.integers(0, 4, (n_groups, p)) / 3
    X = np.unique(X, axis=0)
    n = len(X)
    weight = 0.5 + rng.random((n, 1)) if seed % 3 else np.ones((n, 1))
    return ObliqueProblem(
        X=X,
        first=np.arange(n + 1),
        size=np.ones(n, np.int64),
        charges=np.eye(2)[rng.integers(0, 2, n)] * weight,
        prices=np.full((depth, p), float(rng.choice([0.0, 0.02, 0.1, 0.3]))),
        gap=float(rng.choice([1e-3, 0.1])),
        l1=True,
        given_labels=False,
    )


@pytest.mark.parametrize("seed", [1, 8, *(pytest.param(s, marks=pytest.mark.slow) for s in range(9, 40))])
def test_leaves_of_two_classes_have_the_optimum_of_all_trees(seed):
    problem = of_two_classes(seed, n_groups=6, depth=1 + seed % 3)
    search, value = searched(problem)
    expected = optimum(problem)
    assert value == pytest.approx(expected, abs=NEAR)
    assert search.bound == pytest.approx(expected, abs=NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_boxes_have_the_same_optimum(seed):
    problem = of_two_classes(seed, n_groups=20)
    search, value = searched(problem)
    boxes, of_boxes = searched(problem, kind=ObliqueSearch)
    assert value == pytest.approx(of_boxes, abs=NEAR)
    assert search.bound == pytest.approx(boxes.bound, abs=NEAR)


@pytest.mark.parametrize(
    "seed", [23, *(pytest.param(s, marks=pytest.mark.slow) for s in range(40) if s != 23)]
)
def test_a_core_alone_proves_its_value(seed):
    problem = random_problem(seed, depth=2 + seed % 2, n_groups=8 - seed % 2, p=2)
    search, _ = searched(replace(problem, prices=0.1 * problem.prices))  # many splits pay
    table, cores = search.table, search._cores
    levels = np.repeat(np.arange(problem.depth), np.diff(table.begin))
    rng, proven = np.random.default_rng(seed), 0
    for i in rng.permutation(len(table.price))[:6]:
        level, count = int(levels[i]), int(cores.size[i])
        places = int(cores.begin[i]) + rng.permutation(count)[:2]
        for at in places:
            inside = [g for g in range(problem.n_groups) if cores.words[at, g // BITS] >> (g % BITS) & 1]
            alone = first_split_alone(search.problem, level, table.features[i, : table.n_features[i]], inside)
            assert at_most(float(cores.value[at]), optimum(alone, alone.upper_intercepts) + NEAR)
            proven += 1
    assert proven


def first_split_alone(problem, level, features, groups):
    """The problem of some groups from a level on, whose first split is on some features, without a price for these."""
    prices = problem.prices[level:].copy()
    prices[0] = np.inf
    prices[0, features] = 0.0
    points, first = problem.points_of(np.array(groups))
    return replace(
        problem,
        X=problem.X[points],
        first=first,
        size=problem.size[groups],
        charges=problem.charges[groups],
        prices=prices,
        least_price=0.0,
    )


def test_a_search_goes_on_after_stops():
    problem = random_problem(2, depth=3, n_groups=18, p=3)
    _, expected = searched(problem)
    best, looks = [float(problem.charges.sum())], []

    def adopt(tree):
        best[0] = min(best[0], value_of(problem, tree))
        return best[0]

    def halted(bound, steps):
        assert at_most(bound, expected + NEAR)
        looks.append(steps)
        return bound > -np.inf and len(looks) % 3 == 0  # supports are prepared without a stop

    search, stops = LabelledSearch(problem, best[0], adopt=adopt, halted=halted), 0
    while not search.run():
        stops += 1
    assert stops
    assert best[0] == pytest.approx(expected, abs=NEAR)
    assert search.bound == pytest.approx(expected, abs=NEAR)


@pytest.mark.parametrize("variant", ["tight", "improved"])
def test_any_number_of_threads_finds_the_same_tree(variant):
    model = Miret(variant=variant, alpha=0.02, ensemble="random-forest:trees=10,seed=1")
    problem = model.build(blobs(3, n=40, p=3, decimals=1), 2)
    results = [problem.solve(solver="oblique-search", gap=0, threads=threads) for threads in (1, 2, 3)]
    for result in results:
        assert result.status == "optimal"
        assert result.verified
        assert (result.tree.w == results[0].tree.w).all()  # exact: the same run
        assert (result.tree.b == results[0].tree.b).all()  # exact: the same run


def test_a_stop_leaves_a_bound_below_the_optimum():
    model = Miret(alpha=0.01, ensemble="random-forest:trees=10,seed=1")
    problem = model.build(blobs(6, n=60, p=3), 2)
    whole = problem.solve(solver="oblique-search", gap=0)
    assert whole.status == "optimal"
    for least in (0.0, whole.objective / 4, whole.objective / 2):

        def stop(event, least=least):
            return event.bound > least

        result = problem.solve(solver="oblique-search", gap=0, on_progress=stop)
        assert at_most(result.bound, whole.objective + NEAR)
        assert at_most(whole.objective, result.objective + NEAR)


def test_a_better_start_is_never_lost():
    model = Miret(alpha=0.05, ensemble="random-forest:trees=10,seed=1")
    problem = model.build(blobs(8, n=40, p=2), 2)
    best = problem.solve(solver="oblique-search", gap=0)
    again = problem.solve(solver="oblique-search", gap=0, start=best.tree)
    assert again.status == "optimal"
    assert again.objective == pytest.approx(best.objective, abs=NEAR)


def test_charges_that_can_only_be_avoided_leave_the_others_exact():
    problem = random_problem(5, depth=2, n_groups=6, p=2)
    dear = replace(problem, charges=problem.charges.copy())
    dear.charges[0] *= 1e10
    upper = value_of(dear, int(dear.charges.sum(axis=0).argmin()))
    _, value = searched(dear.capped(upper))
    assert value == pytest.approx(optimum(dear, dear.upper_intercepts), abs=NEAR)
