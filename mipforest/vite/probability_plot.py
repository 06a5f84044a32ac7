"""How sure the ensemble is: histograms of class probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mipforest.trees.figure import FAINT, INK, class_colours, shorten, text_size
from mipforest.vite.drawing import NORMAL, SMALL, Panel, plain_axes, write
from mipforest.vite.unboxed import Vite

#: Size of a plot in inches.
PLOT_WIDTH = 3.7
PLOT_HEIGHT = 1.35

#: Room for the axis at the left of a plot, between the plots, below the lower and above the upper one.
LEFT = 0.5
BETWEEN = 0.75
BELOW = 0.5
ABOVE = 0.3
BINS = 25


class ProbabilityPlot(Panel):
    """Probability of the predicted class, one histogram per class, errors on top."""

    title = "How sure the ensemble is"

    def __init__(self, vite: Vite) -> None:
        table = vite.probabilities
        self.groups = [table[table.predicted == name] for name in vite.data.classes]
        self.headings = [
            _heading(name, own) for name, own in zip(vite.data.classes, self.groups, strict=True)
        ]
        self.low = min(0.5, float(table.probability.min()))
        self.caption = (
            "Number of samples by the probability that the",
            "ensemble gives to the class it predicts.",
            "Black: samples that it predicts wrongly.",
        )
        self.width = LEFT + max(PLOT_WIDTH, *(text_size(heading, NORMAL)[0] for heading in self.headings))
        self.height = 2 * PLOT_HEIGHT + BETWEEN + BELOW + ABOVE

    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw one histogram above the other, on the same scale."""
        upper, lower = (
            plain_axes(figure, left + LEFT, bottom + y, PLOT_WIDTH, PLOT_HEIGHT)
            for y in (BELOW + PLOT_HEIGHT + BETWEEN, BELOW)
        )
        lower.sharey(upper)
        for k, axes in enumerate((upper, lower)):
            self._draw_class(axes, k)
        lower.set_xlabel("probability of the predicted class", fontsize=SMALL, color=FAINT)

    def _draw_class(self, axes: Axes, k: int) -> None:
        own = self.groups[k]
        right = own.target == own.predicted
        axes.hist(
            [own.probability[right], own.probability[~right]],
            bins=np.linspace(self.low, 1.0, BINS + 1).tolist(),
            stacked=True,
            color=[class_colours(2)[k], INK],
            edgecolor="white",
            linewidth=0.4,
        )
        axes.set_xlim(self.low, 1.0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=SMALL, colors=FAINT)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        write(axes, 0, 1.12, self.headings[k], transform=axes.transAxes)


def _heading(name: str, own: Any) -> str:
    heading = f"predicted {shorten(name)}: {len(own)} samples"
    if not len(own):
        return heading
    wrong = int((own.target != own.predicted).sum())
    return f"{heading}, {wrong} wrongly, mean {own.probability.mean():.2f}"
