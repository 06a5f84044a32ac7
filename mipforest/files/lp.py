r"""LP files (CPLEX's format): models as text that people and every solver read.

The written dialect was chosen so that HiGHS, Gurobi, SCIP, GLPK and COIN-OR's Cbc read the same model, as far
as each takes its parts:

- Every coefficient is one line, so no line is long. The sign stands apart from the number. Numbers are the
  shortest decimal that reads back as the same float64.
- The objective names every column, in order, with coefficient 0 where it has none: readers number columns as
  they meet them.
- A constant ``k`` of the objective is ``k Constant`` with ``Constant = 1`` in the bounds. Of a bare number
  at the end, Gurobi and Cbc make a column with a lower bound of 0, or drop it; GLPK refuses it.
- The quadratic part ``1/2 x'Qx`` is ``[ Q11 x ^2 + 2 Q12 x * y ] / 2``.
- A row with two sides is two rows, ``NAME`` and ``NAME_upper``: readers differ in their notation for ranges.
- Indicator rows read ``NAME: z = 1 -> ...``. Gurobi and SCIP take them; HiGHS refuses the file.
- Rows without sides are left out (a comment says how many): the format has none.
- Names are made safe by :func:`mipforest.files.layout.lp_names`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray
from mipforest.files.layout import CONSTANT, FileRows, check_writable, file_rows, lp_names
from mipforest.files.streams import TextArray, lines, number_table, number_text, split_suffix, write_lines
from mipforest.model.matrix import MatrixForm

__all__ = ["lp_column_names", "lp_text", "write_lp"]


def write_lp(form: MatrixForm, path: str | os.PathLike[str]) -> None:
    """Write a model to an LP file, which appears complete or not at all.

    Parameters
    ----------
    form
        The model.
    path
        ``*.lp``, or ``*.lp.gz`` for a compressed file.

    Raises
    ------
    ValueError
        If the suffix is another, or the model has a part that no LP file tells: NaN, an infinite
        coefficient, crossing sides, a matrix ``Q`` that is not symmetric, an indicator row without sides or
        without a binary column, no columns at all.
    OSError
        As the system reports it: no such folder, no permission, disk full.
    """
    _, compressed = split_suffix(path, (".lp",))
    write_lines(path, lp_text(form), compressed=compressed)


def lp_text(form: MatrixForm) -> Iterator[bytes]:
    """Tell a model as the text of an LP file; see :func:`mipforest.files.lp.write_lp`.

    Yields
    ------
    bytes
        Runs of complete ASCII lines.

    Raises
    ------
    ValueError
        If the model has a part that no LP file tells.
    """
    check_writable(form)
    if not form.n_columns:
        raise ValueError("the model has no columns, and an LP file cannot tell that; write .mps")
    rows = file_rows(form, ranges=False, naming=lp_names)
    names = np.array(lp_column_names(form), dtype=np.bytes_)
    yield b"\\ " + lp_names([form.name or "model"])[0].encode() + b"\n"
    yield b"Maximize\n" if form.maximize else b"Minimize\n"
    yield f" {lp_names(['obj'], reserved=rows.names)[0]}:\n".encode()
    yield from _objective(form, names)
    yield b"Subject To\n"
    yield from _rows(form, rows, names)
    yield from _bounds(form, names)
    binary = form.integer & (form.col_lower == 0) & (form.col_upper == 1)
    for header, wanted in ((b"Generals\n", form.integer & ~binary), (b"Binaries\n", binary)):
        if wanted.any():
            yield header
            yield from lines(b" ", (names, np.flatnonzero(wanted)), b"\n")
    yield b"End\n"


def lp_column_names(form: MatrixForm) -> list[str]:
    """Return the names of a model's columns in its LP file."""
    return lp_names(form.column_names, reserved=[CONSTANT])


def _objective(form: MatrixForm, names: TextArray) -> Iterator[bytes]:
    """Write all columns, in order, those without a cost too: readers number columns as they meet them."""
    coefficient, index = _coefficients(form.c)
    yield from lines((coefficient, index), (names, np.arange(form.n_columns)), b"\n")
    if form.offset != 0:
        yield _coefficients(np.array([form.offset]))[0][0] + CONSTANT.encode() + b"\n"
    if form.Q is None or not form.Q.nnz:
        return
    yield b" + [\n"
    triangle = sparse.triu(form.Q, format="csr").tocoo()
    diagonal = triangle.row == triangle.col
    with np.errstate(over="ignore"):
        products = np.where(diagonal, triangle.data, 2.0 * triangle.data)
    if np.isinf(products).any():
        raise ValueError("twice a quadratic coefficient overflows, which an LP file needs; scale the model")
    coefficient, index = _coefficients(products)
    for part, sign, second in ((diagonal, b" ^2\n", None), (~diagonal, b" * ", triangle.col)):
        if not part.any():
            continue
        first = (names, triangle.row[part])
        if second is None:
            yield from lines((coefficient, index[part]), first, sign)
        else:
            yield from lines((coefficient, index[part]), first, sign, (names, second[part]), b"\n")
    yield b" ] / 2\n"


def _coefficients(values: FloatArray) -> tuple[TextArray, np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Write numbers as coefficients, ``" - 2.5 "``: each distinct one once, and the position of each."""
    table, index = number_table(values)
    signed = [
        b" - %b " % text[1:] if text.startswith(b"-") else b" + %b " % text
        for text in table.tolist()  # the sign stands apart: not every reader takes it with the number
    ]
    return np.array(signed, dtype=np.bytes_), index


def _rows(form: MatrixForm, rows: FileRows, names: TextArray) -> Iterator[bytes]:
    """Write one line for a row's name, one for each coefficient, one for its side.

    Every line is two texts out of two tables. Rows without a side say nothing and are left out; a row
    without coefficients gets a 0 for the first column.
    """
    kept = np.flatnonzero(rows.kind != b"N")
    if len(kept) < len(rows.kind):
        yield b"\\ %d rows without sides are left out\n" % (len(rows.kind) - len(kept))
    if not len(kept):
        return
    A, m = rows.A[kept] if len(kept) < len(rows.kind) else rows.A, len(kept)
    coefficient, value = _coefficients(np.append(A.data, 0.0))
    heads = np.array([f" {rows.names[row]}:" for row in kept], dtype=np.bytes_)
    conditional = np.flatnonzero(rows.origin[kept] >= form.n_rows)
    if len(conditional):
        indicator = rows.origin[kept[conditional]] - form.n_rows
        one = np.where(form.indicators.value[indicator] == 1, b" = 1 ->", b" = 0 ->")
        condition = np.char.add(np.char.add(b" ", names[form.indicators.binary[indicator]]), one)
        heads = heads.astype(f"S{heads.itemsize + condition.itemsize}")
        heads[conditional] = np.char.add(heads[conditional], condition)
    side, right = number_table(rows.rhs[kept])
    left_table = np.concatenate((coefficient, heads, [b" <= ", b" >= ", b" = "]))
    right_table = np.concatenate((np.char.add(names, b"\n"), [b"\n"], np.char.add(side, b"\n")))

    n, first_head = len(names), len(coefficient)
    sense = first_head + m + np.select([rows.kind[kept] == b"L", rows.kind[kept] == b"G"], [0, 1], 2)
    empty = np.diff(A.indptr) == 0
    # Around a row's coefficients: its name, a 0 if it has none, and its side.
    keep = np.stack((np.ones(m, bool), empty, np.ones(m, bool)), axis=1).ravel()
    where = np.stack((A.indptr[:-1], A.indptr[:-1], A.indptr[1:]), axis=1).ravel()[keep]
    extra_left = np.stack((first_head + np.arange(m), np.full(m, value[-1]), sense), axis=1).ravel()[keep]
    extra_right = np.stack((np.full(m, n), np.zeros(m, int), n + 1 + right), axis=1).ravel()[keep]
    yield from lines(
        (left_table, np.insert(value[:-1], where, extra_left)),
        (right_table, np.insert(A.indices, where, extra_right)),
    )


def _bounds(form: MatrixForm, names: TextArray) -> Iterator[bytes]:
    """Write bounds other than ``[0, inf]`` and those that the section of binary columns states."""
    lower, upper = form.col_lower, form.col_upper
    binary = form.integer & (lower == 0) & (upper == 1)
    given = np.flatnonzero(((lower != 0) | np.isfinite(upper)) & ~binary)
    if not len(given) and not form.offset:
        return
    yield b"Bounds\n"
    low, high = lower[given], upper[given]
    fixed, no_low, no_high = low == high, np.isinf(low), np.isinf(high)
    low_text = np.char.add(number_text(np.where(no_low, 0.0, low)), b" <= ")
    before = np.select(
        [fixed | (no_low & no_high), no_low], [b" ", b" -inf <= "], np.char.add(b" ", low_text)
    )
    high_text = number_text(np.where(no_high, 0.0, high))
    after = np.select(
        [no_low & no_high, fixed, no_high],
        [b" free\n", np.char.add(np.char.add(b" = ", high_text), b"\n"), b"\n"],
        np.char.add(np.char.add(b" <= ", high_text), b"\n"),
    )
    if len(given):
        yield from lines(before, (names, given), after)
    if form.offset != 0:
        yield f" {CONSTANT} = 1\n".encode()
