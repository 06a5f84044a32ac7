"""Monotone effects of features in the exact search: the best tree by the definition, and what bounds claim."""

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest
from tolerance import at_most, same

import mipforest
import mipforest.problem.constraints as c
from mipforest.data import Dataset
from mipforest.problem.driver import Driver
from mipforest.problem.tree_search import get_search
from mipforest.searches.exact import nearly_optimal
from mipforest.searches.exact.search import exact_search
from mipforest.searches.univariate import constrained

#: Random cases by default, and of the slow test.
FEW, MANY = 24, 600

#: What bounds are lowered by at most.
LOWERED = 1e-9


@dataclass(frozen=True)
class Asked:
    """A drawn problem, and its constraints."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    depth: int
    alpha: float
    N_min: int
    effects: dict[int, bool]
    once: bool = False
    forbidden: dict[int, int] = field(default_factory=dict)
    most_features: int | None = None
    most_splits: int | None = None

    def constraints(self):
        own = [c.Monotone(f"x{j}", rises) for j, rises in self.effects.items()]
        own += [c.OncePerPath()] if self.once else []
        own += [c.Forbid((f"x{j}",), (t,)) for t, j in self.forbidden.items()]
        own += [c.AtMostFeatures(self.most_features)] if self.most_features else []
        return own + ([] if self.most_splits is None else [c.AtMostSplits(self.most_splits)])

    def problem(self):
        features = [f"x{j}" for j in range(self.X.shape[1])]
        data = Dataset.from_arrays(self.X, self.y, features=features, weights=self.weight)
        model = mipforest.get_formulation("oct")(alpha=self.alpha, N_min=self.N_min)
        problem = model.build(data, self.depth, whole=False)
        problem.constrain(*self.constraints())
        return problem


def drawn(seed, depths=(2, 3, 3)):
    rng = np.random.default_rng(seed)
    n, p, depth = int(rng.integers(8, 20)), int(rng.integers(1, 4)), int(rng.choice(depths))
    X = rng.integers(0, int(rng.integers(2, 6)), (n, p)).astype(float)
    y = ((X[:, 0] > X[:, 0].mean()) ^ (rng.random(n) < 0.3)).astype(int)
    y[:2] = 0, 1
    some = rng.choice(p, int(rng.integers(1, p + 1)), replace=False)
    return Asked(
        X=X,
        y=y,
        weight=rng.integers(1, 5, n).astype(float) if rng.random() < 0.3 else np.ones(n),
        depth=depth,
        alpha=float(rng.choice([0.0, 0.03, 0.1])),
        N_min=int(rng.choice([1, 1, 2, 3])),
        effects={int(j): bool(rng.integers(2)) for j in some},
        once=bool(rng.random() < 0.3),
        forbidden={int(rng.integers(2**depth - 1)): int(rng.integers(p))} if rng.random() < 0.3 else {},
        most_features=int(rng.integers(1, p + 1)) if rng.random() < 0.2 else None,
        most_splits=int(rng.integers(0, 2**depth - 1)) if rng.random() < 0.3 else None,
    )


def least_value(asked):
    """Return the least objective by the definition: the leaves below a node may have the labels that are left to it.

    Left of a split on a rising feature all leaves predict 0, or right of it all predict 1.
    """
    n, p = asked.X.shape
    base = min(asked.weight[asked.y == k].sum() for k in range(2))
    B = 2**asked.depth - 1
    parts = [(j, asked.X[:, j] >= v) for j in range(p) for v in np.unique(asked.X[:, j])[1:]]

    @cache
    def best(rows, node, labels, above, features):
        """Return the least errors with each number of splits, of leaves with some of the labels."""
        inside = np.frombuffer(rows, dtype=bool)
        wrong = [asked.weight[inside & (asked.y != k)].sum() for k in labels]
        found = np.full(B + 1, np.inf)
        if labels and (asked.N_min == 1 or inside.sum() >= asked.N_min):
            found[0] = min(wrong)
        if node >= B or not inside.any():
            return found
        for j, right in parts:
            if j not in features or asked.forbidden.get(node) == j or (asked.once and j in above):
                continue
            sides = (inside & ~right).tobytes(), (inside & right).tobytes()
            if not np.any(np.frombuffer(sides[0], bool)) or not np.any(np.frombuffer(sides[1], bool)):
                continue
            kinds = [(labels, labels)]
            if j in asked.effects:
                low, high = (0, 1) if asked.effects[j] else (1, 0)
                kinds = [(labels & {low}, labels), (labels, labels & {high})]
            for kind in kinds:
                left, other = (
                    best(side, 2 * node + 1 + k, own, above | {j} if asked.once else above, features)
                    for k, (side, own) in enumerate(zip(sides, kind, strict=True))
                )
                for a in np.flatnonzero(np.isfinite(left)):
                    for b in np.flatnonzero(np.isfinite(other)):
                        if a + b + 1 < len(found):
                            found[a + b + 1] = min(found[a + b + 1], left[a] + other[b])
        return found

    every, none = np.ones(n, bool).tobytes(), frozenset()
    sets = [frozenset(range(p))]
    if asked.most_features is not None:
        sets = [frozenset(j for j in range(p) if k >> j & 1) for k in range(2**p)]
        sets = [own for own in sets if len(own) <= asked.most_features]
    most = B if asked.most_splits is None else asked.most_splits
    values = [best(every, 0, frozenset({0, 1}), none, own)[: most + 1] for own in sets]
    return min(float((own / base + asked.alpha * np.arange(len(own))).min()) for own in values)


def agree(seed, **kind):
    asked = drawn(seed, **kind)
    result = asked.problem().solve("exact-search", time_limit=60, gap=0.0)
    said = seed, [str(one) for one in asked.constraints()], result.status, result.objective, result.bound
    best = least_value(asked)
    assert result.status == "optimal", said
    assert result.verified, (said, result.failed_checks)
    assert same(result.objective, best), (said, best)
    assert at_most(result.bound, best), (said, best)
    assert at_most(best, result.bound + LOWERED), (said, best)


def test_monotone_trees_are_the_best_ones_by_the_definition():
    for seed in range(FEW):
        agree(seed)


def test_monotone_trees_of_four_levels_are_the_best_ones_by_the_definition():
    for seed in range(3):
        agree(seed, depths=(4,))


@pytest.mark.slow
def test_many_monotone_trees_are_the_best_ones_by_the_definition():
    for seed in range(FEW, MANY):
        agree(seed)
    for seed in range(3, MANY // 20):
        agree(seed, depths=(4,))


@pytest.mark.parametrize(("depth", "most"), [(2, 4), (3, 30), (4, 400)])
def test_bounds_of_stopped_searches_are_below_the_best_tree(depth, most):
    """The search has boxes with leaves; a bound is one on all monotone trees whenever it ends."""
    for seed in range(6):
        asked = drawn(seed, depths=(depth,))
        asked = replace(asked, once=False, forbidden={}, most_features=None, most_splits=None)
        search = constrained.Constrained(Driver(get_search("exact-search"), asked.problem()))
        box = search._settled(search._everything())
        (charged, _), within = search._charged(box), search._within(box)
        assert within.leaf is not None
        found = exact_search(charged, depth, box=within, most_nodes=most)
        assert at_most(found.bound, least_value(asked)), (seed, depth)


def test_trees_that_time_left_unasked_are_not_taken_as_refused(monkeypatch):
    """Where time ends while listed trees are asked, neither value nor bound says more than is known of them."""
    X = np.array([5, 3, 4, 7, 9, 1, 10, 8, 2, 6.0])[:, None]
    y = np.array([1, 0, 1, 0, 1, 0, 1, 0, 0, 1])
    asked = Asked(X, y, np.ones(10), depth=3, alpha=0.0, N_min=1, effects={0: True})
    over, listed, is_over, best = [False], nearly_optimal.list_trees, Driver.over, least_value(asked)

    def list_and_end(*given, **options):
        found = listed(*given, **options)
        over[0] = not at_most(options["budget"], best)  # the best tree is among them
        return found

    monkeypatch.setattr(constrained, "_with_effects", lambda problem, _: problem.restrictions.asking_effects)
    monkeypatch.setattr(nearly_optimal, "list_trees", list_and_end)
    monkeypatch.setattr(Driver, "over", lambda self: over[0] or is_over(self))
    result = asked.problem().solve("exact-search", gap=0.0)
    assert over[0]
    assert result.status != "optimal"
    assert at_most(result.bound, best)
