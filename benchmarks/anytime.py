"""Trees and bounds of ``exact-search`` over time, at depths four and five, beside the anytime search CA-ConTree.

    python benchmarks/anytime.py --large FOLDER [--python INTERPRETER] [--numbers FOLDER] --results FILE
                                 [--depths 4 5] [--threads 1] [--output docs/benchmarks/anytime.md]

``--large`` is the folder of ConTree's data sets, compressed, ``--numbers`` that of the small ones, for squared losses.
The interpreter is that of an environment with pytrees-rs. Either search has the last one of the seconds of
:data:`AFTER`, on the clock, reading excluded, sorting included. Every search is one line of the results file; what is
in it is not searched again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np

#: Seconds after which the page says what is known.
AFTER = (1.0, 10.0, 60.0)

#: Digits of a value on the page.
DIGITS = 6

#: Columns of a search.
OWN = ("data", "n x p", *(f"{seconds:g} s" for seconds in AFTER), "proven in")


def work(file: str, depth: int, limit: float) -> None:
    """Run CA-ConTree; print when each tree came, with its errors, and whether the last one is proven."""
    from pytrees import ConTreeClassifier

    arrays = np.load(file)
    events: list[tuple[float, float]] = []
    model = ConTreeClassifier(max_depth=depth, max_time=limit, sort_by_heuristic=True)

    def note(errors: float, seconds: float, status: str) -> None:
        del status
        events.append((seconds, float(errors)))

    began = monotonic()
    model.fit_anytime(arrays["X"], arrays["y"], note)
    seconds = monotonic() - began
    events.append((seconds, float((model.predict(arrays["X"]) != arrays["y"]).sum())))
    print(json.dumps({"events": events, "proven": model.status_ == "optimal", "seconds": seconds}))


def theirs(data: Any, depth: int, python: str) -> dict[str, Any]:
    """Run CA-ConTree in its environment."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, X=data.X_raw, y=data.y)
        command = [python, "-W", "ignore", __file__, "--worker", str(file), str(depth), str(AFTER[-1])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def ours(data: Any, depth: int, loss: str, threads: int) -> dict[str, Any]:
    """Run the search, from CART's tree on: when values and bounds came, and whether the last value is proven."""
    from exact_search import greedy, problem_of

    from mipforest.searches.exact.search import compile_kernels, exact_search
    from mipforest.time_budget import TimeBudget

    compile_kernels(TimeBudget(), problem_of(data, loss), depth)
    began = monotonic()
    problem = problem_of(data, loss)
    best = greedy(problem, data, depth)
    events, bounds = [(monotonic() - began, best)], [(0.0, 0.0)]

    def note(value: float, bound: float, nodes: int) -> None:
        del nodes
        now = monotonic() - began
        if value < events[-1][1]:
            events.append((now, value))
        if bound > bounds[-1][1]:
            bounds.append((now, bound))

    deadline = began + AFTER[-1]
    outcome = exact_search(problem, depth, best=best, deadline=deadline, on_progress=note, threads=threads)
    note(outcome.value, outcome.bound, 0)
    return {
        "events": events,
        "bounds": bounds,
        "proven": outcome.ended,
        "seconds": monotonic() - began,
    }


def known_after(events: Sequence[Sequence[float]], seconds: float) -> float:
    """Return the last value until a time; NaN where there is none."""
    values = [value for when, value in events if when <= seconds]
    return values[-1] if values else np.nan


def written(found: dict[str, Any], seconds: float) -> str:
    """Write the value after some seconds, and the bound where it is not proven by then."""
    value, bound = (known_after(found[name], seconds) for name in ("events", "bounds"))
    if found["proven"] and found["seconds"] <= seconds:
        return f"{value:.{DIGITS}g}"
    return f"{value:.{DIGITS}g} ({bound:.{DIGITS}g})"


def gap(found: dict[str, Any], seconds: float) -> float:
    """Return the gap after some seconds, in percent."""
    value, bound = (known_after(found[name], seconds) for name in ("events", "bounds"))
    return 0.0 if value <= 0 else 100.0 * (value - bound) / value


def solved_in(found: dict[str, Any]) -> str:
    return f"{found['seconds']:.1f}" if found["proven"] else ""


def row_of(data: Any, found: dict[str, Any]) -> list[str]:
    """Return the cells of a search, by :data:`OWN`."""
    return [
        data.name,
        f"{data.n} x {data.p}",
        *(written(found, seconds) for seconds in AFTER),
        solved_in(found),
    ]


def of_classes(runs: list[tuple[Any, dict[str, Any], dict[str, Any] | None]], depth: int) -> str:
    """Return the section of a depth."""
    from exact_search import primal_integral
    from markdown import table

    rows, not_worse, beside = [], [0 for _ in AFTER], 0
    for data, own, other in runs:
        row = row_of(data, own)
        if other is not None:
            best = min(own["events"][-1][1], other["events"][-1][1])
            assert not (own["proven"] and other["proven"]) or own["events"][-1][1] == other["events"][-1][1]
            row += [f"{known_after(other['events'], seconds):g}".replace("nan", "") for seconds in AFTER]
            row.append(solved_in(other))
            pairs = [
                tuple(primal_integral(side["events"], best, seconds) for side in (own, other))
                for seconds in AFTER
            ]
            row += [f"{left:.1f} / {right:.1f}" for left, right in pairs]
            not_worse = [
                count + (left <= right) for count, (left, right) in zip(not_worse, pairs, strict=True)
            ]
            beside += 1
        rows.append(row)
    header = [*OWN]
    if beside:
        header += [f"CA-ConTree {seconds:g} s" for seconds in AFTER] + ["proven in"]
        header += [f"integral {seconds:g} s" for seconds in AFTER]
    own = [one for _, one, _ in runs]
    text = f"Proven: {sum(one['proven'] for one in own)} of {len(own)}"
    text += f" (CA-ConTree: {sum(other['proven'] for *_, other in runs if other)})" if beside else ""
    text += f". A bound above 0, or a proof, after {AFTER[1]:g} s: "
    text += f"{sum(gap(one, AFTER[1]) < 100 for one in own)}. "
    text += "Sum of gaps after " + ", ".join(
        f"{seconds:g} s: {sum(gap(one, seconds) for one in own):.0f} %" for seconds in AFTER
    )
    if beside:
        text += ". The primal integral is no worse than CA-ConTree's after "
        text += ", ".join(
            f"{seconds:g} s on {count} of {beside}" for seconds, count in zip(AFTER, not_worse, strict=True)
        )
    return f"## Classes, depth {depth}\n\n{text}.\n\n{table(header, rows)}\n"


def of_numbers(runs: list[tuple[Any, dict[str, Any]]], depth: int) -> str:
    """Return the section of squared losses."""
    from markdown import table

    rows = [row_of(data, own) for data, own in runs]
    proven = sum(own["proven"] for _, own in runs)
    return (
        f"## Numbers, squared loss, depth {depth}\n\nProven: {proven} of {len(runs)}.\n\n{table(OWN, rows)}\n"
    )


def page(arguments: argparse.Namespace) -> str:
    """Search what is not known yet, and lay out the page."""
    from exact_search import LARGE_CLASSES, NUMBERS
    from markdown import measured_with, version_in
    from results import Results

    from mipforest.data import load

    results, threads, sections = Results(arguments.results), arguments.threads, []

    def own(data: Any, depth: int, loss: str) -> dict[str, Any]:
        found: dict[str, Any] = results.of(
            (data.name, depth, loss, threads, AFTER[-1]), lambda: ours(data, depth, loss, threads)
        )
        return found

    def other(data: Any, depth: int) -> dict[str, Any] | None:
        found: dict[str, Any] | None = results.of(
            (data.name, depth, "ca-contree", AFTER[-1]),
            lambda: theirs(data, depth, arguments.python),
            wanted=arguments.python is not None,
        )
        return found

    for depth in arguments.depths:
        runs = []
        for name in LARGE_CLASSES:
            file = arguments.large / f"{name}.csv.gz"
            data = load(str(file), target="target", task="classification")
            runs.append((data, own(data, depth, "classes"), other(data, depth)))
        sections.append(of_classes(runs, depth))
    if arguments.numbers is not None:
        sets = [
            load(str(arguments.numbers / f"{name}.csv"), target="target", task="regression")
            for name in NUMBERS
        ]
        depth = arguments.depths[0]
        sections.append(of_numbers([(data, own(data, depth, "squared")) for data in sets], depth))
    beside = ""
    if arguments.python is not None:
        beside = f" pytrees-rs {version_in(arguments.python, 'pytrees-rs')}."
    return HEAD.format(
        limit=AFTER[-1],
        threads="one thread" if threads == 1 else f"{threads} threads",
        sections="\n".join(sections),
        measured=measured_with(["mipforest", "numpy", "numba"]),
        beside=beside,
    )


HEAD = """# Trees and bounds over time

What `exact-search` knows after some seconds on the clock, with {threads}: the value of its best tree and, in brackets,
the lower bound where the tree is not proven by then. It begins with CART's tree. At most {limit:g} s each; sorting is
included, reading and compiling are not. CA-ConTree (`ConTreeClassifier.fit_anytime` of `pytrees-rs`, splits in Gini's
order, one thread) finds trees of the same thresholds and gives no bound. *Integral*: the mean over the seconds of the
gap to the best tree of either, in percent, as `exact-search` / CA-ConTree; 100 before there is a tree.

{sections}
{measured}{beside}
Run again:
`python benchmarks/anytime.py --large FOLDER --python INTERPRETER --numbers FOLDER --results FILE --output FILE`.
"""


def main() -> None:
    """Run the benchmark, or CA-ConTree on one set."""
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
        return
    from markdown import add_output, publish

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--large", type=Path, required=True, help="folder with ConTree's compressed CSV files"
    )
    parser.add_argument("--python", help="interpreter of an environment with pytrees-rs")
    parser.add_argument("--numbers", type=Path, help="folder with the small CSV files, for squared losses")
    parser.add_argument("--results", type=Path, required=True, help="file of searches, read and added to")
    parser.add_argument("--depths", type=int, nargs="+", default=[4, 5], help="depths for classes")
    parser.add_argument("--threads", type=int, default=1, help="threads of exact-search")
    add_output(parser)
    arguments = parser.parse_args()
    publish(page(arguments), arguments.output)


if __name__ == "__main__":
    main()
