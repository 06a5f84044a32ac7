"""Seconds of edits of a tree by hand, from an edit to the proven best tree, and of alternatives.

python benchmarks/edits.py --output docs/benchmarks/edits.md
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import numpy as np
from markdown import add_output, measured_with, publish, table

from mipforest import EditSession, get_formulation, load
from mipforest.data import Dataset
from mipforest.errors import DataError
from mipforest.problem.constraints import MinLeaf, Recall

#: Where the larger data sets are.
LARGE = Path(__file__).resolve().parents[2] / "shared" / "data" / "large"

#: Data sets, edits of each, and the depth.
SETS, EDITS, DEPTH = ("breast_cancer", "wine", "page", "eeg", "magic"), 30, 3

TEXT = """# Edits by hand

Seconds on the clock from an edit of a tree to the best tree within all edits, at depth {depth}, on two threads: {edits}
random edits of each set, in sessions of up to six (pin a split, a feature or a range; forbid a feature; a leaf; recall;
least leaf size), with a limit of {limit:g} s, and the share that is proven in it. The first one is without an edit.
`alternatives` and `curve` (9 thresholds) are those of the root: each is many best trees, with their proofs.
"""


def main() -> None:
    """Measure all sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for each edit")
    add_output(parser)
    arguments = parser.parse_args()
    rows = [row(name, data, arguments.limit) for name in SETS if (data := read(name)) is not None]
    columns = ("data", "n", "p", "first", "median", "95 %", "proven", "alternatives", "curve")
    text = TEXT.format(depth=DEPTH, edits=EDITS, limit=arguments.limit)
    again = "Run again: `python benchmarks/edits.py`.\n"
    publish(
        "\n".join([text, table(columns, rows), "", f"{measured_with(['numba'])}\n", again]), arguments.output
    )


def read(name: str) -> Dataset | None:
    """Read a bundled data set, or a large one; ``None`` where it is not there."""
    path = LARGE / f"{name}.csv.gz"
    if path.exists():
        return load(str(path), target="target", task="classification", scaling="minmax")
    with suppress(DataError):
        return load(name, scaling="minmax")
    return None


def row(name: str, data: Dataset, limit: float) -> list[str]:
    """Return the row of a data set."""
    rng = np.random.default_rng(0)
    problem = get_formulation("oct")(alpha=0.0).build(data, DEPTH)
    session = EditSession(problem, threads=2, time_limit=limit)
    first, _ = timed(session)
    seconds, proven = list[float](), 0
    while len(seconds) < EDITS:
        if len(session.edits) == 6:
            session = EditSession(problem, threads=2, time_limit=limit)
            session.best()
        try:
            edit(session, rng)
        except DataError:
            continue
        spent, ended = timed(session)
        seconds.append(spent)
        proven += ended
    session = EditSession(problem, threads=2, time_limit=limit)
    session.best()
    began = perf_counter()
    others = session.alternatives(0)
    alternatives = perf_counter() - began
    began = perf_counter()
    session.curve(0, others[0].feature, points=9)
    curve = perf_counter() - began
    return [
        name,
        str(data.n),
        str(data.p),
        *(f"{value:.2f}" for value in (first, float(np.median(seconds)), float(np.quantile(seconds, 0.95)))),
        f"{proven / EDITS:.0%}",
        f"{alternatives:.2f}",
        f"{curve:.2f}",
    ]


def timed(session: EditSession) -> tuple[float, bool]:
    """Return the seconds of the best tree within the edits, and whether it is proven, or that there is none."""
    began = perf_counter()
    found = session.best()
    return perf_counter() - began, found.status in ("optimal", "infeasible")


def edit(session: EditSession, rng: np.random.Generator) -> None:
    """Make a random edit."""
    data = session.problem.data
    j, node = int(rng.integers(data.p)), int(rng.integers(7))
    feature, x = data.features.labels[j], data.X_raw[:, j]
    low, high = np.quantile(x, np.sort(rng.uniform(0.2, 0.8, 2)))
    kinds = [
        lambda: session.pin(0),
        lambda: session.pin(node, feature),
        lambda: session.pin(node, feature, (float(low), float(high))),
        lambda: session.forbid(feature),
        lambda: session.forbid(feature, node),
        lambda: session.leaf(1 + node % 6),
        lambda: session.limit(MinLeaf(max(2, data.n // 200))),
        lambda: session.limit(Recall(data.classes[0], 0.9)),
    ]
    kinds[rng.integers(len(kinds))]()


if __name__ == "__main__":
    main()
