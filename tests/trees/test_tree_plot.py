import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from tree_strategies import random_tree, trees

from mipforest.trees import Tree, node_statistics, plot_tree, save_plot
from mipforest.trees.plot import (
    MAX_POINTS,
    PALE,
    UNKNOWN,
    leaf_colours,
    node_box,
    place,
    shorten,
    value_colours,
    with_scatters,
)
from mipforest.trees.reachable import reachable_tree

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    axes = figure.axes[0]
    legend = axes.get_legend()
    return [text.get_text() for text in axes.texts + (legend.get_texts() if legend else [])]


def boxes(root, sizes, layout):
    """Every box as (left, right, bottom, top), parents first."""
    stack = [root]
    while stack:
        node = stack.pop()
        stack += node.children
        width, height = sizes[node.number]
        x, top = layout.centre[node.number], layout.top[node.number]
        yield x - width / 2, x + width / 2, top - height, top


@settings(deadline=None, max_examples=25)
@given(st.data(), trees(max_depth=4, n_features=2, elements=st.integers(-1, 1).map(float)))
def test_boxes_never_overlap_and_fill_the_figure(data, tree):
    root = reachable_tree(tree)
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    sizes = {t: tuple(rng.uniform(0.5, 3.0, size=2)) for t in range(tree.topology.n_nodes)}
    layout = place(root, sizes)
    placed = list(boxes(root, sizes, layout))
    for i, (left, right, bottom, top) in enumerate(placed):
        assert left >= -1e-9
        assert right <= layout.width + 1e-9
        assert bottom >= -1e-9
        assert top <= layout.height + 1e-9
        for other_left, other_right, other_bottom, other_top in placed[:i]:
            apart = left >= other_right or other_left >= right or bottom >= other_top or other_bottom >= top
            assert apart


def test_text_stays_inside_its_box():
    names = tuple(f"a feature with a long name, number {j}" for j in range(5))
    tree = random_tree(3, 5, features=names, offset=np.ones(5), scale=np.full(5, 1e-4))
    X = np.random.default_rng(0).normal(size=(300, 5))
    figure = plot_tree(tree, X, np.zeros(300, dtype=int))
    figure.draw_without_rendering()
    axes = figure.axes[0]
    outlines = [
        patch.get_window_extent() for patch in axes.patches if type(patch).__name__ == "FancyBboxPatch"
    ]
    inside = 0
    for text in axes.texts:
        extent = text.get_window_extent()
        assert figure.bbox.x0 <= extent.x0
        assert extent.x1 <= figure.bbox.x1
        if text.get_text() not in ("no", "yes"):
            centre = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
            (box,) = [box for box in outlines if box.contains(*centre)]
            assert box.x0 <= extent.x0
            assert extent.x1 <= box.x1
            inside += 1
    assert inside > 3 * len(outlines)


def test_boxes_say_what_the_tree_does():
    tree = Tree(
        2,
        [[1, 0], [2, -3], [0, 0]],
        [-52.5, 1, -1],
        [0, 1, 1, 0],
        classes=("healthy", "ill"),
        features=("age", "blood-sugar"),
    )
    X = np.array([[60.0, 1.0], [40.0, 1.0], [1.0, 40.0]])
    shown = texts(plot_tree(tree, X, ["ill", "healthy", "ill"]))
    for label in (
        "age ≥ 52.5",
        "−3 blood-sugar",
        "+ 2 age",
        "≥ −1",
        "no",
        "yes",
        "healthy",
        "ill",
        "1  |  2",
    ):
        assert label in shown
    assert "n0  ·  3 samples" in shown
    assert "n5  ·  1 sample" in shown
    assert not any(text.startswith(("n2", "n6")) for text in shown)


def test_without_samples_there_are_no_counts():
    shown = texts(plot_tree(random_tree(2, 3)))
    assert "n0" in shown
    assert not any("sample" in text or "|" in text for text in shown)


def test_regression_leaves_show_value_and_mean():
    tree = Tree(1, [[1.0]], [0.0], [-2.5, 7.25])
    shown = texts(plot_tree(tree, [[-1.0], [1.0], [2.0]], [-2.0, 7.0, 8.0]))
    assert {"-2.5", "7.25", "mean -2", "mean 7.5", "mean 4.33"} <= set(shown)


def test_leaves_of_regression_trees_show_their_errors():
    tree = Tree(1, [[1.0]], [0.0], [-2.5, 7.25])
    shown = texts(plot_tree(tree, [[-1.0], [1.0], [2.0]], [-2.0, 7.0, 8.0]))
    assert {"MSE 0.25  |  MAE 0.5", "MSE 0.312  |  MAE 0.5"} <= set(shown)
    exact = texts(plot_tree(tree, [[-1.0]], [-2.5]))
    assert exact.count("mean -2.5") == 1  # at the root; at the leaf it is the value
    assert not any("MSE" in text for text in texts(plot_tree(tree, [[1.0]])))


def test_linear_leaves_show_mean_function_and_errors():
    tree = Tree(
        1,
        [[1.0, 0, 0]],
        [0.0],
        [-1.0, 2.0],
        features=("a", "b-c", "d"),
        leaf_w=[[1, -3, 0.5], [0, 0, 0]],
    )
    X = [[-1.0, 0, 0], [-2, 0, 0], [1, 0, 0]]
    shown = texts(plot_tree(tree, X, [-3.0, -2.0, 2.0], max_terms=2))
    mean = shown.index("mean -2.5")
    assert shown[mean : mean + 6] == [
        "mean -2.5",
        "y = −1",
        "− 3 b-c",
        "+ a",
        "+ 1 more",
        "R² −3  |  MSE 1  |  MAE 1",
    ]
    assert "R² 1  |  MSE 0  |  MAE 0" in shown
    without = texts(plot_tree(tree))
    assert "y = −1" in without
    assert not any("mean" in text or "R²" in text for text in without)


def test_linear_leaves_have_the_colour_of_their_mean_and_none_without_targets():
    tree = random_tree(2, 1, classes=(), leaf_w=np.ones((4, 1)))
    X = np.random.default_rng(0).normal(size=(40, 1))
    statistics = node_statistics(tree, X, X[:, 0])
    reached = statistics.samples[3:] > 0
    colours = np.array(leaf_colours(tree, statistics))
    means = statistics.mean[3:][reached]
    expected = value_colours(means, means.min(), means.max())
    assert colours[reached].tolist() == list(expected)
    assert set(colours[~reached]) <= {UNKNOWN}
    assert set(leaf_colours(tree, None)) == set(leaf_colours(tree, node_statistics(tree, X))) == {UNKNOWN}


def test_a_tree_that_splits_nothing_is_one_leaf():
    shown = texts(plot_tree(Tree(3, np.zeros((7, 2)), np.ones(7), [0] * 7 + [1], classes=("a", "b"))))
    assert shown == ["n14", "b", "a", "b"]


def test_many_classes_have_distinct_colours():
    tree = random_tree(4, 2, classes=[f"class {k}" for k in range(16)], leaf_value=range(16))
    root = reachable_tree(tree)
    leaves = [root]
    while any(node.children for node in leaves):
        leaves = [child for node in leaves for child in node.children]
    assert len({node_box(tree, leaf, None, 3).edge for leaf in leaves}) == 16


def test_svg_is_the_same_every_time_and_holds_the_labels(tmp_path):
    tree = random_tree(2, 2, features=("age & weight", "$a_b$"), classes=("<1", "_two"))
    X = np.random.default_rng(0).normal(size=(40, 2))
    for name in ("first.svg", "second.svg"):
        save_plot(tree, tmp_path / name, X, np.zeros(40))
    content = (tmp_path / "first.svg").read_bytes()
    assert content == (tmp_path / "second.svg").read_bytes()
    assert b"<dc:date>" not in content
    shown = {element.text for element in ElementTree.fromstring(content).iter(f"{SVG}text")}
    assert {"<1", "_two", "yes", "no", "40  |  0", "n0  ·  40 samples"} <= shown
    assert any("age & weight" in text for text in shown)
    assert any("$a_b$" in text for text in shown)


@pytest.mark.parametrize(
    ("suffix", "magic"),
    [(".png", b"\x89PNG"), pytest.param(".pdf", b"%PDF", marks=pytest.mark.slow), (".SVG", b"<?xml")],
)
def test_the_suffix_decides_the_format(tmp_path, suffix, magic):
    path = tmp_path / f"tree{suffix}"
    save_plot(random_tree(2, 2), path)
    first = path.read_bytes()
    assert first.startswith(magic)
    save_plot(random_tree(2, 2), path)
    assert path.read_bytes() == first
    assert len(list(tmp_path.iterdir())) == 1


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'tree.jpeg'.*\.svg, \.png, \.pdf"):
        save_plot(random_tree(1, 2), tmp_path / "tree.jpeg")
    assert not list(tmp_path.iterdir())


def test_given_axes_are_drawn_into(tmp_path):
    figure = Figure(figsize=(4, 3))
    left, right = figure.subplots(1, 2)
    assert plot_tree(random_tree(3, 2), ax=right) is figure
    assert right.texts
    assert not left.texts
    assert max(text.get_fontsize() for text in right.texts) < 5
    subfigure = Figure().subfigures(1, 2)[0]
    assert plot_tree(random_tree(1, 2), ax=subfigure.subplots()) is subfigure.figure


def test_targets_without_samples_are_refused():
    with pytest.raises(ValueError, match="y without X"):
        plot_tree(random_tree(1, 2), y=[0, 1])


def test_pyplot_is_left_alone():
    plot_tree(random_tree(1, 2))
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_long_names_lose_their_middle():
    assert shorten("short") == "short"
    assert shorten("a\nname") == "a name"
    assert shorten("0123456789" * 4, 10) == "012345…789"


def test_a_split_names_features_once_by_influence():
    """Age has the largest weight and hardly varies: with samples it comes last."""
    names = {"classes": ("no", "yes"), "features": ("age", "weight", "height")}
    tree = Tree(1, [[9.0, -2.0, 1.0]], [0.0], [0, 1], **names)
    X = np.array([[0.0, -1.0, 0.0], [0.01, 1.0, 0.5]])
    shown = [text for text in texts(plot_tree(tree, X)) if any(name in text for name in names["features"])]
    assert shown == ["−2 weight", "+ height", "+ 9 age"]
    assert "influence" not in texts(plot_tree(tree, X))


def test_a_leaf_without_samples_is_pale():
    tree = Tree(1, [[1.0]], [0.0], [0, 1], classes=("no", "yes"))
    statistics = node_statistics(tree, [[1.0]], [1])
    left, right = (node_box(tree, node, statistics, 3) for node in reachable_tree(tree).children)
    assert left.face == "white"
    assert {line.colour for line in left.lines} == {PALE}
    assert (left.bar, left.footer) == ((), ())
    assert right.bar == (0.0, 1.0)
    assert node_box(tree, reachable_tree(tree).children[0], None, 3).face != "white"


def test_leaves_of_a_logistic_tree_show_their_probability():
    tree = Tree(1, [[1.0]], [0.0], [0, 1], classes=("no", "yes"), logistic=True)
    X = np.array([[-2.0], [1.0], [3.0]])
    shown = [text for text in texts(plot_tree(tree, X)) if "probability" in text]
    means = [tree.predict_proba(X[:1])[:, 0].mean(), tree.predict_proba(X[1:])[:, 1].mean()]
    assert shown == [f"probability {mean:.0%} on average" for mean in means]


def test_a_split_on_two_features_is_a_scatter_plot_with_its_line():
    tree = Tree(
        1,
        np.array([[1.0, 0.0, -2.0]]),
        np.array([0.5]),
        np.array([0, 1]),
        ("no", "yes"),
        ("a", "b", "c"),
    )
    X = np.random.default_rng(0).random((500, 3))
    box = with_scatters(tree, {0: node_box(tree, reachable_tree(tree), None, 3)}, X, tree.predict(X))[0]
    scatter = box.scatter
    assert len(scatter.points) == MAX_POINTS
    assert scatter.points.min() >= 0
    assert scatter.points.max() <= 1
    assert [line.text for line in box.lines[-2:]] == ["→ a", "↑ c"]
    # The line has the classes, which are those of the tree, on its two sides.
    (x0, y0), (x1, y1) = scatter.line
    side = (x1 - x0) * (scatter.points[:, 1] - y0) - (y1 - y0) * (scatter.points[:, 0] - x0) > 0
    assert len({(on, colour) for on, colour in zip(side, scatter.colours, strict=True)}) == 2
    assert len(plot_tree(tree, X, tree.predict(X)).axes[0].collections) == 1


def test_other_splits_and_trees_without_samples_have_no_scatter_plot():
    tree = random_tree(2, 3)
    X = np.random.default_rng(0).random((30, 3))
    assert not plot_tree(tree, X).axes[0].collections
    two = Tree(1, np.array([[1.0, -1.0]]), np.array([0.0]), np.array([0, 1]), ("no", "yes"), ("a", "b"))
    assert not plot_tree(two).axes[0].collections
