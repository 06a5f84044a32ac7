"""Errors of this package; each says what was given, why it is refused, and what to do instead.

All derive from :class:`MipforestError`. Those of a single module (a start that does not fit, a file that is no
tree) stand in that module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


class MipforestError(Exception):
    """Base class of the errors of this package.

    Parameters
    ----------
    message
        What happened, with the values, and why; one that leads over to the hint ends in a colon.
    hint
        What to do next, in the words of Python; the text of the error ends in it.
    option
        The same in the words of the command line, where they differ.

    Attributes
    ----------
    exit_code
        What the command line ends with: 2 for wrong usage or input, 3 where there is no answer, 4 where a solver
        or its licence is not available.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str = "", *, hint: str = "", option: str = "") -> None:
        super().__init__(message)
        self.message, self.hint, self.option = message, hint, option or hint

    def __str__(self) -> str:
        return self._with(self.hint)

    @property
    def on_command_line(self) -> str:
        """The text of the error, with the next step in the words of the command line."""
        return self._with(self.option)

    def _with(self, step: str) -> str:
        if not step:
            return self.message
        if step.startswith("\n"):
            return f"{self.message}{step}"
        return f"{self.message}{' ' if self.message.endswith(':') else '; '}{step}"

    def located(self, where: str, kind: type[MipforestError] | None = None) -> MipforestError:
        """Return the same error with the place in front, by default of the same kind."""
        return (kind or type(self))(f"{where}: {self.message}", hint=self.hint, option=self.option)


# ---------------------------------------------------------------------- models


class ModelError(MipforestError):
    """Base class of the errors of model building."""


class ExpressionError(ModelError, TypeError):
    """An operation that a linear or convex quadratic model cannot hold."""


class ShapeError(ModelError, ValueError):
    """Shapes that do not fit together."""


class DataValueError(ModelError, ValueError):
    """A coefficient, bound or value that is not allowed, such as NaN."""


class UnknownNameError(ModelError, KeyError):
    """A block or label that the model does not have."""


class PyomoModelError(ModelError, ValueError):
    """A Pyomo model that is no mixed-integer model with linear rows and a quadratic objective."""


# ---------------------------------------------------------------------- solvers


class SolverError(MipforestError):
    """Base class of what goes wrong between a model and a solver."""

    exit_code = 3


class Unsupported(SolverError):
    """The solver never takes such a model or option."""

    exit_code = 2


class NotAllowed(SolverError):
    """The call makes sense, but not in this state (a start of the wrong length, a limit below zero)."""

    exit_code = 2


class SolverUnavailable(SolverError):
    """The solver is not installed, or unknown: :class:`UnknownSolver`."""

    exit_code = 4


class UnknownSolver(SolverUnavailable):
    """No solver has that name, which is wrong usage."""

    exit_code = 2


class LicenseLimit(SolverError):
    """The model is beyond what the solver's licence allows."""

    exit_code = 4


class NoTreeFound(MipforestError, RuntimeError):
    """The solver, or a tuning, ended without a tree: the message says why, and what to do."""

    exit_code = 3


# ---------------------------------------------------------------------- data, campaigns, tuning


class Remedy(NamedTuple):
    """Settings of a table, and their words on the command line."""

    option: str
    settings: Mapping[str, Any]


class DataError(MipforestError, ValueError):
    """Data that cannot be used as they are: the message says what is wrong, where, and what to do.

    Attributes
    ----------
    remedies
        Settings of a table that do away with what stands in the way, each with its words on the command line.
    """

    remedies: tuple[Remedy, ...] = ()

    def cured_by(self, remedy: Remedy | str, **settings: Any) -> Self:
        """Return the error with settings of a table that do away with it."""
        self.remedies = (*self.remedies, Remedy(remedy, settings) if isinstance(remedy, str) else remedy)
        return self


class ParameterError(MipforestError, ValueError):
    """A hyperparameter that is unknown, of the wrong type, or out of range."""


class UnknownFormulation(MipforestError, ValueError):
    """No formulation has that name."""


class EnsembleError(MipforestError, ValueError):
    """An ensemble that cannot be used: the message says what it is, why, and what to do."""


class CampaignError(MipforestError, ValueError):
    """A suite or a results file that cannot be used: the message says what is wrong, where, and what to do."""


class TuningError(MipforestError, ValueError):
    """A tuning that cannot be done as asked; the message says why and what to do."""


class ClusterError(TuningError):
    """A Dask cluster that cannot be used."""


class FitError(TuningError):
    """A cross-validation that failed on the way; its cause is the error of the model, solver or cluster.

    Attributes
    ----------
    table
        What was finished before, as :attr:`Tuning.table <mipforest.tuning.run.Tuning.table>`.
    """

    def __init__(self, message: str, table: pd.DataFrame) -> None:
        super().__init__(message)
        self.table = table


class TuningInterrupted(KeyboardInterrupt):
    """Ctrl-C during a tuning.

    Attributes
    ----------
    table
        What was finished before, as :attr:`Tuning.table <mipforest.tuning.run.Tuning.table>`.
    """

    def __init__(self, message: str, table: pd.DataFrame) -> None:
        super().__init__(message)
        self.table = table


# ---------------------------------------------------------------------- suggestions in messages


def close_names(word: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return the known names nearest to a mistyped one, nearest first; upper and lower case are the same.

    Parameters
    ----------
    word
        The name that is not known.
    known
        The names that are.
    count
        Greatest number of names to return.
    """
    spelled = {name.lower(): name for name in known}
    # What was given may be no text: the message says what would be.
    return [spelled[name] for name in get_close_matches(str(word).lower(), spelled, n=count)]


def known_name(word: str, known: Iterable[str]) -> str:
    """Return the known name that a word is but for upper and lower case; the word itself where none or two are."""
    names = list(known)
    alike = [name for name in names if name.lower() == word.lower()]
    return alike[0] if word not in names and len(alike) == 1 else word


def suggestion(
    word: str,
    known: Iterable[str],
    count: int = 1,
    *,
    otherwise: str = "",
    written: Callable[[str], str] = repr,
) -> str:
    """Return ``"; did you mean 'oct' or 'olct'?"`` for a mistyped name.

    Parameters
    ----------
    word, known, count
        As for :func:`close_names`.
    otherwise
        What to return if nothing is near.
    written
        How names are written: in quotes, or with ``str`` as they are.
    """
    near = close_names(word, known, count)
    return f"; did you mean {' or '.join(map(written, near))}?" if near else otherwise


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'iris'?)"`` for a mistyped name, or the empty string if nothing is near."""
    near = suggestion(word, known)
    return f" ({near[2:]})" if near else ""


def closest(word: str, known: Iterable[str]) -> str:
    """Return what a mistyped name may have meant, or else the first names that there are, after ``"; "``."""
    names = list(known)
    first = f"known: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
    return suggestion(word, names, 2, otherwise=f"; {first if names else 'there is none yet'}")


def some_of(items: Sequence[object], limit: int = 8) -> str:
    """Write out at most ``limit`` items, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"


def unknown_formulation(name: str, known: Iterable[str]) -> UnknownFormulation:
    """Return the error for a model that is not among the known ones; the nearest names are suggested."""
    names = sorted(known)
    hint = suggestion(name, names, 2, otherwise=".")
    return UnknownFormulation(f"no model named {name!r}{hint} Known: {', '.join(names)}")


def no_file(path: Path) -> DataError:
    """Return the error for a file of data that there is not; a name of its folder is suggested."""
    neighbours = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    where = "" if path.parent.is_dir() else f": there is no directory {path.parent}"
    return DataError(f"no file {path}{where}{did_you_mean(path.name, neighbours)}; check the path")


def refuse_out_of_range(what: str, settings: object, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse the first attribute of ``settings`` that its range, both ends included, does not hold.

    Parameters
    ----------
    what
        What the settings are of, as the message begins: ``"synthetic:tree"``.
    settings
        Has an attribute of each name in ``ranges``.
    ranges
        Least and greatest value of each.

    Raises
    ------
    DataError
        With the name, the value and its range.
    """
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        if not low <= value <= high:
            raise DataError(f"{what}: {name}={value} is out of range; choose from {low} to {high}")
