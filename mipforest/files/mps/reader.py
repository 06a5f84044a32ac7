"""Reader of MPS files in free format."""

from __future__ import annotations

import os

from mipforest.errors import suggestion
from mipforest.files.layout import TWO_SIDES
from mipforest.files.mps.reading import Reading, mps_lines, short
from mipforest.files.mps.sections import (
    Bounds,
    Columns,
    FullHessian,
    Hessian,
    Indicators,
    Ranges,
    Rhs,
    Rows,
    Section,
    Sense,
)
from mipforest.model.matrix import MatrixForm

_SECTIONS: dict[str, type[Section]] = {
    "OBJSENSE": Sense,
    "ROWS": Rows,
    "COLUMNS": Columns,
    "RHS": Rhs,
    "RANGES": Ranges,
    "BOUNDS": Bounds,
    "QUADOBJ": Hessian,
    "QMATRIX": FullHessian,
    "INDICATORS": Indicators,
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
