"""``mipforest tune``: what was asked for, doing it, and what came out: as ``tuning.csv``, as JSON, in words."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn

from typer import Exit, Option

from mipforest.cli import options as o
from mipforest.cli.early import refuse_unknown
from mipforest.cli.errors import INTERRUPTED, CommandError
from mipforest.cli.outcome import JobResult, end, run_folder, write_outcome
from mipforest.cli.output import print_json, print_note, print_table, print_text
from mipforest.cli.progress import Progress, stoppable
from mipforest.cli.quantities import seconds, share
from mipforest.cli.solve import Job
from mipforest.formatting import duration, number, percent
from mipforest.interruption import Interruption, interruptible

if TYPE_CHECKING:
    import pandas as pd

    from mipforest.data import Dataset
    from mipforest.problem.result import Result
    from mipforest.runs import DataSource, LoadedData, RunFolder
    from mipforest.tuning import Fit, Records
    from mipforest.tuning.batch_plan import CurveFit
    from mipforest.tuning.run import CurveRecords


#: Settings that are shown; of more, the best ones.
SHOWN = 20


class Rule(StrEnum):
    """How a setting is chosen."""

    best = "best"
    sparse = "sparse"


class Method(StrEnum):
    """How parameters are chosen."""

    grid = "grid"
    batch = "batch"


class Midpoint(StrEnum):
    """Which cost of a split stands for several that are equally good."""

    interval = "interval"
    paper = "paper"


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """How parameters are chosen."""

    panel: ClassVar[str] = "Tune"

    depth: Annotated[
        str | None,
        Option(
            metavar="D",
            help="Levels of branch nodes of a tree, 1 to 10; several, as in 1,2,3, are tried. Score cards have no "
            "depth.",
            rich_help_panel=o.MODEL,
        ),
    ] = None
    grid: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUES",
            help="Values of a parameter, as in C=0.1,1,10; with colons one per level, as in B=1:2,1:3. Repeatable.",
        ),
    ] = None
    method: Annotated[
        Method,
        Option(
            help="grid: fit every setting of --grid; batch: choose depth, up to --depth, and alpha, by pruning trees "
            "of a local search (oct, ort, opt, and their kin -h, -l, -lh)."
        ),
    ] = Method.grid
    grid_per_level: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Combine this parameter's values anew at every level. Repeatable."),
    ] = None
    folds: Annotated[
        int | None, Option(min=2, metavar="K", help="Folds, stratified for classes; 4 unless given.")
    ] = None
    validation: Annotated[
        float | None,
        Option(
            parser=share,
            metavar="SHARE",
            help="Of a batch, one validation part with this share of the samples in place of folds.",
        ),
    ] = None
    starts: Annotated[
        int,
        Option(min=1, metavar="N", help="Of a batch, trees for each depth and fold."),
    ] = 100
    midpoint: Annotated[
        Midpoint,
        Option(
            help="Of a batch, the alpha of equally good ones: the middle of the longest interval, or as in the paper."
        ),
    ] = Midpoint.interval
    score: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="accuracy or balanced_accuracy, where the model gives probabilities auc, log_loss or brier_score; r2, "
            "mse or mae of a regression, deviance_explained of rates, concordance of survival; of a prescription "
            "imputed_outcome, or r2, mse, mae of its estimates; of decisions mean_reward. By default the first, of "
            "rates and survival their own.",
        ),
    ] = None
    rule: Annotated[
        Rule,
        Option(help="best: the best mean score; sparse: the fewest features among those within 2.5% of it."),
    ] = Rule.best
    max_fits: Annotated[int, Option(min=1, metavar="N", help="Refuse a grid of more fits.")] = 500

    @property
    def depths(self) -> tuple[int, ...]:
        """The depths that were given; a CommandError where they are no whole numbers."""
        try:
            return () if self.depth is None else tuple(int(part) for part in self.depth.split(","))
        except ValueError:
            raise CommandError(
                f"--depth is {self.depth!r}; give a whole number, or several with commas, as in 1,2,3"
            ) from None


@dataclass(frozen=True, kw_only=True)
class FitOptions(o.SolverOptions):
    """Who does every fit, and how."""

    time_limit: Annotated[
        float, Option(parser=seconds, metavar="TIME", help="Wall time of every fit; inf for no limit.")
    ] = 60.0
    threads: Annotated[int | None, Option(min=1, metavar="N", help="Threads of the solver in every fit.")] = 1


@o.grouped
def tune(
    *,
    model: o.ModelName,
    model_options: Annotated[o.ModelOptions, o.Without("depth")],
    data: o.DataName,
    data_options: o.DataOptions,
    tune_options: TuneOptions,
    workers: o.WorkerOptions,
    fit_options: FitOptions,
    run_options: o.RunOptions,
) -> None:
    """Choose parameters by cross-validation, and find the tree for them on all training samples.

    The run folder has tuning.csv, with a row for every setting. Ctrl-C stops, and tuning.csv keeps the fits that are
    finished. While the last tree is solved, Ctrl-C keeps the best one so far.

    Exit code: as for 'mipforest solve'; 130 stopped before there was a tree.

    Example: mipforest tune --model margot --depth 2 --data breast_cancer --grid C=0.1,1,10 --out run

    Example: mipforest tune --method batch --model oct --depth 6 --data breast_cancer --out run
    """
    refuse_unknown(model, data)
    with Progress(quiet=run_options.quiet) as progress, interruptible(progress.stopping) as interruption:
        from mipforest.tuning import parse_grid

        source = data_options.source(data, model=model, seed=fit_options.seed)
        depths = tune_options.depths
        for depth in depths or (None,):
            job = Job.of(
                model, replace(model_options, depth=depth), source, fit_options.solver, fit_options.settings()
            )
        _refuse_unused(tune_options)
        grid = tune_options.grid
        if not grid and tune_options.method is Method.grid and len(depths) < 2:
            raise CommandError(
                "there are no values to try; give --grid NAME=VALUE,VALUE, several depths, or --method batch"
            )
        tuning = TuningJob(
            job, tune_options, workers, parse_grid(type(job.formulation), grid) if grid else {}
        )
        with run_folder(run_options) as folder:
            progress.phase(f"loading {source.data}")
            loaded = source.load()
            scores = tuning.scores(loaded.train, progress, interruption, folder)
            if scores.chosen is None:
                progress.stop()
                _stop(scores, folder, as_json=run_options.as_json)
            result = scores.refit(loaded, progress, interruption, folder)
            interruption.writing()
            progress.phase("writing the results")
            outcome = scores.outcome(loaded, result)
            failure = write_outcome(outcome, folder)
    if not (run_options.as_json or run_options.quiet):
        scores.print_settings()
    end(outcome, folder, failure, run_options, more=scores.as_json())


def _refuse_unused(options: TuneOptions) -> None:
    """Refuse options that the method would not use."""
    unused: dict[str, object] = {"--validation": options.validation}
    if options.method is Method.batch:
        if len(options.depths) > 1:
            raise CommandError(
                "--method batch tries all depths up to --depth; give the greatest one, such as --depth "
                f"{max(options.depths)}"
            )
        unused = {
            "--grid-per-level": options.grid_per_level,
            "--score": options.score,
            "--rule": options.rule != Rule.best,
        }
    for name, value in unused.items():
        if value:
            raise CommandError(f"{name} is not for --method {options.method.value}; leave it out")


def _stop(scores: Scores, folder: RunFolder | None, *, as_json: bool) -> NoReturn:
    """End a tuning that Ctrl-C stopped."""
    from mipforest.runs.folder import TUNING

    kept = "without --out, they are lost" if folder is None else f"{folder.path / TUNING} keeps them"
    message = f"stopped with {scores.records.progress} done; {kept}"
    if as_json:
        ended = {"error": message, "kind": "KeyboardInterrupt", "exit_code": INTERRUPTED}
        print_json(scores.as_json() | ended)
    else:
        print_text(message)
    raise Exit(INTERRUPTED)


@dataclass(frozen=True, eq=False)
class TuningJob:
    """One tuning, by either method.

    Attributes
    ----------
    job
        How the data are loaded and every model is solved; its formulation has the parameters outside the grid. Of a
        batch, its depth is the greatest one.
    options, workers
        What the command line says.
    grid
        Values by name of a parameter.
    """

    job: Job
    options: TuneOptions
    workers: o.WorkerOptions
    grid: Mapping[str, Sequence[Any]]

    @property
    def source(self) -> DataSource:
        """Where the data come from."""
        return self.job.source

    @property
    def folds(self) -> int | None:
        """Number of folds; ``None`` leaves it to the plan of a batch."""
        return 4 if self.options.folds is None and self.options.method is Method.grid else self.options.folds

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON takes them."""
        options, grid = self.options, {name: list(values) for name, values in self.grid.items()}
        if options.method is Method.batch:
            own: dict[str, Any] = {
                "method": "batch",
                "grid": grid,
                "folds": self.folds,
                "validation": options.validation,
                "starts": options.starts,
                "midpoint": options.midpoint.value,
            }
        else:
            if len(options.depths) > 1:
                grid = {"depth": list(options.depths), **grid}
            own = {"grid": grid, "grid_per_level": list(options.grid_per_level or ()), "folds": self.folds}
        return self.job.to_dict() | own | {"jobs": self.workers.jobs, "dask": self.workers.dask}

    def scores(
        self, data: Dataset, progress: Progress, interruption: Interruption, folder: RunFolder | None
    ) -> Scores:
        """Score all settings and choose one; Ctrl-C and errors leave what is finished in the run folder."""
        from mipforest.tuning import executor_for

        kind = BatchScores if self.options.method is Method.batch else GridScores
        scores = kind.of(self, data)

        def on_fit(fit: Any) -> None:
            text, plain = scores.describe(fit)
            progress.phase(text, plain=plain)

        progress.phase(scores.announcement(), plain=True)
        with scores.kept(folder, interruption):
            executor = executor_for(
                scores.records.plan,
                jobs=self.workers.jobs,
                dask=self.workers.dask,
                stopping=lambda: interruption.asked,
            )
            with executor as running:
                scores.records.do(running, on_fit)
            return replace(scores, chosen=scores.records.choose())
        return scores


@dataclass(frozen=True, eq=False)
class Scores(ABC):
    """What a tuning found, or has found so far.

    Attributes
    ----------
    tuning
        What was asked for.
    records
        What is finished.
    chosen
        Number of the chosen row of its table; ``None`` if the tuning was stopped.
    """

    tuning: TuningJob
    records: Records | CurveRecords
    chosen: int | None = None

    #: Numbers of the chosen row that ``result.json`` has.
    _numbers: ClassVar[tuple[str, ...]]
    #: What is printed of every row, apart from its score and time: heading, name in the table, and how it is written.
    _columns: ClassVar[Mapping[str, tuple[str, Callable[[float], str]]]]

    @classmethod
    @abstractmethod
    def of(cls, tuning: TuningJob, data: Dataset) -> Scores:
        """Check everything before the first fit; nothing is found yet."""

    @property
    @abstractmethod
    def score(self) -> str:
        """Name of what settings are compared by."""

    @abstractmethod
    def announcement(self) -> str:
        """Describe how much is to be done, before it begins."""

    @abstractmethod
    def describe(self, fit: Any) -> tuple[str, bool]:
        """Describe how far the tuning is, and whether a row was finished by this fit."""

    @abstractmethod
    def refit(
        self, data: LoadedData, progress: Progress, interruption: Interruption, folder: RunFolder | None
    ) -> Result:
        """Find the tree for the chosen row on all training samples."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return what ``result.json`` has of the tuning."""

    def _summary(self, **about: Any) -> dict[str, Any]:
        plan = self.records.plan
        found = about | {"folds": len(plan.folds), "fits": len(self.records), "chosen": self.chosen}
        if self.chosen is not None:
            row = self.records.table().iloc[self.chosen]
            found |= {name: float(row[name]) for name in self._numbers}
        return found

    def _where(self, at_a_time: int) -> str:
        dask = self.tuning.workers.dask
        return f"on the Dask cluster {dask}" if dask else f"{at_a_time} at a time"

    def print_settings(self) -> None:
        """Print the settings, the chosen one marked."""
        rows = [
            (
                *(setting_value(row[label]) for label in self.records.labels),
                f"{number(row['validation_mean'])} +- {number(row['validation_std'])}",
                *(written(row[name]) for name, written in self._columns.values()),
                duration(row["seconds"]),
                "chosen" if position == self.chosen else "",
            )
            for position, row in self._shown(self.records.table()).iterrows()
        ]
        score = f"validation {self.score.replace('_', ' ')}"
        print_table((*self.records.labels, score, *self._columns, "time", ""), rows)
        print_text()

    def _shown(self, table: pd.DataFrame) -> pd.DataFrame:
        return table

    def csv(self) -> str:
        """Return ``tuning.csv``: one row per setting; see :class:`mipforest.tuning.Tuning`."""
        table = self.records.table()
        table.insert(len(self.records.labels), "chosen", [row == self.chosen for row in range(len(table))])
        return str(table.to_csv(index=False))

    def as_json(self) -> dict[str, Any]:
        """Return the table and what was chosen; NaN and infinities become ``None``."""
        rows = json.loads(self.records.table().to_json(orient="records", double_precision=15))
        return {"tuning": self.summary() | {"settings": rows}}

    @contextmanager
    def kept(self, folder: RunFolder | None, interruption: Interruption) -> Iterator[None]:
        """Leave what is finished in the run folder where Ctrl-C or an error ends the block; Ctrl-C goes no further."""
        from mipforest.runs.folder import TUNING

        try:
            yield
        except BaseException as error:
            interruption.writing()
            if len(self.records) and folder is not None:
                self._write_fits(folder)
            if isinstance(error, KeyboardInterrupt) and len(self.records):
                return
            if len(self.records) and folder is not None:
                print_note(f"{folder.path / TUNING} keeps the {len(self.records)} fits that are done")
            raise

    def _write_fits(self, folder: RunFolder) -> None:
        """Write ``tuning.csv`` alone into the run folder; where that is impossible, print it."""
        from mipforest.runs.folder import TUNING

        try:
            folder.staging.mkdir(parents=True, exist_ok=True)
            (folder.staging / TUNING).write_text(self.csv(), encoding="utf-8")
            folder.commit()
        except OSError:
            print_text(f"{TUNING}, which could not be written:")
            print_text(self.csv())
            raise

    def outcome(self, data: LoadedData, result: Result) -> JobResult:
        """Collect what is worth keeping, with ``tuning.csv``."""
        from mipforest.runs.folder import TUNING

        outcome = JobResult.of(self.tuning, data, result)
        # The events are by far the longest part: they stand at the end.
        content = outcome.result | {"tuning": self.summary()}
        content["events"] = content.pop("events")
        return replace(outcome, result=content, tables={TUNING: self.csv()})


@dataclass(frozen=True, eq=False)
class GridScores(Scores):
    """What a cross-validation over a grid found."""

    records: Records

    _numbers = ("validation_mean", "validation_std", "train_mean", "train_std", "features_mean")
    _columns = {  # noqa: RUF012 - not changed
        "training": ("train_mean", number),
        "features": ("features_mean", number),
        "largest gap": ("gap_max", percent),
    }

    @classmethod
    def of(cls, tuning: TuningJob, data: Dataset) -> GridScores:
        """Check everything before the first fit; see :meth:`mipforest.tuning.Plan.of`."""
        from mipforest.tuning import Plan, Records

        job, options = tuning.job, tuning.options
        plan = Plan.of(
            job.formulation,
            data,
            options.depths or job.depth,
            grid=tuning.grid,
            per_level=options.grid_per_level or (),
            folds=tuning.folds or 0,
            score=options.score,
            rule=options.rule.value,
            max_fits=options.max_fits,
            solver=job.solver,
            settings=job.settings,
        )
        return cls(tuning, Records(plan))

    @property
    def score(self) -> str:
        """Name of the score."""
        return self.records.plan.score.name

    def announcement(self) -> str:
        """Describe how much is to be done, before it begins."""
        plan, jobs = self.records.plan, self.tuning.workers.jobs
        limit = plan.settings.time_limit
        each = "without a time limit" if limit is None else f"of at most {duration(limit)} each"
        idle = ""
        if not self.tuning.workers.dask and jobs > plan.n_chains:
            idle = f" (of {jobs} jobs: the others wait for the trees of settings before)"
        model = plan.formulations[0]
        depths = ", ".join(map(str, dict.fromkeys(plan.depths)))
        depth = f", depth {depths}" if model.gives.is_tree else ""
        return (
            f"tuning {model.name}{depth}, {plan.data.name}: {plan.grid.size} settings x {len(plan.folds)} folds = "
            f"{plan.n_fits} fits {each}, {self._where(min(jobs, plan.n_chains))}{idle}, and one on all samples"
        )

    def describe(self, fit: Fit) -> tuple[str, bool]:
        """Describe how far the tuning is, and whether a setting was finished by this fit."""
        values = self.records.plan.grid.row(fit.setting)
        given = (
            f"{label}={setting_value(value)}"
            for label, value in zip(self.records.labels, values, strict=True)
        )
        done = f"{self.records.progress} done; {', '.join(given)}"
        if not self.records.finished(fit.setting):
            return f"{done}, fold {fit.fold}: {number(fit.validation)}", False
        fits = self.records.of_setting(fit.setting)
        mean = sum(fit.validation for fit in fits) / len(fits)
        return f"{done}: validation {self.score.replace('_', ' ')} {number(mean)}", True

    def refit(
        self, data: LoadedData, progress: Progress, interruption: Interruption, folder: RunFolder | None
    ) -> Result:
        """Solve the chosen setting on all training samples, as ``mipforest solve`` does."""
        from mipforest.runs.folder import LOG

        assert self.chosen is not None, "a tuning that was stopped has no setting to solve"
        plan = self.records.plan
        chosen = replace(
            self.tuning.job, formulation=plan.formulations[self.chosen], depth=plan.depths[self.chosen]
        )
        budget = chosen.settings.budget(progress.phase)
        interruption.solving(budget)
        problem = chosen.build(data.train, budget, progress)
        log = None if folder is None else folder.staging / LOG
        return chosen.solve(problem, progress, interruption, log)

    def summary(self) -> dict[str, Any]:
        """Return what ``result.json`` has of the tuning."""
        return self._summary(score=self.score, rule=self.records.plan.rule)

    def _shown(self, table: pd.DataFrame) -> pd.DataFrame:
        if len(table) <= SHOWN:
            return table
        order = self.records.plan.score.sign * -table["validation_mean"]
        shown = table.loc[order.sort_values(kind="stable").index[:SHOWN]]
        if self.chosen not in shown.index:
            shown = table.loc[[*shown.index[:-1], self.chosen]]
        print_text(f"The {SHOWN} best of {len(table)} settings:")
        return shown


@dataclass(frozen=True, eq=False)
class BatchScores(Scores):
    """What a batch tuning found; its plan grows once the depth is chosen."""

    records: CurveRecords

    _numbers = ("alpha", "validation_mean", "validation_std", "train_mean")
    _columns = {"training loss of the best tree": ("train_mean", number)}  # noqa: RUF012 - not changed

    @classmethod
    def of(cls, tuning: TuningJob, data: Dataset) -> BatchScores:
        """Check everything before the first curve; see :meth:`mipforest.tuning.batch_plan.BatchPlan.of`."""
        from mipforest.tuning.batch_plan import BatchPlan
        from mipforest.tuning.run import CurveRecords

        job, options = tuning.job, tuning.options
        plan = BatchPlan.of(
            job.formulation,
            data,
            job.depth,
            grid=tuning.grid or None,
            folds=tuning.folds,
            validation=options.validation,
            starts=options.starts,
            midpoint=options.midpoint.value,
            solver=job.solver,
            settings=job.settings,
        )
        return cls(tuning, CurveRecords(plan))

    @property
    def score(self) -> str:
        """Name of the validation loss."""
        return self.records.plan.loss

    def announcement(self) -> str:
        """Describe how much is to be done, before it begins."""
        plan = self.records.plan
        parts = "one validation part" if len(plan.folds) == 1 else f"{len(plan.folds)} folds"
        return (
            f"tuning {plan.formulations[0].name}, depth 1 to {len(plan.depths)}, {plan.data.name}: {plan.starts} trees "
            f"for each depth and of {parts}, {self._where(self.tuning.workers.jobs)}, and one tree on all samples"
        )

    def describe(self, fit: CurveFit) -> tuple[str, bool]:
        """Describe how far the tuning is, and whether a row was finished by this curve."""
        done = f"{self.records.progress} done; depth {self.records.plan.depths[fit.setting]}"
        if not self.records.finished(fit.setting):
            return f"{done}, fold {fit.fold}", False
        row = self.records.table().iloc[fit.setting]
        loss = f"validation {self.score} {number(row['validation_mean'])} at alpha {number(row['alpha'])}"
        return f"{done}: {loss}", True

    def refit(
        self, data: LoadedData, progress: Progress, interruption: Interruption, folder: RunFolder | None
    ) -> Result:
        """Fit a tree with the chosen depth and cost on all training samples."""
        del data, folder  # the plan has the samples; tree searches write no log
        from mipforest.tuning.run import refitted

        assert self.chosen is not None, "a tuning that was stopped has no setting to fit"
        formulation, depth = self.records.formulation(self.chosen), self.records.plan.depths[self.chosen]
        cost = number(formulation.parameters()["alpha"])
        progress.phase(f"fitting a tree with depth {depth} and alpha {cost} on all samples", plain=True)
        interruption.solving(budget := self.tuning.job.settings.budget())
        with progress.solving(budget.remaining):
            return refitted(self.records.plan, formulation, depth, stoppable(progress, interruption))

    def summary(self) -> dict[str, Any]:
        """Return what ``result.json`` has of the tuning."""
        found = self._summary(method="batch", score=self.score)
        if self.chosen is not None:
            found["depth"] = self.records.plan.depths[self.chosen]
        return found


def setting_value(value: Any) -> str:
    """Write a value of the grid as the command line takes it."""
    parts = value if isinstance(value, tuple) else (value,)
    return ":".join(f"{part:g}" if isinstance(part, float) else str(part) for part in parts)
