"""The error that every problem with a user's data raises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class DataError(ValueError):
    """Data that cannot be used as they are: the message says what is wrong, where, and what to do."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Name the nearest known name.

    Parameters
    ----------
    name
        The name that is not known.
    known
        The names that are.

    Returns
    -------
    str
        ``" (did you mean 'iris'?)"``, or the empty string if nothing is near.
    """
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    nearest = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    return f" (did you mean {by_lower_case[nearest[0]]!r}?)" if nearest else ""


def some_of(items: Sequence[object], limit: int = 8) -> str:
    """Write out at most ``limit`` items, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"
