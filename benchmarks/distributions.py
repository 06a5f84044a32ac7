"""Seconds of matrix solvers on drawn instances: which levels of the distributions are easy, medium and hard.

python benchmarks/distributions.py --level easy --sample 5
python benchmarks/distributions.py --level hard --sample 3 --solver highs oct ort
python benchmarks/distributions.py --page docs/benchmarks/distributions.md

Runs are added to ``instances/distributions/measured.csv``, which ``mipforest instances distributions`` reads; runs that
stand there are not repeated. One thread, no start.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

from markdown import measured_with, publish, table

from mipforest.instances import Library, build_problem, read_distribution, shipped
from mipforest.instances.distributions import Measured, read_measured, record_measured, summaries
from mipforest.instances.library import spec_of
from mipforest.settings import SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solving import solve

SOLVERS = ("highs", "scip")

#: Seed of the sample that is measured.
SEED = 0


def measure(name: str, level: str, number: int, solver: str, limit: float) -> Measured:
    """Solve one drawn instance; count the seconds of the processor."""
    spec = spec_of(name, read_distribution(name).draw(level, SEED, number))
    problem = build_problem(Library(Path()), spec).problem
    before = _processor_seconds()
    solution = solve(problem.model, solver, settings=SolveSettings(time_limit=limit, threads=1))
    return Measured(
        distribution=name,
        level=level,
        instance=spec.name,
        solver=solver,
        version=get_solver(solver).version(),
        seconds=round(_processor_seconds() - before, 2),
        time_limit=limit,
        status=str(solution.status),
    )


def _processor_seconds() -> float:
    """Return what this process and those that it waited for have taken of the processor."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(own.ru_utime + own.ru_stime for own in used)


def page(path: Path) -> str:
    """Return the page."""
    runs = read_measured(path)
    limits = sorted({own.time_limit for own in runs})
    rows = [
        (own.distribution, own.level, own.solver, str(own.runs), str(own.solved), own.words)
        for own in summaries(runs)
    ]
    head = ("distribution", "level", "solver", "instances", "solved", "median seconds")
    return "\n".join(
        [
            "# Distributions of instances",
            "",
            "How long matrix solvers take for instances that are drawn from the "
            "[distributions](../instances.md#distributions) of mipforest. Rerun with "
            "`python benchmarks/distributions.py --level easy --sample 5`, the same for the other levels, and "
            "`--page docs/benchmarks/distributions.md`.",
            "",
            measured_with(("mipforest", "highspy", "pyscipopt")),
            "",
            "Seconds are those of the processor, with one thread and without a start. A level is `easy` where the "
            "median of HiGHS is below 10 s, `medium` where it is 10 to 100 s, and `hard` where it is more. "
            f"Runs had limits of {', '.join(f'{limit:g}' for limit in limits)} s on the clock; `> 80` is a median run "
            "that had no optimum by then, after 80 s of the processor.",
            "",
            table(head, rows),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("distributions", nargs="*", help="names; all if not given")
    parser.add_argument("--level", default="easy")
    parser.add_argument("--sample", type=int, default=5, help="instances of each")
    parser.add_argument("--solver", nargs="*", default=SOLVERS)
    parser.add_argument("--limit", type=float, default=100.0, help="seconds on the clock for a run")
    parser.add_argument("--results", type=Path, default=Path("instances/distributions/measured.csv"))
    parser.add_argument("--page", type=Path, help="write the page, and measure nothing")
    given = parser.parse_args()
    if given.page is not None:
        publish(page(given.results), given.page)
        return
    for name in given.distributions or shipped():
        for solver in given.solver:
            for number in range(given.sample):
                done = {(own.instance, own.solver) for own in read_measured(given.results)}
                if (f"{name}-{given.level}-{SEED}-{number:05d}", solver) in done:
                    continue
                own = measure(name, given.level, number, solver, given.limit)
                record_measured(given.results, own)
                print(own.instance, solver, own.status, own.seconds, flush=True)


if __name__ == "__main__":
    main()
