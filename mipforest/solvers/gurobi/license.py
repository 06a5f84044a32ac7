"""Gurobi's licence: what it allows, foreseen before a model is built; and its errors in our terms."""

from __future__ import annotations

from dataclasses import dataclass

import gurobipy
import numpy as np
from gurobipy import GRB, GurobiError

from mipforest.errors import LicenseLimit, NotAllowed, SolverError, SolverUnavailable
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.gurobi.model import n_one_sided

#: What the licence inside the gurobipy package allows: variables, rows of every kind together, and
#: variables of a model with a quadratic objective.
VARIABLES, ROWS, QUADRATIC_VARIABLES = 2000, 2000, 200

#: Gurobi's errors that mean that it is not ours to use now.
_NO_ACCESS = (
    GRB.Error.NO_LICENSE,
    GRB.Error.NETWORK,
    GRB.Error.JOB_REJECTED,
    GRB.Error.CLOUD,
    GRB.Error.CSWORKER,
)

_OWN_LICENSE = "set GRB_LICENSE_FILE to a licence of your own (free for academic use)"


@dataclass(frozen=True)
class Size:
    """What Gurobi's licence counts in a model.

    Attributes
    ----------
    variables
        Number of columns.
    rows
        Number of rows as Gurobi takes them: free ones not at all, two-sided ones twice.
    indicators
        Number of indicator rows, counted likewise.
    quadratic
        Number of columns in the quadratic part of the objective.
    """

    variables: int
    rows: int
    indicators: int
    quadratic: int

    @staticmethod
    def of(form: MatrixForm) -> Size:
        """Count."""
        return Size(
            variables=form.n_columns,
            rows=n_one_sided(form.row_lower, form.row_upper),
            indicators=n_one_sided(form.indicators.lower, form.indicators.upper),
            quadratic=0 if form.Q is None else int(np.count_nonzero(np.diff(form.Q.indptr))),
        )

    @property
    def needs_license(self) -> bool:
        """Whether the model is beyond the licence inside the gurobipy package."""
        variables = QUADRATIC_VARIABLES if self.quadratic else VARIABLES
        return self.variables > variables or self.rows + self.indicators > ROWS

    @property
    def needs_license_when_linear(self) -> bool:
        """Whether this still holds with tangents, at least one per quadratic column, for the quadratic."""
        linear = Size(self.variables + self.quadratic, self.rows + self.quadratic, self.indicators, 0)
        return linear.needs_license

    def too_large(self, license_limits: str) -> LicenseLimit:
        """Return the error for a licence that does not take the model."""
        parts = [f"{self.variables} variables", f"{self.rows + self.indicators} rows"]
        if self.indicators:
            parts[1] += f" ({self.indicators} of them indicator rows)"
        ways, options = [_OWN_LICENSE, 'use solver="highs"'], [_OWN_LICENSE, "use --solver highs"]
        if self.quadratic:
            parts.append("a quadratic objective")
            if not self.needs_license_when_linear:
                ways.append('use bridges="quadratic", a linear model that may fit')
                options.append("use --bridge quadratic, a linear model that may fit")
        model = f"{', '.join(parts[:-1])} and {parts[-1]}"
        return LicenseLimit(
            f"the model has {model}; {license_limits}:", hint=", or ".join(ways), option=", or ".join(options)
        )


def require_license(size: Size, environment: gurobipy.Env) -> None:
    """Refuse a model that is beyond the licence inside the gurobipy package, if that is the one in use.

    Raises
    ------
    LicenseLimit
        With the counts, the limits, and the ways out.
    """
    if size.needs_license and is_restricted(environment):
        raise size.too_large(
            f"Gurobi's licence here is the one inside the gurobipy package, which takes {VARIABLES} "
            f"variables and {ROWS} rows, or {QUADRATIC_VARIABLES} variables with a quadratic objective"
        )


def is_restricted(environment: gurobipy.Env) -> bool:
    """Return whether the licence in use limits the size of models.

    Gurobi tells it in no attribute, so a model without rows, one variable too large, is put to it: an
    answer of a millisecond.
    """
    with gurobipy.Model(env=environment) as probe:
        probe.addMVar(VARIABLES + 1)
        try:
            probe.optimize()
        except GurobiError as error:
            if error.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
                return True
            raise
    return False


def license_in_use() -> str:
    """Describe the licence in use.

    Raises
    ------
    SolverUnavailable
        If Gurobi gives none.
    """
    try:
        with gurobipy.Env(params={"LogToConsole": 0}) as environment:
            restricted = is_restricted(environment)
    except GurobiError as error:
        raise explained(error, Size(0, 0, 0, 0)) from error
    return f"bundled licence: {VARIABLES} variables and rows" if restricted else "own licence"


def explained(error: GurobiError, size: Size) -> SolverError:
    """Put an error of Gurobi in the terms of this package.

    Parameters
    ----------
    error
        The error.
    size
        Size of the model.
    """
    reason = f"{str(error).rstrip('.')} (Gurobi error {error.errno})"
    if error.errno in _NO_ACCESS:
        return SolverUnavailable(
            f"Gurobi gives no licence: {reason}",
            hint=f'check the licence file, {_OWN_LICENSE}, or use solver="highs"',
            option=f"check the licence file, {_OWN_LICENSE}, or use --solver highs",
        )
    if error.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
        return size.too_large(f"Gurobi's licence here takes less: {reason}")
    if error.errno == GRB.Error.Q_NOT_PSD:
        return NotAllowed(f"the quadratic objective is not convex: {reason}; leave out the option NonConvex")
    return SolverError(f"Gurobi failed: {reason}")
