"""Nodes with the l1 norm in the routing search: bounds of its simplex method against other solvers."""

import numpy as np
import pytest
from independent_routes import enumerated_tree, l1_lp
from margin_data import random_data
from seeds import seeds
from tolerance import at_most

from formulations.olct import Olct
from mipforest.objectives.losses import HINGE, LogisticLoss, tangent_points
from mipforest.searches.routing.convex_backend import ConvexBackend
from mipforest.searches.routing.l1_simplex import L1Backend
from mipforest.searches.routing.plunge import COMPLETE, CUT_OFF, STOPPED, ConvexNodes

EPSILON, RUNNING, HALTED = 1e-2, np.zeros(1, np.int64), np.ones(1, np.int64)

#: Losses, and their lines: intercepts and slopes.
LOSSES = {
    "hinge": (HINGE, ((1.0, -1.0),)),
    "V0": (LogisticLoss(tangent_points("V0")), ((np.log(2), -0.5), (0.0, -1.0))),
}


def nodes_on(X, sign, C, loss=HINGE, depth=2, weights=1.0):
    B = 2**depth - 1
    weight = np.eye(2)[(sign > 0).astype(int)] * np.reshape(weights, (-1, 1))
    return ConvexNodes(
        X, weight, np.full(B, C), np.full(B, 1e4), depth, EPSILON, loss.kinks(), True, None, np.inf
    )


def on_a_grid(seed, n, p):
    """Samples and signs; of odd seeds features have few values, and a sample may be there with both classes."""
    data = random_data(seed, n=n, p=p)
    X = np.unique(np.round(4 * data.X) / 4, axis=0) if seed % 2 else data.X
    return X, np.where(np.random.default_rng(seed).random(len(X)) < 0.4, -1.0, 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_a_complete_routing_is_worth_what_linear_programmes_say(seed, loss):
    X, sign = on_a_grid(seed, 60, 4)
    C, (kinked, lines) = float(10.0 ** (seed - 1)), LOSSES[loss]
    right = (X - 0.5) @ [1.0, -0.7, 0.4, 0.1] >= 0
    backend = L1Backend(nodes_on(X, sign, C, kinked))
    result = backend.plunge(backend.at(np.where(right, 2, 1)), np.inf, 1, RUNNING)
    parts = (l1_lp(X[side], sign[side], C, lines) for side in (right, ~right))
    assert result.end == COMPLETE
    assert result.bound == pytest.approx(l1_lp(X, sign, C, lines, right, EPSILON) + sum(parts), rel=1e-7)


@pytest.mark.parametrize(("seed", "depth"), [(0, 2), (1, 2), (2, 3)])
def test_bases_handed_down_prove_what_interior_points_prove(seed, depth):
    X, sign = on_a_grid(seed, 30, 3)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 3.0], len(X))
    nodes = nodes_on(X, sign, float(10.0 ** (seed - 1)), LOSSES["V0"][0], depth, weights)
    backend, others = L1Backend(nodes), ConvexBackend(nodes)
    cutoff = backend.plunge(backend.first(), np.inf, 400, RUNNING).bound * 1.5
    result = backend.plunge(backend.first(), cutoff, 6, RUNNING)
    assert result.end == STOPPED
    for bound, node in result.open:
        exact = others.plunge(others.at(node.reached.astype(np.int64)), np.inf, 1, HALTED).bound
        handed_down = backend.plunge(node, np.inf, 1, HALTED).bound
        assert handed_down == pytest.approx(backend.plunge(node.lighter(), np.inf, 1, HALTED).bound, rel=1e-9)
        assert handed_down == pytest.approx(exact, rel=1e-5)
        assert handed_down <= exact * (1 + 1e-5)
        assert bound <= exact * (1 + 1e-5)  # with what trials prove


def test_sides_that_no_hyperplane_keeps_are_cut_off_at_any_value():
    X, sign = on_a_grid(1, 40, 2)
    at = np.where((X > 0.4).sum(axis=1) == 1, 2, 1)
    backend = L1Backend(nodes_on(X, sign, 1.0))
    result = backend.plunge(backend.at(at), 1e6, 1, RUNNING)
    assert result.end == CUT_OFF
    assert result.bound >= 1e6


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1e3, 1e9, 1e200])
@pytest.mark.parametrize("C", [1e-6, 1e9])
def test_features_of_extreme_sizes_and_penalties_never_prove_too_much(size, C):
    X, sign = on_a_grid(0, 40, 3)
    scaled = X * [1.0, size, 1.0]
    backend = L1Backend(nodes_on(scaled, sign, C, LOSSES["V0"][0]))
    result = backend.plunge(backend.first(), np.inf, 1, HALTED)
    # A constant charges the rarer class twice at 1.39; any bound of a tree with this root alone is at most that.
    assert result.bound >= 0.0
    assert at_most(result.bound, 2.0 * np.log(2) * 2 * C * min((sign > 0).sum(), (sign < 0).sum()))
    if size <= 1e9:
        assert result.bound <= l1_lp(scaled, sign, C, LOSSES["V0"][1]) * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(15, 40))
def test_the_optimum_is_that_of_enumeration_with_many_kinks_ties_and_weights(seed):
    rng = np.random.default_rng(seed)
    X, sign = on_a_grid(seed, 9, 1 + seed % 3)
    C = tuple(float(10.0**k) for k in rng.uniform(-2, 3, 2))
    data = random_data(seed, n=len(X), p=X.shape[1])
    data = type(data).from_arrays(X, (sign > 0).astype(int), name="few", scaling="none")
    result = Olct(C=C, epsilon=EPSILON, refinement=False).build(data, 2).solve("routing", gap=1e-6, threads=1)
    optimum = enumerated_tree(
        data.X,
        data.sign,
        C,
        2,
        lambda part, y, penalty, right: l1_lp(part, y, penalty, LOSSES["V0"][1], right, EPSILON),
    )
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(optimum, rel=2e-6, abs=1e-7)
    assert all(event.bound <= optimum * (1 + 1e-7) + 1e-9 for event in result.solution.events)
