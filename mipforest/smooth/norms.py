"""Penalties that make randomised trees sparse, and their proximal operator, which gives exact zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray


@dataclass(frozen=True)
class RowNorms:
    """``lam_local sum_j ||row_j||_1 + lam_global sum_j ||row_j||_inf`` over the rows of the features.

    The row of feature j are its coefficients at all branch nodes and, of linear leaves, its slopes there.

    Attributes
    ----------
    blocks
        Names of the blocks (nodes, p) whose columns make the rows.
    lam_local, lam_global
        Penalties, at least 0: fewer features per split, and fewer in the whole tree.
    """

    blocks: tuple[str, ...]
    lam_local: float = 0.0
    lam_global: float = 0.0

    def rows(self, point: Mapping[str, FloatArray]) -> FloatArray:
        """Return the (nodes, p) coefficients of all blocks, one below the other."""
        return np.vstack([point[name] for name in self.blocks])

    def value(self, point: Mapping[str, FloatArray]) -> float:
        """Return both penalties together."""
        sizes = np.abs(self.rows(point))
        return float(self.lam_local * sizes.sum() + self.lam_global * sizes.max(axis=0).sum())

    def prox(
        self, point: Mapping[str, FloatArray], step: float, caps: Mapping[str, float]
    ) -> dict[str, FloatArray]:
        """Return the proximal point of the penalties and bounds, block by block.

        Parameters
        ----------
        point
            Where a gradient step leads.
        step
            Length of the step.
        caps
            By block, the largest size of its coefficients; infinite where they are free.
        """
        u = self.rows(point)
        cap = np.concatenate([np.full(len(point[name]), caps[name]) for name in self.blocks])
        found = prox_rows(u, step * self.lam_local, step * self.lam_global, cap)
        ends = np.cumsum([len(point[name]) for name in self.blocks])[:-1]
        return dict(zip(self.blocks, np.split(found, ends), strict=True))


def prox_rows(u: FloatArray, local: float, glob: float, caps: FloatArray) -> FloatArray:
    """Minimise ``||v - u||^2 / 2 + local ||v||_1 + glob sum_j ||v_.j||_inf`` with ``|v_t| <= caps_t``, exactly.

    Sizes shrink by ``local``; then those of a feature j above a level beta_j are cut to it, where ``sum_t (|u_t| -
    local - beta_j)_+ = glob`` over the t whose cap is above the level: what the l-infinity norm gains at the margin
    is then what the squares lose. It is 0 where all of the sum is at most ``glob``.

    Parameters
    ----------
    u
        (nodes, p) coefficients, one column per feature.
    local, glob
        Penalties, at least 0.
    caps
        (nodes,) largest sizes, above 0, maybe infinite.
    """
    sizes = np.maximum(np.abs(u) - local, 0.0)
    if glob > 0:
        level = _levels(sizes, glob, caps)
        sizes = np.minimum(sizes, level)
    found: FloatArray = np.sign(u) * np.minimum(sizes, caps[:, None])
    return found


def _levels(sizes: FloatArray, glob: float, caps: FloatArray) -> FloatArray:
    """Return (p,) levels: the smallest beta >= 0 with ``sum_{caps > beta} (sizes - beta)_+ <= glob``.

    The sum falls piecewise linearly with beta, with jumps down at the caps. Between two neighbouring breakpoints
    (sizes and caps) it is a line, so that trying the line of each piece finds the level.
    """
    p = sizes.shape[1]
    points = np.vstack([np.zeros((1, p)), sizes, np.broadcast_to(caps[:, None], sizes.shape)])
    points = np.sort(points, axis=0)
    # For each breakpoint: who counts just above it, and the sum there.
    active = (sizes[None] > points[:, None]) & (caps[None, :, None] > points[:, None])
    count = active.sum(axis=1)
    total = (np.where(active, sizes[None], 0.0)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(count > 0, (total - glob) / count, 0.0)
    low = np.maximum(root, points)
    high = np.vstack([points[1:], np.full((1, p), np.inf)])
    # The first piece whose line is at most ``glob`` somewhere on it.
    fits = (low < high) | (count == 0)
    first = fits.argmax(axis=0)
    found: FloatArray = low[first, np.arange(p)]
    return found
