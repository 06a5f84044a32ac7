"""The proximity matrix as an image."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mipforest.arrays import IntArray
from mipforest.ensembles import proximity
from mipforest.trees.figure import FAINT, INK, add_legend, class_colours
from mipforest.vite.drawing import SMALL, TINY, Panel, plain_axes, shade, write
from mipforest.vite.order import sample_order
from mipforest.vite.unboxed import Vite

#: Most samples in the picture: more are finer than the eye can see.
MOST_SAMPLES = 1000

#: Side of the matrix, thickness of a strip, and room for the legend and at the right, in inches.
SIDE = 3.6
STRIP = 0.12
LEGEND = 0.35
RIGHT = 0.75


class ProximityMap(Panel):
    """Which samples share leaves, ordered by prediction and then by likeness."""

    title = "Which samples go together"

    def __init__(self, vite: Vite) -> None:
        self.vite = vite
        n = vite.data.n
        self.samples = np.unique(np.linspace(0, n - 1, min(n, MOST_SAMPLES)).round().astype(np.int64))
        some = f"{len(self.samples)} of {n}" if len(self.samples) < n else f"{n}"
        self.caption = (
            f"Proximity of {some} samples: the share of trees",
            "in which two of them reach the same leaf.",
            "Like samples stand side by side.",
        )
        self.width = SIDE + RIGHT
        self.height = SIDE + 3.1 * STRIP + LEGEND

    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw the matrix, its scale, and two strips of class colours above."""
        predicted, target = (self._class_numbers(column) for column in ("predicted", "target"))
        alike = proximity(self.vite.ensemble, self.vite.data.X_raw[self.samples])
        order = sample_order(alike, predicted)
        bottom += LEGEND
        axes = plain_axes(figure, left, bottom, SIDE, SIDE)
        axes.imshow(shade(alike[np.ix_(order, order)]), aspect="auto", interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        border = int((predicted == predicted[order[0]]).sum()) - 0.5
        if border < len(order) - 1:
            axes.axhline(border, color=INK, linewidth=0.8)
            axes.axvline(border, color=INK, linewidth=0.8)
        self._draw_scale(figure, left + SIDE + 0.15, bottom)
        for number, (name, classes) in enumerate((("predicted", predicted), ("true class", target))):
            y = bottom + SIDE + (1 + 1.1 * number) * STRIP
            self._draw_strip(figure, left, y, name, classes[order])
        self._draw_legend(axes)

    def _class_numbers(self, column: str) -> IntArray:
        names = self.vite.probabilities[column].to_numpy()[self.samples]
        return np.asarray(names == self.vite.data.classes[1], dtype=np.int64)

    def _draw_strip(self, figure: Figure, left: float, bottom: float, name: str, classes: IntArray) -> None:
        axes = plain_axes(figure, left, bottom, SIDE, STRIP)
        colours = np.array([to_rgb(colour) for colour in class_colours(2)])
        axes.imshow(colours[classes][None, :, :], aspect="auto", interpolation="nearest")
        axes.set_axis_off()
        write(axes, 1.03, 0.5, name, TINY, FAINT, transform=axes.transAxes)

    def _draw_scale(self, figure: Figure, left: float, bottom: float) -> None:
        axes = plain_axes(figure, left, bottom, 0.13, SIDE)
        colours = ListedColormap(shade(np.linspace(0, 1, 256)))
        scale = figure.colorbar(ScalarMappable(Normalize(0, 1), colours), cax=axes, ticks=[0, 0.5, 1])
        scale.ax.tick_params(labelsize=SMALL, colors=FAINT, length=2)
        scale.outline.set_visible(False)

    def _draw_legend(self, axes: Axes) -> None:
        handles = [Patch(facecolor=colour) for colour in class_colours(2)]
        names = list(self.vite.data.classes)
        place = {"loc": "upper left", "bbox_to_anchor": (0, -0.02), "borderaxespad": 0.0}
        add_legend(axes, handles, names, ncols=2, frameon=False, fontsize=SMALL, handlelength=1.0, **place)
