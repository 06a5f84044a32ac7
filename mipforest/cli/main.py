"""The ``mipforest`` command; the module of a command is imported when it is asked for."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NoReturn

from typer import Exit, Option, Typer

from mipforest.cli.errors import USAGE, ReportingGroup
from mipforest.cli.output import open_standard_streams
from mipforest.processes import SAFE_PATH

#: Module, function and panel of each command.
COMMANDS = {
    "solve": ("solve", "solve", "Solve"),
    "tune": ("tune", "tune", "Solve"),
    "price": ("price", "price", "Solve"),
    "explore": ("explore", "explore", "Solve"),
    "update": ("update", "update", "Solve"),
    "show": ("outcome", "show", "Use a run"),
    "plot": ("pictures", "plot", "Use a run"),
    "report": ("pictures", "report", "Use a run"),
    "predict": ("predict", "predict", "Use a run"),
    "solve-model": ("solve_model", "solve_model", "Instances"),
    "export": ("exchange", "export", "Instances"),
    "check": ("exchange", "check", "Instances"),
    "certify": ("certify", "certify", "Instances"),
    "vite": ("pictures", "vite", "Tree ensembles"),
    "models": ("lists", "models", "What there is"),
    "solvers": ("lists", "solvers", "What there is"),
    "data": ("lists", "data", "What there is"),
    "doctor": ("doctor", "doctor", "What there is"),
    "compile": ("compile", "compile_searches", "What there is"),
    "import": ("exchange", "import_solution", "Instances"),
}

#: Module and panel of each group of commands.
GROUPS = {"campaign": ("campaign", "Solve"), "instances": ("instances", "Instances")}


def app_of(names: Iterable[str]) -> Typer:
    """Return the command line with these commands and groups, and no others."""
    wanted = set(names)
    made = Typer(
        name="mipforest",
        cls=ReportingGroup,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(main)
    for name, (module, function, panel) in COMMANDS.items():
        if name in wanted:
            brief = _module("options").BriefHelp if name == "solve" else None
            made.command(name, rich_help_panel=panel, cls=brief)(getattr(_module(module), function))
    for name, (module, panel) in GROUPS.items():
        if name in wanted:
            made.add_typer(_module(module).app, name=name, rich_help_panel=panel)
    return made


def _module(name: str) -> Any:
    return import_module(f"mipforest.cli.{name}")


@cache
def whole_app() -> Typer:
    """Return the command line with all its commands."""
    return app_of((*COMMANDS, *GROUPS))


def __getattr__(name: str) -> Any:
    if name == "app":
        return whole_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _print_version(wanted: bool) -> None:
    if wanted:
        from mipforest.cli.doctor import versions

        found = versions()
        print(f"mipforest {found.pop('mipforest')}")
        for name, number in found.items():
            print(f"  {name:<14} {number or 'not installed'}")
        raise Exit


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
        _app_for(sys.argv[1:])(prog_name="mipforest")
    except SystemExit as end:
        if closed and not end.code:
            print("error: standard output is closed, and what belongs there is lost", file=sys.stderr)
            raise SystemExit(USAGE) from end
        if isinstance(end.code, str):
            raise
        _leave_at_once(end.code or 0)


def _leave_at_once(code: int) -> NoReturn:
    """End the process; taking apart a large model, object by object, would take seconds and change nothing."""
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # a stream whose reader has gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _app_for(arguments: list[str]) -> Typer:
    """Return the command line with what the first argument asks for: one command, the version, or anything."""
    asked = arguments[0] if arguments else ""
    if asked in (*COMMANDS, *GROUPS):
        return app_of([asked])
    return app_of(["data"]) if asked == "--version" else whole_app()
