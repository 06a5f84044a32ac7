"""Probabilities and confidences of logistic trees."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from tolerance import same
from tree_strategies import random_tree, samples, trees

from mipforest.trees import Tree

integers = st.integers(-3, 3).map(float)


def sigmoid(score):
    """By hand, without overflow."""
    return 1 / (1 + math.exp(-score)) if score >= 0 else math.exp(score) / (1 + math.exp(score))


def path_scores(tree, x):
    """Scores at the branch nodes that one sample passes, straight from the definition."""
    node, scores = 0, []
    for _ in range(tree.depth):
        scores.append(sum(w * value for w, value in zip(tree.w[node], x, strict=True)) + tree.b[node])
        node = 2 * node + 1 if scores[-1] < 0 else 2 * node + 2
    return scores


@settings(deadline=None, max_examples=25)
@given(st.data(), trees(scaled=False, logistic=True, elements=integers))
def test_probabilities_and_confidences_are_sigmoids_of_the_path(data, tree):
    X = data.draw(samples(tree.n_features))
    proba, confidences = tree.predict_proba(X), tree.path_confidences(X)
    assert proba.shape == (len(X), 2)
    assert confidences.shape == (len(X), tree.depth)
    for row, path, x in zip(proba, confidences, X, strict=True):
        scores = path_scores(tree, x)
        assert row.tolist() == pytest.approx([sigmoid(-scores[-1]), sigmoid(scores[-1])], rel=1e-12)
        assert path.tolist() == pytest.approx([sigmoid(abs(score)) for score in scores], rel=1e-12)
    np.testing.assert_allclose(confidences[:, -1], proba.max(axis=1, initial=0.5), rtol=1e-15)


@settings(deadline=None, max_examples=25)
@given(st.data(), trees(logistic=True))
def test_the_larger_probability_is_that_of_the_prediction(data, tree):
    X = data.draw(samples(tree.n_features))
    proba = tree.predict_proba(X)
    np.testing.assert_array_equal(proba.argmax(axis=1), tree.predict(X))
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=2.3e-16)
    assert ((proba >= 0) & (proba <= 1)).all()


@pytest.mark.parametrize("score", [0.0, -0.0, 1e-300, -1e-300, 1e-17, -1e-17, 1e-15, -1e-15, 40.0, -800.0])
def test_scores_about_zero_and_far_from_it_keep_their_class(score):
    tree = Tree(1, [[1.0]], [0.0], [0, 1], classes=("no", "yes"), logistic=True)
    (proba,) = tree.predict_proba([[score]])
    assert proba.argmax() == tree.predict([[score]])[0] == int(score >= 0)
    assert proba.sum() == 1.0
    assert proba.tolist() == pytest.approx([sigmoid(-score), sigmoid(score)], rel=1e-15)


@settings(deadline=None, max_examples=25)
@given(st.data(), trees(logistic=True, elements=integers), st.integers(0, 1000))
def test_probabilities_do_not_depend_on_the_scaling_they_are_written_in(data, tree, seed):
    X = data.draw(samples(tree.n_features))
    proba = tree.predict_proba(X)
    scaled = X if tree.offset is None else (X - tree.offset) / tree.scale
    plain = tree.unscaled()
    assert same(plain.predict_proba(scaled), proba)
    if tree.offset is not None:
        assert same(plain.with_scaling(tree.offset, tree.scale).predict_proba(X), proba)
    rng = np.random.default_rng(seed)
    again = tree.rescaled(rng.normal(size=tree.n_features), rng.uniform(0.1, 10, size=tree.n_features))
    assert again.logistic
    scores = tree.scores(X)
    # Scores at zero up to rounding may change sides; about them, so does the path.
    clear = (np.abs(scores) > 1e-6).all(axis=1) | (scores == again.scores(X)).all(axis=1)
    np.testing.assert_allclose(again.predict_proba(X[clear]), proba[clear], rtol=0, atol=1e-7)
    np.testing.assert_allclose(
        again.path_confidences(X[clear]), tree.path_confidences(X[clear]), rtol=0, atol=1e-7
    )


def test_a_logistic_regression_is_a_tree_of_depth_one():
    X, y = load_breast_cancer(return_X_y=True)
    offset, scale = X.mean(axis=0), X.std(axis=0)
    model = LogisticRegression(C=0.5).fit((X - offset) / scale, y)
    tree = Tree(
        1,
        model.coef_,
        model.intercept_,
        [0, 1],
        classes=("0", "1"),
        offset=offset,
        scale=scale,
        logistic=True,
    )
    expected = model.predict_proba((X - offset) / scale)
    np.testing.assert_allclose(tree.predict_proba(X), expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(tree.predict(X), model.predict((X - offset) / scale))
    np.testing.assert_allclose(tree.path_confidences(X)[:, 0], expected.max(axis=1), rtol=1e-12)


def test_nodes_that_no_sample_passes_have_no_say():
    """Left of the root, everything goes right: only the root and node 1 count."""
    tree = Tree(
        2,
        [[1.0], [0.0], [5.0]],
        [0.0, 2.0, 7.0],
        [0, 1, 0, 1],
        classes=("no", "yes"),
        logistic=True,
    )
    assert tree.predict_proba([[-3.0]])[0, 1] == pytest.approx(sigmoid(2))
    assert tree.path_confidences([[-3.0]])[0].tolist() == pytest.approx([sigmoid(3), sigmoid(2)])
    assert tree.path_confidences([[-3.0]]).prod(axis=1) == pytest.approx([sigmoid(3) * sigmoid(2)])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [({}, "use predict for its classes"), ({"classes": ()}, "use predict for its values")],
)
def test_other_trees_have_no_probabilities(arguments, word):
    tree = random_tree(2, 2, **arguments)
    for method in (tree.predict_proba, tree.path_confidences):
        with pytest.raises(ValueError, match=word):
            method(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ()}, "has no classes; leave logistic out"),
        ({"classes": ("a", "b", "c")}, "has the 3 classes a, b, c; leave logistic out"),
        ({"leaf_value": [0, 1, 0, 0]}, r"right one class 1 \(b\), but leaf_value\[3\], a right leaf, is 0"),
        (
            {"leaf_value": [0, 1, 1, 0]},
            r"left leaf predicts class 0 \(a\) .*leaf_value\[2\], a left leaf, is 1",
        ),
    ],
)
def test_a_logistic_tree_has_two_classes_by_side(change, message):
    parts = {"classes": ("a", "b"), "leaf_value": [0, 1, 0, 1]} | change
    with pytest.raises(ValueError, match=message):
        Tree(2, np.ones((3, 2)), np.zeros(3), logistic=True, **parts)


def test_a_logistic_tree_says_so_and_stays_one():
    tree = random_tree(2, 3, logistic=True)
    assert repr(tree) == "Tree(depth=2, 3 features, 2 classes, logistic, 3 splits)"
    other = tree.with_scaling(np.zeros(3), np.ones(3))
    assert other.logistic
    assert other.unscaled().logistic
    assert not replace(tree, logistic=False).logistic
