"""``mipforest tune``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from typer import Exit, Option

from mipforest.cli import options as o
from mipforest.cli.errors import INTERRUPTED, CommandError
from mipforest.cli.inputs import scaling_of, settings_of, source_of
from mipforest.cli.outcome import end, run_folder, write_outcome
from mipforest.cli.output import print_json, print_text
from mipforest.cli.progress import Progress, interruptible
from mipforest.cli.solve import Job
from mipforest.settings import DEFAULT_GAP

if TYPE_CHECKING:
    from mipforest.cli.tuning_job import TuningScores
    from mipforest.runs import RunFolder


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


_TUNE, _SOLVE, _OUTPUT = "Tune", "Solve", "Output"


def tune(
    *,
    model: o.ModelName,
    depth: o.Depth = None,
    data: o.DataName,
    grid: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUES",
            help="Values of a parameter, as in C=0.1,1,10; with colons one per level, as in B=1:2,1:3. Repeatable.",
            show_default=False,
            rich_help_panel=_TUNE,
        ),
    ] = None,
    method: Annotated[
        Method,
        Option(
            help="grid: fit every setting of --grid; batch: choose depth, up to --depth, and alpha, by pruning trees "
            "of a local search (oct, ort, opt, and their kin -h, -l, -lh).",
            rich_help_panel=_TUNE,
        ),
    ] = Method.grid,
    grid_per_level: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="Combine this parameter's values anew at every level. Repeatable.",
            rich_help_panel=_TUNE,
        ),
    ] = None,
    folds: Annotated[
        int | None,
        Option(
            min=2,
            metavar="K",
            help="Folds, stratified for classes; 4 unless given.",
            show_default=False,
            rich_help_panel=_TUNE,
        ),
    ] = None,
    validation: Annotated[
        float | None,
        Option(
            metavar="SHARE",
            help="Of a batch, one validation part with this share of the samples in place of folds.",
            show_default=False,
            rich_help_panel=_TUNE,
        ),
    ] = None,
    starts: Annotated[
        int,
        Option(min=1, metavar="N", help="Of a batch, trees for each depth and fold.", rich_help_panel=_TUNE),
    ] = 100,
    midpoint: Annotated[
        Midpoint,
        Option(
            help="Of a batch, the alpha of equally good ones: the middle of the longest interval, or as in the paper.",
            rich_help_panel=_TUNE,
        ),
    ] = Midpoint.interval,
    score: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="accuracy or balanced_accuracy, where the model gives probabilities auc, log_loss or brier_score; r2, "
            "mse or mae of a regression; of a prescription imputed_outcome, or r2, mse, mae of its estimates. By "
            "default the first.",
            rich_help_panel=_TUNE,
        ),
    ] = None,
    rule: Annotated[
        Rule,
        Option(
            help="best: the best mean score; sparse: the fewest features among those within 2.5% of it.",
            rich_help_panel=_TUNE,
        ),
    ] = Rule.best,
    max_fits: Annotated[
        int, Option(min=1, metavar="N", help="Refuse a grid of more fits.", rich_help_panel=_TUNE)
    ] = 500,
    jobs: Annotated[
        int, Option(min=1, metavar="N", help="Processes on this machine.", rich_help_panel=_TUNE)
    ] = 1,
    dask: Annotated[
        str | None,
        Option(
            metavar="ADDRESS",
            help="Dask scheduler whose workers do the fits, as in tcp://127.0.0.1:8786.",
            rich_help_panel=_TUNE,
        ),
    ] = None,
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
    time_limit: Annotated[
        float,
        Option(
            min=0, metavar="SECONDS", help="Wall time of every fit; inf for no limit.", rich_help_panel=_SOLVE
        ),
    ] = 60.0,
    gap: o.Gap = DEFAULT_GAP,
    threads: Annotated[
        int, Option(min=1, metavar="N", help="Threads of the solver in every fit.", rich_help_panel=_SOLVE)
    ] = 1,
    seed: o.Seed = 0,
    solver_option: o.SolverOptions = None,
    bridge: o.Bridges = None,
    out: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Run folder for tuning.csv and all that 'mipforest solve' writes.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Choose parameters by cross-validation, and find the tree for them on all training samples.

    Ctrl-C stops; tuning.csv keeps the fits that are finished. While the last tree is solved, Ctrl-C keeps the best
    one so far.

    Exit code: as for 'mipforest solve'; 130 stopped before there was a tree.

    Example: mipforest tune --model margot --depth 2 --data breast_cancer --grid C=0.1,1,10 --out run

    Example: mipforest tune --method batch --model oct --depth 6 --data breast_cancer --out run
    """
    with Progress(quiet=quiet) as progress, interruptible(progress.stopping) as interruption:
        from mipforest.cli.batch_job import BatchJob
        from mipforest.cli.tuning_job import TuningJob
        from mipforest.tuning import parse_grid

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
            settings=settings_of(time_limit, gap, threads, seed, solver_option, bridge),
        )
        request: TuningJob | BatchJob
        if method is Method.batch:
            _refuse(
                {"--grid-per-level": grid_per_level, "--score": score, "--rule": rule != Rule.best}, method
            )
            request = BatchJob(
                job=job,
                grid=parse_grid(type(job.formulation), grid) if grid else None,
                folds=folds,
                validation=validation,
                starts=starts,
                midpoint=midpoint.value,
                jobs=jobs,
                dask=dask,
            )
        else:
            _refuse({"--validation": validation}, method)
            if not grid:
                raise CommandError(
                    "there are no values to try; give --grid NAME=VALUE,VALUE, or --method batch"
                )
            request = TuningJob(
                job=job,
                grid=parse_grid(type(job.formulation), grid),
                per_level=grid_per_level or (),
                folds=4 if folds is None else folds,
                score=score,
                rule=rule.value,
                max_fits=max_fits,
                jobs=jobs,
                dask=dask,
            )
        with run_folder(out, replace=force) as folder:
            progress.phase(f"loading {source.data}")
            loaded = source.load()
            scores = request.scores(loaded.train, progress, interruption, folder)
            if scores.chosen is None:
                progress.stop()
                _stop(scores, folder, as_json=as_json)
            result = scores.refit(loaded, progress, interruption, folder)
            interruption.writing()
            progress.phase("writing the results")
            outcome = scores.outcome(request, loaded, result)
            failure = write_outcome(outcome, folder)
    if not (as_json or quiet):
        scores.print_settings()
    end(outcome, folder, failure, out=out, as_json=as_json, quiet=quiet, more=scores.as_json())


def _refuse(options: Mapping[str, object], method: Method) -> None:
    """Refuse options that the method would not use."""
    for name, value in options.items():
        if value:
            raise CommandError(f"{name} is not for --method {method.value}; leave it out")


def _stop(scores: TuningScores, folder: RunFolder | None, *, as_json: bool) -> NoReturn:
    """End a tuning that Ctrl-C stopped."""
    from mipforest.runs.folder import TUNING

    kept = "without --out, they are lost" if folder is None else f"{folder.path / TUNING} keeps them"
    message = f"stopped with {scores.progress} done; {kept}"
    if as_json:
        told = {"error": message, "kind": "KeyboardInterrupt", "exit_code": INTERRUPTED}
        print_json(scores.as_json() | told)
    else:
        print_text(message)
    raise Exit(INTERRUPTED)
