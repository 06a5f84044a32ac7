"""Smooth models: routing, gradients, the exact leaf problems, and where the empty tree is stationary."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from tolerance import at_most, less

from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.smooth.losses import ExpectedCost
from mipforest.smooth.model import RowNorms, SmoothModel, SoftRouting, uniform
from mipforest.smooth.search import descend, minimised

#: Step of central differences, and what they may miss of a gradient's largest entry at gamma up to 16.
STEP, DIFFERENCES = 1e-6, 1e-6

#: Blocks of the branch nodes.
BRANCHES = ("a", "mu")


def differences(value, point, name):
    """The gradient in one block by central differences."""
    found = np.zeros_like(point[name])
    for at in np.ndindex(found.shape):
        ends = []
        for sign in (1, -1):
            moved = {key: np.array(part) for key, part in point.items()}
            moved[name][at] += sign * STEP
            ends.append(value(moved))
        found[at] = (ends[0] - ends[1]) / (2 * STEP)
    return found


def assert_gradient(value_and_gradient, point, names=None):
    gradient = value_and_gradient(point)[1]
    for name in names or gradient:
        expected = differences(lambda at: value_and_gradient(at)[0], point, name)
        size = max(np.abs(expected).max(), 1e-3)
        assert np.abs(gradient[name] - expected).max() < DIFFERENCES * size, name


def cost_model(rng, *, n=30, p=3, K=3, depth=2, gamma=8.0, norms=None, **loss):
    costs = rng.uniform(0.2, 1.0, (K, K))
    np.fill_diagonal(costs, 0.0)
    given = {
        "y": rng.permutation(np.arange(n) % K),
        "weights": uniform(rng.uniform(0.5, 2.0, n)),
        "costs": costs,
        "n_leaves": 2**depth,
        **loss,
    }
    return SmoothModel(
        X=rng.random((n, p)),
        depth=depth,
        gamma=gamma,
        loss=ExpectedCost(**given),
        norms=norms or RowNorms(("a",)),
    )


def mixed(model, rng):
    """A point whose leaves mix classes."""
    point = model.random_point(rng)
    C = rng.random(point["C"].shape) + 0.1
    return {**point, "C": C / C.sum(axis=1, keepdims=True)}


@pytest.mark.parametrize("gamma", [1.0, 512.0, 1e4])
def test_probabilities_of_leaves_are_the_products_along_their_paths(gamma):
    rng = np.random.default_rng(0)
    for depth in range(1, 6):
        z = rng.uniform(-1, 1, (2**depth - 1, 20))
        routing = SoftRouting.of(z, gamma)
        assert np.abs(routing.leaves.sum(axis=0) - 1).max() < 1e-12
        for leaf in range(2**depth):
            product_, node = np.ones(20), leaf + 2**depth - 1
            while node:
                parent = (node - 1) // 2
                sides = routing.left if node == 2 * parent + 1 else routing.right
                product_, node = product_ * sides[parent], parent
            assert routing.leaves[leaf] == pytest.approx(product_, abs=1e-15)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gradients_of_the_expected_cost_and_of_rates_are_central_differences(depth):
    rng = np.random.default_rng(depth)
    for gamma in (1.0, 16.0):
        model = cost_model(rng, K=2 + (depth > 1), depth=depth, gamma=gamma, rates={0: 0.9, 1: 0.8})
        point = mixed(model, rng)
        assert_gradient(model.smooth_value, point)
        for k in range(2):
            assert_gradient(partial(_constraint, model, k), point)


def _constraint(model, k, point):
    return model.constraint_values(point)[k]


@pytest.mark.parametrize("rates", [{}, {0: 0.9, 2: 0.7}])
def test_the_gradient_at_the_best_leaves_is_that_of_the_best_value(rates):
    rng = np.random.default_rng(3)
    model = cost_model(rng, rates=rates)
    point = model.random_point(rng)
    assert_gradient(model.reduced, {name: point[name] for name in BRANCHES})


@pytest.mark.parametrize(("K", "depth"), [(2, 1), (3, 2), (4, 2), (2, 3), (4, 3)])
def test_classes_of_the_leaves_are_the_cheapest_of_all_that_cover_the_classes(K, depth):
    rng = np.random.default_rng(10 * K + depth)
    n_leaves = 2**depth
    for _ in range(3):
        model = cost_model(rng, K=K, depth=depth, n=24)
        # Most leaves like the first class best: coverage then costs something.
        members = np.where(np.arange(24) < 18, 0, np.arange(24) % K)
        model = replace(
            model,
            loss=ExpectedCost(
                y=members, weights=uniform(np.ones(24)), costs=model.loss.costs, n_leaves=n_leaves
            ),
        )
        routing = model.route(model.random_point(rng))
        leaves, _ = model.loss.best(routing)
        assert set(np.unique(leaves["C"])) == {0.0, 1.0}
        values = []
        for labels in product(range(K), repeat=n_leaves) if K**n_leaves <= 5000 else ():
            if len(set(labels)) == K:
                values.append(model.loss.evaluate(routing, {"C": np.eye(K)[list(labels)]}).value)
        found = model.loss.evaluate(routing, leaves).value
        assert len(set(leaves["C"].argmax(axis=1))) == K
        if values:
            assert found == pytest.approx(min(values), abs=1e-14)


def test_rates_that_no_leaves_reach_are_charged_and_those_that_some_reach_are_kept():
    rng = np.random.default_rng(5)
    model = cost_model(rng, K=2, depth=1, rates={0: 0.5})
    point = model.random_point(rng)
    assert model.constraint_values(point)[0][0] >= -1e-9
    both = replace(model, loss=ExpectedCost(**{**vars_of(model.loss), "rates": {0: 1.0, 1: 1.0}}))
    assert less(model.objective(point), both.reduced({name: point[name] for name in BRANCHES})[0])


def test_a_descent_under_rates_does_not_end_above_a_start_that_keeps_them():
    # Here the optimum without rates lies in a valley whose best point with rates is worse than the start.
    rng = np.random.default_rng(3)
    model = cost_model(rng, K=2, depth=1, rates={0: 0.7})
    start = model.random_point(rng)
    assert model.violation(start) < FEASIBILITY_TOLERANCE
    found = descend(model, start, lambda: False)
    assert model.violation(found) < FEASIBILITY_TOLERANCE
    assert model.objective(found) < 0.96 * model.objective(start)


def vars_of(loss):
    return {name: getattr(loss, name) for name in ("y", "weights", "costs", "n_leaves")}


def test_a_node_turned_around_with_its_subtrees_changes_nothing():
    rng = np.random.default_rng(6)
    model = cost_model(rng, depth=2)
    point = mixed(model, rng)
    turned = {name: np.array(part) for name, part in point.items()}
    turned["a"][0], turned["mu"][0] = -point["a"][0], -point["mu"][0]
    for name in BRANCHES:
        turned[name][[1, 2]] = turned[name][[2, 1]]
    turned["C"] = point["C"][[2, 3, 0, 1]]
    assert model.objective(turned) == pytest.approx(model.objective(point), abs=1e-14)


def test_the_gradient_of_the_empty_tree_is_below_its_bound():
    # Section 8.2: at a = 0, every entry is at most B, and every row sum at most the depth times B.
    rng = np.random.default_rng(7)
    for depth in (1, 2):
        model = cost_model(rng, K=2, depth=depth, gamma=4.0)
        sums = model.loss.members.T @ model.X  # (K, p), each sample with its weight
        most = model.loss.costs.max(axis=1)
        bound = model.gamma / 4 / model.X.shape[1] * (most @ sums).max()
        for _ in range(50):
            mu = rng.uniform(-1, 1, 2**depth - 1)
            point = {**mixed(model, rng), "a": np.zeros((2**depth - 1, 3)), "mu": mu}
            slope = np.abs(model.smooth_value(point)[1]["a"])
            assert at_most(slope.max(), bound)
            assert at_most(slope.sum(axis=0).max(), depth * bound)


def test_two_classes_at_depth_one_have_the_corrected_gradient_of_the_empty_tree():
    rng = np.random.default_rng(8)
    model = cost_model(rng, K=2, depth=1, gamma=6.0)
    W, members = model.loss.costs, model.loss.members
    for mu in (-1.0, 1.0):
        point = {"a": np.zeros((1, 3)), "mu": np.array([mu]), "C": np.eye(2)}
        F = 1 / (1 + np.exp(-model.gamma))
        density = model.gamma * F * (1 - F)
        # Left leaf the first class: going left costs the second class W_21, and saves the first class W_12.
        expected = density / 3 * (W[1, 0] * members[:, 1] - W[0, 1] * members[:, 0]) @ model.X
        assert model.smooth_value(point)[1]["a"][0] == pytest.approx(expected, abs=1e-15)


def test_the_empty_tree_costs_the_same_whatever_the_features():
    rng = np.random.default_rng(9)
    model = cost_model(rng)
    point = {**mixed(model, rng), "a": np.zeros((3, 3))}
    other = SmoothModel(X=rng.random(model.X.shape), depth=2, gamma=8.0, loss=model.loss, norms=model.norms)
    assert other.objective(point) == pytest.approx(model.objective(point), abs=1e-15)


def test_a_minimisation_is_stopped_between_two_evaluations_and_keeps_the_best_of_them():
    asked = []

    def value(x):
        asked.append(float(((x - 3.0) ** 2).sum()))
        return asked[-1], 2 * (x - 3.0)

    found = minimised(value, np.zeros(4), [(-9.0, 9.0)] * 4, lambda: len(asked) >= 2)
    assert len(asked) == 2
    assert ((found - 3.0) ** 2).sum() == pytest.approx(min(asked))
    whole = minimised(value, np.zeros(4), [(-9.0, 9.0)] * 4, lambda: False)
    assert whole == pytest.approx(np.full(4, 3.0))
