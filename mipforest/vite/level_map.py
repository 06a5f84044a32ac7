"""The heat map of features by level."""

from __future__ import annotations

from matplotlib.figure import Figure

from mipforest.trees.figure import FAINT, shorten, text_size
from mipforest.vite.drawing import CELL, NORMAL, ROW, SMALL, Panel, inch_axes, percent_cell, write
from mipforest.vite.unboxed import Vite

#: Most rows; the features beyond them share the last one.
MOST_ROWS = 25

#: Room between names and cells, in inches.
GAP = 0.12


class LevelMap(Panel):
    """How often each level splits on each feature, the most used features first."""

    title = "Features by level"

    def __init__(self, vite: Vite, darkest: float) -> None:
        self.darkest = darkest
        used = vite.levels[vite.levels.sum(axis=1) > 0]
        ordered = used.loc[used.mean(axis=1).sort_values(ascending=False, kind="stable").index]
        self.rows = [
            (shorten(name), row) for name, row in zip(ordered.index, ordered.to_numpy(), strict=True)
        ]
        if len(self.rows) > MOST_ROWS:
            rest = self.rows[MOST_ROWS - 1 :]
            total = sum(row for _, row in rest)
            self.rows = [*self.rows[: MOST_ROWS - 1], (f"{len(rest)} other features", total)]
        self.depth = vite.depth
        unused = vite.data.p - len(used)
        self.caption = (
            "Share of the splits at a level",
            "that are on the feature.",
            f"{unused} other feature{'s' * (unused > 1)}: no splits." if unused else "",
        )
        self.names = max(text_size(name, NORMAL)[0] for name, _ in self.rows) + GAP
        self.width = self.names + self.depth * CELL
        self.height = (len(self.rows) + 1.4) * ROW

    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw names, and a cell per level."""
        axes = inch_axes(figure, left, bottom, self.width, self.height)
        y = self.height - ROW / 2
        write(axes, self.names - GAP, y, "level", SMALL, FAINT, horizontalalignment="right")
        for level in range(self.depth):
            x = self.names + (level + 0.5) * CELL
            write(axes, x, y, str(level), SMALL, FAINT, horizontalalignment="center")
        for number, (name, shares) in enumerate(self.rows):
            y = self.height - (number + 2.2) * ROW
            write(axes, self.names - GAP, y + ROW / 2, name, horizontalalignment="right")
            for level, value in enumerate(shares):
                percent_cell(axes, self.names + level * CELL, y, value, self.darkest)
