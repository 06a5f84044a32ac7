"""The tree search ``routing`` on the training sets of its models' papers, beside matrix solvers.

MARGOT, HFS-MARGOT and SFS-MARGOT have the paper's parameters (the sparse ones those of
``campaigns/margot-tables-7-8.toml``); OLCT has the splits and C = 1 of ``benchmarks/olct.py``, with tangents V0.

The folder given by ``--data`` holds the data sets as ``NAME.csv``, last column ``target``. The split is the
paper's: 80%, stratified, seed 0, features scaled to [0, 1] on the training part.

    python benchmarks/routing.py --data FOLDER --limit 60 --matrix HiGHS "HiGHS tight" SCIP --output FILE
    python benchmarks/routing.py --data FOLDER --depth 3 --limit 300 --matrix HiGHS --output FILE
    python benchmarks/routing.py --data FOLDER --model hfs --limit 60 --output FILE
    python benchmarks/routing.py --data FOLDER --model sfs --limit 60 --output FILE
    python benchmarks/routing.py --data FOLDER --model olct --limit 300 --matrix HiGHS --output FILE
    python benchmarks/routing.py --growth docs/pictures/routing-growth.svg --limit 6
    python benchmarks/routing.py --many --data FOLDER --limit 30 --output FILE

The last one is for large sets, ``large/NAME.csv.gz`` in that folder: what is proven where plunges do not end.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
import olct
from markdown import add_output, measured_with, publish, table
from matplotlib.figure import Figure
from starts import MARGOT, paper_split

from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.olct import Olct
from mipforest.data import Dataset, load
from mipforest.problem.formulation import Formulation
from mipforest.searches.routing.convex_backend import ConvexBackend
from mipforest.searches.routing.feature_branching import FeatureBackend
from mipforest.searches.routing.l1_simplex import L1Backend
from mipforest.searches.routing.svm_backend import SvmBackend
from mipforest.solvers.solution import Event
from mipforest.time_budget import TimeBudget

#: Data set: the paper's penalties C by level, and seconds of its Gurobi 9.5.1 (600 s: the gap that was left).
CASES = {
    **{name: case[0] for name, case in MARGOT.items()},
    "tic_tac_toe_margot18": (1e0, 1e0),
}
PAPER = {
    "breast_cancer_diagnostic": "7.4 s",
    "breast_cancer_wisconsin": "8.7 s",
    "climate_model": "10.7 s",
    "cleveland": "318 s",
    "ionosphere": "11.2 s",
    "parkinsons": "207 s",
    "sonar": "1.5 s",
    "spectf": "3.3% left",
    "tic_tac_toe_margot18": "3.5 s",
    "wholesale": "46.4 s",
}

#: The sparse models, as the campaign calls them.
SPARSE = {"hfs": HfsMargot, "sfs": SfsMargot}
CAMPAIGN = Path(__file__).parent.parent / "campaigns" / "margot-tables-7-8.toml"

#: Matrix solvers beside the search, the names of their columns, and the variant of the model that each gets.
MATRIX = {"HiGHS": ("highs", "valid"), "HiGHS tight": ("highs", "tight"), "SCIP": ("scip", "valid")}
MATRIX_COLUMNS = ("objective", "bound", "gap", "seconds", "nodes")

#: What pages call the models, and their data and parameters.
TITLES = {
    "margot": ("MARGOT", "The MARGOT paper's splits and penalties"),
    "hfs": ("HFS-MARGOT", "The MARGOT paper's splits and parameters (its table 22)"),
    "sfs": ("SFS-MARGOT", "The MARGOT paper's splits and parameters (its table 22)"),
    "olct": ("OLCT", "The splits of [OLCT's benchmark](olct.md), C = 1, tangents V0"),
}

#: Samples and penalties of the picture of growth, and those that stay while the other changes.
SIZES, PENALTIES, SIZE, PENALTY = (100, 200, 400, 800, 1500, 3000), tuple(np.logspace(-3, 4, 8)), 200, 1.0

#: Features of its samples, and the share of labels that are wrong.
FEATURES, WRONG = 2, 0.01

#: Large sets with the class that is compared with all others, samples of the training part (all where it has no more),
#: and penalties.
MANY = (
    ("magic", "1", 1000),
    ("magic", "1", 4000),
    ("page", "0", 5000),
    ("magic", "1", 15_000),
    ("eeg", "1", 15_000),
)
MANY_C, TEST_SHARE = (1.0, 100.0), 0.25

#: What the page of depth 2 says of it.
GROWTH = f"""
## Growth

![Nodes and processor seconds against the number of samples, and against C](../pictures/routing-growth.svg)

One thread; samples of {FEATURES} features, with the labels of an oblique tree of depth 2,
{100 * WRONG:g}% of them wrong. Filled points are proven; circles were stopped after some processor seconds, with
fewer nodes where each takes longer. The number of samples decides what can be proven. C matters less, until it is so
small that most samples lie within the margin. Draw again:
`python benchmarks/routing.py --growth docs/pictures/routing-growth.svg --limit 6`.
"""

#: Name of a data set, the model, and its training part.
Case = tuple[str, Formulation, Dataset]

#: What pages say of attempts, by model and depth.
TRIED = {
    ("margot", 3): """
## What was tried

- Branching first on samples whose side at the root is open: with their weight, relative to those below, raised from 2
  to 10, the bounds after 40 processor seconds of one thread differ little (breast_cancer 5.6% both, wholesale 18.9%
  instead of 20.4%).
- Bounds of the subtrees below the root by searches of their own ([how](../tree_searches.md#routing)): on
  breast_cancer they close all open nodes, most within ten steps. Where few samples have a side at the root, they are
  exact within 50 steps, but there the bound lacks sides at the root. With these bounds only where half of the samples
  have a side, the gap on breast_cancer was 7.2% after 20 s of processor time instead of 0.9%. Without branching below
  the root where such a bound is above the duals, tic_tac_toe_margot18 was left with a gap of 1.3% after 300 s.
- A local search of trees after 500 nodes. One thread, 270 s on the clock (145 to 218 processor seconds):
  breast_cancer_wisconsin 5678.64 with a gap of 20.8%, cleveland 21.953 with 22.5%, spectf 16.5216 with 10.4%, wholesale
  114228 with 15.5%. One tree is better than the table's, two are the same; the bound is what stays open.
""",
    ("olct", 2): """
## What was tried

- Interior points at every node, as for nodes that select features: some 75 nodes per processor second on heart, gaps of
  24%, 23% and 27% on heart, wholesale and parkinsons after 20 s on the clock (two threads). The simplex method with
  bases handed down: 1700 nodes per processor second, and gaps of 4.6%, 5.1% and 7.1% after 15 s of processor time on
  one thread; 16% on cleveland and 12% on ionosphere.
- Eight candidates that are tried for 20 steps. After 12 s of processor time, gaps on cleveland and parkinsons are 16.6%
  and 8.4% with 8 and 60, 16.1% and 15.3% with 4 and 20; 18.3% on cleveland with 16 and 10.
""",
}

PACKAGES = ("numpy", "numba", "highspy", "clarabel")


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--model", choices=("margot", *SPARSE, "olct"), default="margot")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each search")
    parser.add_argument("--matrix", nargs="*", choices=MATRIX, default=[], help="matrix solvers beside it")
    parser.add_argument("--matrix-limit", type=float, help="seconds for each of them; as for the search")
    parser.add_argument(
        "--names", nargs="*", help="data sets; all of the model's if left out, and built-in ones for margot"
    )
    parser.add_argument("--many", action="store_true", help="large sets, where plunges do not end")
    parser.add_argument("--growth", type=Path, help="draw how it grows with samples and C, instead of a page")
    add_output(parser)
    args = parser.parse_args()
    SvmBackend.compile(TimeBudget())
    if args.growth:
        draw_growth(args.limit, args.growth)
        return
    if args.data is None:
        parser.error("--data FOLDER is needed for all but --growth")
    if args.many:
        publish(many_page(args), args.output)
        return
    for backend in (FeatureBackend, L1Backend, ConvexBackend):
        backend.compile(TimeBudget())
    matrix_limit = args.matrix_limit or args.limit
    rows = [row(*case, args, matrix_limit) for case in cases_of(args)]
    publish(page(rows, args, matrix_limit), args.output)


def many_page(args: argparse.Namespace) -> str:
    """Return the page of large sets: objective, and bounds as a share of it."""
    rows = []
    for name, label, most in MANY:
        whole = load(str(args.data / "large" / f"{name}.csv.gz"), target="target", task="classification")
        train, _ = whole.binarise(label).split(TEST_SHARE, seed=0)
        if train.n > most:
            chosen = np.sort(np.random.default_rng(0).permutation(train.n)[:most])
            train = Dataset.from_arrays(train.X_raw[chosen], train.y[chosen], name=name)
        for C in MANY_C:
            problem = Margot(C=C).build(train, args.depth, declare=False)
            began = process_time()
            found = problem.solve("routing", time_limit=args.limit)
            root = max(event.bound for event in found.solution.events if event.nodes == 0)
            share = [f"{bound / found.objective:.3f}" for bound in (root, found.bound)]
            spent = [f"{found.solution.seconds:.1f}", f"{process_time() - began:.1f}"]
            size, verified = f"{train.n} x {train.p}", "yes" if found.verified else "NO"
            rows.append([name, size, f"{C:g}", f"{found.objective:.6g}", *share, *spent, verified])
            print(" | ".join(rows[-1]), flush=True)
    header = ["data", "n x p", "C", "objective", "root", "bound", "seconds", "processor s", "verified"]
    return f"""# The search `routing`: many samples

MARGOT of depth {args.depth}, {args.limit:g} s each: the objective, and as shares of it the bound of the root
and the bound at the end. Three quarters of the samples, or a random part of these; features scaled to [0, 1].

{table(header, rows)}

{measured_with(PACKAGES)}
Run again: `python benchmarks/routing.py --many --data FOLDER --depth {args.depth} --limit {args.limit:g} \\
--output FILE`.
"""


def cases_of(args: argparse.Namespace) -> list[Case]:
    """Return a model's data sets, or those named; parameters below the second level are those of the second."""
    if args.model == "margot":
        cases = [margot_case(args.data, name) for name in args.names or sorted(CASES)]
    else:
        found = olct_cases(args.data) if args.model == "olct" else sparse_cases(args.data, args.model)
        cases = [case for case in found if not args.names or case[0] in args.names]
    return [(name, deeper(formulation, args.depth), data) for name, formulation, data in cases]


def deeper(formulation: Formulation, depth: int) -> Formulation:
    """Return a formulation whose parameters by level go on below the second as they are there."""
    by_level = {name: value for name, value in vars(formulation).items() if isinstance(value, tuple)}
    longer = {name: (*value, *value[-1:] * (depth - len(value)))[:depth] for name, value in by_level.items()}
    return replace(formulation, **longer)


def row(
    name: str, formulation: Formulation, data: Dataset, args: argparse.Namespace, matrix_limit: float
) -> list[str]:
    """Solve one training set."""
    problem = formulation.build(data, args.depth)
    began = process_time()
    found = problem.solve("routing", time_limit=args.limit)
    cells = [
        name,
        f"{data.n} x {data.p}",
        f"{found.objective:.6g}",
        f"{found.bound:.6g}",
        f"{100 * found.gap:.2f}%",
        f"{found.solution.seconds:.1f}",
        f"{process_time() - began:.1f}",
        str(found.solution.nodes),
        "yes" if found.verified else "NO",
    ]
    for solver, variant in map(MATRIX.__getitem__, args.matrix):
        if variant not in formulation.variants:
            cells += ["-"] * len(MATRIX_COLUMNS)
            continue
        # Preparing counts in the limit.
        built = replace(formulation, variant=variant).build(data, args.depth, budget=TimeBudget(matrix_limit))
        other = built.solve(solver, time_limit=matrix_limit)
        cells += [
            f"{other.objective:.6g}",
            f"{other.bound:.6g}",
            f"{100 * other.gap:.1f}%",
            f"{other.solution.seconds:.0f}",
            str(other.solution.nodes),
        ]
    cells += [PAPER[name]] if has_paper_column(args) else []
    print(" | ".join(cells), flush=True)
    return cells


def has_paper_column(args: argparse.Namespace) -> bool:
    """Return whether the paper printed seconds for each of the data sets."""
    return args.model == "margot" and args.depth == 2 and set(args.names or PAPER) <= set(PAPER)


def page(rows: list[list[str]], args: argparse.Namespace, matrix_limit: float) -> str:
    header = ["data", "n x p", "objective", "bound", "gap", "seconds", "processor s", "nodes", "verified"]
    own, width = len(header), len(MATRIX_COLUMNS)
    header += ["paper: Gurobi 9.5.1"] if has_paper_column(args) else []
    after = own + width * len(args.matrix)
    tables = [table(header, [[*cells[:own], *cells[after:]] for cells in rows])]
    for number, name in enumerate(args.matrix):
        first = own + width * number
        cells = [[cells[0], *cells[first : first + width]] for cells in rows]
        tables += [f"{name}:", table(["data", *MATRIX_COLUMNS], cells)]
    shown = "\n\n".join(tables)
    beside = f" Matrix solvers have {matrix_limit:g} s,\npreparing included." if args.matrix else ""
    certified = sum(float(cells[4].rstrip("%")) <= 0.01 for cells in rows)
    total = sum(float(cells[5]) for cells in rows)
    title, source = TITLES[args.model]
    # What was run, word by word as it has to be typed.
    command = f"--model {args.model} --depth {args.depth} --limit {args.limit:g}"
    command += "".join(
        [" --matrix", *(f' "{name}"' if " " in name else f" {name}" for name in args.matrix)]
        * bool(args.matrix)
    )
    command += f" --matrix-limit {args.matrix_limit:g}" if args.matrix and args.matrix_limit else ""
    command += f" --names {' '.join(args.names)}" if args.names else ""
    return f"""# The search `routing`: {title}, depth {args.depth}

{source}, at most {args.limit:g} s each. The search begins with the tree known from building the model. The seconds
include neither the time for this tree nor compilation. Processor seconds are those of all threads.{beside}

{shown}

{certified} of {len(rows)} certified within a gap of 0.01%, in {total:.0f} s of search together.

{measured_with(PACKAGES)}
Run again: `python benchmarks/routing.py --data FOLDER {command} --output FILE`.
{GROWTH if args.model == "margot" and args.depth == 2 else ""}{TRIED.get((args.model, args.depth), "")}"""


def growing(n: int) -> Dataset:
    """Return samples whose labels an oblique tree of depth 2 gives, but for those that are wrong."""
    rng = np.random.default_rng(0)
    X, w = rng.random((n, FEATURES)), rng.standard_normal((3, FEATURES))
    root, left, right = ((X - 0.5) @ w.T > 0).T
    y = np.where(root, right, left) ^ (rng.random(n) < WRONG)
    return Dataset.from_arrays(X, y.astype(int), name=f"{n} samples")


def over_at(end: float) -> Callable[[Event], bool]:
    """Return what ends a solve once the process has had some processor seconds."""
    return lambda _: process_time() > end


def draw_growth(limit: float, file: Path) -> None:
    """Draw nodes and processor seconds of one thread against the number of samples, and against C.

    The limit is one of processor seconds. What is not
    proven until then is a circle.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    cases = ([(n, PENALTY) for n in SIZES], [(SIZE, C) for C in PENALTIES])
    titles = (f"samples (C = {PENALTY:g})", f"C ({SIZE} samples)")
    for column, (points, title) in enumerate(zip(cases, titles, strict=True)):
        drawn = []
        for n, C in points:
            problem = Margot(C=float(C)).build(growing(n), 2)
            began = process_time()
            found = problem.solve(
                "routing", time_limit=None, threads=1, on_progress=over_at(process_time() + limit)
            )
            seconds = process_time() - began
            drawn.append((n if column == 0 else float(C), found.solution.nodes, seconds))
            print(f"n {n}, C {C:g}: {found.status}, gap {100 * found.gap:.2f}%, {drawn[-1][1:]}", flush=True)
            proven = "full" if found.status == "optimal" else "none"
            for k in range(2):
                axes[k, column].plot(drawn[-1][0], drawn[-1][1 + k], "o", color="C0", fillstyle=proven)
        x, nodes, spent = zip(*drawn, strict=True)
        for axis, y, label in zip(axes[:, column], (nodes, spent), ("nodes", "processor s"), strict=True):
            axis.plot(x, y, "-", color="C0", linewidth=0.8)
            axis.set(xscale="log", yscale="log", ylabel=label if column == 0 else "")
            axis.grid(visible=True, alpha=0.3)
        axes[1, column].set_xlabel(title)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def margot_case(folder: Path, name: str) -> Case:
    """Return a set of tables 5 and 6 with the paper's penalties, or a built-in one with C = 1."""
    data = paper_split(folder, name) if name in CASES else load(name)
    return name, Margot(C=CASES.get(name, (1.0, 1.0))), data


def sparse_cases(folder: Path, model: str) -> list[Case]:
    """Return the sets of tables 7 and 8 with the paper's parameters."""
    stated = tomllib.loads(CAMPAIGN.read_text())["models"][f"{model}-margot"]
    cases = []
    for name, own in stated["by_data"].items():
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in own.items()}
        file = "tic_tac_toe_margot18" if name == "tic_tac_toe" else name
        formulation = SPARSE[model](**{**stated.get("parameters", {}), **given})
        cases.append((name, formulation, paper_split(folder, file)))
    return cases


def olct_cases(folder: Path) -> list[Case]:
    """Return the sets of ``docs/benchmarks/olct.md``."""
    return [
        (part.name, Olct(C=1.0, tangents="V0", refinement=False), part.train) for part in olct.splits(folder)
    ]


if __name__ == "__main__":
    main()
