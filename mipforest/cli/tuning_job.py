"""What a tuning was asked for, and doing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mipforest.cli.inputs import build
from mipforest.cli.job import Job
from mipforest.cli.outcome import Outcome
from mipforest.cli.output import print_note
from mipforest.cli.tuning_scores import Scores, announcement, fit_told
from mipforest.runs.folder import LOG, TUNING
from mipforest.tuning import FitOptions, Plan, Records, choose, cross_validate, executor_for

if TYPE_CHECKING:
    from mipforest.cli.interrupts import Interruption
    from mipforest.cli.progress import Progress
    from mipforest.data import Dataset
    from mipforest.problem.result import Result
    from mipforest.runs import DataSource, LoadedData, RunFolder
    from mipforest.solvers.solution import Event
    from mipforest.tuning import Fit, Rule


@dataclass(frozen=True, eq=False, kw_only=True)
class TuningJob:
    """One tuning; the attributes but the first are those of :func:`mipforest.tuning.tune`.

    Attributes
    ----------
    job
        How the data are loaded and every model is solved; its formulation has the parameters outside the grid.
    """

    job: Job
    grid: Mapping[str, Sequence[Any]]
    per_level: Sequence[str]
    folds: int
    score: str | None
    rule: Rule
    max_fits: int
    jobs: int
    dask: str | None

    @property
    def source(self) -> DataSource:
        """Where the data come from."""
        return self.job.source

    def to_dict(self) -> dict[str, Any]:
        """Give the options as JSON takes them."""
        return self.job.to_dict() | {
            "grid": {name: list(values) for name, values in self.grid.items()},
            "grid_per_level": list(self.per_level),
            "folds": self.folds,
            "jobs": self.jobs,
            "dask": self.dask,
        }

    def plan(self, data: Dataset) -> Plan:
        """Check everything before the first fit; see :meth:`mipforest.tuning.Plan.of`."""
        limits = self.job.limits
        options = FitOptions(
            solver=self.job.solver,
            time_limit=limits.time_limit,
            gap=limits.gap,
            threads=limits.threads,
            seed=limits.seed,
            solver_options=limits.solver_options,
            bridges=tuple(limits.bridges),
        )
        return Plan.of(
            self.job.formulation,
            data,
            self.job.depth,
            grid=self.grid,
            per_level=self.per_level,
            folds=self.folds,
            score=self.score,
            rule=self.rule,
            max_fits=self.max_fits,
            options=options,
        )

    def cross_validate(
        self, plan: Plan, progress: Progress, interruption: Interruption, folder: RunFolder | None
    ) -> Scores:
        """Score all settings and choose one; Ctrl-C and errors leave what is finished in the run folder."""
        records = Records(plan)

        def on_fit(fit: Fit) -> None:
            text, plain = fit_told(plan, records, fit)
            progress.phase(text, plain=plain)

        progress.phase(announcement(plan, self.jobs, self.dask), plain=True)
        try:
            executor = executor_for(plan, jobs=self.jobs, dask=self.dask, stopping=lambda: interruption.asked)
            with executor as running:
                cross_validate(plan, running, records, on_fit)
            return Scores(plan, records, choose(records.table(), plan.rule, sign=plan.score.sign))
        except BaseException as error:
            interruption.writing()
            scores = Scores(plan, records)
            if len(records) and folder is not None:
                scores.write(folder.staging / TUNING)
                folder.commit()
            if isinstance(error, KeyboardInterrupt) and len(records):
                return scores
            if len(records) and folder is not None:
                print_note(f"{folder.path / TUNING} keeps the {len(records)} fits that are done")
            raise

    def refit(
        self,
        scores: Scores,
        data: LoadedData,
        progress: Progress,
        interruption: Interruption,
        folder: RunFolder | None,
    ) -> Result:
        """Solve the chosen setting on all training samples, as ``mipforest solve`` does."""
        if scores.chosen is None:
            raise AssertionError("a tuning that was stopped has no setting to solve")
        chosen = replace(self.job, formulation=scores.plan.formulations[scores.chosen])
        problem = build(chosen.formulation, data.train, chosen.depth)

        def on_progress(event: Event) -> bool:
            progress.show(event)
            return interruption.asked

        interruption.solving()
        log = None if folder is None else folder.staging / LOG
        return chosen.solve(problem, progress, on_progress, log)

    def outcome(self, scores: Scores, data: LoadedData, result: Result, folder: RunFolder | None) -> Outcome:
        """Collect what is worth keeping; ``tuning.csv`` is in the run folder then."""
        outcome = Outcome.of(self, data, result)
        if folder is not None:
            scores.write(folder.staging / TUNING)
        # The events are by far the longest part: they stand at the end.
        events = outcome.result["events"]
        told = outcome.result | {"tuning": scores.summary()}
        del told["events"]
        return replace(outcome, result=told | {"events": events})
