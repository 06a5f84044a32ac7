"""One instance on a Dask cluster: two processes on this machine, and more workers simulated from a recorded search.

    python benchmarks/dask_cluster.py --data FOLDER --large FOLDER [--output docs/benchmarks/distributed.md]
        [--picture docs/pictures/distributed.svg]

The page is docs/benchmarks/distributed.md. The folders hold data sets as CSV files with a column ``target``: ``--data``
small ones, ``--large`` those of ConTree, compressed. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import heapq
import os
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter
from typing import Any

from markdown import add_output, measured_with, publish, table
from matplotlib.figure import Figure

from formulations.margot import Margot
from formulations.oct import Oct
from formulations.olct import Olct
from mipforest.data import load
from mipforest.problem.formulation import Formulation
from mipforest.problem.problem import Problem
from mipforest.problem.tree_search import get_search
from mipforest.searches import workers as module
from mipforest.searches.exact import search as exact_module
from mipforest.searches.workers import Shared, Workers
from mipforest.settings import DEFAULT_GAP

PACKAGES = ("numpy", "numba", "distributed")

#: Workers of the simulation; the first are also measured.
MEASURED, SIMULATED = (1, 2), (1, 2, 8, 64, 512)

#: How many times as long every step takes in the second simulation: a search of hours, as with more samples.
LONGER = 100.0

#: Empty tasks one after the other, and at once; bytes of a large result.
ROUND_TRIPS, AT_ONCE, LARGE_RESULT = 200, 2000, 20_000_000


@dataclass(frozen=True)
class Case:
    """A problem and who searches it."""

    name: str
    search: str
    formulation: Formulation
    depth: int
    file: str
    is_split: bool

    def problem(self) -> Problem:
        data = load(self.file, target="target", task="classification")
        if self.is_split:
            data, _ = data.split(0.2, seed=0)
        return self.formulation.build(data, self.depth, solver=get_search(self.search))


def cases(small: Path, large: Path) -> list[Case]:
    exact = [("magic", 3), ("raisin", 4), ("bank", 4), ("wilt", 4)]
    routing = [
        ("wholesale", Margot(C=1e3)),
        ("ionosphere", Margot(C=1e1)),
        ("heart", Olct(C=1.0, tangents="V0", refinement=False)),
    ]
    return [
        *(
            Case(
                f"{name}, OCT, depth {depth}",
                "exact-search",
                Oct(),
                depth,
                str(large / f"{name}.csv.gz"),
                False,
            )
            for name, depth in exact
        ),
        *(
            Case(f"{name}, {model.name}, depth 2", "routing", model, 2, str(small / f"{name}.csv"), True)
            for name, model in routing
        ),
    ]


# ---------------------------------------------------------------------- measured


@contextmanager
def cluster(number: int):
    """Start a cluster of processes with one thread each."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=number, threads_per_worker=1, processes=True, dashboard_address=":0", protocol="tcp"
    ) as running:
        yield running.scheduler_address


@dataclass
class Run:
    """A search, by what it took."""

    seconds: float
    objective: float
    bound: float
    nodes: int
    slices: int = 0
    busy: float = 0.0
    megabytes: float = 0.0

    @property
    def gap(self) -> str:
        """The gap that was left, in brackets; empty for the default gap."""
        gap = (self.objective - self.bound) / max(abs(self.objective), 1e-12)
        return f" ({100 * gap:.1f}% left)" if gap > 2 * DEFAULT_GAP else ""


def run(case: Case, limit: float, address: str | None = None) -> Run:
    """Search on one thread, or on a cluster; seconds are those of the solve, without loading or compiling."""
    seen: list[Workers] = []

    class Seen(Workers):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            seen.append(self)

    with replaced(Seen):
        result = case.problem().solve(case.search, time_limit=limit, threads=1, dask=address)
    if not seen:
        return Run(result.phase_seconds["solve"], result.objective, result.bound, result.solution.nodes)
    (workers,) = seen
    return Run(
        result.phase_seconds["solve"], result.objective, result.bound, result.solution.nodes, workers.slices,
        workers.seconds, workers.bytes / 1e6,
    )  # fmt: skip


@contextmanager
def replaced(kind: type):
    """Let searches hand their slices to another class."""
    module.Workers = exact_module.Workers = kind
    try:
        yield
    finally:
        module.Workers = exact_module.Workers = Workers


@dataclass(frozen=True)
class Costs:
    """What Dask costs: seconds of a round trip, of a task of many, of a message to all; bytes a second."""

    round_trip: float
    task: float
    message: float
    bandwidth: float


def costs_of_dask() -> Costs:
    """Measure empty tasks, messages and a large result on two processes."""
    from distributed import Client

    with cluster(2) as address, Client(address, set_as_default=False) as client:
        client.submit(int, 0, pure=False).result()
        trips = [timed(lambda: client.submit(int, 0, pure=False).result()) for _ in range(ROUND_TRIPS)]
        at_once = timed(lambda: client.gather([client.submit(int, 0, pure=False) for _ in range(AT_ONCE)]))
        messages = [timed(lambda: client.run(int, 0)) for _ in range(ROUND_TRIPS)]
        result = client.submit(bytes, LARGE_RESULT, pure=False)
        seconds = min(
            timed(lambda: client.submit(bytes, LARGE_RESULT, pure=False).result()) for _ in range(3)
        )
        del result
    return Costs(median(trips), at_once / AT_ONCE, median(messages), LARGE_RESULT / seconds)


def timed(call: Callable[[], object]) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


# ---------------------------------------------------------------------- recorded


@dataclass
class Step:
    """The evaluation of one open node: its bound, seconds, bytes, and the steps of nodes that it left open."""

    bound: float
    seconds: float
    bytes: int
    around: bool
    below: list[int] = field(default_factory=list)


class Recorder:
    """Workers in this process that take one open node at a time, and write down what becomes of it."""

    current: Recorder

    def __init__(self, _: str, kind: Any, problem: Any, budget: object, time_limit: float) -> None:
        kind.compile(problem, budget)
        self.deadline, self.at_once = monotonic() + time_limit, 1
        self.steps: list[Step] = []
        self.roots: list[int] = []
        self.seconds_here = 0.0
        self._of: dict[int, tuple[Any, int]] = {}
        self._shared, self._part = Shared(), kind(problem)
        self._ended_at = perf_counter()
        Recorder.current = self

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def share(self, _: int) -> tuple[int, float]:
        return 1, 0.0

    def submit(self, *work: Any, best: float = inf) -> Future[Any]:
        self._shared.learn(best)
        self.seconds_here += perf_counter() - self._ended_at
        around = len(work) == 7 and work[5] is not None
        item = work[1][0]
        bound, node = item if isinstance(item, tuple) else (item.bound, item)
        packed = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        began, future = perf_counter(), Future[Any]()
        found = self._part.run(self._shared, *pickle.loads(packed))
        step = Step(bound, perf_counter() - began, len(packed), around)
        self.steps.append(step)
        _, above = self._of.pop(id(node), (None, -1))
        (self.steps[above].below if above >= 0 else self.roots).append(len(self.steps) - 1)
        for left in found.open:
            below = left[1] if isinstance(left, tuple) else left
            self._of[id(below)] = below, len(self.steps) - 1
        future.set_result(found)
        self._ended_at = perf_counter()
        return future

    def result(self, future: Future[Any]) -> Any:
        return future.result()

    def tend(self, best: float) -> None:
        self._shared.learn(best)

    def stop(self) -> None:
        self._shared.learn(inf, stop=True)


def recorded(case: Case, limit: float) -> Recorder:
    with replaced(Recorder):
        case.problem().solve(case.search, time_limit=limit, dask="here")
    return Recorder.current


# ---------------------------------------------------------------------- simulated


@dataclass(frozen=True)
class Simulated:
    """Seconds of a simulated search, and shares of it: workers at work, the busiest process beside them."""

    seconds: float
    busy: float
    hub: float


def simulated(record: Recorder, costs: Costs, n_workers: int, longer: float = 1.0) -> Simulated:
    """Replay the steps of a search on many workers.

    The open nodes are handed out as :class:`Workers` does, the least bound first, and a slice goes on below its own
    for its seconds. What a step left open is open when its slice is back. A slice costs one process, scheduler and
    caller together, the seconds of a task and of its bytes, one after the other; and it travels for half a round trip
    each way. Steps are those of the recorded search: others, which are made before an incumbent is known, are left out.
    """
    rule = Workers.__new__(Workers)
    rule.slots = n_workers
    steps, waiting = record.steps, [(record.steps[i].bound, i) for i in record.roots]
    heapq.heapify(waiting)
    events: list[tuple[float, int, list[int]]] = []
    now = hub_free = hub_busy = worked = 0.0
    idle, number = n_workers, 0
    while waiting or events:
        while idle and waiting:
            count, seconds = rule.share(len(waiting))
            own = [heapq.heappop(waiting) for _ in range(min(count, len(waiting)))]
            spent, size = 0.0, sum(steps[i].bytes for _, i in own)
            heapq.heapify(own)
            while own and (spent == 0.0 or spent < seconds):
                _, i = heapq.heappop(own)
                spent += longer * steps[i].seconds
                for j in steps[i].below:
                    heapq.heappush(own, (steps[j].bound, j))
            left = [i for _, i in own]
            size += sum(steps[i].bytes for i in left)
            hub = costs.task + size / costs.bandwidth
            hub_free = max(hub_free, now) + hub
            hub_busy += hub
            heapq.heappush(events, (hub_free + costs.round_trip + spent, number, left))
            worked, idle, number = worked + spent, idle - 1, number + 1
        now, _, left = heapq.heappop(events)
        idle += 1
        for i in left:
            heapq.heappush(waiting, (steps[i].bound, i))
    return Simulated(now, worked / (n_workers * now), hub_busy / now)


def longest_chain(record: Recorder) -> float:
    """Return the seconds of the longest chain of steps, each of which waits for the one before."""
    least = [0.0] * len(record.steps)
    for i in reversed(range(len(record.steps))):
        step = record.steps[i]
        least[i] = step.seconds + max((least[j] for j in step.below), default=0.0)
    return max((least[i] for i in record.roots), default=0.0)


# ---------------------------------------------------------------------- page


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the small data sets")
    parser.add_argument("--large", type=Path, required=True, help="folder of ConTree's data sets")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of each search")
    parser.add_argument("--only", nargs="+", help="names of data sets")
    parser.add_argument("--picture", type=Path, help="SVG file of the simulated speed-up")
    add_output(parser)
    args = parser.parse_args()
    costs, measured, simulation, pictures = costs_of_dask(), [], [], []
    chosen = [
        case for case in cases(args.data, args.large) if not args.only or case.name.split(",")[0] in args.only
    ]
    for case in chosen:
        runs = [run(case, args.limit)]  # loads and compiles what the next one measures
        runs = [run(case, args.limit)]
        for number in MEASURED:
            with cluster(number) as address:
                runs.append(run(case, args.limit, address))
        measured.append(row_of(case, runs))
        print(" | ".join(measured[-1]), flush=True)
        record = recorded(case, args.limit)
        for longer in (1.0, LONGER):
            results = [simulated(record, costs, number, longer) for number in SIMULATED]
            simulation.append(simulated_row(case, record, results, longer))
            print(" | ".join(simulation[-1]), flush=True)
            pictures.append((case.name, longer, [results[0].seconds / each.seconds for each in results]))
    if args.picture is not None:
        draw(pictures, args.picture)
    publish(page(costs, measured, simulation), args.output)


def row_of(case: Case, runs: Sequence[Run]) -> list[str]:
    here, _, two = runs
    assert here.gap or two.gap or abs(two.objective - here.objective) <= 1e-3 * abs(here.objective)
    return [
        case.name,
        *(f"{each.seconds:.1f}{each.gap}" for each in runs),
        "-" if here.gap or two.gap else f"{here.seconds / two.seconds:.2f}",
        f"{here.nodes:,}",
        f"{two.nodes:,}",
        f"{two.slices}",
        f"{two.busy / max(two.slices, 1):.2f}",
        f"{two.megabytes:.1f}",
    ]


def simulated_row(case: Case, record: Recorder, results: Sequence[Simulated], longer: float) -> list[str]:
    total = longer * sum(step.seconds for step in record.steps)
    chain = longer * longest_chain(record)
    return [
        case.name,
        "1" if longer == 1.0 else f"{longer:g}",
        f"{len(record.steps):,}",
        f"{total:.1f}",
        f"{chain:.2f}",
        *(f"{each.seconds:.2f}" for each in results[2:]),
        *(f"{results[0].seconds / each.seconds:.1f}" for each in results[2:]),
        f"{100 * results[-1].busy:.0f}%",
        f"{100 * results[-1].hub:.0f}%",
    ]


def draw(lines: Sequence[tuple[str, float, list[float]]], file: Path) -> None:
    """Draw the simulated speed-up against the number of workers."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, longer in zip(axes, (1.0, LONGER), strict=True):
        axis.plot(SIMULATED, SIMULATED, "--", color="0.7", linewidth=0.8)
        for name, of, speed in lines:
            if of == longer:
                axis.plot(SIMULATED, speed, "o-", markersize=3, linewidth=0.8, label=name)
        title = "as recorded" if longer == 1.0 else f"steps {longer:g} times as long"
        axis.set(xscale="log", yscale="log", xlabel="workers", title=title)
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("speed-up, simulated")
    axes[0].legend(fontsize="x-small")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def page(costs: Costs, measured: Sequence[list[str]], simulation: Sequence[list[str]]) -> str:
    of_two = "data|one process, s|1 worker, s|2 workers, s|speed-up|nodes|nodes, 2 workers|slices|s each|MB"
    of_many = [
        *("data", "times", "steps", "s of all", "s of the longest chain"),
        *(f"{number} workers, s" for number in SIMULATED[2:]),
        *(f"speed-up, {number}" for number in SIMULATED[2:]),
        f"at work, {SIMULATED[-1]}",
        f"scheduler, {SIMULATED[-1]}",
    ]
    return f"""# One instance on a Dask cluster

[How to run one](../cluster.md). Seconds are those of the search, without loading and compiling.

## Two processes on two cores

One process with one thread, and a cluster on the same machine, whose scheduler and caller share its cores.

{table(of_two.split("|"), measured)}

Nodes differ, because a slice goes on below its own open nodes and receives a better incumbent with a delay. For
`routing`, the time at which a better incumbent is found changes the work by more than the number of workers does.

## More workers, simulated

Dask on this machine: {1e3 * costs.round_trip:.1f} ms from handing out an empty task to its result,
{1e3 * costs.task:.2f} ms for each of {AT_ONCE} tasks at once, {1e3 * costs.message:.1f} ms for a message to all
workers, {costs.bandwidth / 1e6:.0f} MB a second of results.

A search in one process takes one open node at a time. The benchmark records the seconds and the bytes of each step, and
the nodes that the step has left open. The simulation replays these steps on 8 to 512 workers:

- Open nodes are handed out by the rule of the search (`mipforest.searches.workers.Workers.share`), the least bound
  first. A slice goes on below its own nodes for its seconds. The nodes that it leaves open are open for others when it
  returns.
- Sending a slice takes a round trip. Scheduler and caller count as one process. It spends the time of one task and of
  the bytes on each slice, and serves one slice after the other.
- The search tree is the recorded one. Steps that are made before an incumbent is known, and would not have been made
  after it, are left out: the table of two workers shows how many there are. So for `routing` the simulation shows only
  the effect of the rule.

"times 100" is the same tree with steps that take 100 times as long, such as those of a search of hours.

{table(of_many, simulation)}

![Simulated speed-up against the number of workers](../pictures/distributed.svg)

**What limits it.** The first limit is the longest chain of steps, each of which waits for the one before: no number of
workers is faster. At the beginning there are as many open nodes as features, or one, and slices of a tenth of a second
double them. So a search of seconds has no work for hundreds of workers. In a large search the scheduler and the caller
are the next limit: 512 workers hand back {512 / module.SLICE:.0f} slices a second, which take
{512 / module.SLICE * costs.task:.2f} s of one process, beside their bytes.

{measured_with(PACKAGES)}
Run again: `python benchmarks/dask_cluster.py --data FOLDER --large FOLDER --output FILE --picture FILE`.
"""


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
