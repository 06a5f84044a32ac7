"""``mipforest solve``."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from mipforest.cli import options as o
from mipforest.cli.errors import complaint
from mipforest.cli.inputs import scaling_of, solver_options_of, source_of
from mipforest.cli.interrupts import interruptible
from mipforest.cli.job import Job, Limits
from mipforest.cli.output import print_json
from mipforest.cli.progress import Progress

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mipforest.cli.outcome import Outcome
    from mipforest.runs import RunError, RunFolder
    from mipforest.solvers.solution import Event


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
        from mipforest.cli.outcome import Outcome

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


def run_folder(out: Path | None, *, replace: bool) -> AbstractContextManager[RunFolder | None]:
    """Refuse a folder that cannot be written before any work is done."""
    from mipforest.runs import RunFolder

    return nullcontext() if out is None else RunFolder(out.expanduser(), replace=replace)


def write_outcome(outcome: Outcome, folder: RunFolder | None) -> OSError | RunError | None:
    """Write the run folder; a failure must not keep the user from seeing what was found."""
    from mipforest.runs import RunError

    try:
        if folder is not None:
            outcome.write(folder)
    except RunError as error:
        return error
    except OSError as error:
        error.filename = folder and str(folder.path)
        return error
    return None
