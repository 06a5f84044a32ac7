"""A score card as it is printed: the points above, the risk of each total below."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from mipforest.cards import RiskTable, ScoreCard, risk_table
from mipforest.formatting import percent
from mipforest.trees.plot import FAINT, INK, Picture, new_figure, shorten, tint

#: Inches: width of the card, height of a row of points, height of a row of the risk table, and the margin.
WIDTH, ROW, CELL, MARGIN = 6.4, 0.36, 0.36, 0.2

#: Totals side by side in the risk table; more go into another band of rows.
TOTALS_PER_BAND = 11

#: Colour of high risks.
HIGH = "#D55E00"


def plot_card(card: ScoreCard, table: RiskTable | None = None) -> Picture:
    """Draw a card without negative points, so that the total is a sum of what applies.

    Parameters
    ----------
    card
        The card; it is drawn in its nonnegative form, unless that is what it is.
    table
        Its :func:`~mipforest.cards.risk_table` with samples counted; without samples unless given. It is read for the
        form that is drawn, or for the card itself: totals differ by a constant, risks are the same.
    """
    shown = card.nonnegative()
    plain = risk_table(shown)
    counts = plain if table is None else table
    table = RiskTable(plain.totals, plain.risks, counts.samples, counts.positives)
    counted = bool(table.samples.sum())
    bands = -(-len(table.totals) // TOTALS_PER_BAND)
    n_rows = 1 + len(shown.rules) + 1
    below = bands * ((4 if counted else 2) * CELL + 0.15)
    height = 2 * MARGIN + 0.35 + n_rows * ROW + 0.1 + below
    figure = new_figure(WIDTH, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(0, height))
    axes.axis("off")
    top = height - MARGIN
    _write(axes, MARGIN, top - 0.15, f"Risk of {shorten(card.outcome, 40)}", size=12, weight="bold")
    top = _points(axes, shown, top - 0.4)
    _risks(axes, table, top - 0.25, counted=counted)
    return figure


def _write(axes: Axes, x: float, y: float, text: str, *, align: str = "left", **options: Any) -> None:
    options = {"size": 9.5, "color": INK, **options}
    axes.text(x, y, text, ha=align, va="center", parse_math=False, **options)


def _points(axes: Axes, card: ScoreCard, top: float) -> float:
    """Draw the rules with their points and a box to fill in; return where the table ends."""
    right, box = WIDTH - MARGIN, 0.42
    axes.plot([MARGIN, right], [top, top], color=INK, lw=1.0)
    order = np.argsort(-np.abs(card.points), kind="stable")
    rows = [(card.rule_text(k), str(card.points[k])) for k in order]
    rows = rows or [("no rule: every sample has the same risk", "0")]
    for k, (text, points) in enumerate(rows):
        middle = top - (k + 0.5) * ROW
        _write(axes, MARGIN + 0.08, middle, f"{k + 1}.  {shorten(text, 56)}", size=10)
        unit = "point" if points == "1" else "points"
        _write(axes, right - box - 0.3, middle, f"{points} {unit}", align="right", size=10, weight="bold")
        _blank(axes, right - box - 0.1, middle, box)
    end = top - len(rows) * ROW
    axes.plot([MARGIN, right], [end, end], color=INK, lw=1.0)
    middle = end - 0.5 * ROW
    _write(axes, right - box - 0.3, middle, "Total", align="right", size=10, weight="bold")
    _blank(axes, right - box - 0.1, middle, box)
    return end - ROW


def _blank(axes: Axes, x: float, middle: float, width: float) -> None:
    """Draw a box to write a number into."""
    axes.add_patch(Rectangle((x, middle - 0.12), width, 0.24, fill=False, ec=FAINT, lw=0.8))


def _risks(axes: Axes, table: RiskTable, top: float, *, counted: bool) -> None:
    """Draw the risk of each total, redder where it is higher, with samples and shares observed below."""
    heads = ["Total", "Risk", *(["Training samples", "Observed"] if counted else [])]
    left = MARGIN + (1.25 if counted else 0.7)
    per_band = min(TOTALS_PER_BAND, len(table.totals))
    wide = min(0.75, (WIDTH - MARGIN - left) / per_band)
    for first in range(0, len(table.totals), TOTALS_PER_BAND):
        chosen = range(first, min(first + TOTALS_PER_BAND, len(table.totals)))
        for row, head in enumerate(heads):
            middle = top - (row + 0.5) * CELL
            weight = "bold" if row < 2 else "normal"
            _write(axes, MARGIN + 0.08, middle, head, weight=weight, color=INK if row < 2 else FAINT)
            for column, k in enumerate(chosen):
                x = left + column * wide
                if row == 1:
                    colour = tint(HIGH, 0.08 + 0.72 * float(table.risks[k]))
                    axes.add_patch(
                        Rectangle((x, middle - CELL / 2), wide, CELL, fc=colour, ec="white", lw=1.0)
                    )
                text = (
                    f"{table.totals[k]}",
                    _short(table.risks[k]),
                    f"{table.samples[k]:g}",
                    _short(table.rates[k]) if table.samples[k] else "–",
                )[row]
                _write(
                    axes,
                    x + wide / 2,
                    middle,
                    text,
                    align="center",
                    weight=weight,
                    size=9 if row < 2 else 8,
                    color=INK if row < 2 else FAINT,
                )
        top -= len(heads) * CELL + 0.15


def _short(share: float) -> str:
    """Write a share in percent with two digits, or more where it is close to 0 or 1."""
    if share in (0.0, 1.0) or 0.1 <= share <= 0.9:
        return f"{share:.0%}"
    return percent(share) if share < 0.001 else f"{share:.1%}"
