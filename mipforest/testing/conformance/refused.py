"""Assert that a solver refuses."""

from __future__ import annotations

from collections.abc import Callable

from mipforest.solvers.errors import SolverError


def assert_refused(attempt: Callable[[], object], kind: type[SolverError], *, naming: str = "") -> None:
    """Assert that a call raises an error of a kind.

    Parameters
    ----------
    attempt
        The call.
    kind
        The error's class.
    naming
        What its message must contain.

    Raises
    ------
    AssertionError
        If it ends without an error, or the message lacks ``naming``.
    """
    try:
        attempt()
    except kind as error:
        if naming not in str(error):
            raise AssertionError(f"the error does not name {naming!r}: {error}") from error
        return
    raise AssertionError(f"not refused: {kind.__name__} expected")
