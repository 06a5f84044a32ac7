"""How much of the tree behind generated data a fitted tree has found.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 2.5: the true discovery
rate is the share of true splits that the fitted tree has, the false discovery rate that of fitted splits which the
truth does not have. When two splits are the same the thesis does not say; here

- the place in the tree does not matter, and every split is matched with one other at most, the closest pairs first;
- splits on one feature are the same where it is the same feature, and the thresholds are within a tolerance;
- hyperplanes are the same where they have the same features, and their coefficients and thresholds, scaled to
  coefficients of unit length whose first one is positive, are all within a tolerance. No hyperplane matches a split on
  one feature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data.synthetic import GroundTruth
from mipforest.trees import Tree
from mipforest.trees.reachable import ReachableNode, reachable_tree

#: Greatest distance of two thresholds of the same split, features in [0, 1]; the middle one is that of the measures
#: without a number in their names. All are reported, as none is the thesis' own.
TOLERANCES = (0.01, 0.02, 0.05)
TOLERANCE = 0.02

#: Greatest difference of two coefficients, or thresholds, of the same hyperplane.
HYPERPLANE_TOLERANCE = 0.05


class Recovery(NamedTuple):
    """Rates in [0, 1]: true splits that were found, and fitted splits that are none of the true ones."""

    true_discovery: float
    false_discovery: float


def recovery(truth: GroundTruth, tree: Tree, tolerance: float = TOLERANCE) -> Recovery:
    """Compare the splits of a tree with the true ones.

    Parameters
    ----------
    truth
        The tree behind the data, in original units.
    tree
        The fitted tree. Splits that no sample can reach do not count.
    tolerance
        Greatest distance of two thresholds of the same feature, in the features' units.

    Returns
    -------
    Recovery
        A tree without a split has found nothing, and nothing false.
    """
    weights, intercepts = tree.original_units()
    reached = _splits(reachable_tree(tree))
    fitted = _normal(weights[reached], intercepts[reached])
    true = _normal(truth.w[truth.splits], truth.b[truth.splits])
    found = _matches(true, fitted, tolerance)
    return Recovery(
        found / len(true) if len(true) else 1.0, 1.0 - found / len(fitted) if len(fitted) else 0.0
    )


def recovery_measures(truth: GroundTruth, tree: Tree) -> dict[str, float]:
    """Return both rates by name, and for the other tolerances with the tolerance behind the name."""
    measures: dict[str, float] = {}
    for tolerance in (TOLERANCE, *TOLERANCES):
        found = recovery(truth, tree, tolerance)
        behind = "" if not measures else f"_{tolerance:g}"
        measures[f"true_discovery_rate{behind}"] = found.true_discovery
        measures[f"false_discovery_rate{behind}"] = found.false_discovery
    return measures


def _splits(node: ReachableNode) -> list[int]:
    """Return the numbers of the splits of a subtree."""
    own = [node.number] if node.children else []
    return own + [number for child in node.children for number in _splits(child)]


def _normal(w: FloatArray, b: FloatArray) -> FloatArray:
    """Return (m, p + 1) coefficients of unit length, the first one above 0, and thresholds."""
    rows = np.column_stack([w, -b])
    if len(rows) == 0:
        return rows
    first = w[np.arange(len(w)), (w != 0).argmax(axis=1)]
    scaled: FloatArray = rows / (np.sign(first) * np.linalg.norm(w, axis=1))[:, None]
    return scaled


def _matches(true: FloatArray, fitted: FloatArray, tolerance: float) -> int:
    """Return how many pairs of splits are the same, each split in one pair at most, the closest ones first."""
    pairs = []
    for k, one in enumerate(true):
        for other, row in enumerate(fitted):
            used = one[:-1] != 0
            if (used != (row[:-1] != 0)).any():
                continue
            distance, allowed = (
                np.abs(one - row).max(),
                tolerance if used.sum() == 1 else HYPERPLANE_TOLERANCE,
            )
            if distance <= allowed:
                pairs.append((distance, k, other))
    taken: set[tuple[str, int]] = set()
    for _, k, other in sorted(pairs):
        if ("true", k) not in taken and ("fitted", other) not in taken:
            taken |= {("true", k), ("fitted", other)}
    return len(taken) // 2
