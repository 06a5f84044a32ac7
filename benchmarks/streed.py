"""Trees of indicators beside STreeD on its own sets: errors, the deviance of survival trees, and processor seconds.

    python benchmarks/streed.py FOLDER --python INTERPRETER [--output docs/benchmarks/streed.md]

The folder has STreeD's files of features of 0 and 1: ``*.csv`` with the class of each sample in front
(``data/classification`` of pystreed), and ``*.txt`` with its time, and 1 where its event was seen
(``data/survival-analysis``). The interpreter is that of an environment with pystreed. Importing and compiling are not
counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

#: Depths of survival trees, and of trees of classes.
OF_TIMES, OF_CLASSES = (1, 2, 3), (2, 3, 4)

#: Most splits of trees of classes of the greatest depth.
LIMITS = (5, 8, 11)

#: Deviances closer than this share are the same: both sides add up logarithms in other orders.
SAME = 1e-9


def read(file: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, whether events were seen, and features."""
    table = np.loadtxt(file)
    return table[:, 0], table[:, 1] > 0, table[:, 2:].astype(int)


def read_classes(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and features."""
    table = np.loadtxt(file).astype(int)
    return table[:, 0], table[:, 1:]


def work(file: str, limit: int) -> None:
    """Fit pystreed at all depths, and print seconds and what it predicts for each sample."""
    fit = _classes if file.endswith(".csv") else _hazards
    print(json.dumps(fit(Path(file), limit)))


def _classes(file: Path, limit: int) -> list[dict[str, Any]]:
    from pystreed import STreeDClassifier

    y, X = read_classes(file)
    found = []
    for depth, most in fits_of_classes():
        model = STreeDClassifier("accuracy", max_depth=depth, max_num_nodes=most, time_limit=limit)
        began = process_time()
        model.fit(X, y)
        seconds = process_time() - began
        found.append({"seconds": seconds, "predicted": np.asarray(model.predict(X), dtype=int).tolist()})
    return found


def fits_of_classes() -> list[tuple[int, int]]:
    """Return depths of trees of classes, and most splits."""
    return [(depth, 2**depth - 1) for depth in OF_CLASSES] + [(OF_CLASSES[-1], most) for most in LIMITS]


def called(depth: int, most: int) -> str:
    """Return what tables call a fit."""
    return str(depth) if most == 2**depth - 1 else f"{depth}, {most} splits"


def _hazards(file: Path, limit: int) -> list[dict[str, Any]]:
    from pystreed import STreeDSurvivalAnalysis

    class Fixed(STreeDSurvivalAnalysis):
        """With NumPy 2.4, a list is no longer indexed by its truth values."""

        def _compute_baseline_cumulative_hazard_function(self, events, times):  # type: ignore[no-untyped-def]
            return super()._compute_baseline_cumulative_hazard_function([int(one) for one in events], times)

        def _process_extra_data(self, X, events):  # type: ignore[no-untyped-def]
            own = None if events is None else [int(one) for one in events]
            return super()._process_extra_data(X, own)

    time, event, X = read(file)
    y = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
    found = []
    for depth in OF_TIMES:
        model = Fixed(max_depth=depth, time_limit=limit)
        began = process_time()
        model.fit(X, y)
        seconds = process_time() - began
        found.append({"seconds": seconds, "predicted": np.asarray(model.predict(X), dtype=float).tolist()})
    return found


def rows_of_classes(file: Path, theirs: list[dict[str, Any]], limit: int) -> list[list[str]]:
    """Return a row for each depth of trees of classes."""
    from sklearn.utils.class_weight import compute_sample_weight

    from mipforest.data import Dataset

    y, X = read_classes(file)
    data = Dataset.from_arrays(X, y, scaling="none", name=file.stem)
    balanced = data.with_weights(compute_sample_weight("balanced", y))
    rows = []
    for (depth, most), other in zip(fits_of_classes(), theirs, strict=True):
        result, seconds = fitted(data, depth, limit, most)
        weighted, seconds_weighted = fitted(balanced, depth, limit, most)
        wrong, errors = (np.asarray(other["predicted"]) != y).sum(), (result.tree.predict(X) != y).sum()
        assert result.status != "optimal" or errors <= wrong, (file.stem, depth, errors, wrong)
        own = f"{errors}" if result.status == "optimal" else f"{errors}, gap {result.gap:.0%}"
        better = "" if errors == wrong else f" ({wrong})"
        gap = "" if weighted.status == "optimal" else f", gap {weighted.gap:.0%}"
        row = _row(data, called(depth, most), own + better, seconds, other["seconds"])
        rows.append([*row, f"{seconds_weighted:.2f}{gap}"])
    return rows


def fitted(data: Any, depth: int, limit: int, most: int) -> tuple[Any, float]:
    """Return the result of a fit with some splits at most, and its processor seconds."""
    from mipforest import get_formulation
    from mipforest.problem.constraints import AtMostSplits

    began = process_time()
    problem = get_formulation("oct")(alpha=0.0, variant="valid").build(
        data, depth, whole=False, declare=False
    )
    if most < 2**depth - 1:
        problem.constrain(AtMostSplits(most))
    result = problem.solve("exact-search", time_limit=limit, gap=0.0, threads=1)
    return result, process_time() - began


def rows_of_times(file: Path, theirs: list[dict[str, Any]], limit: int) -> list[list[str]]:
    """Return a row for each depth of survival trees."""
    from mipforest import get_formulation
    from mipforest.data import Dataset
    from mipforest.objectives.leaf_losses import PoissonLoss

    time, event, X = read(file)
    data = Dataset.from_arrays(X, time, event=event, scaling="none", name=file.stem)
    loss, rows = PoissonLoss(), []
    y, weight = np.asarray(data.y), data.weights
    for depth, one in zip(OF_TIMES, theirs, strict=True):
        began = process_time()
        problem = get_formulation("survival")(variant="valid").build(data, depth, whole=False, declare=False)
        result = problem.solve("exact-search", time_limit=limit, gap=0.0, threads=1)
        seconds = process_time() - began
        own = loss.total(result.tree.predict(data.X_raw), y, weight)
        ratios = np.asarray(one["predicted"])
        other = sum(loss.baseline(y[here], weight[here]) for t in np.unique(ratios) for here in [ratios == t])
        assert result.status == "optimal"
        assert own <= other * (1 + SAME), (file.stem, depth, own, other)
        better = "" if own >= other * (1 - SAME) else f" ({other:.4f})"
        rows.append(_row(data, depth, f"{own:.4f}{better}", seconds, one["seconds"]))
    return rows


def _row(data: Any, depth: int | str, loss: str, seconds: float, theirs: float) -> list[str]:
    return [data.name, f"{data.n} x {data.p}", str(depth), loss, f"{seconds:.2f}", f"{theirs:.2f}"]


def sums(rows: list[list[str]], depths: Sequence[int | str]) -> str:
    """Return the sums of seconds by depth, in words."""
    said = []
    for depth in depths:
        own, theirs, *more = (
            sum(float(one[k].split(",")[0]) for one in rows if one[2] == str(depth))
            for k in range(4, len(rows[0]))
        )
        weighted = f" ({more[0]:.1f} with weights)" if more else ""
        said.append(f"at depth {depth}: {own:.1f} here{weighted} and {theirs:.1f} there")
    return "; ".join(said)


def page(folder: Path, python: str, limit: int) -> str:
    """Run all sets and write the page."""
    from markdown import measured_with, table, version_in

    found: dict[str, list[list[str]]] = {".csv": [], ".txt": []}
    for file in sorted(folder.iterdir(), key=lambda own: own.name.lower()):
        if file.suffix in found and file.stat().st_size:
            command = [python, "-W", "ignore", __file__, "--worker", str(file), str(limit)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            theirs = json.loads(done.stdout.splitlines()[-1])
            rows = rows_of_classes if file.suffix == ".csv" else rows_of_times
            if not found[file.suffix]:
                rows(file, theirs, limit)  # compiles, and imports what is imported late
            found[file.suffix] += rows(file, theirs, limit)
    classes, times = found[".csv"], found[".txt"]
    sections = []
    if classes:
        sections.append(
            f"""In {equal(classes)} of {len(classes)} fits of `oct` both trees are proven and have as many errors. The
sum of the seconds, {sums(classes, OF_CLASSES)}. With a limit on the number of splits (`AtMostSplits`)
{sums(classes, [called(OF_CLASSES[-1], most) for most in LIMITS])}. *With weights* is `oct` with balanced
classes, as `class_weight="balanced"` weights them.

{table(["data", "n x p", "depth", "errors", "oct", "STreeD", "oct, with weights"], classes)}"""
        )
    if times:
        sections.append(
            f"""Half the deviance, the objective of LeBlanc and Crowley, of the best tree of `survival`.
In {equal(times)} of {len(times)} fits both trees have the same. STreeD's hazard before the first event is 1/(n + 1),
and here it is 0. The sum of the seconds, {sums(times, OF_TIMES)}.

{table(["data", "n x p", "depth", "deviance", "survival", "STreeD"], times)}"""
        )
    return f"""# {"Survival trees" if times and not classes else "Trees"} of indicators beside STreeD

Trees of `exact-search` on the sets of features of two values that STreeD ships: processor seconds of a fit with one
thread, model and checks included, at most {limit} s, beside those of STreeD, which is made for such features and ends
with a proof, too. Where STreeD's tree has another loss, that is in brackets.

{(chr(10) * 2).join(sections)}

{measured_with(["mipforest", "numpy"])} pystreed {version_in(python, "pystreed")}.
Run again: `python benchmarks/streed.py FOLDER --python INTERPRETER --output FILE`.
"""


def equal(rows: list[list[str]]) -> int:
    """Count the fits whose trees are proven and have the same loss."""
    return sum("(" not in one[3] and "gap" not in one[3] for one in rows)


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
