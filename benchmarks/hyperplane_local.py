"""The local search over hyperplanes beside proven optima and beside the start ``svm-path``.

1. The training sets of the MARGOT paper, three seeds: how far the best tree is above the proven optimum after some
   processor seconds.
2. The same for HFS-MARGOT, SFS-MARGOT and OLCT, one seed, beside the start that comes with the model.
3. Sets of 3600 to 15,000 training samples, depth 2 and 3, C = 1 and 100: the objective and the accuracy on the other
   samples, beside ``svm-path`` of the same depth, and the bound of the root.

One thread. The folder given by ``--data`` holds the sets of the paper as ``NAME.csv``, and the large ones as
``large/NAME.csv.gz``, last column ``target``.

    python benchmarks/hyperplane_local.py --data FOLDER --seconds 5 --large-seconds 12 --output FILE
    python benchmarks/hyperplane_local.py --data FOLDER --sets sonar wilt --seeds 0
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

import numpy as np
from markdown import add_output, measured_with, publish, table
from routing import TITLES, cases_of
from starts import MARGOT, paper_split

from formulations.margot import Margot
from mipforest.data import Dataset, load
from mipforest.heuristics.linear_starts import svm_path
from mipforest.problem.problem import Problem
from mipforest.searches.hyperplanes import Hyperplanes
from mipforest.searches.hyperplanes.plugin import problem_of, proven_bound
from mipforest.searches.hyperplanes.search import compile_kernels, local_search
from mipforest.settings import one_blas_thread
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

#: Proven optima of depth 2 (docs/benchmarks/routing.md), and penalties by level.
OPTIMA = {
    "breast_cancer_diagnostic": 65.2375,
    "sonar": 0.165803,
    "tic_tac_toe_margot18": 84.0,
    "climate_model": 72.162726,
    "ionosphere": 614.46084,
    "wholesale": 91504.456,
    "breast_cancer_wisconsin": 4663.2416,
    "cleveland": 16.773597,
    "spectf": 15.214074,
    "parkinsons": 183.72124,
}
PENALTIES = {**{name: case[0] for name, case in MARGOT.items()}, "tic_tac_toe_margot18": (1.0, 1.0)}

#: Least objectives known of the other models at depth 2, from docs/benchmarks/routing_features.md and routing_olct.md:
#: proven ones, and those of open problems.
PROVEN = {
    "hfs": {
        "breast_cancer_diagnostic": 69327.2, "breast_cancer_wisconsin": 6.85246e6, "cleveland": 91766.4,
        "ionosphere": 1432.01, "parkinsons": 83138.0, "sonar": 610.2, "spectf": 0.664645, "tic_tac_toe": 39169.7,
        "wholesale": 4848.2,
    },
    "sfs": {"breast_cancer_wisconsin": 107.765, "ionosphere": 205.191, "tic_tac_toe": 101.0},
    "olct": {"parkinsons": 53.6261, "heart": 78.1828, "wholesale": 76.1104, "ionosphere": 61.6024},
}  # fmt: skip
OPEN = {
    "hfs": {"climate_model": 4.16813e6},
    "sfs": {
        "breast_cancer_diagnostic": 7382.54, "climate_model": 12545.6, "cleveland": 186.224, "parkinsons": 68884.0,
        "sonar": 184.53, "spectf": 7265.49, "wholesale": 53.5809,
    },
    "olct": {"cleveland": 103.604},
}  # fmt: skip

#: The large sets, with the class that is compared with all others.
LARGE = {"page": "0", "wilt": "1", "eeg": "1", "magic": "1", "occupancy": "1"}

#: Share of the samples on which large sets are tested, depths and penalties.
TEST_SHARE, DEPTHS, LARGE_C = 0.25, (2, 3), (1.0, 100.0)

#: Packages that figures depend on.
PACKAGES = ("numpy", "scipy", "numba")

#: Seconds at which the excess over the optimum is read, as shares of the limit.
READ_AT = (0.1, 0.2, 0.4, 1.0)

#: As many kicks as no limit leaves time for.
WITHOUT_END = 1_000_000

#: Random starts.
STARTS = 17


def searched(
    problem: Problem, start: Tree | None, seed: int, seconds: float
) -> tuple[Tree, list[tuple[float, float]]]:
    """Return the best tree after some processor seconds, and each better value with the seconds until then."""
    samples, _ = problem_of(problem)
    compile_kernels(TimeBudget(), samples)
    began, trace = process_time(), [(0.0, np.inf)]

    def report(value: float, steps: int) -> bool:
        del steps
        if value < trace[-1][1]:
            trace.append((process_time() - began, value))
        return False

    trees = [] if start is None else [Hyperplanes(start.w, start.b)]
    with one_blas_thread():
        found = local_search(
            samples, starts=STARTS, kicks=WITHOUT_END, trees=trees, seed=seed, threads=1,
            deadline=began + seconds, clock=process_time, on_progress=report,
        ).tree  # fmt: skip
    nodes = problem.formulation.node_problems(problem.topology)
    return nodes.labelled(found.w, found.b, problem.data, problem.topology), trace


def small_row(name: str, data: Dataset, seeds: list[int], seconds: float) -> list[str]:
    """Return the excess over the optimum, in percent, at several times; the worst seed's in brackets."""
    problem = Margot(C=PENALTIES[name]).build(data, depth=2)
    by_seed = []
    for seed in seeds:
        tree, trace = searched(problem, None, seed, seconds)
        polished = problem.formulation.polish(tree, problem.instance)
        value = min(problem.formulation.evaluate(each, problem.instance) for each in (tree, polished))
        trace.append((seconds, value))
        best = [min(v for t, v in trace if t <= share * seconds) for share in READ_AT]
        by_seed.append([100.0 * (v / OPTIMA[name] - 1.0) for v in best])
        print(name, seed, " ".join(f"{excess:.2f}" for excess in by_seed[-1]), f"{value:.8g}", flush=True)
    cells = [f"{np.median(column):.2f} ({max(column):.2f})" for column in zip(*by_seed, strict=True)]
    return [name, *cells, f"{OPTIMA[name]:.6g}"]


def other_rows(model: str, args: argparse.Namespace) -> list[list[str]]:
    """Return the trees of a model after some seconds, beside its start and the best objective known."""
    rows = []
    options = argparse.Namespace(data=args.data, model=model, depth=2, names=None)
    for name, formulation, data in cases_of(options):
        known = PROVEN[model].get(name, OPEN[model].get(name))
        if known is None or name not in args.sets:
            continue
        problem = formulation.build(data, depth=2)
        tree, _ = searched(problem, None, 0, args.seconds)
        value = formulation.evaluate(tree, problem.instance)
        start = formulation.evaluate(problem.start_tree(), problem.instance)
        rows.append([
            name, f"{data.n} x {data.p}", f"{start:.6g}", f"{value:.6g}", f"{known:.6g}",
            "yes" if name in PROVEN[model] else "no", f"{100.0 * (value / known - 1.0):+.2f}%",
        ])  # fmt: skip
        print(model, " | ".join(rows[-1]), flush=True)
    return rows


def large_rows(folder: Path, name: str, seconds: float) -> list[list[str]]:
    """Return objective, accuracy and bound beside ``svm-path``, for each depth and C."""
    whole = load(str(folder / "large" / f"{name}.csv.gz"), target="target", task="classification")
    train, test = whole.binarise(LARGE[name]).split(TEST_SHARE, seed=0)
    rows = []
    for depth in DEPTHS:
        for C in LARGE_C:
            formulation = Margot(C=C)
            problem = formulation.build(train, depth=depth, declare=False)
            began = process_time()
            with one_blas_thread():
                path = svm_path(train, Topology(depth), formulation.node_problems(Topology(depth)))
            path_seconds = process_time() - began
            tree, _ = searched(problem, path, 0, seconds)
            values = [formulation.evaluate(each, problem.instance) for each in (path, tree)]
            scaling = train.encoding.offset, train.encoding.scale
            hits = [
                100.0 * float(np.mean(each.with_scaling(*scaling).predict(test.X_raw) == test.y))
                for each in (path, tree)
            ]
            samples, both = problem_of(problem)
            bound = proven_bound(samples, both)
            change = 100.0 * (values[1] / values[0] - 1.0)
            row = [
                f"{name} {train.n} x {train.p}", str(depth), f"{C:g}", f"{values[0]:.6g} ({path_seconds:.1f} s)",
                f"{values[1]:.6g}", f"{change:+.1f}%", f"{hits[0]:.2f} -> {hits[1]:.2f}", f"{bound / values[1]:.2f}",
            ]  # fmt: skip
            print(" | ".join(row), flush=True)
            rows.append(row)
    return rows


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="processor seconds for each set of the paper"
    )
    parser.add_argument(
        "--large-seconds", type=float, default=12.0, help="processor seconds for each large set"
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help="seeds of the paper's sets")
    sets = [*OPTIMA, *(name for model in PROVEN for name in (*PROVEN[model], *OPEN[model])), *LARGE]
    parser.add_argument("--sets", nargs="*", default=sets, help="sets to search")
    add_output(parser)
    args = parser.parse_args()
    small = [
        small_row(name, paper_split(args.data, name), args.seeds, args.seconds)
        for name in OPTIMA
        if name in args.sets
    ]
    columns = ["data", "n x p", "start", "local search", "best known", "proven", "difference"]
    others = "\n\n".join(
        f"### {TITLES[model][0]}\n\n{TITLES[model][1]}.\n\n{table(columns, other_rows(model, args))}"
        for model in PROVEN
    )
    large = [
        row for name in LARGE if name in args.sets for row in large_rows(args.data, name, args.large_seconds)
    ]
    times = [f"{share * args.seconds:g} s" for share in READ_AT]
    page = f"""# Local search over hyperplanes

Processor seconds of one thread, without compilation.

## Proven optima

The training sets of the MARGOT paper, depth 2, {STARTS} random starts: percent above the proven optimum after some
seconds, the median of {len(args.seeds)} seeds, and the worst in brackets. At the end the nodes of the best tree are
solved exactly for its routing.

{table(["data", *times, "optimum"], small)}

## Other models

Depth 2, {args.seconds:g} s for each tree, seed 0, without the start of the model. "best known" is the objective of
`routing`; "no" means that it is not proven.

{others}

## Many samples

{args.large_seconds:g} s for each tree, from the start `svm-path` and {STARTS} random starts, seed 0. A quarter of the
samples is for tests: accuracy in percent, of the start and of the search. The last column is the bound of the root as a
share of the best objective.

{table(["data", "depth", "C", "svm-path", "local search", "change", "test accuracy", "bound"], large)}

{measured_with(PACKAGES)}
Run again: `python benchmarks/hyperplane_local.py --data FOLDER --seconds {args.seconds:g} \\
--large-seconds {args.large_seconds:g} --output FILE`.
"""
    publish(page, args.output)


if __name__ == "__main__":
    main()
