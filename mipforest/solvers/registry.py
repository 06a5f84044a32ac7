"""Solvers by name, from the entry-point group ``mipforest.solvers``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points

from mipforest.errors import SolverUnavailable, suggestion
from mipforest.solvers.base import Solver

GROUP = "mipforest.solvers"


@cache
def solver_classes() -> dict[str, type[Solver]]:
    """Return all registered solvers by name, installed or not, built in or from another package."""
    return {
        entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def get_solver(name: str, *, others: Iterable[str] = ()) -> Solver:
    """Return a solver by name.

    Parameters
    ----------
    name
        Registered name; what stands behind a colon (``pyomo:glpk``) is for the plug-in to read.
    others
        Names that the caller also takes, for the message.

    Raises
    ------
    SolverUnavailable
        If no solver has that name (the nearest names are suggested) or its package is not installed.
    """
    classes = solver_classes()
    registered, _, inner = name.partition(":")
    if registered not in classes:
        known = [*classes, *others]
        hint = suggestion(registered, known, 2, otherwise=".", written=str)
        raise SolverUnavailable(f"no solver named {name!r}{hint} Known: {', '.join(known)}")
    plugin = classes[registered]
    if not plugin.available():
        raise SolverUnavailable(
            f"solver {registered!r} is not installed (no Python package {plugin.package!r}); "
            f"run: pip install {plugin.install}"
        )
    return plugin.named(inner)
