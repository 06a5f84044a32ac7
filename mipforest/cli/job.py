"""What a solve was asked for, and doing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipforest.cli.inputs import build, check_depth, formulation_of, start_of
from mipforest.readable import duration

if TYPE_CHECKING:
    from mipforest.cli.progress import Progress
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.problem import Problem
    from mipforest.problem.result import Result
    from mipforest.runs import DataSource, LoadedData
    from mipforest.solvers.base import Progress as OnProgress
    from mipforest.solvers.base import Solver
    from mipforest.trees import Tree


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Options of the solver; as for :func:`mipforest.solving.solve`."""

    time_limit: float | None
    gap: float
    threads: int | None
    seed: int
    solver_options: Mapping[str, Any]
    bridges: Sequence[str] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """One solve.

    Attributes
    ----------
    formulation, depth, source
        What to build, for which data.
    solver, limits
        Who solves it, and how long.
    start_name, start
        The start as it was written, and what it stands for.
    """

    formulation: Formulation
    depth: int
    source: DataSource
    solver: Solver
    limits: Limits
    start_name: str
    start: str | Tree | None

    @classmethod
    def of(
        cls,
        model: str,
        parameters: Sequence[str] | None,
        *,
        variant: str | None,
        ensemble: str | None = None,
        depth: int,
        source: DataSource,
        solver: str,
        start: str,
        limits: Limits,
    ) -> Job:
        """Read what the command line says; everything that needs no data is refused here.

        Raises
        ------
        UnknownFormulation, ParameterError, SolverUnavailable, NotAllowed, TreeFileError, CommandError
            If a name is unknown, a value is not allowed, or a solver is not installed.
        """
        from mipforest.solvers.registry import get_solver
        from mipforest.solving import features_rewritten_by

        features_rewritten_by(limits.bridges)
        formulation = formulation_of(model, parameters, variant, ensemble)
        check_depth(depth)
        return cls(
            formulation=formulation,
            depth=depth,
            source=source,
            solver=get_solver(solver),
            limits=limits,
            start_name=start,
            start=start_of(start, formulation),
        )

    def build(self, progress: Progress) -> tuple[LoadedData, Problem]:
        """Load the data and build the model."""
        progress.phase(f"loading {self.source.data}")
        loaded = self.source.load()
        progress.phase(f"building {self.formulation.name} for {loaded.train.n} samples")
        return loaded, build(self.formulation, loaded.train, self.depth)

    def solve(
        self, problem: Problem, progress: Progress, on_progress: OnProgress, log: Path | None
    ) -> Result:
        """Solve the model and check the answer."""
        progress.phase(self._announcement(problem), plain=True)
        progress.solving(self.limits.time_limit)
        return problem.solve(
            self.solver,
            start=self.start,
            time_limit=self.limits.time_limit,
            gap=self.limits.gap,
            threads=self.limits.threads,
            seed=self.limits.seed,
            log=log,
            on_progress=on_progress,
            solver_options=self.limits.solver_options,
            bridges=self.limits.bridges,
        )

    def _announcement(self, problem: Problem) -> str:
        limit = self.limits.time_limit
        within = "without a time limit" if limit is None else f"for at most {duration(limit)}"
        form = problem.model.matrix()
        return (
            f"solving {self.formulation.name}, depth {self.depth}, {problem.data.name}: "
            f"{form.n_columns} columns, {form.n_rows} rows, with {self.solver.name} {within}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the options as JSON takes them."""
        return {
            "start": self.start_name,
            "time_limit": self.limits.time_limit,
            "gap": self.limits.gap,
            "threads": self.limits.threads,
            "seed": self.limits.seed,
            "solver_options": dict(self.limits.solver_options),
            "bridges": list(self.limits.bridges),
        }
