"""Starts for HiGHS: checked, and completed, before they are passed.

HiGHS itself drops an infeasible start with no more than a line in its log, and while it completes a
partial one it reports the bounds of the auxiliary model as if they were the model's. So a start is
checked here, completed here by a HiGHS run of its own, and passed only when it is full and feasible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.base import SolveOptions
from mipforest.solvers.errors import NotAllowed
from mipforest.solvers.highs_session import HighsSession
from mipforest.solvers.integrality import FEASIBILITY_TOLERANCE, usable_integers, with_exact_integers
from mipforest.solvers.watched_run import WatchedRun

#: Branch-and-bound nodes for the integers that a start leaves open: HiGHS' own limit (mip_max_start_nodes).
COMPLETION_NODES = 500

#: Share of the time limit that the completion of a start may take.
COMPLETION_SHARE = 0.25


@dataclass(frozen=True)
class CheckedStart:
    """A start as HiGHS will take it.

    Attributes
    ----------
    x
        (n,) full, feasible point, or ``None`` if nothing of the start is of use.
    warnings
        What the user should know.
    """

    x: FloatArray | None
    warnings: tuple[str, ...] = ()


def check_start(
    form: MatrixForm, start: FloatArray, options: SolveOptions, watch: WatchedRun
) -> CheckedStart:
    """Check a start and, where it is partial or infeasible, complete its integer part.

    Parameters
    ----------
    form
        A model without indicator rows.
    start
        (n,) point, NaN where it is left open.
    options
        Options of the solve.
    watch
        Can interrupt the completion.

    Raises
    ------
    NotAllowed
        If the start has the wrong length.
    """
    start = np.asarray(start, dtype=float)
    if start.shape != (form.n_columns,):
        raise NotAllowed(f"the start has shape {start.shape}, the model has {form.n_columns} columns")
    if not form.is_mip:
        return CheckedStart(
            None, ("the start was not used: HiGHS takes starts for models with integers only",)
        )
    complaint = ""
    if not np.isnan(start).any():
        found = violations(form, start)
        if found.max <= FEASIBILITY_TOLERANCE:
            return CheckedStart(with_exact_integers(form, start))
        name, amount = found.worst(1)[0]
        complaint = f"the start is infeasible ({name} by {amount:.3g})"
    completed = _complete(form, start, options, watch)
    if completed is None:
        complaint = complaint or f"the start leaves {int(np.isnan(start).sum())} of {len(start)} values open"
        warning = f"{complaint}, and no completion of its integer values was found: start dropped"
        return CheckedStart(None, (warning,))
    if complaint:
        return CheckedStart(completed, (f"{complaint}: only its integer values were kept",))
    return CheckedStart(completed)


def _complete(
    form: MatrixForm, start: FloatArray, options: SolveOptions, watch: WatchedRun
) -> FloatArray | None:
    """Best point found with the integer columns fixed at the start's values, where these are allowed."""
    nearest = np.round(start)
    fixed = usable_integers(form, start)
    if not fixed.any():
        return None
    rest = replace(
        form,
        col_lower=np.where(fixed, nearest, form.col_lower),
        col_upper=np.where(fixed, nearest, form.col_upper),
        integer=form.integer & ~fixed,
    )
    session = HighsSession(watch, report=False)
    session.set_options(replace(options, log=None))
    session.set_option("mip_max_nodes", COMPLETION_NODES)
    session.load(rest)
    session.run(None if options.time_limit is None else COMPLETION_SHARE * options.time_limit)
    if session.point is None:
        return None
    x = with_exact_integers(form, np.where(fixed, nearest, session.point))
    return x if violations(form, x).max <= FEASIBILITY_TOLERANCE else None
