"""``mipforest solve``: what was asked for, and doing it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from mipforest.cli import options as o
from mipforest.cli.errors import complaint
from mipforest.cli.inputs import (
    build,
    check_depth,
    formulation_of,
    scaling_of,
    solver_options_of,
    source_of,
    start_of,
)
from mipforest.cli.interrupts import interruptible
from mipforest.cli.outcome import Outcome, run_folder, write_outcome
from mipforest.cli.output import print_json
from mipforest.cli.progress import Progress
from mipforest.formatting import duration

if TYPE_CHECKING:
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.problem import Problem
    from mipforest.problem.result import Result
    from mipforest.runs import DataSource, LoadedData
    from mipforest.solvers.base import Progress as OnProgress
    from mipforest.solvers.base import Solver
    from mipforest.solvers.solution import Event
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
        from mipforest.settings import SolveSettings
        from mipforest.solvers.registry import get_solver

        SolveSettings(bridges=tuple(limits.bridges))
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


def solve(
    model: o.ModelName,
    depth: o.Depth,
    data: o.DataName,
    target: o.Target = None,
    param: o.Parameters = None,
    variant: o.Variant = None,
    ensemble: o.Ensemble = None,
    positive: o.Positive = None,
    task: o.TaskOption = None,
    missing: o.MissingOption = o.Missing.error,
    scaling: o.ScalingOption = None,
    test_size: o.TestSize = None,
    test: o.TestFile = None,
    solver: o.SolverName = "highs",
    start: o.Start = "default",
    time_limit: Annotated[
        float,
        Option(
            min=0,
            metavar="SECONDS",
            help="Wall time of the solver; inf for no limit.",
            rich_help_panel="Solve",
        ),
    ] = 60.0,
    gap: Annotated[
        float,
        Option(min=0, metavar="SHARE", help="Relative gap that counts as optimal.", rich_help_panel="Solve"),
    ] = 1e-4,
    threads: Annotated[
        int | None,
        Option(min=1, metavar="N", help="Threads; by default the solver decides.", rich_help_panel="Solve"),
    ] = None,
    seed: o.Seed = 0,
    solver_option: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE",
            help="Option under the solver's own name. Repeatable.",
            rich_help_panel="Solve",
        ),
    ] = None,
    bridge: Annotated[
        list[str] | None,
        Option(
            metavar="PART",
            help="Rewrite this part of the model although the solver takes it: quadratic or indicator. "
            "Repeatable.",
            rich_help_panel="Solve",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Run folder for the result, tree, picture and solver log; without it, nothing is written.",
            rich_help_panel="Output",
        ),
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Find an optimal tree, and check it.

    Shows the incumbent, bound and gap while it solves. Ctrl-C stops and keeps the best tree so far.

    Exit code: 0 a feasible, verified tree; 2 wrong usage or input; 3 infeasible, no solution within the
    limits, or an answer that is not verified; 4 solver or licence not available.

    Example: mipforest solve --model margot --depth 2 --data breast_cancer --param C=1 --out run
    """
    with Progress(quiet=quiet) as progress, interruptible(progress.stopping) as interruption:
        source = source_of(
            data,
            target=target,
            positive=positive,
            task=task,
            scaling=scaling_of(scaling, model),
            missing=missing,
            seed=seed,
            test_size=test_size,
            test=test,
        )
        limits = Limits(
            time_limit=None if math.isinf(time_limit) else time_limit,
            gap=gap,
            threads=threads,
            seed=seed,
            solver_options=solver_options_of(solver_option),
            bridges=tuple(bridge or ()),
        )
        job = Job.of(
            model,
            param,
            variant=variant,
            ensemble=ensemble,
            depth=depth,
            source=source,
            solver=solver,
            start=start,
            limits=limits,
        )
        with run_folder(out, replace=force) as folder:
            loaded, problem = job.build(progress)

            def on_progress(event: Event) -> bool:
                progress.show(event)
                return interruption.asked

            interruption.solving()
            log = None if folder is None else folder.staging / "solver.log"
            result = job.solve(problem, progress, on_progress, log)
            interruption.writing()
            progress.phase("writing the results")
            outcome = Outcome.of(job, loaded, result)
            failure = write_outcome(outcome, folder)
    if as_json:
        told = {} if failure is None else complaint(failure).to_dict()
        print_json(outcome.as_json(folder if failure is None else None) | told)
    elif not quiet:
        outcome.tell(out, failed=failure is not None)
    if failure is not None and not as_json:
        raise failure
    raise Exit(outcome.exit_code if failure is None else complaint(failure).exit_code)
