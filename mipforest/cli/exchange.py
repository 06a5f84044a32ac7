"""``mipforest export``, ``import`` and ``check``: models out, solutions in, and a solution against an instance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from mipforest.cli import options as o
from mipforest.cli.constraint_options import ConstraintOptions
from mipforest.cli.errors import NO_ANSWER, SUCCESS, CommandError
from mipforest.cli.outcome import JobResult, end, run_folder, write_outcome
from mipforest.cli.output import print_json, print_note, print_text
from mipforest.errors import MipforestError
from mipforest.formatting import number
from mipforest.settings import FEASIBILITY_TOLERANCE

if TYPE_CHECKING:
    from mipforest.model import MatrixForm
    from mipforest.runs import DataSource


class Tangents(StrEnum):
    """What an instance can be rewritten by."""

    quadratic = "quadratic"


@o.grouped
def export(
    *,
    model: o.ModelName,
    model_options: o.ModelOptions,
    data: o.DataName,
    data_options: Annotated[o.DataOptions, o.Without("test")],
    constraint_options: ConstraintOptions,
    start: o.Start = "default",
    seed: o.Seed = 0,
    bridge: Annotated[
        Tangents | None,
        Option(
            help="Write tangents in place of the quadratic objective, for solvers of linear models: HiGHS, CBC, GLPK.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    output: Annotated[
        Path, o.output_file("Instance to write: .mps, .lp or .mof.json, with .gz behind it to compress.")
    ],
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write an instance: the model (.mps, .lp or .mof.json), a start (.mst) and what they are (.json).

    With --test-size the model is of the training part. Existing files are replaced.

    Example: mipforest export --model margot --depth 2 --data breast_cancer -o margot-d2.mps.gz
    """
    import mipforest
    from mipforest.runs import instance_files, write_instance

    try:
        instance_files(output)
    except ValueError as error:
        raise CommandError(str(error)) from None
    o.require_folder_of(output)
    source = data_options.source(data, model=model, seed=seed)
    formulation = model_options.formulation(model)
    depth, wanted = model_options.depth_for(formulation), o.start_of(start, formulation)
    constraints, train = constraint_options.read(), source.load().train
    problem = o.build(formulation, train, depth)
    problem.constrain(*source.with_groups(constraints, train))
    metadata = write_instance(
        problem,
        output,
        source,
        start=wanted,
        seed=seed,
        version=mipforest.__version__,
        tangents=bridge is not None,
    )
    if as_json:
        print_json(metadata)
    elif not quiet:
        _print(output, metadata)


def _print(output: Path, metadata: dict[str, Any]) -> None:
    from mipforest.model.matrix import Statistics
    from mipforest.runs import instance_files

    start, description = instance_files(output)
    print_text(f"{output}: {Statistics(**metadata['statistics'])}")
    if metadata["start"]:
        print_text(f"{start}: a start of objective {number(metadata['start_objective'])}")
    print_text(f"{description}: model, parameters, data and checksums")
    for warning in metadata["warnings"]:
        print_note(warning)
    if metadata["start"]:
        print_text(f"Next: mipforest check {output} {start}")
    print_text(f"Once it is solved: mipforest import SOLUTION --instance {output}")


@dataclass(frozen=True)
class Import:
    """What was imported: takes the place of a solve's options in ``result.json``."""

    source: DataSource
    solution: Path
    instance: Path

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {"solution": str(self.solution), "instance": str(self.instance)}


@o.grouped
def import_solution(
    solution: Annotated[
        Path,
        Argument(
            metavar="SOLUTION",
            help="Solution of HiGHS, Gurobi, SCIP, Cbc or GLPK (-w), or lines 'name value'.",
        ),
    ],
    *,
    instance: Annotated[
        Path,
        Option(
            metavar="FILE",
            help="The instance that was solved, with the metadata that 'mipforest export' wrote beside it.",
            rich_help_panel=o.MODEL,
        ),
    ],
    model_options: Annotated[o.ModelOptions, o.Without("depth", "cost_matrix", "variant", "ensemble")],
    ensemble: Annotated[
        str | None,
        Option(
            metavar="ENSEMBLE",
            help="Ensemble to mimic, if the model has one; never loaded from a file that only metadata name.",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    data: Annotated[
        str | None,
        Option(
            metavar="DATA",
            help="Where the data are, if elsewhere than at the export.",
            rich_help_panel=o.DATA,
        ),
    ] = None,
    run_options: o.RunOptions,
) -> None:
    """Turn a solution of an exported instance, made by any solver, into a checked tree.

    The model is built again from the metadata beside the instance; the solution's feasibility and objective
    are checked, and its tree decoded. Columns that sparse solution files leave out are 0.

    Exit code: 0 a feasible, verified tree; 2 wrong usage or input; 3 an infeasible solution, or one that is
    not verified.

    Example: mipforest import scip.sol --instance margot-d2.mps.gz --out run
    """
    from mipforest.runs import import_solution as imported_of
    from mipforest.runs import instance_files

    try:
        instance_files(instance)
    except ValueError as error:
        raise CommandError(str(error)) from None
    with run_folder(run_options) as folder:
        found = imported_of(
            solution,
            instance,
            data=data,
            parameters=_parameters(instance, model_options.param),
            ensemble=ensemble,
        )
        asked = Import(found.source, solution, instance)
        outcome = JobResult.of(asked, found.data, found.result)
        failure = write_outcome(outcome, folder)
    end(outcome, folder, failure, run_options)


def _parameters(instance: Path, assignments: list[str] | None) -> dict[str, Any]:
    """Read the parameters that are given in place of the recorded ones."""
    from mipforest.problem.parameters import parse_parameters
    from mipforest.problem.registry import get_formulation
    from mipforest.runs.instance import read_metadata

    if not assignments:
        return {}
    return parse_parameters(get_formulation(read_metadata(instance).model), assignments)


#: A model to be read.
ModelFile = Annotated[
    Path,
    Argument(
        metavar="FILE", help="Model: .mps, .lp or .mof.json, with .gz behind it where it is compressed."
    ),
]

#: Entries up to which rows are evaluated exactly unless asked otherwise: about a second.
EXACT_ENTRIES = 100_000

#: How many violated rows and bounds are named.
WORST = 5


def check(
    instance: ModelFile,
    solution: Annotated[
        Path,
        Argument(
            metavar="SOLUTION",
            help="Point: lines 'name value' (.sol, .mst), or a solution file of HiGHS, Gurobi, SCIP, Cbc or GLPK.",
        ),
    ],
    tolerance: Annotated[
        float, Option(min=0, help="Largest violation that counts as feasible.")
    ] = FEASIBILITY_TOLERANCE,
    exact: Annotated[
        bool | None,
        Option(
            "--exact/--no-exact",
            help=(
                "Evaluate rows (when asked, the objective too) in rational arithmetic; by default up to "
                f"{EXACT_ENTRIES:,} entries."
            ),
        ),
    ] = None,
    tree: Annotated[
        bool,
        Option(
            "--tree/--no-tree",
            help="Decode the tree and compare with the definition, where the instance has metadata.",
        ),
    ] = True,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check a solution against an instance: feasibility and objective, without a solver.

    Columns that the solution does not name are 0. The quadratic objective and indicator rows are checked too.
    A different objective in the solution file is reported. Where the instance has the metadata of 'mipforest export',
    the tree is decoded and its objective computed from the definition. Big-M rows make that necessary: with violations
    within the tolerance, a point can have a value that no tree has.

    Exit code: 0 feasible; 3 infeasible, or the tree is worse than the point; 2 wrong usage or input.
    """
    from mipforest.files.solutions import point_in, read_solution
    from mipforest.model.check import exact_objective, violations

    form = read_instance(instance)
    given = read_solution(solution)
    point = point_in(form, given)
    exactly = entries(form) <= EXACT_ENTRIES if exact is None else exact
    found = violations(form, point.x, exact=exactly)
    feasible = found.max <= tolerance
    objective = exact_objective(form, point.x) if exactly else form.objective(point.x)
    definition, not_compared = _by_definition(instance, solution) if tree and feasible else (None, "")
    agrees = definition is None or not _worse(form, definition, objective)
    exit_code = SUCCESS if feasible and agrees else NO_ANSWER
    worst = [] if feasible else found.worst(WORST)
    headline = ("feasible" if agrees else "NOT BY THE DEFINITION") if feasible else "INFEASIBLE"
    if as_json:
        content: dict[str, Any] = {
            "instance": str(instance),
            "solution": str(solution),
            "feasible": feasible,
            "objective": objective,
            "definition": definition,
            "tree_agrees": None if definition is None else agrees,
            "objective_stated": given.objective,
            "status_stated": given.status or None,
            "max_violation": found.max,
            "tolerance": tolerance,
            "exact": exactly,
            "worst": [{"what": name, "violation": amount} for name, amount in worst],
            "columns": form.n_columns,
            "columns_not_given": len(point.absent),
            "exit_code": exit_code,
        }
        print_json(content)
    elif not quiet:
        print_text(f"{headline}  {solution} in {instance}")
        print_text(f"objective      {objective:.12g}{' (to be maximised)' if form.maximize else ''}")
        print_text(f"max violation  {found.max:.3g} (tolerance {tolerance:g})")
        for name, amount in worst:
            print_text(f"  {amount:.3g}  {name}")
        if definition is not None:
            print_text(f"definition     {definition:.12g} (of the tree, applied to the samples)")
        if not agrees:
            print_note(
                "the point is feasible within the tolerance, and its tree is worse by the definition: solve again with "
                "tighter tolerances, or export with a larger epsilon"
            )
        if not_compared:
            print_text(f"definition     not compared: {not_compared}")
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


def _by_definition(instance: Path, solution: Path) -> tuple[float | None, str]:
    """Return the objective by the definition of a solution's tree, or why it is not known (empty: no metadata)."""
    from mipforest.runs import import_solution
    from mipforest.runs.instance import metadata_path, read_metadata

    if not metadata_path(instance).is_file():
        return None, ""
    try:
        if read_metadata(instance).tangents:
            return None, "the instance has tangents for the quadratic objective; see 'mipforest import'"
        result = import_solution(solution, instance).result
    # A formulation may need a solver to bind its data, and none has to be installed here.
    except (MipforestError, OSError, ImportError) as error:
        return None, str(error)
    return result.evaluated_objective, ""


def _worse(form: MatrixForm, value: float, than: float) -> bool:
    """Return whether a value is worse than another by more than the tolerance; slack that is not needed betters it."""
    loss = than - value if form.maximize else value - than
    return not loss <= FEASIBILITY_TOLERANCE * max(1.0, abs(than))


def entries(form: MatrixForm) -> int:
    """Return how many entries the rows and the quadratic objective of a model have."""
    return int(form.A.nnz + form.indicators.A.nnz + (0 if form.Q is None else form.Q.nnz))


def read_instance(path: Path) -> MatrixForm:
    """Read a model, whose name may end otherwise."""
    from mipforest.files import read_model
    from mipforest.files.streams import split_suffix

    try:
        split_suffix(path)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return read_model(path)
