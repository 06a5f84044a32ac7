"""Losses of branch nodes by name, from the entry-point group ``mipforest.losses``."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from mipforest.errors import MipforestError, close_names
from mipforest.objectives.branches import BranchLoss

GROUP = "mipforest.losses"


#: Listed first, as the literature does.
_FIRST = ("misclassification", "hinge", "logistic")


class UnknownLoss(MipforestError, ValueError):
    """No loss has that name."""


def loss_names() -> tuple[str, ...]:
    """Return the names of all registered losses, without loading them."""
    names = entry_points(group=GROUP).names
    return (*(name for name in _FIRST if name in names), *sorted(names - set(_FIRST)))


@cache
def loss_classes() -> dict[str, type[BranchLoss]]:
    """All registered losses by name, built in or from another package."""
    return {name: entry_points(group=GROUP)[name].load() for name in loss_names()}


def get_loss(name: str) -> type[BranchLoss]:
    """Return a loss's class by name; its ``build`` makes the loss.

    Raises
    ------
    UnknownLoss
        If none has that name; the nearest names are suggested.
    """
    classes = loss_classes()
    if name not in classes:
        near = close_names(name, classes, 2)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
        raise UnknownLoss(f"no loss named {name!r}{hint} Known: {', '.join(classes)}")
    return classes[name]
