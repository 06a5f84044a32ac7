"""What moves the predictions of a randomised tree, sample by sample, as a figure of parallel coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.plot import class_colours, new_figure, shorten
from mipforest.trees.randomized import RandomizedTree

#: Inches of one feature's axis, of one panel, and around them.
_ACROSS, _HIGH, _ROOM = 0.55, 2.4, 1.2

#: Colours of samples whose squared error is at most half of the mean, at most the mean, and above, and of unknown ones.
_RELIABLE, _UNKNOWN = ("#1b7837", "#e08214", "#b2182b"), "#4575b4"


def plot_explanation(
    tree: RandomizedTree, X: Any, y: npt.ArrayLike | None = None, *, max_features: int = 20
) -> Figure:
    """Draw what moves the prediction of each sample: one axis per feature, one line per sample.

    Of a regression tree, a line joins the derivatives of the prediction in the scaled features (Blanquero and others
    2022, section 4.5), in the colour of the sample's squared error beside the mean; features that are 0 or 1 have none
    to read and are left out. Of a classifier there is one panel per level: how much more each feature sends the sample
    right there than it does the mean of the samples, in the colour of the predicted class.

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units.
    y
        (n,) targets of a regression; all lines have one colour without.
    max_features
        Most axes: those of the features that move most, in the order of the tree.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, unknown to ``pyplot``; :func:`~mipforest.trees.save_figure` writes it.

    Raises
    ------
    ValueError
        If X or y do not fit the tree, or no feature can be shown.
    """
    X = np.asarray(X, dtype=np.float64)
    panels = lines_of(tree, X, X.mean(axis=0))
    shown = features_shown(tree, panels, max_features)
    if not len(shown):
        raise ValueError(f"{tree!r} uses no feature that could be shown: nothing moves its predictions")
    titles = ["derivative of the prediction in scaled features"]
    if tree.is_classifier:
        titles = [f"level {level}: sent right" for level in range(tree.depth)]
    colours = thread_colours(tree, X, y)
    width, height = _ACROSS * len(shown) + _ROOM, _HIGH * len(panels) + _ROOM
    figure = new_figure(width, height)
    for k, (title, panel) in enumerate(zip(titles, panels, strict=True)):
        axes = figure.add_axes(
            (
                _ROOM * 0.7 / width,
                (_ROOM * 0.8 + _HIGH * (len(panels) - 1 - k)) / height,
                1 - _ROOM / width,
                (_HIGH - 0.5) / height,
            )
        )
        last = k == len(panels) - 1
        _parallel(axes, panel[:, shown], [tree.feature_names[j] for j in shown] if last else [], colours)
        axes.set_title(title, fontsize=9, loc="left")
    return figure


def lines_of(tree: RandomizedTree, X: FloatArray, reference: FloatArray) -> list[FloatArray]:
    """Return by panel the (n, p) values that :func:`plot_explanation` joins; classifiers compare with a reference."""
    if not tree.is_classifier:
        return [tree.derivatives(X)]
    found = tree.contributions(X, reference)
    return [found[:, level] for level in range(tree.depth)]


def features_shown(tree: RandomizedTree, panels: list[FloatArray], most: int) -> IntArray:
    """Return the features that move most over all panels, in order; of derivatives none that is 0 or 1."""
    sizes = sum(np.abs(panel).mean(axis=0) for panel in panels)
    if not tree.is_classifier:
        one_hot = [level is not None for level in tree.levels] or False
        sizes = np.where(one_hot, 0.0, sizes)
    ranked = np.argsort(-np.asarray(sizes), kind="stable")[:most]
    return np.sort(ranked[np.asarray(sizes)[ranked] > 0])


def thread_colours(tree: RandomizedTree, X: FloatArray, y: npt.ArrayLike | None) -> list[str]:
    """Return the colour of each sample: that of its predicted class, or of its squared error beside the mean one."""
    predicted = np.asarray(tree.predict(X))
    if tree.is_classifier:
        return [class_colours(len(tree.classes))[k] for k in predicted.astype(np.int64).tolist()]
    if y is None:
        return [_UNKNOWN] * len(predicted)
    error: FloatArray = (predicted.astype(np.float64) - np.asarray(y, dtype=np.float64)) ** 2
    share = error / max(float(error.mean()), np.finfo(float).tiny)
    return [_RELIABLE[k] for k in np.digitize(share, (0.5, 1.0), right=True).tolist()]


def _parallel(axes: Axes, values: FloatArray, names: list[str], colours: list[str]) -> None:
    places = np.arange(values.shape[1])
    for line, colour in zip(values, colours, strict=True):
        axes.plot(places, line, color=colour, linewidth=0.7, alpha=0.6, marker=".", markersize=3)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_xticks(places)
    axes.set_xticklabels(
        [shorten(name, 18) for name in names] or [""] * len(places),
        rotation=35,
        ha="right",
        fontsize=8,
        parse_math=False,
    )
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.grid(axis="x", color="0.9")
