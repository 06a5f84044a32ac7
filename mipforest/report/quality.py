"""How well the tree predicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.data import Dataset
from mipforest.report.calibration import calibration
from mipforest.report.chart import Chart, Point, legend, span, thinned
from mipforest.report.confusion import confusion_table, counts_of, training_counts
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import Part, element, section, table
from mipforest.report.values import PARTS, measure, title
from mipforest.trees import Tree

#: Most measures that are listed.
MOST_MEASURES = 50


def quality_section(content: Content, fitted: FittedTree) -> Element:
    """Give measures, and what lies behind them."""
    parts: list[Element] = [*_measures(content), *calibration(content.result)]
    parts += _confusion(content, fitted) if fitted.tree.is_classifier else _predicted(content, fitted.tree)
    return section("Quality", *parts, id_="quality")


def _measures(content: Content) -> list[Element]:
    result, reported = content.result, set(map(str, content.result.get("reported") or ()))
    names = dict.fromkeys(
        name.partition("_")[2]
        for name in result
        if name.startswith(("train_", "test_")) and name != "test_data"
    )
    columns = [(part, words) for part, words in PARTS if any(name.startswith(f"{part}_") for name in result)]
    columns = [column for column in columns if column[0] == "train" or result.get("test_data")]
    rows: list[list[Part]] = [
        [title(name), *(measure(name, result.get(f"{part}_{name}")) for part, _ in columns)]
        for name in list(names)[:MOST_MEASURES]
        if name not in reported and name != "reliability"
    ]
    if not rows:
        return []
    return [table(["Measure", *(words for _, words in columns)], rows, "Measures of the predictions")]


def _datasets(content: Content) -> Iterator[tuple[str, Dataset]]:
    if content.samples is not None:
        yield "Training", content.samples.train
        if content.samples.test is not None:
            yield "Test", content.samples.test


def _confusion(content: Content, fitted: FittedTree) -> list[Element]:
    """Give the matrix of the training samples, which the leaves' counts make up, and of the test samples."""
    found = [element("h3", "Confusion matrix")]
    counts = training_counts(fitted)
    if counts is not None:
        found.append(confusion_table(fitted.tree.classes, counts, "Training samples"))
    if content.samples is not None and content.samples.test is not None:
        test = content.samples.test
        of_test = counts_of(test.y, fitted.tree.predict(test.X_raw), len(fitted.tree.classes))
        found.append(confusion_table(fitted.tree.classes, of_test, "Test samples"))
    return [found[0], element("div", *found[1:], class_="beside")] if len(found) > 1 else []


def _predicted(content: Content, tree: Tree) -> list[Element]:
    """Draw predicted over true values."""
    marks: list[tuple[str, list[Point], int]] = []
    for words, data in _datasets(content):
        predicted = np.asarray(tree.predict(data.X_raw), dtype=np.float64)
        chosen = thinned(data.n)
        marks.append((words, [(float(data.y[i]), float(predicted[i])) for i in chosen], data.n))
    if not marks:
        return []
    both = span([value for _, points, _ in marks for point in points for value in point])
    chart = Chart(both, both, "true value", "predicted value")
    dots = [chart.dots(points, words.lower(), triangles=words == "Test") for words, points, _ in marks]
    diagonal = chart.line([(both[0], both[0]), (both[1], both[1])], "ideal")
    entries = [("ideal", "line", "predicted = true")]
    entries += [
        (words.lower(), "triangle" if words == "Test" else "dot", f"{words} samples{_of(len(points), n)}")
        for words, points, n in marks
    ]
    summary = "Predicted over true values; the nearer to the diagonal the better. " + _spread(content.result)
    return [
        element("h3", "Predicted and true values"),
        chart.drawn(summary, diagonal, *dots),
        legend(*entries),
    ]


def _of(drawn: int, n: int) -> str:
    return "" if drawn == n else f" ({drawn} of {n}, evenly chosen)"


def _spread(result: Any) -> str:
    return f"Mean absolute error in training: {measure('mae', result.get('train_mae'))}."
