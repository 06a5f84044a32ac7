"""``mipforest update``: the tree nearest to that of a run, of those that are good enough on new data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.outcome import JobResult, end, run_folder, write_outcome
from mipforest.cli.output import cell, print_note, print_table, print_text
from mipforest.cli.progress import Progress, stoppable
from mipforest.cli.solve import Job
from mipforest.formatting import finite
from mipforest.interruption import interruptible

if TYPE_CHECKING:
    from mipforest.updates import Update


@o.grouped
def update(
    run: o.RunPath,
    *,
    data: Annotated[
        str,
        Option(
            "--data",
            metavar="DATA",
            help="New data with the columns of the run: a file or a name, as for 'mipforest solve'.",
            rich_help_panel=o.DATA,
        ),
    ],
    within: Annotated[
        str,
        Option(
            metavar="SHARE",
            help="What the objective may be above the optimum, as in 1% or 0.01.",
            rich_help_panel=o.MODEL,
        ),
    ] = "1%",
    tolerance: Annotated[
        str,
        Option(
            metavar="SHARE",
            help="Share of a feature's range up to which a threshold is the same.",
            rich_help_panel=o.MODEL,
        ),
    ] = "0%",
    weights: Annotated[
        str,
        Option(
            metavar="FEATURE,THRESHOLD,LABEL",
            help="What another feature, another threshold, and another label of a leaf cost.",
            rich_help_panel=o.MODEL,
        ),
    ] = "1,1,1",
    front: Annotated[
        bool,
        Option("--front", help="Go on until a tree is as good as the best one.", rich_help_panel=o.MODEL),
    ] = False,
    solver_options: o.SolverOptions,
    run_options: o.RunOptions,
) -> None:
    """Bring the tree of a run up to date: the nearest tree that is good enough on new data, and what changes.

    The distance counts the nodes that split otherwise, and the leaves with another label. Each distance from 0 on is
    solved, until a tree is within a share of the best one; all share the time limit.

    Exit code: 0 a feasible, verified tree; 2 wrong usage or input; 3 no tree within the limits; 4 solver not available.

    Example: mipforest update last-year --data this-year.csv --within 1% --out this-year
    """
    share, same = o.share("--within", within), o.share("--tolerance", tolerance)
    costs = _weights(weights)
    from mipforest.runs import read_run

    found_run = read_run(run)
    tree = found_run.found_tree.tree
    with Progress(quiet=run_options.quiet) as progress, interruptible(progress.stopping) as interruption:
        from mipforest.updates import update as updated

        job = Job.of_run(found_run, solver_options.solver, solver_options.settings(), data)
        with run_folder(run_options) as folder:
            budget = job.settings.budget(progress.phase)
            loaded = job.with_columns_of(found_run.found_tree.encoding, job.load(budget), budget)
            interruption.solving(budget)
            problem = job.build(loaded.train, budget, progress)
            found = updated(
                problem,
                tree,
                share,
                tolerance=same,
                weights=costs,
                whole_front=front,
                solver=job.solver,
                settings=job.settings,
                on_progress=stoppable(progress, interruption),
                says=progress.phase,
            )
            interruption.writing()
            outcome = JobResult.of(job, loaded, found.nearest)
            outcome.result["update"] = entries = _as_json(found, str(run))
            failure = write_outcome(outcome, folder)
    if not (run_options.as_json or run_options.quiet):
        _print(found)
    end(outcome, folder, failure, run_options, {"update": entries})


def _weights(text: str) -> tuple[float, float, float]:
    try:
        feature, threshold, label = (float(part) for part in text.split(","))
    except ValueError:
        raise CommandError(
            f"--weights is {text!r}; give three numbers, of feature, threshold and label, as in 1,0.5,1"
        ) from None
    return feature, threshold, label


def _as_json(found: Update, run: str) -> dict[str, Any]:
    return {
        "from": run,
        "best": finite(found.best.objective),
        "limit": finite(found.limit),
        "distance": found.distance,
        "proven": found.is_proven,
        "changes": [change._asdict() for change in found.changes],
        "front": [
            {
                "distance": point.distance,
                "objective": finite(point.result.objective),
                "bound": finite(point.result.bound),
                "status": point.result.status,
            }
            for point in found.front
        ],
    }


def _print(found: Update) -> None:
    points = [(f"{point.distance:g}", point.result) for point in found.front]
    rows = [
        (distance, cell(finite(result.objective)), cell(finite(result.bound)), result.status)
        for distance, result in (*points, ("any", found.best))
    ]
    print_table(("distance", "objective", "bound", "status"), rows)
    print_text()
    proof = "" if found.is_proven else " (best found: a nearer one is not ruled out)"
    print_text(
        f"Distance {found.distance:g}{proof}, objective {cell(found.nearest.objective)} (at most {cell(found.limit)})"
    )
    for change in found.changes:
        print_text(f"  {change.words}")
    if not found.changes:
        print_note("the tree of the run stays as it is")
    print_text()
