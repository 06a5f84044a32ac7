"""The exact search by vector walks against enumeration, the older search and plain loops, and how it is stopped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tolerance import at_most, same
from univariate_cases import Case, hold_for_all

from mipforest.data import Dataset, load
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import entry
from mipforest.searches.exact import inherited
from mipforest.searches.exact import search as search_module
from mipforest.searches.exact.search import exact_search
from mipforest.searches.exact.walks import (
    LANES,
    MOST_OF_A_CHUNK,
    PENALTY,
    TWO_WIDE,
    WIDE_LANES,
    sums_of_both,
    walk_both,
    walk_classes,
    walk_squared,
    weight_of_class,
)

LARGE = Path(__file__).parents[4] / "shared" / "data" / "large"


@entry
def walked(rank, walk, label, weight, penalty, below, first, both, sums, classes, total) -> None:
    """All walks of one order: both sides, their sums, and class 0 against class 1."""
    steps = len(rank) // LANES
    walk_both(rank, walk, penalty, steps, below, first, both)
    sums_of_both(rank, walk, steps, below, first, sums)
    walk_classes(rank, label, weight, penalty, steps, below, first, 0, 1, classes)
    total[0] = weight_of_class(rank, label, weight, steps, below, first, 1)


@entry
def walked_squared(rank, weight, target, penalty, below, first, least, out) -> None:
    """Gains of both sides for the squared loss."""
    walk_squared(rank, weight, target, penalty, len(rank) // TWO_WIDE, below, first, least, out)


def plain(weights, ends):
    """Greatest and least sum at the ends of groups of equal values, one row after the other."""
    sums = np.cumsum(weights)[ends]
    return sums.max(), sums.min()


@pytest.mark.parametrize("seed", range(40))
def test_walks_are_those_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    own = np.sort(rng.integers(0, int(rng.integers(1, n + 2)), n))
    rank, label = rng.integers(0, 50, n), rng.integers(0, 3, n)
    weight = rng.integers(1, min(200, MOST_OF_A_CHUNK // -(-n // LANES)) + 1, n)
    walk = np.where(label == 0, weight, -weight)
    steps = -(-n // LANES)
    slot = np.arange(n) % steps * LANES + np.arange(n) // steps

    def slots(values, fill, kind):
        filled = np.full(steps * LANES, fill, kind)
        filled[slot] = values
        return filled

    ends = np.append(own[1:] != own[:-1], True)
    penalty = slots(np.where(ends, 0, PENALTY), PENALTY, np.int16)
    both, sums, classes, total = (np.zeros(8, np.int64) for _ in range(4))
    low, high = sorted(rng.integers(0, 52, 2).tolist())
    walked(
        slots(rank, 0, np.uint16), slots(walk, 0, np.int16), slots(label, -1, np.int16),
        slots(weight, 0, np.int16), penalty, low, high, both, sums, classes, total,
    )  # fmt: skip
    left, right = np.where(rank < low, walk, 0), np.where(rank >= high, walk, 0)
    assert (both[:4] == (*plain(left, ends), *plain(right, ends))).all()
    assert (sums[:4] == (left.sum(), np.abs(left).sum(), right.sum(), np.abs(right).sum())).all()
    inside = (rank >= low) & (rank < high)
    signed = np.where(inside & (label == 0), weight, 0) - np.where(inside & (label == 1), weight, 0)
    assert (classes[:2] == plain(signed, ends)).all()
    assert total[0] == weight[inside & (label == 1)].sum()


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
        slots(np.where(ends, 0, PENALTY), PENALTY, np.int16), low, high, weight.min() / 2, out,
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


@pytest.fixture
def by_walks(monkeypatch):
    """Every problem that walks take goes to them, however small."""
    always = {2: 0, 3: 0, 4: 0}
    monkeypatch.setattr(search_module, "LEAST_FOR_COVERS", {"classes": always, "squared": always})


def whole_case(seed):
    """A small problem of errors with whole weights, or ``None``: the others are not for walks."""
    case = Case(3 * seed)
    if case.problem.costs is not None or case.depth < 2:
        return None
    labels, weight = np.asarray(case.problem.y), case.problem.weight
    weight = None if weight is None else np.rint(4 * weight)
    case.problem = replace(case.problem, weight=weight, N_min=1)
    sizes, K = np.ones(len(labels)) if weight is None else weight, int(labels.max()) + 1
    case.cost = lambda rows: float(sizes[rows].sum() - np.bincount(labels[rows], sizes[rows], K).max())
    case.n_min = 1
    return case


def squared_case(seed):
    """A small problem with the squared loss, or ``None`` of one level."""
    case = Case(3 * seed + 1)
    case.problem, case.n_min = replace(case.problem, N_min=1), 1
    return case if case.depth > 1 else None


def agree_with_enumeration(case):
    if case is None:
        return
    problem = case.problem
    optimum = case.enumerated(np.arange(case.data.n), case.depth)
    assert search_module._takes_covers(problem, case.depth)
    found = exact_search(problem, case.depth)
    assert found.ended
    assert same(found.value, optimum)
    assert at_most(found.bound, optimum)
    assert found.bound == pytest.approx(optimum, abs=1e-8)
    assert same(case.value(found.chosen), optimum)
    X, thresholds = case.data.X, case.thresholds
    for k in range(len(thresholds)):
        left = X[:, thresholds.feature[k]] < thresholds.value[k]
        sides = (case.enumerated(np.flatnonzero(side), case.depth - 1) for side in (left, ~left))
        assert at_most(found.by_threshold[k], case.split_cost + sum(sides))
    for best in (optimum, optimum + 1.0):
        again = exact_search(problem, case.depth, best=best)
        assert same(again.value, optimum)


def agree_with_enumeration_of_errors(seed):
    agree_with_enumeration(whole_case(seed))


def agree_with_enumeration_of_squares(seed):
    agree_with_enumeration(squared_case(seed))


AGREE = pytest.mark.parametrize(
    "agree", [agree_with_enumeration_of_errors, agree_with_enumeration_of_squares]
)


@pytest.mark.usefixtures("by_walks")
@AGREE
def test_values_trees_and_bounds_are_those_of_enumeration(agree):
    hold_for_all(agree, range(60))


@pytest.mark.slow
@pytest.mark.usefixtures("by_walks")
@AGREE
def test_values_trees_and_bounds_are_those_of_enumeration_in_more_cases(agree):
    hold_for_all(agree, range(60, 1200))


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
        loss=loss,
        weight=weight,
        split_cost=(0.0, 0.7)[seed % 3 == 1],
    )


LOSSES = pytest.mark.parametrize("loss", ["classes", "squared"])


@LOSSES
@pytest.mark.usefixtures("by_walks")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_older_search_agrees(loss, seed, depth, monkeypatch):
    problem = medium(seed, n=120 if depth < 4 else 50, K=2 + seed % 3, loss=loss)
    new = exact_search(problem, depth)
    monkeypatch.setattr(search_module, "LEAST_FOR_COVERS", {})
    old = exact_search(problem, depth)
    assert same(new.value, old.value)
    assert new.bound == pytest.approx(old.bound, abs=1e-8, rel=1e-9)


@LOSSES
@pytest.mark.usefixtures("by_walks")
@pytest.mark.parametrize("depth", [3, 4])
def test_the_outcome_is_the_same_for_any_number_of_threads(loss, depth, monkeypatch):
    problem = medium(1, n=150 if depth == 3 else 60, loss=loss)
    alone = exact_search(problem, depth)
    monkeypatch.setattr(inherited, "LONG", 0)
    one, two = (exact_search(problem, depth, threads=threads) for threads in (1, 2))
    assert same(alone.value, one.value)
    assert same(one.value, two.value)
    assert one.nodes == two.nodes
    assert (one.chosen == two.chosen).all()
    assert (one.by_threshold == two.by_threshold).all()


@LOSSES
@pytest.mark.usefixtures("by_walks")
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_search_that_is_stopped_has_a_true_bound(loss, depth, monkeypatch):
    problem = medium(2, n=2000, p=6, loss=loss)
    optimum = exact_search(problem, min(depth, 3)).value
    monkeypatch.setattr(inherited, "LONG", 0)
    monkeypatch.setattr(inherited, "INTERVAL", 0.002)
    seen = []
    stopped = exact_search(
        problem, depth, best=1000.0, on_progress=lambda *event: seen.append(event) or len(seen) > 3
    )
    for value, bound in [(stopped.value, stopped.bound), *(event[:2] for event in seen)]:
        assert at_most(bound, value)
        assert at_most(bound, optimum)
    assert (stopped.by_threshold >= stopped.bound - 1e-9).all()


@LOSSES
@pytest.mark.usefixtures("by_walks")
def test_a_gap_ends_the_search_with_a_bound_within_it(loss):
    problem = medium(4, n=300, K=2, loss=loss)
    found = exact_search(problem, 3, gap=0.2)
    optimum = exact_search(problem, 3).value
    assert at_most(found.bound, optimum)
    assert at_most(optimum, found.value)
    assert at_most(found.value - found.bound, 0.2 * found.value)


@pytest.mark.usefixtures("by_walks")
@pytest.mark.parametrize(
    "changes",
    [
        {"weight": np.full(120, 9000.0)},
        {"weight": np.full(120, 0.5)},
        {"N_min": 2},
        {"costs": np.ones((3, 3))},
    ],
    ids=["heavy", "fractions", "leaf sizes", "costs"],
)
def test_what_walks_do_not_take_goes_to_the_older_search(changes):
    problem = medium(0)
    other = UnivariateProblem(thresholds=problem.thresholds, y=problem.y, loss="classes", **changes)
    assert not search_module._takes_covers(other, 3)
    assert exact_search(other, 2).ended


@LOSSES
@pytest.mark.usefixtures("by_walks")
def test_four_levels_begin_with_the_best_tree_of_three(loss, monkeypatch):
    problem = medium(0, n=400, loss=loss)
    three, seen = exact_search(problem, 3).value, []
    monkeypatch.setattr(inherited, "INTERVAL", 0.001)
    evaluate_deep, at = inherited.CoverSearch._evaluate_deep, []

    def noted(search, interval, t, depth):
        at.append((interval.feature, t))
        seen.append(search.incumbent)
        return evaluate_deep(search, interval, t, depth)

    monkeypatch.setattr(inherited.CoverSearch, "_evaluate_deep", noted)
    four = exact_search(problem, 4, on_progress=lambda *_: len(at) > 0)
    assert at_most(seen[0], three)
    assert at_most(four.bound, four.value)
    assert at_most(four.value, three)
    root = exact_search(problem, 3).chosen[0]
    assert at[0][0] == problem.thresholds.feature[root]


@pytest.mark.skipif(not LARGE.is_dir(), reason="ConTree's data sets are not here")
@pytest.mark.parametrize(
    ("name", "depth", "errors"),
    [("bank", 3, 23), ("raisin", 3, 94), ("segment", 3, 278), ("wilt", 3, 88), ("room", 3, 80)],
)
def test_optima_of_large_sets(name, depth, errors):
    data = load(str(LARGE / f"{name}.csv.gz"), task="classification")
    problem = UnivariateProblem(thresholds=find_thresholds(data), y=data.y, loss="classes")
    found = exact_search(problem, depth)
    assert found.ended
    assert same(found.value, errors)
    assert same(found.bound, errors)


@pytest.mark.skipif(not LARGE.is_dir(), reason="Quant-BnB's data sets are not here")
def test_the_optimum_of_a_large_set_of_numbers():
    data = load(str(LARGE / "qsar.csv.gz"), task="regression")
    problem = UnivariateProblem(thresholds=find_thresholds(data), y=data.y, loss="squared")
    found = exact_search(problem, 3)
    assert found.ended
    assert found.value == pytest.approx(6.962737775, abs=1e-8)
    assert found.bound == pytest.approx(found.value, abs=1e-7)


@pytest.mark.usefixtures("by_walks")
def test_targets_that_products_of_sums_cannot_hold_go_to_the_older_search():
    problem = medium(2, loss="squared")
    huge = replace(problem, y=problem.y * 1e60)
    assert search_module._takes_covers(problem, 3) != search_module._takes_covers(huge, 3)
