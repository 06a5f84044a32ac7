import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mipforest.data import Dataset
from mipforest.heuristics.cart import cart, cart_with_margin
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology


def samples(seed, *, near_ties):
    """Random samples; with near ties, neighbours differ in the last bits of a double only."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 60)), int(rng.integers(1, 4))
    X = rng.integers(0, 6, (n, p)) / 5.0 if seed % 2 else rng.random((n, p))
    if near_ties:
        X = X + rng.integers(-2, 3, (n, p)) * 1e-9
    return X, rng


@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans(), st.integers(1, 3))
@settings(max_examples=15)
def test_routes_and_predicts_as_scikit_learn(seed, depth, near_ties, min_leaf):
    X, rng = samples(seed, near_ties=near_ties)
    y = rng.integers(0, 3, len(X))
    y[:2] = [0, 1]
    data = Dataset.from_arrays(X, y)
    tree = cart(data, Topology(depth), min_leaf=min_leaf, seed=seed)
    theirs = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=min_leaf, random_state=seed).fit(
        data.X, data.y
    )
    np.testing.assert_array_equal(tree.predict(data.X), theirs.predict(data.X))
    leaves, their_leaves = tree.apply(data.X), theirs.apply(data.X)
    assert len({*zip(leaves, their_leaves, strict=True)}) == len({*leaves}) == len({*their_leaves})
    assert all(len(used) <= 1 for used in tree.features_used().per_node)


@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
@settings(max_examples=15)
def test_regression_predicts_as_scikit_learn(seed, depth, near_ties):
    X, rng = samples(seed, near_ties=near_ties)
    data = Dataset.from_arrays(X, rng.normal(size=len(X)), task="regression")
    tree = cart(data, Topology(depth), seed=1)
    theirs = DecisionTreeRegressor(max_depth=depth, random_state=1).fit(data.X, data.y)
    assert not tree.is_classifier
    np.testing.assert_allclose(tree.predict(data.X), theirs.predict(data.X), rtol=1e-12)


def test_leaves_above_the_last_level_send_all_to_the_right():
    data = Dataset.from_arrays([[0.0], [1.0], [1.0]], [0, 1, 1])
    tree = cart(data, Topology(3))
    assert tree.n_splits == 1
    assert tree.b[1:].tolist() == [1.0] * 6
    assert tree.apply(data.X).tolist() == [10, 14, 14]


def test_the_threshold_is_halfway_between_neighbours():
    data = Dataset.from_arrays([[0.0], [2.0], [10.0]], [0, 0, 1])
    assert cart(data, Topology(1)).b[0] == pytest.approx(-0.6)


@given(seed=st.integers(0, 10**6), margin=st.floats(0.001, 0.3))
@settings(max_examples=15)
def test_splits_keep_their_margin(seed, margin):
    rng = np.random.default_rng(seed)
    data = Dataset.from_arrays(rng.random((30, 2)), np.append([0, 1], rng.integers(0, 2, 28)))
    tree = cart_with_margin(data, Topology(3), margin)
    passes = tree.decision_path(data.X)
    scores = tree.scores(data.X)
    for t in np.flatnonzero(tree.w.any(axis=1)):
        here = scores[passes[:, t], t]
        assert here[here >= 0].min() - here[here < 0].max() >= margin * (1 - 1e-9)


def test_where_time_is_short_some_of_the_samples_grow_the_tree(monkeypatch):
    monkeypatch.setattr("mipforest.heuristics.cart.FEW", 50)
    X, _ = samples(4, near_ties=False)
    X = np.repeat(X, 20, axis=0)
    data = Dataset.from_arrays(X, np.arange(len(X)) // 20 % 2)
    grown = DecisionTreeClassifier(max_depth=2, random_state=0)
    every = -(-data.n // 50)
    short = cart(data, Topology(2), budget=TimeBudget(1e-9))
    few = Dataset.from_arrays(data.X[::every], data.y[::every], scaling="none")
    np.testing.assert_array_equal(short.predict(few.X), grown.fit(few.X, few.y).predict(few.X))
    long = cart(data, Topology(2), budget=TimeBudget(1e9))
    np.testing.assert_array_equal(long.predict(data.X), grown.fit(data.X, data.y).predict(data.X))
