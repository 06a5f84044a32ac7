"""Reliability of probabilities: what was foreseen, and what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element

from mipforest.formatting import percent
from mipforest.report.chart import Chart, legend
from mipforest.report.markup import Part, element, more, table
from mipforest.report.values import PARTS
from mipforest.trees.calibration import N_BINS


def calibration(result: Mapping[str, Any]) -> list[Element]:
    """Draw the reliability tables of ``result.json``; nothing where it has none."""
    bins = {words: result.get(f"{part}_reliability") for part, words in PARTS}
    known = {words: _checked(rows) for words, rows in bins.items() if rows}
    if not known:
        return []
    chart = Chart((0.0, 1.0), (0.0, 1.0), "mean predicted probability", "share of the second class")
    marks = [chart.line([(0.0, 0.0), (1.0, 1.0)], "ideal")]
    entries = [("ideal", "line", "perfectly calibrated")]
    tables = []
    for words, rows in known.items():
        points = [(row["predicted"], row["observed"]) for row in rows]
        triangles = words == "Test"
        marks += [
            chart.line(points, words.lower()),
            chart.dots(points, words.lower(), triangles=triangles),
        ]
        entries.append((words.lower(), "triangle" if triangles else "dot", f"{words} samples"))
        tables.append(_table(words, rows))
    text = (
        "Samples are put into ten bins by their probability of the second class; in each, the mean probability "
        "is compared with the share of samples of that class. Near the diagonal, probabilities can be trusted."
    )
    summary = "Reliability diagram; its numbers stand in the table below."
    return [
        element("h3", "Calibration of the probabilities"),
        element("p", text),
        chart.drawn(summary, *marks),
        legend(*entries),
        more("The numbers of the diagram", *tables),
    ]


def _checked(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Refuse what is no reliability table (ValueError)."""
    shares = [row[name] for row in rows for name in ("lower", "upper", "predicted", "observed")]
    if len(rows) > N_BINS or not all(0 <= share <= 1 for share in shares):
        raise ValueError("a reliability table has at most ten bins, and shares between 0 and 1")
    return rows


def _table(words: str, rows: list[Mapping[str, Any]]) -> Element:
    cells: list[list[Part]] = [
        [
            f"{row['lower']:g} to {row['upper']:g}",
            str(row["count"]),
            percent(row["predicted"]),
            percent(row["observed"]),
        ]
        for row in rows
    ]
    return table(["Probability", "Samples", "Mean predicted", "Observed"], cells, f"{words} samples")
