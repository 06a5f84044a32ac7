"""Errors of building a model; each says what was given, why it is refused, and what to write instead."""

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
