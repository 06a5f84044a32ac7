"""VITE's page: what stands on it, and that nothing lies on anything else."""

import numpy as np
import pytest
from handmade_forest import TREES, forest_of
from matplotlib.colors import to_rgb

from mipforest.data import Dataset, load
from mipforest.ensembles import EnsembleError
from mipforest.trees.plot import class_colours
from mipforest.vite import MAX_SAMPLES, ProximityMap, percent, sample_order, shade, vite


def odd_data():
    """Long names, names that look like formulas, and values of all sizes."""
    rng = np.random.default_rng(0)
    scale = 10.0 ** np.arange(-6, 10)
    X = rng.normal(size=(150, 16)) * scale
    y = np.where(
        X[:, 0] * 1e6 + X[:, 3] * 1e3 + rng.normal(size=150) > 0, "_a class with quite a long name", "b"
    )
    names = [f"feature ${j}_{j}$ of a quite remarkable length [kg/m^2] {j}" for j in range(16)]
    return Dataset.from_arrays(X, y, features=names, name="a data set whose name has no end " * 3)


@pytest.fixture(scope="module")
def cancer():
    """A third of the patients: the page is laid out alike, and drawn in a fraction of the time."""
    return load("breast_cancer").take(np.arange(0, 569, 3))


def texts_of(figure):
    return [text for axes in figure.axes for text in axes.texts if text.get_text()]


def tick_labels(figure):
    """Give the labels of ticks that lie in view."""
    for axes in figure.axes:
        if axes.axison:
            for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
                for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True):
                    if label.get_text() and limits[0] <= place <= limits[1]:
                        yield label


def assert_readable(figure):
    """No text leaves the page, lies on another one, or leaves the box or the cell that it starts in."""
    figure.draw_without_rendering()
    texts = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
    texts += [
        (text.get_text(), text.get_window_extent()) for legend in legends for text in legend.get_texts()
    ]
    texts += [(label.get_text(), label.get_window_extent()) for label in tick_labels(figure)]
    assert len(texts) > 30
    page = figure.bbox
    for number, (text, extent) in enumerate(texts):
        assert page.x0 <= extent.x0 and extent.x1 <= page.x1, text  # noqa: PT018
        assert page.y0 <= extent.y0 and extent.y1 <= page.y1, text  # noqa: PT018
        for other, beside in texts[:number]:
            apart = (
                extent.x0 >= beside.x1
                or beside.x0 >= extent.x1
                or extent.y0 >= beside.y1
                or beside.y0 >= extent.y1
            )
            assert apart, f"{text!r} lies on {other!r}"
    cards = [
        patch.get_window_extent()
        for axes in figure.axes
        for patch in axes.patches
        if type(patch).__name__ == "FancyBboxPatch"
    ]
    for text, extent in texts:
        for card in cards:
            if card.contains(extent.x0, (extent.y0 + extent.y1) / 2):
                assert extent.x1 <= card.x1, text
    for number, card in enumerate(cards):
        for other in cards[:number]:
            assert not card.overlaps(other)


@pytest.mark.parametrize("depth", [*(pytest.param(depth, marks=pytest.mark.slow) for depth in (1, 2, 3)), 4])
def test_nothing_overlaps(cancer, depth):
    assert_readable(vite("random-forest:trees=12", cancer, depth).plot())


@pytest.mark.parametrize(
    "target",
    [
        "extra-trees:trees=12",
        pytest.param("gradient-boosting:trees=12", marks=pytest.mark.slow),
    ],  # the same names
)
def test_nothing_overlaps_whatever_the_names(target):
    assert_readable(vite(target, odd_data(), 3).plot(max_features=3))


def test_a_box_says_what_splits_there(cancer):
    seen = vite("random-forest:trees=20", cancer, 2)
    said = {text.get_text() for text in texts_of(seen.plot(max_features=2))}
    for row in seen.thresholds[seen.thresholds.node == 0][:2].itertuples():
        assert {row.feature, percent(row.percent)} <= said
    assert "all trees split" in said
    assert any("other features:" in text for text in said)
    assert {"level 0", "level 1", "smaller", "larger", "n0", "n1", "n2"} <= said


def test_nodes_without_splits_are_left_out():
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.random((20, 4)), np.arange(20) % 2)
    figure = vite(forest_of(TREES[1:], 4), data, 4).plot()
    said = {text.get_text() for text in texts_of(figure)}
    assert {"n0", "n2"} <= said
    assert not {"n1", "n3", "n5", "n6", "level 2"} & said
    assert "50% of trees split, 50% end here" in said


def test_large_data_are_thinned_out():
    rng = np.random.default_rng(0)
    X = rng.random((MAX_SAMPLES + 300, 2))
    seen = vite("random-forest:trees=3", Dataset.from_arrays(X, (X[:, 0] > 0.5).astype(int)), 2)
    panel = ProximityMap(seen)
    assert len(panel.samples) == MAX_SAMPLES
    assert "1000 of 1300 samples" in panel.caption[0]


def test_one_class_is_never_predicted():
    X = 0.6 + 0.4 * np.random.default_rng(0).random((20, 4))
    data = Dataset.from_arrays(X, np.arange(20) % 2, classes=["no", "yes"])
    figure = vite(forest_of(TREES, 4), data, 2).plot()
    said = {text.get_text() for text in texts_of(figure)}
    assert "predicted no: 0 samples" in said
    assert any(text.startswith("predicted yes: 20 samples, 10 wrongly") for text in said)
    assert_readable(figure)


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_few_samples(n):
    X = np.linspace(0, 1, 4 * n).reshape(n, 4)
    figure = vite(forest_of(TREES, 4), Dataset.from_arrays(X, np.arange(n) % 2), 2).plot()
    assert_readable(figure)


def test_too_many_levels(cancer):
    with pytest.raises(EnsembleError, match="up to 127 boxes; show at most 6 levels"):
        vite("random-forest:trees=2", cancer, 7).plot()


@pytest.mark.slow
@pytest.mark.parametrize(  # the other formats by default: test_tree_plot
    "suffix", [".svg", *(pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".png", ".pdf"))]
)
def test_files_are_whole_and_reproducible(cancer, tmp_path, suffix):
    seen = vite("random-forest:trees=5", cancer, 2)
    paths = [tmp_path / f"{name}{suffix}" for name in ("a", "b")]
    for path in paths:
        seen.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {f"a{suffix}", f"b{suffix}"}


def test_other_suffixes_are_refused(cancer, tmp_path):
    with pytest.raises(ValueError, match=r"\.svg"):
        vite("random-forest:trees=2", cancer, 1).save(tmp_path / "vite.jpg")
    assert not list(tmp_path.iterdir())


def test_samples_stand_by_class_then_by_likeness():
    groups = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    proximity = (groups[:, None] == groups).astype(float)
    predicted = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1])
    order = sample_order(proximity, predicted)
    assert sorted(order.tolist()) == list(range(9))
    assert (np.diff(predicted[order]) >= 0).all()
    assert (np.diff(groups[order]) != 0).sum() == 2


def test_percentages_never_hide_a_remainder():
    written = [percent(value) for value in (0.2, 0.99, 1, 54.6, 99, 99.4, 100 - 1e-13, 100)]
    assert written == ["<1%", "<1%", "1%", "55%", "99%", ">99%", "100%", "100%"]


def test_darker_means_more():
    luminance = shade(np.linspace(0, 1, 50)) @ (0.2126, 0.7152, 0.0722)
    assert (np.diff(luminance) < 0).all()
    blue, orange = (np.dot(to_rgb(colour), (0.2126, 0.7152, 0.0722)) for colour in class_colours(2))
    assert abs(blue - orange) > 0.2
