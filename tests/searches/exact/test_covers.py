"""The exact search by vector walks against enumeration and plain loops, and how it is stopped."""

import threading
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
from seeds import seeds
from tolerance import at_most, same
from univariate_cases import loss_of

from mipforest.data import Dataset, load
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss, PinballLoss, SquaredLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import entry
from mipforest.searches.exact import cover_search, tables
from mipforest.searches.exact import search as search_module
from mipforest.searches.exact.covers import FLAG, MOST_PAIRS, evaluate_each
from mipforest.searches.exact.search import exact_search
from mipforest.searches.exact.walks import (
    CLASSES_AT_A_TIME,
    LANES,
    MAX_CHUNK_WEIGHT,
    PENALTY,
    TWO_WIDE,
    WIDE_LANES,
    sums_of_both,
    walk_both,
    walk_classes,
    walk_squared,
    weights_of_classes,
)

LARGE = Path(__file__).parents[4] / "shared" / "data" / "large"


@entry
def walked(rank, walk, label, weight, penalty, steps, below, first, both, sums, classes, totals) -> None:
    """All walks of one order: both sides, their sums, and class 0 against class 1."""
    walk_both(rank, walk, penalty, steps, below, first, both)
    sums_of_both(rank, walk, steps, below, first, sums)
    walk_classes(rank, label, weight, penalty, steps, below, first, 0, 1, classes)
    weights_of_classes(rank, label, weight, steps, below, first, 0, totals)


@entry
def walked_squared(rank, weight, target, penalty, below, first, least, out) -> None:
    """Gains of both sides for the squared loss."""
    walk_squared(rank, weight, target, penalty, len(rank) // TWO_WIDE, below, first, least, out)


def plain(weights, ends):
    """Greatest and least sum at the ends of groups of equal values, one row after the other."""
    sums = np.cumsum(weights)[ends]
    return sums.max(), sums.min()


@pytest.mark.parametrize("kind", ["int16", "int32", "float64"])
@pytest.mark.parametrize("seed", range(20))
def test_walks_are_those_of_plain_loops(kind, seed):
    rng, kind = np.random.default_rng(seed), np.dtype(kind)
    n, lanes = int(rng.integers(1, 400)), LANES[kind]
    steps = -(-n // lanes)
    own = np.sort(rng.integers(0, int(rng.integers(1, n + 2)), n))
    rank, label = rng.integers(0, 50, n), rng.integers(0, 3, n)
    most = {"int16": min(200, MAX_CHUNK_WEIGHT // steps), "int32": 10**6, "float64": 9}[kind.name]
    weight = rng.integers(1, most + 1, n).astype(kind) * (kind.type(0.25) if kind.kind == "f" else 1)
    walk = np.where(label == 0, weight, -weight)
    slot = np.arange(n) % steps * lanes + np.arange(n) // steps

    def slots(values, fill, dtype):
        filled = np.full(steps * lanes, fill, dtype)
        filled[slot] = values
        return filled

    ends = np.append(own[1:] != own[:-1], True)
    penalty = slots(np.where(ends, 0, PENALTY[kind]), PENALTY[kind], kind)
    summed = np.float64 if kind.kind == "f" else np.int64
    both, sums, classes, totals = (np.zeros(8, summed) for _ in range(4))
    low, high = sorted(rng.integers(0, 52, 2).tolist())
    walked(
        slots(rank, 0, np.uint32 if seed % 2 else np.uint16), slots(walk, 0, kind), slots(label, -1, np.int16),
        slots(weight, 0, kind), penalty, steps, low, high, both, sums, classes, totals,
    )  # fmt: skip
    # Multiples of a quarter: sums of doubles are exact.
    left, right = np.where(rank < low, walk, 0), np.where(rank >= high, walk, 0)
    assert (both[:4] == (*plain(left, ends), *plain(right, ends))).all()
    assert (sums[:4] == (left.sum(), np.abs(left).sum(), right.sum(), np.abs(right).sum())).all()
    inside = (rank >= low) & (rank < high)
    signed = np.where(inside & (label == 0), weight, 0) - np.where(inside & (label == 1), weight, 0)
    assert (classes[:2] == plain(signed, ends)).all()
    expected = [weight[inside & (label == k)].sum() for k in range(CLASSES_AT_A_TIME)]
    assert (totals[:CLASSES_AT_A_TIME] == expected).all()


@pytest.mark.parametrize("seed", range(40))
def test_gains_of_the_squared_loss_are_those_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    own, rank = np.sort(rng.integers(0, int(rng.integers(1, n + 2)), n)), rng.integers(0, 50, n)
    weight = np.ones(n) if seed % 2 else rng.random(n) + 0.1
    target = weight * rng.normal(size=n)
    ends = np.append(own[1:] != own[:-1], True)
    N = -(-n // TWO_WIDE) * TWO_WIDE
    steps = N // WIDE_LANES
    slot = np.arange(n) % steps * WIDE_LANES + np.arange(n) // steps

    def slots(values, fill, kind):
        filled = np.full(N, fill, kind)
        filled[slot] = values
        return filled

    low, high = sorted(rng.integers(0, 52, 2).tolist())
    out = np.zeros(6)
    walked_squared(
        slots(rank, 0, np.uint16), slots(weight, 0, float), slots(target, 0, float),
        slots(np.where(ends, 0, 1), 1, np.int16), low, high, weight.min() / 2, out,
    )  # fmt: skip
    for side, inside in enumerate((rank < low, rank >= high)):
        w, s = np.cumsum(np.where(inside, [weight, target], 0.0), axis=1)
        W, S = w[-1], s[-1]
        assert out[3 * side : 3 * side + 2] == pytest.approx([W, S], abs=1e-9)
        if inside.any():
            rows = np.cumsum(inside)
            at = ends & (rows > 0) & (rows < rows[-1])
            gains = s[at] ** 2 / w[at] + (S - s[at]) ** 2 / (W - w[at]) - S**2 / W
            assert out[3 * side + 2] == pytest.approx(gains.max(initial=0.0), abs=1e-9)


def medium(seed, n=120, p=4, K=3, loss="classes"):
    """Labels that follow two thresholds, with noise, ties and weights; or numbers that do."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 40, (n, p)).astype(float)
    y = ((X[:, 0] > 20).astype(int) + (X[:, 1] > 15)) % K
    y = np.where(rng.random(n) < 0.2, rng.integers(0, K, n), y)
    weight = rng.integers(1, 5, n).astype(float) if seed % 2 else None
    if loss == "squared":
        y = y + 0.3 * rng.normal(size=n)
        weight = None if weight is None else weight * rng.choice([0.37, 1.0], n)
    data = Dataset.from_arrays(X, y, task="regression" if loss == "squared" else "classification")
    return UnivariateProblem(
        thresholds=find_thresholds(data),
        y=data.y,
        loss=loss_of(loss),
        weight=weight,
        split_cost=(0.0, 0.7)[seed % 3 == 1],
    )


LOSSES = pytest.mark.parametrize("loss", ["classes", "squared"])


@LOSSES
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
@pytest.mark.parametrize(
    "depth", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
def test_plain_loops_agree(loss, seed, depth, monkeypatch):
    problem = medium(seed, n=120 if depth < 4 else 50, K=2 + seed % 3, loss=loss)
    by_walks = exact_search(problem, depth)
    monkeypatch.setattr(search_module, "kind_of", lambda *_: None)
    by_loops = exact_search(replace(problem), depth)
    assert same(by_walks.value, by_loops.value)
    assert by_walks.bound == pytest.approx(by_loops.bound, abs=1e-8, rel=1e-9)


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("depth", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_ranks_that_are_gathered_change_nothing(seed, depth, monkeypatch):
    problem = medium(seed, n=80, K=2 + seed % 2)
    whole = exact_search(problem, depth)
    monkeypatch.setattr(search_module, "MAX_BYTES", 0)
    monkeypatch.setattr(tables, "MOST_BITS", 0)  # else classes are counted
    monkeypatch.setattr(tables, "MAX_GATHERED", 0)  # two features at a time
    again = replace(problem, y=problem.y.copy())  # rows of the same arrays are kept
    gathered = exact_search(again, depth)
    assert search_module.rows_of(again)[0].is_gathered
    assert same(whole.value, gathered.value)
    assert same(whole.bound, gathered.bound)
    assert whole.nodes == gathered.nodes


@LOSSES
@pytest.mark.parametrize("depth", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_the_outcome_is_the_same_for_any_number_of_threads(loss, depth, monkeypatch):
    problem = medium(1, n=150 if depth == 3 else 60, loss=loss)
    alone = exact_search(problem, depth)
    monkeypatch.setattr(cover_search, "LONG", 0)
    one, two = (exact_search(problem, depth, threads=threads) for threads in (1, 2))
    assert same(alone.value, one.value)
    assert same(one.value, two.value)
    assert one.nodes == two.nodes
    assert (one.chosen == two.chosen).all()
    assert (one.by_threshold == two.by_threshold).all()


@LOSSES
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_search_that_is_stopped_has_a_true_bound(loss, depth, monkeypatch):
    problem = medium(2, n=2000, p=6, loss=loss)
    optimum = exact_search(problem, min(depth, 3)).value
    monkeypatch.setattr(cover_search, "LONG", 0)
    monkeypatch.setattr(cover_search, "WATCHED_EVERY", 0.002)
    seen = []
    stopped = exact_search(
        problem, depth, best=1000.0, on_progress=lambda *event: seen.append(event) or len(seen) > 3
    )
    for value, bound in [(stopped.value, stopped.bound), *(event[:2] for event in seen)]:
        assert at_most(bound, value)
        assert at_most(bound, optimum)
    assert (stopped.by_threshold >= stopped.bound - 1e-9).all()


@LOSSES
def test_a_gap_ends_the_search_with_a_bound_within_it(loss):
    problem = medium(4, n=300, K=2, loss=loss)
    found = exact_search(problem, 3, gap=0.2)
    optimum = exact_search(problem, 3).value
    assert at_most(found.bound, optimum)
    assert at_most(optimum, found.value)
    assert at_most(found.value - found.bound, 0.2 * found.value)


@pytest.mark.slow  # each kind is compiled
@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "int16"),
        ({"weight": np.full(120, 9000.0)}, "int32"),
        ({"weight": np.full(120, 0.5)}, "float64"),
        ({"weight": np.full(120, 1e8)}, "float64"),
        ({"loss": ClassLoss(np.ones((3, 3)))}, None),
        ({"loss": PinballLoss()}, None),
    ],
    ids=["whole", "heavy", "fractions", "very heavy", "costs", "absolute"],
)
def test_weights_choose_the_kind_of_walks(changes, kind):
    problem = replace(medium(0), **changes)
    rows, _ = search_module.rows_of(problem)
    assert rows.kind == (None if kind is None else np.dtype(kind))
    assert exact_search(problem, 2).ended


@LOSSES
def test_four_levels_begin_with_a_bound_and_the_best_tree_of_three(loss, monkeypatch):
    problem = medium(0, n=400, loss=loss)
    three, seen, at = exact_search(problem, 3), [], []
    monkeypatch.setattr(cover_search, "WATCHED_EVERY", 0.001)
    evaluate = cover_search.CoverSearch._evaluate_outer

    def noted(search, interval, t=0, most=0):
        if t > 0:
            at.append(interval.feature)
            seen.append((search.incumbent, search.bound))
        return evaluate(search, interval, t, most)

    monkeypatch.setattr(cover_search.CoverSearch, "_evaluate_outer", noted)
    four = exact_search(problem, 4, on_progress=lambda *_: len(at) > 0)
    assert at_most(seen[0][0], three.value)
    assert seen[0][1] > 0
    assert at_most(four.bound, four.value)
    assert at_most(four.value, three.value)
    assert at[0] == problem.thresholds.feature[three.chosen[0]]


def test_a_tree_is_told_before_the_others_of_its_batch_are_found(monkeypatch):
    problem, told, n_evaluated = medium(0, n=400), threading.Event(), 0
    monkeypatch.setattr(cover_search, "WATCHED_EVERY", 0.001)
    evaluate = cover_search.CoverSearch._evaluate_outer

    def slow_after_the_first(search, interval, t=0, most=0):
        nonlocal n_evaluated
        n_evaluated += 1
        assert n_evaluated == 1 or told.wait(timeout=30)
        return evaluate(search, interval, t, most)

    def note(value, bound, nodes):
        if at_most(value + 0.5, best):  # an error less
            told.set()

    monkeypatch.setattr(cover_search.CoverSearch, "_evaluate_outer", slow_after_the_first)
    best = exact_search(problem, 2).value
    result = exact_search(problem, 4, best=best, threads=1, on_progress=note)
    assert told.is_set()
    assert at_most(result.value, best)


def test_a_whole_number_is_a_cost_of_splits():
    """Loops that are called by address would read it as another number."""
    problem = replace(medium(0), split_cost=1)
    assert isinstance(problem.split_cost, float)
    assert same(exact_search(problem, 3).value, exact_search(replace(problem, split_cost=1.0), 3).value)


def test_leaf_sizes_cost_few_more_pairs():
    """Of thresholds that leaf sizes forbid, bounds of no worth would be inherited otherwise."""
    free = medium(0, n=400, K=2)
    sized = replace(free, N_min=10)
    assert exact_search(sized, 3).nodes < 20 * exact_search(free, 3).nodes


@pytest.mark.parametrize("depth", [2, 3, 4, 5])
def test_a_search_that_is_stopped_before_it_begins_has_a_true_bound(depth):
    """On one feature there is one open interval, the one with the root's threshold that comes first."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (60, 1)).astype(float)
    data = Dataset.from_arrays(
        X, np.where(rng.random(60) < 0.2, rng.integers(0, 2, 60), X[:, 0] > 20).astype(int)
    )
    problem = UnivariateProblem(thresholds=find_thresholds(data), y=data.y, loss=ClassLoss())
    stopped = exact_search(problem, depth, deadline=0.0)
    optimum = exact_search(problem, depth).value
    assert at_most(stopped.bound, optimum)
    assert at_most(stopped.by_threshold.min(), optimum)


@pytest.mark.parametrize("seed", range(4))
def test_every_threshold_has_a_true_bound_when_time_is_over(monkeypatch, seed):
    problem = medium(seed, n=400, p=5, K=2 + seed % 2)
    exact = exact_search(problem, 2, complete=True)
    assert exact.ended
    told = list[float]()

    def look(_value: float, bound: float, _nodes: int) -> bool:
        told.append(bound)
        return False

    def some_pairs(*arguments: Any) -> int:
        stop = arguments[-1]
        arguments[1].counts[MOST_PAIRS] = 20 * seed
        end = evaluate_each(*arguments)
        while not stop[FLAG]:
            sleep(0.001)
        return end

    monkeypatch.setattr(cover_search, "evaluate_each", some_pairs)
    stopped = exact_search(problem, 2, complete=True, deadline=0.0, on_progress=look)
    assert stopped.nodes == 20 * seed
    assert not stopped.ended
    assert at_most(stopped.by_threshold, exact.by_threshold)
    assert told
    assert at_most([*told, stopped.bound], exact.value)


def test_bounds_by_threshold_are_true_where_nothing_better_can_be_found():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    data = Dataset.from_arrays(X, np.array([0, 1, 1, 0]))
    problem = UnivariateProblem(thresholds=find_thresholds(data), y=data.y, loss=ClassLoss())
    known = exact_search(problem, 2, best=0.0, complete=True)
    assert known.chosen is None
    assert (known.by_threshold <= 1e-12).all()


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_fewer_samples_than_a_leaf_needs_have_no_tree(depth):
    problem = replace(medium(0, n=30, p=2, K=2), N_min=31)
    found = exact_search(problem, depth)
    assert found.chosen is None
    assert np.isinf(found.value)


@pytest.mark.parametrize("seed", range(4))
def test_five_levels_are_no_worse_than_four_and_optimal_where_the_search_ends(seed):
    problem = medium(seed, n=24, p=2, K=2 + seed % 2)
    four, five = exact_search(problem, 4), exact_search(problem, 5)
    assert five.ended
    assert at_most(five.value, four.value)
    assert at_most(five.bound, five.value)
    stopped = exact_search(problem, 5, most_nodes=5)
    assert at_most(stopped.bound, five.value)


@pytest.mark.skipif(not LARGE.is_dir(), reason="ConTree's data sets are not here")
@pytest.mark.parametrize(
    ("name", "depth", "errors"),
    [("bank", 3, 23), ("raisin", 3, 94), ("segment", 3, 278), ("wilt", 3, 88), ("room", 3, 80)],
)
def test_optima_of_large_sets(name, depth, errors):
    data = load(str(LARGE / f"{name}.csv.gz"), task="classification")
    problem = UnivariateProblem(thresholds=find_thresholds(data), y=data.y, loss=ClassLoss())
    found = exact_search(problem, depth)
    assert found.ended
    assert same(found.value, errors)
    assert same(found.bound, errors)


@pytest.mark.skipif(not LARGE.is_dir(), reason="Quant-BnB's data sets are not here")
def test_the_optimum_of_a_large_set_of_numbers():
    data = load(str(LARGE / "qsar.csv.gz"), task="regression")
    problem = UnivariateProblem(thresholds=find_thresholds(data), y=data.y, loss=SquaredLoss())
    found = exact_search(problem, 3)
    assert found.ended
    assert found.value == pytest.approx(6.962737775, abs=1e-8)
    assert found.bound == pytest.approx(found.value, abs=1e-7)


def test_targets_that_products_of_sums_cannot_hold_go_to_plain_loops():
    problem = medium(2, loss="squared")
    huge = replace(problem, y=problem.y * 1e60)
    assert search_module.rows_of(problem)[0].kind is not None
    assert search_module.rows_of(huge)[0].kind is None
