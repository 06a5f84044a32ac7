"""What a bridge gives: another model, and the way there and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mipforest.arrays import FloatArray
from mipforest.model.matrix import MatrixForm


@dataclass(frozen=True, eq=False)
class Bridged:
    """A rewritten model.

    Attributes
    ----------
    form
        The new model.
    undo
        Turns a point of the new model into one of the old.
    carry
        Turns a start of the old model, possibly with NaN, into one of the new.
    """

    form: MatrixForm
    undo: Callable[[FloatArray], FloatArray]
    carry: Callable[[FloatArray], FloatArray]
