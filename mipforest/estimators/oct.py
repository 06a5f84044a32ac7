"""OCT and OCT-H behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mipforest.estimators.classifier import TreeClassifier
from mipforest.problem.problem import TIME_LIMIT, Problem
from mipforest.solvers.base import Progress, Solver
from mipforest.trees import Tree


class OCTClassifier(TreeClassifier):
    """Optimal classification tree with univariate splits, any number of classes (Dunn 2018, chapter 2).

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    alpha
        Cost of a split, relative to the error of the best constant prediction; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    variant, constraints, solver, start, time_limit, gap
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    threads, random_state, solver_options, bridges, verbose, on_progress
        As for :class:`~mipforest.estimators.base.TreeEstimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> flowers = OCTClassifier(depth=1).fit(X, y)
    >>> flowers.status_, flowers.n_features_used_
    ('optimal', 1)
    """

    def __init__(
        self,
        depth: int = 2,
        *,
        alpha: float = 0.0,
        N_min: int = 1,
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
        self.alpha = alpha
        self.N_min = N_min

    def _formulation_name(self) -> str:
        return "oct"


class OCTHClassifier(TreeClassifier):
    """Optimal classification tree with hyperplane splits, any number of classes (Dunn 2018, chapter 3).

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    alpha
        Cost of a feature in a split, relative to the error of the best constant prediction; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    mu
        Margin that stands for the strict inequality to the left; above 0, below 1.
    variant, constraints, solver, start, time_limit, gap
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    threads, random_state, solver_options, bridges, verbose, on_progress
        As for :class:`~mipforest.estimators.base.TreeEstimator`.
    """

    def __init__(
        self,
        depth: int = 2,
        *,
        alpha: float = 0.0,
        N_min: int = 1,
        mu: float = 0.005,
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
        self.alpha = alpha
        self.N_min = N_min
        self.mu = mu

    def _formulation_name(self) -> str:
        return "oct-h"
