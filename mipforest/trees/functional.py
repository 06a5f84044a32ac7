"""A randomised tree that looks at curves: through means over a few intervals of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.trees.randomized import RandomizedTree


@dataclass(frozen=True)
class Curve:
    """Features that are the values of one curve, or a feature that is one number, a constant curve.

    Attributes
    ----------
    name
        Its name.
    columns
        Positions of its features among all, by growing ``at``.
    at
        Where on its domain they are, growing: wavelengths, times. Of a number, nothing.
    offset, scale
        Its values are ``(x - offset) / scale`` to the tree: one scaling for all of its points, so that it keeps its
        shape.
    """

    name: str
    columns: tuple[int, ...]
    at: tuple[float, ...]
    offset: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        fits = len(self.at) == len(self.columns) > 1 or (len(self.columns) == 1 and not self.at)
        growing = all(low < high for low, high in pairwise(self.at))
        if not (
            fits and growing and self.scale > 0 and np.isfinite([self.offset, self.scale, *self.at]).all()
        ):
            raise ValueError(
                f"curve {self.name!r} has {len(self.columns)} features at {self.at!r:.60}, offset {self.offset} and "
                f"scale {self.scale}; give as many growing places as features, none for a number, and a scale above 0"
            )

    def on_domain(self, shares: FloatArray) -> FloatArray:
        """Return places on the domain by shares 0 to 1 of its length; of a number, the shares."""
        if not self.at:
            return shares
        found: FloatArray = self.at[0] + shares * (self.at[-1] - self.at[0])
        return found


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalTree(RandomizedTree):
    """A randomised regression tree whose splits and leaves see means of curves over intervals.

    The mean of a curve over an interval is a linear function of its values, so that the tree is the
    :class:`~mipforest.trees.randomized.RandomizedTree` with these linear functions: ``w`` and ``leaf_w`` predict.
    Intervals and heights tell what the linear functions are made of.

    Parameters
    ----------
    depth, w, b, leaf_value, gamma, and all others
        As for :class:`~mipforest.trees.randomized.RandomizedTree`.
    curves
        J curves.
    intervals
        (H, 2) begin and end of each interval, in shares 0 to 1 of the curves' domains.
    heights
        (|B|, H, J) coefficients of the means at the branch nodes, the papers' ``a``.
    leaf_heights
        (|L|, H, J) coefficients in the leaves, in the target's units.

    Raises
    ------
    ValueError
        As for :class:`~mipforest.trees.randomized.RandomizedTree`; if a curve names a feature that there is not, or an
        interval does not lie within 0 to 1.
    """

    curves: Sequence[Curve] = ()
    intervals: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))
    heights: FloatArray = field(default_factory=lambda: np.zeros(0))
    leaf_heights: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "curves", tuple(self.curves))
        H, J = len(self.intervals), len(self.curves)
        self._store("intervals", self.intervals, (H, 2))
        self._store("heights", self.heights, (self.topology.n_branches, H, J))
        self._store("leaf_heights", self.leaf_heights, (self.topology.n_leaves, H, J))
        ends = self.intervals.ravel()
        if not (H and J and ends[0] >= 0 and ends[-1] <= 1 and (np.diff(ends) >= 0).all()):
            raise ValueError(
                f"a functional tree needs curves, and intervals in order within 0 to 1, got {J} curves and the ends "
                f"{ends.tolist()!r:.80}"
            )
        for curve in self.curves:
            if not 0 <= min(curve.columns) <= max(curve.columns) < self.n_features:
                raise ValueError(
                    f"curve {curve.name!r} names a feature beyond the {self.n_features} of the tree"
                )

    def __repr__(self) -> str:
        return (
            f"FunctionalTree(depth={self.depth}, {len(self.curves)} curves, {len(self.intervals)} intervals, "
            f"gamma={self.gamma:g})"
        )

    @property
    def length_sparsity(self) -> float:
        """Share of the domain that lies in no interval."""
        return 1.0 - float((self.intervals[:, 1] - self.intervals[:, 0]).sum())

    def intervals_of(self, curve: Curve) -> FloatArray:
        """Return the (H, 2) intervals on the domain of a curve."""
        return curve.on_domain(self.intervals)

    def to_json(self) -> dict[str, Any]:
        """Return what a file of the tree holds beside what it does of other randomised trees."""
        curves = [
            {
                "name": curve.name,
                "columns": list(curve.columns),
                "at": list(curve.at),
                "offset": curve.offset,
                "scale": curve.scale,
            }
            for curve in self.curves
        ]
        arrays = {name: getattr(self, name).tolist() for name in ("intervals", "heights", "leaf_heights")}
        return {"curves": curves, **arrays}
