"""Proofs under constraints: seconds of ``exact-search`` beside those without, and beside HiGHS on the same model.

    python benchmarks/constrained_search.py --output docs/benchmarks/constrained_search.md

Constraints are drawn from the tree without them, so that they exclude it: they forbid the feature of its root, fix
another split there, allow one feature less than it uses.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from markdown import add_output, measured_with, publish, table

import mipforest.problem.constraints as c
from formulations.margot import Margot
from formulations.oct import Oct
from formulations.ort import Ort
from mipforest.data import Dataset, load
from mipforest.problem.result import Result
from mipforest.trees import Tree

#: Each set of data with its model: bundled ones, and those of ConTree where they lie beside the project.
SETS = {
    "breast_cancer": Oct, "wine": Oct, "diabetes": Ort,
    "page": Oct, "eeg": Oct, "magic": Oct,
}  # fmt: skip
SHARED = Path(__file__).parents[2] / "shared" / "data"
LARGE = SHARED / "large"
#: Sets of data of trees of hyperplanes: a bundled one, and those of the MARGOT paper where they lie beside the project.
HYPERPLANES, PENALTY = ("breast_cancer", "parkinsons", "heart"), 1.0
PACKAGES = ("numpy", "numba", "highspy")

TEXT = """\
Processor seconds of one thread until the optimum under a constraint is proven, by `exact-search`; the gap where it is
not after {seconds:g} s. The constraints exclude the best tree without them where they can: `forbid` takes the feature
of its root, `split` gives the root another one, `at-most-features` allows one feature less than it uses, `recall` and
`limit-label` cut what it reaches; `at-most-splits` allows one split less. {hyperplanes}{highs}
"""
MARGOT = """\
For trees of hyperplanes (`margot`, C = {:g}, depth 2, standardised) it is `routing`, beside HiGHS on the same model.
"""
HIGHS = """\
The last table has errors, and what is proven, beside HiGHS on the same model of depth 2 for {:g} s on breast_cancer."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each solve")
    parser.add_argument("--highs", type=float, default=30.0, help="limit of HiGHS, 0 to leave it out")
    add_output(parser)
    arguments = parser.parse_args()
    highs = HIGHS.format(arguments.highs) if arguments.highs else ""
    text = TEXT.format(seconds=arguments.seconds, highs=highs, hyperplanes=MARGOT.format(PENALTY))
    parts = ["# Proofs under constraints\n", text]
    for depth in (2, 3):
        columns: dict[str, dict[str, str]] = {}
        for name, model in SETS.items():
            data = read(name)
            if data is not None:
                columns[f"{name} ({data.n} x {data.p})"] = searched(model(), data, depth, arguments.seconds)
        kinds = list(dict.fromkeys(kind for column in columns.values() for kind in column))
        rows = [(kind, *(column.get(kind, "") for column in columns.values())) for kind in kinds]
        parts += [f"## Depth {depth}\n", table(("constraint", *columns), rows), ""]
    columns = {}
    for name in HYPERPLANES:
        data = standardised(name)
        if data is not None:
            columns[f"{name} ({data.n} x {data.p})"] = of_hyperplanes(data, arguments.seconds)
    kinds = list(dict.fromkeys(kind for column in columns.values() for kind in column))
    rows = [(kind, *(column.get(kind, "") for column in columns.values())) for kind in kinds]
    parts += ["## Trees of hyperplanes, routing and HiGHS\n", table(("constraint", *columns), rows), ""]
    if arguments.highs:
        data = read("breast_cancer")
        assert data is not None
        parts += [
            "## HiGHS\n",
            table(("constraint", "exact-search", "HiGHS"), beside(data, arguments.highs)),
            "",
        ]
    parts += [f"{measured_with(PACKAGES)}\n", "Run again: `python benchmarks/constrained_search.py`.\n"]
    publish("\n".join(parts), arguments.output)


def read(name: str) -> Dataset | None:
    """Return a bundled data set, or one of ConTree's; ``None`` where that is not here."""
    if name in ("breast_cancer", "wine", "diabetes"):
        return load(name, scaling="minmax")
    path = LARGE / f"{name}.csv.gz"
    return (
        load(str(path), target="target", task="classification", scaling="minmax") if path.exists() else None
    )


def standardised(name: str) -> Dataset | None:
    """Return a set of data for trees of hyperplanes; ``None`` where it is not here."""
    path = SHARED / f"{name}.csv"
    if name == "breast_cancer":
        return load(name, scaling="standard")
    return load(str(path), scaling="standard") if path.exists() else None


def of_hyperplanes(data: Dataset, seconds: float) -> dict[str, str]:
    """Return a cell for each constraint on MARGOT's trees: what routing proves, and HiGHS."""

    def prove(own: tuple[c.Constraint, ...], solver: str, limit: float) -> tuple[Result, float]:
        problem = Margot(C=PENALTY).build(data, 2)
        problem.constrain(*own)
        began = process_time()
        result = problem.solve(solver, time_limit=limit, threads=1)
        return result, process_time() - began - result.phase_seconds.get("compile", 0.0)

    prove((), "routing", 0.2)  # compiles
    free, _ = prove((), "routing", seconds)
    tree, names = free.tree, list(data.features.labels)
    root, second = names[int(np.abs(tree.w[0]).argmax())], str(data.classes[1])
    predicted = np.asarray(tree.predict(data.X_raw))
    recall, share = float((predicted[data.y == 1] == 1).mean()), float((predicted == 1).mean())
    smallest = np.unique(np.asarray(tree.apply(data.X_raw)), return_counts=True)[1].min()
    asked: dict[str, tuple[c.Constraint, ...]] = {
        "none": (),
        "forbid": (c.Forbid((root,)),),
        "forbid at the root": (c.Forbid((root,), (0,)),),
        "min-leaf": (c.MinLeaf(int(smallest) + 2),),
        "recall": (c.Recall(second, min(1.0, recall + 0.01)),),
        "limit-label": (c.LimitLabel(second, share - 0.01),),
        "split": (c.Split(root, float(data.X_raw[:, names.index(root)].mean())),),
        "once-per-path": (c.OncePerPath((root,)),),
        "forbid, min-leaf": (c.Forbid((root,)), c.MinLeaf(int(smallest) + 2)),
    }
    cells = {}
    for kind, own in asked.items():
        cells[kind] = "; ".join(cell(*prove(own, solver, seconds)) for solver in ("routing", "highs"))
        print(data.name, kind, cells[kind], file=sys.stderr, flush=True)
    return cells


def constraints_for(data: Dataset, tree: Tree) -> dict[str, tuple[c.Constraint, ...]]:
    """Return constraints of each kind, and some together, that exclude a tree where they can."""
    names = list(data.features.labels)
    used = sorted(tree.features_used().overall)
    root = names[tree.features_used().per_node[0][0]]
    other = names[next(j for j in range(data.p) if j not in used)]
    found: dict[str, tuple[c.Constraint, ...]] = {
        "forbid": (c.Forbid((root,)),),
        "forbid at the root": (c.Forbid((root,), (0,)),),
        "require": (c.Require((other,)),),
        "at-most-features": (c.AtMostFeatures(max(1, len(used) - 1)),),
        "at-most-splits": (c.AtMostSplits(int(tree.w.any(axis=1).sum()) - 1),),
        "once-per-path": (c.OncePerPath(),),
        "split": (c.Split(other, float(np.median(data.X_raw[:, names.index(other)])), 0),),
        "min-leaf": (c.MinLeaf(max(5, data.n // 50)),),
        "forbid, once-per-path, require": (c.Forbid((root,)), c.OncePerPath(), c.Require((other,))),
    }
    if data.task == "classification":
        rare = data.classes[int(np.bincount(data.y.astype(int)).argmin())]
        found |= {
            "recall": (c.Recall(str(rare), 0.97),),
            "limit-label": (c.LimitLabel(str(rare), 0.8 * float((data.y == data.classes.index(rare)).mean())),),
            "split, recall": (found["split"][0], c.Recall(str(rare), 0.9)),
            "forbid, at-most-features, recall": (
                c.Forbid((root,)), c.AtMostFeatures(2), c.Recall(str(rare), 0.95),
            ),
        }  # fmt: skip
        if len(data.classes) == 2:
            found["monotone"] = (c.Monotone(root),)
    return found


def solved(
    model: Any, data: Dataset, depth: int, own: tuple[c.Constraint, ...], seconds: float
) -> tuple[Result, float]:
    """Return the answer of the exact search, and its processor seconds without compiling."""
    for limit in (0.2, seconds):  # the first one compiles
        problem = model.build(data, depth, whole=False)
        problem.constrain(*own)
        began = process_time()
        result = problem.solve("exact-search", time_limit=limit, threads=1)
        spent = process_time() - began - result.phase_seconds.get("compile", 0.0)
    return result, spent


def searched(model: Any, data: Dataset, depth: int, seconds: float) -> dict[str, str]:
    """Return a cell for each constraint."""
    free, spent = solved(model, data, depth, (), seconds)
    cells = {"none": cell(free, spent)}
    for kind, own in constraints_for(data, free.tree).items():
        found, spent = solved(model, data, depth, own, seconds)
        cells[kind] = cell(found, spent)
        print(data.name, depth, kind, cells[kind], file=sys.stderr, flush=True)
    return cells


def cell(found: Result, spent: float) -> str:
    if found.status in ("optimal", "infeasible"):
        return f"{spent:.2f}" + (", infeasible" if found.status == "infeasible" else "")
    return "no tree" if found.tree is None else f"gap {100 * found.gap:.1f}%"


def beside(data: Dataset, seconds: float) -> list[tuple[str, str, str]]:
    """Return errors and gaps of the exact search and of HiGHS on the same models of depth 2."""
    free, _ = solved(Oct(), data, 2, (), seconds)
    rows = []
    for kind, own in constraints_for(data, free.tree).items():
        cells = []
        for solver in ("exact-search", "highs"):
            problem = Oct().build(data, 2)
            problem.constrain(*own)
            # A tree that is given is repaired; from the default start HiGHS would have the search's tree.
            start = problem.start_tree() if solver == "highs" else "default"
            result = problem.solve(solver, time_limit=seconds, start=start)
            if result.tree is None:
                cells.append("no tree")
                continue
            wrong = int((result.tree.predict(data.X_raw) != data.y).sum())
            proven = "proven" if result.status == "optimal" else f"gap {100 * result.gap:.0f}%"
            cells.append(f"{wrong} errors, {proven}")
        rows.append((kind, *cells))
        print(kind, cells, file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    main()
