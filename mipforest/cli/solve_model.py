"""``mipforest solve-model``: a model from a file, solved, and its solution checked."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from mipforest.cli import options as o
from mipforest.cli.errors import NO_ANSWER, SUCCESS, CommandError
from mipforest.cli.exchange import EXACT_ENTRIES, ModelFile, entries, read_instance
from mipforest.cli.output import print_json, print_note, print_text
from mipforest.cli.progress import Progress, stoppable
from mipforest.formatting import duration, finite, percent, value_text
from mipforest.interruption import interruptible
from mipforest.settings import FEASIBILITY_TOLERANCE

if TYPE_CHECKING:
    from mipforest.arrays import FloatArray
    from mipforest.model import MatrixForm
    from mipforest.solvers.base import Solver
    from mipforest.solvers.solution import Solution

#: Endings of files that a solution is written to.
SOLUTIONS = (".sol", ".mst", ".sol.gz", ".mst.gz")

#: Statuses that are an answer, though no point: exit code 3 with no more words than these.
_NEXT = {
    "infeasible": "mipforest.Model.read(FILE).explain_infeasibility() in Python names rows that contradict each other",
    "unbounded": "some column has to have a bound",
    "infeasible_or_unbounded": "the same model without an objective says which of the two",
    "time_limit": "give more time with --time-limit, or a start with --start",
    "limit": "raise the limit, or give a start with --start",
}


@dataclass(frozen=True, eq=False)
class Checked:
    """A solution with what was found out about its point without the solver.

    Attributes
    ----------
    solution
        What the solver gave.
    objective
        Objective of the point, evaluated anew; NaN without one.
    violation
        Largest violation of a row, a bound or an integer; infinite without a point.
    exact
        Whether rows and objective were evaluated in rational arithmetic.
    """

    solution: Solution
    objective: float
    violation: float
    exact: bool

    @classmethod
    def of(cls, form: MatrixForm, solution: Solution) -> Checked:
        """Evaluate rows, bounds, integers and objective of a solution's point."""
        from mipforest.model.check import exact_objective, violations

        exact = entries(form) <= EXACT_ENTRIES
        if solution.x is None:
            return cls(solution, math.nan, math.inf, exact)
        objective = exact_objective(form, solution.x) if exact else form.objective(solution.x)
        return cls(solution, objective, violations(form, solution.x, exact=exact).max, exact)

    @property
    def verified(self) -> bool:
        """Whether the point is feasible up to the tolerance, and has the objective that the solver says."""
        near = FEASIBILITY_TOLERANCE * max(1.0, abs(self.objective))
        return (
            self.violation <= FEASIBILITY_TOLERANCE and abs(self.objective - self.solution.objective) <= near
        )


@o.grouped
def solve_model(
    file: ModelFile,
    *,
    solver: Annotated[
        str,
        Option(
            metavar="NAME",
            help="Solver, from 'mipforest solvers'; tree searches take no files.",
            rich_help_panel=o.SOLVE,
        ),
    ] = "highs",
    start: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Point to start from: lines 'name value' (.sol, .mst; columns that are not named stay open), or a "
            "solution file of a solver.",
            rich_help_panel=o.SOLVE,
        ),
    ] = None,
    solver_options: Annotated[o.SolverOptions, o.Without("solver")],
    isolate: Annotated[
        bool | None,
        Option(
            "--isolate/--no-isolate",
            help="Run the solver in a process of its own: if it aborts, the start is left.",
            rich_help_panel=o.SOLVE,
        ),
    ] = None,
    output: Annotated[Path | None, o.output_file("Solution to write: .sol, or .sol.gz to compress.")] = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Solve a model from an MPS or LP file, and check the solution without the solver.

    Rows, bounds, integers and the objective of the solution are evaluated anew, in rational arithmetic up to 100,000
    entries. Ctrl-C stops and keeps the best solution so far. The time limit counts reading the file, too.

    Exit code: 0 a feasible solution that is as the solver says; 2 wrong usage or input; 3 infeasible, no solution
    within the limits, or one that is not as the solver says; 4 solver or licence not available.

    Example: mipforest solve-model afiro.mps --solver highs -o afiro.sol
    """
    from mipforest.solving import solve_form

    if output is not None:
        if not output.name.endswith(SOLUTIONS):
            raise CommandError(f"{output} is not named as a solution; end the name in {', '.join(SOLUTIONS)}")
        o.require_folder_of(output)
    plugin = _solver(solver)
    with Progress(quiet=quiet) as progress, interruptible(progress.stopping) as interruption:
        settings = replace(solver_options.settings(), isolate=isolate)
        budget = settings.budget(progress.phase)
        progress.phase(f"reading {file}")
        form = read_instance(file)
        x = None if start is None else _start(form, start)
        interruption.solving(budget)
        size = f"{form.n_columns} columns, {form.n_rows + form.indicators.n_rows} rows"
        progress.phase(f"solving {file.name}: {size}, with {plugin.name}", plain=True)
        limit = budget.at_most() if settings.time_limit else settings.time_limit
        with progress.solving(math.inf if limit is None else limit):
            solution = solve_form(
                form,
                plugin,
                replace(settings, time_limit=limit),
                start=x,
                on_progress=stoppable(progress, interruption),
            )
        progress.phase("checking the solution")
        checked = Checked.of(form, solution)
        interruption.writing()
        if output is not None and solution.x is not None:
            _write(form, checked, output, file)
    written = output if solution.x is not None else None
    exit_code = SUCCESS if checked.verified else NO_ANSWER
    if as_json:
        print_json(_as_json(form, checked, file, written, exit_code))
    elif not quiet:
        _print(form, checked, file, written)
    raise Exit(exit_code)


def _solver(name: str) -> Solver:
    from mipforest.problem.tree_search import is_search
    from mipforest.solvers.base import get_solver, solver_classes

    if name == "auto" or is_search(name):
        raise CommandError(
            f"{name} is for trees, and sees no rows of a file; choose a solver: {', '.join(solver_classes())}"
        )
    return get_solver(name)


def _start(form: MatrixForm, path: Path) -> FloatArray:
    """Read a start: columns that its file does not name are open, unless its format leaves zeros out."""
    from mipforest.files.solutions import point_in, read_solution

    given = read_solution(path)
    point = point_in(form, given)
    if not given.sparse:
        point.x[point.open] = math.nan
    return point.x


def _write(form: MatrixForm, checked: Checked, path: Path, model: Path) -> None:
    from mipforest.files.solutions import write_point

    assert checked.solution.x is not None
    status = str(checked.solution.status).replace("_", " ")
    comments = (
        f"solution of {model.name} by {checked.solution.solver} {checked.solution.solver_version}: {status}",
        f"objective value = {checked.objective!r}",
    )
    write_point(form, checked.solution.x, path, comments=comments)


def _as_json(
    form: MatrixForm, checked: Checked, file: Path, written: Path | None, exit_code: int
) -> dict[str, Any]:
    from mipforest.model.matrix import statistics

    solution = checked.solution
    return {
        "model": str(file),
        "name": form.name,
        "sense": "maximize" if form.maximize else "minimize",
        "statistics": asdict(statistics(form)),
        "solver": solution.solver,
        "solver_version": solution.solver_version,
        "bridges": list(solution.bridges),
        "status": str(solution.status),
        "objective": finite(checked.objective),
        "bound": finite(solution.bound),
        "gap": finite(solution.gap),
        "start_objective": finite(solution.start_objective),
        "nodes": solution.nodes,
        "seconds": solution.seconds,
        "verified": checked.verified,
        "max_violation": finite(checked.violation),
        "tolerance": FEASIBILITY_TOLERANCE,
        "exact": checked.exact,
        "warnings": list(solution.warnings),
        "message": solution.message,
        "written": None if written is None else str(written),
        "exit_code": exit_code,
    }


def _print(form: MatrixForm, checked: Checked, file: Path, written: Path | None) -> None:
    solution = checked.solution
    status = str(solution.status).replace("_", " ")
    print_text(
        f"{status}  {file}, by {solution.solver} {solution.solver_version} in {duration(solution.seconds)}"
    )
    if solution.x is not None:
        sense = " (to be maximised)" if form.maximize else ""
        print_text(f"objective      {checked.objective:.12g}{sense}")
        bound = value_text(solution.bound, checked.objective)
        print_text(f"bound          {bound} (gap {percent(solution.gap)}), {solution.nodes} nodes")
        arithmetic = ", in rational arithmetic" if checked.exact else ""
        print_text(
            f"verified       {'yes' if checked.verified else 'NO'}: largest violation {checked.violation:.3g} "
            f"(tolerance {FEASIBILITY_TOLERANCE:g}{arithmetic})"
        )
    elif (hint := _NEXT.get(str(solution.status))) is not None:
        print_note(f"no solution is known: {hint}")
    for warning in solution.warnings:
        print_note(warning)
    if checked.violation <= FEASIBILITY_TOLERANCE and not checked.verified:
        print_note(
            f"{solution.solver} states the objective {solution.objective:.12g}, its point has {checked.objective:.12g}"
        )
    if written is not None:
        print_text(f"{written}")
        print_text(f"Next: mipforest check {file} {written}")
