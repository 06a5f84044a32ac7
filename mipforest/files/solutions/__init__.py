"""Points of models: starts and solutions, written as one ``name value`` per line and read from any solver.

The written format is Gurobi's ``.sol`` and ``.mst``; :mod:`mipforest.files.solutions.reader` reads it and those
of other solvers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.atomic import atomic_write
from mipforest.errors import did_you_mean
from mipforest.files.layout import CONSTANT, safe_names
from mipforest.files.lp import lp_column_names
from mipforest.files.solutions.reader import PointError, SolutionFile, read_solution
from mipforest.files.streams import lines, number_text, split_suffix
from mipforest.model.matrix import MatrixForm

__all__ = ["Point", "PointError", "point_in", "point_of", "read_point", "read_solution", "write_point"]

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
    """

    x: FloatArray
    absent: tuple[str, ...]


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
        File to write, usually ``*.sol`` (a solution) or ``*.mst`` (a start).
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
    with atomic_write(path) as file:
        file.writelines(f"# {' '.join(comment.split())}\n".encode() for comment in comments)
        if len(given):
            columns = lp_column_names(form) if in_lp else safe_names(form.column_names)
            names = np.array(columns, dtype=np.bytes_)
            file.writelines(lines((names, given), b" ", number_text(x[given]), b"\n"))


def read_point(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read the values of a point by column name; see :func:`mipforest.files.solutions.reader.read_solution`."""
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
    return Point(x, tuple(names[j] for j in absent))


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
