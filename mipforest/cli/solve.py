"""``mipforest solve``: what was asked for, and doing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mipforest.cli import options as o
from mipforest.cli.inputs import (
    build,
    depth_of,
    formulation_of,
    scaling_of,
    settings_of,
    source_of,
    start_of,
)
from mipforest.cli.outcome import Outcome, end, run_folder, write_outcome
from mipforest.cli.progress import Progress, interruptible
from mipforest.formatting import duration
from mipforest.settings import DEFAULT_GAP, SolveSettings

if TYPE_CHECKING:
    from mipforest.data import Dataset
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.problem import Problem
    from mipforest.problem.result import Result
    from mipforest.problem.tree_search import Auto, TreeSearch
    from mipforest.runs import DataSource, LoadedData
    from mipforest.solvers.base import Solver
    from mipforest.solvers.solution import Event
    from mipforest.solvers.solution import Progress as OnProgress
    from mipforest.time_budget import TimeBudget


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """One solve.

    Attributes
    ----------
    formulation, depth, source
        What to build, for which data.
    solver, settings
        Who solves it, and how; with the start.
    start_name
        The start as it was written.
    """

    formulation: Formulation
    depth: int
    source: DataSource
    solver: Solver | TreeSearch | Auto
    settings: SolveSettings
    start_name: str

    @classmethod
    def of(
        cls,
        model: str,
        parameters: Sequence[str] | None,
        *,
        variant: str | None,
        ensemble: str | None = None,
        depth: int | None,
        source: DataSource,
        solver: str,
        settings: SolveSettings,
        start: str = "default",
    ) -> Job:
        """Read what the command line says; everything that needs no data is refused here.

        Raises
        ------
        UnknownFormulation, ParameterError, SolverUnavailable, NotAllowed, TreeFileError, CommandError
            If a name is unknown, a value is not allowed, or a solver is not installed.
        """
        from mipforest.problem.tree_search import solver_or_search

        formulation = formulation_of(model, parameters, variant, ensemble)
        return cls(
            formulation=formulation,
            depth=depth_of(depth, formulation),
            source=source,
            solver=solver_or_search(solver),
            settings=replace(settings, start=start_of(start, formulation)),
            start_name=start,
        )

    def load(self, budget: TimeBudget) -> LoadedData:
        """Load the data."""
        with budget.phase("load", f"loading {self.source.data}"):
            return self.source.load()

    def build(self, data: Dataset, budget: TimeBudget, progress: Progress) -> Problem:
        """Build the model."""
        progress.phase(f"building {self.formulation.name} for {data.n} samples")
        from mipforest.problem.tree_search import searching

        return build(self.formulation, data, self.depth, budget, searching(self.solver, self.settings))

    def solve(
        self, problem: Problem, progress: Progress, on_progress: OnProgress, log: Path | None
    ) -> Result:
        """Solve the model and check the answer."""
        progress.phase(self._announcement(problem), plain=True)
        settings = replace(self.settings, log=log)
        with progress.solving(problem.budget.remaining if settings.time_limit != 0 else 0.0):
            return problem.solve(self.solver, settings=settings, on_progress=on_progress)

    def _announcement(self, problem: Problem) -> str:
        if problem.unfinished:
            return f"{problem.data.name}: the time ran out while the model was built"
        limit = self.settings.time_limit
        within = "without a time limit" if limit is None else f"for at most {duration(limit)}"
        depth = f", depth {self.depth}" if self.formulation.gives.is_tree else ""
        size = ", ".join(f"{count} {name}" for name, count in problem.size().items())
        return (
            f"solving {self.formulation.name}{depth}, {problem.data.name}: "
            f"{size}, with {self._chosen(problem)} {within}"
        )

    def _chosen(self, problem: Problem) -> str:
        """Name who solves; of ``auto`` also why."""
        from mipforest.problem.tree_search import Auto

        if not isinstance(self.solver, Auto):
            return self.solver.name
        chosen, why = self.solver.choose(problem, self.settings)
        return f"{chosen.name} (auto: {why})"

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON takes them."""
        return {
            "start": self.start_name,
            "time_limit": self.settings.time_limit,
            "gap": self.settings.gap,
            "threads": self.settings.threads,
            "seed": self.settings.seed,
            "solver_options": dict(self.settings.solver_options),
            "bridges": list(self.settings.bridges),
        }


def solve(
    *,
    model: o.ModelName,
    depth: o.Depth = None,
    data: o.DataName,
    target: o.Target = None,
    param: o.Parameters = None,
    variant: o.Variant = None,
    ensemble: o.Ensemble = None,
    positive: o.Positive = None,
    task: o.TaskOption = None,
    weight: o.Weight = None,
    treatment: o.Treatment = None,
    outcomes: o.OutcomeColumn = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    missing: o.MissingOption = o.Missing.error,
    scaling: o.ScalingOption = None,
    test_size: o.TestSize = None,
    test: o.TestFile = None,
    solver: o.SolverName = "auto",
    start: o.Start = "default",
    time_limit: Annotated[
        float,
        Option(
            min=0,
            metavar="SECONDS",
            help="Wall time of loading, preparing and solving together; 0 for the start alone, inf for no limit.",
            rich_help_panel="Solve",
        ),
    ] = 60.0,
    gap: o.Gap = DEFAULT_GAP,
    threads: Annotated[
        int | None,
        Option(min=1, metavar="N", help="Threads; by default the solver decides.", rich_help_panel="Solve"),
    ] = None,
    seed: o.Seed = 0,
    solver_option: o.SolverOptions = None,
    bridge: o.Bridges = None,
    isolate: o.Isolate = None,
    certificate: Annotated[
        Path | None,
        Option(
            metavar="FILE.gz",
            help="Write a proof of the result, which 'mipforest certify' checks; --solver routing writes one.",
            show_default=False,
            rich_help_panel="Output",
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
    from mipforest.problem.tree_search import check_settings

    with Progress(quiet=quiet) as progress, interruptible(progress.stopping) as interruption:
        source = source_of(
            data,
            target=target,
            positive=positive,
            task=task,
            scaling=scaling_of(scaling, model),
            missing=missing,
            drop=drop,
            keep=keep,
            weight=weight,
            treatment=treatment,
            outcome=outcomes,
            seed=seed,
            test_size=test_size,
            test=test,
        )
        job = Job.of(
            model,
            param,
            variant=variant,
            ensemble=ensemble,
            depth=depth,
            source=source,
            solver=solver,
            settings=replace(
                settings_of(time_limit, gap, threads, seed, solver_option, bridge, isolate),
                certificate=certificate,
            ),
            start=start,
        )
        check_settings(job.solver, job.settings)
        with run_folder(out, replace=force) as folder:
            budget = job.settings.budget(progress.phase)
            loaded = job.load(budget)
            interruption.solving(budget)
            problem = job.build(loaded.train, budget, progress)

            def on_progress(event: Event) -> bool:
                progress.show(event)
                return interruption.asked

            log = None if folder is None else folder.staging / "solver.log"
            result = job.solve(problem, progress, on_progress, log)
            interruption.writing()
            progress.phase("writing the results")
            outcome = Outcome.of(job, loaded, result)
            failure = write_outcome(outcome, folder)
    end(outcome, folder, failure, out=out, as_json=as_json, quiet=quiet)
