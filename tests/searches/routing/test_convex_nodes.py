"""The routing search for convex nodes other than support vector machines, and for nodes that select features."""

from dataclasses import replace
from functools import partial
from itertools import combinations, count

import numpy as np
import pytest
from independent_routes import best_features, enumerated_tree, l1_lp, margin_qp
from margin_data import random_data
from tolerance import at_most

from formulations.loss_optimal import LossOptimal
from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.olct import BudgetedOlct, Olct
from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.objectives.losses import HINGE, LogisticLoss, tangent_points
from mipforest.searches.routing import convex_backend
from mipforest.searches.routing.convex_relaxation import measure_gains, node_for, solve_node
from mipforest.searches.routing.dichotomies import Points, solve_split
from mipforest.searches.routing.feature_branching import FeatureBackend, _Nodes, feature_workspace_for
from mipforest.searches.routing.interior_point import (
    EUCLIDEAN,
    L1,
    UNLIMITED,
    Limits,
    Norm,
    workspace_for,
)
from mipforest.searches.routing.plunge import COMPLETE, STOPPED, ConvexNodes
from mipforest.solvers.solution import closed
from mipforest.testing.formulation_conformance import repeated

#: Nodes are solved to 1e-7, and values here are as small as 0.1: a smaller gap may stay open.
GAP = 1e-5
EPSILON = 1e-2

#: V0 and the hinge as lines: intercepts and slopes.
V0 = ((np.log(2), -0.5), (0.0, -1.0))
LINE = ((1.0, -1.0),)


def svm(X, sign, C, right, budget, alpha):
    return best_features(lambda part: margin_qp(part, sign, C, right, EPSILON), X, budget, alpha)


def sparse(X, sign, C, right, lines, budget=None, alpha=np.inf):
    budget = X.shape[1] if budget is None else budget
    return best_features(lambda part: l1_lp(part, sign, C, lines, right, EPSILON), X, budget, alpha)


#: A formulation but for C, and the value of a node by other solvers.
MODELS = {
    "hard budget": (partial(HfsMargot, B=1), partial(svm, budget=1, alpha=np.inf)),
    "soft budget": (partial(SfsMargot, B=1, alpha=0.7), partial(svm, budget=1, alpha=0.7)),
    "hinge, l1": (partial(LossOptimal, loss="hinge"), partial(sparse, lines=LINE)),
    "olct": (partial(Olct, refinement=False), partial(sparse, lines=V0)),
    "budgeted olct": (partial(BudgetedOlct, B=1, refinement=False), partial(sparse, lines=V0, budget=1)),
    "soft, l1": (
        partial(LossOptimal, loss="hinge", selection="soft", B=1, alpha=0.7),
        partial(sparse, lines=LINE, budget=1, alpha=0.7),
    ),
}


def data_of(seed, n):
    """Random samples, or few different ones, some of both classes and some equal in a feature."""
    if seed % 2 == 0:
        return random_data(seed, n=n, p=2)
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (n, 2)) / 2.0, (rng.random(n) < 0.5).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, name=f"tied{seed}", scaling="none")


#: Both kinds of data; then come repetitions, and three levels.
CASES = [
    pytest.param(model, seed, depth, marks=[pytest.mark.slow] if seed >= 1 or depth == 3 else [])
    for model in MODELS
    for seed, depth in ((0, 2), (1, 2), (2, 1), (3, 3), (4, 2), (5, 2), (6, 2), (7, 2))
]


@pytest.mark.first_cases(4)
@pytest.mark.parametrize(("model", "seed", "depth"), [*CASES, ("hard budget", 9, 2), ("olct", 9, 2)])
def test_the_optimum_is_that_of_enumeration(model, seed, depth):
    make, node_value = MODELS[model]
    data = data_of(seed, n=4 if depth == 3 else 5)
    C = tuple(float(10.0**k) for k in np.random.default_rng(50 + seed).uniform(-1, 3, depth))
    result = make(C=C, epsilon=EPSILON).build(data, depth).solve("routing", gap=GAP, time_limit=60, threads=1)
    optimum = enumerated_tree(data.X, data.sign, C, depth, node_value)
    assert result.status == "optimal"
    assert result.verified, result.doubts
    assert result.objective == pytest.approx(optimum, rel=GAP, abs=1e-6)
    assert all(event.bound <= optimum * (1 + 1e-6) + 1e-6 for event in result.solution.events)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", MODELS)
def test_the_search_agrees_with_a_matrix_solver(model, seed):
    problem = MODELS[model][0](C=3.0, epsilon=EPSILON).build(random_data(seed, n=14, p=3), 2)
    by_search = problem.solve("routing", gap=GAP, time_limit=60)
    by_matrix = problem.solve("gurobi", gap=GAP, time_limit=60)
    assert by_search.status == by_matrix.status == "optimal"
    assert by_search.objective == pytest.approx(by_matrix.objective, rel=2 * GAP)


def node(X, sign, C, loss, right=None, norm=EUCLIDEAN):
    """A node, with margins for all samples and sides where they are given."""
    kinks = loss.kinks()
    Z, d = np.concatenate([X * sign[:, None]] * len(kinks)), np.tile(sign, len(kinks))
    reward, capacity = np.repeat(kinks[:, 0], len(X)), np.repeat(C * kinks[:, 1], len(X))
    if right is not None:
        side = np.where(right, 1.0, -1.0)
        Z, d = np.concatenate([Z, X * side[:, None]]), np.concatenate([d, side])
        reward = np.concatenate([reward, np.where(right, 0.0, EPSILON)])
        capacity = np.concatenate([capacity, np.full(len(X), UNLIMITED)])
    return node_for(Z, d, reward, capacity, norm, np.full(X.shape[1], float(norm.selectable > 0)))


def value(node):
    solve_node(node, Limits(1e300, 1e-6, 1.0, 60.0, 1e3))
    return float(node.result[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [np.inf, 0.3])
def test_the_relaxation_is_below_every_choice_of_features(seed, alpha):
    data = random_data(seed, n=30, p=4)
    C, budget = float(10.0 ** (seed - 1)), 1 + seed % 2
    norm = Norm(1.0, 4.0, float(budget), 1e300 if alpha == np.inf else alpha)
    relaxed = value(node(data.X, data.sign, C, HINGE, norm=norm))
    least = min(
        value(node(data.X[:, used], data.sign, C, HINGE)) + (alpha * (k - budget) if k > budget else 0.0)
        for k in (range(1, 5) if alpha < np.inf else [budget])
        for used in map(list, combinations(range(4), k))
    )
    assert value(node(data.X, data.sign, C, HINGE)) * (1 - 1e-4) <= relaxed
    assert relaxed <= least * (1 + 1e-6)


@pytest.mark.parametrize("norm", [EUCLIDEAN, L1])
@pytest.mark.parametrize("seed", range(3))
def test_a_gain_is_at_most_what_the_variable_is_worth(norm, seed):
    data, loss = random_data(seed, n=24, p=3), LogisticLoss(tangent_points("V0"))
    X = data.X - data.X.mean(axis=0)
    right = X @ np.array([1.0, -0.5, 0.2]) >= 0
    solved = node(X[:20], data.sign[:20], 2.0, loss, right[:20], norm)
    before = value(solved)
    tried = np.arange(20, 24)
    d, reward = np.tile([-1.0, 1.0], 4), np.tile([EPSILON, 0.0], 4)
    gains = np.zeros(8)
    measure_gains(solved, X, np.repeat(tried, 2), d, reward, np.full(8, UNLIMITED), 1e3, gains)
    assert gains.max() > 0
    compared = 0
    for k, gain in enumerate(gains):
        x = X[tried[k // 2]]
        more = node_for(
            np.vstack([solved.Z, d[k] * x]),
            np.append(solved.d, d[k]),
            np.append(solved.reward, reward[k]),
            np.append(solved.capacity, UNLIMITED),
            norm,
        )
        kept = np.append(right[:20], d[k] > 0)
        if np.isinf(l1_lp(np.vstack([X[:20], x]), np.ones(21), 1.0, LINE, kept, EPSILON)):
            continue  # no hyperplane keeps the side: the node is worth infinitely much
        compared += 1
        assert before + gain <= value(more) * (1 + 1e-5)
    assert compared >= 4


def feature_nodes(seed, n, p, C, budget, alpha, grid=False):
    """Nodes of a tree of one level on random samples, or samples of few different values, and their signs."""
    data = random_data(seed, n=n, p=p)
    X = np.unique(np.round(2 * data.X) / 2 if grid else data.X, axis=0)
    sign = np.where(np.random.default_rng(seed).random(len(X)) < 0.4, -1.0, 1.0)
    weight = np.eye(2)[(sign > 0).astype(int)]
    one = np.ones(1)
    nodes = ConvexNodes(
        X, weight, C * one, 1e4 * one, 1, EPSILON, np.ones((1, 2)), False, np.array([budget]), alpha
    )
    return nodes, sign


@pytest.mark.parametrize("alpha", [np.inf, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_the_least_choice_of_features_is_the_best_one_for_any_samples(seed, alpha):
    C = float(10.0 ** (seed - 1))
    nodes, sign = feature_nodes(seed, 16, 4, C, 2, alpha, grid=seed % 2 == 1)
    of = _Nodes(nodes)
    work, choices = feature_workspace_for(of.samples, 4), of.choices(0)
    for n in (6, len(sign)):  # bounds are handed down to more samples
        weight = np.where(np.arange(len(sign))[:, None] < n, nodes.weight, 0.0)
        choices = of.raised(work, 0, weight, choices, np.inf, other_samples=True)
        choices = of.decided(work, 0, weight, choices, np.inf)
        best = svm(nodes.X[:n], sign[:n], C, None, 2, alpha)
        assert choices.least_bound == pytest.approx(best, rel=1e-5, abs=1e-9)
        assert choices.least_bound <= best * (1 + 1e-6)


def test_choices_that_are_halted_have_true_bounds_and_are_decided_later():
    nodes, sign = feature_nodes(0, 30, 6, 1.0, 2, 0.05)
    of = _Nodes(nodes)
    best = svm(nodes.X, sign, 1.0, None, 2, 0.05)
    halted = of.decided(
        feature_workspace_for(of.samples, 6), 0, nodes.weight, of.choices(0), np.inf, np.ones(1, np.int64)
    )
    assert not halted.is_decided
    assert at_most(halted.least_bound, best)
    later = of.decided(feature_workspace_for(of.samples, 6), 0, nodes.weight, halted, np.inf)
    assert later.is_decided
    assert later.least_bound == pytest.approx(best, rel=1e-5)

    backend = FeatureBackend(nodes)
    result = backend.plunge(backend.first(), np.inf, 400, np.ones(1, np.int64))
    assert result.end == STOPPED
    [(bound, node)] = result.open
    assert at_most(bound, best)
    assert backend.plunge(node, np.inf, 400, np.zeros(1, np.int64)).end == COMPLETE


@pytest.mark.parametrize("seed", range(4))
def test_a_gain_on_few_features_is_at_most_what_the_side_is_worth(seed):
    C = float(10.0 ** (seed - 1))
    nodes, _ = feature_nodes(seed, 14, 2, C, 2, np.inf)
    of = _Nodes(nodes)
    points, work = Points(of.samples, nodes.weight, np.arange(2)), workspace_for(5 * len(nodes.X), 2)
    side, gains = np.zeros(len(points.weight), np.int64), np.zeros((2, len(points.weight)))
    kept = np.argsort(nodes.X @ [1.0, -0.6])[[0, 1, -2, -1]]
    side[points.at[kept]] = [-1, -1, 1, 1]

    def value(gains):
        return solve_split(points.samples, work, points.weight, C, 1e4, EPSILON, side, gains, np.inf)

    before = value(gains)
    assert before > 0
    for g in np.flatnonzero(side == 0)[:4]:
        for row, to in ((0, -1), (1, 1)):
            gain = gains[row, g]
            side[g] = to
            assert before + gain <= value(np.zeros_like(gains)) * (1 + 1e-6) + 1e-9
            side[g] = 0


@pytest.mark.parametrize("alpha", [np.inf, pytest.param(1.3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_choices_of_few_features_find_what_subproblems_find(monkeypatch, seed, alpha):
    data = random_data(seed, n=14, p=4)
    C = tuple(float(10.0**k) for k in np.random.default_rng(seed).uniform(-1, 2, 2))
    model = (
        HfsMargot(C=C, B=(1 + seed % 2, 2))
        if alpha == np.inf
        else SfsMargot(C=C, B=1 + seed % 2, alpha=alpha)
    )
    problem = model.build(data, 2)
    by_features = problem.solve("routing", gap=GAP, time_limit=60, threads=1)
    monkeypatch.setattr(FeatureBackend, "takes", lambda nodes, *, certified: False)
    by_subproblems = problem.solve("routing", gap=GAP, time_limit=60, threads=1)
    assert by_features.status == by_subproblems.status == "optimal"
    assert by_features.objective == pytest.approx(by_subproblems.objective, rel=2 * GAP)


@pytest.mark.parametrize("alpha", [np.inf, 0.4])
@pytest.mark.parametrize("size", [1e-160, 1e-9, 1e-4, 1e4, 1e9, 1e160])
def test_choices_on_features_of_extreme_sizes_are_worth_what_they_are_scaled_or_less(size, alpha):
    """Features s times as large, with penalties and costs s^2 times smaller, are worth s^2 times less."""
    nodes, sign = feature_nodes(0, 16, 4, 10.0, 2, alpha)
    scale = size**-2 if 1e-9 <= size <= 1e9 else 1.0
    of = _Nodes(replace(nodes, X=nodes.X * size, C=nodes.C * scale, alpha=alpha * scale))
    work = feature_workspace_for(of.samples, 4)
    proven = of.decided(work, 0, nodes.weight, of.choices(0), np.inf).least_bound
    # Without weights the rarer class is charged twice.
    assert 0.0 <= proven <= 2.0 * 10.0 * scale * min((sign > 0).sum(), (sign < 0).sum()) * (1 + 1e-9)
    if scale != 1.0:
        best = scale * svm(nodes.X, sign, 10.0, None, 2, alpha)
        assert proven <= best * (1 + 1e-6)
        # Penalties from 1e11 on, here those of the least size, are beyond these nodes: they prove little.
        assert size == 1e-9 or proven == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("C", [1e-12, 1e12])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9, 1e160])
def test_sides_of_points_of_extreme_sizes_never_prove_too_much(size, C):
    nodes, _ = feature_nodes(1, 14, 2, C, 2, np.inf)
    of = _Nodes(replace(nodes, X=nodes.X * size))
    points, work = Points(of.samples, nodes.weight, np.arange(2)), workspace_for(5 * len(nodes.X), 2)
    side, gains = np.zeros(len(points.weight), np.int64), np.zeros((2, len(points.weight)))
    kept = np.argsort(nodes.X @ [1.0, -0.6])[[0, 1, -2, -1]]
    side[points.at[kept]] = [-1, -1, 1, 1]
    proven = solve_split(points.samples, work, points.weight, C, 1e4, EPSILON, side, gains, np.inf)
    # What a hyperplane that keeps these sides charges, however small its scores.
    w = np.array([1.0, -0.6])
    scores = points.samples.X / size @ w
    low, high = scores[side < 0].max(), scores[side > 0].min()
    w, b = w * 2 * EPSILON / (high - low), -EPSILON * (high + low) / (high - low)
    value = 0.5 * (w / size) @ (w / size) + C * sum(
        points.weight[:, c] @ np.maximum(0.0, 1.0 - (2 * c - 1) * (points.samples.X / size @ w + b))
        for c in range(2)
    )
    assert 0.0 <= proven <= value * (1 + 1e-9)
    assert not np.isnan(gains).any()


def test_kinks_add_up_to_the_loss():
    v = np.linspace(-9, 9, 73)
    for loss in (HINGE, LogisticLoss(tangent_points("V0")), LogisticLoss(tangent_points("V3"))):
        hinges = sum(change * np.maximum(0.0, kink - v) for kink, change in loss.kinks())
        np.testing.assert_allclose(hinges, loss.of_margin(v), atol=1e-12)


@pytest.mark.parametrize(
    ("formulation", "reason"),
    [
        (LossOptimal(loss="misclassification"), "a convex loss"),
        (LossOptimal(levels="last", variant="paper"), "charged at every branch node"),
        (LossOptimal(regulariser="none", variant="paper"), "the norm l1 or l2"),
        (HfsMargot(variant="paper"), "constants that may cut off"),
        (Margot(variant="paper"), "constants that may cut off"),
    ],
)
def test_other_problems_are_refused_with_the_reason_and_the_way_out(formulation, reason):
    problem = formulation.build(random_data(0, n=8, p=2), 2)
    with pytest.raises(Unsupported, match=f"{reason}.*solver='highs'"):
        problem.solve("routing")


def test_weights_count_as_repetitions():
    data = random_data(1, n=9, p=2)
    counts = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1])
    weighted = Dataset.from_arrays(data.X_raw, data.y, weights=counts, scaling="none")
    alike = repeated(Dataset.from_arrays(data.X_raw, data.y, scaling="none"), counts)
    values = [
        HfsMargot(C=2.0, B=1).build(each, 2).solve("routing", gap=GAP, time_limit=60).objective
        for each in (weighted, alike)
    ]
    assert values[0] == pytest.approx(values[1], rel=GAP)


@pytest.mark.slow
def test_a_stopped_search_keeps_its_tree_and_a_true_bound():
    problem = HfsMargot(C=20.0, B=2).build(random_data(7, n=200, p=6), 2)
    result = problem.solve("routing", on_progress=lambda event: event.nodes > 0, threads=1)
    assert result.status == "interrupted"
    assert result.verified
    assert at_most(result.bound, result.objective)


@pytest.mark.parametrize("model", ["soft budget", "olct"])
def test_a_gap_below_the_accuracy_of_nodes_is_no_time_limit(model):
    problem = MODELS[model][0](C=3.0, epsilon=EPSILON).build(random_data(1, n=10, p=2), 2)
    result = problem.solve("routing", gap=0.0, time_limit=None, threads=1)
    assert result.status == ("optimal" if closed(result.objective, result.bound, 0.0) else "limit")
    assert 0.0 < result.gap < GAP
    assert "nothing is left to search" in result.solution.message


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("model", ["budgeted olct", "soft, l1"])
def test_iterations_that_overflow_prove_nothing_and_break_nothing(monkeypatch, model):
    problem = MODELS[model][0](C=3.0, epsilon=EPSILON).build(random_data(2, n=10, p=2), 2)
    optimum = problem.solve("routing", gap=GAP, time_limit=60).objective
    calls = count()

    def now_and_then(node, *rest):
        iterations = solve_node(node, *rest)
        if next(calls) % 3 == 0:
            node.work.f[:], node.result[:] = np.nan, np.nan
        return iterations

    monkeypatch.setattr(convex_backend, "solve_node", now_and_then)
    result = problem.solve("routing", gap=GAP, time_limit=2, threads=1)
    assert result.verified
    assert result.bound <= optimum * (1 + 1e-6)
