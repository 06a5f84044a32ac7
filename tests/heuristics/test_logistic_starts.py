import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_data import random_data
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tolerance import same

from mipforest.heuristics.logistic import greedy_logistic, logistic_split, logistic_value
from mipforest.heuristics.node_problems import NodeProblems, margin_split
from mipforest.objectives.branches import (
    HALF_SQUARED_L2,
    HINGE,
    L1,
    NO_NORM,
    NORMS,
    Misclassification,
    PiecewiseLinearLoss,
)
from mipforest.trees import Topology

EPSILON = 1e-5


# ------------------------------------------------------------------ one regression


@given(st.integers(0, 10**6), st.sampled_from([0.05, 1.0, 30.0]))
@settings(max_examples=15)
def test_l1_regression_satisfies_the_optimality_conditions(seed, C):
    data = random_data(seed, n=30, p=4)
    split = logistic_split(data.X, data.sign, C, L1)
    pull = C * data.sign * expit(-data.sign * split.scores(data.X))
    slope = data.X.T @ pull
    tolerance = 1e-5 * C * data.n
    assert abs(pull.sum()) <= tolerance  # the intercept is free
    used = split.w != 0
    np.testing.assert_allclose(slope[used], np.sign(split.w[used]), atol=tolerance)
    assert (np.abs(slope[~used]) <= 1 + tolerance).all()


@given(st.integers(0, 10**6), st.sampled_from([0.05, 1.0, 30.0]))
@settings(max_examples=15)
def test_l2_regression_is_scikit_learns(seed, C):
    data = random_data(seed, n=30, p=3)
    split = logistic_split(data.X, data.sign, C, HALF_SQUARED_L2)
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(data.X, data.sign)
    value = logistic_value(theirs.coef_[0], theirs.intercept_[0], data.X, data.sign, C, HALF_SQUARED_L2)
    assert split.value == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(split.w, theirs.coef_[0], atol=1e-3 * max(1, np.abs(split.w).max()))


def test_separable_classes_without_a_norm_end_somewhere_good():
    X, sign = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    split = logistic_split(X, sign, 1.0, NO_NORM)
    assert np.isfinite(split.w).all()
    assert split.value < 1e-3


# ------------------------------------------------------------------ norms and losses


@given(st.sampled_from(sorted(NORMS)), st.integers(0, 10**6))
def test_norms_bound_products_by_their_dual(name, seed):
    rng, norm = np.random.default_rng(seed), NORMS[name]
    w, X = rng.normal(size=3) * 10.0 ** rng.integers(-2, 3), rng.normal(size=(5, 3))
    charge = norm.value(w)
    radius = float(norm.radius(np.array([charge]))[0])
    assert (np.abs(X @ w) <= radius * norm.dual(X) * (1 + 1e-12)).all()
    parts = np.concatenate([np.maximum(w, 0), np.maximum(-w, 0)])
    value, gradient = norm.of_parts(parts)
    assert value == pytest.approx(charge)
    step = 1e-6 * rng.random(6)
    assert norm.of_parts(parts + step)[0] - value == pytest.approx(gradient @ step, rel=1e-3, abs=1e-10)


@pytest.mark.parametrize("loss", [HINGE, Misclassification(0.2)], ids=["hinge", "misclassification"])
def test_losses_vanish_from_their_margin_on(loss):
    sign = np.array([1.0, -1.0])
    assert loss.values(loss.flat_from * sign, sign).tolist() == [0, 0]
    assert (loss.values(-sign, sign) > 0).all()


def test_a_score_of_zero_predicts_the_second_class():
    assert Misclassification(0.1).values(np.zeros(2), np.array([1.0, -1.0])).tolist() == [0.0, 1.0]


# ------------------------------------------------------------------ node problems


@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 100.0]))
@settings(max_examples=20)
def test_a_node_with_l1_and_tangents_equals_scipys_lp(seed, C):
    from independent_lp import V0, node_lp

    rng, data = np.random.default_rng(seed), random_data(seed, n=12, p=2)
    surrogate = PiecewiseLinearLoss(*np.array(V0).T)
    scores = data.X @ rng.normal(size=2)
    right = (None, scores > np.median(scores), rng.random(12) < 0.5)[seed % 3]
    split = margin_split(data.X, data.sign, C, right=right, epsilon=1e-3, loss=surrogate, norm=L1)
    expected = node_lp(data.X, data.sign, C, V0, right, 1e-3)
    if split is None:
        assert expected == np.inf
        return
    assert split.value == pytest.approx(expected, rel=1e-6, abs=1e-6)
    if right is not None:
        np.testing.assert_array_equal(split.scores(data.X) >= 0, right)


def test_nodes_that_count_errors_keep_sides_at_least_norm():
    data = random_data(2, n=20, p=2)
    nodes = NodeProblems(np.full(3, 2.0), 0.1, loss=Misclassification(0.1), norm=L1)
    free = nodes.split(1, data.X, data.sign, data.weights)
    errors = int(((free.scores(data.X) >= 0) != (data.sign > 0)).sum())
    assert free.value == pytest.approx(np.abs(free.w).sum() + 2.0 * errors)
    assert same(free.value, nodes.value(1, free.w, free.b, data.X, data.sign, data.weights))
    right = data.X[:, 0] > 0.5
    kept = nodes.split(0, data.X, data.sign, data.weights, right=right)
    scores = kept.scores(data.X)
    np.testing.assert_array_equal(scores >= 0, right)
    gap = data.X[right, 0].min() - data.X[~right, 0].max()
    assert np.abs(kept.w).sum() <= 0.1 / gap * (1 + 1e-6)  # x0 alone would need this much


def test_uncharged_nodes_are_fitted_and_cost_nothing():
    data = random_data(2, n=20, p=2)
    nodes = NodeProblems(np.ones(3), EPSILON, uncharged=frozenset({0}))
    top, below = (nodes.split(t, data.X, data.sign, data.weights) for t in (0, 1))
    assert (top.value, top.w.tolist()) == (0.0, below.w.tolist())
    assert nodes.value(0, top.w, top.b, data.X, data.sign, data.weights) == 0.0
    assert below.value > 0


# ------------------------------------------------------------------ whole trees


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([None, 1]))
@settings(max_examples=8)
def test_each_node_of_the_greedy_tree_is_a_regression_of_what_reaches_it(seed, depth, budget):
    data = random_data(seed, n=30, p=3)
    n_branches = 2**depth - 1
    budgets = None if budget is None else np.full(n_branches, budget)
    nodes = NodeProblems(np.full(n_branches, 2.0), EPSILON, budget=budgets, norm=L1)
    tree = greedy_logistic(data, Topology(depth), nodes)
    here = tree.decision_path(data.X)
    scores = tree.scores(data.X)
    for t in tree.topology.branches:
        X, sign = data.X[here[:, t]], data.sign[here[:, t]]
        if t in tree.topology.upper_branches:
            reached = scores[here[:, t], t]
            assert ((reached >= 0) | (reached <= -EPSILON + 1e-8)).all()
        if len(np.unique(sign)) < 2:
            assert tree.is_trivial(t)
            assert len(sign) == 0 or np.sign(tree.b[t]) == sign[0]
        elif budget is None:
            np.testing.assert_allclose(tree.w[t], logistic_split(X, sign, 2.0, L1).w, atol=1e-9)
        else:
            assert (tree.w[t] != 0).sum() <= budget


def test_the_greedy_tree_is_deterministic():
    data, nodes = random_data(3, 25, 3), NodeProblems(np.ones(3), EPSILON, norm=L1)
    first, second = (greedy_logistic(data, Topology(2), nodes) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    np.testing.assert_array_equal(first.b, second.b)
