"""Time and memory to build MARGOT (variant ``paper``) in three ways, and time to write it as MPS.

The ways: mipforest, arrays filled by hand, Pyomo. Every build is measured in a process of its own, after a
small build that loads whatever is loaded lazily; the ways take turns. Memory is the growth of the process's
peak during the build. Before anything is timed, the models are compared.

    python benchmarks/build.py --n 5000 --p 30 --depth 3 --repeats 7 --output docs/benchmarks/build.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from markdown import add_output, measured_with, publish, table

#: Ways to build, and most repetitions of each (Pyomo takes its time).
WAYS = {"by hand": 1000, "mipforest": 1000, "Pyomo": 2}

#: What was asked of the ratios.
LIMITS = {"time": 4.0, "memory": 2.5, "pyomo": 10.0, "write": 1.0}

#: Depth and samples of the build that loads everything.
WARM_UP = (2, 20)

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "highspy", "pyomo")


def main() -> None:
    arguments = parse()
    if arguments.task == "build":
        print(json.dumps(one_build(arguments.way, arguments)))
    elif arguments.task == "write":
        print(json.dumps(write_pairs(arguments)))
    elif arguments.task == "compare":
        print(json.dumps(compare(arguments)))
    else:
        report(arguments)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=5000, help="samples")
    parser.add_argument("--p", type=int, default=30, help="features")
    parser.add_argument("--depth", type=int, default=3, help="levels of branch nodes")
    parser.add_argument("--repeats", type=int, default=7, help="repetitions of every measurement")
    parser.add_argument("--task", choices=("report", "build", "write", "compare"), default="report")
    parser.add_argument("--way", choices=tuple(WAYS), help="with --task build")
    add_output(parser)
    return parser.parse_args()


# ---------------------------------------------------------------------- measured in processes of their own


def one_build(way: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Seconds, and growth of the peak memory in MB, of one build."""
    from resource import RUSAGE_SELF, getrusage
    from time import perf_counter

    import margot_builders

    build = {
        "by hand": margot_builders.by_hand,
        "mipforest": margot_builders.with_mipforest,
        "Pyomo": margot_builders.with_pyomo,
    }[way]
    depth, n = WARM_UP
    build(*margot_builders.samples(n, arguments.p), depth)
    X, y = margot_builders.samples(arguments.n, arguments.p)
    unit = 1e6 if sys.platform == "darwin" else 1e3  # ru_maxrss is in bytes there, else in kilobytes
    before = getrusage(RUSAGE_SELF).ru_maxrss
    began = perf_counter()
    model = build(X, y, arguments.depth)
    seconds = perf_counter() - began
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    del model
    return {"seconds": seconds, "megabytes": (peak - before) / unit, "imports": before / unit}


def write_pairs(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds of our writer and of HiGHS', in turns, for the same model under the same names."""
    from dataclasses import replace
    from tempfile import TemporaryDirectory
    from time import perf_counter

    import margot_builders

    from mipforest.files import write_mps

    X, y = margot_builders.samples(arguments.n, arguments.p)
    session, form = margot_builders.with_mipforest(X, y, arguments.depth)
    highs = session.highs
    for j, name in enumerate(form.column_names):
        highs.passColName(j, name)
    for i, name in enumerate(form.row_names):
        highs.passRowName(i, name)
    times: dict[str, list[float]] = {"mipforest": [], "HiGHS": []}
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.mps" for name in times}
        writers = {
            # A fresh form each time: names that were made before would be a gift.
            "mipforest": lambda: write_mps(replace(form), paths["mipforest"]),
            "HiGHS": lambda: highs.writeModel(str(paths["HiGHS"])),
        }
        for write in writers.values():
            write()
        for k in range(arguments.repeats):
            for name in sorted(writers, reverse=bool(k % 2)):
                began = perf_counter()
                writers[name]()
                times[name].append(perf_counter() - began)
        sizes = {name: path.stat().st_size / 1e6 for name, path in paths.items()}
    return {"seconds": times, "megabytes": sizes}


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    """Size of the model; fails if the ways disagree in any number."""
    import margot_builders
    import numpy as np

    X, y = margot_builders.samples(arguments.n, arguments.p)
    session, form = margot_builders.with_mipforest(X, y, arguments.depth)
    ours, by_hand = session.highs.getModel(), margot_builders.by_hand(X, y, arguments.depth).getModel()
    for a, b, fields in (
        (ours.lp_, by_hand.lp_, ("col_cost_", "col_lower_", "col_upper_", "row_lower_", "row_upper_")),
        (ours.lp_, by_hand.lp_, ("integrality_",)),
        (ours.lp_.a_matrix_, by_hand.lp_.a_matrix_, ("format_", "start_", "index_", "value_")),
        (ours.hessian_, by_hand.hessian_, ("format_", "start_", "index_", "value_")),
    ):
        for field in fields:
            if not np.array_equal(getattr(a, field), getattr(b, field)):
                raise SystemExit(f"mipforest and the arrays by hand differ in {field}")
    compare_pyomo(margot_builders.with_pyomo(X, y, arguments.depth), form)
    return {"columns": form.n_columns, "rows": form.n_rows, "nonzeros": form.A.nnz}


def compare_pyomo(m: Any, form: Any) -> None:
    """Compare Pyomo's rows, as its own compiler gives them, with ours; fails if they differ."""
    import numpy as np
    import pyomo.environ as pyo
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    m.objective.deactivate()
    m.nothing = pyo.Objective(expr=0.0)
    compiled = LinearStandardFormCompiler().write(m, mixed_form=True)
    order = {id(v): k for k, v in enumerate(v for block in (m.w, m.b, m.xi, m.z) for v in block.values())}
    rows = {
        id(c): k
        for k, c in enumerate(c for block in (m.assign, m.margin, m.right, m.left) for c in block.values())
    }
    A = compiled.A.tocoo()
    row = np.array([rows[id(r.constraint)] for r in compiled.rows])
    column = np.array([order[id(v)] for v in compiled.columns])
    theirs = type(form.A)((A.data, (row[A.row], column[A.col])), shape=form.A.shape)
    if (theirs != form.A).nnz or theirs.nnz != form.A.nnz:
        raise SystemExit("Pyomo's matrix differs from mipforest's")
    sides = np.where(np.isfinite(form.row_lower), form.row_lower, form.row_upper)[row]
    if np.abs(np.asarray(compiled.rhs) - sides).max() > 1e-12 * np.abs(sides).max():
        raise SystemExit("Pyomo's right-hand sides differ from mipforest's")


# ---------------------------------------------------------------------- the report


def report(arguments: argparse.Namespace) -> None:
    size = run(arguments, "compare")
    builds: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for k in range(arguments.repeats):
        ways = [way for way, most in WAYS.items() if k < most]
        for way in reversed(ways) if k % 2 else ways:
            builds[way].append(run(arguments, "build", way))
    publish(page(arguments, size, builds, run(arguments, "write")), arguments.output)


def run(arguments: argparse.Namespace, task: str, way: str | None = None) -> Any:
    """Run a task in a fresh process."""
    command = [sys.executable, __file__, "--task", task, "--repeats", str(arguments.repeats)]
    command += ["--n", str(arguments.n), "--p", str(arguments.p), "--depth", str(arguments.depth)]
    done = subprocess.run([*command, *(("--way", way) if way else ())], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def page(
    arguments: argparse.Namespace,
    size: dict[str, int],
    builds: dict[str, list[dict[str, float]]],
    written: dict[str, Any],
) -> str:
    seconds = {way: median(b["seconds"] for b in taken) for way, taken in builds.items()}
    megabytes = {way: median(b["megabytes"] for b in taken) for way, taken in builds.items()}
    imports = {way: median(b["imports"] for b in taken) for way, taken in builds.items()}
    build_rows = [
        (
            way,
            f"{seconds[way]:.3f}",
            spread([b["seconds"] for b in builds[way]]),
            f"{seconds[way] / seconds['by hand']:.1f}",
            f"{megabytes[way]:.0f}",
            f"{megabytes[way] / megabytes['by hand']:.1f}",
            f"{imports[way]:.0f}",
        )
        for way in WAYS
    ]
    times, sizes = written["seconds"], written["megabytes"]
    write_rows = [
        (name, f"{median(times[name]):.2f}", spread(times[name]), f"{sizes[name]:.0f}")
        for name in ("mipforest", "HiGHS")
    ]
    write_ratio = median(a / b for a, b in zip(times["mipforest"], times["HiGHS"], strict=True))
    checks = [
        verdict("build, times the arrays by hand", seconds["mipforest"] / seconds["by hand"], LIMITS["time"]),
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
    options = f"--n {arguments.n} --p {arguments.p} --depth {arguments.depth} --repeats {arguments.repeats}"
    measured = f"{arguments.repeats} each, Pyomo {len(builds['Pyomo'])}"
    return f"""# Building a model

MARGOT, variant `paper`: {arguments.n} samples, {arguments.p} features, depth {arguments.depth}, which makes
{size["columns"]:,} columns, {size["rows"]:,} rows and {size["nonzeros"]:,} nonzeros. All three ways give the
same matrix and sides (compared entry by entry); mipforest and the arrays by hand also agree in every other
number that HiGHS holds.

- **by hand**: numpy fills the CSR arrays of HiGHS' positional `passModel`, in about a hundred lines for this
  one model.
- **mipforest**: from `X` and `y` to the model in HiGHS: `Dataset`, `Margot.declare`, `Model.matrix`, load.
- **Pyomo**: its model object only, one `LinearExpression` per row; not yet in a solver.

{table(("build", "seconds", "range", "ratio", "peak MB", "ratio", "MB before"), build_rows)}

Seconds and memory are medians over fresh processes that took turns ({measured}). "Peak MB"
is the growth of the process's peak memory during the build, "MB before" the process with its imports.

{table(("write .mps", "seconds", "range", "file MB"), write_rows)}

Both write the same model under the same names, in turns. HiGHS keeps 15 digits; mipforest's file reads back
exactly.

{table(("ratio", "measured", "wanted"), checks)}

{measured_with(PACKAGES)}
Run again: `python benchmarks/build.py {options}`.
"""


def spread(values: list[float]) -> str:
    return f"{min(values):.2f}-{max(values):.2f}"


def verdict(what: str, ratio: float, limit: float, *, at_least: bool = False) -> tuple[str, str, str]:
    met = ratio >= limit if at_least else ratio <= limit
    return what, f"{ratio:.2f}", f"{'>=' if at_least else '<='} {limit:g}{'' if met else ' (missed)'}"


if __name__ == "__main__":
    main()
