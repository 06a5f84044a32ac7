"""Linear dichotomies of points in a plane, against linear programmes; their bounds, against exact nodes."""

import numpy as np
import pytest
from independent_routes import best_features, margin_qp, parted

from formulations.margot import HfsMargot, SfsMargot
from mipforest.data import Dataset
from mipforest.searches.routing import feature_branching
from mipforest.searches.routing.dichotomies import Points, dichotomies_in_plane
from mipforest.searches.routing.feature_branching import _Nodes
from mipforest.searches.routing.plunge import ConvexNodes

#: Nodes are solved to 1e-7, and values here are as small as 0.01: a smaller gap may stay open.
GAP, EPSILON = 1e-4, 1e-2


def nodes_of(seed, n, *, grid, C, alpha=np.inf):
    """Nodes of a tree of two levels on three features, and the root on two of them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 3)) / 2.0 if grid else rng.random((n, 3))
    X = np.unique(X, axis=0)
    weight = np.eye(2)[rng.integers(0, 2, len(X))] * rng.choice([1.0, 2.5], (len(X), 1))
    nodes = ConvexNodes(
        X, weight, np.array([C[0], C[1], C[1]]), np.full(3, 1e3), 2, EPSILON, np.ones((1, 2)), False,
        np.array([2, 1, 1]), alpha,
    )  # fmt: skip
    of, chosen = _Nodes(nodes), np.array([0, 2])
    return nodes, of, chosen, Points(of.samples, weight, chosen)


@pytest.mark.parametrize(("seed", "grid"), [(0, False), (1, True), (2, False), (3, True)])
def test_all_linear_dichotomies_are_listed(seed, grid):
    nodes, of, chosen, points = nodes_of(seed, 9, grid=grid, C=(1.0, 1.0))
    found = dichotomies_in_plane(points, chosen, of.samples, nodes, of.budget, 0.0, 1e9)
    listed = {tuple(side) for _, side in found}
    assert listed == {tuple(np.where(right, 1, -1)) for right in parted(points.samples.X)}


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("alpha", [np.inf, 0.3])
@pytest.mark.parametrize(
    ("seed", "C"), [(0, (0.1, 0.3)), (1, (0.01, 2.0)), (2, (3.0, 30.0)), (3, (0.5, 0.01))]
)
def test_their_bounds_are_below_exact_nodes(seed, C, alpha):
    nodes, of, chosen, points = nodes_of(seed, 8, grid=seed % 2 == 1, C=C, alpha=alpha)
    found = dichotomies_in_plane(points, chosen, of.samples, nodes, of.budget, 0.0, 1e6)
    sign, size = np.where(nodes.weight[:, 1] > 0, 1.0, -1.0), nodes.weight.sum(axis=1)

    def exact(rows, t, right=None, X=nodes.X, budget=1):
        return best_features(
            lambda part: margin_qp(part, sign[rows], C[min(t, 1)] * size[rows], right, EPSILON),
            X[rows],
            budget,
            alpha,
        )

    tight = 0
    for bound, side in found[:: max(1, len(found) // 12)]:
        right = side[points.at] > 0
        everyone = np.ones(len(sign), bool)
        value = exact(~right, 1) + exact(right, 2) + exact(everyone, 0, right, nodes.X[:, chosen], 2)
        assert bound <= value * (1 + 1e-7) + 1e-9
        tight += bound > 0.5 * value
    assert seed == 2 or tight > 0


def few_points(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (9, 3)) / 5.0 if seed % 2 else rng.random((9, 3))
    y = (rng.random(9) < 0.35).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, name=f"few{seed}", scaling="none")


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_the_optimum_is_that_without_the_list(monkeypatch, seed, soft):
    C = (1e-3, float(10.0 ** (seed % 4 - 1)))
    model = SfsMargot(C=C, B=1, alpha=0.1 * C[1]) if soft else HfsMargot(C=C, B=(2, 1 + seed % 2))
    problem = model.build(few_points(seed), 2)
    lists, dichotomies_left = [], feature_branching.dichotomies_left

    def counted(*args):
        lists.append(dichotomies_left(*args))
        return lists[-1]

    monkeypatch.setattr(feature_branching, "dichotomies_left", counted)
    by_list = problem.solve("routing", gap=GAP, threads=1, time_limit=None)
    assert any(found is not None for found in lists)
    monkeypatch.setattr(feature_branching, "dichotomies_left", lambda *_: None)
    without = problem.solve("routing", gap=GAP, threads=1, time_limit=None)
    assert by_list.status == without.status == "optimal"
    assert by_list.verified
    assert by_list.objective == pytest.approx(without.objective, rel=2 * GAP)
    assert all(event.bound <= without.objective * (1 + 1e-7) for event in by_list.solution.events)
