"""``mipforest solve``: what was asked for, and doing it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mipforest.cli import options as o
from mipforest.cli.constraint_options import ConstraintOptions
from mipforest.cli.early import refuse_unknown
from mipforest.cli.errors import CommandError
from mipforest.cli.outcome import JobResult, end, run_folder, write_outcome
from mipforest.cli.output import print_note
from mipforest.cli.progress import Progress, stoppable
from mipforest.errors import some_of
from mipforest.formatting import duration
from mipforest.interruption import Interruption, interruptible
from mipforest.settings import SolveSettings

if TYPE_CHECKING:
    from mipforest.data import Dataset, Encoding
    from mipforest.problem.constraints import Constraint
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.problem import Problem
    from mipforest.problem.result import Result
    from mipforest.problem.tree_search import Auto, TreeSearch
    from mipforest.runs import DataSource, LoadedData, Run
    from mipforest.solvers.base import Solver
    from mipforest.time_budget import TimeBudget


#: Longest reason of ``auto`` that is told without being asked for.
LONGEST_REASON = 60


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
    verbose
        Whether the reason of ``auto`` is told in full.
    constraints
        What the tree has to satisfy.
    """

    formulation: Formulation
    depth: int
    source: DataSource
    solver: Solver | TreeSearch | Auto
    settings: SolveSettings
    start_name: str
    verbose: bool = False
    constraints: tuple[Constraint, ...] = ()

    @classmethod
    def of(
        cls,
        model: str,
        model_options: o.ModelOptions,
        source: DataSource,
        solver: str,
        settings: SolveSettings,
        start: str = "default",
        verbose: bool = False,
        constraints: tuple[Constraint, ...] = (),
    ) -> Job:
        """Read what the command line says; everything that needs no data is refused here.

        Raises
        ------
        UnknownFormulation, ParameterError, SolverUnavailable, NotAllowed, TreeFileError, CommandError
            If a name is unknown, a value is not allowed, or a solver is not installed.
        """
        from mipforest.problem.tree_search import solver_or_search

        formulation = model_options.formulation(model)
        return cls(
            formulation=formulation,
            depth=model_options.depth_for(formulation),
            source=source,
            solver=solver_or_search(solver),
            settings=replace(settings, start=o.start_of(start, formulation)),
            start_name=start,
            verbose=verbose,
            constraints=constraints,
        )

    @classmethod
    def of_run(cls, run: Run, solver: str, settings: SolveSettings, data: str | None = None) -> Job:
        """Return the job that a run was, or that of other data with its model, constraints and columns.

        Raises
        ------
        RunError
            If the run does not say what it solved, its parameters may name a file, or its data are on the network.
        UnknownFormulation, ParameterError, SolverUnavailable, NotAllowed, DataError
            As for :meth:`of`.
        """
        from mipforest.problem.constraints import constraint_of
        from mipforest.problem.parameters import plain_parameters_of
        from mipforest.problem.registry import get_formulation, make_formulation
        from mipforest.problem.tree_search import solver_or_search
        from mipforest.runs import DataSource, RunError
        from mipforest.runs.folder import RESULT
        from mipforest.runs.run import network_data

        if data is None and (named := network_data(run)):
            raise RunError(f"{run.path}: {named} would be fetched from the network; give the data by --data")
        try:
            model, depth = str(run.result["model"]), int(run.result["depth"])
            parameters, variant = dict(run.result["parameters"]), str(run.result["variant"])
            source = DataSource.from_dict(run.result["data_source"])
            stated = run.result["options"].get("constraints", [])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(
                f"{run.path}/{RESULT} does not say what was solved ({error}); solve again"
            ) from error
        known = plain_parameters_of(get_formulation(model))
        for name, value in parameters.items():
            if name not in known or known[name].may_name_file(value):
                raise RunError(
                    f"{run.path}: its parameter {name} is {value!r:.60}, which may name a file or an object and is not "
                    "taken from a run; give model, depth and parameters themselves"
                )
        if data is not None:
            source = replace(source, data=data, test=None, test_size=None)
        return cls(
            formulation=make_formulation(model, parameters, variant),
            depth=depth,
            source=source,
            solver=solver_or_search(solver),
            settings=settings,
            start_name="default",
            constraints=tuple(map(constraint_of, stated)),
        )

    def load(self, budget: TimeBudget) -> LoadedData:
        """Load the data."""
        with budget.phase("load", f"loading {self.source.data}"):
            return self.source.load()

    def with_columns_of(self, encoding: Encoding, loaded: LoadedData, budget: TimeBudget) -> LoadedData:
        """Return the data with the columns of a run alone; others are left out, which is told.

        Raises
        ------
        CommandError
            If one is absent.
        """
        here, known = ([column.name for column in one.columns] for one in (loaded.train.encoding, encoding))
        if absent := [name for name in known if name not in here]:
            raise CommandError(
                f"{self.source.data} has no column {absent[0]!r}, which the run has; give data with "
                f"{some_of(known)}"
            )
        others = tuple(name for name in here if name not in known)
        if not others:
            return loaded
        print_note(f"left out, as the run does not have them: {some_of(others)}")
        fewer = replace(self, source=replace(self.source, drop=(*self.source.drop, *others)))
        return fewer.load(budget)

    def build(self, data: Dataset, budget: TimeBudget, progress: Progress) -> Problem:
        """Build the model."""
        progress.phase(f"building {self.formulation.name} for {data.n} samples")
        from mipforest.problem.tree_search import searching

        searches = searching(self.solver, self.settings)
        problem = o.build(self.formulation, data, self.depth, budget, searches)
        constraints = self.source.with_groups(self.constraints, data)
        if constraints and searches is not None:
            problem.constrain(*constraints)
            if searches.takes(problem):
                return problem
            # No search keeps them: they are rows of the whole model.
            problem = o.build(self.formulation, data, self.depth, budget, None)
        problem.constrain(*constraints)
        return problem

    def solve(
        self, problem: Problem, progress: Progress, interruption: Interruption, log: Path | None
    ) -> Result:
        """Solve the model and check the answer."""
        progress.phase(self._announcement(problem), plain=True)
        from mipforest.problem.prices import SHARE, UNLIMITED, priced

        limit, shown = self.settings.time_limit, stoppable(progress, interruption)
        # A part of the time is for what the constraints cost.
        prices = 0.0 if not self.constraints else UNLIMITED if limit is None else SHARE * limit
        left = problem.budget.at_most() if limit and prices else None
        settings = replace(self.settings, log=log)
        if left is not None:
            settings = replace(settings, time_limit=max(left - prices, left / 2))
        with progress.solving(problem.budget.remaining if limit != 0 else 0.0):
            result = problem.solve(self.solver, settings=settings, on_progress=shown)
        if not prices:
            return result
        return priced(problem, result, prices, on_progress=lambda _: interruption.asked, says=progress.phase)

    def _announcement(self, problem: Problem) -> str:
        if problem.unfinished and (problem.entries_given_up or problem.budget.expired):
            return f"{problem.data.name}: the time ran out while the model was built"
        limit = self.settings.time_limit
        within = "without a time limit" if limit is None else f"for at most {duration(limit)}"
        depth = f", depth {self.depth}" if self.formulation.gives.is_tree else ""
        size = ", ".join(f"{count} {name}" for name, count in problem.size().items())
        if problem.unfinished:
            size = "no rows, as a tree search reads none"
        return (
            f"solving {self.formulation.name}{depth}, {problem.data.name}: "
            f"{size}, with {self._chosen(problem)} {within}"
        )

    def _chosen(self, problem: Problem) -> str:
        """Name who solves; of ``auto`` also why."""
        from mipforest.problem.tree_search import Auto
        from mipforest.solvers.base import Solver

        if not isinstance(self.solver, Auto):
            return self.solver.name
        chosen, why = self.solver.choose(problem, self.settings)
        if self.constraints and isinstance(chosen, Solver):
            why = f"the constraints {', '.join(dict.fromkeys(own.kind for own in self.constraints))} are rows for it"
        elif len(why) > LONGEST_REASON and not self.verbose:
            why = "the exact tree searches do not take this problem; --verbose says why"
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
            **({"constraints": [own.to_dict() for own in self.constraints]} if self.constraints else {}),
            **{
                name: value
                for name in ("dask", "keep_trees", "within")
                if (value := getattr(self.settings, name)) is not None
            },
        }


@o.grouped
def solve(
    *,
    model: o.ModelName,
    model_options: o.ModelOptions,
    data: o.DataName,
    data_options: o.DataOptions,
    constraint_options: ConstraintOptions,
    solver_options: o.SolverOptions,
    start: o.Start = "default",
    isolate: Annotated[
        bool | None,
        Option(
            "--isolate/--no-isolate",
            help="Run a matrix solver in a process of its own: if it aborts, the start tree is left. By default scip "
            "has one for quadratic objectives.",
            rich_help_panel=o.SOLVE,
        ),
    ] = None,
    dask: Annotated[
        str | None,
        Option(
            metavar="ADDRESS",
            help="Dask scheduler on whose workers exact-search, routing or local-search runs, as in "
            "tcp://127.0.0.1:8786. --threads are those of each of its tasks then, one unless given.",
            rich_help_panel=o.SOLVE,
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        Option(
            metavar="FILE.gz",
            help="Write a proof of the result, which 'mipforest certify' checks; --solver routing and exact-search "
            "write one.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    keep_trees: Annotated[
        int | None,
        Option(
            metavar="K",
            help="List the K best trees, too, in trees.json: of univariate models with leaves that predict a class, a "
            "constant or a decision.",
            rich_help_panel=o.SOLVE,
        ),
    ] = None,
    within: Annotated[
        str | None,
        Option(
            metavar="SHARE",
            help="List all trees whose objective is within a share of the optimum, as in 2% or 0.02; with "
            "--keep-trees the best of these.",
            rich_help_panel=o.SOLVE,
        ),
    ] = None,
    run_options: o.RunOptions,
    verbose: Annotated[
        bool,
        Option("--verbose", help="Say in full why 'auto' chooses a solver.", rich_help_panel=o.OUTPUT),
    ] = False,
    help_all: o.HelpAll = False,  # noqa: ARG001 - typer calls it
) -> None:
    """Find an optimal tree, and check it.

    Shows the incumbent, bound and gap while it solves. Ctrl-C stops and keeps the best tree so far.

    Exit code: 0 a feasible, verified tree; 2 wrong usage or input; 3 infeasible, no solution within the
    limits, or an answer that is not verified; 4 solver or licence not available.

    Example: mipforest solve --model margot --depth 2 --data breast_cancer --param C=1 --out run
    """
    refuse_unknown(model, data)
    from mipforest.problem.tree_search import check_settings

    with Progress(quiet=run_options.quiet) as progress, interruptible(progress.stopping) as interruption:
        source = data_options.source(data, model=model, seed=solver_options.seed)
        settings = replace(
            solver_options.settings(),
            isolate=isolate,
            certificate=certificate,
            dask=dask,
            keep_trees=keep_trees,
            within=None if within is None else o.share("--within", within),
        )
        constraints = constraint_options.read()
        job = Job.of(
            model, model_options, source, solver_options.solver, settings, start, verbose, constraints
        )
        check_settings(job.solver, job.settings)
        with run_folder(run_options) as folder:
            budget = job.settings.budget(progress.phase)
            loaded = job.load(budget)
            interruption.solving(budget)
            problem = job.build(loaded.train, budget, progress)
            log = None if folder is None else folder.staging / "solver.log"
            result = job.solve(problem, progress, interruption, log)
            interruption.writing()
            progress.phase("writing the results")
            outcome = JobResult.of(job, loaded, result)
            failure = write_outcome(outcome, folder)
    end(outcome, folder, failure, run_options)
