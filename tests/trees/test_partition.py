import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tree_strategies import random_tree, trees

from mipforest.trees import Tree, leaf_regions, plot_partition, save_figure
from mipforest.trees.plot import value_rgb
from mipforest.trees.reachable import chord, cut, rectangle

CLASSES = ("no", "yes")


def area(polygon):
    x, y = polygon.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def lines(figure):
    """The solid (split) and dashed (margin) lines of a figure, as end points."""
    drawn = figure.axes[0].lines
    solid = [line.get_xydata() for line in drawn if line.get_linestyle() == "-"]
    return solid, [line.get_xydata() for line in drawn if line.get_linestyle() != "-"]


@settings(deadline=None, max_examples=25)
@given(trees(max_depth=5, n_features=2, elements=st.integers(-3, 3).map(float)))
def test_leaf_regions_tile_the_rectangle_and_agree_with_apply(tree):
    regions = leaf_regions(tree, [-4, -3], [4, 3])
    assert sum(area(polygon) for polygon in regions.values()) == pytest.approx(48)
    for leaf, polygon in regions.items():
        if area(polygon) > 1e-6:
            assert tree.apply(polygon.mean(axis=0)[None, :]) == [leaf]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_a_cut_splits_the_area_along_its_chord(seed):
    rng = np.random.default_rng(seed)
    polygon = rectangle(np.zeros(2), rng.uniform(1, 3, size=2))
    for _ in range(3):
        normal, constant = rng.normal(size=2), rng.normal()
        left, right = cut(polygon, -normal, -constant), cut(polygon, normal, constant)
        pieces = [piece for piece in (left, right) if len(piece)]
        assert sum(map(area, pieces)) == pytest.approx(area(polygon))
        ends = chord(polygon, normal, constant)
        assert (ends is not None) == (len(pieces) == 2)
        if ends is not None:
            np.testing.assert_allclose(ends @ normal + constant, 0, atol=1e-9)
        polygon = pieces[0]


def test_cuts_through_corners_and_along_sides():
    square = rectangle(np.zeros(2), np.ones(2))
    diagonal = chord(square, np.array([1.0, -1.0]), 0.0)
    assert {tuple(end) for end in diagonal} == {(0.0, 0.0), (1.0, 1.0)}
    assert area(cut(square, np.array([1.0, -1.0]), 0.0)) == 0.5
    assert len(cut(square, np.array([-1.0, 0.0]), 0.0)) == 0
    assert area(cut(square, np.array([1.0, 0.0]), 0.0)) == 1.0
    assert chord(square, np.array([1.0, 0.0]), 1.0) is None


def test_splits_are_clipped_to_their_cells_and_margins_belong_to_last_splits():
    tree = Tree(
        2, [[1, 0], [0, 10], [0, 0]], [-0.5, -3, 1], [0, 1, 0, 1], classes=CLASSES, features=("a", "b")
    )
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    solid, dashed = lines(plot_partition(tree, X, [0, 1]))
    assert len(solid) == 2
    root, below = solid
    np.testing.assert_allclose(np.sort(root, axis=0), [[0.5, -0.05], [0.5, 1.05]])
    np.testing.assert_allclose(np.sort(below, axis=0), [[-0.05, 0.3], [0.5, 0.3]])
    np.testing.assert_allclose(sorted(line[0, 1] for line in dashed), [0.2, 0.4])
    assert lines(plot_partition(tree, X, [0, 1], margins=False))[1] == []


@settings(deadline=None, max_examples=15)
@given(trees(max_depth=3, n_features=2, scaled=True, elements=st.integers(-3, 3).map(float)))
def test_drawn_lines_have_the_scores_they_stand_for(tree):
    assume(tree.n_splits)
    X = np.random.default_rng(0).uniform(-3, 3, size=(30, 2))
    solid, dashed = lines(plot_partition(tree, X, tree.predict(X)))
    for group, score in ((solid, 0.0), (dashed, 1.0)):
        for ends in group:
            assert np.abs(np.abs(tree.scores(ends)) - score).max(axis=0).min() < 1e-6


def test_names_and_legend(tmp_path):
    tree = random_tree(2, 2, features=("$length$", "width"), classes=("_setosa", "other"))
    X = np.random.default_rng(0).normal(size=(50, 2))
    figure = plot_partition(tree, X, tree.predict_labels(X))
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("$length$", "width")
    assert [text.get_text() for text in axes.get_legend().get_texts()][:3] == ["_setosa", "other", "split"]
    assert "n0" in [text.get_text() for text in axes.texts]
    for name in ("first.svg", "second.svg"):
        save_figure(plot_partition(tree, X, tree.predict_labels(X)), tmp_path / name)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_regression_and_constant_features_and_trees_without_split():
    X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    regression = Tree(1, [[1.0, 0.0]], [-0.5], [1.0, 2.0])
    shown = [
        text.get_text() for text in plot_partition(regression, X, [1, 2, 3]).axes[0].get_legend().get_texts()
    ]
    assert shown == ["1", "1.5", "2", "2.5", "3", "split"]
    assert lines(plot_partition(regression, X, [1, 2, 3], margins=True))[1]
    nothing = Tree(1, [[0.0, 0.0]], [1.0], [0, 1], classes=CLASSES)
    assert lines(plot_partition(nothing, X, [1, 1, 1])) == ([], [])


@settings(deadline=None, max_examples=15)
@given(trees(max_depth=3, n_features=2, linear=True, elements=st.integers(-3, 3).map(float)))
def test_linear_leaves_are_shaded_by_their_predictions(tree):
    X = np.random.default_rng(0).uniform(-3, 3, size=(30, 2))
    y = tree.predict(X) + 0.5
    low, high = y.min() - 0.5, y.max()
    axes = plot_partition(tree, X, y).axes[0]
    for image in axes.images:
        pixels, (left, right, bottom, top) = np.asarray(image.get_array()), image.get_extent()
        n = len(pixels)
        row, column = (k.ravel() for k in np.indices((n, n)))
        centres = np.column_stack(
            [left + (column + 0.5) / n * (right - left), bottom + (row + 0.5) / n * (top - bottom)]
        )
        region = image.get_clip_path().get_fully_transformed_path()
        on_a_split = ((np.abs(tree.scores(centres)) < 1e-9) & tree.w.any(axis=1)).any(axis=1)
        inside = region.contains_points(axes.transData.transform(centres)) & ~on_a_split
        half_white = 1 - 0.5 * (1 - value_rgb(tree.predict(centres[inside]), low, high))
        np.testing.assert_allclose(pixels[row, column][inside], half_white, atol=0.01)


def test_a_picture_of_linear_leaves_is_the_same_every_time(tmp_path):
    tree = random_tree(2, 2, classes=(), leaf_w=[[1, 0], [0, 2], [0, 0], [1, 1]])
    X = np.random.default_rng(0).normal(size=(50, 2))
    figure = plot_partition(tree, X, tree.predict(X))
    assert len(figure.axes[0].images) == 3
    assert lines(figure)[1] == []
    limits = figure.axes[0].get_xlim()
    assert limits[0] < X[:, 0].min()
    assert X[:, 0].max() < limits[1]
    for name in ("first.svg", "second.svg"):
        save_figure(plot_partition(tree, X, tree.predict(X)), tmp_path / name)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="tree of 2 features, this one has 3"):
        plot_partition(random_tree(1, 3), np.zeros((1, 3)), [0])
    with pytest.raises(ValueError, match="no sample"):
        plot_partition(random_tree(1, 2), np.zeros((0, 2)), [])
    with pytest.raises(ValueError, match="y has shape"):
        plot_partition(random_tree(1, 2), np.zeros((2, 2)), [0])
