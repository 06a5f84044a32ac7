"""A matrix form as a Gurobi model, by matrix calls; its options, checked beforehand, and its starts.

Gurobi itself takes 1.5 threads for 1 and ``*`` for any letters in the name of an option.
"""

from __future__ import annotations

from typing import Any

import gurobipy
import numpy as np
from gurobipy import GRB, GurobiError

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import NotAllowed
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.solvers.checks import JudgedStart, unknown_option


def load(model: gurobipy.Model, form: MatrixForm) -> gurobipy.MVar:
    """Put a form that has at least one column into an empty model; give its variables.

    A row with two different sides becomes two rows: Gurobi's own range rows are stored with the width of
    the range and an extra variable, which is neither exact nor free under a size limit.
    """
    x = model.addMVar(
        form.n_columns, lb=form.col_lower, ub=form.col_upper, vtype=np.where(form.integer, "I", "C")
    )
    row, sense, side = _one_sided(form.row_lower, form.row_upper)
    if len(row):
        A = form.A if np.array_equal(row, np.arange(form.n_rows)) else form.A[row]
        model.addMConstr(A, x, sense, side)
    _add_indicators(model, x, form.indicators)
    Q: Any = 0.5 * form.Q if form.Q is not None and form.is_quadratic else None
    model.setMObjective(
        Q, form.c, form.offset, sense=GRB.MAXIMIZE if form.maximize else GRB.MINIMIZE, xQ_L=x, xQ_R=x, xc=x
    )
    model.update()
    return x


def _add_indicators(model: gurobipy.Model, x: gurobipy.MVar, indicators: IndicatorRows) -> None:
    """Add indicator rows; of two-sided ones, Gurobi would drop the condition without a word."""
    row, sense, side = _one_sided(indicators.lower, indicators.upper)
    for kind in ("=", ">", "<"):
        here = np.flatnonzero(sense == kind)
        if len(here):
            rows = row[here]
            model.addGenConstrIndicator(
                x[indicators.binary[rows].tolist()],
                indicators.value[rows] == 1,
                indicators.A[rows] @ x,
                kind,
                side[here],
            )


def n_one_sided(lower: FloatArray, upper: FloatArray) -> int:
    """Count the rows that Gurobi gets for rows with these sides."""
    return len(_one_sided(lower, upper)[0])


def _one_sided(lower: FloatArray, upper: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return number, sense and side of one-sided rows that say the same; rows without sides are left out."""
    equal = lower == upper
    groups = (
        ("=", equal, lower),
        (">", ~equal & (lower > -np.inf), lower),
        ("<", ~equal & (upper < np.inf), upper),
    )
    row = np.concatenate([np.flatnonzero(here) for _, here, _ in groups])
    sense = np.concatenate([np.full(int(here.sum()), kind) for kind, here, _ in groups])
    side = np.concatenate([sides[here] for _, here, sides in groups])
    order = np.argsort(row, kind="stable")
    return row[order], sense[order], side[order]


def set_option(model: gurobipy.Model, name: str, value: Any) -> None:
    """Set one option of a model; numpy scalars are taken as Python's.

    Raises
    ------
    NotAllowed
        If Gurobi knows no such option (the nearest are named) or refuses its value.
    """
    known = {option.lower(): option for option in dir(GRB.Param) if not option.startswith("_")}
    if name.lower() not in known:
        raise unknown_option("Gurobi", name, known.values())
    plain = value.item() if isinstance(value, np.generic) else value
    kind = model.getParamInfo(known[name.lower()])[1]
    if not _is_a(plain, kind):
        wanted = {int: "a whole number", float: "a number", str: "a text"}[kind]
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: it takes {wanted}")
    try:
        model.setParam(name, kind(plain))
    except OverflowError as error:
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: {error}") from error
    except GurobiError as error:
        # What the licence and servers need counts when Gurobi starts, which it has.
        advice = "; it belongs in the licence file" if error.errno == GRB.Error.INVALID_ARGUMENT else ""
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: {error}{advice}") from error


def _is_a(value: Any, kind: type) -> bool:
    """Return whether a value is of an option's type, or a number that loses nothing in it."""
    if kind is str:
        return isinstance(value, str)
    # NaN is not equal to itself: Gurobi would leave the option as it was.
    return isinstance(value, int | float) and value == value and (kind is float or value % 1 == 0)


def starts_to_try(judged: JudgedStart) -> list[FloatArray]:
    """Return the points that Gurobi is to try, in this order, NaN for what it is to complete.

    A partial start is passed as it is, and once more with its integers alone, in case its other values stand in
    the way.
    """
    if judged.full is not None:
        return [judged.full]
    integers = [judged.integers] if judged.completable and judged.integers is not None else []
    if judged.given is None or judged.infeasible:
        return integers
    if np.isnan(judged.given).all():
        return []
    alone = judged.integers is not None and np.array_equal(judged.given, judged.integers, equal_nan=True)
    return [judged.given] if alone else [judged.given, *integers]
