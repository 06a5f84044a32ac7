r"""Rewrite indicator rows as big-M rows.

Source: ``x_b = v  implies  L <= a.x <= U``, with v 0 or 1. Target: one linear row per finite side,

.. math::  a^\top x \ge L - (L - \underline{a}) [x_b \ne v], \qquad
           a^\top x \le U + (\overline{a} - U) [x_b \ne v],

where :math:`[\underline{a}, \overline{a}]` is the interval of a.x over the column bounds: the smallest M that
interval arithmetic proves. A side that no point within the bounds can break gets no row.

The columns stay the same, and both models have the same points with integral x_b. A solver that takes
``x_b = 1 - 1e-6`` for 1 may however break a side by 1e-6 M: keep column bounds tight.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray
from mipforest.bridges import Bridged
from mipforest.errors import Unsupported
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm, row_bounds
from mipforest.solvers.base import Feature

NAME = "indicator_to_big_m"

ADVICE = "tighten the bounds of its columns, or choose a solver that takes indicator rows"


def applies(form: MatrixForm, missing: frozenset[Feature]) -> bool:
    """Return whether a model has indicator rows that the solver lacks.

    The tangents of a quadratic objective take none either, whether or not the solver takes them.
    """
    return bool(form.indicators.n_rows and missing & {Feature.INDICATORS, Feature.MIQP})


def apply(form: MatrixForm) -> Bridged:
    """Rewrite every indicator row of a model; the other rows come first and stay the same.

    A new row bears the indicator row's name; of two rows for one indicator row, the one for the upper side
    bears ``name_upper``.

    Raises
    ------
    Unsupported
        If a side needs an infinite M, naming the row and the column without a bound.
    """
    indicators = form.indicators
    least, greatest = row_bounds(indicators.A, form.col_lower, form.col_upper)
    below, above = np.flatnonzero(least < indicators.lower), np.flatnonzero(greatest > indicators.upper)
    _require_finite(form, below[np.isinf(least[below])])
    _require_finite(form, above[np.isinf(greatest[above])])

    # Both sides of an indicator row next to each other, the lower one first.
    row = np.concatenate([below, above])
    is_upper = np.repeat([False, True], [len(below), len(above)])
    order = np.lexsort((is_upper, row))
    row, is_upper = row[order], is_upper[order]

    side = np.where(is_upper, indicators.upper[row], indicators.lower[row])
    # Signed: what the side moves by is M for a lower side and -M for an upper one.
    move = side - np.where(is_upper, greatest[row], least[row])
    on_at_one = indicators.value[row] == 1
    switch = sparse.csr_array(
        (np.where(on_at_one, -move, move), (np.arange(len(row)), indicators.binary[row])),
        shape=(len(row), form.n_columns),
    )
    side = np.where(on_at_one, side - move, side)
    A = sparse.csr_array(sparse.vstack([form.A, indicators.A[row] + switch], format="csr"))
    A.eliminate_zeros()
    A.sort_indices()
    new = replace(
        form,
        A=A,
        row_lower=np.concatenate([form.row_lower, np.where(is_upper, -np.inf, side)]),
        row_upper=np.concatenate([form.row_upper, np.where(is_upper, side, np.inf)]),
        rows=form.rows + _blocks(form, row, is_upper),
        indicators=IndicatorRows.none(form.n_columns),
    )
    return Bridged(new, undo=_same, carry=_same)


def _require_finite(form: MatrixForm, unbounded: IntArray) -> None:
    """Refuse the first indicator row in a list of those without a finite M."""
    if len(unbounded) == 0:
        return
    r = int(unbounded[0])
    name = [name for block in form.indicators.rows for name in block.names()][r]
    columns = form.indicators.A[[r]].indices
    open_ended = np.isinf(form.col_lower[columns]) | np.isinf(form.col_upper[columns])
    culprit = form.column_names[int(columns[open_ended][0])]
    raise Unsupported(
        f"indicator row {name} has no finite big-M, because column {culprit} lacks a bound; "
        f"bound {culprit}, or choose a solver that takes indicator rows (gurobi, scip)"
    )


def _blocks(form: MatrixForm, row: IntArray, is_upper: FloatArray) -> tuple[Block, ...]:
    """Return one block of new rows for each block of indicator rows."""
    two_sided = np.bincount(row, minlength=form.indicators.n_rows) == 2
    blocks: list[Block] = []
    start = form.n_rows
    for block in form.indicators.rows:
        names = block.names()
        inside = np.flatnonzero((block.start <= row) & (row < block.stop))
        entries = tuple(
            names[row[k] - block.start] + ("_upper" if is_upper[k] and two_sided[row[k]] else "")
            for k in inside
        )
        blocks.append(Block(block.name, start, (len(entries),), flat_names=entries))
        start += len(entries)
    return tuple(blocks)


def _same(x: FloatArray) -> FloatArray:
    return x
