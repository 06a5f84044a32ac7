"""What loops over covers ask of tables, for each kind of them, and how they reach it.

The loops (:mod:`mipforest.searches.exact.covers`) are compiled once. They have the tables and the rows of a side as
words, and call operations by their addresses (:mod:`mipforest.searches.addresses`); only these are compiled for a kind
of tables: whole numbers of 16 or 32 bits or doubles, two classes or many, squares, plain loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import operation
from mipforest.searches.addresses import NUMBERS, WORDS, address_of, kind_of, view, words_of
from mipforest.searches.exact.domains import ROOT, SIDE, UPPER


class Tables(NamedTuple):
    """Tables as loops over covers have them.

    Attributes
    ----------
    words
        The tables of the loss.
    restrict, leaf, pair
        Addresses of their operations.
    sized, restrict_sized, sized_pair
        Where leaves have a least number of samples, tables that know their sizes, and addresses of operations on them;
        the restriction is 0 where that of the loss does it. Else of no use.
    relaxes
        Whether these count samples of more rows than those that lose.
    N_min
        Least number of samples in a leaf.
    moves
        Whether moving rows changes a loss by no more than their weight.
    weight_below
        (p, U + 1) weight of the rows below each rank.
    size_below
        (p, U + 1) number of their samples; empty where leaves may have any size.
    must
        (2,) whether the root of each side has to split.
    """

    words: IntArray
    restrict: int
    leaf: int
    pair: int
    sized: IntArray
    restrict_sized: int
    sized_pair: int
    relaxes: int
    N_min: int
    moves: int
    weight_below: FloatArray
    size_below: IntArray
    must: NDArray[np.uint8]


class Side(NamedTuple):
    """Rows of a side as loops over covers have them.

    Attributes
    ----------
    words
        Its rows as the tables of the loss have them, with memory to work in.
    sized
        As the tables have them that know sizes of leaves, where these have a least one.
    """

    words: IntArray
    sized: IntArray


class RowsAtWork(NamedTuple):
    """Rows of a side, and memory for sums of classes and for what walks write."""

    rows: Any
    totals: Any
    out: Any


def side_of(rows: RowsAtWork) -> Side:
    """Return rows of a side whose leaves may have any size as loops have them."""
    words = words_of(rows)
    return Side(words, words)


# ---------------------------------------------------------------------- for each kind of tables


@operation
def restrict(tables: Any, sides: Any, f: int, t: int) -> None:
    """Write the rows below a threshold into the left side, and those from it on into the right one."""
    raise NotImplementedError


@operation
def restrict_sized(tables: Any, sides: Any, f: int, t: int, low: int, high: int) -> None:
    """Write whose samples leaves count: rows below ``high``, and from ``low`` on.

    Tables that do not relax (:attr:`Tables.relaxes`) have their sides restricted to those at the threshold.
    """
    raise NotImplementedError


@operation
def leaf_below(tables: Any, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf of any size for the rows below a threshold, or for those from it on."""
    raise NotImplementedError


@operation
def pair(
    tables: Any,
    rows: Any,
    f: int,
    below: int,
    first: int,
    cost: float,
    enough: float,
    totals: Any,
    out: Any,
) -> tuple[float, float]:
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on.

    Lower bounds on them will do where their sum is at least ``enough``.
    """
    raise NotImplementedError


@operation
def sized_pair(
    tables: Any,
    rows: Any,
    f: int,
    below: int,
    first: int,
    low: int,
    high: int,
    cost: float,
    totals: Any,
    out: Any,
) -> tuple[float, float]:
    """As :func:`pair`, for leaves of at least ``N_min`` samples.

    These are counted among the rows of the side below ``high`` in place of ``below``, and from ``low`` on.
    Tables that do not relax (:attr:`Tables.relaxes`) are asked where these are the rows of the pair.
    """
    raise NotImplementedError


# ---------------------------------------------------------------------- their addresses


#: Addresses by operation and kinds of tables and rows.
_ADDRESSES: dict[Any, int] = {}


def address_for(name: str, tables: tuple[Any, ...], rows: RowsAtWork) -> int:
    """Return the address of an operation for a kind of tables and rows, compiled or loaded.

    Parameters
    ----------
    name
        ``"restrict"``, ``"restrict_sized"``, ``"leaf_below"``, ``"pair"`` or ``"sized_pair"``.
    """
    key = name, kind_of(tables), kind_of(rows)
    if key not in _ADDRESSES:
        _ADDRESSES[key] = _address(name, typeof(tables), typeof(rows))
    return _ADDRESSES[key]


def _address(name: str, of_tables: Any, of_rows: Any) -> int:
    tables_in, rows_in, i, x = view(of_tables), view(of_rows), types.int64, types.float64

    def restrict_by_words(tables: Any, left: Any, right: Any, f: int, t: int) -> float:
        restrict(tables_in(tables), (rows_in(left).rows, rows_in(right).rows), f, t)
        return 0.0

    def restrict_sized_by_words(
        tables: Any, left: Any, right: Any, f: int, t: int, low: int, high: int
    ) -> float:
        restrict_sized(tables_in(tables), (rows_in(left).rows, rows_in(right).rows), f, t, low, high)
        return 0.0

    def leaf_by_words(tables: Any, f: int, t: int, right: int) -> float:
        return leaf_below(tables_in(tables), f, t, right != 0)

    def pair_by_words(
        tables: Any,
        rows: Any,
        f: int,
        below: int,
        first: int,
        cost: float,
        enough: float,
        node: Any,
        losses: Any,
    ) -> float:
        side = rows_in(rows)
        side.out[SIDE], side.out[ROOT], side.out[UPPER] = node[SIDE], node[ROOT], node[UPPER]
        losses[0], losses[1] = pair(
            tables_in(tables), side.rows, f, below, first, cost, enough, side.totals, side.out
        )
        return 0.0

    def sized_by_words(
        tables: Any,
        rows: Any,
        f: int,
        below: int,
        first: int,
        low: int,
        high: int,
        cost: float,
        node: Any,
        losses: Any,
    ) -> float:
        side = rows_in(rows)
        side.out[SIDE], side.out[ROOT], side.out[UPPER] = node[SIDE], node[ROOT], node[UPPER]
        losses[0], losses[1] = sized_pair(
            tables_in(tables), side.rows, f, below, first, low, high, cost, side.totals, side.out
        )
        return 0.0

    function, arguments = {
        "restrict": (restrict_by_words, (WORDS, WORDS, WORDS, i, i)),
        "restrict_sized": (restrict_sized_by_words, (WORDS, WORDS, WORDS, i, i, i, i)),
        "leaf_below": (leaf_by_words, (WORDS, i, i, i)),
        "pair": (pair_by_words, (WORDS, WORDS, i, i, i, x, x, WORDS, NUMBERS)),
        "sized_pair": (sized_by_words, (WORDS, WORDS, i, i, i, i, i, x, WORDS, NUMBERS)),
    }[name]
    return address_of(cast("Callable[..., float]", function), arguments, (of_tables, of_rows))
