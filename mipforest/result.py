"""The checked outcome of solving a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mipforest.data import Dataset
from mipforest.solvers.solution import Solution
from mipforest.trees import ClassMeasures, RegressionMeasures, Tree, class_measures, regression_measures

if TYPE_CHECKING:
    from mipforest.problem import Problem


@dataclass(frozen=True, eq=False)
class Result:
    """Outcome of :meth:`Problem.solve <mipforest.problem.Problem.solve>`.

    Attributes
    ----------
    problem
        What was solved.
    solution
        What the solver gave, by variable block.
    tree
        The tree to predict with, taking samples in original units; ``None`` if no solution was found.
    solved_tree
        The tree of the solver's solution, whose objective is checked. It differs from ``tree`` where the
        formulation refines it.
    evaluated_objective
        The tree's objective from the definition, without the model (NaN without a tree).
    max_violation
        Largest violation of the model by the solution (NaN without one).
    doubts
        Why the answer is not verified; empty when it is.
    """

    problem: Problem
    solution: Solution
    tree: Tree | None
    solved_tree: Tree | None
    evaluated_objective: float
    max_violation: float
    doubts: tuple[str, ...]

    @property
    def verified(self) -> bool:
        """Whether the tree's objective by the definition equals the solver's, at a feasible point."""
        return self.tree is not None and not self.doubts

    @property
    def objective(self) -> float:
        """The solver's objective."""
        return self.solution.objective

    @property
    def bound(self) -> float:
        """Proven bound on the optimal value."""
        return self.solution.bound

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        return self.solution.gap

    @property
    def status(self) -> str:
        """Why the solver stopped."""
        return str(self.solution.status)

    @property
    def features_used(self) -> tuple[str, ...]:
        """Names of the features with a non-zero weight somewhere in the tree, linear leaves included."""
        if self.tree is None:
            return ()
        return tuple(self.tree.feature_names[j] for j in self.tree.features_used().overall)

    def measures(self, data: Dataset) -> dict[str, float]:
        """Measure how well the tree predicts a data set; all measures are NaN without a tree.

        Returns
        -------
        dict
            Of a classification, ``accuracy`` and ``balanced_accuracy``, shares between 0 and 1. The latter is
            the mean, over the classes that occur in the data, of the share of a class's samples that are
            predicted right.

            Of a regression, ``r2``, ``mse`` and ``mae``. Targets of a data set are in original units, and so
            are predictions, however a model scales targets inside: ``mae`` is in units of the target, ``mse``
            in their square. Where the targets are constant, ``r2`` is 1 if all predictions are exact, else 0
            (see :func:`~mipforest.trees.regression_measures`).
        """
        if data.task == "regression":
            return self._regression_measures(data)
        if self.tree is None:
            return dict.fromkeys(ClassMeasures._fields, np.nan)
        return class_measures(data.y, self.tree.predict(data.X_raw))._asdict()

    def _all_measures(self, data: Dataset) -> dict[str, Any]:
        """Measures of any model, and those of this formulation."""
        if self.tree is None:
            return self.measures(data)
        own = self.problem.formulation.measures(self.tree, data, self.problem.prepared)
        return {**self.measures(data), **own}

    def _regression_measures(self, data: Dataset) -> dict[str, float]:
        if self.tree is None:
            return dict.fromkeys(RegressionMeasures._fields, np.nan)
        predicted = np.asarray(self.tree.predict(data.X_raw), dtype=np.float64)
        return regression_measures(np.asarray(data.y, dtype=np.float64), predicted)._asdict()

    def to_dict(self, test: Dataset | None = None) -> dict[str, Any]:
        """Everything worth keeping, ready for JSON (NaN and infinities become ``None``).

        Parameters
        ----------
        test
            Data not seen in training; adds ``test_accuracy`` and ``test_balanced_accuracy``, or ``test_r2``,
            ``test_mse`` and ``test_mae`` of a regression.
        """
        problem, solution = self.problem, self.solution
        formulation, data = problem.formulation, problem.data
        found: dict[str, Any] = {
            "model": formulation.name,
            "variant": formulation.variant,
            "depth": problem.topology.depth,
            "parameters": formulation.parameters(),
            "data": {"name": data.name, "n": data.n, "p": data.p, "sha256": data.sha256},
            "solver": solution.solver,
            "solver_version": solution.solver_version,
            "bridges": list(solution.bridges),
            "status": self.status,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "seconds": solution.seconds,
            "build_seconds": problem.build_seconds,
            "prepare_seconds": problem.prepare_seconds,
            "nodes": solution.nodes,
            "verified": self.verified,
            "doubts": list(self.doubts),
            "warnings": list(solution.warnings),
            "evaluated_objective": self.evaluated_objective,
            "max_violation": self.max_violation,
            "warm_start_objective": solution.start_objective,
            "features_used": list(self.features_used),
        }
        found |= {f"train_{name}": value for name, value in self._all_measures(data).items()}
        if test is not None:
            found |= {f"test_{name}": value for name, value in self._all_measures(test).items()}
        if self.solved_tree is not None and self.tree is not None:
            found |= formulation.report(
                self.solved_tree.unscaled(), self.tree.unscaled(), data, problem.prepared
            )
        found["events"] = [
            {
                "seconds": event.seconds,
                "objective": event.objective,
                "bound": event.bound,
                "nodes": event.nodes,
            }
            for event in solution.events
        ]
        finite: dict[str, Any] = _finite(found)
        return finite


def _finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON cannot hold, by ``None``."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
