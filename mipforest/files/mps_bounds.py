"""The BOUNDS section of an MPS file."""

from __future__ import annotations

from math import inf

from mipforest.files.mps_fields import Reading, short
from mipforest.files.mps_sections import Section

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
