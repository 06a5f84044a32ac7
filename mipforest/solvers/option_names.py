"""Refusal of options that a solver does not have."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from mipforest.solvers.errors import NotAllowed


def unknown_option(solver: str, name: str, known: Iterable[str]) -> NotAllowed:
    """Give the error for an option that a solver does not have; it suggests the nearest names.

    Parameters
    ----------
    solver
        Name of the solver as its makers write it.
    name
        The option.
    known
        The solver's options.
    """
    # Case is not what tells one option from another.
    spelled = {option.lower(): option for option in known}
    close = [spelled[option] for option in get_close_matches(name.lower(), spelled, n=3)]
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return NotAllowed(f"{solver} has no option {name!r}{hint}")
