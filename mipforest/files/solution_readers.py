"""Readers of the solution files of HiGHS, SCIP, COIN-OR's Cbc and GLPK."""

from __future__ import annotations

import re

from mipforest.files.solution_file import (
    NO_SOLUTION,
    Lines,
    PointError,
    SolutionFile,
    is_number,
    number_or_none,
    short,
)

_CBC = re.compile(r"(.+?)(?: \(no integer solution.*\))? - objective value\s+(\S+)")


def _read_scip(found: SolutionFile, lines: Lines) -> None:
    """Head lines, then ``name value (obj:cost)``; columns that are 0 are absent."""
    found.writer = "SCIP"
    found.sparse = True
    for number, text in lines:
        if text.startswith("no solution available"):
            raise PointError(found.path, 0, f"SCIP wrote {NO_SOLUTION}")
        head, colon, rest = text.partition(":")
        if colon and head == "solution status":
            found.status = rest.strip()
        elif colon and head == "objective value":
            found.objective = number_or_none(rest.strip())
        elif not text.startswith("#"):
            fields = text.split()
            if len(fields) != 3 or not fields[2].startswith("(obj:"):
                raise PointError(found.path, number, f"expected 'name value (obj:cost)', found {short(text)}")
            found.add(number, fields[0], fields[1])


def _read_highs(found: SolutionFile, lines: Lines) -> None:
    """Status, then a primal part with one ``name value`` per column, or ``name value index`` if sparse."""
    found.writer = "HiGHS"
    next(lines)
    _, found.status = next(lines, (0, ""))
    for _, text in lines:
        if text.startswith("Objective "):
            found.objective = number_or_none(text.split()[-1])
        elif text.startswith("# Columns "):
            break
        elif text.startswith("# Dual solution values"):
            raise PointError(
                found.path, 0, f"HiGHS wrote {NO_SOLUTION}, only its status {short(found.status)}"
            )
    else:
        raise PointError(found.path, 0, f"HiGHS wrote {NO_SOLUTION}, only its status {short(found.status)}")
    count = text.split()[-1]
    if not re.fullmatch(r"-?\d{1,12}", count):
        raise PointError(found.path, 0, f"{short(text)} does not say how many columns follow")
    left = int(count)
    found.sparse = left < 0
    width = 3 if found.sparse else 2
    for number, text in lines:
        if text.startswith("#") or not left:
            break
        fields = text.split()
        if len(fields) != width:
            raise PointError(found.path, number, f"expected {width} fields of a column, found {short(text)}")
        found.add(number, fields[0], fields[1])
        left -= 1
    if left > 0:
        raise PointError(found.path, 0, f"{left} columns fewer than it announces; the file is cut off")


def _read_pretty(found: SolutionFile, lines: Lines) -> None:
    """HiGHS' table: index, status of the basis if there is one, lower, upper, primal, dual if any, type, name."""
    found.writer = "HiGHS"
    next(lines)
    header = next(lines, (0, ""))[1].split()
    if header[:1] != ["Index"] or not {"Primal", "Name"} <= set(header):
        raise PointError(found.path, 2, "expected the header of HiGHS' table of columns")
    has_type, in_columns = "Type" in header, True
    for number, text in lines:
        if text == "Rows":
            in_columns = False
        elif text.startswith("Model status:"):
            found.status = text.partition(":")[2].strip()
        elif text.startswith("Objective value:"):
            found.objective = number_or_none(text.partition(":")[2].strip())
        elif in_columns:
            fields = text.split()
            body, name = fields[1 : -2 if has_type else -1], fields[-1]
            if body and not is_number(body[0]):
                body = body[1:]
            if len(fields) < 4 or len(body) < 2:
                raise PointError(
                    found.path, number, f"expected a column of HiGHS' table, found {short(text)}"
                )
            if len(body) == 2:
                raise PointError(found.path, 0, f"HiGHS wrote {NO_SOLUTION}")
            found.add(number, name, body[2])


def _read_cbc(found: SolutionFile, lines: Lines) -> None:
    """Read a line with status and objective, then ``index name value cost``; ``**`` marks what is infeasible."""
    found.writer = "Cbc"
    number, text = next(lines)
    stated = _CBC.match(text)
    assert stated is not None
    found.status, found.objective, found.sparse = stated[1], number_or_none(stated[2]), True
    for number, text in lines:
        fields = text.removeprefix("**").split()
        if len(fields) != 4 or not fields[0].isdecimal():
            raise PointError(found.path, number, f"expected 'index name value cost', found {short(text)}")
        found.add(number, fields[1], fields[2])


def _read_glpk(found: SolutionFile, lines: Lines) -> None:
    """``c`` comments, ``s`` the solution, ``j number value`` columns; ``e o f`` at the end."""
    found.writer = "GLPK"
    found.numbered = True
    kind, columns = "", -1
    for number, text in lines:
        what, *fields = text.split()
        if what == "c":
            if fields[:1] == ["Status:"]:
                found.status = " ".join(fields[1:])
        elif what == "s" and len(fields) >= 4 and fields[2].isdecimal() and len(fields[2]) < 13:
            kind, columns = fields[0], int(fields[2])
            if fields[3] in ("n", "u") or "EMPTY" in found.status or "UNDEFINED" in found.status:
                raise PointError(
                    found.path,
                    0,
                    f"GLPK wrote {NO_SOLUTION}, only the status {short(found.status)}".capitalize(),
                )
            found.objective = number_or_none(fields[-1])
        elif what == "j" and len(fields) >= 2 and fields[0].isdecimal():
            # A basic solution has a status ahead of the value.
            at = 2 if kind == "bas" else 1
            if len(fields) <= at:
                raise PointError(found.path, number, f"expected the value of a column, found {short(text)}")
            found.add(number, str(int(fields[0][:12])), fields[at])
        elif what == "e":
            break
        elif what != "i":
            raise PointError(found.path, number, f"expected a line of GLPK's solution, found {short(text)}")
    if len(found.values) != columns:
        raise PointError(
            found.path, 0, f"{len(found.values)} columns, but it announces {columns}; is it cut off?"
        )


#: Readers by what the first line begins with.
READERS = (
    (re.compile(r"Model status$"), _read_highs),
    (re.compile(r"Columns$"), _read_pretty),
    (re.compile(r"solution status:|objective value:|no solution available"), _read_scip),
    (re.compile(r"c (?:Problem|Rows|Status):|s (?:bas|mip|ipt) \d"), _read_glpk),
    (_CBC, _read_cbc),
)
