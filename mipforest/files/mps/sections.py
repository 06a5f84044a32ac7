"""The sections of an MPS file: each reads the fields of one line at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, isinf

from mipforest.files.mps.reading import Reading, short


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


class Sense(Section):
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


class Rows(Section):
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


class Columns(Section):
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


class Rhs(Section):
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


class Ranges(Section):
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


class Hessian(Section):
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


class FullHessian(Hessian):
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


class Indicators(Section):
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


class Bounds(Section):
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
