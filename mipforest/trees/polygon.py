"""Convex polygons cut by lines."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray


def rectangle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """(4, 2) corners of a rectangle, counter-clockwise."""
    return np.array([lower, (upper[0], lower[1]), upper, (lower[0], upper[1])], dtype=np.float64)


def cut(polygon: FloatArray, normal: FloatArray, constant: float) -> FloatArray:
    """Keep the part of a convex polygon where ``normal . x + constant >= 0``.

    Parameters
    ----------
    polygon
        (m, 2) corners in order; m may be 0.
    normal
        (2,) direction.
    constant
        Number.

    Returns
    -------
    FloatArray
        (m', 2) corners in the same order; m' = 0 where nothing is left.

    Notes
    -----
    One step of Sutherland and Hodgman's reentrant polygon clipping (Communications of the ACM, 1974).
    """
    side = polygon @ normal + constant
    corners: list[FloatArray] = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if side[i] >= 0:
            corners.append(polygon[i])
        if (side[i] < 0) != (side[j] < 0) and side[i] != 0 and side[j] != 0:
            corners.append(_crossing(polygon[i], polygon[j], side[i], side[j]))
    return np.array(corners) if len(corners) > 2 else np.zeros((0, 2))


def chord(polygon: FloatArray, normal: FloatArray, constant: float) -> FloatArray | None:
    """(2, 2) end points of the line ``normal . x + constant = 0`` within a convex polygon, or ``None``."""
    side = polygon @ normal + constant
    ends: list[FloatArray] = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if side[i] == 0:
            ends.append(polygon[i])
        elif side[i] * side[j] < 0:
            ends.append(_crossing(polygon[i], polygon[j], side[i], side[j]))
    return np.array(ends[:2]) if len(ends) >= 2 else None


def _crossing(start: FloatArray, end: FloatArray, side_start: float, side_end: float) -> FloatArray:
    share = side_start / (side_start - side_end)
    return start + share * (end - start)
