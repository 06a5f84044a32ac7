"""What a batch tuning was asked for, doing it, and what came out: as ``tuning.csv``, as JSON, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mipforest.cli.output import print_table, print_text
from mipforest.cli.solve import Job
from mipforest.cli.tuning_job import TuningScores, setting_value
from mipforest.formatting import duration, number
from mipforest.tuning import executor_for
from mipforest.tuning.batch import CurveRecords, find_curves, refitted
from mipforest.tuning.batch_plan import BatchPlan, CurveFit
from mipforest.tuning.cost_complexity import Midpoint

if TYPE_CHECKING:
    from mipforest.cli.progress import Interruption, Progress
    from mipforest.data import Dataset
    from mipforest.problem.result import Result
    from mipforest.runs import DataSource, LoadedData, RunFolder
    from mipforest.solvers.solution import Event


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchJob:
    """One batch tuning; the attributes but the first are those of :func:`mipforest.tuning.tune_batch`.

    Attributes
    ----------
    job
        How the data are loaded; its depth is the greatest one.
    """

    job: Job
    grid: Mapping[str, Sequence[Any]] | None
    folds: int | None
    validation: float | None
    starts: int
    midpoint: Midpoint
    jobs: int
    dask: str | None

    @property
    def source(self) -> DataSource:
        """Where the data come from."""
        return self.job.source

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON takes them."""
        return self.job.to_dict() | {
            "method": "batch",
            "grid": {name: list(values) for name, values in (self.grid or {}).items()},
            "folds": self.folds,
            "validation": self.validation,
            "starts": self.starts,
            "midpoint": self.midpoint,
            "jobs": self.jobs,
            "dask": self.dask,
        }

    def plan(self, data: Dataset) -> BatchPlan:
        """Check everything before the first curve; see :meth:`mipforest.tuning.batch_plan.BatchPlan.of`."""
        return BatchPlan.of(
            self.job.formulation,
            data,
            self.job.depth,
            grid=self.grid,
            folds=self.folds,
            validation=self.validation,
            starts=self.starts,
            midpoint=self.midpoint,
            solver=self.job.solver,
            settings=self.job.settings,
        )

    def scores(
        self, data: Dataset, progress: Progress, interruption: Interruption, folder: RunFolder | None
    ) -> BatchScores:
        """Find all curves and choose a row; Ctrl-C and errors leave what is finished in the run folder."""
        plan = self.plan(data)
        scores = BatchScores(CurveRecords(plan), self.job)

        def on_fit(fit: CurveFit) -> None:
            text, plain = scores.describe(fit)
            progress.phase(text, plain=plain)

        progress.phase(self._announcement(plan), plain=True)
        with scores.kept(folder, interruption):
            executor = executor_for(plan, jobs=self.jobs, dask=self.dask, stopping=lambda: interruption.asked)
            with executor as running:
                return replace(scores, chosen=find_curves(scores.records, running, on_fit))
        return scores

    def _announcement(self, plan: BatchPlan) -> str:
        where = f"on the Dask cluster {self.dask}" if self.dask else f"{self.jobs} at a time"
        depths, folds = len(plan.depths), len(plan.folds)
        parts = "one validation part" if folds == 1 else f"{folds} folds"
        return (
            f"tuning {plan.formulations[0].name}, depth 1 to {depths}, {plan.data.name}: {plan.starts} trees for each "
            f"depth and of {parts}, {where}, and one tree on all samples"
        )


@dataclass(frozen=True, eq=False)
class BatchScores(TuningScores):
    """What a batch tuning found, or has found so far; its plan grows once the depth is chosen."""

    records: CurveRecords

    @property
    def plan(self) -> BatchPlan:
        """What is to be done."""
        return self.records.plan

    @property
    def labels(self) -> list[str]:
        """Columns of the table that name a setting."""
        return ["depth", *filter(None, [self.plan.tried]), "alpha"]

    @property
    def progress(self) -> str:
        """How many fits are done, of how many."""
        return f"{len(self.records)} of {len(self.plan.depths) * len(self.plan.folds)} curves"

    def refit(
        self,
        data: LoadedData,
        progress: Progress,
        interruption: Interruption,
        folder: RunFolder | None,
    ) -> Result:
        """Fit a tree with the chosen depth and cost on all training samples."""
        del data, folder  # the plan has the samples; tree searches write no log
        assert self.chosen is not None, "a tuning that was stopped has no setting to fit"
        formulation, depth = self.records.formulation(self.chosen), self.plan.depths[self.chosen]
        cost = number(formulation.parameters()["alpha"])
        progress.phase(f"fitting a tree with depth {depth} and alpha {cost} on all samples", plain=True)

        def on_progress(event: Event) -> bool:
            progress.show(event)
            return interruption.asked

        interruption.solving(budget := self.job.settings.budget())
        with progress.solving(budget.remaining):
            return refitted(self.plan, formulation, depth, on_progress)

    def summary(self) -> dict[str, Any]:
        """Return what ``result.json`` tells of the tuning."""
        found: dict[str, Any] = {
            "method": "batch",
            "score": self.plan.loss,
            "folds": len(self.plan.folds),
            "fits": len(self.records),
            "chosen": self.chosen,
        }
        if self.chosen is not None:
            row = self.records.table().iloc[self.chosen]
            found["depth"] = int(row["depth"])
            names = ("alpha", "validation_mean", "validation_std", "train_mean")
            found |= {name: float(row[name]) for name in names}
        return found

    def describe(self, fit: CurveFit) -> tuple[str, bool]:
        """Describe how far the tuning is, and whether a row was finished by this curve."""
        row = self.records.table().iloc[fit.setting]
        done = f"{self.progress} done; depth {self.plan.depths[fit.setting]}"
        if not row["finished"]:
            return f"{done}, fold {fit.fold}", False
        told = f"validation {self.plan.loss} {number(row['validation_mean'])} at alpha {number(row['alpha'])}"
        return f"{done}: {told}", True

    def print_settings(self) -> None:
        """Print the rows, the chosen one marked."""
        rows = [
            (
                *(setting_value(row[label]) for label in self.labels),
                f"{number(row['validation_mean'])} +- {number(row['validation_std'])}",
                number(row["train_mean"]),
                duration(row["seconds"]),
                "chosen" if position == self.chosen else "",
            )
            for position, row in self.records.table().iterrows()
        ]
        header = (*self.labels, f"validation {self.plan.loss}", "training loss of the best tree", "time", "")
        print_table(header, rows)
        print_text()
