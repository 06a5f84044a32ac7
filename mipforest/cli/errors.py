"""One clear message and an exit code for everything that can go wrong."""

from __future__ import annotations

import errno
import sys
import traceback
from dataclasses import dataclass

from typer import BadParameter

from mipforest.cli.exit_codes import BUG, INTERRUPTED, NO_ANSWER, SOLVER, USAGE

#: Base class of typer's own errors (typer may bring its own click, so click's cannot be named).
ClickException = next(base for base in BadParameter.__mro__ if base.__name__ == "ClickException")

#: How messages of the Python interface read on the command line.
_WORDING = {
    "missing='drop'": "--missing drop",
    "max_fits=": "--max-fits ",
    "task='classification'": "--task classification",
    "task='regression'": "--task regression",
    "data.relabel(...) or data.binarise(positive=...)": "--positive CLASS",
    "data.binarise(positive=...)": "--positive CLASS",
    "build variant 'paper'": "use --variant paper",
    'solver="highs"': "--solver highs",
    'bridges="quadratic"': "--bridge quadratic",
}


class CommandError(Exception):
    """A request that a command refuses; the message says what to do."""


@dataclass(frozen=True)
class Complaint:
    """What the user is told.

    Attributes
    ----------
    message
        What happened, and what to do.
    kind
        Name of the error's class.
    exit_code
        See :mod:`mipforest.cli.exit_codes`.
    """

    message: str
    kind: str
    exit_code: int

    def to_dict(self) -> dict[str, str | int]:
        """Give it as ``--json`` prints it."""
        return {"error": self.message, "kind": self.kind, "exit_code": self.exit_code}


def complaint(error: BaseException) -> Complaint:
    """Turn an exception into what the user is told.

    An exception that is no known error is a bug: its traceback goes to standard error.
    """
    kind = type(error).__name__
    if isinstance(error, ClickException):
        return Complaint(_usage_message(error), kind, USAGE)
    if isinstance(error, CommandError):
        return Complaint(str(error), kind, USAGE)
    if isinstance(error, KeyboardInterrupt):
        return Complaint("interrupted; nothing was written", kind, INTERRUPTED)
    if isinstance(error, OSError):
        return Complaint(_system_message(error), kind, USAGE)
    if isinstance(error, MemoryError):
        message = "out of memory; take a smaller depth, fewer samples, or a smaller model"
        return Complaint(message, kind, NO_ANSWER)
    exit_code = _library_exit_code(error)
    if exit_code is not None:
        return Complaint(in_options(str(error)), kind, exit_code)
    traceback.print_exception(error, file=sys.stderr)
    return Complaint(f"internal error, please report it with the lines above: {kind}: {error}", kind, BUG)


def in_options(message: str) -> str:
    """Word a message of the library in terms of command-line options."""
    for python, option in _WORDING.items():
        message = message.replace(python, option)
    return message


def _library_exit_code(error: BaseException) -> int | None:
    """Exit code of an error of this package, ``None`` for any other."""
    # These modules are loaded already if one of them raised the error.
    if not any(base.__module__.startswith("mipforest.") for base in type(error).__mro__):
        return None
    from mipforest.campaigns import CampaignError
    from mipforest.data import DataError
    from mipforest.ensembles import EnsembleError
    from mipforest.files import MpsError
    from mipforest.files.points import PointError
    from mipforest.instances import CatalogueError, SuiteError
    from mipforest.model import ModelError
    from mipforest.problem.parameters import ParameterError
    from mipforest.problem.problem import StartError
    from mipforest.problem.registry import UnknownFormulation
    from mipforest.runs import RunError
    from mipforest.solvers.errors import LicenseLimit, NotAllowed, SolverError, SolverUnavailable, Unsupported
    from mipforest.trees import TreeFileError
    from mipforest.tuning.errors import NoTreeFound, TuningError

    if isinstance(error, SolverUnavailable | LicenseLimit):
        return SOLVER
    inputs = DataError | EnsembleError | ParameterError | StartError | UnknownFormulation | ModelError
    files = MpsError | PointError | RunError | TreeFileError | SuiteError | CatalogueError | CampaignError
    if isinstance(error, NoTreeFound):
        return NO_ANSWER
    if isinstance(error, inputs | files | TuningError | NotAllowed | Unsupported):
        return USAGE
    return NO_ANSWER if isinstance(error, SolverError) else None


def _usage_message(error: BaseException) -> str:
    """Word typer's own error, with where to find help."""
    message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    message = message.replace(": Value error, ", ": ")
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message}; see '{context.command_path} --help'"


def _system_message(error: OSError) -> str:
    """Say what the system refused, and for which file."""
    where = f": {error.filename}" if error.filename else ""
    advice = {
        errno.ENOSPC: "; free some space, or write elsewhere",
        errno.EDQUOT: "; free some space, or write elsewhere",
        errno.EACCES: "; choose a place where you may write, or change the permissions",
        errno.EROFS: "; choose a place where you may write",
        errno.ENOENT: "; check the path",
    }
    return f"{error.strerror or error}{where}{advice.get(error.errno or 0, '')}"
