"""Incumbent, bound and gap over the time of the solve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

from mipforest.formatting import number, percent
from mipforest.report.chart import Chart, Point, legend, span, thinned
from mipforest.report.markup import Part, details, element, plain, section, table
from mipforest.solvers.solution import relative_gap

#: Most events that the table lists.
MOST_ROWS = 100

#: Bounds that lie this many times as far from the final incumbent as all incumbents and the final bound are drawn
#: at the edge: the first bounds of a solver may be without meaning, and would flatten all that follows.
FARTHEST = 4.0

#: Most percent on the axis of the gap.
FULL = 100.0


@dataclass(frozen=True)
class Moment:
    """Where a solve stood: seconds, incumbent, bound, gap; ``None`` for what was not known."""

    seconds: float
    objective: float | None
    bound: float | None
    nodes: int

    @property
    def gap(self) -> float | None:
        """Relative gap."""
        return (
            None if self.objective is None or self.bound is None else relative_gap(self.objective, self.bound)
        )


def progress_section(result: Mapping[str, Any]) -> Element:
    """Draw the events of ``result.json``."""
    moments = [_moment(event) for event in result["events"]]
    if not any(moment.objective is not None or moment.bound is not None for moment in moments):
        return section("Progress", element("p", "The solver reported no progress."), id_="progress")
    drawn = [moments[i] for i in thinned(len(moments))]
    end = max(drawn[-1].seconds, float(result["seconds"]), 1e-3)
    charts = [_values(drawn, end), *_gap(drawn, end)]
    return section("Progress", element("div", *charts, class_="beside"), _events(moments), id_="progress")


def _moment(event: Mapping[str, Any]) -> Moment:
    """Read an event; TypeError or ValueError if an entry is not a number."""
    objective, bound = (
        None if event[name] is None else float(event[name]) for name in ("objective", "bound")
    )
    return Moment(float(event["seconds"]), objective, bound, int(event["nodes"]))


def _values(moments: Sequence[Moment], end: float) -> Element:
    incumbent = [(m.seconds, m.objective) for m in moments if m.objective is not None]
    bound = [(m.seconds, m.bound) for m in moments if m.bound is not None]
    chart = Chart((0.0, end), _range(incumbent, bound), "seconds", "objective")
    marks = [
        mark
        for points, class_ in ((incumbent, "incumbent"), (bound, "bound"))
        if points
        for mark in (
            chart.steps([*points, (end, points[-1][1])], class_),
            chart.dots([(end, points[-1][1])], class_, triangles=class_ == "bound"),
        )
    ]
    last = [
        f"{name} {number(points[-1][1])}"
        for name, points in (("incumbent", incumbent), ("bound", bound))
        if points
    ]
    summary = f"Incumbent and bound over time; at the end {', '.join(last)}."
    entries = legend(("incumbent", "line", "incumbent: best tree so far"), ("bound", "line", "bound: proven"))
    return element("figure", chart.drawn(summary, *marks), element("figcaption", entries))


def _range(incumbent: Sequence[Point], bound: Sequence[Point]) -> tuple[float, float]:
    """Return the range of the objective's axis."""
    values = [value for _, value in incumbent] + [bound[-1][1] for _ in bound[-1:]]
    last = values[len(incumbent) - 1] if incumbent else values[-1]
    reach = FARTHEST * max(abs(value - last) for value in values)
    return span(values + [value for _, value in bound if not incumbent or abs(value - last) <= reach])


def _gap(moments: Sequence[Moment], end: float) -> list[Element]:
    points = [(m.seconds, min(100 * m.gap, FULL)) for m in moments if m.gap is not None]
    if not points:
        return []
    chart = Chart(
        (0.0, end), (0.0, max(1.05 * max(gap for _, gap in points), 1.0)), "seconds", "gap in percent"
    )
    known = [m.gap for m in moments if m.gap is not None]
    summary = f"Relative gap over time; at the end {percent(known[-1])}."
    entries = legend(("gap-line", "line", f"gap between incumbent and bound, cut at {FULL:g}%"))
    line = chart.steps([*points, (end, points[-1][1])], "gap-line")
    return [element("figure", chart.drawn(summary, line), element("figcaption", entries))]


def _events(moments: Sequence[Moment]) -> Element:
    chosen = thinned(len(moments), MOST_ROWS)
    rows: list[list[Part]] = [
        [
            f"{m.seconds:.2f}",
            number(m.objective),
            number(m.bound),
            percent(m.gap),
            plain(m.nodes),
        ]
        for m in (moments[i] for i in chosen)
    ]
    shown = (
        f"{len(chosen)} of {len(moments)} events" if len(chosen) < len(moments) else f"{len(moments)} events"
    )
    caption = f"Progress of the solver, {shown}"
    return details(
        f"Table of {shown}", table(["Seconds", "Incumbent", "Bound", "Gap", "Nodes"], rows, caption)
    )
