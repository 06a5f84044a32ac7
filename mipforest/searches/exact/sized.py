"""Trees with at least ``N_min`` samples in each leaf: bounds by vector walks, values by plain loops.

More rows may allow a split that fewer do not, so bounds are those of leaves of any size (see
:mod:`mipforest.searches.exact.covers`). Values are asked for rarely, where a bound is below the best value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from mipforest.searches import implement, kernel
from mipforest.searches.exact import covers
from mipforest.searches.exact.plain import PlainSide, PlainTables


class SizedTables(NamedTuple):
    """Tables for bounds and for values, and the sums of the former."""

    bounds: Any
    values: PlainTables
    below: NDArray[Any]
    weight_below: NDArray[Any]


class SizedSide(NamedTuple):
    """A side of both."""

    bounds: Any
    values: PlainSide


@kernel
def restrict(tables: SizedTables, sides: tuple[SizedSide, SizedSide], f: int, t: int) -> None:
    """Write the rows below a threshold into the left side, and those from it on into the right one."""
    covers.restrict(tables.bounds, (sides[0].bounds, sides[1].bounds), f, t)
    covers.restrict(tables.values, (sides[0].values, sides[1].values), f, t)


@kernel
def leaf_below(tables: SizedTables, f: int, t: int, right: bool) -> tuple[float, float]:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on, and its value."""
    loss, _ = covers.leaf_below(tables.bounds, f, t, right)
    size, last = tables.values.size_below[f, t], tables.values.size_below.shape[1] - 1
    if right:
        size = tables.values.size_below[f, last] - size
    return loss, loss if size >= tables.values.N_min else float("inf")


@kernel
def reach(tables: SizedTables, excess: float) -> float:
    """Return the weight of rows that may change sides before a loss falls by more than a value, -1 if it is unknown."""
    return covers.reach(tables.bounds, excess)


@kernel
def pair(
    tables: SizedTables, rows: SizedSide, f: int, below: int, first: int, cost: float, totals: Any, out: Any
) -> tuple[float, float]:
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on."""
    return covers.pair(tables.bounds, rows.bounds, f, below, first, cost, totals, out)


@kernel
def value_of(
    tables: SizedTables, rows: SizedSide, f: int, t: int, cost: float, left: float, right: float
) -> tuple[float, float]:
    """Return what both numbers of a pair at a threshold are for leaves of at least ``N_min`` samples."""
    return covers.value_of(tables.values, rows.values, f, t, cost, left, right)


@kernel
def allowed(tables: SizedTables, rows: SizedSide, f: int) -> tuple[int, int]:  # noqa: ARG001
    """Return the first and the last threshold with ``N_min`` samples of a side below it and from it on."""
    return rows.values.allowed[f, 0], rows.values.allowed[f, 1]


implement(SizedTables, restrict, leaf_below, reach, pair, value_of, allowed)
