"""Confusion matrices."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.formatting import percent
from mipforest.report.content import FittedTree
from mipforest.report.features import shaded
from mipforest.report.markup import Part, element, short, table

#: Most classes that a matrix shows, those of most samples.
MOST_CLASSES = 30


def training_counts(fitted: FittedTree) -> IntArray | None:
    """(K, K) training samples by true class (rows) and predicted class; ``None`` where no counts are known."""
    counts = fitted.statistics.class_counts
    if counts is None:
        return None
    matrix = np.zeros((counts.shape[1],) * 2, dtype=np.int64)
    leaf_counts = counts[fitted.tree.topology.n_branches :]
    np.add.at(matrix.T, fitted.tree.leaf_value.astype(np.int64), leaf_counts)
    return matrix


def counts_of(y: IntArray | FloatArray, predicted: IntArray | FloatArray, n_classes: int) -> IntArray:
    """(K, K) samples by true class (rows) and predicted class; IndexError for a class beyond K."""
    matrix = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(matrix, (np.asarray(y, dtype=np.int64), np.asarray(predicted, dtype=np.int64)), 1)
    return matrix


def confusion_table(classes: tuple[str, ...], counts: IntArray, caption: str) -> Element:
    """Give a matrix with the share of each true class that is predicted right."""
    sizes = counts.sum(axis=1)
    shown = sorted(int(k) for k in np.argsort(-sizes, kind="stable")[:MOST_CLASSES])
    rows: list[list[Part]] = [
        [
            short(classes[k]),
            *(shaded(str(counts[k, other]), counts[k, other] / max(sizes[k], 1)) for other in shown),
            percent(counts[k, k] / sizes[k]) if sizes[k] else "–",
        ]
        for k in shown
    ]
    head: list[Part] = ["true ↓  predicted →", *(short(classes[k]) for k in shown), "right"]
    made = table(head, rows, caption, "shaded")
    hidden = len(classes) - len(shown)
    if hidden:
        made.append(element("p", f"{hidden} classes of fewer samples are left out.", class_="faint"))
    return made
