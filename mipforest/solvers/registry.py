"""Solvers by name, from the entry-point group ``mipforest.solvers``."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points

from mipforest.solvers.base import Solver
from mipforest.solvers.errors import SolverUnavailable

GROUP = "mipforest.solvers"


@cache
def solver_classes() -> dict[str, type[Solver]]:
    """All registered solvers by name, installed or not, built in or from another package."""
    return {
        entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def get_solver(name: str) -> Solver:
    """Give a solver by name.

    Raises
    ------
    SolverUnavailable
        If no solver has that name (the nearest names are suggested) or its package is not installed.
    """
    classes = solver_classes()
    if name not in classes:
        close = get_close_matches(name, classes, n=2)
        hint = f"; did you mean {' or '.join(close)}?" if close else "."
        raise SolverUnavailable(f"no solver named {name!r}{hint} Known: {', '.join(classes)}")
    if not classes[name].available():
        raise SolverUnavailable(
            f"solver {name!r} is not installed (no Python package {classes[name].package!r}); "
            f"run: pip install {classes[name].install}"
        )
    return classes[name]()
