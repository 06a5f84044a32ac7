"""VITE: what a tree ensemble looks like inside, as tables and as a picture.

``vite("random-forest", data, depth=3).save("vite.svg")`` shows at which levels and nodes a forest splits on which
features and where (the level map and the tree, above), which samples it treats alike, and how sure it is of its
predictions (proximities and probabilities, below).
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mipforest.data import Dataset
from mipforest.ensembles import EnsembleError, ensemble_for
from mipforest.ensembles.target import DEFAULT_SEED
from mipforest.trees import Topology
from mipforest.trees.plot import FAINT, new_figure, save_figure, shorten, text_width
from mipforest.vite.panels import (
    HEADING,
    SMALL,
    LevelMap,
    NodeTree,
    Panel,
    ProbabilityPlot,
    ProximityMap,
    inch_axes,
    write,
)
from mipforest.vite.tables import EnsembleTables

__all__ = ["Vite", "vite"]

#: Room at the edges, between panels, and for the title; height of a line of a caption; all in inches.
MARGIN = 0.3
GAP = 0.55
TITLE = 0.75
LINE = 0.16

#: Most characters of a data set's name in the title.
LONGEST_NAME = 60

#: Most levels of a picture; the last one has up to 32 boxes, 1.5 m in all.
MOST_LEVELS = 6

#: Room for the heading of a panel: its title and three lines of caption.
HEAD = 0.85

#: A panel, and the left and the upper end of its room in inches from the top left corner.
Place = tuple[Panel, float, float]


class Vite(EnsembleTables):
    """An ensemble as tables and as a picture. Made by :func:`vite`."""

    def plot(self, *, max_features: int = 6) -> Figure:
        """Draw everything on one page; see :func:`plot_vite`."""
        return plot_vite(self, max_features=max_features)

    def save(self, path: str | PathLike[str], *, max_features: int = 6) -> None:
        """Draw everything into a ``.svg``, ``.png`` or ``.pdf`` file, whole or not at all.

        Raises
        ------
        ValueError
            If the suffix is another one, or the tree has too many boxes.
        OSError
            If the file cannot be written.
        """
        save_figure(self.plot(max_features=max_features), path)


def vite(target: Any, data: Dataset, depth: int, *, seed: int = DEFAULT_SEED) -> Vite:
    """Inspect a tree ensemble (Di Teodoro, Monaci and Palagi 2024, section 5).

    Parameters
    ----------
    target
        The ensemble: a name, a ``.joblib`` file, a fitted classifier; see
        :func:`mipforest.ensembles.ensemble_for`. Its trees may be deeper than ``depth``.
    data
        A data set of two classes.
    depth
        Number of levels to show, 1 to 10, and depth of trees that are fitted here.
    seed
        Seed of trees that are fitted here, if the target names none.

    Raises
    ------
    EnsembleError, OSError
        If the target cannot be used with these data.
    ValueError
        If the depth is out of range.
    """
    depth = Topology(depth).depth
    if data.weighted:
        raise EnsembleError(
            f"{data.name} has sample weights, and what is shown of an ensemble counts samples; leave the weights out"
        )
    return Vite(ensemble_for(target, data, depth, seed=seed, deeper=True), data, depth)


def plot_vite(tables: EnsembleTables, *, max_features: int = 6) -> Figure:
    """Draw VITE's page.

    - *Features by level*: a heat map of the level frequencies.
    - *Where trees split*: one tree that stands for all; every node lists its most frequent features with
      their shares and the range of their split values.
    - *Which samples go together*: the proximity matrix; at most 1000 samples, evenly chosen, are drawn.
    - *How sure the ensemble is*: histograms of class probabilities, right and wrong predictions apart.

    Parameters
    ----------
    tables
        What to draw.
    max_features
        Most features to list in a node; the rest is counted.

    Returns
    -------
    matplotlib.figure.Figure
        A figure as large as it needs to be, unknown to ``pyplot``.

    Raises
    ------
    EnsembleError
        If there are more than :data:`MOST_LEVELS` levels.
    """
    if tables.depth > MOST_LEVELS:
        raise EnsembleError(
            f"a picture of {tables.depth} levels would have up to {2**tables.depth - 1} boxes; show at most "
            f"{MOST_LEVELS} levels, or write the tables instead"
        )
    darkest = float(max(tables.levels.to_numpy().max(), tables.nodes.to_numpy().max()))
    tree = NodeTree(tables, max_features, darkest)
    places, width, height = _arrange(
        LevelMap(tables, darkest), tree, ProximityMap(tables), ProbabilityPlot(tables)
    )
    title, subtitle = _titles(tables)
    width = 2 * MARGIN + max(width, text_width(title, 14, "bold"), text_width(subtitle, SMALL))
    height += 2 * MARGIN + TITLE
    figure = new_figure(width, height)
    axes = inch_axes(figure, 0, 0, width, height)
    write(axes, MARGIN, height - MARGIN - 0.1, title, 14, fontweight="bold")
    write(axes, MARGIN, height - MARGIN - 0.4, subtitle, SMALL, FAINT)
    for panel, left, top in places:
        _draw(figure, axes, panel, MARGIN + left, height - MARGIN - TITLE - top)
    return figure


def _arrange(levels: Panel, tree: Panel, *others: Panel) -> tuple[list[Place], float, float]:
    """Place all panels but the tree in a column beside it, or all in two rows, whichever takes less room."""
    column = (levels, *others)
    beside = [*_rows([(panel,) for panel in column]), (tree, max(panel.room for panel in column) + GAP, 0.0)]
    in_rows = _rows([(levels, tree), others])
    return min((_with_extent(places) for places in (beside, in_rows)), key=lambda page: page[1] * page[2])


def _rows(rows: list[tuple[Panel, ...]]) -> list[Place]:
    places: list[Place] = []
    top = 0.0
    for row in rows:
        left = 0.0
        for panel in row:
            places.append((panel, left, top))
            left += panel.room + GAP
        top += max(map(_height, row))
    return places


def _with_extent(places: list[Place]) -> tuple[list[Place], float, float]:
    """Return the panels with the width and the height that they take together."""
    width = max(left + panel.room for panel, left, _ in places)
    return places, width, max(top + _height(panel) for panel, _, top in places) - GAP


def _titles(tables: EnsembleTables) -> tuple[str, str]:
    ensemble = tables.ensemble
    title = f"VITE: {ensemble.kind} on {shorten(tables.data.name, LONGEST_NAME)}"
    deeper = f" Splits below level {tables.depth - 1} are not shown." if ensemble.depth > tables.depth else ""
    subtitle = (
        f"{ensemble.description}. {tables.data.n} samples, {tables.data.p} features; "
        f"accuracy {tables.accuracy:.1%}.{deeper}"
    )
    return title, subtitle


def _height(panel: Panel) -> float:
    """Return the height of a panel with its heading and the gap below."""
    return HEAD + panel.height + GAP


def _draw(figure: Figure, axes: Axes, panel: Panel, left: float, top: float) -> None:
    write(axes, left, top - 0.1, panel.title, HEADING, fontweight="bold")
    for number, sentence in enumerate(panel.caption):
        write(axes, left, top - 0.32 - number * LINE, sentence, SMALL, FAINT)
    panel.draw(figure, left, top - HEAD - panel.height)
