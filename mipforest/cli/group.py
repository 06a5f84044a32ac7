"""The root command: reports every error in one place."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

from mipforest.cli.errors import complaint
from mipforest.cli.exit_codes import OUTPUT_CLOSED
from mipforest.cli.output import harmless, print_json


class ReportingGroup(TyperGroup):
    """Turns exceptions into a message on standard error, or with ``--json`` an object on standard output.

    So bad input never ends in a traceback.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit with its code (see :mod:`mipforest.cli.exit_codes`)."""
        given = list(sys.argv[1:] if args is None else args)
        if not given:
            given = ["--help"]
        try:
            code = super().main(given, prog_name, complete_var, False, windows_expand_args, **extra)
            sys.stdout.flush()
        except (BrokenPipeError, OutputClosedError):
            # The reader, such as `head`, has gone. Python would complain again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = OUTPUT_CLOSED
        except Exception as error:
            code = _report(error, as_json="--json" in given)
        if standalone_mode:
            sys.exit(code or 0)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C and a closed output arrive in :meth:`main` as errors like any other."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise UserInterruptError from error
        except BrokenPipeError as error:
            raise OutputClosedError from error


class UserInterruptError(Exception):
    """Ctrl-C; typer itself would end without a word."""


class OutputClosedError(Exception):
    """The reader of standard output has gone; typer itself would exit with the code of a bug."""


def _report(error: Exception, *, as_json: bool) -> int:
    told = complaint(error.__cause__ if isinstance(error, UserInterruptError) and error.__cause__ else error)
    if as_json:
        print_json(told.to_dict())
    else:
        print(f"error: {harmless(told.message)}", file=sys.stderr)
    return told.exit_code
