"""The exact search on random instances with ties, duplicates and constant features, against other exact routes."""

from dataclasses import replace

import numpy as np
import pytest
from tolerance import at_most, same
from univariate_cases import Case, hold_for_all, leaf_cost

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact import cover_search
from mipforest.searches.exact import search as search_module
from mipforest.searches.exact.search import exact_search


class Instance:
    """Samples with ties, duplicates and constant features, whole weights, and costs of splits."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n, p, K = int(rng.integers(8, 61)), int(rng.integers(1, 5)), int(rng.integers(2, 7))
        self.depth = int(rng.integers(2, 5))
        if self.depth == 4:
            n, p = min(n, 30), min(p, 3)
        X = rng.integers(0, int(rng.integers(2, 41)), (n, p)).astype(float)
        if rng.random() < 0.2:
            X[:, 0] = 1.0
        if rng.random() < 0.3:
            X[n // 2 :] = X[: n - n // 2]
        y = (X[:, -1] > X[:, -1].mean()) + (X[:, 0] > X[:, 0].mean()) * (K > 2)
        y = np.where(rng.random(n) < 0.4, rng.integers(0, K, n), y).astype(np.int64)
        y[:2] = 0, K - 1
        self.weight = rng.integers(1, 4, n) if rng.random() < 0.4 else None
        self.alpha = float(rng.choice([0.0, 0.0, 0.5, 1.5]))
        data = Dataset.from_arrays(X, y)
        self.X, self.y = data.X, data.y.astype(np.int64)
        self.problem = UnivariateProblem(
            thresholds=find_thresholds(data),
            y=self.y,
            loss=ClassLoss(),
            split_cost=self.alpha,
            weight=None if self.weight is None else self.weight.astype(float),
        )

    def value(self, chosen):
        """Loss of the tree with these thresholds, and its splits."""
        here, total, thresholds = {0: np.arange(len(self.y))}, 0.0, self.problem.thresholds
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        for t in range(2 ** (self.depth + 1) - 1):
            rows = here.pop(t, None)
            if rows is None:
                continue
            k = chosen[t] if t < len(chosen) else -1
            if k < 0:
                counts = np.bincount(self.y[rows], weight[rows])
                total += counts.sum() - counts.max(initial=0)
                continue
            total += self.alpha
            right = self.X[rows, thresholds.feature[k]] >= thresholds.value[k]
            here[2 * t + 1], here[2 * t + 2] = rows[~right], rows[right]
        return total


def agrees_with_contree(seed):
    from pycontree import ConTree

    case = Instance(seed)
    found = exact_search(case.problem, case.depth)
    assert found.ended
    assert same(case.value(found.chosen), found.value)
    assert found.bound == pytest.approx(found.value, abs=1e-8)
    # ConTree takes no weights: rows are repeated.
    repeat = np.ones(len(case.y), np.int64) if case.weight is None else case.weight
    X, y = np.repeat(case.X, repeat, axis=0), np.repeat(case.y, repeat)
    tree = ConTree(max_depth=case.depth, complexity_cost=case.alpha / len(y)).fit(X, y)
    errors, splits = int((tree.predict(X) != y).sum()), tree.get_num_branching_nodes()
    if case.alpha == 0.0:
        assert same(found.value, errors)
    assert found.value == pytest.approx(errors + case.alpha * splits, abs=1e-8)


def agrees_with_loops_and_threads(seed):
    case = Instance(seed)
    walked = exact_search(case.problem, case.depth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cover_search, "LONG", 0)
        one, two = (exact_search(case.problem, case.depth, threads=threads) for threads in (1, 2))
        assert one.nodes == two.nodes
        assert (one.chosen == two.chosen).all()
    plain = replace(case.problem)
    rows, base = search_module.rows_of(plain)
    search_module._ROWS[plain] = replace(rows, kind=None), base
    by_loops = exact_search(plain, case.depth)
    for other in (one, two, by_loops):
        assert same(other.value, walked.value)
        assert other.bound == pytest.approx(walked.bound, abs=1e-8)


def every_option(seed):
    """A case with fractional weights, costs of classes and of splits, and a least leaf size."""
    rng, case = np.random.default_rng(seed), Case(3 * seed)
    n, K = case.data.n, int(rng.integers(2, 7))
    y, weight, costs = rng.integers(0, K, n), rng.choice([0.37, 0.5, 1.0, 2.0], n), rng.random((K, K))
    y[0] = K - 1
    np.fill_diagonal(costs, 0.1 * (seed % 2))
    case.cost = leaf_cost("classes", y, weight, costs)
    case.n_min, case.split_cost, case.depth = 2 + seed % 2, 0.2, max(2, case.depth)
    case.problem = replace(
        case.problem, y=y, weight=weight, loss=ClassLoss(costs), N_min=case.n_min, split_cost=case.split_cost
    )
    return case


def agrees_with_every_option(seed):
    case = every_option(seed)
    optimum = case.enumerated(np.arange(case.data.n), case.depth)
    found = exact_search(case.problem, case.depth)
    assert found.ended
    assert found.value == pytest.approx(optimum, abs=1e-9)
    assert found.bound == pytest.approx(optimum, abs=1e-8)
    assert at_most(found.bound, optimum)
    assert case.value(found.chosen) == pytest.approx(optimum, abs=1e-9)


CHECKS = {agrees_with_contree: 1000, agrees_with_loops_and_threads: 200, agrees_with_every_option: 200}


@pytest.mark.parametrize("check", CHECKS)
def test_random_instances(check):
    if check is agrees_with_contree:
        pytest.importorskip("pycontree")
    hold_for_all(check, range(5))


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_more_random_instances(check):
    if check is agrees_with_contree:
        pytest.importorskip("pycontree")
    hold_for_all(check, range(5, CHECKS[check]))
