"""The file of a solver's own log."""

from __future__ import annotations

from pathlib import Path

from mipforest.solvers.errors import NotAllowed


def writable(path: Path) -> Path:
    """Refuse a log file that cannot be opened, which a solver would tell late, in its own words, or never.

    Raises
    ------
    NotAllowed
        With the reason that the system gives.
    """
    try:
        with path.open("a"):
            return path
    except OSError as error:
        raise NotAllowed(f"cannot write the log {path}: {error.strerror}; choose another file") from error
