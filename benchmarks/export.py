"""Time and memory to write MARGOT (n=5000, p=30, depth 3) as a file, against HiGHS' writer; and who reads it.

Every write is measured in a process of its own that has built the model; the writers take turns. Then HiGHS,
Gurobi and SCIP read the MPS file and are asked for its size, the objective at a point and some rows, which are
compared with ours.

    python benchmarks/export.py --repeats 7 --output docs/benchmarks/export.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from export_tasks import TASKS
from markdown import add_output, measured_with, publish, table

#: What is written, and by whom.
WRITERS = ("mipforest .mps", "HiGHS .mps", "mipforest .mps.gz", "mipforest .lp")

READERS = ("HiGHS", "Gurobi", "SCIP")

PACKAGES = ("numpy", "scipy", "pandas", "highspy", "gurobipy", "pyscipopt")


def main() -> None:
    arguments = parse()
    if arguments.task != "report":
        print(json.dumps(TASKS[arguments.task](arguments)))
        return
    publish(report(arguments), arguments.output)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=5000, help="samples")
    parser.add_argument("--p", type=int, default=30, help="features")
    parser.add_argument("--depth", type=int, default=3, help="levels of branch nodes")
    parser.add_argument("--repeats", type=int, default=7, help="repetitions of every write")
    parser.add_argument("--task", choices=("report", *TASKS), default="report", help=argparse.SUPPRESS)
    parser.add_argument("--who", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    add_output(parser)
    return parser.parse_args()


def run(arguments: argparse.Namespace, task: str, path: Path, who: str = "") -> dict[str, Any]:
    """Run a task in a fresh process."""
    command = [sys.executable, __file__, "--task", task, "--who", who, "--path", str(path)]
    for name in ("n", "p", "depth"):
        command += [f"--{name}", str(getattr(arguments, name))]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(arguments: argparse.Namespace) -> str:
    measured: dict[str, list[dict[str, float]]] = {who: [] for who in WRITERS}
    with tempfile.TemporaryDirectory() as folder:
        for k in range(arguments.repeats):
            for who in reversed(WRITERS) if k % 2 else WRITERS:
                path = Path(folder) / f"written{who.split()[1]}"
                measured[who].append(run(arguments, "write", path, who))
        path = Path(folder) / "model.mps"
        expected = run(arguments, "size", path)
        found = {who: run(arguments, "read", path, who) for who in READERS}
    return page(arguments, measured, expected, found)


def page(
    arguments: argparse.Namespace,
    measured: dict[str, list[dict[str, float]]],
    expected: dict[str, Any],
    found: dict[str, dict[str, Any]],
) -> str:
    def middle(who: str, key: str) -> float:
        return median(entry[key] for entry in measured[who])

    rows = [
        (
            who,
            f"{middle(who, 'seconds'):.2f}",
            f"{min(e['seconds'] for e in measured[who]):.2f}-{max(e['seconds'] for e in measured[who]):.2f}",
            f"{middle(who, 'megabytes'):.0f}",
            f"{middle(who, 'file'):.1f}",
        )
        for who in WRITERS
    ]
    seconds, memory = (f"{ratio(measured, key):.2f}" for key in ("seconds", "megabytes"))
    agreement = [(who, *compared(expected, found[who])) for who in READERS]
    return f"""# Writing a model

MARGOT, variant `paper`: {arguments.n} samples, {arguments.p} features, depth {arguments.depth}, which makes
{expected["columns"]:,} columns ({expected["integers"]:,} binary), {expected["rows"]:,} rows and
{expected["nonzeros"]:,} nonzeros. Medians of {arguments.repeats} writes, each in a fresh process, the writers in turns.
Seconds are processor time; waiting for the disk does not count. "Peak MB" is the growth of the
process's memory from the flat arrays to the file; HiGHS' contains its own copy of the model, which takes no
time here. Memory that the build had freed is reused, and does not count. HiGHS writes plain text also to
names that end in `.gz`.

{table(("writer", "seconds", "range", "peak MB", "file MB"), rows)}

mipforest over HiGHS for `.mps`, medians of pairs: {seconds} in time, {memory} in memory.

The `.mps` file, read by three solvers: their sizes, objective at one point and {len(expected["spot"])} rows
against ours, every coefficient and side. For SCIP, only the linear part of the objective is compared, because
SCIP keeps the quadratic part as a nonlinear row.

{table(("reader", "sizes", "objective, relative difference", "rows that agree", "largest difference"), agreement)}

{measured_with(PACKAGES)}
Run again: `python benchmarks/export.py --repeats {arguments.repeats}`.
"""


def ratio(measured: dict[str, list[dict[str, float]]], key: str) -> float:
    """Ours over HiGHS', the median of pairs that ran one after the other."""
    pairs = zip(measured["mipforest .mps"], measured["HiGHS .mps"], strict=True)
    return median(ours[key] / theirs[key] for ours, theirs in pairs)


def compared(expected: dict[str, Any], found: dict[str, Any]) -> tuple[str, str, str, str]:
    """Say how far a reader's model is from ours; fails if a row is not there."""
    sizes = all(expected[key] == found[key] for key in ("columns", "rows", "nonzeros", "integers"))
    part = "objective" if "objective" in found else "linear"
    objective = abs(found[part] - expected[part]) / abs(expected[part])
    largest, same = 0.0, 0
    for name, row in expected["spot"].items():
        other = found["spot"][name]
        assert row["row"].keys() == other["row"].keys(), name
        gaps = [abs(value - other["row"][column]) for column, value in row["row"].items()]
        for side in ("low", "high"):
            assert (row[side] is None) == (other[side] is None), (name, side)
            gaps.append(abs((row[side] or 0.0) - (other[side] or 0.0)))
        largest, same = max(largest, *gaps), same + (max(gaps) == 0)
    return (
        "equal" if sizes else "DIFFER",
        f"{objective:.1e}",
        f"{same} of {len(expected['spot'])}",
        f"{largest:.1e}",
    )


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
