"""What a tuning over a grid was asked for, doing it, and its scores: as ``tuning.csv``, as JSON, in words.

Batch tunings share what is here: :mod:`mipforest.cli.batch_job`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mipforest.cli.outcome import Outcome, Request
from mipforest.cli.output import print_note, print_table, print_text
from mipforest.cli.solve import Job
from mipforest.formatting import duration, number, percent
from mipforest.runs.folder import LOG, TUNING
from mipforest.tuning import Plan, Records, choose, cross_validate, executor_for

if TYPE_CHECKING:
    from mipforest.cli.progress import Interruption, Progress
    from mipforest.data import Dataset
    from mipforest.problem.result import Result
    from mipforest.runs import DataSource, LoadedData, RunFolder
    from mipforest.solvers.solution import Event
    from mipforest.tuning import Fit, Rule
    from mipforest.tuning.batch import CurveRecords


#: Settings that are shown; of more, the best ones.
SHOWN = 20


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
        """Return the options as JSON takes them."""
        return self.job.to_dict() | {
            "grid": {name: list(values) for name, values in self.grid.items()},
            "grid_per_level": list(self.per_level),
            "folds": self.folds,
            "jobs": self.jobs,
            "dask": self.dask,
        }

    def plan(self, data: Dataset) -> Plan:
        """Check everything before the first fit; see :meth:`mipforest.tuning.Plan.of`."""
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
            solver=self.job.solver,
            settings=self.job.settings,
        )

    def scores(
        self, data: Dataset, progress: Progress, interruption: Interruption, folder: RunFolder | None
    ) -> Scores:
        """Score all settings and choose one; Ctrl-C and errors leave what is finished in the run folder."""
        plan = self.plan(data)
        scores = Scores(records=Records(plan), job=self.job, plan=plan)

        def on_fit(fit: Fit) -> None:
            text, plain = describe_fit(plan, scores.records, fit)
            progress.phase(text, plain=plain)

        progress.phase(describe_plan(plan, self.jobs, self.dask), plain=True)
        with scores.kept(folder, interruption):
            executor = executor_for(plan, jobs=self.jobs, dask=self.dask, stopping=lambda: interruption.asked)
            with executor as running:
                cross_validate(plan, running, scores.records, on_fit)
            table = scores.records.table()
            return replace(scores, chosen=choose(table, plan.rule, sign=plan.score.sign))
        return scores


@dataclass(frozen=True, eq=False)
class TuningScores(ABC):
    """What a tuning found, or has found so far.

    Attributes
    ----------
    records
        What is finished.
    job
        What the tree is fitted for in the end.
    chosen
        Number of the chosen row of its table; ``None`` if the tuning was stopped.
    """

    records: Records | CurveRecords
    job: Job
    chosen: int | None = None

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """Columns of the table that name a setting."""

    @property
    @abstractmethod
    def progress(self) -> str:
        """How many fits are done, of how many."""

    @abstractmethod
    def refit(
        self,
        data: LoadedData,
        progress: Progress,
        interruption: Interruption,
        folder: RunFolder | None,
    ) -> Result:
        """Find the tree for the chosen row on all training samples."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return what ``result.json`` tells of the tuning."""

    @abstractmethod
    def print_settings(self) -> None:
        """Print the settings, the chosen one marked."""

    def csv(self) -> str:
        """Return ``tuning.csv``: one row per setting; see :class:`mipforest.tuning.Tuning`."""
        table = self.records.table()
        table.insert(len(self.labels), "chosen", [row == self.chosen for row in range(len(table))])
        return str(table.to_csv(index=False))

    def as_json(self) -> dict[str, Any]:
        """Return the table and what was chosen; NaN and infinities become ``None``."""
        rows = json.loads(self.records.table().to_json(orient="records", double_precision=15))
        return {"tuning": self.summary() | {"settings": rows}}

    @contextmanager
    def kept(self, folder: RunFolder | None, interruption: Interruption) -> Iterator[None]:
        """Leave what is finished in the run folder where Ctrl-C or an error ends the block; Ctrl-C goes no further."""
        try:
            yield
        except BaseException as error:
            interruption.writing()
            if len(self.records) and folder is not None:
                self._keep(folder)
            if isinstance(error, KeyboardInterrupt) and len(self.records):
                return
            if len(self.records) and folder is not None:
                print_note(f"{folder.path / TUNING} keeps the {len(self.records)} fits that are done")
            raise

    def _keep(self, folder: RunFolder) -> None:
        """Write ``tuning.csv`` alone into the run folder; where that is impossible, print it."""
        try:
            folder.staging.mkdir(parents=True, exist_ok=True)
            (folder.staging / TUNING).write_text(self.csv(), encoding="utf-8")
            folder.commit()
        except OSError:
            print_text(f"{TUNING}, which could not be written:")
            print_text(self.csv())
            raise

    def outcome(self, job: Request, data: LoadedData, result: Result) -> Outcome:
        """Collect what is worth keeping, with ``tuning.csv``."""
        outcome = Outcome.of(job, data, result)
        # The events are by far the longest part: they stand at the end.
        events = outcome.result["events"]
        told = outcome.result | {"tuning": self.summary()}
        del told["events"]
        return replace(outcome, result=told | {"events": events}, tables={TUNING: self.csv()})


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores(TuningScores):
    """What a cross-validation over a grid found.

    Attributes
    ----------
    plan
        What was to be done.
    """

    records: Records
    plan: Plan

    def refit(
        self,
        data: LoadedData,
        progress: Progress,
        interruption: Interruption,
        folder: RunFolder | None,
    ) -> Result:
        """Solve the chosen setting on all training samples, as ``mipforest solve`` does."""
        if self.chosen is None:
            raise AssertionError("a tuning that was stopped has no setting to solve")
        chosen = replace(self.job, formulation=self.plan.formulations[self.chosen])
        budget = chosen.settings.budget(progress.phase)
        interruption.solving(budget)
        problem = chosen.build(data.train, budget, progress)

        def on_progress(event: Event) -> bool:
            progress.show(event)
            return interruption.asked

        log = None if folder is None else folder.staging / LOG
        return chosen.solve(problem, progress, on_progress, log)

    @property
    def labels(self) -> list[str]:
        """Columns of the table that name a setting."""
        return [axis.label for axis in self.plan.grid.axes]

    @property
    def progress(self) -> str:
        """How many fits are done, of how many."""
        return f"{len(self.records)} of {self.plan.n_fits} fits"

    def summary(self) -> dict[str, Any]:
        """Return what ``result.json`` tells of the tuning."""
        found: dict[str, Any] = {
            "score": self.plan.score.name,
            "rule": self.plan.rule,
            "folds": len(self.plan.folds),
            "fits": len(self.records),
            "chosen": self.chosen,
        }
        if self.chosen is not None:
            row = self.records.table().iloc[self.chosen]
            names = ("validation_mean", "validation_std", "train_mean", "train_std", "features_mean")
            found |= {name: float(row[name]) for name in names}
        return found

    def print_settings(self) -> None:
        """Print the settings, the chosen one marked."""
        table = self.records.table()
        shown = table
        if len(table) > SHOWN:
            order = self.plan.score.sign * -table["validation_mean"]
            shown = table.loc[order.sort_values(kind="stable").index[:SHOWN]]
            if self.chosen not in shown.index:
                shown = table.loc[[*shown.index[:-1], self.chosen]]
            print_text(f"The {SHOWN} best of {len(table)} settings:")
        rows = [
            (
                *(setting_value(row[label]) for label in self.labels),
                f"{number(row['validation_mean'])} +- {number(row['validation_std'])}",
                number(row["train_mean"]),
                number(row["features_mean"]),
                percent(row["gap_max"]),
                duration(row["seconds"]),
                "chosen" if position == self.chosen else "",
            )
            for position, row in shown.iterrows()
        ]
        score = self.plan.score.name.replace("_", " ")
        columns = (*self.labels, f"validation {score}", "training", "features", "largest gap", "time", "")
        print_table(columns, rows)
        print_text()


def describe_plan(plan: Plan, jobs: int, dask: str | None) -> str:
    """Describe how much is to be done, before it begins."""
    limit = plan.settings.time_limit
    each = "without a time limit" if limit is None else f"of at most {duration(limit)} each"
    where = f"on the Dask cluster {dask}" if dask else f"{min(jobs, plan.n_chains)} at a time"
    idle = ""
    if not dask and jobs > plan.n_chains:
        idle = f" (of {jobs} jobs: the others wait for the trees of settings before)"
    model = plan.formulations[0]
    depth = f", depth {plan.depth}" if model.gives.is_tree else ""
    return (
        f"tuning {model.name}{depth}, {plan.data.name}: {plan.grid.size} settings "
        f"x {len(plan.folds)} folds = {plan.n_fits} fits {each}, {where}{idle}, and one on all samples"
    )


def describe_fit(plan: Plan, records: Records, fit: Fit) -> tuple[str, bool]:
    """Describe how far the tuning is, and whether a setting was finished by this fit."""
    grid, setting = plan.grid, fit.setting
    labels = (axis.label for axis in grid.axes)
    given = ", ".join(
        f"{label}={setting_value(value)}" for label, value in zip(labels, grid.row(setting), strict=True)
    )
    done = f"{len(records)} of {plan.n_fits} fits done; {given}"
    fits = records.of_setting(setting)
    if len(fits) < len(plan.folds):
        return f"{done}, fold {fit.fold}: {number(fit.validation)}", False
    mean = sum(fit.validation for fit in fits) / len(fits)
    return f"{done}: validation {plan.score.name.replace('_', ' ')} {number(mean)}", True


def setting_value(value: Any) -> str:
    """Write a value of the grid as the command line takes it."""
    parts = value if isinstance(value, tuple) else (value,)
    return ":".join(f"{part:g}" if isinstance(part, float) else str(part) for part in parts)
