"""Rows, expressions and bounds written as algebra: ``2 x[1] + y <= 3``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.model.matrix import Block

#: Terms of a row that are written before it is cut off.
SHOWN_TERMS = 8

#: Rows of a block that are written before it is cut off.
SHOWN_ROWS = 10

#: Rows up to which a model that is printed shows :data:`SHOWN_ROWS` of every block; of a larger one it shows the few.
SMALL, FEW_ROWS = 30, 2


def entry_name(blocks: Sequence[Block], number: int) -> str:
    """Return the name of one column (or row) by its number, without those of all others.

    Parameters
    ----------
    blocks
        Naming blocks in order, without gaps.
    number
        0 to the number of columns less 1.
    """
    block = blocks[bisect_right([block.start for block in blocks], number) - 1]
    while number >= block.stop:  # an empty block starts where the next one does
        block = blocks[blocks.index(block) + 1]
    if block.flat_names is not None:
        return block.flat_names[number - block.start]
    if not block.shape:
        return block.name
    labels = block.labels or (None,) * len(block.shape)
    place = np.unravel_index(number - block.start, block.shape)
    entry = (str(k) if given is None else given[k] for k, given in zip(place, labels, strict=True))
    return f"{block.name}[{','.join(entry)}]"


def linear_text(
    columns: IntArray,
    coefficients: FloatArray,
    blocks: Sequence[Block],
    *,
    constant: float = 0.0,
    most: int = SHOWN_TERMS,
) -> str:
    """Write a linear expression, ``2 x[1] - y``; after ``most`` terms the number of the others stands.

    Parameters
    ----------
    columns, coefficients
        (k,) terms; those with coefficient 0 are left out.
    blocks
        Naming blocks of the columns.
    constant
        Written last unless it is 0.
    most
        Largest number of terms that are written.
    """
    terms = [(int(j), float(a)) for j, a in zip(columns, coefficients, strict=True) if a]
    text = ""
    for j, a in terms[:most]:
        size = "" if abs(a) == 1 else f"{abs(a):g} "
        sign = ("-" if a < 0 else "") if not text else (" - " if a < 0 else " + ")
        text += f"{sign}{size}{entry_name(blocks, j)}"
    if len(terms) > most:
        text += f" + ... ({len(terms) - most} more terms)"
    if constant or not text:
        sign = ("-" if constant < 0 else "") if not text else (" - " if constant < 0 else " + ")
        text += f"{sign}{abs(constant):g}"
    return text


def between_text(text: str, lower: float, upper: float) -> str:
    """Write an expression between its sides: ``e = 1``, ``e <= 3``, ``e >= 2``, ``0 <= e <= 1``, ``e is free``."""
    if lower == upper:
        return f"{text} = {lower:g}"
    if lower == -np.inf:
        return f"{text} is free" if upper == np.inf else f"{text} <= {upper:g}"
    return f"{text} >= {lower:g}" if upper == np.inf else f"{lower:g} <= {text} <= {upper:g}"


def row_text(
    A: SparseMatrix, row: int, lower: float, upper: float, blocks: Sequence[Block], *, switch: str = ""
) -> str:
    """Write one row of a CSR matrix between its sides; an indicator row with its ``switch`` before it, ``z = 1``."""
    entries = slice(A.indptr[row], A.indptr[row + 1])
    # Terms that repeat a column count together.
    columns, number = np.unique(A.indices[entries], return_inverse=True)
    coefficients = np.zeros(len(columns))
    np.add.at(coefficients, number, A.data[entries])
    text = between_text(linear_text(columns, coefficients, blocks), lower, upper)
    return f"{switch} => {text}" if switch else text


def cut_off(lines: Sequence[str], in_all: int, most: int = SHOWN_ROWS) -> str:
    """Join at most ``most`` lines; behind them the number of the others stands, of ``in_all``."""
    more = [f"... ({in_all - most} more)"] if in_all > most else []
    return "\n".join([*lines[:most], *more])
