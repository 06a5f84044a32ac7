"""MPS files: models as text that every solver reads, exact to the last bit.

The dialect is free format: fields are separated by blanks, names hold none. Readers differ in details; what
is written here was chosen so that HiGHS, Gurobi, SCIP and :func:`read_mps` understand the same model, and so
do GLPK and Cbc where it is linear, minimises, and (GLPK) has no constant: they ignore or refuse ``OBJSENSE``,
and GLPK takes the constant with the opposite sign. For these two, LP files are safer.

- Numbers are the shortest decimal that reads back as the same float64 (the writers of HiGHS and SCIP keep 15
  digits, which loses bits).
- The line ``NAME`` ends in the word ``FREE`` if the model has a name: Cbc needs it to read free format.
- The first ``N`` row is the objective. Minus its right-hand side is the constant. Later ``N`` rows are rows
  without sides, which the solvers skip. ``OBJSENSE`` is written only for ``MAX``.
- Every coefficient is one line. A column without coefficients gets a 0 in the objective.
- Integer columns stand between ``MARKER`` lines and always have explicit bounds; a lower bound comes ahead
  of an upper.
- A row with two finite sides has a range ``R``. Readers compute the other side in float64, so anchor and
  ``R`` are chosen to give it exactly. Where no such ``R`` exists, and for indicator rows (Gurobi drops the
  condition of one that has a range), the two sides are two rows, ``NAME`` and ``NAME_upper``, announced by a
  comment line from which :func:`read_mps` joins them again.
- ``QUADOBJ`` holds one triangle of ``Q`` in ``1/2 x'Qx``; ``INDICATORS`` (``IF row column value``) makes
  ordinary rows conditional. HiGHS reads no indicators.
- The same model gives the same bytes. No time stamps.

References
----------
IBM ILOG CPLEX, "MPS file format: industry standard", and its extensions for quadratic objectives and
indicators.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from mipforest.files.layout import TWO_SIDES, FileRows, check_writable, file_rows, safe_names
from mipforest.files.mps.reader import MpsError, read_mps
from mipforest.files.streams import TextArray, lines, number_table, number_text, split_suffix, write_lines
from mipforest.model.matrix import MatrixForm

__all__ = ["MpsError", "mps_text", "read_mps", "write_mps"]


def write_mps(form: MatrixForm, path: str | os.PathLike[str]) -> None:
    """Write a model to an MPS file, which appears complete or not at all.

    :func:`read_mps` gives back the same model: every number to the last bit (negative zeros become zeros),
    columns and rows in order. Names that readers would stumble over are replaced, see
    :func:`mipforest.files.layout.safe_names`; block structure is not kept.

    Parameters
    ----------
    form
        The model.
    path
        ``*.mps``, or ``*.mps.gz`` for a compressed file.

    Raises
    ------
    ValueError
        If the suffix is another, or the model has a part that no MPS file tells: NaN, an infinite
        coefficient, crossing sides, a matrix ``Q`` that is not symmetric, an indicator row without sides or
        without a binary column.
    OSError
        As the system reports it: no such folder, no permission, disk full.
    """
    _, compressed = split_suffix(path, (".mps",))
    write_lines(path, mps_text(form), compressed=compressed)


def mps_text(form: MatrixForm) -> Iterator[bytes]:
    """Tell a model as the text of an MPS file; see :func:`write_mps`.

    Yields
    ------
    bytes
        Runs of complete ASCII lines.

    Raises
    ------
    ValueError
        If the model has a part that no MPS file tells; before anything is yielded.
    """
    check_writable(form)
    rows = file_rows(form)
    columns = safe_names(form.column_names)
    objective = safe_names(["OBJ"], reserved=rows.names)[0]
    row_table, column_table = _text(rows.names), _text(columns)

    # Without the word FREE, Cbc takes the lines for fixed columns.
    yield f"NAME {safe_names([form.name])[0]} FREE\n".encode() if form.name else b"NAME\n"
    if form.maximize:
        yield b"OBJSENSE\n    MAX\n"
    yield _rows_section(rows, objective)
    yield from _columns_section(form, rows, columns, objective)
    yield from _rhs_section(form, rows, row_table, objective)
    if not np.isnan(rows.range).all():
        yield b"RANGES\n"
        ranged = np.flatnonzero(~np.isnan(rows.range))
        yield from lines(b" RNG ", (row_table, ranged), b" ", number_text(rows.range[ranged]), b"\n")
    yield from _bounds_section(form, column_table)
    if form.Q is not None and form.Q.nnz:
        yield b"QUADOBJ\n"
        triangle = sparse.triu(form.Q, format="csr").tocoo()
        first, second = (column_table, triangle.row), (column_table, triangle.col)
        yield from lines(b" ", first, b" ", second, b" ", number_text(triangle.data), b"\n")
    if form.indicators.n_rows:
        yield b"INDICATORS\n"
        conditional = np.flatnonzero(rows.origin >= form.n_rows)
        indicator = rows.origin[conditional] - form.n_rows
        binary = (column_table, form.indicators.binary[indicator])
        value = number_text(form.indicators.value[indicator].astype(float))
        yield from lines(b" IF ", (row_table, conditional), b" ", binary, b" ", value, b"\n")
    yield b"ENDATA\n"


def _text(names: list[str]) -> TextArray:
    """Turn ASCII names into an array of texts."""
    return np.array(names, dtype=np.bytes_)


def _rows_section(rows: FileRows, objective: str) -> bytes:
    """Write types and names; a comment ahead of every two rows that are the sides of one."""
    text = [f" {kind.decode()} {name}\n" for kind, name in zip(rows.kind.tolist(), rows.names, strict=True)]
    for upper in np.flatnonzero(rows.is_upper_half):
        text[upper - 1] = f"{TWO_SIDES}{rows.names[upper - 1]} {rows.names[upper]}\n" + text[upper - 1]
    return f"ROWS\n N {objective}\n{''.join(text)}COLUMNS\n".encode("ascii")


def _columns_section(form: MatrixForm, rows: FileRows, columns: list[str], objective: str) -> Iterator[bytes]:
    """Write one line per coefficient, column by column; a column without any gets a 0 in the objective.

    Each line is three texts out of three tables: also the lines of the objective, and those that open and
    close a run of integer columns. These two kinds are inserted into the lines of the matrix.
    """
    if not columns:
        return
    n, m = len(columns), len(rows.names)
    matrix = rows.A.tocsc()
    in_objective = np.flatnonzero((form.c != 0) | (np.diff(matrix.indptr) == 0))
    numbers, value = number_table(np.concatenate((matrix.data, form.c[in_objective])))
    edges = np.flatnonzero(np.diff(form.integer, prepend=False, append=False))

    column_table = _text([f" {name} " for name in [*columns, "MARKER"]])
    row_table = _text([f"{name} " for name in [*rows.names, objective, "'MARKER'"]])
    value_table = np.concatenate((np.char.add(numbers, b"\n"), [b"'INTORG'\n", b"'INTEND'\n"]))

    # Ahead of a column's matrix entries: a marker, if it begins or ends a run, then its objective entry.
    order = np.argsort(np.concatenate((2 * edges, 2 * in_objective + 1)))
    where = matrix.indptr[np.concatenate((edges, in_objective))[order]]
    extra_column = np.concatenate((np.full(len(edges), n), in_objective))[order]
    extra_row = np.concatenate((np.full(len(edges), m + 1), np.full(len(in_objective), m)))[order]
    extra_value = np.concatenate((len(numbers) + np.arange(len(edges)) % 2, value[matrix.nnz :]))[order]
    column = np.repeat(np.arange(n, dtype=np.int32), np.diff(matrix.indptr))
    yield from lines(
        (column_table, np.insert(column, where, extra_column)),
        (row_table, np.insert(matrix.indices, where, extra_row)),
        (value_table, np.insert(value[: matrix.nnz], where, extra_value)),
    )


def _rhs_section(form: MatrixForm, rows: FileRows, row_table: TextArray, objective: str) -> Iterator[bytes]:
    """Write right-hand sides other than 0; the objective's is minus its constant."""
    yield b"RHS\n"
    if form.offset != 0:
        yield b" RHS " + objective.encode() + b" " + number_text(np.array([-form.offset]))[0] + b"\n"
    given = np.flatnonzero(rows.rhs)
    if len(given):
        yield from lines(b" RHS ", (row_table, given), b" ", number_text(rows.rhs[given]), b"\n")


def _bounds_section(form: MatrixForm, column_table: TextArray) -> Iterator[bytes]:
    """Write bounds other than ``[0, inf]``; of integer columns all, because readers differ in their defaults."""
    lower, upper, integer = form.col_lower, form.col_upper, form.integer
    whole = np.select(
        [lower == upper, np.isinf(lower) & np.isinf(upper), integer & (lower == 0) & (upper == 1)],
        [b"FX", b"FR", b"BV"],
        b"",
    )
    apart = whole == b""
    below = np.select([~apart, np.isinf(lower), (lower != 0) | integer], [whole, b"MI", b"LO"], b"")
    above = np.select([~apart, np.isfinite(upper), integer], [b"", b"UP", b"PL"], b"")
    kind = np.stack((below, above), axis=1).ravel()  # a column's lower bound comes ahead of its upper bound
    value = np.stack((lower, upper), axis=1).ravel()
    given = np.flatnonzero(kind != b"")
    if not len(given):
        return
    yield b"BOUNDS\n"
    kind, value = kind[given], value[given]
    has_value = (kind == b"LO") | (kind == b"UP") | (kind == b"FX")
    text = np.char.add(b" ", number_text(np.where(has_value, value, 0.0)))
    yield from lines(b" ", kind, b" BND ", (column_table, given // 2), np.where(has_value, text, b""), b"\n")
