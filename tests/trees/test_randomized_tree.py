"""A tree with random splits: probabilities, its limit, and what is written of it."""

from dataclasses import replace

import numpy as np
import pytest

from mipforest.trees import (
    RandomizedTree,
    Tree,
    TreeFileError,
    from_dict,
    plot_explanation,
    to_dict,
    to_python,
)

STEP = 1e-6


def randomized(rng, *, depth=2, p=3, K=3, gamma=6.0, **parts):
    leaves = 2**depth
    C = rng.random((leaves, K))
    C /= C.sum(axis=1, keepdims=True)
    shape = {"w": rng.normal(size=(leaves - 1, p)), "b": rng.normal(size=leaves - 1)}
    classes = tuple(f"c{k}" for k in range(K))
    given = {"leaf_value": C.argmax(axis=1), "classes": classes, "leaf_proba": C, **shape, **parts}
    return RandomizedTree(depth=depth, gamma=gamma, **given)


def regression(rng, **parts):
    given = {
        "leaf_value": rng.normal(size=4),
        "leaf_w": rng.normal(size=(4, 3)),
        "classes": (),
        "leaf_proba": None,
    }
    return randomized(rng, **{**given, **parts})


def test_rows_of_probabilities_sum_to_one_and_the_prediction_is_the_first_largest():
    rng = np.random.default_rng(0)
    for gamma in (1.0, 512.0, 1e4):
        tree, X = randomized(rng, gamma=gamma), rng.normal(size=(50, 3))
        assert np.abs(tree.leaf_probabilities(X).sum(axis=1) - 1).max() < 1e-12
        assert np.abs(tree.predict_proba(X).sum(axis=1) - 1).max() < 1e-12
        assert (tree.predict(X) == tree.predict_proba(X).argmax(axis=1)).all()
    certain = replace(tree, leaf_proba=np.full((4, 3), 1 / 3))
    assert (certain.predict(X) == 0).all()


def test_for_large_gamma_it_is_the_tree_with_certain_splits():
    rng = np.random.default_rng(1)
    tree, X = randomized(rng), rng.normal(size=(200, 3))
    tree = replace(tree, leaf_proba=np.eye(3)[tree.leaf_value])
    X = X[(np.abs(tree.scores(X)) > 1e-3).all(axis=1)]
    hard = np.eye(4)[tree.apply(X) - 3]
    gaps = [np.abs(replace(tree, gamma=g).leaf_probabilities(X) - hard).max() for g in (1e2, 1e4, 1e6)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-12
    plain = Tree(depth=2, w=tree.w, b=tree.b, leaf_value=tree.leaf_value, classes=tree.classes)
    assert (replace(tree, gamma=1e6).predict(X) == plain.predict(X)).all()


def test_derivatives_are_central_differences():
    rng = np.random.default_rng(2)
    for tree in (regression(rng), regression(rng, leaf_w=None)):
        X = rng.normal(size=(5, 3))
        found = tree.derivatives(X)
        for j in range(3):
            step = STEP * np.eye(3)[j]
            expected = (tree.predict(X + step) - tree.predict(X - step)) / (2 * STEP)
            assert found[:, j] == pytest.approx(expected, rel=1e-6, abs=1e-8)
    with pytest.raises(ValueError, match="this one predicts classes"):
        randomized(rng).derivatives(X)


def test_importances_are_sums_and_maxima_and_zero_for_features_without_use():
    rng = np.random.default_rng(3)
    tree = randomized(rng)
    w = np.array(tree.w)
    w[:, 1] = 0.0
    tree = replace(tree, w=w)
    total, largest = tree.importances(), tree.importances("max")
    assert (largest <= total).all()
    assert (total <= 3 * largest).all()
    assert total[1] == largest[1] == 0
    assert total == pytest.approx(3 * np.abs(w).sum(axis=0))
    with pytest.raises(ValueError, match="choose 'sum' or 'max'"):
        tree.importances("mean")


def test_it_is_written_and_read_back_exactly_and_refused_where_malformed():
    rng = np.random.default_rng(4)
    for tree in (randomized(rng), regression(rng)):
        again = from_dict(to_dict(tree))
        assert isinstance(again, RandomizedTree)
        X = rng.normal(size=(9, 3))
        assert (again.predict(X) == tree.predict(X)).all()
        assert again.gamma == tree.gamma
    content = to_dict(randomized(rng))
    for broken in ({"gamma": "steep"}, {"gamma": True}, {"gamma": -1.0}, {"leaf_proba": [[2.0, 0, 0]] * 4}):
        with pytest.raises(TreeFileError):
            from_dict({**content, **broken})
    with pytest.raises(ValueError, match="no chain of conditions"):
        to_python(randomized(rng))


def test_what_is_no_randomised_tree_is_refused():
    rng = np.random.default_rng(5)
    with pytest.raises(ValueError, match="gamma must be"):
        randomized(rng, gamma=0.0)
    with pytest.raises(ValueError, match=r"sum to 1, but that of leaf 1 has the sum 1\.5"):
        randomized(
            rng, K=2, leaf_value=np.zeros(4), leaf_proba=np.array([[0.5, 0.5], [1, 0.5], [0, 1], [1, 0]])
        )
    with pytest.raises(ValueError, match="no classes"):
        regression(rng, leaf_proba=np.eye(4))


def test_contributions_sum_to_the_expected_score_above_that_of_the_reference():
    rng = np.random.default_rng(11)
    tree, X, reference = randomized(rng), rng.normal(size=(6, 3)), rng.normal(size=3)
    tree = tree.with_scaling(rng.normal(size=3), rng.uniform(0.5, 2, 3))
    found = tree.contributions(X, reference)
    scores, of_reference = tree.scores(X), tree.scores(reference[None, :])
    left = 1 / (1 + np.exp(tree.gamma * scores[:, 0]))
    reach = np.column_stack([left, 1 - left])
    apart = scores - of_reference
    assert found[:, 0].sum(axis=1) == pytest.approx(apart[:, 0])
    assert found[:, 1].sum(axis=1) == pytest.approx((reach * apart[:, 1:]).sum(axis=1))


def test_explanations_are_drawn_with_one_axis_per_feature_that_moves_something():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(9, 3))
    numbers = regression(rng, levels=(None, None, ("city", "Pisa")))
    (axes,) = plot_explanation(numbers, X, rng.normal(size=9)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x0", "x1"]
    lines = np.array([line.get_ydata() for line in axes.lines[:9]])
    assert lines == pytest.approx(numbers.derivatives(X)[:, :2])
    assert len({line.get_color() for line in axes.lines[:9]}) > 1
    classes = randomized(rng)
    first, second = plot_explanation(classes, X, max_features=1).axes
    assert len(first.get_xticks()) == len(second.get_xticks()) == 1
    silent = randomized(rng, w=np.zeros((3, 3)))
    with pytest.raises(ValueError, match="uses no feature that could be shown"):
        plot_explanation(silent, X)
