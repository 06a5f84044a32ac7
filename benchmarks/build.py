"""Time and memory to build two models, variant ``paper``, in several ways, and time to write one as MPS.

MARGOT: mipforest, arrays filled by hand, Pyomo. OCT: mipforest, arrays filled by hand. Every build is measured
in a process of its own, after a small build that loads whatever is loaded lazily; the ways take turns. Memory
is the growth of the process's peak during the build. Before anything is timed, the models are compared.

    python benchmarks/build.py --model all --repeats 9 --output docs/benchmarks/build.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import median
from typing import Any

from build_tasks import compare, one_build, write_pairs
from markdown import add_output, measured_with, publish, table

#: Ways to build each model, and most repetitions of each (Pyomo takes its time).
WAYS = {
    "margot": {"by hand": 1000, "mipforest": 1000, "Pyomo": 2},
    "oct": {"by hand": 1000, "mipforest": 1000},
}

#: Samples, features and depth of each model, unless given.
SIZES = {"margot": (5000, 30, 3), "oct": (2000, 30, 4)}

#: What was asked of the ratios.
LIMITS = {"margot": 4.0, "memory": 2.5, "pyomo": 10.0, "write": 1.0, "oct": 2.0}

TASKS = {"build": one_build, "write": write_pairs, "compare": compare}

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "highspy", "pyomo")

Builds = dict[str, list[dict[str, float]]]


def main() -> None:
    arguments = parse()
    if arguments.task != "report":
        print(json.dumps(TASKS[arguments.task](arguments)))
        return
    models = tuple(WAYS) if arguments.model == "all" else (arguments.model,)
    sections = [SECTIONS[model](sized(arguments, model)) for model in models]
    options = [f"--model {arguments.model}"]
    options += [f"--{name} {value}" for name in ("n", "p", "depth") if (value := getattr(arguments, name))]
    options += [f"--repeats {arguments.repeats}"]
    again = f"Run again: `python benchmarks/build.py {' '.join(options)}`.\n"
    notes = f"{measured_with(PACKAGES)}\n{again}"
    publish("\n".join(["# Building a model\n", HOW_MEASURED, *sections, notes]), arguments.output)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=(*WAYS, "all"), default="all")
    parser.add_argument("--n", type=int, help="samples (margot 5000, oct 2000)")
    parser.add_argument("--p", type=int, help="features (30)")
    parser.add_argument("--depth", type=int, help="levels of branch nodes (margot 3, oct 4)")
    parser.add_argument("--repeats", type=int, default=7, help="repetitions of every measurement")
    parser.add_argument("--task", choices=("report", *TASKS), default="report", help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=tuple(WAYS["margot"]), help=argparse.SUPPRESS)
    add_output(parser)
    return parser.parse_args()


def sized(arguments: argparse.Namespace, model: str) -> argparse.Namespace:
    """Give the arguments for one model, with its own sizes where none are given."""
    n, p, depth = SIZES[model]
    return argparse.Namespace(
        model=model,
        n=arguments.n or n,
        p=arguments.p or p,
        depth=arguments.depth or depth,
        repeats=arguments.repeats,
    )


# ---------------------------------------------------------------------- fresh processes


def builds_in_turns(arguments: argparse.Namespace) -> Builds:
    """Measure all ways to build a model, in turns."""
    ways = WAYS[arguments.model]
    builds: Builds = {way: [] for way in ways}
    for k in range(arguments.repeats):
        due = [way for way, most in ways.items() if k < most]
        for way in reversed(due) if k % 2 else due:
            builds[way].append(run(arguments, "build", way))
    return builds


def run(arguments: argparse.Namespace, task: str, way: str | None = None) -> Any:
    """Run a task in a fresh process."""
    command = [sys.executable, __file__, "--task", task]
    for name in ("model", "n", "p", "depth", "repeats"):
        command += [f"--{name}", str(getattr(arguments, name))]
    done = subprocess.run([*command, *(("--way", way) if way else ())], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


# ---------------------------------------------------------------------- the page

HOW_MEASURED = """\
Seconds and memory are medians over fresh processes that took turns. "Peak MB" is the growth of the process's
peak memory during the build, "MB before" the process with its imports. Every build ends with the model in
HiGHS, except Pyomo's.
"""


def margot_section(arguments: argparse.Namespace) -> str:
    size = run(arguments, "compare")
    builds = builds_in_turns(arguments)
    written = run(arguments, "write")
    seconds, megabytes = medians(builds, "seconds"), medians(builds, "megabytes")
    times, sizes = written["seconds"], written["megabytes"]
    write_rows = [
        (name, f"{median(times[name]):.2f}", spread(times[name]), f"{sizes[name]:.0f}")
        for name in ("mipforest", "HiGHS")
    ]
    write_ratio = median(a / b for a, b in zip(times["mipforest"], times["HiGHS"], strict=True))
    checks = [
        verdict(
            "build, times the arrays by hand", seconds["mipforest"] / seconds["by hand"], LIMITS["margot"]
        ),
        verdict(
            "peak memory, times the arrays by hand",
            megabytes["mipforest"] / megabytes["by hand"],
            LIMITS["memory"],
        ),
        verdict(
            "Pyomo, times mipforest", seconds["Pyomo"] / seconds["mipforest"], LIMITS["pyomo"], at_least=True
        ),
        verdict("MPS, times HiGHS' writer (median of pairs)", write_ratio, LIMITS["write"]),
    ]
    return f"""## MARGOT

{what_is_built(arguments, size)}
All three ways give the same matrix and sides (compared entry by entry); mipforest and the arrays by hand also
agree in every other number that HiGHS holds.

- **by hand**: numpy fills the CSR arrays of HiGHS' positional `passModel`, in about a hundred lines for this
  one model.
- **mipforest**: from `X` and `y` to the model in HiGHS: `Dataset`, `Margot.declare`, `Model.matrix`, load.
- **Pyomo**: its model object only, one `LinearExpression` per row; not yet in a solver.

{build_table(builds)}

{arguments.repeats} builds each, Pyomo {len(builds["Pyomo"])}.

{table(("write .mps", "seconds", "range", "file MB"), write_rows)}

Both write the same model under the same names, in turns. HiGHS keeps 15 digits; mipforest's file reads back
exactly.

{table(("ratio", "measured", "wanted"), checks)}
"""


def oct_section(arguments: argparse.Namespace) -> str:
    size = run(arguments, "compare")
    builds = builds_in_turns(arguments)
    arrays, seconds = medians(builds, "arrays"), medians(builds, "seconds")
    step_rows = [
        (
            way,
            f"{arrays[way]:.3f}",
            spread([b["arrays"] for b in builds[way]]),
            f"{arrays[way] / arrays['by hand']:.1f}",
        )
        for way in builds
    ]
    checks = [
        verdict(
            "build until in HiGHS, times the arrays by hand",
            seconds["mipforest"] / seconds["by hand"],
            LIMITS["oct"],
        )
    ]
    return f"""## OCT

{what_is_built(arguments, size)}
Both ways give HiGHS the same numbers: matrix, sides, bounds, costs and integrality (compared entry by entry).

- **by hand**: numpy fills the CSR arrays, family of rows by family of rows, in about 190 lines for this one
  model; then HiGHS' positional `passModel`.
- **mipforest**: from `X` and `y` to the model in HiGHS: `Dataset`, `Oct.declare`, `Model.matrix`, load.

{build_table(builds)}

{arguments.repeats} builds each. The part of these seconds until the flat arrays are filled, before HiGHS takes
them over:

{table(("arrays only", "seconds", "range", "ratio"), step_rows)}

{table(("ratio", "measured", "wanted"), checks)}
"""


SECTIONS = {"margot": margot_section, "oct": oct_section}


def what_is_built(arguments: argparse.Namespace, size: dict[str, int]) -> str:
    return (
        f"Variant `paper`: {arguments.n} samples, {arguments.p} features, depth {arguments.depth}, which makes\n"
        f"{size['columns']:,} columns, {size['rows']:,} rows and {size['nonzeros']:,} nonzeros."
    )


def build_table(builds: Builds) -> str:
    seconds, megabytes, imports = (medians(builds, key) for key in ("seconds", "megabytes", "imports"))
    rows = [
        (
            way,
            f"{seconds[way]:.3f}",
            spread([b["seconds"] for b in builds[way]]),
            f"{seconds[way] / seconds['by hand']:.1f}",
            f"{megabytes[way]:.0f}",
            f"{megabytes[way] / megabytes['by hand']:.1f}",
            f"{imports[way]:.0f}",
        )
        for way in builds
    ]
    return table(("build", "seconds", "range", "ratio", "peak MB", "ratio", "MB before"), rows)


def medians(builds: Builds, key: str) -> dict[str, float]:
    return {way: median(build[key] for build in taken) for way, taken in builds.items()}


def spread(values: list[float]) -> str:
    return f"{min(values):.2f}-{max(values):.2f}"


def verdict(what: str, ratio: float, limit: float, *, at_least: bool = False) -> tuple[str, str, str]:
    met = ratio >= limit if at_least else ratio <= limit
    return what, f"{ratio:.2f}", f"{'>=' if at_least else '<='} {limit:g}{'' if met else ' (missed)'}"


if __name__ == "__main__":
    main()
