"""Points as text: one ``name value`` per line, for starts and solutions.

This is the ``.sol`` and ``.mst`` format of Gurobi. The solution files that HiGHS and SCIP write are read too.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.files.atomic import atomic_write
from mipforest.files.names import safe_names
from mipforest.files.text_lines import lines, number_text
from mipforest.model.matrix import MatrixForm

#: Header lines of SCIP's solution files.
_SCIP_HEADER = ("solution status:", "objective value:", "no solution available")

#: Names that are searched for the nearest to a mistyped one; more would take seconds.
_SEARCHED = 20_000


class PointError(ValueError):
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


@dataclass(frozen=True, eq=False)
class Point:
    """A point of a model, read from a file.

    Attributes
    ----------
    x
        (n,) values; 0 for columns that the file does not name.
    absent
        Names of these columns.
    """

    x: FloatArray
    absent: tuple[str, ...]


def write_point(
    form: MatrixForm, x: FloatArray, path: str | os.PathLike[str], *, comments: Sequence[str] = ()
) -> None:
    """Write a point, or a partial start, to a file that appears complete or not at all.

    Columns have the names that :func:`mipforest.files.write_mps` gives them. Every number reads back as the
    same float64; columns whose value is NaN are left out.

    Parameters
    ----------
    form
        The model.
    x
        (n,) values.
    path
        File to write, usually ``*.sol`` (a solution) or ``*.mst`` (a start).
    comments
        Lines for the head of the file.

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
    with atomic_write(path) as file:
        file.writelines(f"# {comment}\n".encode() for comment in comments)
        if len(given):
            names = np.array([name.encode() for name in safe_names(form.column_names)])
            file.writelines(lines((names, given), b" ", number_text(x[given]), b"\n"))


def read_point(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read the values of a point by column name.

    Lines are ``name value``; empty ones and comments (``#``) say nothing. Of a solution file of HiGHS the
    primal column values are read; in one of SCIP the costs behind the values are passed over.

    Parameters
    ----------
    path
        The file; compressed if it ends in ``.gz``.

    Raises
    ------
    PointError
        If a line is no ``name value``, a value is not a finite number, or a name comes twice.
    OSError
        As the system reports it.
    """
    values: dict[str, float] = {}
    for number, line in _value_lines(path):
        name, *rest = line.split()
        if len(rest) != 1 and not (len(rest) == 2 and rest[1].startswith("(obj:")):
            raise PointError(path, number, f"expected 'name value', found {line!r}")
        try:
            value = float(rest[0])
        except ValueError:
            raise PointError(
                path, number, f"the value of {name} is {rest[0]!r}, which is no number"
            ) from None
        if not np.isfinite(value):
            raise PointError(path, number, f"the value of {name} is {value}; give a finite number")
        if name in values:
            raise PointError(path, number, f"{name} comes a second time; keep one of the lines")
        values[name] = value
    return values


def point_of(form: MatrixForm, values: Mapping[str, float], path: str | os.PathLike[str]) -> Point:
    """Lay values by column name out as a point of a model; columns without a value are 0.

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
    x = np.full(len(names), np.nan)
    for name, value in values.items():
        if name not in position:
            raise PointError(path, 0, _unknown(name, values, position, names))
        x[position[name]] = value
    absent = np.flatnonzero(np.isnan(x))
    x[absent] = 0.0
    return Point(x, tuple(names[j] for j in absent))


def _unknown(
    name: str, values: Mapping[str, float], position: Mapping[str, int], names: Sequence[str]
) -> str:
    unknown = sum(given not in position for given in values)
    near = get_close_matches(name, names[:_SEARCHED], n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return (
        f"{unknown} of its {len(values)} names are no column of the model, {name!r} first{hint}; "
        "is it a solution of another instance?"
    )


def _value_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Give the lines that hold values, with their numbers."""
    numbered = list(enumerate(_text(path).splitlines(), start=1))
    if any(line.strip() == "Model status" for _, line in numbered[:1]):
        numbered = _highs_columns(path, numbered)
    for number, line in numbered:
        stripped = line.strip()
        if stripped and not stripped.startswith(("#", *_SCIP_HEADER)):
            yield number, stripped


def _highs_columns(path: str | os.PathLike[str], numbered: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Give the lines of primal column values of a solution file of HiGHS."""
    for first, (_, line) in enumerate(numbered):
        if line.startswith("# Columns "):
            columns = numbered[first + 1 : first + 1 + int(line.split()[2])]
            return [entry for entry in columns if not entry[1].startswith("#")]
    raise PointError(path, 0, "HiGHS wrote no solution into it, only its status")


def _text(path: str | os.PathLike[str]) -> str:
    try:
        content = Path(path).read_bytes()
        return (gzip.decompress(content) if os.fspath(path).endswith(".gz") else content).decode("utf-8")
    except UnicodeDecodeError as error:
        raise PointError(path, 0, f"it is not a text file ({error.reason} at byte {error.start})") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise PointError(path, 0, f"it is not a complete gzip file ({error})") from error
