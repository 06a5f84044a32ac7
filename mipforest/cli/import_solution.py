"""``mipforest import``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.outcome import Outcome, end, run_folder, write_outcome

if TYPE_CHECKING:
    from mipforest.runs import DataSource


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
