"""What the shell offers when it completes the values of options."""

from __future__ import annotations

from importlib.metadata import entry_points


def model_names(incomplete: str) -> list[str]:
    """Names of models that begin like this."""
    return _named("mipforest.formulations", incomplete)


def solver_names(incomplete: str) -> list[str]:
    """Names of solvers that begin like this."""
    return _named("mipforest.solvers", incomplete)


def data_names(incomplete: str) -> list[str]:
    """Names of data sets that begin like this; files are left to the shell."""
    from mipforest.data import catalogue

    return [entry.name for entry in catalogue() if entry.name.startswith(incomplete)]


def _named(group: str, incomplete: str) -> list[str]:
    names = {entry.name for entry in entry_points(group=group)}
    return sorted(name for name in names if name.startswith(incomplete))
