"""Seconds of solvers on drawn instances: which levels of the distributions are easy, medium and hard.

python benchmarks/distributions.py --level easy --sample 5
python benchmarks/distributions.py oct ort --level hard --sample 3 --solver highs auto
python benchmarks/distributions.py --page docs/benchmarks/distributions.md

Runs are added to ``instances/distributions/measured.csv``, which ``mipforest instances distributions`` reads; runs that
stand there are not repeated. One thread, no start. Each run has a process of its own, which ends at the limit: seconds
and limit are those of the processor, so that other processes of the machine do not count.
"""

from __future__ import annotations

import argparse
import math
import resource
import signal
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown import measured_with, publish, table
from matplotlib import rc_context

from mipforest.instances import (
    Generation,
    Library,
    build_problem,
    generate,
    read_distribution,
    scores,
    shipped,
)
from mipforest.instances.distributions import Measured, Summary, read_measured, record_measured, summaries
from mipforest.instances.generate import PARTS
from mipforest.instances.library import InstanceSpec, spec_of
from mipforest.instances.scores import STATISTICS, Scores
from mipforest.problem.tree_search import AUTO
from mipforest.settings import SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.solution import Status
from mipforest.solving import solve
from mipforest.trees.plot import new_figure, save_figure

#: Levels by hardness, and the seconds between two of them.
LEVELS, BOUNDS = ("easy", "medium", "hard"), (10, 100)

#: Names and marks of the matrix solvers.
MARKS = {"highs": ("HiGHS", "o"), "scip": ("SCIP", "s")}

PICTURE = "distributions.svg"

#: Instances of a sample that is scored.
SAMPLE = 20

#: Seed of the sample that is measured.
SEED = 0


def measure(name: str, level: str, number: int, solver: str, limit: float) -> Measured:
    """Solve one drawn instance in a process of its own, which ends when it has taken ``limit`` seconds."""
    distribution = read_distribution(name)
    spec = spec_of(name, distribution.draw(level, SEED, number))
    spawned = get_context("spawn")
    read, write = spawned.Pipe(duplex=False)
    process = spawned.Process(target=_solve, args=(spec, solver, limit, write))
    process.start()
    write.close()
    try:
        seconds, status = read.recv()
    except EOFError:
        process.join()
        if process.exitcode != -signal.SIGXCPU:
            raise RuntimeError(f"{solver} on {spec.name} ended with code {process.exitcode}") from None
        seconds, status = limit, str(Status.TIME_LIMIT)
    process.join()
    return Measured(
        distribution=distribution.name,
        level=level,
        instance=spec.name,
        solver=solver,
        version=version("mipforest") if solver == AUTO else get_solver(solver).version(),
        seconds=seconds,
        time_limit=limit,
        status=status,
    )


def _solve(spec: InstanceSpec, solver: str, limit: float, answer: Connection) -> None:
    """Solve an instance, and send seconds and status unless the limit comes first."""
    problem = build_problem(Library(Path()), spec).problem
    before = _processor_seconds()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(before + limit), resource.RLIM_INFINITY))
    settings = SolveSettings(threads=1)
    solution = (
        problem.solve(solver, settings=settings)
        if solver == AUTO
        else solve(problem.model, solver, settings=settings)
    )
    seconds = _processor_seconds() - before
    # The limit ends a solver that has a process of its own, and not this one.
    status = Status.TIME_LIMIT if seconds >= limit else solution.status
    answer.send((round(seconds, 2), str(status)))


def _processor_seconds() -> float:
    """Return what this process, and those that it has waited for, have taken of the processor."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(own.ru_utime + own.ru_stime for own in used)


def draw(medians: Sequence[Summary], file: Path) -> None:
    """Draw the medians of all levels, one line per distribution."""
    figure = new_figure(7.0, 3.8, layout="constrained")
    axes = figure.subplots()
    names = sorted({own.distribution for own in medians}, reverse=True)
    for k, level in enumerate(LEVELS):
        for solver, (called, marker) in MARKS.items():
            some = [own for own in medians if (own.level, own.solver) == (level, solver)]
            for at_limit in (False, True):
                shown = [own for own in some if own.at_limit == at_limit]
                axes.plot(
                    [own.median for own in shown],
                    [names.index(own.distribution) for own in shown],
                    ">" if at_limit else marker,
                    markerfacecolor=f"C{k}" if solver == "highs" else "none",
                    markeredgecolor=f"C{k}",
                    label=f"{level}, {called}{', no optimum by then' * at_limit}" if shown else None,
                )
    for bound in BOUNDS:
        axes.axvline(bound, color="0.7", linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.tick_params(left=False, bottom=False)
    axes.set_xlabel("median processor seconds")
    axes.set_yticks(range(len(names)), names)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    # One name of a font at each text keeps the file small.
    with rc_context({"font.sans-serif": ["DejaVu Sans"]}):
        save_figure(figure, file)


def sampled(names: Sequence[str], folder: Path) -> dict[str, Scores]:
    """Return the scores of the training and the test part of a sample of each distribution.

    Samples are drawn into ``folder``, and built with a start; what is there is kept.
    """
    found = {}
    for name in names:
        given = Generation(
            distribution=read_distribution(name),
            level=LEVELS[0],
            seed=SEED,
            n=SAMPLE,
            folder=folder / name,
            test_share=0.5,
            solvers=(),
        )
        generate(given)
        train, test = (Library(given.folder / part) for part in PARTS)
        found[name] = scores(train, test)
    return found


def score_table(found: Mapping[str, Scores]) -> str:
    """Return the table of distances by statistic, with the similarity of both parts."""
    distances = [
        (statistic.replace("_", " "), *(f"{own.divergences[k].divergence:.2f}" for own in found.values()))
        for k, statistic in enumerate(STATISTICS)
    ]
    whole = [
        (what, *(f"{getattr(own, attribute):.2f}" for own in found.values()))
        for what, attribute in (("similarity", "similarity"), ("the same by chance", "similarity_by_chance"))
    ]
    return table(("statistic", *found), [*distances, *whole])


def page(path: Path, names: Sequence[str], pictures: Path, samples: Path) -> str:
    """Return the page, with scores of the distributions that are named, and draw its picture."""
    runs = read_measured(path)
    medians = summaries(runs)
    draw([own for own in medians if own.solver in MARKS], pictures / PICTURE)
    rows = [
        (own.distribution, own.level, own.solver, str(own.runs), str(own.solved), own.words)
        for own in sorted(medians, key=lambda own: (own.distribution, LEVELS.index(own.level), own.solver))
    ]
    head = ("distribution", "level", "solver", "instances", "solved", "median seconds")
    left_out = ", ".join(f"`{name}`" for name in shipped() if name not in names) or "none"
    return "\n\n".join(
        [
            "# Distributions of instances",
            "How long solvers take for instances that are drawn from the "
            "[distributions](../instances.md#distributions) of mipforest, and how alike two samples are. Rerun with "
            "`python benchmarks/distributions.py --level easy --sample 5`, the same for the other levels, and "
            "`--page docs/benchmarks/distributions.md`.",
            measured_with(("mipforest", "highspy", "pyscipopt")),
            "## Hardness by level",
            "Seconds are those of the processor, with one thread and without a start. A level is `easy` where the "
            f"median of HiGHS is below {BOUNDS[0]} s, `medium` where it is {BOUNDS[0]} to {BOUNDS[1]} s, and `hard` "
            "where it is more. `>` is a median run that had no optimum by then. `auto` is what `mipforest solve` "
            "takes, which compiles at its first instance. Two runs that lie within a level decide the median of three, "
            "so that some levels have no third one: the lower one of both stands below. Sizes were tried until these "
            "very instances were of the level: single draws of a level spread, from a few seconds to beyond the limit, "
            "and three others may have another median.",
            f"![Median seconds of HiGHS and SCIP by distribution and level](../pictures/{PICTURE})",
            "Lines are the bounds between levels.",
            table(head, rows),
            "## Scores of samples",
            f"{SAMPLE} instances of the level `easy`, every second one in the test part; scores are those of "
            "`mipforest instances scores`: the Jensen-Shannon divergence of histograms, 0 is alike, 1 has nothing in "
            "common. *Similarity* is 1 minus the mean divergence of both parts, beside that of random divisions of the "
            "same instances: a part represents the other where both are about equal. Left out, by naming the others: "
            f"{left_out}.",
            score_table(sampled(names, samples)) + "\n",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "distributions", nargs="*", help="names, also of those that are scored; all if not given"
    )
    parser.add_argument("--level", default="easy")
    parser.add_argument("--sample", type=int, default=5, help="instances of each")
    parser.add_argument("--solver", nargs="*", default=list(MARKS))
    parser.add_argument("--limit", type=float, default=100.0, help="seconds of the processor for a run")
    parser.add_argument("--results", type=Path, default=Path("instances/distributions/measured.csv"))
    parser.add_argument("--page", type=Path, help="write the page, and measure nothing")
    parser.add_argument(
        "--pictures", type=Path, default=Path("docs/pictures"), help="folder of the page's picture"
    )
    parser.add_argument(
        "--samples", type=Path, help="folder of the scored samples, where what is there is kept"
    )
    given = parser.parse_args()
    if given.page is not None:
        names = given.distributions or list(shipped())
        with TemporaryDirectory() as folder:
            publish(page(given.results, names, given.pictures, given.samples or Path(folder)), given.page)
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
