"""Reader of MPS files in free format.

A stream gives the lines. Each section reads the fields of one line at a time into records, and the model is made of
these.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import inf, isinf, nan
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.errors import MipforestError, suggestion
from mipforest.files.layout import TWO_SIDES, named_block
from mipforest.files.streams import numbered_lines, split_suffix
from mipforest.model.matrix import IndicatorRows, MatrixForm


class Section(ABC):
    """A section of the file.

    Parameters
    ----------
    reading
        The state of the reading, which all sections share.

    Attributes
    ----------
    header
        Line of the section's header; ``None`` as long as there was none.
    """

    header: int | None = None

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.content = reading.content

    @abstractmethod
    def read(self, fields: list[bytes]) -> None:
        """Take the fields of one line, at least one."""

    def finish(self) -> None:  # noqa: B027 - most sections have nothing to check
        """Check what only the whole file shows."""


class SenseSection(Section):
    """OBJSENSE: one line with MAX or MIN."""

    words = {  # noqa: RUF012 - never changed
        "MAX": True, "MAXIMIZE": True, "MAXIMISE": True, "MIN": False, "MINIMIZE": False, "MINIMISE": False,
    }  # fmt: skip
    given = False

    def read(self, fields: list[bytes]) -> None:
        """Read the sense."""
        maximize = self.words.get(self.reading.printable(fields[0]).upper())
        if maximize is None or len(fields) > 1 or self.given:
            found = short(b" ".join(fields))
            raise self.reading.error(f"OBJSENSE has one line, MAX or MIN, not {found}")
        self.content.maximize, self.given = maximize, True

    def finish(self) -> None:
        """Check that there was a sense."""
        if self.header is not None and not self.given:
            raise self.reading.error("section OBJSENSE is empty; give MAX or MIN", self.header)


class RowsSection(Section):
    """ROWS: type and name of every row; the first of type N is the objective."""

    def read(self, fields: list[bytes]) -> None:
        """Read one row."""
        if len(fields) != 2:
            raise self.reading.error(
                f"{len(fields)} fields; a line of ROWS has a type and a name without blanks"
            )
        kind, name = fields
        if kind not in (b"N", b"L", b"G", b"E"):
            raise self.reading.error(f"row type {short(kind)}; it is one of N, L, G, E")
        if name in self.reading.row_of:
            raise self.reading.error(f"row {short(name)} a second time")
        decoded = self.reading.printable(name)
        if kind == b"N" and self.reading.objective is None:
            self.reading.row_of[name], self.reading.objective = -1, name
            return
        self.reading.row_of[name] = len(self.content.row_names)
        self.content.row_names.append(decoded)
        self.content.row_kinds.append(kind.decode())


class ColumnsSection(Section):
    """COLUMNS: the coefficients, all those of a column together; markers around integer columns."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.column: bytes | None = None  # the current one
        self.entered: list[int] = []  # by row, the objective last: the last column with an entry there
        self.in_integers = False

    def read(self, fields: list[bytes]) -> None:
        """Read one or two coefficients, or a marker."""
        count = len(fields)
        if count == 3 and fields[1] == b"'MARKER'":
            self._marker(fields[2])
            return
        if count not in (3, 5):
            raise self.reading.error(
                f"{count} fields; a line of COLUMNS has column row value [row value], names without blanks"
            )
        if fields[0] != self.column:
            self._open(fields[0])
        reading, content, column = self.reading, self.content, len(self.content.column_names) - 1
        for k in range(1, count, 2):
            row = reading.row(fields[k])
            if self.entered[row] == column:
                raise reading.error(f"column {short(fields[0])} has a second entry in row {short(fields[k])}")
            self.entered[row] = column
            value = reading.number(fields[k + 1])
            if row < 0:
                content.costs[column] = value
            else:
                content.entry_rows.append(row)
                content.entry_values.append(value)

    def _open(self, name: bytes) -> None:
        """Begin a column."""
        if name in self.reading.column_of:
            raise self.reading.error(
                f"column {short(name)} a second time; the lines of a column stand together"
            )
        content = self.content
        if not self.entered:
            self.entered = [-1] * (len(content.row_names) + 1)
        decoded = self.reading.printable(name)
        self.column, self.reading.column_of[name] = name, len(content.column_names)
        content.column_names.append(decoded)
        content.column_starts.append(len(content.entry_rows))
        content.costs.append(0.0)
        content.integer.append(self.in_integers)

    def _marker(self, kind: bytes) -> None:
        """Begin or end a run of integer columns."""
        if kind not in (b"'INTORG'", b"'INTEND'"):
            raise self.reading.error(f"marker {short(kind)}; this reader knows 'INTORG' and 'INTEND'")
        if (kind == b"'INTORG'") == self.in_integers:
            where = "inside" if self.in_integers else "outside"
            raise self.reading.error(f"marker {kind.decode()} {where} a run of integer columns")
        self.in_integers, self.column = not self.in_integers, None

    def finish(self) -> None:
        """Check that the last run of integer columns has ended."""
        if self.in_integers:
            raise self.reading.error("the last 'INTORG' marker has no 'INTEND'")


class RhsSection(Section):
    """RHS: right-hand sides; the objective's is minus its constant, a free row's says nothing."""

    has_offset = False

    def read(self, fields: list[bytes]) -> None:
        """Read one or two right-hand sides."""
        for row, value in self.reading.pairs("RHS", fields):
            if self.has_offset if row < 0 else row in self.content.rhs:
                raise self.reading.error("a second right-hand side of the same row")
            if row < 0:
                self.content.offset, self.has_offset = 0.0 - value, True
            else:
                self.content.rhs[row] = value


class RangesSection(Section):
    """RANGES: the distance of the two sides of a row."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.lines: dict[int, int] = {}

    def read(self, fields: list[bytes]) -> None:
        """Read one or two ranges."""
        for row, value in self.reading.pairs("RANGES", fields):
            if row < 0 or self.content.row_kinds[row] == "N":
                raise self.reading.error("a range of a row of type N, which has no sides")
            if row in self.content.ranges:
                raise self.reading.error("a second range of the same row")
            self.content.ranges[row], self.lines[row] = value, self.reading.line

    def finish(self) -> None:
        """Check that the sides are numbers."""
        for row, line in self.lines.items():
            if any(map(isinf, self.content.row_sides(row))):
                raise self.reading.error("the range overflows; leave it out for a one-sided row", line)


class HessianSection(Section):
    """QUADOBJ, one triangle of Q in ``1/2 x'Qx``, or QMATRIX, all of Q."""

    name = "QUADOBJ"

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.terms: dict[tuple[int, int], tuple[float, int]] = {}  # value and line

    def read(self, fields: list[bytes]) -> None:
        """Read one entry."""
        if len(fields) != 3:
            raise self.reading.error(f"{len(fields)} fields; a line of {self.name} has column column value")
        key = self._key(self.reading.column(fields[0]), self.reading.column(fields[1]))
        if key in self.terms:
            raise self.reading.error(f"a second entry of these columns in {self.name}")
        self.terms[key] = self.reading.number(fields[2]), self.reading.line

    def _key(self, i: int, j: int) -> tuple[int, int]:
        return (i, j) if i <= j else (j, i)

    def finish(self) -> None:
        """Hand the upper triangle over."""
        self.content.quadratic.update(
            (key, value) for key, (value, _) in self.terms.items() if key[0] <= key[1]
        )


class FullHessianSection(HessianSection):
    """QMATRIX: both triangles, which must agree."""

    name = "QMATRIX"

    def _key(self, i: int, j: int) -> tuple[int, int]:
        return i, j

    def finish(self) -> None:
        """Check the symmetry, and hand the upper triangle over."""
        for (i, j), (value, line) in self.terms.items():
            if self.terms.get((j, i), (0.0, line))[0] != value:
                names = self.content.column_names
                raise self.reading.error(
                    f"QMATRIX is not symmetric: ({names[i]}, {names[j]}) differs from its mirror", line
                )
        super().finish()


class IndicatorsSection(Section):
    """INDICATORS: rows that hold when a binary column has a value."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.lines: dict[int, int] = {}

    def read(self, fields: list[bytes]) -> None:
        """Read one condition."""
        if len(fields) != 4 or fields[0] != b"IF":
            raise self.reading.error("a line of INDICATORS has IF row column value")
        row, column = self.reading.row(fields[1]), self.reading.column(fields[2])
        if row < 0 or self.content.row_kinds[row] == "N":
            raise self.reading.error(f"row {short(fields[1])} is of type N and says nothing on any condition")
        if row in self.content.indicators:
            raise self.reading.error(f"a second condition of row {short(fields[1])}")
        if fields[3] not in (b"0", b"1"):
            raise self.reading.error(f"{short(fields[3])} as value of a binary column; it is 0 or 1")
        self.content.indicators[row], self.lines[row] = (column, int(fields[3])), self.reading.line

    def finish(self) -> None:
        """Check that the columns are binary."""
        for row, (column, _) in self.content.indicators.items():
            lower, upper = self.content.bounds(column)
            if not self.content.integer[column] or lower < 0 or upper > 1:
                name = self.content.column_names[column]
                raise self.reading.error(
                    f"column {name} is not binary; an indicator needs one", self.lines[row]
                )


#: By bound type: the sides that it sets, and to what; ``None`` stands for the value on the line.
_BOUND_TYPES: dict[bytes, dict[str, float | None]] = {
    b"LO": {"lower": None},
    b"LI": {"lower": None},
    b"UP": {"upper": None},
    b"UI": {"upper": None},
    b"FX": {"lower": None, "upper": None},
    b"FR": {"lower": -inf, "upper": inf},
    b"MI": {"lower": -inf},
    b"PL": {"upper": inf},
    b"BV": {"lower": 0.0, "upper": 1.0},
}


class BoundsSection(Section):
    """BOUNDS: lower and upper bounds of columns, and further integer columns."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.lines: dict[int, int] = {}
        self.negative_upper: dict[int, int] = {}

    def read(self, fields: list[bytes]) -> None:
        """Read one bound."""
        kind, *rest = fields
        if kind not in _BOUND_TYPES:
            known = b", ".join(_BOUND_TYPES).decode()
            raise self.reading.error(
                f"bound type {short(kind)} is unknown or unsupported; this reader knows {known}"
            )
        sides = _BOUND_TYPES[kind]
        needs_value = None in sides.values()
        name, text = self._name_and_value(rest, needs_value)
        column = self.reading.column(name)
        value = self.reading.bound(text) if needs_value else 0.0
        self.lines[column] = self.reading.line
        if kind in (b"LI", b"UI", b"BV"):
            self.content.integer[column] = True
        if kind in (b"UP", b"UI") and value < 0:
            self.negative_upper[column] = self.reading.line
        for side, default in sides.items():
            bound = value if default is None else default
            given = self.content.lower if side == "lower" else self.content.upper
            if column in given:
                raise self.reading.error(f"a second {side} bound of column {short(name)}")
            if bound == (inf if side == "lower" else -inf):
                raise self.reading.error(f"a {side} bound {bound} leaves column {short(name)} no value")
            given[column] = bound

    def _name_and_value(self, rest: list[bytes], needs_value: bool) -> tuple[bytes, bytes]:
        """Tell set, column and value apart: the set may be missing, and a value be there without need."""
        count = len(rest)
        has_value = needs_value or count == 3 or (count == 2 and rest[1] not in self.reading.column_of)
        if count - has_value not in (1, 2):
            value = " value" if needs_value else ""
            raise self.reading.error(f"{count + 1} fields; a line of BOUNDS has type [set] column{value}")
        has_set = count - has_value == 2
        self.reading.check_set("BOUNDS", rest[0] if has_set else b"")
        return rest[has_set], rest[-1]

    def finish(self) -> None:
        """Check both bounds of each column together."""
        names = self.content.column_names
        for column, line in self.negative_upper.items():
            if column not in self.content.lower:
                reason = (
                    f"negative UP bound of column {names[column]} without a lower bound, which some readers "
                    "take for -inf, others for 0; add MI or LO ahead of it"
                )
                raise self.reading.error(reason, line)
        for column, line in self.lines.items():
            lower, upper = self.content.bounds(column)
            if lower > upper:
                raise self.reading.error(
                    f"the bounds [{lower}, {upper}] of column {names[column]} cross", line
                )


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
            columns=named_block("columns", self.column_names),
            rows=named_block("rows", [self.row_names[row] for row in linear]),
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
            binary, value, _rows_of(A, rows), lower[rows], upper[rows], named_block("indicators", names)
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


_SECTIONS: dict[str, type[Section]] = {
    "OBJSENSE": SenseSection,
    "ROWS": RowsSection,
    "COLUMNS": ColumnsSection,
    "RHS": RhsSection,
    "RANGES": RangesSection,
    "BOUNDS": BoundsSection,
    "QUADOBJ": HessianSection,
    "QMATRIX": FullHessianSection,
    "INDICATORS": IndicatorsSection,
}
_SETS = "special ordered sets; write them with binaries and rows"
_PIECES = "piecewise linear functions; write them with binaries and rows"

#: Sections that other readers know: what they hold that a model here cannot, and what to do.
_REFUSED = {
    "QCMATRIX": "quadratic rows; linearise them, or let Gurobi or SCIP read the file",
    "QSECTION": "a quadratic objective or row in another layout; write an objective as QUADOBJ",
    "CSECTION": "cones; let a solver of conic models read the file",
    "SOS": _SETS,
    "SOS1": _SETS,
    "SOS2": _SETS,
    "SETS": _SETS,
    "GENCONS": "general constraints; write them with binaries and rows",
    "PWLOBJ": _PIECES,
    "PWLNAM": _PIECES,
    "PWLCON": _PIECES,
    "LAZYCONS": "lazy rows; move them to ROWS and COLUMNS",
    "USERCUTS": "cuts, which leave out no solution; leave them out",
    "BRANCH": "branching priorities; leave them out",
    "MULTIOBJ": "several objectives; keep one",
    "OBJNAME": "the name of the objective; make that row the first of type N, and leave the section out",
    "SCENARIOS": "scenarios; keep one",
}

#: Sections that may stand ahead of COLUMNS; COLUMNS itself needs ROWS.
_EARLY = ("NAME", "OBJSENSE", "ROWS")


def read_mps(path: str | os.PathLike[str]) -> MatrixForm:
    """Read a model from an MPS file in free format: fields separated by blanks, names without blanks.

    Sections: NAME, OBJSENSE, ROWS, COLUMNS with integer markers, RHS, RANGES, BOUNDS, QUADOBJ or QMATRIX,
    INDICATORS, ENDATA. Headers begin in the first place of a line, data lines with a blank, comments with
    ``*``. Set names of RHS, RANGES and BOUNDS may be missing; only one set of each is taken. Where readers
    differ:

    - The first ``N`` row is the objective, later ones are rows without sides; a right-hand side says nothing
      there.
    - An integer column between markers without any bound has ``[0, 1]``, as in HiGHS, Gurobi and SCIP.
    - A negative ``UP`` on a column without a lower bound is refused: for some readers the lower bound becomes
      -inf, for others it stays 0.
    - Finite bounds stay finite, however large. (Solvers take 1e20 or 1e30 for infinite.)

    Memory grows with the number of names and coefficients, about 100 bytes each.

    Parameters
    ----------
    path
        ``*.mps``, or ``*.mps.gz`` (compressed).

    Returns
    -------
    MatrixForm
        With one block ``columns``, one block ``rows`` and one block ``indicators`` that hold the names.

    Raises
    ------
    MpsError
        If the file is malformed, or has a section or bound type that is not supported; with line and reason.
    ValueError
        If the suffix is another.
    OSError
        As the system reports it.
    """
    return _Reader(path).read()


class _Reader:
    """Leads each line to its section."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.reading = Reading(path)
        self.lines = mps_lines(path)
        self.sections = {name: section(self.reading) for name, section in _SECTIONS.items()}
        self.opened: set[str] = set()
        self.announced: list[tuple[bytes, bytes]] = []  # rows that are the two sides of one

    def read(self) -> MatrixForm:
        section: Section | None = None
        for number, text in self.lines:
            self.reading.line = number
            fields = text.split()
            if not fields:
                continue
            if text[:1].isspace():
                if section is None:
                    raise self.reading.error(f"data {short(fields[0])} outside a section")
                section.read(fields)
            elif text[:1] == b"*":
                self._comment(text, fields)
            elif fields[0] == b"ENDATA":
                self._end()
                return self.reading.content.form()
            else:
                section = self._open(text, fields)
        raise self.reading.error("the file ends without ENDATA: it is cut off")

    def _open(self, text: bytes, fields: list[bytes]) -> Section | None:
        """Read the header of a section."""
        name = self.reading.printable(fields[0])
        if (holds := _REFUSED.get(name)) is not None:
            raise self.reading.error(f"section {name} is not supported: it holds {holds}")
        if name not in _SECTIONS and name != "NAME":
            known = ["NAME", *_SECTIONS, "ENDATA"]
            listed = f"; this reader knows {', '.join(known)}; data lines begin with a blank"
            hint = suggestion(name, known, otherwise=listed, written=str)
            raise self.reading.error(f"unknown or unsupported section {short(fields[0])}{hint}")
        if name in self.opened:
            raise self.reading.error(f"a second section {name}; join the two")
        needed = "ROWS" if name == "COLUMNS" else "COLUMNS"
        if name not in _EARLY and needed not in self.opened:
            raise self.reading.error(f"section {name} ahead of section {needed}, which it needs")
        if name == "COLUMNS" and self.reading.objective is None:
            raise self.reading.error("section ROWS has no row of type N; add one for the objective")
        if {"QUADOBJ", "QMATRIX"} <= {name, *self.opened}:
            raise self.reading.error("QUADOBJ and QMATRIX in one file; keep one of them")
        self.opened.add(name)
        if name == "NAME":
            name = self.reading.printable(text[4:].strip())
            # A last word FREE names the format, as Cbc wants it; "NAME FREE" is a model of that name.
            self.reading.content.name = (
                name[:-4].rstrip() if len(fields) > 2 and fields[-1] == b"FREE" else name
            )
            return None
        section = self.sections[name]
        section.header = self.reading.line
        if name == "OBJSENSE" and len(fields) > 1:
            section.read(fields[1:])
        elif len(fields) > 1:
            raise self.reading.error(
                f"{short(fields[1])} after the section header {name}; move it to its own line"
            )
        return section

    def _comment(self, text: bytes, fields: list[bytes]) -> None:
        """Note which two rows the writer announces as the sides of one; ignore all other comments."""
        if text.startswith(TWO_SIDES.encode()) and len(fields) == len(TWO_SIDES.split()) + 2:
            self.announced.append((fields[-2], fields[-1]))

    def _end(self) -> None:
        """Check what only the whole file shows."""
        if "COLUMNS" not in self.opened:
            raise self.reading.error("ENDATA ahead of sections ROWS and COLUMNS, which every model has")
        for section in self.sections.values():
            section.finish()
        for names in self.announced:
            first, second = (self.reading.row_of.get(name, -1) for name in names)
            if first >= 0 and second >= 0:
                self.reading.content.halves.append((first, second))
        for number, text in self.lines:
            self.reading.line = number
            if text.strip() and text[:1] != b"*":
                raise self.reading.error("text after ENDATA; remove it, or give each model its own file")
