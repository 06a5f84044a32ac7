"""Why a solver stopped, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipforest.readable import percent

_WITHOUT_GAP = {
    "infeasible": "infeasible: no tree satisfies all constraints, proven",
    "unbounded": "unbounded: the objective improves without end, proven",
    "infeasible_or_unbounded": "infeasible or unbounded",
}
_STOPPED = {
    "time_limit": "stopped at the time limit",
    "interrupted": "stopped by the user",
    "limit": "stopped at a limit of the solver",
    "error": "the solver gave up",
    "imported": "read from a file",
}


def status_in_words(result: Mapping[str, Any]) -> str:
    """Say why the solver stopped and what that means.

    Parameters
    ----------
    result
        The content of ``result.json``: ``status``, ``gap`` and ``objective`` are read.
    """
    status, gap = result["status"], result["gap"]
    if status == "optimal":
        return "optimal, proven" + (f" up to a gap of {percent(gap)}" if gap else "")
    if status in _WITHOUT_GAP:
        return _WITHOUT_GAP[status]
    stopped = _STOPPED.get(status, status)
    if result["objective"] is None:
        return f"{stopped}, without a solution"
    return f"{stopped} with a gap of {percent(gap)}" if gap is not None else f"{stopped}, without a bound"
