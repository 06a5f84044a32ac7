"""Tables of ``docs/starts.md``: values and times of starts on the data sets of the MARGOT paper, and of OCT-H.

The folder given by ``--data`` holds the data sets as ``NAME.csv``, last column ``target``. The split is the
paper's: 80%, stratified, seed 0, features scaled to [0, 1] on the training part.

    python benchmarks/starts.py --data FOLDER [--only TABLE] [--output FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
from markdown import add_output, measured_with, publish, table

from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.olct import Olct
from formulations.ort import Ort
from mipforest.data import Dataset, load
from mipforest.heuristics import linear_starts as path
from mipforest.heuristics.node_problems import many_sample_split, margin_split, passed, smoothed_split
from mipforest.problem.constraints import AtMostFeatures, AtMostSplits, Constraint, Forbid, Recall
from mipforest.searches.hyperplanes import Hyperplanes
from mipforest.searches.hyperplanes.plugin import problem_of
from mipforest.searches.hyperplanes.search import compile_kernels, local_search
from mipforest.trees import Topology, Tree

#: Data set: penalties C by level (the paper's), and what was known before: value of the paper's local SVM
#: start, of a path with one penalty per decade, and of the best solution.
MARGOT = {
    "breast_cancer_diagnostic": ((1e0, 1e0), "71.326", "65.237", "65.237"),
    "breast_cancer_wisconsin": ((1e2, 1e2), "5250.5", "4905.3", ""),
    "climate_model": ((1e0, 1e0), "94.14", "81.52", ""),
    "cleveland": ((1e-1, 1e-1), "18.480", "18.328", ""),
    "ionosphere": ((1e1, 1e1), "768.96", "711.40", "<= 638.02"),
    "parkinsons": ((1e0, 1e4), "196369", "29160", ""),
    "sonar": ((1e-3, 1e-1), "11.011", "0.166", ""),
    "spectf": ((1e-1, 1e-1), "17.474", "16.825", ""),
    "wholesale": ((1e3, 1e3), "104787.6", "104787.6", ""),
}

#: Data sets of the table for depth 3: those of few samples and one C for all levels.
DEEPER = ("breast_cancer_diagnostic", "climate_model", "cleveland")

#: The paper's parameters of the sparse models: C and budgets by level (HFS); C by level and alpha (SFS; one
#: feature per node is free).
SPARSE = {
    "cleveland": (((1e1, 1e3), (1, 2)), ((1e0, 1e0), 2.0**2)),
    "ionosphere": (((1e1, 1e1), (2, 3)), ((1e0, 1e0), 2.0**8)),
    "sonar": (((1e-4, 1e1), (1, 2)), ((1e0, 1e0), 2.0**2)),
    "wholesale": (((1e-2, 1e2), (1, 2)), ((1e-2, 1e0), 2.0**2)),
}

#: Penalties per decade of the path; the second is the default.
DENSITIES = (1, 4, 8)

#: Processor seconds of the local search, and as many kicks as no limit leaves time for.
SEARCH_SECONDS, WITHOUT_END = 2.0, 1_000_000

#: Wall time of HiGHS after a start of OCT-H.
HIGHS_SECONDS = 15.0

PACKAGES = ("numpy", "scipy", "scikit-learn", "highspy", "clarabel")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--only", choices=list(TABLES), help="one table alone")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions; the median time is shown")
    add_output(parser)
    arguments = parser.parse_args()
    names = [arguments.only] if arguments.only else list(TABLES)
    parts = [f"## {name}\n\n{TABLES[name](arguments.data, arguments.repeats)}\n" for name in names]
    publish("\n".join([*parts, measured_with(PACKAGES), ""]), arguments.output)


# ---------------------------------------------------------------------- the tables


def depth_two(folder: Path, repeats: int) -> str:
    header = ["data", "local-svm", "svm-path 1", "svm-path 4", "svm-path 8", "cart", "known before"]
    header += ["s local", "s 1", "s 4", "s 8", "s cart"]
    rows = []
    for name, (C, local_before, path_before, optimum) in MARGOT.items():
        data, margot = paper_split(folder, name), Margot(C=C)
        values, seconds = run_starts(margot, data, 2, repeats, DENSITIES)
        before = f"{local_before} / {path_before}" + (f" / {optimum}" if optimum else "")
        rows.append([name, *map(written, values), before, *(f"{s:.2f}" for s in seconds)])
    return table(header, rows)


def hyperplanes(folder: Path, repeats: int) -> str:  # noqa: ARG001 - every table is asked for in one way
    """Objectives of the starts of OCT-H, and of HiGHS after each; processor seconds of starts in brackets."""
    rows = []
    for name in ("iris", "wine", "haberman", "heart", "banknote"):
        data = load(name) if name in ("iris", "wine") else load(str(folder / f"{name}.csv"))
        for depth in (1, 2, 3) if name in ("haberman", "heart") else (2,):
            model, row = OctH(), []
            model.build(data, depth).start_tree("descent")  # loads the search, or compiles it
            for start in ("cart", "descent"):
                problem = model.build(data, depth)  # with a time limit of its own
                began = process_time()
                tree = problem.start_tree(start)
                seconds = process_time() - began
                result = problem.solve("highs", start=tree, time_limit=HIGHS_SECONDS, threads=1)
                value = model.evaluate(tree, problem.instance)
                row += [f"{value:.4f} ({seconds:.2f})", f"{result.objective:.4f}"]
            rows.append([name, str(depth), row[0], row[2], row[1], row[3]])
    return table(["data", "depth", "cart", "descent", "HiGHS from cart", "HiGHS from descent"], rows)


def depth_three(folder: Path, repeats: int) -> str:
    header = ["data", "local-svm", "svm-path", "cart", "s local", "s path", "s cart"]
    rows = []
    for name in DEEPER:
        data, margot = paper_split(folder, name), Margot(C=MARGOT[name][0][0])
        values, seconds = run_starts(margot, data, 3, repeats, (4,))
        rows.append([name, *map(written, values), *(f"{s:.2f}" for s in seconds)])
    return table(header, rows)


def sparse(folder: Path, repeats: int) -> str:  # noqa: ARG001
    header = ["data", "model", "local-svm", "svm-path", "cart", "s local", "s path", "s cart"]
    rows = []
    for name, ((C_hard, budget), (C_soft, alpha)) in SPARSE.items():
        data = paper_split(folder, name)
        for model in (HfsMargot(C=C_hard, B=budget), SfsMargot(C=C_soft, alpha=alpha)):
            values, seconds = run_starts(model, data, 2, 1, (4,))
            rows.append([name, model.name, *map(written, values), *(f"{s:.2f}" for s in seconds)])
    return table(header, rows)


def local_searches(folder: Path, repeats: int) -> str:  # noqa: ARG001
    """Values of svm-path, and of the local search after some processor seconds from local-svm on one thread."""
    rows = []
    for name in (*MARGOT, "tic_tac_toe_margot18"):
        margot = Margot(C=MARGOT[name][0] if name in MARGOT else 1.0)
        problem = margot.build(paper_split(folder, name), 2, declare=False)
        samples, _ = problem_of(problem)
        compile_kernels(problem.budget, samples)
        known, began = margot.start("local-svm", problem.instance), process_time()
        found = local_search(
            samples, starts=10, kicks=WITHOUT_END, trees=[Hyperplanes(known.w, known.b)], threads=1,
            deadline=began + SEARCH_SECONDS, clock=process_time,
        ).tree  # fmt: skip
        tree = problem.structure.labelled(found.w, found.b, problem.data, problem.topology)
        values = (margot.start("svm-path", problem.instance), tree)
        rows.append([name, *(written(margot.evaluate(each, problem.instance)) for each in values)])
    return table(["data", "svm-path", f"local-search, {SEARCH_SECONDS:g} s"], rows)


def node_problems(folder: Path, repeats: int) -> str:
    """Value of a node's problem: exactly, with a smooth loss, and by the solver of many samples with its bound."""
    del folder, repeats
    rows = []
    for model in (Margot(), Olct()):
        data = load("synthetic:tree,depth=3,n=1000,p=20,label_noise=0.05", scaling=model.scaling)
        nodes = model.node_problems(Topology(1))
        given = {"loss": nodes.loss.convex, "norm": nodes.norm}
        for C in (0.1, 1.0, 100.0):
            exact = margin_split(data.X, data.sign, C, **given).value
            smoothed = smoothed_split(data.X, data.sign, C, **given).value
            many, bound = many_sample_split(data.X, data.sign, C, **given)
            values = (exact, smoothed, many.value, bound)
            rows.append([model.name, f"{C:g}", *(f"{value:.6g}" for value in values)])
    return table(["model", "C", "exact", "smoothed", "interior point", "its bound"], rows)


def within_constraints(folder: Path, repeats: int) -> str:  # noqa: ARG001
    """Objectives of default starts that break a constraint, seconds in brackets: repaired, and as solvers begin."""
    rows = []
    for model, name in ((Oct(alpha=0.0), "breast_cancer"), (Ort(), "diabetes")):
        data = load(name)
        used = model.build(data, 2).solve("exact-search").features_used
        asked: dict[str, Constraint] = {
            "without the free tree's root feature": Forbid((used[0],)),
            "at most one feature": AtMostFeatures(1),
            "at most two splits": AtMostSplits(2),
        }
        if data.classes:
            asked[f"recall of {data.classes[0]} at least 97 %"] = Recall(str(data.classes[0]), 0.97)
        for words, constraint in asked.items():
            row = []
            for may_search in (False, True):
                problem = model.build(data, 2)
                problem.constrain(constraint)
                tree = problem.start_tree()
                began = perf_counter()
                values, _ = problem.start_values(tree, may_search=may_search)
                spent = perf_counter() - began
                value = "none" if values is None else written(problem.model.objective(values))
                row.append(f"{value} ({spent:.2f})")
            best = problem.solve("exact-search")
            assert best.status == "optimal"
            rows.append([model.name, f"{name} ({data.n} x {data.p})", words, *row, written(best.objective)])
    return table(["model", "data", "constraint", "repaired", "search's tree", "optimum"], rows)


# ---------------------------------------------------------------------- measuring


def run_starts(
    margot: Margot, data: Dataset, depth: int, repeats: int, densities: tuple[int, ...]
) -> tuple[list[float], list[float]]:
    """Values and median seconds of local-svm, svm-path at each density, and cart."""
    # Variant "paper" needs no start to be bound.
    instance = replace(margot, variant="paper").bind(data, Topology(depth))
    results = [timed(lambda: margot.start("local-svm", instance), repeats)]
    for density in densities:
        with penalties_per_decade(density):
            results.append(timed(lambda: margot.start("svm-path", instance), repeats))
    results.append(timed(lambda: margot.start("cart", instance), repeats))
    for fitted, _ in results:
        refuse_infeasible(margot, fitted, data)
    return [margot.evaluate(fitted, instance) for fitted, _ in results], [seconds for _, seconds in results]


@contextmanager
def penalties_per_decade(density: int) -> Iterator[None]:
    """Let the path take that many penalties per decade, 10^-4 to 10^5."""
    before = path.PENALTIES, path.WIDTHS
    path.PENALTIES = tuple(10.0 ** (k / density) for k in range(-4 * density, 5 * density + 1))
    path.WIDTHS = {**path.WIDTHS, 0: len(path.PENALTIES) + 1}
    try:
        yield
    finally:
        path.PENALTIES, path.WIDTHS = before


def timed(make: Callable[[], Tree], repeats: int) -> tuple[Tree, float]:
    seconds = []
    for _ in range(repeats):
        began = perf_counter()
        fitted = make()
        seconds.append(perf_counter() - began)
    return fitted, median(seconds)


def refuse_infeasible(margot: Margot, fitted: Tree, data: Dataset) -> None:
    """A value counts only if the model takes the tree: left scores at most -epsilon above the last level."""
    upper = list(fitted.topology.upper_branches)
    scores = fitted.scores(data.X)[:, upper]
    between = passed(fitted, data)[:, upper] & (scores < 0) & (scores > -margot.epsilon + 1e-6)
    if between.any():
        raise SystemExit(
            f"{margot.name} on {data.name}: {between.sum()} samples lie between the sides of a node"
        )


def paper_split(folder: Path, name: str) -> Dataset:
    """The training part of the MARGOT paper; Cleveland is stratified on its five labels, then made binary."""
    train, _ = load(str(folder / f"{name}.csv"), target="target", task="classification").split(0.2, seed=0)
    if name == "cleveland":
        return Dataset.from_arrays(train.X_raw, train.y != train.classes.index("0"), name=name)
    return train


def written(value: float) -> str:
    return f"{value:.1f}" if value >= 1000 else f"{value:.3f}" if np.isfinite(value) else "infeasible"


#: The tables, by name.
TABLES: dict[str, Callable[[Path, int], str]] = {
    "depth 2": depth_two,
    "local search": local_searches,
    "node problems": node_problems,
    "depth 3": depth_three,
    "few features": sparse,
    "oct-h": hyperplanes,
    "within constraints": within_constraints,
}


if __name__ == "__main__":
    main()
