"""One clear message and an exit code for everything that can go wrong, given by the root command."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from typer import BadParameter
from typer.core import TyperGroup

from mipforest.cli.output import discard_output, output_fails, print_json
from mipforest.errors import MipforestError
from mipforest.formatting import printable

#: A feasible, verified tree; for other commands, success.
SUCCESS = 0
#: An error of mipforest itself.
BUG = 1
#: Wrong usage, or input that cannot be used.
USAGE = 2
#: Infeasible, no solution within the limits, or an answer that is not verified.
NO_ANSWER = 3
#: The solver is not available, or its licence does not suffice.
SOLVER = 4
#: The reader of standard output, such as ``head``, has gone: what a shell gives for SIGPIPE.
OUTPUT_CLOSED = 141
#: Ctrl-C before there was anything to keep.
INTERRUPTED = 130


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
        """Run the command line and exit with its code (see :data:`SUCCESS` and those below it)."""
        given = list(sys.argv[1:] if args is None else args)
        if not given:
            given = ["--help"]
        try:
            code = super().main(given, prog_name, complete_var, False, windows_expand_args, **extra)
            sys.stdout.flush()
        except (BrokenPipeError, OutputClosedError):
            discard_output()  # the reader, such as `head`, has gone
            code = OUTPUT_CLOSED
        except Exception as error:
            code = _report(error, as_json="--json" in given)
        if standalone_mode:
            _leave(code or 0)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C and a closed output arrive in :meth:`main` as errors like any other."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise UserInterruptError from error
        except BrokenPipeError as error:
            raise OutputClosedError from error


def _leave(code: int) -> NoReturn:
    worker = sys.modules.get("mipforest.solvers.worker")  # not imported: no solver runs on
    if worker is not None and worker.solvers_run_on():
        # Everything is written. A solver that still runs would only delay the end.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


class UserInterruptError(Exception):
    """Ctrl-C; typer itself would end without a word."""


class OutputClosedError(Exception):
    """The reader of standard output has gone; typer itself would exit with the code of a bug."""


def _report(error: Exception, *, as_json: bool) -> int:
    report = report_of(
        error.__cause__ if isinstance(error, UserInterruptError) and error.__cause__ else error
    )
    if isinstance(error, OSError) and error.filename is None and output_fails():
        discard_output()
        report = replace(report, message=f"standard output cannot be written: {report.message}")
        as_json = False  # there is no other place left than standard error
    if as_json:
        print_json(report.to_dict())
    else:
        print(f"error: {printable(report.message)}", file=sys.stderr)
    return report.exit_code


#: Base class of typer's own errors (typer may bring its own click, so click's cannot be named).
ClickException = next(base for base in BadParameter.__mro__ if base.__name__ == "ClickException")


class CommandError(MipforestError):
    """A request that a command refuses; the message says what to do."""


@dataclass(frozen=True)
class ErrorReport:
    """How an error is reported to the user.

    Attributes
    ----------
    message
        What happened, and what to do.
    kind
        Name of the error's class.
    exit_code
        What the process ends with.
    """

    message: str
    kind: str
    exit_code: int

    def to_dict(self) -> dict[str, str | int]:
        """Return it as ``--json`` prints it."""
        return {"error": self.message, "kind": self.kind, "exit_code": self.exit_code}


def report_of(error: BaseException) -> ErrorReport:
    """Turn an exception into the report for the user.

    An exception that is no known error is a bug: its traceback goes to standard error.
    """
    kind = type(error).__name__
    if isinstance(error, MipforestError):
        return ErrorReport(error.on_command_line, kind, error.exit_code)
    if isinstance(error, ClickException):
        return ErrorReport(_usage_message(error), kind, USAGE)
    if isinstance(error, KeyboardInterrupt):
        return ErrorReport("interrupted; nothing was written", kind, INTERRUPTED)
    if isinstance(error, OSError):
        return ErrorReport(_system_message(error), kind, USAGE)
    if isinstance(error, MemoryError):
        message = "out of memory; take a smaller depth, fewer samples, or a smaller model"
        return ErrorReport(message, kind, NO_ANSWER)
    traceback.print_exception(error, file=sys.stderr)
    return ErrorReport(f"internal error, please report it with the lines above: {kind}: {error}", kind, BUG)


def _usage_message(error: BaseException) -> str:
    """Word typer's own error, with where to find help."""
    message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    message = message.replace(": Value error, ", ": ")
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message}; see '{context.command_path} --help'"


def _system_message(error: OSError) -> str:
    """Describe what the system refused, and for which file."""
    where = f": {error.filename}" if error.filename else ""
    advice = {
        errno.ENOSPC: "; free some space, or write elsewhere",
        errno.EDQUOT: "; free some space, or write elsewhere",
        errno.EACCES: "; choose a place where you may write, or change the permissions",
        errno.EROFS: "; choose a place where you may write",
        errno.ENOENT: "; check the path",
    }
    return f"{error.strerror or error}{where}{advice.get(error.errno or 0, '')}"
