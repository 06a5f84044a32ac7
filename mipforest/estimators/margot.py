"""MARGOT behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mipforest.data.encoding import Scaling
from mipforest.estimators.classifier import BinaryTreeClassifier
from mipforest.problem.parameters import ParameterError, PerNode
from mipforest.problem.problem import TIME_LIMIT, Problem
from mipforest.solvers.base import Progress, Solver
from mipforest.trees import Tree

#: Formulation of each feature selection.
_FORMULATIONS = {None: "margot", "hard": "hfs-margot", "soft": "sfs-margot"}


class MargotClassifier(BinaryTreeClassifier):
    """Margin optimal classification tree: a support vector machine at every node, two classes.

    Source: D'Onofrio, Grani, Monaci, Palagi 2024, sections 3 and 4.

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    C
        Penalty of margin violations, above 0: one value, one per level, or one per branch node.
    feature_selection
        ``None``; ``"hard"``: at most ``B`` features per node (HFS-MARGOT); ``"soft"``: every feature beyond ``B``
        costs ``alpha`` (SFS-MARGOT).
    B
        Features per node, with a feature selection only: one value, one per level, or one per branch node;
        ``None`` for 2 (hard) or 1 (soft).
    alpha
        Cost of every feature beyond ``B``, with soft feature selection only; above 0.
    epsilon
        Gap that stands for the strict inequality to the left; above 0, below 1.
    scaling
        How features are scaled before the model is built: ``"minmax"`` (to [0, 1]), ``"standard"``, ``"none"``.
    variant, constraints, solver, start, time_limit, gap
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    threads, random_state, solver_options, bridges, verbose, on_progress
        As for :class:`~mipforest.estimators.base.TreeEstimator`.
    """

    def __init__(
        self,
        depth: int = 2,
        *,
        C: PerNode = 1.0,
        feature_selection: str | None = None,
        B: PerNode | None = None,
        alpha: float = 1.0,
        epsilon: float = 1e-3,
        scaling: Scaling = "minmax",
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
        self.C = C
        self.feature_selection = feature_selection
        self.B = B
        self.alpha = alpha
        self.epsilon = epsilon
        self.scaling = scaling

    def _formulation_name(self) -> str:
        if self.feature_selection not in tuple(_FORMULATIONS):
            raise ParameterError(
                f"parameter feature_selection is {self.feature_selection!r}; choose None, 'hard' or 'soft'"
            )
        return _FORMULATIONS[self.feature_selection]
