"""Bridges: what a solver does not take is rewritten, and its solution is turned back.

A bridge is a module, or another object with the same names (:class:`Bridge`). :func:`bridges` lists those of this
package in the order in which they are asked, then those of other packages (entry-point group ``mipforest.bridges``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol, cast

from mipforest.arrays import FloatArray
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.base import Feature

GROUP = "mipforest.bridges"

#: The package's own: numbers are scaled before big-Ms are computed from them.
OWN = ("unscaled_to_scaled", "indicator_to_big_m")


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
    objective
        Factor of the new model's objective.
    """

    form: MatrixForm
    undo: Callable[[FloatArray], FloatArray]
    carry: Callable[[FloatArray], FloatArray]
    objective: float = 1.0


class Bridge(Protocol):
    """What rewrites a part of a model that a solver does not take.

    Attributes
    ----------
    NAME
        Its name in a solution's ``bridges``: source and target.
    ADVICE
        What the user can do where a point of the rewritten model violates the model.
    """

    NAME: str
    ADVICE: str

    def applies(self, form: MatrixForm, missing: frozenset[Feature]) -> bool:
        """Return whether the model has such a part, and has to be rewritten for a solver without some features."""

    def apply(self, form: MatrixForm) -> Bridged:
        """Rewrite the model.

        Raises
        ------
        Unsupported
            If this model cannot be rewritten, naming the row.
        """


@cache
def bridges() -> tuple[Bridge, ...]:
    """Return all bridges in the order in which they are asked."""
    own = (import_module(f"{__name__}.{name}") for name in OWN)
    others = (entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name))
    return cast("tuple[Bridge, ...]", (*own, *others))
