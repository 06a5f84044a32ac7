from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance import same
from tree_strategies import random_tree, samples, trees

from mipforest.trees import Tree

integers = st.integers(-3, 3).map(float)


def route(tree, x, node=0):
    """The nodes that one sample passes, one at a time, straight from the definition."""
    if node >= 2**tree.depth - 1:
        return [node]
    score = sum(w * value for w, value in zip(tree.w[node], x, strict=True)) + tree.b[node]
    return [node, *route(tree, x, 2 * node + 1 if score < 0 else 2 * node + 2)]


@settings(deadline=None, max_examples=25)
@given(st.data(), trees(max_depth=5, scaled=False, elements=integers))
def test_routing_agrees_with_the_definition(data, tree):
    X = data.draw(samples(tree.n_features))
    expected = [route(tree, x) for x in X]
    leaves = tree.apply(X)
    assert leaves.tolist() == [path[-1] for path in expected]
    assert ((tree.apply(X) - 1) // 2).tolist() == [path[-2] for path in expected]
    assert [np.flatnonzero(row).tolist() for row in tree.decision_path(X)] == expected
    # exact: values of leaves, as they are
    assert tree.predict(X).tolist() == [tree.leaf_value[leaf - 2**tree.depth + 1] for leaf in leaves]
    assert tree.predict_labels(X).tolist() == [tree.classes[k] for k in tree.predict(X)]
    assert (leaves.dtype, leaves.shape) == (np.int64, (len(X),))


def test_a_score_of_zero_goes_right():
    tree = Tree(1, [[2.0]], [-1.0], [0, 1], classes=("left", "right"))
    below = np.nextafter(0.5, 0)
    assert tree.predict_labels([[below], [0.5]]).tolist() == ["left", "right"]


@settings(deadline=None, max_examples=25)
@given(st.data(), trees(scaled=True, elements=integers))
def test_scaling_is_exactly_subtract_then_divide(data, tree):
    X = data.draw(samples(tree.n_features))
    scaled = (X - tree.offset) / tree.scale
    plain = tree.unscaled()
    assert plain.offset is None
    assert plain.scale is None
    assert same(tree.scores(X), plain.scores(scaled))
    np.testing.assert_array_equal(tree.apply(X), plain.apply(scaled))
    again = plain.with_scaling(tree.offset, tree.scale)
    np.testing.assert_array_equal(again.scores(X), tree.scores(X))  # exact: a copy


@settings(deadline=None, max_examples=25)
@given(st.data(), trees(elements=integers))
def test_original_units_give_the_same_scores(data, tree):
    X = data.draw(samples(tree.n_features))
    w, b = tree.original_units()
    size = np.abs(tree.w).sum(axis=1) * 7e3 + 10
    assert (np.abs(X @ w.T + b - tree.scores(X)) <= 1e-12 * size).all()


def test_features_used_and_trivial_nodes():
    w = np.zeros((7, 4))
    w[0, 2], w[1, [0, 3]], w[6, 2] = 1.0, (0.5, -0.01), 1e-9
    tree = Tree(3, w, np.ones(7), [0, 1] * 4, classes=("a", "b"))
    assert tree.features_used() == (((2,), (0, 3), (), (), (), (), (2,)), (0, 2, 3))
    assert tree.features_used(tolerance=0.1).per_node == ((2,), (0,), (), (), (), (), ())
    assert tree.features_used(tolerance=0.1).overall == (0, 2)
    assert [t for t in tree.topology.branches if tree.is_trivial(t)] == [2, 3, 4, 5]
    assert tree.n_splits == 3


def test_trivial_nodes_send_all_to_the_side_of_their_intercept():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for b, leaf in ((0.0, 2), (1.0, 2), (-1.0, 1)):
        assert set(Tree(1, np.zeros((1, 2)), [b], [0.0, 1.0]).apply(X)) == {leaf}


def test_regression_trees_predict_their_values():
    tree = Tree(1, [[1.0, 0.0]], [0.0], [-2.5, 7.25])
    assert tree.predict([[-1, 0], [1, 0]]).tolist() == [-2.5, 7.25]
    assert not tree.is_classifier
    with pytest.raises(ValueError, match="use predict"):
        tree.predict_labels([[0, 0]])


@settings(deadline=None, max_examples=25)
@given(st.data(), trees(linear=True, elements=integers))
def test_linear_leaves_predict_from_scaled_features(data, tree):
    X = data.draw(samples(tree.n_features))
    scaled = X if tree.offset is None else (X - tree.offset) / tree.scale
    leaf = tree.apply(X) - tree.topology.n_branches
    expected = [tree.leaf_value[k] + tree.leaf_w[k] @ x for k, x in zip(leaf, scaled, strict=True)]
    predicted = tree.predict(X)
    size = 10 + 1e4 * np.abs(tree.leaf_w).sum()
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-13 * size)
    np.testing.assert_array_equal(tree.unscaled().predict(scaled), predicted)
    coefficients, constants = tree.leaves_in_original_units()
    original = (coefficients[leaf] * X).sum(axis=1) + constants[leaf]
    np.testing.assert_allclose(original, predicted, rtol=0, atol=1e-12 * size)
    if tree.offset is not None:
        np.testing.assert_array_equal(
            tree.unscaled().with_scaling(tree.offset, tree.scale).predict(X), predicted
        )


def test_leaves_without_coefficients_are_constant():
    tree = Tree(1, [[1.0, 0.0]], [0.0], [-2.5, 7.25], offset=[1, 1], scale=[2, 3])
    coefficients, constants = tree.leaves_in_original_units()
    assert coefficients.tolist() == [[0, 0], [0, 0]]
    assert constants.tolist() == [-2.5, 7.25]
    zero = replace(tree, leaf_w=np.zeros((2, 2)))
    assert zero.has_linear_leaves
    assert not tree.has_linear_leaves
    X = np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_array_equal(zero.predict(X), tree.predict(X))
    with pytest.raises(ValueError, match="predict classes"):
        random_tree(1, 2).leaves_in_original_units()


@settings(deadline=None, max_examples=25)
@given(st.data(), trees() | trees(linear=True), st.integers(0, 1000))
def test_a_rescaled_tree_is_the_same_function(data, tree, seed):
    X = data.draw(samples(tree.n_features))
    rng = np.random.default_rng(seed)
    offset, scale = rng.normal(size=tree.n_features), rng.uniform(0.1, 10, size=tree.n_features)
    again = tree.rescaled(offset, scale)
    assert again.offset.tolist() == offset.tolist()
    span = np.abs(X).max(initial=1) + 20
    if tree.offset is not None:
        span = (span + np.abs(tree.offset).max()) / tree.scale.min()
    sizes = span * np.abs(tree.w).sum(axis=1) + np.abs(tree.b)
    scores = tree.scores(X)
    assert (np.abs(again.scores(X) - scores) <= 1e-13 * sizes).all()
    clear = (np.abs(scores) > 1e-13 * sizes).all(axis=1) | (scores == again.scores(X)).all(axis=1)
    magnitude = np.abs(tree.leaf_value).max()
    if tree.leaf_w is not None:
        magnitude += span * np.abs(tree.leaf_w).sum(axis=1).max()
    difference = again.predict(X[clear]) - tree.predict(X[clear])
    assert (np.abs(difference) <= 1e-13 * magnitude).all()


def test_features_of_linear_leaves_are_used_overall():
    tree = Tree(1, [[1.0, 0, 0]], [0.0], [1.0, 2.0], leaf_w=[[0, 0, 0.5], [0, 0, 0]])
    assert tree.features_used() == (((0,),), (0, 2))
    assert tree.features_used(tolerance=0.6).overall == (0,)


def test_data_frames_are_matched_by_name():
    tree = random_tree(2, 3, features=("age", "bmi", "chol"))
    X = np.random.default_rng(1).normal(size=(10, 3))
    frame = pd.DataFrame(X, columns=["age", "bmi", "chol"])
    shuffled = frame.assign(id=range(10))[["chol", "id", "age", "bmi"]]
    assert same(tree.scores(shuffled), tree.scores(X))
    with pytest.raises(
        ValueError, match=r"lacks 1 of the tree's 3 features: bmi; is 'bmi' the column 'bmi2'"
    ):
        tree.predict(frame.rename(columns={"bmi": "bmi2"}))
    with pytest.raises(ValueError, match="more than one column named 'bmi'"):
        tree.predict(pd.DataFrame(X, columns=["age", "bmi", "bmi"]).assign(chol=1.0))
    nameless = random_tree(2, 3)
    assert same(nameless.scores(frame), nameless.scores(X))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((5, 2)), r"X has 2 features \(shape \(5, 2\)\), the tree has 3"),
        (np.zeros(3), r"shape \(n, 3\), got \(3,\)"),
        ([[1, 2, np.nan]], r"nan in row 0, feature 'chol'"),
        ([[1, np.inf, 2]], "inf in row 0, feature 'bmi'"),
        ([["a", "b", "c"]], "table of numbers"),
    ],
)
def test_samples_that_do_not_fit_are_refused(X, message):
    tree = random_tree(2, 3, features=("age", "bmi", "chol"))
    with pytest.raises(ValueError, match=message):
        tree.apply(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 0}, "depth must be 1 to 10"),
        ({"depth": 3}, r"w must have shape \(7, p\) at depth 3, p >= 1, got \(3, 2\)"),
        ({"w": np.zeros((3, 0))}, r"got \(3, 0\)"),
        ({"b": np.zeros(2)}, r"b must have shape \(3,\).*got \(2,\)"),
        ({"leaf_value": [0, 1]}, r"leaf_value must have shape \(4,\).*got \(2,\)"),
        ({"w": np.full((3, 2), np.nan)}, r"w must be finite, but its entry \(0, 0\) is nan"),
        ({"b": [0, np.inf, 0]}, r"b must be finite, but its entry \(1,\) is inf"),
        ({"leaf_value": [0, 1, 0, 2]}, "class numbers, 0 to 1 .* holds 2"),
        ({"leaf_value": [0, 1, 0, 0.5]}, "class numbers, 0 to 1 .* holds 0.5"),
        ({"leaf_value": [0, 1, 0, -1e300]}, "class numbers, 0 to 1 .* holds -1e.300"),
        ({"features": ("age",)}, r"1 feature names for w of shape \(3, 2\)"),
        ({"features": ("age", "age")}, "'age' comes more than once"),
        ({"classes": ("a", "a")}, "'a' comes more than once"),
        ({"offset": [0, 0]}, "come together"),
        ({"offset": [0, 0], "scale": [1, 0]}, "scale must be above 0, but feature 'x1' has 0"),
        ({"offset": [0, 0], "scale": [1, 2, 3]}, r"scale must have shape \(2,\).*got \(3,\)"),
        ({"leaf_w": np.zeros((4, 2))}, "leaf_w makes leaves linear.*classes a, b; leave leaf_w out"),
        ({"leaf_w": np.zeros((2, 2)), "classes": ()}, r"leaf_w must have shape \(4, 2\).*got \(2, 2\)"),
        ({"leaf_w": np.full((4, 2), np.nan), "classes": ()}, "leaf_w must be finite"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    parts = {
        "depth": 2,
        "w": np.zeros((3, 2)),
        "b": np.zeros(3),
        "leaf_value": [0, 1, 0, 1],
        "classes": ("a", "b"),
    }
    with pytest.raises(ValueError, match=message):
        Tree(**(parts | change))


def test_a_tree_keeps_its_own_read_only_arrays():
    w = np.ones((1, 2))
    tree = Tree(1, w, [0.0], [0, 1], classes=("a", "b"))
    w[:] = 5
    assert tree.w.tolist() == [[1.0, 1.0]]
    assert tree.leaf_value.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        tree.w[0, 0] = 2
    assert repr(tree) == "Tree(depth=1, 2 features, 2 classes, 1 splits)"
    linear = Tree(1, w, [0.0], [0, 1], leaf_w=w.repeat(2, axis=0))
    assert repr(linear) == "Tree(depth=1, 2 features, regression with linear leaves, 1 splits)"
    with pytest.raises(ValueError, match="read-only"):
        linear.leaf_w[0, 0] = 2


@pytest.mark.parametrize("seed", range(5))
def test_samples_find_the_leaf_of_a_univariate_tree_that_their_scores_lead_to(seed):
    rng = np.random.default_rng(seed)
    X, w, b = rng.random((200, 4)).round(1), np.zeros((7, 4)), -rng.random(7).round(1)
    w[np.arange(7), rng.integers(0, 4, 7)] = rng.choice([0.0, 1.0, -2.0], 7)
    tree = Tree(3, w, b, np.arange(8) % 2, ("a", "b"), ("p", "q", "r", "s"))
    node, right = np.zeros(len(X), dtype=int), tree.scores(X) >= 0
    for _ in range(3):
        node = 2 * node + 1 + right[np.arange(len(X)), node]
    assert (tree.apply(X) == node).all()
    assert (tree.predict(X) == (node - 7) % 2).all()
