"""What an MPS file says: its lines as a stream, their fields, the records so far, and the model that follows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import inf, nan
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.errors import MipforestError, suggestion
from mipforest.files.streams import numbered_lines, split_suffix
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm


@dataclass
class MpsContent:
    """The records of an MPS file, checked one by one; rows and columns are numbers from 0 in file order.

    Attributes
    ----------
    name, maximize, offset
        Name, sense and constant of the objective.
    row_names, row_kinds
        Names and types (``N``, ``L``, ``G``, ``E``) of the rows after the objective.
    column_names, integer, costs
        Names, integrality and objective coefficients of the columns.
    entry_rows, entry_values, column_starts
        The matrix by column: the entries of column ``j`` begin at ``column_starts[j]``.
    rhs, ranges
        By row.
    lower, upper
        Bounds by column, where given.
    quadratic
        Upper triangle of Q, ``(i, j)`` with ``i <= j``.
    indicators
        By row: column and value of its condition.
    halves
        Pairs of rows that a comment announces as the sides of one row.
    """

    name: str = ""
    maximize: bool = False
    offset: float = 0.0
    row_names: list[str] = field(default_factory=list)
    row_kinds: list[str] = field(default_factory=list)
    column_names: list[str] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    entry_rows: list[int] = field(default_factory=list)
    entry_values: list[float] = field(default_factory=list)
    column_starts: list[int] = field(default_factory=list)
    rhs: dict[int, float] = field(default_factory=dict)
    ranges: dict[int, float] = field(default_factory=dict)
    lower: dict[int, float] = field(default_factory=dict)
    upper: dict[int, float] = field(default_factory=dict)
    quadratic: dict[tuple[int, int], float] = field(default_factory=dict)
    indicators: dict[int, tuple[int, int]] = field(default_factory=dict)
    halves: list[tuple[int, int]] = field(default_factory=list)

    def row_sides(self, row: int) -> tuple[float, float]:
        """Lower and upper side of a row.

        A range ``R`` means ``[rhs, rhs + |R|]`` for type G, ``[rhs - |R|, rhs]`` for L; for E, the former if
        ``R`` is positive, the latter if it is negative.
        """
        kind, rhs, span = self.row_kinds[row], self.rhs.get(row, 0.0), self.ranges.get(row)
        if kind == "N":
            return -np.inf, np.inf
        if kind == "E" and span is None:
            return rhs, rhs
        if kind == "G" or (kind == "E" and span is not None and span >= 0):
            return rhs, np.inf if span is None else rhs + abs(span)
        return -np.inf if span is None else rhs - abs(span), rhs

    def bounds(self, column: int) -> tuple[float, float]:
        """Lower and upper bound of a column.

        By default ``[0, inf]``, but ``[0, 1]`` for an integer column without any bound, as in HiGHS, Gurobi,
        SCIP.
        """
        lower, upper = self.lower.get(column), self.upper.get(column)
        if lower is None and upper is None and self.integer[column]:
            return 0.0, 1.0
        return 0.0 if lower is None else lower, np.inf if upper is None else upper

    def form(self) -> MatrixForm:
        """Build the model."""
        n, m = len(self.column_names), len(self.row_names)
        starts = [*self.column_starts, len(self.entry_rows)] if n else [0]
        arrays = (
            np.array(self.entry_values, dtype=float),
            np.array(self.entry_rows, dtype=np.int32),
            np.array(starts),
        )
        A = sparse.csc_array(arrays, shape=(m, n)).tocsr()
        A.eliminate_zeros()
        sides = np.array([self.row_sides(row) for row in range(m)], dtype=float).reshape(m, 2)
        bounds = np.array([self.bounds(column) for column in range(n)], dtype=float).reshape(n, 2)
        lower, upper = sides[:, 0].copy(), sides[:, 1].copy()
        keep = self._join_halves(A, upper)
        conditional = np.zeros(m, dtype=bool)
        conditional[list(self.indicators)] = True
        linear, conditional = np.flatnonzero(keep & ~conditional), np.flatnonzero(keep & conditional)
        return MatrixForm(
            c=np.array(self.costs, dtype=float),
            A=_rows_of(A, linear),
            row_lower=lower[linear],
            row_upper=upper[linear],
            col_lower=bounds[:, 0].copy(),
            col_upper=bounds[:, 1].copy(),
            integer=np.array(self.integer, dtype=bool),
            indicators=self._indicator_rows(A, lower, upper, conditional),
            Q=self._hessian(),
            offset=self.offset,
            columns=_block("columns", self.column_names),
            rows=_block("rows", [self.row_names[row] for row in linear]),
            maximize=self.maximize,
            name=self.name,
        )

    def _indicator_rows(
        self, A: SparseMatrix, lower: FloatArray, upper: FloatArray, rows: IntArray
    ) -> IndicatorRows:
        if not len(rows):
            return IndicatorRows.none(A.shape[1])
        binary, value = np.array([self.indicators[row] for row in rows.tolist()], dtype=np.int64).T
        names = [self.row_names[row] for row in rows]
        return IndicatorRows(
            binary, value, _rows_of(A, rows), lower[rows], upper[rows], _block("indicators", names)
        )

    def _hessian(self) -> SparseMatrix | None:
        """Return both triangles of Q, or None if it has no entry."""
        terms = [(i, j, value) for (i, j), value in self.quadratic.items() if value != 0]
        if not terms:
            return None
        mirrored = terms + [(j, i, value) for i, j, value in terms if i != j]
        i, j, value = zip(*mirrored, strict=True)
        n = len(self.column_names)
        Q = sparse.csr_array((np.array(value), (np.array(i), np.array(j))), shape=(n, n))
        Q.sort_indices()
        return Q

    def _join_halves(self, A: SparseMatrix, upper: FloatArray) -> BoolArray:
        """Move the upper side of the second of two half rows to the first; return which rows remain.

        A pair that has come apart (an edited file) stays two rows, which is the same model.
        """
        keep = np.ones(len(upper), dtype=bool)
        for first, second in self.halves:
            if keep[first] and keep[second] and self._are_halves(A, first, second):
                upper[first] = upper[second]
                keep[second] = False
        return keep

    def _are_halves(self, A: SparseMatrix, first: int, second: int) -> bool:
        """Return whether two rows are ``G`` and ``L`` without ranges, on the same condition and coefficients."""
        a, b = (slice(A.indptr[row], A.indptr[row + 1]) for row in (first, second))
        return (
            second == first + 1
            and (self.row_kinds[first], self.row_kinds[second]) == ("G", "L")
            and first not in self.ranges
            and second not in self.ranges
            and self.rhs.get(first, 0.0) < self.rhs.get(second, 0.0)
            and self.indicators.get(first) == self.indicators.get(second)
            and np.array_equal(A.indices[a], A.indices[b])
            and np.array_equal(A.data[a], A.data[b])
        )


def _rows_of(A: SparseMatrix, rows: npt.NDArray[np.integer]) -> SparseMatrix:
    """Take some rows of a CSR matrix, in order; the matrix itself if these are all."""
    return A if len(rows) == A.shape[0] else A[rows]


def _block(name: str, names: list[str]) -> tuple[Block, ...]:
    """Return one block of all names; none if there are none."""
    return (Block(name, 0, (len(names),), flat_names=tuple(names)),) if names else ()


class MpsError(MipforestError, ValueError):
    """A malformed or unsupported MPS file.

    Attributes
    ----------
    path
        The file.
    line
        Number of the line at fault, from 1.
    reason
        What is wrong with it.
    """

    def __init__(self, path: str | os.PathLike[str], line: int, reason: str) -> None:
        super().__init__(f"{os.fspath(path)}:{line}: {reason}")
        self.path, self.line, self.reason = Path(path), line, reason


def mps_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of an MPS file, compressed or not, with their numbers.

    Raises
    ------
    ValueError
        If the suffix is wrong.
    MpsError
        If a line is too long, or the compressed data are damaged.
    OSError
        As the system reports it.
    """
    _, compressed = split_suffix(path, (".mps",))
    return numbered_lines(path, lambda line, reason: MpsError(path, line, reason), compressed=compressed)


class Reading:
    """State of the reading of one file.

    Attributes
    ----------
    path, line
        The file, and the number of the line at hand.
    content
        What the file has said so far.
    row_of, column_of
        Numbers of the rows (-1 for the objective) and columns by name.
    objective
        Name of the objective.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.line = 1
        self.content = MpsContent()
        self.row_of: dict[bytes, int] = {}
        self.column_of: dict[bytes, int] = {}
        self.objective: bytes | None = None
        self._set_names: dict[str, bytes] = {}

    def error(self, reason: str, line: int | None = None) -> MpsError:
        """Make the error of a line, by default the one at hand."""
        return MpsError(self.path, self.line if line is None else line, reason)

    def printable(self, text: bytes) -> str:
        """Decode a name."""
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError:
            decoded = "\0"
        if not decoded.isprintable():
            raise self.error(f"{short(text)} is no printable text in UTF-8; is this an MPS file?")
        return decoded

    def number(self, text: bytes) -> float:
        """Read a finite number."""
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not -inf < value < inf or b"_" in text:  # Python takes 1_000 for a number, other readers do not
            raise self.error(f"{short(text)} is not a finite number")
        return value + 0.0  # no negative zero

    def bound(self, text: bytes) -> float:
        """Read a number, possibly infinite."""
        word = text.lower().lstrip(b"+-")
        if word not in (b"inf", b"infinity"):
            return self.number(text)
        return -inf if text.startswith(b"-") else inf

    def row(self, name: bytes) -> int:
        """Find a row."""
        try:
            return self.row_of[name]
        except KeyError:
            raise self._unknown("row", name, self.row_of) from None

    def column(self, name: bytes) -> int:
        """Find a column."""
        try:
            return self.column_of[name]
        except KeyError:
            raise self._unknown("column", name, self.column_of) from None

    def _unknown(self, what: str, name: bytes, known: dict[bytes, int]) -> MpsError:
        """Tell of an unknown name, with the nearest of the first ones."""
        names = [other.decode() for other in islice(known, 10_000)]
        hint = suggestion(name[:255].decode("utf-8", "replace"), names)
        return self.error(f"unknown {what} {short(name)}{hint}")

    def pairs(self, section: str, fields: list[bytes]) -> list[tuple[int, float]]:
        """Read row and value of each pair on a line ``[set] row value [row value]``."""
        if not 2 <= len(fields) <= 5:
            raise self.error(f"{len(fields)} fields; a line of {section} has [set] row value [row value]")
        has_set = len(fields) % 2
        names, values = fields[has_set::2], fields[has_set + 1 :: 2]
        pairs = [(self.row(name), self.number(value)) for name, value in zip(names, values, strict=True)]
        self.check_set(section, fields[0] if has_set else b"")
        return pairs

    def check_set(self, section: str, name: bytes) -> None:
        """Refuse a second set of right-hand sides, ranges or bounds: a reader would have to choose."""
        first = self._set_names.setdefault(section, name)
        if first != name:
            raise self.error(
                f"a second set {short(name)} in {section} after the set {short(first)}; keep one"
            )


def short(text: bytes) -> str:
    """Quote a field for an error message, with at most 40 characters."""
    shown = text if len(text) <= 40 else text[:37] + b"..."
    return f"'{shown.decode('utf-8', 'backslashreplace')}'"
