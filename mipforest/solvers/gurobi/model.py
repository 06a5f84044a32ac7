"""A matrix form as a Gurobi model, by matrix calls; its options and its start, checked beforehand.

Gurobi itself takes 1.5 threads for 1 and ``*`` for any letters in the name of an option, and tells only its log
that it took no start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gurobipy
import numpy as np
from gurobipy import GRB, GurobiError

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import NotAllowed
from mipforest.model.check import violations
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.solvers.checks import unknown_option
from mipforest.solvers.integrality import FEASIBILITY_TOLERANCE, usable_integers, with_exact_integers


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
    """Give number, sense and side of one-sided rows that say the same; rows without sides are left out."""
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
    """Whether a value is of an option's type, or a number that loses nothing in it."""
    if kind is str:
        return isinstance(value, str)
    # NaN is not equal to itself: Gurobi would leave the option as it was.
    return isinstance(value, int | float) and value == value and (kind is float or value % 1 == 0)


@dataclass(frozen=True, eq=False)
class CheckedStart:
    """What of a start is passed to Gurobi.

    Attributes
    ----------
    full
        (n,) feasible point, or ``None``.
    partial
        (n,) points with NaN for Gurobi to complete, tried in this order.
    if_taken, if_dropped
        What the user should know if Gurobi takes it, or not; empty if nothing.
    """

    full: FloatArray | None = None
    partial: tuple[FloatArray, ...] = ()
    if_taken: str = ""
    if_dropped: str = ""


def check_start(form: MatrixForm, start: FloatArray | None) -> CheckedStart:
    """Check a start.

    Of an infeasible one, the integer values are kept, where they are integral and within bounds. A partial
    one is passed as it is, and once more with its integers alone, in case its other values stand in the way.

    Parameters
    ----------
    form
        The model.
    start
        (n,) point, NaN where it is left open; or ``None``.

    Raises
    ------
    NotAllowed
        If the start has the wrong length.
    """
    if start is None:
        return CheckedStart()
    start = np.asarray(start, dtype=float)
    if start.shape != (form.n_columns,):
        raise NotAllowed(f"the start has shape {start.shape}, the model has {form.n_columns} columns")
    if not form.is_mip:
        unused = "the start was not used: Gurobi takes starts for models with integers only"
        return CheckedStart(if_dropped=unused)
    left_open = np.isnan(start)
    usable = usable_integers(form, start)
    integers = np.where(usable, np.round(start), np.nan)
    nothing_found = "and no completion of its integer values was found: start dropped"
    if left_open.any():
        complaint = f"the start leaves {int(left_open.sum())} of {len(start)} values open"
        partial = (start,) if np.array_equal(~left_open, usable) else (start, integers)
        return CheckedStart(
            partial=() if left_open.all() else partial, if_dropped=f"{complaint}, {nothing_found}"
        )
    found = violations(form, start)
    if found.max <= FEASIBILITY_TOLERANCE:
        refused = "Gurobi did not take the start, which is feasible within the tolerance; it is kept beside"
        return CheckedStart(full=with_exact_integers(form, start), if_dropped=refused)
    name, amount = found.worst(1)[0]
    complaint = f"the start is infeasible ({name} by {amount:.3g})"
    return CheckedStart(
        partial=(integers,) if usable.any() else (),
        if_taken=f"{complaint}: only its integer values were kept",
        if_dropped=f"{complaint}, {nothing_found}",
    )
