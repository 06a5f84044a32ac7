"""Starts for SCIP: checked before they are passed, because SCIP drops a bad one without a word."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyscipopt.scip import Model

from mipforest.arrays import FloatArray
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.errors import NotAllowed
from mipforest.solvers.integrality import FEASIBILITY_TOLERANCE, with_exact_integers


class ScipStart:
    """A start on its way into SCIP.

    A full and feasible start is passed as it is. Of any other the integer values are passed, as a partial
    solution that SCIP's heuristic ``completesol`` completes.

    Parameters
    ----------
    scip
        SCIP, with the model.
    form
        The model.
    variables
        SCIP's variable of each column.
    theta
        SCIP's variable of the quadratic part of the objective, if there is one.

    Attributes
    ----------
    objective
        Value of the start that SCIP took, NaN without one.
    warnings
        What the user should know.
    """

    def __init__(self, scip: Model, form: MatrixForm, variables: list[Any], theta: Any) -> None:
        self.objective = np.nan
        self.warnings: list[str] = []
        self._scip = scip
        self._form = form
        self._variables = variables
        self._theta = theta
        self._given: dict[int, float] = {}
        self._complaint = ""
        self._infeasible = False

    def give(self, start: FloatArray) -> None:
        """Pass a start to SCIP.

        Parameters
        ----------
        start
            (n,) point, NaN where it is left open.

        Raises
        ------
        NotAllowed
            If the start has the wrong length.
        """
        start = np.asarray(start, dtype=float)
        if start.shape != (self._form.n_columns,):
            raise NotAllowed(
                f"the start has shape {start.shape}, the model has {self._form.n_columns} columns"
            )
        left_open = int(np.isnan(start).sum())
        if left_open:
            self._complaint = f"the start leaves {left_open} of {len(start)} values open"
            self._give_integers(start)
            return
        found = violations(self._form, start)
        if found.max <= FEASIBILITY_TOLERANCE and self._give_point(with_exact_integers(self._form, start)):
            return
        name, amount = (found.worst(1) or [("SCIP's own tolerances", 0.0)])[0]
        self._complaint, self._infeasible = f"the start is infeasible ({name} by {amount:.3g})", True
        self._give_integers(start)

    @property
    def is_partial(self) -> bool:
        """Whether SCIP was given integer values to complete."""
        return bool(self._given)

    def is_completed_by(self, solution: Any) -> bool:
        """Whether a solution of SCIP has the integer values that were given."""
        return all(abs(solution[self._variables[j]] - value) < 0.5 for j, value in self._given.items())

    def conclude(self, completion: FloatArray | None) -> None:
        """Take note of the completion that SCIP found, or found not, and of its value."""
        if completion is None:
            self.warnings.append(f"{self._complaint}, and SCIP found no completion of its integer values")
            return
        self.objective = self._form.objective(completion)
        if self._infeasible:
            self.warnings.append(f"{self._complaint}: only its integer values were kept")

    def _give_point(self, x: FloatArray) -> bool:
        """Pass a feasible point; whether SCIP finds it feasible too."""
        solution = self._scip.createSol()
        for variable, value in zip(self._variables, x.tolist(), strict=True):
            self._scip.setSolVal(solution, variable, value)
        if self._theta is not None and self._form.Q is not None:
            self._scip.setSolVal(solution, self._theta, 0.5 * abs(float(x @ (self._form.Q @ x))))
        # addSol returns True for an infeasible point too.
        if not self._scip.checkSol(solution, printreason=False, original=True):
            self._scip.freeSol(solution)
            return False
        self._scip.addSol(solution)
        self.objective = self._form.objective(x)
        return True

    def _give_integers(self, start: FloatArray) -> None:
        """Pass the integer values that are integral and within their bounds."""
        nearest = np.round(start)
        good = self._form.integer & (np.abs(start - nearest) <= FEASIBILITY_TOLERANCE)
        good &= (self._form.col_lower <= nearest) & (nearest <= self._form.col_upper)
        self._given = {int(j): float(nearest[j]) for j in np.flatnonzero(good)}
        if not self._given:
            self.warnings.append(f"{self._complaint}, and gives no integer value to keep: start dropped")
            return
        solution = self._scip.createPartialSol()
        for j, value in self._given.items():
            self._scip.setSolVal(solution, self._variables[j], value)
        self._scip.addSol(solution)
