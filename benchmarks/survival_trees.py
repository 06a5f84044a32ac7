"""Survival trees beside STreeD on its own sets of binary features: the deviance, and processor seconds of a fit.

    python benchmarks/survival_trees.py FOLDER --python INTERPRETER [--output docs/benchmarks/survival_trees.md]

The folder has STreeD's text files: a row for each sample with its time, 1 where its event was seen, and features of 0
and 1 (``data/survival-analysis`` of pystreed, ``datasetsSA`` of SurTree's experiments). The interpreter is that of an
environment with pystreed. Importing and compiling are not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np

DEPTHS = (1, 2, 3)

#: Deviances closer than this share are the same: both sides add up logarithms in other orders.
SAME = 1e-9


def read(file: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, whether events were seen, and features."""
    table = np.loadtxt(file)
    return table[:, 0], table[:, 1] > 0, table[:, 2:].astype(int)


def work(file: str, limit: int) -> None:
    """Fit pystreed at all depths, and print seconds and the predicted hazard ratio of each sample."""
    from pystreed import STreeDSurvivalAnalysis

    class Fixed(STreeDSurvivalAnalysis):
        """With NumPy 2.4, a list is no longer indexed by its truth values."""

        def _compute_baseline_cumulative_hazard_function(self, events, times):  # type: ignore[no-untyped-def]
            return super()._compute_baseline_cumulative_hazard_function([int(one) for one in events], times)

        def _process_extra_data(self, X, events):  # type: ignore[no-untyped-def]
            own = None if events is None else [int(one) for one in events]
            return super()._process_extra_data(X, own)

    time, event, X = read(Path(file))
    y = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
    found = []
    for depth in DEPTHS:
        model = Fixed(max_depth=depth, time_limit=limit)
        began = process_time()
        model.fit(X, y)
        seconds = process_time() - began
        found.append({"seconds": seconds, "ratios": np.asarray(model.predict(X), dtype=float).tolist()})
    print(json.dumps(found))


def row(file: Path, python: str, limit: int) -> list[list[str]]:
    """Return a row for each depth."""
    from mipforest import get_formulation
    from mipforest.data import Dataset
    from mipforest.objectives.leaf_losses import PoissonLoss

    time, event, X = read(file)
    data = Dataset.from_arrays(X, time, event=event, scaling="none", name=file.stem)
    command = [python, "-W", "ignore", __file__, "--worker", str(file), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loss, rows = PoissonLoss(), []
    y, weight = np.asarray(data.y), data.weights
    for depth, theirs in zip(DEPTHS, json.loads(done.stdout.splitlines()[-1]), strict=True):
        began = process_time()
        problem = get_formulation("survival")(variant="valid").build(data, depth, whole=False, declare=False)
        result = problem.solve("exact-search", time_limit=limit, gap=0.0, threads=1)
        seconds = process_time() - began
        own = loss.total(result.tree.predict(data.X_raw), y, weight)
        ratios = np.asarray(theirs["ratios"])
        other = sum(loss.baseline(y[here], weight[here]) for t in np.unique(ratios) for here in [ratios == t])
        assert result.status == "optimal"
        assert own <= other * (1 + SAME), (file.stem, depth, own, other)
        better = "" if own >= other * (1 - SAME) else f" ({other:.4f})"
        rows.append(
            [
                file.stem,
                f"{data.n} x {data.p}",
                str(depth),
                f"{own:.4f}{better}",
                f"{seconds:.2f}",
                f"{theirs['seconds']:.2f}",
            ]
        )
    return rows


def page(folder: Path, python: str, limit: int) -> str:
    """Run all sets and write the page."""
    from markdown import measured_with, table

    rows = [
        one
        for file in sorted(folder.glob("*.txt"), key=lambda own: own.name.lower())
        for one in row(file, python, limit)
    ]
    equal = sum("(" not in one[3] for one in rows)
    sums = [sum(float(one[k]) for one in rows) for k in (4, 5)]
    code = "from importlib.metadata import version; print(version('pystreed'))"
    streed = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    return f"""# Survival trees beside STreeD

Half the deviance, the objective of LeBlanc and Crowley, of the best tree of `survival`, proven by `exact-search`, on
the sets of binary features of STreeD and of SurTree's experiments; and processor seconds of a fit with one thread,
model and checks included, beside those of STreeD, which ends with a proof too. In {equal} of {len(rows)} fits both
trees have the same deviance; that of STreeD's tree is in brackets where it is another one. Its hazard before the
first event is 1/(n + 1), and here 0. STreeD is made for binary features: the sum of the seconds is {sums[0]:.1f}
here, and there {sums[1]:.1f}.

{table(["data", "n x p", "depth", "deviance", "survival", "STreeD"], rows)}

{measured_with(["mipforest", "numpy"])} pystreed {streed}.
Run again: `python benchmarks/survival_trees.py FOLDER --python INTERPRETER --output FILE`.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or STreeD's fits of one set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="STreeD's files")
    parser.add_argument("--python", help="interpreter of an environment with pystreed")
    parser.add_argument("--limit", type=int, default=60, help="seconds for each fit")
    parser.add_argument("--worker", nargs=2, metavar=("FILE", "LIMIT"), help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help="Markdown file to write as well")
    given = parser.parse_args(arguments)
    if given.worker:
        work(given.worker[0], int(given.worker[1]))
        return
    if given.folder is None or given.python is None:
        parser.error("give the folder of STreeD's files, and --python")
    from markdown import publish

    publish(page(given.folder, given.python, given.limit), given.output)


if __name__ == "__main__":
    main()
