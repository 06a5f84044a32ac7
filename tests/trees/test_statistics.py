import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from tree_strategies import random_tree, samples, trees

from mipforest.trees import Tree, feature_influence, node_statistics, plot_tree, to_text
from mipforest.trees.text import strongest


def test_counts_are_those_of_the_samples_that_pass():
    rng = np.random.default_rng(3)
    tree = random_tree(3, 2, classes=("a", "b", "c"), leaf_value=[0, 1, 2, 0, 1, 2, 0, 1])
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, size=60)
    statistics = node_statistics(tree, X, y)
    passed = tree.decision_path(X)
    for t in range(15):
        assert statistics.samples[t] == passed[:, t].sum()
        assert statistics.class_counts[t].tolist() == [int((passed[:, t] & (y == k)).sum()) for k in range(3)]
    assert statistics.mean is None


@pytest.mark.parametrize("kind", [np.array, list, lambda names: np.array(names, dtype=object)])
def test_class_names_mean_the_same_as_their_numbers(kind):
    rng = np.random.default_rng(3)
    tree = random_tree(2, 2, classes=("1", "0"))
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, size=30)
    by_name = node_statistics(tree, X, kind([tree.classes[k] for k in y]))
    np.testing.assert_array_equal(by_name.class_counts, node_statistics(tree, X, y).class_counts)


def test_means_are_those_of_the_samples_that_pass():
    rng = np.random.default_rng(5)
    tree = random_tree(2, 2, classes=(), leaf_value=[1.0, 2.0, 3.0, 4.0])
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    statistics = node_statistics(tree, X, y)
    passed = tree.decision_path(X)
    for t in range(7):
        if passed[:, t].any():
            assert statistics.mean[t] == pytest.approx(y[passed[:, t]].mean())
        else:
            assert np.isnan(statistics.mean[t])
    assert statistics.class_counts is None


@pytest.mark.parametrize("leaf_w", [None, [[1, 0], [0, -1], [0, 0], [2, 2]]])
def test_errors_are_those_of_the_samples_that_pass(leaf_w):
    rng = np.random.default_rng(6)
    tree = random_tree(2, 2, classes=(), leaf_value=[1.0, 2.0, 3.0, 4.0], leaf_w=leaf_w)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    statistics = node_statistics(tree, X, y)
    passed, predicted = tree.decision_path(X), tree.predict(X)
    for t in np.flatnonzero(statistics.samples):
        here = passed[:, t]
        assert statistics.mse[t] == pytest.approx(mean_squared_error(y[here], predicted[here]))
        assert statistics.mae[t] == pytest.approx(mean_absolute_error(y[here], predicted[here]))
        if here.sum() > 1:
            assert statistics.r2[t] == pytest.approx(r2_score(y[here], predicted[here]))
    nothing = node_statistics(tree, np.zeros((0, 2)), [])
    assert np.isnan([nothing.mean, nothing.r2, nothing.mse, nothing.mae]).all()
    assert node_statistics(tree, X).mse is None


def test_no_samples_and_no_targets_are_fine():
    tree = random_tree(1, 2)
    assert node_statistics(tree, np.zeros((0, 2)), []).class_counts.tolist() == [[0, 0]] * 3
    statistics = node_statistics(tree, np.zeros((4, 2)))
    assert statistics.samples[0] == 4
    assert statistics.class_counts is None


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], r"y has shape \(2,\), but X has 3 samples"),
        ([0, 1, 2], "y holds 2, .* 0 to 1"),
        ([0, 1, -1], "y holds -1"),
        ([0, 1, 0.5], "y holds 0.5"),
        (["no", "yes", "yess"], "'yess', which is no class .* did you mean 'yes'"),
        ([0, 1, np.nan], "entry 2 is not"),
        (np.array([0, "no", 1], dtype=object), "y must hold numbers"),
    ],
)
def test_targets_that_do_not_fit_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        node_statistics(random_tree(1, 2), np.zeros((3, 2)), y)


integers = st.integers(-3, 3).map(float)
YES_NO = ("no", "yes")


def direct(tree, X):
    """The definition of the source, with its sums written out."""
    scaled = X if tree.offset is None else (X - tree.offset) / tree.scale
    passed = tree.decision_path(X)
    influence = np.zeros_like(tree.w)
    for t in range(len(tree.w)):
        n = passed[:, t].sum()
        if n == 0:
            continue
        for j in range(tree.n_features):
            mean = (scaled[:, j] * passed[:, t]).sum() / n
            deviation = np.sqrt((((scaled[:, j] - mean) ** 2) * passed[:, t]).sum() / n)
            influence[t, j] = tree.w[t, j] * deviation
    return influence


@settings(max_examples=25)
@given(
    st.data(), trees(elements=integers, max_depth=3) | trees(elements=integers, max_depth=3, logistic=True)
)
def test_influence_is_the_definition(data, tree):
    X = data.draw(samples(tree.n_features))
    size = 1e-9 * (1 + np.abs(tree.w).max())
    if tree.offset is not None:
        size /= tree.scale.min()
    np.testing.assert_allclose(feature_influence(tree, X), direct(tree, X), rtol=1e-9, atol=size)


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_influence_depends_neither_on_units_nor_on_the_scaling(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    tree = random_tree(2, 3, seed, logistic=True)
    influence = feature_influence(tree, X)
    offset, scale = rng.normal(size=3), rng.uniform(0.1, 10, size=3)
    np.testing.assert_allclose(feature_influence(tree.rescaled(offset, scale), X), influence, rtol=1e-9)
    in_other_units = tree.with_scaling(offset, scale)
    np.testing.assert_allclose(feature_influence(in_other_units, X * scale + offset), influence, rtol=1e-9)


def test_constant_features_and_empty_nodes_have_none():
    tree = Tree(
        2, [[1.0, 2.0], [1.0, 1.0], [3.0, -1.0]], [-0.5, 0, 0], [0, 1, 0, 1], classes=YES_NO, logistic=True
    )
    X = np.column_stack([np.full(30, 0.1), 0.4 + np.arange(30)])  # all go right
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        influence = feature_influence(tree, X)
        assert (feature_influence(tree, np.zeros((0, 2))) == 0).all()
    assert influence[1].tolist() == [0, 0]
    assert influence[:, 0].tolist() == [0, 0, 0]
    assert influence[2, 1] == pytest.approx(-np.std(np.arange(30)))


def test_data_frames_are_matched_by_name():
    tree = random_tree(2, 2, features=("a", "b"))
    X = np.random.default_rng(0).normal(size=(20, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])[["b", "a"]]
    np.testing.assert_array_equal(feature_influence(tree, frame), feature_influence(tree, X))


def test_statistics_hold_it_for_oblique_and_logistic_trees():
    X = np.random.default_rng(0).normal(size=(20, 2))
    oblique, regression = random_tree(2, 2), random_tree(1, 2, classes=(), leaf_value=[1.0, 2.0])
    univariate = Tree(1, [[1.0, 0.0]], [0.0], [0, 1], classes=YES_NO)
    logistic = Tree(1, [[1.0, 0.0]], [0.0], [0, 1], classes=YES_NO, logistic=True)
    for tree, y in ((oblique, np.zeros(20)), (oblique, None), (logistic, None), (regression, X[:, 0])):
        np.testing.assert_array_equal(node_statistics(tree, X, y).influence, feature_influence(tree, X))
    assert node_statistics(univariate, X).influence is None
    assert [tree.is_oblique for tree in (oblique, regression, univariate, logistic)] == [
        True,
        True,
        False,
        False,
    ]


def example():
    """One oblique split, and a split of one feature below it."""
    tree = Tree(
        2,
        [[2.0, -4.0, 1.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
        [0.0, 0.0, 0.0],
        [0, 1, 0, 1],
        classes=YES_NO,
        features=("age", "chol", "a constant"),
        logistic=True,
    )
    return tree, np.array([[1.0, 0, 0], [-1, 0, 0], [1, 1, 0], [-1, 1, 0]])


def test_the_strongest_come_first_with_their_sign():
    tree, X = example()
    influence = feature_influence(tree, X)[0]
    assert strongest(tree, influence, 3) == ([("age", "+2"), ("chol", "-2")], 0)
    assert strongest(tree, influence, 1) == ([("age", "+2")], 1)
    assert strongest(tree, np.zeros(3), 3) == ([], 0)


def test_text_has_a_line_per_oblique_split():
    tree, X = example()
    lines = to_text(tree, node_statistics(tree, X)).splitlines()
    assert lines[1] == "    influence: age +2, chol -2"
    assert sum("influence" in line for line in lines) == 1
    assert "    influence: age +2, 1 more" in to_text(tree, node_statistics(tree, X), max_terms=1)
    assert "influence" not in to_text(tree)


def test_the_picture_names_the_strongest_of_an_oblique_split():
    tree, X = example()
    shown = [text.get_text() for text in plot_tree(tree, X).axes[0].texts]
    position = shown.index("2 age")
    # Of equal influence, the first feature comes first; the constant moves nothing and is last.
    assert shown[position : position + 3] == ["2 age", "− 4 chol", "+ a constant"]
