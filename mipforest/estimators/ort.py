"""ORT, ORT-H, ORT-L and ORT-LH behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.data.encoding import Scaling
from mipforest.estimators.base import TreeEstimator
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import TIME_LIMIT, Problem
from mipforest.solvers.base import Progress, Solver
from mipforest.trees import Tree

#: Formulation by splits and leaves.
_FORMULATIONS = {
    ("univariate", "constant"): "ort",
    ("hyperplane", "constant"): "ort-h",
    ("univariate", "linear"): "ort-l",
    ("hyperplane", "linear"): "ort-lh",
}


class ORTRegressor(RegressorMixin, TreeEstimator):  # type: ignore[misc]
    """Optimal regression tree (Dunn 2018, chapters 4 and 5).

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    splits
        ``"univariate"`` or ``"hyperplane"``.
    leaves
        ``"constant"`` or ``"linear"``: what a leaf predicts.
    alpha
        Cost of a split (of a feature in a hyperplane), relative to the loss of the best constant; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    loss
        ``"squared"`` or ``"absolute"``.
    mu
        Margin that stands for the strict inequality to the left, of hyperplane splits only; above 0, below 1.
    lam
        Weight of the coefficients of linear leaves, at least 0; a coefficient of 1 moves the prediction by the whole
        range of the target along the whole range of the feature.
    regulariser
        ``"l1"``: size of the coefficients of linear leaves; ``"l0"``: their number.
    M_r
        Greatest size of such a coefficient, with l0 or ``lam=0``; above 0.
    variant, constraints, solver, start, time_limit, gap
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    threads, random_state, solver_options, bridges, verbose, on_progress
        As for :class:`~mipforest.estimators.base.TreeEstimator`.
    """

    def __init__(
        self,
        depth: int = 2,
        *,
        splits: str = "univariate",
        leaves: str = "constant",
        alpha: float = 0.0,
        N_min: int = 1,
        loss: str = "squared",
        mu: float = 0.005,
        lam: float = 0.01,
        regulariser: str = "l1",
        M_r: float = 10.0,
        variant: str | None = None,
        constraints: Callable[[Problem], Any] | None = None,
        solver: str | Solver = "highs",
        start: str | Tree | None = "default",
        time_limit: float | None = TIME_LIMIT,
        gap: float = 1e-4,
        threads: int | None = None,
        random_state: Any = 0,
        solver_options: Mapping[str, Any] | None = None,
        bridges: str | Iterable[str] = (),
        verbose: int = 0,
        on_progress: Progress | None = None,
    ) -> None:
        super().__init__(
            depth,
            variant=variant,
            constraints=constraints,
            solver=solver,
            start=start,
            time_limit=time_limit,
            gap=gap,
            threads=threads,
            random_state=random_state,
            solver_options=solver_options,
            bridges=bridges,
            verbose=verbose,
            on_progress=on_progress,
        )
        self.splits = splits
        self.leaves = leaves
        self.alpha = alpha
        self.N_min = N_min
        self.loss = loss
        self.mu = mu
        self.lam = lam
        self.regulariser = regulariser
        self.M_r = M_r

    def _formulation_name(self) -> str:
        for name, value, known in (
            ("splits", self.splits, ("univariate", "hyperplane")),
            ("leaves", self.leaves, ("constant", "linear")),
        ):
            if value not in known:
                raise ParameterError(f"parameter {name} is {value!r}; choose from: {', '.join(known)}")
        return _FORMULATIONS[self.splits, self.leaves]

    def _read(self, X_raw: FloatArray, y: Any, features: tuple[str, ...], scaling: Scaling) -> Dataset:
        values = _values(self, y)
        check_consistent_length(X_raw, values)
        return Dataset.from_arrays(X_raw, values, features=features, task="regression", scaling=scaling)

    def predict(self, X: Any) -> FloatArray:
        """(n,) predicted values, in the target's units."""
        X_raw = self._features(X)
        return np.asarray(self.tree_.predict(X_raw), dtype=np.float64)


def _values(estimator: ORTRegressor, y: Any) -> FloatArray:
    """(n,) finite values."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give one value per row"
        )
    values: FloatArray = column_or_1d(y, dtype=np.float64, warn=True)
    assert_all_finite(values, input_name="y")
    return values
