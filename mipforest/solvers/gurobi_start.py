"""Starts for Gurobi: checked before they are passed, since Gurobi tells only its log that it took none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.errors import NotAllowed
from mipforest.solvers.integrality import FEASIBILITY_TOLERANCE, usable_integers, with_exact_integers


@dataclass(frozen=True, eq=False)
class CheckedStart:
    """What of a start is passed to Gurobi.

    Attributes
    ----------
    full
        (n,) feasible point, or ``None``.
    partial
        (n,) points with NaN for Gurobi to complete, tried in this order.
    if_taken, if_dropped
        What the user should know if Gurobi takes it, or not; empty if nothing.
    """

    full: FloatArray | None = None
    partial: tuple[FloatArray, ...] = ()
    if_taken: str = ""
    if_dropped: str = ""


def check_start(form: MatrixForm, start: FloatArray | None) -> CheckedStart:
    """Check a start.

    Of an infeasible one, the integer values are kept, where they are integral and within bounds. A partial
    one is passed as it is, and once more with its integers alone, in case its other values stand in the way.

    Parameters
    ----------
    form
        The model.
    start
        (n,) point, NaN where it is left open; or ``None``.

    Raises
    ------
    NotAllowed
        If the start has the wrong length.
    """
    if start is None:
        return CheckedStart()
    start = np.asarray(start, dtype=float)
    if start.shape != (form.n_columns,):
        raise NotAllowed(f"the start has shape {start.shape}, the model has {form.n_columns} columns")
    if not form.is_mip:
        unused = "the start was not used: Gurobi takes starts for models with integers only"
        return CheckedStart(if_dropped=unused)
    left_open = np.isnan(start)
    usable = usable_integers(form, start)
    integers = np.where(usable, np.round(start), np.nan)
    nothing_found = "and no completion of its integer values was found: start dropped"
    if left_open.any():
        complaint = f"the start leaves {int(left_open.sum())} of {len(start)} values open"
        partial = (start,) if np.array_equal(~left_open, usable) else (start, integers)
        return CheckedStart(
            partial=() if left_open.all() else partial, if_dropped=f"{complaint}, {nothing_found}"
        )
    found = violations(form, start)
    if found.max <= FEASIBILITY_TOLERANCE:
        refused = "Gurobi did not take the start, which is feasible within the tolerance; it is kept beside"
        return CheckedStart(full=with_exact_integers(form, start), if_dropped=refused)
    name, amount = found.worst(1)[0]
    complaint = f"the start is infeasible ({name} by {amount:.3g})"
    return CheckedStart(
        partial=(integers,) if usable.any() else (),
        if_taken=f"{complaint}: only its integer values were kept",
        if_dropped=f"{complaint}, {nothing_found}",
    )
