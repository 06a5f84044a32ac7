"""What is proven of the outcome of a solve: how far its bound holds, who proves it, and which status that leaves.

A bound on the objective has up to three provers, named in :attr:`~mipforest.solvers.solution.Solution.bound_by`: the
``solver``, by the model; an ``exact-search``, made while the formulation was bound to its data; and the ``definition``,
as no sum of losses and costs is below 0. The first holds for as much as the model covers once a user has changed it;
the others know nothing of the model.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import Values
from mipforest.model.matrix import MatrixForm
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.repair import contradictory
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.base import Solver
from mipforest.solvers.bound_check import no_bound
from mipforest.solvers.checks import judge_start
from mipforest.solvers.solution import Event, Progress, Solution, Status, closed, gap_in_words

#: Statuses that say something else than how far value and bound are apart.
NOT_OF_NUMBERS = (
    Status.INFEASIBLE,
    Status.UNBOUNDED,
    Status.INFEASIBLE_OR_UNBOUNDED,
    Status.IMPORTED,
    Status.ERROR,
)

#: How a solve may end without a proof.
UNPROVEN = (Status.TIME_LIMIT, Status.INTERRUPTED, Status.LIMIT)


#: What a search came to the end of, that left a gap.
HIDDEN = (
    "nothing is left to search, and rounding hides a gap of {}: the bound is {:.9g}, the objective {:.9g}; weights, "
    "costs or targets of very different size do that, so scale down the largest, or ask for that gap"
)

# ------------------------------------------------------------------ the status


def judged(problem: ProblemData, solution: Solution, gap: float) -> Solution:
    """Return a solution whose status follows from its numbers: optimal where value and bound are within the gap.

    The one place that says so of a result, whoever solved: a search that came to its end, a solver with a word of its
    own, or one that a limit ended just then.
    """
    if not solution.found or solution.status in NOT_OF_NUMBERS:
        return solution
    if closed(solution.objective, solution.bound, gap, problem.objective_unit):
        return replace(solution, status=Status.OPTIMAL)
    if solution.status is not Status.OPTIMAL:
        return solution
    left = gap_in_words(solution.objective, solution.bound)
    hidden = HIDDEN.format(left, solution.bound, solution.objective)
    return replace(solution, status=Status.LIMIT, warnings=(*solution.warnings, hidden))


# ------------------------------------------------------------------ bounds


def with_valid_bound(problem: ProblemData, solution: Solution) -> tuple[Solution, list[str]]:
    """Limit bound and status to what the model covers, once a user has changed it; return issues with them."""
    covered, maximize = problem.valid_below(), problem.model.matrix().maximize
    proven_to = max(covered, problem.least_objective())
    if solution.status is Status.INFEASIBLE and proven_to < np.inf and contradictory(problem):
        return solution, []
    if np.isinf(proven_to):
        if proven_to > 0:
            return solution, []
        proven_to = np.inf if maximize else -np.inf
    if (solution.bound >= proven_to) if maximize else (solution.bound <= proven_to):
        return solution, []
    known = "is built" if np.isinf(covered) else f"covers solutions up to the value {covered:.6g} only"
    issue = (
        f"variant {problem.formulation.variant} {known} for the unchanged model, and the model was changed: "
        f"no better bound than {proven_to:.6g} is proven"
    )
    events = tuple(_at_most(event, proven_to, maximize=maximize) for event in solution.events)
    limited = replace(solution, bound=proven_to, events=events)
    unproven = solution.status in (Status.INFEASIBLE, Status.OPTIMAL)
    return replace(limited, status=Status.LIMIT if unproven else solution.status), [issue]


def with_least_objective(problem: ProblemData, solution: Solution, gap: float) -> Solution:
    """Raise the bound to what is known without the model."""
    least = problem.least_objective()
    if least == -np.inf:
        return solution
    if solution.status is Status.UNBOUNDED:
        # Where penalties are very large, a solver's tolerances on reduced costs outweigh the rest.
        warning = f"the solver says unbounded, and no tree has less than {least:g}: scale the penalties down"
        provers, warnings = _provers(problem, solution, least, gap), (*solution.warnings, warning)
        return replace(solution, status=Status.LIMIT, bound=least, bound_by=provers, warnings=warnings)
    unproven = solution.status in UNPROVEN
    if not (unproven or solution.found):
        return solution
    bound = max(solution.bound, min(least, solution.objective) if solution.found else least)
    return replace(
        solution,
        bound=bound,
        events=tuple(_at_least(event, least) for event in solution.events),
        bound_by=_provers(problem, solution, least, gap),
    )


def _provers(problem: ProblemData, solution: Solution, least: float, gap: float) -> tuple[str, ...]:
    """Return who proves the greater one of a solution's bound and the least objective: both, where they agree."""
    known = {
        "exact-search": problem.instance.least_objective,
        "definition": problem.formulation.least_objective,
    }
    without_model = tuple(name for name, value in known.items() if value == least)
    if closed(least, solution.bound, gap, problem.objective_unit):
        # A search that is the solver has no second voice.
        return ("solver", *(name for name in without_model if name != solution.solver))
    return ("solver",) if solution.bound > least else without_model


def proven_progress(problem: ProblemData, on_progress: Progress) -> Progress:
    """Return progress for a solver, whose bounds reach ``on_progress`` as far as they will be kept in the end."""
    form, covered, least = problem.model.matrix(), problem.valid_below(), problem.least_objective()
    most = no_bound(form) if covered == -np.inf else covered

    def claimed(event: Event) -> bool | None:
        kept = event if covered == np.inf else _at_most(event, most, maximize=form.maximize)
        return on_progress(_at_least(kept, least))

    return claimed


def _at_least(event: Event, least: float) -> Event:
    """Return progress with no worse bound than what is known without the model."""
    return event if event.bound >= least else replace(event, bound=least)


def _at_most(event: Event, bound: float, *, maximize: bool) -> Event:
    """Return progress with no better bound than one: what is withdrawn later is not shown before."""
    return replace(event, bound=max(event.bound, bound) if maximize else min(event.bound, bound))


# ------------------------------------------------------------------ starts in the place of a solve


def with_start(problem: ProblemData, solution: Solution, values: Values) -> Solution:
    """Offer the start where a solver ends without a point, unless no start says anything: the objective has no bound.

    So it is after penalties that outweigh a solver's tolerances, an infeasibility that the start contradicts, or a
    start that the solver did not take.
    """
    form = problem.model.matrix()
    x = judge_start(form, form.to_point(values)).full
    unbounded = solution.status is Status.UNBOUNDED and problem.least_objective() == -np.inf
    if x is None or unbounded:
        return solution
    warning = f"{solution.solver} ends without a solution: the tree is the start"
    return replace(
        solution,
        x=x,
        values=form.to_values(x),
        objective=form.objective(x),
        warnings=(*solution.warnings, warning),
    )


def proven_while_built(problem: ProblemData, values: Values, gap: float) -> bool:
    """Return whether an exact search has proven a start optimal, so that a solver could but repeat it at length."""
    entries = problem.model.matrix().A.nnz
    return entries > problem.formulation.most_witnessed and proven_before(problem, values, gap)


def proven_before(problem: ProblemData, values: Values, gap: float) -> bool:
    """Return whether a start is within the gap of what a search has proven of the problem as it was built."""
    form, least = problem.model.matrix(), problem.instance.least_objective
    return -np.inf < least <= problem.least_objective() and closed(
        form.objective(form.to_point(values)), least, gap, problem.objective_unit
    )


def start_proven(problem: ProblemData, solver: Solver, values: Values, by: str = "exact-search") -> Solution:
    """Return a start that a search has proven optimal, in the place of a solver's outcome.

    The bound is raised to what is proven by :func:`with_least_objective`, as of any outcome.
    """
    return replace(
        start_alone(problem, solver, values),
        solver=by,
        solver_version=version("mipforest"),
        message=f"{by} proved the start optimal before the solve: {solver.name} was not called",
    )


def ended_by(problem: ProblemData, status: Status) -> Status:
    """Return why a solve ended: the user's stop, where it was that which left a part of the work no time."""
    return Status.INTERRUPTED if status is Status.TIME_LIMIT and problem.budget.stopped else status


def start_alone(
    problem: ProblemData,
    solver: Solver,
    values: Values | None,
    *warnings: str,
    status: Status = Status.TIME_LIMIT,
) -> Solution:
    """Return the start as the outcome of a solve in which no solver said anything, with warnings of why."""
    form, stopped = problem.model.matrix(), problem.budget.stopped
    x = None if values is None else form.to_point(values)
    objective = np.nan if x is None else form.objective(x)
    return Solution(
        status=Status.INTERRUPTED if stopped else status,
        x=x,
        values=values or {},
        objective=objective,
        bound=no_bound(form),
        nodes=0,
        seconds=0.0,
        solver=solver.name,
        solver_version=solver.version(),
        start_objective=objective,
        warnings=warnings,
        stopped=stopped,
    )


def not_called(problem: ProblemData, solver: Solver) -> str:
    """Say why a solver was not called: the time left is less than it takes to read the model, or a user stopped it."""
    left, entries = problem.budget.remaining, problem.model.matrix().A.nnz
    why = "the preparation left no time" if left <= 0 else ""
    why = why or f"the {left:.1f} s left are less than it takes to read the model's {entries} entries"
    return f"{solver.name} was not called: {'it was stopped before' if problem.budget.stopped else why}"


def not_built(problem: ProblemData) -> str:
    """Say why there is no model, and what the tree is worth without it."""
    if problem.budget.stopped:
        why = "it was stopped while the model was built"
    elif problem.entries_given_up:
        why = (
            f"the model would have more than {problem.entries_given_up:.1e} entries, which are too many for a solver "
            "in the time limit, and it was not built"
        )
    else:
        why = (
            f"{problem.data.n} samples are too many for the time limit, which came while the model was built"
        )
    return f"{why}: the tree is the start, its value that by the definition; there were no rows to check it against"


# ------------------------------------------------------------------ tolerances


def same_value(evaluated: float, objective: float, unit: float) -> bool:
    """Return whether a tree's value by the definition is a solver's objective, up to the tolerance.

    ``unit`` is what an absolute tolerance is relative to, see :func:`mipforest.solvers.bound_check.objective_unit`.
    """
    return bool(abs(evaluated - objective) <= FEASIBILITY_TOLERANCE * max(unit, abs(objective)))


def broken_rows(
    problem: ProblemData, solution: Solution, violation: float, *, sees_rows: bool
) -> tuple[list[str], list[str]]:
    """Judge a violation of the model, NaN of an unfinished one; return what speaks against the solution, and warnings.

    A tree found by one that does not see rows may be left out by nothing but the variant's constants, where these are
    not proven: that speaks against the constants, and its value by the definition stands.
    """
    if not violation > FEASIBILITY_TOLERANCE:
        return [], []
    formulation = problem.formulation
    if sees_rows or formulation.constants_proven(
        problem.instance, problem.value_below(solution.objective), problem.changes()
    ):
        warning = f"the solution violates the model by {violation:.3g}, more than {FEASIBILITY_TOLERANCE:g}"
        return [warning], []
    warning = (
        f"the constants of variant {formulation.variant} leave this tree out (rows are violated by {violation:.3g}): "
        "its value is that by the definition"
    )
    return [], [warning]


def needed_tolerance(problem: ProblemData) -> float | None:
    """Return the tolerance of a solver, on rows and integers, up to which no point takes a sample's other side.

    The rows of both sides slip by the tolerance, by it times their entries at integers, the big-Ms, and by the weights
    that leak through features that are switched off (:func:`_leaks`): beyond this tolerance all together may be worth
    the whole gap, and a solver's optimum may be that of no tree. ``None`` where no row has a gap.
    """
    blocks, formulation = problem.model.constraints, problem.formulation
    sides = [blocks[name].A for name in formulation.gap_rows if name in blocks]
    if not (sides and formulation.gap_parameter and formulation.gap_rows[0] in blocks):
        return None
    gap = float(formulation.parameters()[formulation.gap_parameter])
    form = problem.model.matrix()
    slip, slips = np.where(form.integer, 1.0, _leaks(form)), 0.0
    for rows in sides:
        slips += 1.0 + float((abs(rows) @ slip[: rows.shape[1]]).max(initial=0.0))
    return gap / slips


def _leaks(form: MatrixForm) -> FloatArray:
    """Return (n,) how far, in tolerances, columns may be from 0 although integers switch them off.

    A row ``w <= M s`` lets w be as large as M times the tolerance on integers, and the tolerance on rows. Such rows
    have one continuous column, integers, and the side 0.
    """
    A, continuous = abs(form.A), (~form.integer).astype(float)
    integers = A @ form.integer.astype(float)
    zero = (form.row_lower == 0) | (form.row_upper == 0)
    switches = np.flatnonzero(((A > 0) @ continuous == 1) & (integers > 0) & zero)
    entries = A[switches].tocoo()
    alone = ~form.integer[entries.col]
    leaks = np.zeros(form.n_columns)
    np.maximum.at(
        leaks, entries.col[alone], (1.0 + integers[switches][entries.row[alone]]) / entries.data[alone]
    )
    return leaks
