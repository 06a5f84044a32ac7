"""Wall time of whole commands against ``--time-limit``: every model, 1000 to 100,000 samples of 20 features, depth 2.

    python benchmarks/budget.py --limit 10 --output docs/benchmarks/budget.md

Every case is a ``mipforest solve`` in a process of its own, from its start to its end: imports, generating the data and
printing the result included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from time import monotonic
from typing import Any

from markdown import add_output, measured_with, publish, table

MODELS = (
    "margot", "hfs-margot", "sfs-margot", "olct", "budgeted-olct", "univariate-olct", "loss-optimal",
    "oct", "oct-h", "ort", "ort-h", "ort-l", "ort-lh", "miret",
)  # fmt: skip

SIZES = (1000, 10_000, 100_000)

#: Seconds after which a case is given up.
MOST_SECONDS = 100.0

PACKAGES = ("numpy", "scipy", "scikit-learn", "highspy", "clarabel")

TEXT = """\
Seconds of wall time of `mipforest solve --time-limit {limit:g} --depth 2`, each in a process of its own: the start
of Python, imports, generating the data and printing the result are included. Data: `synthetic:tree,depth=3,p=20`,
parameters are the models' defaults. "Prepared" is preparation, starts, bounds and building, "solver" what
the solver took, gap that of the outcome ("-" without a bound above 0 or without a tree).

The start of Python and the imports are part of the total: about 2 s on an idle machine. The budget begins with loading
the data. What exceeds the limit beyond that: a solver that does not end when it has to is left behind half a second
later, and the result is checked and printed. At 100,000 samples thresholds are listed without a look at the clock, and
a model that is not built in time is given up between two blocks of rows, for its start. MIRET ends with an error where
the time runs out while its forest is fitted: fewer trees would be another target. The library that fits it is loaded
outside the limit. Where the solver has 0 s, an exact search proved the start optimal while
the model was built, or less time was left than the solver takes to read the model; the answer is the start's tree.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=float, default=10.0, help="seconds")
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    add_output(parser)
    arguments = parser.parse_args()
    rows = []
    for model in arguments.models:
        for n in arguments.sizes:
            rows.append(one_row(model, n, arguments.limit))
            print(*rows[-1], file=sys.stderr, flush=True)
    head = ("model", "samples", "total", "prepared", "solver", "status", "gap")
    load = os.getloadavg()[0]
    note = f"{measured_with(PACKAGES)} One thread of linear algebra; load average {load:.1f} at the end.\n"
    again = f"Run again: `python benchmarks/budget.py --limit {arguments.limit:g}`.\n"
    parts = [
        "# Time against the limit\n",
        TEXT.format(limit=arguments.limit),
        table(head, rows),
        "",
        note,
        again,
    ]
    publish("\n".join(parts), arguments.output)


def one_row(model: str, n: int, limit: float) -> tuple[str, ...]:
    """Run one case."""
    regression = model.startswith("ort")
    data = f"synthetic:tree,depth=3,n={n},p=20" + (",task=regression" if regression else ",label_noise=0.05")
    command = [sys.executable, "-m", "mipforest", "solve", "--model", model, "--depth", "2", "--data", data]
    command += ["--time-limit", str(limit), "--json", "--quiet"]
    began = monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        return model, f"{n}", f"> {MOST_SECONDS:.0f}", "", "", "given up", ""
    total = monotonic() - began
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        return model, f"{n}", f"{total:.1f}", "", "", f"ended with {done.returncode}", ""
    if "error" in found:
        return model, f"{n}", f"{total:.1f}", "", "", str(found["error"])[:60], ""
    phases = found["phase_seconds"]
    before = sum(phases.get(name, 0.0) for name in ("prepare", "start", "bounds", "build"))
    gap = found["gap"]
    shown = "-" if gap is None or not found["bound"] or found["bound"] <= 0 else f"{gap:.0%}"
    solver = phases.get("solve", 0.0)
    return model, f"{n}", f"{total:.1f}", f"{before:.1f}", f"{solver:.1f}", found["status"], shown


if __name__ == "__main__":
    main()
