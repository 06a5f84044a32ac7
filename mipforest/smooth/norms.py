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
    columns
        How many columns a feature has in each block, all features side by side, then again: its row has them all.
    """

    blocks: tuple[str, ...]
    lam_local: float = 0.0
    lam_global: float = 0.0
    columns: int = 1

    def stacked(self, block: FloatArray) -> FloatArray:
        """Return the coefficients of a block with one column per feature, the columns of a node one below the other."""
        return block.reshape(len(block) * self.columns, -1)

    def rows(self, point: Mapping[str, FloatArray]) -> FloatArray:
        """Return the (nodes, p) coefficients of all blocks, one below the other."""
        return np.vstack([self.stacked(point[name]) for name in self.blocks])

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
        sizes = [len(point[name]) * self.columns for name in self.blocks]
        cap = np.concatenate(
            [np.full(size, caps[name]) for name, size in zip(self.blocks, sizes, strict=True)]
        )
        found = prox_rows(u, step * self.lam_local, step * self.lam_global, cap)
        parts = zip(self.blocks, np.split(found, np.cumsum(sizes)[:-1]), strict=True)
        return {name: part.reshape(point[name].shape) for name, part in parts}


def prox_rows(
    u: FloatArray, local: float, glob: float, caps: FloatArray, floor: FloatArray | float = 0.0
) -> FloatArray:
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
    floor
        (p,) sizes up to which the l-infinity norm of a feature costs nothing: it has them elsewhere.
    """
    sizes = np.maximum(np.abs(u) - local, 0.0)
    if glob > 0:
        level = np.maximum(_levels(sizes, glob, caps), floor)
        sizes = np.minimum(sizes, level)
    found: FloatArray = np.sign(u) * np.minimum(sizes, caps[:, None])
    return found


def _levels(sizes: FloatArray, glob: float, caps: FloatArray) -> FloatArray:
    """Return (p,) levels: the smallest beta >= 0 with ``sum_{caps > beta} (sizes - beta)_+ <= glob``."""
    found, open_, low = np.zeros(sizes.shape[1]), np.ones(sizes.shape[1], dtype=bool), 0.0
    for cap in np.unique(caps):
        # Between the cap before and this one, nodes of smaller caps do not count.
        found = np.where(open_, np.maximum(_level(sizes[caps >= cap], glob), low), found)
        open_ &= found > cap
        if not open_.any():
            break
        low = float(cap)
    return found


def _level(sizes: FloatArray, glob: float) -> FloatArray:
    """Return the (p,) levels without caps, as in a projection on the l1 ball: 0 where the sum is at most ``glob``."""
    ordered = -np.sort(-sizes, axis=0)
    excess = np.cumsum(ordered, axis=0) - glob
    counts = np.arange(1, len(sizes) + 1)[:, None]
    last = np.maximum((ordered * counts > excess).sum(axis=0), 1) - 1
    found: FloatArray = np.maximum(excess[last, np.arange(sizes.shape[1])] / (last + 1), 0.0)
    return found
