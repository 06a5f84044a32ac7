"""``mipforest export`` and ``mipforest import``: models out, solutions in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.inputs import build, depth_of, formulation_of, scaling_of, source_of, start_of
from mipforest.cli.outcome import Outcome, end, run_folder, write_outcome
from mipforest.cli.output import print_json, print_note, print_text
from mipforest.formatting import number

if TYPE_CHECKING:
    from mipforest.runs import DataSource


class Tangents(StrEnum):
    """What an instance can be rewritten by."""

    quadratic = "quadratic"


def export(
    *,
    model: o.ModelName,
    depth: o.Depth = None,
    data: o.DataName,
    target: o.Target = None,
    param: o.Parameters = None,
    variant: o.Variant = None,
    ensemble: o.Ensemble = None,
    positive: o.Positive = None,
    task: o.TaskOption = None,
    weight: o.Weight = None,
    treatment: o.Treatment = None,
    outcomes: o.OutcomeColumn = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    missing: o.MissingOption = o.Missing.error,
    scaling: o.ScalingOption = None,
    test_size: o.TestSize = None,
    start: o.Start = "default",
    seed: o.Seed = 0,
    bridge: Annotated[
        Tangents | None,
        Option(
            help="Write tangents in place of the quadratic objective, for solvers of linear models: HiGHS, CBC, GLPK.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None,
    output: Annotated[
        Path,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Instance to write: .mps or .lp, with .gz behind it to compress.",
            rich_help_panel="Output",
        ),
    ],
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write an instance: the model (.mps or .lp), a start (.mst) and what they are (.json).

    With --test-size the model is of the training part. Existing files are replaced.

    Example: mipforest export --model margot --depth 2 --data breast_cancer -o margot-d2.mps.gz
    """
    import mipforest
    from mipforest.runs import instance_files, write_instance

    try:
        instance_files(output)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not output.parent.is_dir():
        raise CommandError(f"there is no folder {output.parent}; make it first, or write elsewhere")
    source = source_of(
        data,
        target=target,
        positive=positive,
        task=task,
        scaling=scaling_of(scaling, model),
        missing=missing,
        drop=drop,
        keep=keep,
        weight=weight,
        treatment=treatment,
        outcome=outcomes,
        seed=seed,
        test_size=test_size,
    )
    formulation = formulation_of(model, param, variant, ensemble)
    depth = depth_of(depth, formulation)
    wanted = start_of(start, formulation)
    problem = build(formulation, source.load().train, depth)
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
        _tell(output, metadata)


def _tell(output: Path, metadata: dict[str, Any]) -> None:
    from mipforest.model.matrix import Statistics
    from mipforest.runs import instance_files

    start, description = instance_files(output)
    print_text(f"{output}: {Statistics(**metadata['statistics'])}")
    if metadata["start"]:
        print_text(f"{start}: a start of objective {number(metadata['start_objective'])}")
    print_text(f"{description}: model, parameters, data and checksums")
    for warning in metadata["warnings"]:
        print_note(warning)
    if metadata["start"] and ".mps" in output.suffixes:
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


def import_solution(
    solution: Annotated[
        Path,
        Argument(
            metavar="SOLUTION",
            help="Solution of HiGHS, Gurobi, SCIP, Cbc or GLPK (-w), or lines 'name value'.",
            show_default=False,
        ),
    ],
    *,
    instance: Annotated[
        Path,
        Option(
            metavar="FILE",
            help="The instance that was solved, with the metadata that 'mipforest export' wrote beside it.",
            rich_help_panel="Model",
        ),
    ],
    param: o.Parameters = None,
    ensemble: Annotated[
        str | None,
        Option(
            metavar="ENSEMBLE",
            help="Ensemble to mimic, if the model has one; never loaded from a file that only metadata name.",
            show_default=False,
            rich_help_panel="Model",
        ),
    ] = None,
    data: Annotated[
        str | None,
        Option(
            metavar="DATA",
            help="Where the data are, if elsewhere than at the export.",
            show_default=False,
            rich_help_panel="Data",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Run folder for the result, tree and picture; without it, nothing is written.",
            rich_help_panel="Output",
        ),
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
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
    with run_folder(out, replace=force) as folder:
        found = imported_of(
            solution, instance, data=data, parameters=_parameters(instance, param), ensemble=ensemble
        )
        asked = Import(found.source, solution, instance)
        outcome = Outcome.of(asked, found.data, found.result)
        failure = write_outcome(outcome, folder)
    end(outcome, folder, failure, out=out, as_json=as_json, quiet=quiet)


def _parameters(instance: Path, assignments: list[str] | None) -> dict[str, Any]:
    """Read the parameters that are given in place of the recorded ones."""
    from mipforest.problem.parameters import parse_parameters
    from mipforest.problem.registry import get_formulation
    from mipforest.runs.instance import read_metadata

    if not assignments:
        return {}
    return parse_parameters(get_formulation(read_metadata(instance).model), assignments)
