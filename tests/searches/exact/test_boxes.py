"""The best tree of a box against a recursion over its definition, which knows no bounds."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tolerance import at_most, same
from univariate_cases import hold_for_all, loss_of

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss, SquaredLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact import cover_search
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.search import exact_search

#: What bounds are lowered by at most, for what rounding makes of sums.
LOWERED = 1e-7


class Recursion:
    """The best tree of a box: each node is a leaf or has one of its splits, which may part none of its samples."""

    def __init__(self, problem, depth, box):
        thresholds = problem.thresholds
        self.right = thresholds.value[:, None] < thresholds.X[thresholds.group][:, thresholds.feature].T
        self.feature, self.y = thresholds.feature, np.asarray(problem.y)
        self.problem, self.box, self.depth = problem, box, depth
        self.best = cache(self.best)

    def leaf(self, members):
        y = self.y[list(members)]
        if 0 < len(y) < self.problem.N_min:
            return np.inf
        if isinstance(self.problem.loss, SquaredLoss):
            return ((y - y.mean()) ** 2).sum() if len(y) else 0.0
        weight = self.problem.weights[list(members)]
        return weight.sum() - np.bincount(y, weight, minlength=1).max(initial=0.0)

    def best(self, node, members, above):
        box = self.box
        least = np.inf if node < len(box.must) and box.must[node] else self.leaf(members)
        if node >= len(box.must):
            return least
        for split, f in enumerate(self.feature):
            if not box.allowed[node, f] or (box.group[f] >= 0 and box.group[f] in above):
                continue
            inside = above | ({box.group[f]} if box.group[f] >= 0 else set())
            sides = [tuple(i for i in members if self.right[split, i] == side) for side in (False, True)]
            if any(0 < len(part) < self.problem.N_min for part in sides):
                continue
            value = self.problem.split_cost + self.best(2 * node + 1, sides[0], frozenset(inside))
            if value < least:
                least = min(least, value + self.best(2 * node + 2, sides[1], frozenset(inside)))
        return least

    def value_of(self, chosen):
        """The loss of the tree of some thresholds, which is in the box, in units of one sample."""
        here, lost = {0: (tuple(range(len(self.y))), ())}, 0.0
        for node in range(2 ** (self.depth + 1) - 1):
            if node not in here:
                continue
            members, above = here.pop(node)
            split = chosen[node] if node < len(chosen) else -1
            if split < 0:
                assert node >= len(chosen) or not self.box.must[node]
                lost += self.leaf(members)
                continue
            f = self.feature[split]
            assert self.box.allowed[node, f]
            assert self.box.group[f] < 0 or self.box.group[f] not in above
            for side in (False, True):
                own = tuple(i for i in members if self.right[split, i] == side)
                here[2 * node + 1 + side] = own, (*above, self.box.group[f])
            lost += self.problem.split_cost
        return lost


def drawn(seed, depth):
    """A problem, and a settled box, ``None`` where it has no tree."""
    rng = np.random.default_rng([seed, depth])
    n, p, values = int(rng.integers(4, 11)), int(rng.integers(2, 4)), int(rng.integers(2, 4))
    X = rng.integers(0, values, (n, p)).astype(float)
    loss = ("classes", "squared")[seed % 2]
    y = rng.integers(0, 2 + seed % 3 // 2, n) if loss == "classes" else rng.integers(0, 7, n) / 2
    y[:2] = 0, 1
    task = "classification" if loss == "classes" else "regression"
    thresholds = find_thresholds(Dataset.from_arrays(X, y, task=task))
    B = 2**depth - 1
    problem = UnivariateProblem(
        thresholds=thresholds,
        y=y,
        loss=loss_of(loss),
        N_min=int(rng.integers(1, 4)),
        split_cost=float(rng.choice([0.0, 0.25])),
        weight=np.array([0.7, 1.3, 4.4**0.5])[y] if loss == "classes" and seed % 8 > 3 else None,
    )
    has_any = np.diff(thresholds.first) > 0
    allowed = (rng.random((B, p)) < rng.choice([0.4, 0.7, 1.0])) & has_any
    must = rng.random(B) < rng.choice([0.0, 0.1, 0.3])
    group = np.where(rng.random(p) < rng.choice([0.0, 0.6]), np.arange(p), -1)
    box = Box(allowed, must, group).settled()
    return problem, box


def check_box(depth, seed):
    problem, box = drawn(seed, depth)
    if box is not None:
        agree(problem, depth, box)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_best_tree_of_a_box(depth):
    hold_for_all(lambda seed: check_box(depth, seed), range(60))


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_best_tree_of_a_box_in_more_cases(depth):
    hold_for_all(lambda seed: check_box(depth, seed), range(60, 1500))


def check_boxes_after_others(seed):
    rng = np.random.default_rng(seed)
    problem, box = drawn(seed, 3)
    if box is None:
        return
    if rng.random() < 0.5:
        exact_search(replace(problem, N_min=1) if seed % 2 else problem, 3)
    for _ in range(4):
        agree(problem, 3, box)
        # The next one differs at some nodes, or for all of them.
        nodes = rng.random(7) < rng.choice([0.3, 1.0])
        allowed = box.allowed & ~(nodes[:, None] & (rng.random(box.allowed.shape) < 0.3))
        group = np.where(rng.random(len(box.group)) < 0.1, np.arange(len(box.group)), box.group)
        fewer = Box(allowed, box.must | (nodes & (rng.random(7) < 0.05)), group).settled()
        box = box if fewer is None or rng.random() < 0.2 else fewer


def test_best_trees_of_boxes_after_searches_of_others(monkeypatch):
    """Bounds on sides of thresholds stay for searches of fewer trees on that side."""
    monkeypatch.setattr(cover_search, "LONG", 0)  # thresholds are evaluated many at a time
    hold_for_all(check_boxes_after_others, range(60))


@pytest.mark.slow
def test_best_trees_of_boxes_after_searches_of_others_in_more_cases(monkeypatch):
    monkeypatch.setattr(cover_search, "LONG", 0)
    hold_for_all(check_boxes_after_others, range(60, 1500))


def test_what_a_search_of_all_trees_has_proven_is_not_searched_again(monkeypatch):
    monkeypatch.setattr(cover_search, "LONG", 0)
    rng = np.random.default_rng(0)
    X = rng.random((400, 4))
    y = (X[:, 0] * X[:, 1] + 0.2 * rng.random(400) > 0.35).astype(int)
    problem = UnivariateProblem(
        thresholds=find_thresholds(Dataset.from_arrays(X, y, scaling="none")), y=y, loss=ClassLoss()
    )
    allowed = np.ones((7, 4), dtype=bool)
    allowed[2, 0] = False
    box = Box(allowed, np.zeros(7, dtype=bool), np.full(4, -1)).settled()
    cold = exact_search(replace(problem, y=y.copy()), 3, box=box)
    exact_search(problem, 3)
    warm = exact_search(problem, 3, box=box)
    assert same(warm.value, cold.value)
    assert same(warm.bound, cold.bound)
    assert warm.nodes < 0.7 * cold.nodes
    again = exact_search(problem, 3, best=cold.value * (1 + 1e-9), box=box)
    assert again.nodes <= warm.nodes


def agree(problem, depth, box):
    used = np.flatnonzero(box.allowed.any(axis=0))
    if not len(used):
        return
    truth = Recursion(problem, depth, box)
    least = truth.best(0, tuple(range(len(problem.y))), frozenset())
    some, numbers = problem.thresholds.subset(used)
    inside = Box(box.allowed[:, used], box.must, box.group[used])
    found = exact_search(replace(problem, thresholds=some), depth, box=inside)
    assert found.ended
    if not np.isfinite(least):
        assert found.chosen is None
        assert found.bound == np.inf
        return
    assert same(found.value, least)
    assert at_most(found.bound, least)
    assert at_most(least, found.bound + LOWERED)
    assert found.chosen is not None
    chosen = np.where(found.chosen >= 0, numbers[found.chosen], -1)
    assert same(truth.value_of(chosen), least)
