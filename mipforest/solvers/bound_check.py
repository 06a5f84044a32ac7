"""Bound check: what a solver's status and bound prove, given the entries that it drops and the points that are known.

Solvers take small matrix entries for zeros. A dropped entry is harmless while its size times the reach of its column,
the largest absolute value within the bounds (and below 1e20, which solvers take for infinite), is below the feasibility
tolerance. Otherwise the solver solves another model. Where that one has fewer points, its bound is none of the model's,
and neither is its infeasibility; where it has more, its unboundedness is none.

A row whose terms are so large that their rounding alone exceeds the feasibility tolerance is none that a solver can
keep: it compares such rows relative to their size, and may take points for feasible, or infeasible, that are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.model.check import violations
from mipforest.model.matrix import Block, MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.checks import SOLVER_INFINITY
from mipforest.solvers.solution import ROUND_OFF, Solution, Status, closed, relative_gap

#: Largest ratio of two coefficients of a row, or of two costs, for which a solver's proof counts: beyond it a tolerance
#: of 1e-6 on the larger one is worth a thousand times the smaller one.
WIDEST_RANGE = 1e9

#: Costs below this are small against a solver's tolerance of 1e-7 on objectives and reduced costs.
LEAST_COST = 1e-6

#: Share of the largest cost up to which another one is the rounding of a sum that should be 0.
COST_ROUNDING = 1e-13

#: Largest size that a scaled number may have.
LARGEST = 1e8

#: Statuses that say that there is no optimum.
NO_OPTIMUM = (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


@dataclass(frozen=True)
class Lost:
    """What a solver loses of a model by taking small entries for zeros.

    Attributes
    ----------
    tightens
        Where a side of a row gets harder to meet, so that points are cut off: the worst row and column, in words;
        empty if nowhere.
    loosens
        The same where a side gets easier to meet.
    unresolved
        The row and column of the largest term whose rounding exceeds the feasibility tolerance, in words; else empty.
    """

    tightens: str = ""
    loosens: str = ""
    unresolved: str = ""


def lost_entries(form: MatrixForm, zero: float) -> Lost:
    """Find what is lost of a model when entries of at most ``zero`` in size count as zeros.

    Parameters
    ----------
    form
        The model.
    zero
        The size; 0 if the solver takes every entry.
    """
    indicators = form.indicators
    tightens: list[tuple[float, str]] = []
    loosens: list[tuple[float, str]] = []
    for A, lower, upper, rows in (
        (form.A, form.row_lower, form.row_upper, form.rows),
        (indicators.A, indicators.lower, indicators.upper, indicators.rows),
    ):
        row, column, value = small_entries(A, zero)
        if not len(row):
            continue
        at_lower = value * np.maximum(form.col_lower, -SOLVER_INFINITY)[column]
        at_upper = value * np.minimum(form.col_upper, SOLVER_INFINITY)[column]
        least, greatest = np.minimum(at_lower, at_upper), np.maximum(at_lower, at_upper)
        has_lower, has_upper = np.isfinite(lower[row]), np.isfinite(upper[row])
        # A term that helps a side to hold is missed there; one that stands in its way is not.
        helps = np.maximum(np.where(has_lower, greatest, 0.0), np.where(has_upper, -least, 0.0))
        hinders = np.maximum(np.where(has_lower, -least, 0.0), np.where(has_upper, greatest, 0.0))
        for amounts, found in ((helps, tightens), (hinders, loosens)):
            per_row = np.bincount(row, np.maximum(amounts, 0.0))[row]
            if per_row.max() > FEASIBILITY_TOLERANCE:
                worst = int(np.argmax(np.where(per_row == per_row.max(), amounts, -np.inf)))
                words = (
                    f"the entry {value[worst]:.3g} of column {form.column_names[column[worst]]} in row "
                    f"{_name(rows, int(row[worst]))}, worth up to {amounts[worst]:.3g} within its bounds"
                )
                found.append((float(per_row.max()), words))
    tightest, loosest = (max(found, default=(0.0, ""))[1] for found in (tightens, loosens))
    return Lost(tightest, loosest, _unresolved(form))


def _unresolved(form: MatrixForm) -> str:
    """Name the largest term whose rounding exceeds the feasibility tolerance, in rows of several columns."""
    reach = np.maximum(np.abs(form.col_lower), np.abs(form.col_upper))
    A, indicators = form.A, form.indicators
    for B, rows in ((A, form.rows), (indicators.A, indicators.rows)):
        size = np.abs(B.data) * reach[B.indices]
        alone = np.repeat(np.diff(B.indptr) == 1, np.diff(B.indptr))
        size[alone | (size >= SOLVER_INFINITY) | np.isnan(size)] = 0.0
        worst = int(size.argmax()) if len(size) else 0
        if len(size) and size[worst] * np.finfo(float).eps > FEASIBILITY_TOLERANCE:
            row = int(np.searchsorted(B.indptr, worst, side="right")) - 1
            name = form.column_names[B.indices[worst]]
            return f"row {_name(rows, row)}, where column {name} is worth up to {size[worst]:.3g}"
    return ""


def small_entries(A: SparseMatrix, zero: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Return row, column and value of the entries of a CSR matrix that are at most ``zero`` in size."""
    at = np.flatnonzero(np.abs(A.data) <= zero)
    row = np.searchsorted(A.indptr, at, side="right") - 1
    return row.astype(np.int64), A.indices[at].astype(np.int64), A.data[at]


def mattering(form: MatrixForm, A: SparseMatrix, zero: float) -> BoolArray:
    """Return which entries of a matrix over the model's columns are small, in rows that cannot do without them.

    Returns
    -------
    (nnz,) array of bool
    """
    row, column, value = small_entries(A, zero)
    reach = np.minimum(np.maximum(np.abs(form.col_lower), np.abs(form.col_upper)), SOLVER_INFINITY)
    moved = np.bincount(row, np.abs(value) * reach[column], minlength=A.shape[0])
    small = np.abs(A.data) <= zero
    matters: BoolArray = small & np.repeat(moved > FEASIBILITY_TOLERANCE, np.diff(A.indptr))
    return matters


def _name(blocks: tuple[Block, ...], row: int) -> str:
    return next((block.names()[row - block.start] for block in blocks if row < block.stop), str(row))


def no_bound(form: MatrixForm) -> float:
    """Return the bound that says nothing: infinite, in the model's own sense."""
    return np.inf if form.maximize else -np.inf


def validated(
    form: MatrixForm,
    status: Status,
    objective: float,
    bound: float,
    *,
    gap: float | None = None,
    lost: Lost | None = None,
    slip: float = 0.0,
) -> tuple[Status, float, list[str]]:
    """Validate a solver's status and bound against the value of a feasible point.

    Parameters
    ----------
    form
        The model.
    status, bound
        What the solver says.
    objective
        The best value of a feasible point, NaN without one.
    gap, lost
        As for :func:`assembled`.
    slip
        What the point's violations, all within the tolerance, may be worth in its objective.

    Returns
    -------
    status
        ``LIMIT`` in place of a status that is not proven.
    bound
        What is proven: nothing where a feasible point contradicts the bound, or where the solver dropped entries
        that help rows to hold.
    issues
        Why the solver's status or bound was not kept.
    """
    best, lost, issues = no_bound(form), lost or Lost(), list[str]()
    if status is Status.ERROR:
        return status, best, issues
    if lost.unresolved and status in (Status.OPTIMAL, *NO_OPTIMUM):
        return Status.LIMIT, best, [_beyond_arithmetic(lost.unresolved)]
    if status in NO_OPTIMUM:
        by_status = {Status.INFEASIBLE: lost.tightens, Status.UNBOUNDED: lost.loosens}
        if dropped := by_status.get(status, lost.tightens or lost.loosens):
            return Status.LIMIT, best, [_dropped(dropped, f"that the model is {status} is not proven")]
        return status, -best if status is Status.INFEASIBLE else best, issues
    beyond, unit = (objective - bound) if form.maximize else (bound - objective), objective_unit(form)
    if lost.tightens or lost.unresolved:
        bound = best
    if lost.tightens:
        issues.append(_dropped(lost.tightens, "it cuts points off, and its bound proves nothing"))
    elif np.isfinite(bound) and beyond > ROUND_OFF * max(unit, abs(objective)) + slip:
        issues.append(
            f"the solver's bound {bound:.9g} is contradicted by a feasible point of value {objective:.9g}: "
            "it proves nothing; rescale the model, or try another solver"
        )
        bound = best
    elif beyond > 0:
        # Round-off can carry the bound past the incumbent.
        bound = objective
    if status is Status.OPTIMAL and not closed(objective, bound, gap, unit):
        status = Status.LIMIT
        issues += [] if issues else [_apart(objective, bound, gap)]
    return status, bound, issues


def _dropped(words: str, meaning: str) -> str:
    return f"the solver takes {words}, for zero: {meaning}; rescale the data or narrow the column's bounds"


def _beyond_arithmetic(words: str) -> str:
    return (
        f"rounding alone exceeds the feasibility tolerance {FEASIBILITY_TOLERANCE:g} in {words}: what the solver "
        "claims of an optimum is not proven; take smaller penalties, or narrow the column's bounds"
    )


def _apart(objective: float, bound: float, gap: float | None) -> str:
    if np.isinf(bound):
        return "the solver calls this optimal, and gives no bound to prove it"
    return (
        f"the solver calls this optimal, but the objective {objective:.9g} and the bound {bound:.9g} are "
        f"{relative_gap(objective, bound):.3g} apart, and a gap of {gap:g} was asked for; scale the objective up "
        "for a closer bound, or try another solver"
    )


def checked_against(
    solution: Solution, form: MatrixForm, point: FloatArray, *, gap: float | None = None
) -> Solution:
    """Check a solution's bound against a feasible point that is known otherwise, such as the start.

    Parameters
    ----------
    solution
        Of the model, whose point stays.
    form
        The model.
    point
        (n,) point, feasible within the tolerance.
    gap
        As for :func:`assembled`.
    """
    if solution.status is Status.ERROR:
        return solution
    value, slip = form.objective(point), worth_of_violations(form, point)
    if solution.status in NO_OPTIMUM:
        if solution.status is not Status.INFEASIBLE:
            return replace(solution, status=Status.UNBOUNDED)
        issue = f"the solver calls the model {solution.status}, but a feasible point of value {value:.9g} is known"
        return replace(
            solution, status=Status.ERROR, bound=no_bound(form), warnings=(*solution.warnings, issue)
        )
    beyond = (value - solution.bound) if form.maximize else (solution.bound - value)
    if not beyond > ROUND_OFF * max(objective_unit(form), abs(value)) + slip:
        return solution
    status, bound, issues = validated(form, solution.status, value, solution.bound, gap=gap, slip=slip)
    return replace(solution, status=status, bound=bound, warnings=(*solution.warnings, *issues))


def objective_unit(form: MatrixForm) -> float:
    """Return what absolute tolerances on the objective are relative to: 1, or the least cost where that is small.

    It is a power of two, and no less than what makes the largest cost 1e8 units.
    """
    costs = np.abs(form.c)
    if form.Q is not None:
        costs = np.concatenate([costs, np.abs(form.Q.data)])
    costs = _without_rounding(costs)
    if not len(costs) or costs.min() >= LEAST_COST:
        return 1.0
    most = np.floor(np.log2(LARGEST / costs.max()))
    return float(np.exp2(-np.clip(np.ceil(-np.log2(costs.min())), 0, max(most, 0))))


def _without_rounding(costs: FloatArray) -> FloatArray:
    """Return the sizes of costs without those that are what rounding leaves of 0, next to the largest."""
    kept: FloatArray = costs[costs > COST_ROUNDING * costs.max(initial=0.0)]
    return kept


def only_proven(solution: Solution, form: MatrixForm) -> Solution:
    """Return a solution without the solver's proof, where the coefficients of the model it was given span too much.

    Parameters
    ----------
    solution
        What the solver says of the model, in whatever units.
    form
        The model as the solver was given it.
    """
    wide = widest_range(form)
    nothing_said = solution.status not in (Status.OPTIMAL, *NO_OPTIMUM) and not np.isfinite(solution.bound)
    if not wide or nothing_said or solution.status is Status.ERROR:
        return solution
    status = Status.LIMIT if solution.status in (Status.OPTIMAL, *NO_OPTIMUM) else solution.status
    issue = (
        f"{wide}, which tolerances do not tell apart: what the solver claims is not proven; rescale the data"
    )
    events = tuple(replace(event, bound=no_bound(form)) for event in solution.events)
    warnings = (*solution.warnings, issue)
    return replace(solution, status=status, bound=no_bound(form), events=events, warnings=warnings)


def widest_range(form: MatrixForm) -> str:
    """Say in words where coefficients span more than :data:`WIDEST_RANGE`: of a row, or costs; empty if nowhere.

    An entry that is worth less than the feasibility tolerance within the bounds of its column does not count.
    """
    costs = _without_rounding(np.abs(form.c))
    if len(costs) and costs.max() > WIDEST_RANGE * costs.min():
        return f"the costs of the objective span {costs.min():.3g} to {costs.max():.3g}"
    reach = np.minimum(np.maximum(np.abs(form.col_lower), np.abs(form.col_upper)), SOLVER_INFINITY)
    indicators = form.indicators
    for A, rows in ((form.A, form.rows), (indicators.A, indicators.rows)):
        size = np.abs(A.data)
        if not len(size) or size.max() <= WIDEST_RANGE * size.min():
            continue  # as nearly always, and soon seen
        counts = size * reach[A.indices] > FEASIBILITY_TOLERANCE
        starts = A.indptr[:-1][np.diff(A.indptr) > 0]  # of the rows that are not empty
        least = np.minimum.reduceat(np.where(counts, size, np.inf), starts)
        greatest = np.maximum.reduceat(np.where(counts, size, 0.0), starts)
        wide = np.flatnonzero(greatest > WIDEST_RANGE * least)
        if len(wide):
            row = int(np.searchsorted(A.indptr, starts[wide[0]], side="right")) - 1
            span = f"{least[wide[0]]:.3g} to {greatest[wide[0]]:.3g}"
            return f"coefficients of row {_name(rows, row)} span {span}"
    return ""


def worth_of_violations(form: MatrixForm, x: FloatArray | None) -> float:
    """Return what violations of a point within the tolerance may be worth in its objective: that of its costs."""
    if x is None:
        return 0.0
    worst = violations(form, x).max
    # A point that is not feasible contradicts no bound.
    return worst * float(np.abs(form.c).sum()) if worst <= FEASIBILITY_TOLERANCE else np.inf
