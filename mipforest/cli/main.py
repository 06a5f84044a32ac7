"""The ``mipforest`` command."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from typer import Exit, Option, Typer

from mipforest.cli.campaign import app as campaign
from mipforest.cli.campaign import name_has_changed
from mipforest.cli.certify import certify
from mipforest.cli.doctor import doctor
from mipforest.cli.errors import USAGE, ReportingGroup
from mipforest.cli.exchange import check, export, import_solution
from mipforest.cli.instances import app as instances
from mipforest.cli.lists import data, models, solvers
from mipforest.cli.options import BriefHelp
from mipforest.cli.outcome import show
from mipforest.cli.output import open_standard_streams
from mipforest.cli.pictures import plot, report, vite
from mipforest.cli.predict import predict
from mipforest.cli.solve import solve
from mipforest.cli.solve_model import solve_model
from mipforest.cli.tune import tune
from mipforest.processes import SAFE_PATH

app = Typer(
    name="mipforest",
    cls=ReportingGroup,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command, panel in (
    (solve, "Solve"),
    (tune, "Solve"),
    (show, "Use a run"),
    (plot, "Use a run"),
    (report, "Use a run"),
    (predict, "Use a run"),
    (solve_model, "Instances"),
    (export, "Instances"),
    (check, "Instances"),
    (certify, "Instances"),
    (vite, "Tree ensembles"),
    (models, "What there is"),
    (solvers, "What there is"),
    (data, "What there is"),
    (doctor, "What there is"),
):
    app.command(rich_help_panel=panel, cls=BriefHelp if command is solve else None)(command)
app.command("import", rich_help_panel="Instances")(import_solution)
app.add_typer(campaign, name="campaign", rich_help_panel="Solve")
app.add_typer(campaign, name="bench", callback=name_has_changed, hidden=True)
app.add_typer(instances, name="instances", rich_help_panel="Instances")


def _print_version(wanted: bool) -> None:
    if wanted:
        from mipforest.cli.doctor import versions

        found = versions()
        print(f"mipforest {found.pop('mipforest')}")
        for name, number in found.items():
            print(f"  {name:<14} {number or 'not installed'}")
        raise Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version, and those of what it uses.",
        ),
    ] = False,
) -> None:
    """Optimal decision trees by mixed-integer programming: any model, any solver, every answer checked.

    Start with: mipforest solve --model oct --depth 2 --data breast_cancer --out run
    """


def run() -> None:
    """Run the command line; the entry point of the ``mipforest`` script."""
    os.environ[SAFE_PATH] = "1"  # of all Pythons that a command starts
    closed = open_standard_streams()
    try:
        app(prog_name="mipforest")
    except SystemExit as end:
        if closed and not end.code:
            print("error: standard output is closed, and what belongs there is lost", file=sys.stderr)
            raise SystemExit(USAGE) from end
        raise
