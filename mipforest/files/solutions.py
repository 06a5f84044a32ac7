"""Points of models: starts and solutions, written as one ``name value`` per line and read from any solver.

The written format, ``name value`` on each line behind comments with ``#``, is Gurobi's ``.sol`` and ``.mst``, and
MIPLIB's (with ``=obj= value`` at its head, zeros left out). Files are read as streams:

=========================  =======================================================================
HiGHS ``writeSolution``    styles 0 (raw), 1 (pretty), 2 (GLPK's raw) and 4 (sparse)
Gurobi                     ``.sol``, ``.mst``, ``.json``
SCIP                       ``write solution``: zeros are left out
COIN-OR Cbc                ``solution FILE``: zeros are left out; eight digits
GLPK                       ``glpsol -w FILE``: columns by number
=========================  =======================================================================
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import MipforestError, did_you_mean
from mipforest.files.layout import CONSTANT, safe_names
from mipforest.files.lp import lp_column_names
from mipforest.files.streams import lines, number_text, numbered_lines, split_suffix, write_lines
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE

__all__ = [
    "Point",
    "PointError",
    "SolutionFile",
    "point_in",
    "point_of",
    "read_point",
    "read_solution",
    "write_point",
]

#: Names that are searched for the nearest to a mistyped one; more would take seconds.
_SEARCHED = 20_000


@dataclass(frozen=True, eq=False)
class Point:
    """A point of a model, read from a file.

    Attributes
    ----------
    x
        (n,) values; 0 for columns that the file does not name.
    absent
        Names of these columns.
    open
        Their numbers.
    """

    x: FloatArray
    absent: tuple[str, ...]
    open: IntArray


def write_point(
    form: MatrixForm,
    x: FloatArray,
    path: str | os.PathLike[str],
    *,
    comments: Sequence[str] = (),
    model: str | os.PathLike[str] = "model.mps",
) -> None:
    """Write a point, or a partial start, to a file that appears complete or not at all.

    Columns have the names that they have in the model's file. Every number reads back as the
    same float64; columns whose value is NaN are left out.

    Parameters
    ----------
    form
        The model.
    x
        (n,) values.
    path
        File to write, usually ``*.sol`` (a solution) or ``*.mst`` (a start); compressed if it ends in ``.gz``.
    comments
        Lines for the head of the file.
    model
        Name of the model's file, whose suffix decides how columns are named.

    Raises
    ------
    ValueError
        If the point has another length or an infinite value.
    OSError
        As the system reports it.
    """
    if x.shape != (form.n_columns,):
        raise ValueError(f"the point has shape {x.shape}, the model has {form.n_columns} columns")
    if np.isinf(x).any():
        raise ValueError(f"the value of {form.column_names[int(np.isinf(x).argmax())]} is infinite")
    given = np.flatnonzero(~np.isnan(x))
    in_lp = split_suffix(model)[0] == ".lp"
    text: Iterable[bytes] = (f"# {' '.join(comment.split())}\n".encode() for comment in comments)
    if len(given):
        columns = lp_column_names(form) if in_lp else safe_names(form.column_names)
        names = np.array(columns, dtype=np.bytes_)
        text = chain(text, lines((names, given), b" ", number_text(x[given]), b"\n"))
    write_lines(path, text, compressed=str(path).endswith(".gz"))


def read_point(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read the values of a point by column name; see :func:`mipforest.files.solutions.read_solution`."""
    return read_solution(path).values


def point_of(form: MatrixForm, values: Mapping[str, float], path: str | os.PathLike[str]) -> Point:
    """Lay values by column name out as a point of a model; columns without a value are 0.

    Names are those of the model's MPS file or, if one is unknown there, those of its LP file.

    Parameters
    ----------
    form
        The model.
    values
        As :func:`read_point` gives them.
    path
        Where they were read, for the message.

    Raises
    ------
    PointError
        If a name is no column of the model; the nearest is suggested.
    """
    names = safe_names(form.column_names)
    position = {name: j for j, name in enumerate(names)}
    if not values.keys() <= position.keys():
        # In an LP file the constant of the objective is a column; no column of the model has that name there.
        values_in_lp = {name: value for name, value in values.items() if name != CONSTANT}
        names_in_lp = lp_column_names(form)
        if values_in_lp.keys() <= set(names_in_lp):
            values, names = values_in_lp, names_in_lp
            position = {name: j for j, name in enumerate(names)}
    x = np.full(len(names), np.nan)
    for name, value in values.items():
        if name not in position:
            raise PointError(path, 0, _unknown(name, values, position, names))
        x[position[name]] = value
    absent = np.flatnonzero(np.isnan(x))
    x[absent] = 0.0
    return Point(x, tuple(names[j] for j in absent), absent)


def point_in(form: MatrixForm, solution: SolutionFile) -> Point:
    """Lay the values of a solution file out as a point of a model; columns without a value are 0.

    Raises
    ------
    PointError
        If a column is none of the model.
    """
    if not solution.numbered:
        return point_of(form, solution.values, solution.path)
    names = [*safe_names(form.column_names), CONSTANT]  # last in an LP file
    count = len(solution.values)
    if not all(1 <= int(number) <= len(names) for number in solution.values) or count < form.n_columns:
        raise PointError(
            solution.path,
            0,
            f"it has {count} columns by number, the model {form.n_columns}; is it of another instance?",
        )
    values = {names[int(number) - 1]: value for number, value in solution.values.items()}
    if count > form.n_columns:
        del values[CONSTANT]
    return point_of(form, values, solution.path)


def _unknown(
    name: str, values: Mapping[str, float], position: Mapping[str, int], names: Sequence[str]
) -> str:
    unknown = sum(given not in position for given in values)
    hint = did_you_mean(name, names[:_SEARCHED])
    return (
        f"{unknown} of its {len(values)} names are no column of the model, {name!r} first{hint}; "
        "is it a solution of another instance?"
    )


_CBC = re.compile(r"(.+?)(?: \(no integer solution.*\))? - objective value\s+(\S+)")


def _read_scip(found: SolutionFile, lines: Lines) -> None:
    """Read head lines, then ``name value (obj:cost)``; columns that are 0 are absent."""
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
    """Read status, then a primal part with one ``name value`` per column, or ``name value index`` if sparse."""
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
    # A sparse file announces -13 columns; since version 1.16 the word "sparse" follows.
    count = text.removeprefix("# Columns ").removesuffix(" sparse").strip()
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
    """Read HiGHS' table: index, status of the basis if there is one, lower, upper, primal, dual if any, type, name."""
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
    """Read ``c`` comments, ``s`` the solution, ``j number value`` columns; ``e o f`` at the end."""
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


#: Largest solution in JSON that is read: it has to fit into memory as a whole.
_LARGEST_JSON = 1 << 26

_OBJECTIVE_COMMENT = re.compile(r"#\s*objective value\s*=\s*(\S+)", re.IGNORECASE)


def read_solution(path: str | os.PathLike[str]) -> SolutionFile:
    """Read a solution file of any of the formats above; the name (``.json``) or the first line tells which.

    Parameters
    ----------
    path
        The file; compressed if it ends in ``.gz``.

    Raises
    ------
    PointError
        If a line is malformed, a value is not a finite number, a column comes twice, or the solver wrote that
        it had no solution.
    OSError
        As the system reports it.
    """
    found = SolutionFile(Path(path))
    if found.path.name.lower().endswith((".json", ".json.gz")):
        _read_json(found)
        return found
    lines = _lines(found.path)
    first = next(lines, None)
    if first is None:
        return found
    number, text = first
    for pattern, read in READERS:
        if pattern.match(text):
            read(found, chain([first], lines))
            return found
    if text.startswith("Problem:"):
        raise PointError(
            path, number, "a printed report of GLPK, with six digits; write it with -w instead of -o"
        )
    if re.match(r'\{\s*"\w+"\s*:', text):
        raise PointError(path, number, "it looks like JSON; give it a name that ends in .json")
    if text.startswith("<?xml"):
        raise PointError(path, number, "an XML file, which is not read; write lines 'name value'")
    _read_plain(found, chain([first], lines))
    return found


def _lines(path: Path) -> Lines:
    """Yield the lines that are not empty."""
    compressed = path.name.lower().endswith(".gz")
    raw = numbered_lines(path, lambda line, reason: PointError(path, line, reason), compressed=compressed)
    for number, content in raw:
        try:
            text = content.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            reason = f"it is not a text file ({error.reason} at byte {error.start} of the line)"
            raise PointError(path, number, reason) from error
        if text:
            yield number, text


def _read_plain(found: SolutionFile, lines: Lines) -> None:
    """Read lines ``name value``."""
    for number, text in lines:
        if text.startswith("#"):
            if text.startswith("# Solution for model"):
                found.writer = "Gurobi"
            stated = _OBJECTIVE_COMMENT.match(text)
            if stated:
                found.objective = number_or_none(stated[1])
            continue
        fields = text.split()
        if fields[0] == "=infeas=":
            raise PointError(found.path, 0, "it says =infeas=: the model has no solution")
        if fields[0] in ("=obj=", "=best=") and len(fields) == 2:  # the head of MIPLIB's solutions
            found.writer, found.sparse, found.objective = "MIPLIB", True, number_or_none(fields[1])
            continue
        if len(fields) != 2:
            raise PointError(found.path, number, f"expected 'name value', found {short(text)}")
        found.add(number, *fields)


def _read_json(found: SolutionFile) -> None:
    """Read Gurobi's JSON: the columns that are not 0."""
    content = _json_of(found.path)
    try:
        information, columns = content["SolutionInfo"], content["Vars"]
        found.status = f"Gurobi's status {int(information['Status'])}"
        found.sparse, found.writer = True, "Gurobi"
        if "ObjVal" not in information:
            raise PointError(found.path, 0, f"Gurobi wrote {NO_SOLUTION}, only its status")
        found.objective = float(information["ObjVal"])
        for column in columns:
            found.add(0, str(column["VarName"]), repr(float(column["X"])))
    except PointError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = (
            f"it is no solution in Gurobi's JSON ({type(error).__name__}: {error}); set JSONSolDetail to 1"
        )
        raise PointError(found.path, 0, reason) from None


def _json_of(path: Path) -> Any:
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            content = file.read(_LARGEST_JSON + 1)
        if len(content) > _LARGEST_JSON:
            raise PointError(
                path, 0, f"more than {_LARGEST_JSON >> 20} MB of JSON; write a .sol file instead"
            )
        return json.loads(content)
    except RecursionError:
        raise PointError(path, 0, "its lists are nested too deeply for a solution") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise PointError(path, 0, f"it is not a complete gzip file ({error})") from error
    except UnicodeDecodeError as error:
        raise PointError(path, 0, f"it is not a text file ({error.reason})") from error
    except json.JSONDecodeError as error:
        raise PointError(path, error.lineno, f"it is not JSON: {error.msg}") from error
    except ValueError as error:  # integers of thousands of digits
        raise PointError(path, 0, f"it is not JSON that can be read: {error}") from error


#: What the error of a file without a solution says of it.
NO_SOLUTION = "no solution in it"

#: Numbered lines, blanks at both ends removed.
Lines = Iterator[tuple[int, str]]


class PointError(MipforestError, ValueError):
    """A malformed file of a point, or one that does not fit the model.

    Attributes
    ----------
    path
        The file.
    line
        Number of the line at fault, from 1; 0 if it is none in particular.
    reason
        What is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], line: int, reason: str) -> None:
        super().__init__(f"{os.fspath(path)}:{line}: {reason}" if line else f"{os.fspath(path)}: {reason}")
        self.path, self.line, self.reason = Path(path), line, reason


@dataclass(eq=False)
class SolutionFile:
    """What a solution file says.

    Attributes
    ----------
    path
        The file.
    values
        Value by name of the column; by its number, from 1, if the format has no names (:attr:`numbered`).
    objective
        Objective value that the file states, if it does.
    status
        Status in the solver's words, empty if the file states none.
    sparse
        Whether the format leaves zeros out.
    numbered
        Whether columns go by number.
    writer
        Solver that wrote it, empty if the format does not tell.
    """

    path: Path
    values: dict[str, float] = field(default_factory=dict)
    objective: float | None = None
    status: str = ""
    sparse: bool = False
    numbered: bool = False
    writer: str = ""

    def agrees_with(self, objective: float) -> bool:
        """Return whether the file states this objective (up to the tolerance of solvers), or none."""
        return self.objective is None or math.isclose(
            self.objective, objective, rel_tol=FEASIBILITY_TOLERANCE, abs_tol=FEASIBILITY_TOLERANCE
        )

    def add(self, line: int, name: str, text: str) -> None:
        """Take the value of a column.

        Raises
        ------
        PointError
            If it is no finite number, or the column comes a second time.
        """
        try:
            value = float(text)
        except ValueError:
            raise PointError(
                self.path, line, f"the value of {short(name)} is {short(text)}, which is no number"
            ) from None
        if not math.isfinite(value) or "_" in text:
            raise PointError(
                self.path, line, f"the value of {short(name)} is {short(text)}; give a finite number"
            )
        if name in self.values:
            raise PointError(self.path, line, f"{short(name)} comes a second time; keep one of the lines")
        self.values[name] = value


def number_or_none(text: str) -> float | None:
    """Read a stated objective; ``None`` if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def is_number(text: str) -> bool:
    """Return whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def short(text: str) -> str:
    """Quote a text for a message, cut if it is long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
