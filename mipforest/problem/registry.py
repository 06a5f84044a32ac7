"""Formulations by name, from the entry-point group ``mipforest.formulations``."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points

from mipforest.problem.formulation import Formulation

GROUP = "mipforest.formulations"


class UnknownFormulation(ValueError):
    """No formulation has that name."""


@cache
def formulation_classes() -> dict[str, type[Formulation]]:
    """All registered formulations by name, built in or from another package."""
    return {
        entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def get_formulation(name: str) -> type[Formulation]:
    """Give a formulation's class by name.

    Raises
    ------
    UnknownFormulation
        If none has that name; the nearest names are suggested.
    """
    classes = formulation_classes()
    if name not in classes:
        near = get_close_matches(name, classes, n=2)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
        raise UnknownFormulation(f"no model named {name!r}{hint} Known: {', '.join(classes)}")
    return classes[name]
