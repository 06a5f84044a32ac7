"""Errors of this package; each says what was given, why it is refused, and what to do instead."""

from collections.abc import Iterable
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
