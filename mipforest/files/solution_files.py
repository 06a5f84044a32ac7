"""Solution files of solvers, each in its own format, read as streams.

=========================  =======================================================================
HiGHS ``writeSolution``    styles 0 (raw), 1 (pretty), 2 (GLPK's raw) and 4 (sparse)
Gurobi                     ``.sol``, ``.mst``, ``.json``
SCIP                       ``write solution``: zeros are left out
COIN-OR Cbc                ``solution FILE``: zeros are left out; eight digits
GLPK                       ``glpsol -w FILE``: columns by number
=========================  =======================================================================

The plain format, ``name value`` on each line behind comments with ``#``, is Gurobi's, and what
:func:`mipforest.files.points.write_point` writes.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

from mipforest.files.solution_file import (
    NO_SOLUTION,
    Lines,
    PointError,
    SolutionFile,
    number_or_none,
    short,
)
from mipforest.files.solution_readers import READERS
from mipforest.files.streams import numbered_lines

__all__ = ["PointError", "SolutionFile", "read_solution"]

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
    """Give the lines that are not empty."""
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
    """Lines ``name value``."""
    for number, text in lines:
        if text.startswith("#"):
            if text.startswith("# Solution for model"):
                found.writer = "Gurobi"
            stated = _OBJECTIVE_COMMENT.match(text)
            if stated:
                found.objective = number_or_none(stated[1])
            continue
        fields = text.split()
        if len(fields) != 2:
            raise PointError(found.path, number, f"expected 'name value', found {short(text)}")
        found.add(number, *fields)


def _read_json(found: SolutionFile) -> None:
    """Gurobi's JSON: the columns that are not 0."""
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
