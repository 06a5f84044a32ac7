import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from tree_strategies import random_tree

from mipforest.trees import node_statistics


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
