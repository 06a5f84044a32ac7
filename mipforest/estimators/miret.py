"""MIRET behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mipforest.estimators.classifier import BinaryTreeClassifier
from mipforest.problem.parameters import PerNode
from mipforest.problem.problem import TIME_LIMIT, Problem
from mipforest.solvers.base import Progress, Solver
from mipforest.trees import Tree


class MIRETClassifier(BinaryTreeClassifier):
    """One multivariate tree that mimics a tree ensemble, two classes (Di Teodoro, Monaci, Palagi 2024).

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    ensemble
        What to mimic:

        - a text such as ``"random-forest:trees=100,seed=1"``: fitted on the training samples with trees of
          ``depth``. Its seed is its own, 100 if it names none, whatever ``random_state`` is;
        - a fitted ``RandomForestClassifier``, ``ExtraTreesClassifier``, ``GradientBoostingClassifier`` or
          ``XGBClassifier`` with trees of at most ``depth``: taken as it is. **scikit-learn's** ``clone``, hence
          grid search and cross-validation, **makes it unfitted**, unless it is wrapped in
          ``sklearn.frozen.FrozenEstimator`` (scikit-learn 1.6 and later);
        - one of these, not fitted: a clone is fitted on the training samples, with classes 0 and 1;
        - the path of a ``.joblib`` file (loading it runs code that it contains), or an
          :class:`~mipforest.ensembles.Ensemble`.

    alpha
        Cost of a feature in a split, divided by the feature's frequency at the level; at least 0.
    gamma
        Least frequency (0 to 1) of the features that splits of a level may use: one value, or one per level.
    gamma_percentile
        The same as a percentile (0 to 100) of the level's positive frequencies; the larger threshold counts.
    proximity
        Samples that share at least this share of the ensemble's leaves share a leaf of the tree; above 1, none do.
    epsilon
        Gap that stands for the strict inequality to the left; above 0, below 1.
    variant, constraints, solver, start, time_limit, gap
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    threads, random_state, solver_options, bridges, verbose, on_progress
        As for :class:`~mipforest.estimators.base.TreeEstimator`.
    """

    def __init__(
        self,
        depth: int = 2,
        *,
        ensemble: Any = "random-forest:trees=100",
        alpha: float = 0.2,
        gamma: PerNode = 0.0,
        gamma_percentile: PerNode = 0.0,
        proximity: float = 1.0,
        epsilon: float = 1e-3,
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
        self.ensemble = ensemble
        self.alpha = alpha
        self.gamma = gamma
        self.gamma_percentile = gamma_percentile
        self.proximity = proximity
        self.epsilon = epsilon

    def _formulation_name(self) -> str:
        return "miret"
