"""Sums over pairs of thresholds: the same trees as by covers and as by enumeration, on tables of few thresholds."""

import numpy as np
import pytest
from seeds import seeds
from test_boxes import check_box
from test_exact_search import agree_with_enumeration
from tolerance import at_most, same
from univariate_cases import hold_for_all, loss_of

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact import cover_search
from mipforest.searches.exact import search as exact_module
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.cover_search import CoverSearch
from mipforest.searches.exact.covers import NO_LIMIT
from mipforest.searches.exact.pair_counts import are_faster
from mipforest.searches.exact.pair_search import PairSearch
from mipforest.searches.exact.search import exact_search, rows_of

#: Losses, with what makes a problem of each kind: counted by bits, by sums over classes, of costs, of numbers.
KINDS = {
    "two classes": {"K": 2},
    "three classes": {"K": 3},
    "fractions": {"K": 2, "weights": (0.5, 1.7)},
    "whole weights": {"K": 2, "weights": (1.0, 3.0)},
    "weights of classes": {"K": 3, "of_class": (0.7, 1.9, 0.37)},
    "weights of classes without a unit": {"K": 2, "of_class": (0.7, 2.0**0.5)},
    "costs": {"K": 3, "costs": True},
    "squared": {"loss": "squared"},
    "deviance": {"loss": "deviance"},
}


def by_pairs(rows, depth):
    """The search by pairs wherever it takes the rows."""
    return PairSearch if rows.loss.has_sums and depth > 1 else CoverSearch


@pytest.fixture
def pairs(monkeypatch):
    monkeypatch.setattr(exact_module, "search_for", by_pairs)


def indicators(
    seed, *, n=200, p=9, values=5, loss="classes", K=2, weights=None, of_class=None, costs=False, N_min=1,
    split_cost=0.0,
):  # fmt: skip
    """A table of indicators and of one feature of more values."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, p)) < rng.uniform(0.2, 0.8, p)).astype(float)
    X[:, 0] = rng.integers(0, values, n)
    signal = X[:, 1] + X[:, 2] * X[:, 3] + (X[:, 0] > values // 2)
    noisy = np.where(rng.random(n) < 0.3, rng.integers(0, K, n), np.minimum(signal, K - 1)).astype(int)
    y = noisy if loss == "classes" else np.round(signal + rng.random(n), 2)
    data = Dataset.from_arrays(X, y, task="classification" if loss == "classes" else "regression")
    return UnivariateProblem(
        thresholds=find_thresholds(data),
        y=np.asarray(data.y),
        loss=loss_of(loss, costs=rng.random((K, K)) * (1 - np.eye(K)) if costs else None),
        N_min=N_min,
        split_cost=split_cost,
        weight=rng.choice(weights, n) if weights else np.array(of_class)[y] if of_class else None,
    )


def enumerated_by_pairs(seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_module, "search_for", by_pairs)
        agree_with_enumeration(seed)


@pytest.mark.parametrize("seed", seeds(12, 24))
def test_value_tree_and_bounds_are_those_of_enumeration(seed):
    enumerated_by_pairs(seed)


@pytest.mark.slow
def test_value_tree_and_bounds_are_those_of_enumeration_in_more_cases():
    hold_for_all(enumerated_by_pairs, range(24, 500))


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_best_tree_of_a_box(depth, pairs):
    # 38: a domain, a group and both leaves bar a split at once.
    hold_for_all(lambda seed: check_box(depth, seed), [*range(30), 38])


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_best_tree_of_a_box_in_more_cases(depth, pairs):
    hold_for_all(lambda seed: check_box(depth, seed), range(30, 1500))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(3, 40))
def test_values_and_bounds_are_those_of_covers(seed, kind, monkeypatch):
    problem = indicators(seed, **KINDS[kind], N_min=(1, 15)[seed % 2], split_cost=(0.0, 0.8)[seed // 2 % 2])
    for depth in (2, 3):
        found = []
        for search in (CoverSearch, PairSearch):
            monkeypatch.setattr(exact_module, "search_for", lambda *_, search=search: search)
            found.append(exact_search(problem, depth))
        assert all(outcome.ended for outcome in found)
        assert same(found[0].value, found[1].value)
        assert same(found[0].bound, found[1].bound)


@pytest.mark.parametrize("kind", [*KINDS][:8])
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_values_of_four_levels_are_those_of_covers(seed, kind, monkeypatch):
    # Labels that follow no tree: every root has to be searched.
    problem = indicators(
        seed, n=80, p=7, **KINDS[kind], N_min=(1, 5)[seed % 2], split_cost=(0.0, 0.8)[seed // 2 % 2]
    )
    found = []
    for search in (CoverSearch, PairSearch):
        monkeypatch.setattr(exact_module, "search_for", lambda *_, search=search: search)
        found.append(exact_search(problem, 4))
    assert all(outcome.ended for outcome in found)
    assert same(found[0].value, found[1].value)
    assert same(found[0].bound, found[1].bound)


@pytest.mark.parametrize("kind", ["two classes", "three classes", "weights of classes", "costs", "squared"])
def test_bounds_of_pairs_never_exceed_what_trees_of_two_levels_lose(kind):
    """Four levels: rows on a side of one threshold and on a side of another, and the best tree of two levels there."""
    problem = indicators(5, n=60, p=6, values=12, **KINDS[kind], split_cost=0.3)
    rows, _ = rows_of(problem)
    search = PairSearch(rows, 4, cost=0.3, tolerance=0.0, incumbent=0.9 * rows.leaf())
    right, T = search.tables.right, len(search.tables.feature)
    truth = np.zeros((2, 2, T, T))
    for a, b, r, q in np.ndindex(truth.shape):
        part = rows.subset((right[r] == a) & (right[q] == b))
        best = CoverSearch(part, 2, cost=0.3, tolerance=0.0, incumbent=np.inf)
        best.solve()
        truth[a, b, r, q] = best.incumbent
    raised = 0
    for r in range(0, T, 2):
        search._close_root(search._evaluate_root(r))
        assert (search._of_pairs[..., 0] <= truth + 1e-9).all()
        raised = max(raised, int((search._of_pairs > 0).sum()))
    assert raised > T  # not only of pairs that were evaluated


@pytest.mark.parametrize("kind", ["two classes", "squared"])
def test_the_outcome_is_the_same_for_any_number_of_threads(kind, monkeypatch, pairs):
    monkeypatch.setattr(cover_search, "LONG", 0)
    problem = indicators(1, n=300, **KINDS[kind])
    one, three = (exact_search(problem, 3, threads=threads) for threads in (1, 3))
    assert (one.chosen == three.chosen).all()
    assert (one.value, one.nodes) == (three.value, three.nodes)  # exact: the same sums in the same order


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("kind", ["two classes", "three classes", "deviance"])
def test_a_search_that_is_stopped_has_a_true_bound(kind, depth, monkeypatch, pairs):
    problem = indicators(2, n=400, **KINDS[kind])
    whole = exact_search(problem, depth)
    monkeypatch.setattr(cover_search, "LONG", 0)
    monkeypatch.setattr(cover_search, "WATCHED_EVERY", 0.0002)
    for limit in (0, 20, 60):
        stopped = exact_search(problem, depth, best=1000.0, most_nodes=limit)
        assert at_most(stopped.bound, whole.value)
        assert at_most(whole.value, stopped.value)
        assert (stopped.by_threshold <= whole.by_threshold + 1e-9).all()
    heard = exact_search(problem, depth, on_progress=lambda *_: True)
    assert at_most(heard.bound, whole.value)


def test_weights_of_classes_are_counted_and_those_of_samples_are_summed():
    def is_counted(**kind):
        problem = indicators(0, n=300, **kind)
        return PairSearch(rows_of(problem)[0], 2, cost=0.0, tolerance=0.0, incumbent=np.inf).tables.is_counted

    assert is_counted(K=2, of_class=(2.0, 3.0))
    assert is_counted(K=2, of_class=(0.7, 1.9))
    assert is_counted(K=3, of_class=(0.7, 1.9, 3.0))
    assert is_counted(K=3, of_class=(0.7, 1.9, 3.0), N_min=7)
    assert not is_counted(K=2, weights=(0.7, 1.9))
    assert not is_counted(K=3, of_class=(0.0, 1.9, 1.1))


def test_tables_of_few_thresholds_are_searched_by_pairs_and_others_by_covers():
    few = rows_of(indicators(0, n=2000, p=60))[0]
    assert are_faster(few, 2)
    assert are_faster(few, 3)
    rng = np.random.default_rng(0)
    many = Dataset.from_arrays(rng.random((300, 8)), rng.integers(0, 2, 300))
    problem = UnivariateProblem(thresholds=find_thresholds(many), y=many.y, loss=ClassLoss())
    assert not are_faster(rows_of(problem)[0], 2)


def test_bounds_on_other_roots_never_exceed_what_their_sides_lose(pairs):
    """What moving rows can change is a bound for both sides, whichever root was evaluated."""
    problem = indicators(3, n=150, p=7, values=60)  # neighbours differ by a few rows, which may all be errors
    rows, _ = rows_of(problem)
    search = PairSearch(rows, 3, cost=0.0, tolerance=0.0, incumbent=np.inf)
    evaluated = [search._evaluate_root(r) for r in range(len(search.tables.feature))]
    truth = np.array([found.bounds for found in evaluated]).T
    for r, found in enumerate(evaluated):
        for is_compiled in (False, True):
            fresh = PairSearch(rows, 3, cost=0.0, tolerance=0.0, incumbent=np.inf)
            if is_compiled:
                fresh._search_three(fresh._roots_of_three, np.array([r]), 0.0, NO_LIMIT)
            else:
                fresh._close_root(found)
            assert (fresh._of_side <= truth + 1e-9).all()
            assert (fresh._of_side[:, r] == truth[:, r]).all()


@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("N_min", [10, 150])
def test_a_gap_leaves_roots_open_where_no_tree_is_known(N_min, depth):
    """Where the root has to split, one leaf is no tree; two leaves of 150 samples are too many for 200."""
    problem = indicators(4, N_min=N_min)
    p, B = len(problem.thresholds.first) - 1, 2**depth - 1
    box = Box(np.ones((B, p), dtype=bool), np.arange(B) == 0, np.full(p, -1))
    found, exact = (exact_search(problem, depth, gap=gap, box=box.settled()) for gap in (1e-4, 0.0))
    assert found.ended
    assert np.isinf(found.value) == (N_min == 150)
    assert np.isinf([found.value, exact.value]).all() or same(found.value, exact.value)  # less than one error
    assert np.isinf(found.bound) or at_most(found.bound, exact.value)
