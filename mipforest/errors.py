"""Errors of this package; each says what was given, why it is refused, and what to do instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class ModelError(Exception):
    """Base class of the errors of model building."""


class ExpressionError(ModelError, TypeError):
    """An operation that a linear or convex quadratic model cannot hold."""


class ShapeError(ModelError, ValueError):
    """Shapes that do not fit together."""


class DataValueError(ModelError, ValueError):
    """A coefficient, bound or value that is not allowed, such as NaN."""


class UnknownNameError(ModelError, KeyError):
    """A block or label that the model does not have."""

    def __str__(self) -> str:
        return str(self.args[0])


def closest(word: str, known: Iterable[str]) -> str:
    """Suggest what a mistyped name may have meant."""
    names = list(known)
    near = get_close_matches(word, names, n=2)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    if not names:
        return "there is none yet"
    return f"known: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


class SolverError(Exception):
    """Base class of what goes wrong between a model and a solver."""


class Unsupported(SolverError):
    """The solver never takes such a model or option."""


class NotAllowed(SolverError):
    """The call makes sense, but not in this state (a start of the wrong length, a limit below zero)."""


class SolverUnavailable(SolverError):
    """The solver is unknown or not installed."""


class LicenseLimit(SolverError):
    """The model is beyond what the solver's licence allows."""


class PyomoModelError(ModelError, ValueError):
    """A Pyomo model that is no mixed-integer model with linear rows and a quadratic objective."""


class DataError(ValueError):
    """Data that cannot be used as they are: the message says what is wrong, where, and what to do."""


class EnsembleError(ValueError):
    """An ensemble that cannot be used: the message says what it is, why, and what to do."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, upper and lower case alike, or ``None``."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    nearest = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    return by_lower_case[nearest[0]] if nearest else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'iris'?)"`` for the nearest known name, or ``""`` if none is near."""
    nearest = nearest_name(name, known)
    return "" if nearest is None else f" (did you mean {nearest!r}?)"


def some_of(items: Sequence[object], limit: int = 8) -> str:
    """Write out at most ``limit`` items, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"
