"""OLCT behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mipforest.data.encoding import Scaling
from mipforest.estimators.classifier import BinaryTreeClassifier
from mipforest.problem.parameters import PerNode
from mipforest.problem.problem import TIME_LIMIT, Problem
from mipforest.solvers.base import Progress, Solver
from mipforest.trees import Tree


class OLCTClassifier(BinaryTreeClassifier):
    """Optimal logistic classification tree: a sparse logistic regression at every node, two classes.

    Source: Aldinucci, PhD thesis, section 3.2. :meth:`predict_proba` gives the probabilities of the model.

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.
    C
        Penalty of the log-loss, above 0: one value, one per level, or one per branch node.
    B
        Most features a node may use: one value (1 gives univariate splits), one per level, or one per branch
        node; ``None`` for no limit.
    epsilon
        Gap that stands for the strict inequality to the left; above 0, below 1.
    tangents
        Tangent points of the log-loss: ``V0`` to ``V3``, or the number of finite ones, chosen greedily.
    refinement
        Whether the last branching level is refitted with the log-loss itself after the solve.
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
        B: PerNode | None = None,
        epsilon: float = 1e-5,
        tangents: str = "V0",
        refinement: bool = True,
        scaling: Scaling = "standard",
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
        self.B = B
        self.epsilon = epsilon
        self.tangents = tangents
        self.refinement = refinement
        self.scaling = scaling

    def _formulation_name(self) -> str:
        return "olct" if self.B is None else "budgeted-olct"
