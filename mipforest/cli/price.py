"""``mipforest price``: the optimum for each limit of a constraint, as a table and a picture."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from mipforest.cli import options as o
from mipforest.cli.constraint_options import ConstraintOptions
from mipforest.cli.early import refuse_unknown
from mipforest.cli.errors import NO_ANSWER, CommandError
from mipforest.cli.output import cell, print_json, print_note, print_table
from mipforest.cli.pictures import check_picture
from mipforest.cli.progress import Progress, stoppable
from mipforest.cli.solve import Job
from mipforest.errors import did_you_mean
from mipforest.formatting import finite
from mipforest.interruption import interruptible

if TYPE_CHECKING:
    from mipforest.problem.constraints import Constraint
    from mipforest.problem.result import Result

#: Size of the picture in inches.
SIZE = (6.4, 3.6)


@o.grouped
def price(
    *,
    model: o.ModelName,
    model_options: o.ModelOptions,
    data: o.DataName,
    data_options: o.DataOptions,
    vary: Annotated[
        str,
        Option(
            "--vary",
            metavar="CONSTRAINT",
            help="The constraint whose limit varies, as its option without the limit: 'recall yes', 'parity sex', "
            "'limit-label drug', at-most-features, min-leaf.",
            rich_help_panel=ConstraintOptions.panel,
        ),
    ],
    limits: Annotated[
        str,
        Option(
            "--limits",
            metavar="FROM:TO:STEP|LIST",
            help="Its limits, as in 80%:100%:5% or 1,2,3.",
            rich_help_panel=ConstraintOptions.panel,
        ),
    ],
    constraint_options: ConstraintOptions,
    solver_options: o.SolverOptions,
    output: Annotated[
        Path | None, o.output_file("A picture of objective and bound by limit: .svg, .png or .pdf.")
    ] = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Solve for each limit of a constraint: what one more point of it costs, proven point by point.

    All points share the time limit, and each begins with the tree of the one before.

    Exit code: 0 each limit has a tree, or is proven to have none; 2 wrong usage or input; 3 otherwise.

    Example: mipforest price --model oct --depth 2 --data breast_cancer --vary "recall malignant" --limits 90%:100%:2%
    """
    refuse_unknown(model, data)
    points = constraints_at(vary, limits)
    if output is not None:
        check_picture(output)
    with Progress(quiet=quiet) as progress, interruptible(progress.stopping) as interruption:
        from mipforest.problem.prices import priced_at

        source = data_options.source(data, model=model, seed=solver_options.seed)
        job = Job.of(
            model,
            model_options,
            source,
            solver_options.solver,
            solver_options.settings(),
            constraints=(*constraint_options.read(), points[0]),
        )
        budget = job.settings.budget(progress.phase)
        loaded = job.load(budget)
        interruption.solving(budget)
        problem = job.build(loaded.train, budget, progress)
        found = priced_at(
            replace(problem, constraints=problem.constraints[:-1]),
            source.with_groups(points, loaded.train),
            budget.remaining,
            solver=job.solver,
            settings=job.settings,
            on_progress=stoppable(progress, interruption),
            says=progress.phase,
        )
        interruption.writing()
        if output is not None:
            draw(output, vary, points, found)
    rows = [_row(point, result) for point, result in zip(points, found, strict=False)]
    answered = all(row["status"] == "infeasible" or row["objective"] is not None for row in rows)
    code = 0 if answered and len(rows) == len(points) else NO_ANSWER
    if as_json:
        print_json({"vary": vary, "points": rows, "exit_code": code})
    else:
        columns = ("limit", "objective", "bound", "status")
        print_table(columns, [tuple(cell(row[name]) for name in columns) for row in rows])
        if output is not None:
            print_note(f"wrote {output}")
    raise Exit(code)


def constraints_at(vary: str, limits: str) -> list[Constraint]:
    """Read a constraint without its limit, and its limits.

    Raises
    ------
    CommandError, DataError
        If they are none.
    """
    from mipforest.problem.constraints import KINDS

    kind, _, name = vary.strip().removeprefix("--").partition(" ")
    if kind not in KINDS:
        known = ", ".join(KINDS)
        raise CommandError(
            f"--vary: there is no constraint {kind!r}{did_you_mean(kind, KINDS)}; there are {known}"
        )
    found: list[Constraint] = []
    for text in texts_of(limits):
        found += KINDS[kind].parse(f"{name.strip()}={text}" if name.strip() else text)
    return found


def texts_of(limits: str) -> list[str]:
    """Return limits as they are written after an option: of a list, or from a first to a last one by steps."""
    parts = limits.split(":")
    if len(parts) == 1:
        return [text.strip() for text in limits.split(",") if text.strip()]
    sign = "%" if all(part.strip().endswith("%") for part in parts) else ""
    try:
        low, high, step = (float(part.strip().removesuffix(sign or "%")) for part in parts)
    except ValueError:
        raise CommandError(
            f"--limits is {limits!r}; write FROM:TO:STEP, as in 80%:100%:5%, or a list, 1,2,3"
        ) from None
    if step <= 0.0 or high < low:
        raise CommandError(f"--limits is {limits!r}: from {low:g} to {high:g} there is no step of {step:g}")
    number = int((high - low) / step + 1e-9) + 1
    return [f"{low + k * step:.12g}{sign}" for k in range(number)]


def _row(point: Constraint, result: Result) -> dict[str, Any]:
    return {
        "limit": point.words,
        "objective": None if result.tree is None else finite(result.objective),
        "bound": finite(result.bound),
        "status": result.status,
        "constraints": [own.to_dict() for own in result.constraints],
    }


def draw(path: Path, vary: str, points: list[Constraint], found: list[Result]) -> None:
    """Draw objective and bound by limit; what lies between is open."""
    from matplotlib.figure import Figure

    from mipforest.atomic import atomic_write
    from mipforest.formatting import printable

    figure = Figure(SIZE, layout="constrained")
    axes = figure.subplots()
    at = range(len(found))
    value = [result.objective if result.tree is not None else nan for result in found]
    bound = [result.bound if isfinite(result.bound) else nan for result in found]
    axes.fill_between(at, bound, value, color="#c8c8c8", label="open")
    axes.plot(at, value, "o-", color="#0072b2", label="best tree")
    axes.plot(at, bound, "_", color="#d55e00", markersize=12, label="bound")
    axes.set_xticks(at, [printable(point.words.rpartition("=")[2]) for point in points[: len(found)]])
    axes.set_xlabel(printable(vary))
    axes.set_ylabel("objective")
    axes.legend(frameon=False)
    with atomic_write(path) as file:
        figure.savefig(
            file, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None
        )
