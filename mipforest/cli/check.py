"""``mipforest check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from mipforest.cli import options as o
from mipforest.cli.errors import NO_ANSWER, SUCCESS, CommandError
from mipforest.cli.output import print_json, print_note, print_text
from mipforest.settings import FEASIBILITY_TOLERANCE

if TYPE_CHECKING:
    from mipforest.model import MatrixForm

#: How many violated rows and bounds are named.
WORST = 5


def check(
    instance: Annotated[
        Path, Argument(metavar="INSTANCE", help="Model: .mps or .mps.gz.", show_default=False)
    ],
    solution: Annotated[
        Path,
        Argument(
            metavar="SOLUTION",
            help="Point: lines 'name value' (.sol, .mst), or a solution file of HiGHS, Gurobi, SCIP, Cbc or GLPK.",
            show_default=False,
        ),
    ],
    tolerance: Annotated[
        float, Option(min=0, help="Largest violation that counts as feasible.")
    ] = FEASIBILITY_TOLERANCE,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check a solution against an instance, without a solver: feasibility and objective.

    Columns that the solution does not name are 0. The quadratic objective and indicator rows are checked too.
    A different objective in the solution file is reported.

    Exit code: 0 feasible; 3 infeasible; 2 wrong usage or input.
    """
    from mipforest.files.solutions.points import point_in
    from mipforest.files.solutions.reader import read_solution
    from mipforest.model.check import violations

    form = _read_instance(instance)
    given = read_solution(solution)
    point = point_in(form, given)
    found = violations(form, point.x)
    feasible = found.max <= tolerance
    objective = form.objective(point.x)
    exit_code = SUCCESS if feasible else NO_ANSWER
    worst = [] if feasible else found.worst(WORST)
    if as_json:
        content: dict[str, Any] = {
            "instance": str(instance),
            "solution": str(solution),
            "feasible": feasible,
            "objective": objective,
            "objective_stated": given.objective,
            "status_stated": given.status or None,
            "max_violation": found.max,
            "tolerance": tolerance,
            "worst": [{"what": name, "violation": amount} for name, amount in worst],
            "columns": form.n_columns,
            "columns_not_given": len(point.absent),
            "exit_code": exit_code,
        }
        print_json(content)
    elif not quiet:
        print_text(f"{'feasible' if feasible else 'INFEASIBLE'}  {solution} in {instance}")
        print_text(f"objective      {objective:.12g}{' (to be maximised)' if form.maximize else ''}")
        print_text(f"max violation  {found.max:.3g} (tolerance {tolerance:g})")
        for name, amount in worst:
            print_text(f"  {amount:.3g}  {name}")
        if not given.agrees_with(objective):
            print_note(
                f"the file states the objective {given.objective:.12g}, its values have {objective:.12g}"
            )
        if given.status:
            print_note(f"the file states the status {given.status!r}, which is not checked")
        if point.absent and not given.sparse:
            few = ", ".join(point.absent[:3]) + (", ..." if len(point.absent) > 3 else "")
            print_note(f"{len(point.absent)} of {form.n_columns} columns are not given and count as 0: {few}")
    raise Exit(exit_code)


def _read_instance(path: Path) -> MatrixForm:
    from mipforest.files import read_mps
    from mipforest.files.streams import split_suffix

    try:
        split_suffix(path, (".mps",))
    except ValueError as error:
        raise CommandError(str(error)) from None
    return read_mps(path)
