"""The exact search over thresholds: OCT beside ConTree, ORT, and what parameters and the number of samples cost.

    python benchmarks/exact_search.py --data FOLDER --large FOLDER [--limit 60] [--output FILE]

The page is docs/benchmarks/exact_search.md. The folders hold data sets as CSV files with a column ``target``:
``--data`` small ones, ``--large`` those of ConTree and Quant-BnB, compressed. Each alone will do. ConTree is the extra
``dp``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, process_time

import numpy as np
from markdown import add_output, measured_with, publish, table
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mipforest.data import Dataset, load
from mipforest.heuristics.contree import contree_within
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss, PinballLoss, error_loss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact.search import ExactResult, compile_kernels, exact_search
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology

CLASSES = [
    "wine",
    "haberman",
    "transfusion",
    "parkinsons",
    "banknote",
    "heart",
    "balance_scale",
    "fourclass",
    "monks1_train",
    "monks2_train",
    "monks3_train",
    "tic_tac_toe",
    "car_evaluation_ordinal",
    "cleveland",
    "diabetes",
    "indian_liver",
]
NUMBERS = [
    "servo",
    "yacht",
    "computer_hardware",
    "auto_mpg",
    "concrete_slump",
    "concrete_flow",
    "concrete_slump_strength",
    "housing",
    "energy",
    "concrete",
    "airfoil",
    "wine_quality_red",
]
DEEP_NUMBERS = NUMBERS[:7]

#: Data sets of ``--large``.
LARGE_CLASSES = [
    "bank",
    "raisin",
    "wilt",
    "segment",
    "page",
    "room",
    "occupancy",
    "magic",
    "eeg",
    "fault",
    "bean_train",
    "avila",
]
LARGE_NUMBERS = [("qsar", 8, 1), ("carbon", 5, 3), ("grid", 12, 1)]

#: Depth whose primal integrals are given.
DEEPEST = 4

PACKAGES = ("numpy", "numba", "scikit-learn", "pycontree")


def problem_of(data: Dataset, loss: str) -> UnivariateProblem:
    """What trees without a cost of splits are charged, in units of the loss."""
    own = ClassLoss() if loss == "classes" else error_loss(loss)
    return UnivariateProblem(thresholds=find_thresholds(data), y=data.y, loss=own)


def greedy(problem: UnivariateProblem, data: Dataset, depth: int) -> float:
    """Value of CART's tree, from which the search starts."""
    if problem.predicts_class:
        cart = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=problem.N_min, random_state=0)
    else:
        cart = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=problem.N_min, random_state=0)
    wrong = cart.fit(data.X, data.y).predict(data.X) - data.y
    loss = (wrong != 0).sum() if problem.predicts_class else (wrong**2).sum()
    return float(loss) + problem.split_cost * (cart.get_n_leaves() - 1)


def timed(
    problem: UnivariateProblem,
    data: Dataset,
    depth: int,
    limit: float,
    events: list[tuple[float, float]] | None = None,
) -> tuple[ExactResult, float]:
    """Search; return what was found and processor seconds, CART included; note clock and value of every event."""
    compile_kernels(TimeBudget(), problem, depth)
    began = process_time()
    best = greedy(problem, data, depth)
    noted = [] if events is None else events
    clock = monotonic()
    noted.append((0.0, best))

    def note(value: float, bound: float, nodes: int) -> None:
        del bound, nodes
        noted.append((monotonic() - clock, value))

    outcome = exact_search(problem, depth, best=best, deadline=clock + limit, on_progress=note)
    noted.append((monotonic() - clock, outcome.value))
    return outcome, process_time() - began


def primal_integral(events: Sequence[Sequence[float]], best: float, limit: float) -> float:
    """Return the mean of the primal gap (value - best) / value until a limit, in percent; 100 before the first tree."""
    total = min(events[0][0], limit) if events else limit
    for (begin, value), end in zip(events, [*(when for when, _ in events[1:]), limit], strict=True):
        total += (min(end, limit) - min(begin, limit)) * ((value - best) / value if value > best else 0.0)
    return float(100.0 * total / limit)


def found(outcome: ExactResult, seconds: float) -> list[str]:
    """Value, with the bound where it is not proven, and seconds."""
    bound = "" if outcome.ended else f" (bound {outcome.bound:.6g})"
    return [f"{outcome.value:.6g}{bound}", f"{seconds:.2f}"]


def seconds_of_children() -> float:
    """Processor seconds of processes that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


def by_contree(data: Dataset, depth: int, limit: float) -> tuple[float, float, bool]:
    """Run ConTree, which has a process of its own: errors, processor seconds with its start, and whether it ended."""
    began = seconds_of_children()
    tree, ended = contree_within(data, Topology(depth), time_limit=limit)
    errors = np.nan if tree is None else float((tree.predict(data.X) != data.y).sum())
    return errors, seconds_of_children() - began, ended


def beside_contree(
    names: Sequence[str], folder: Path, end: str, depths: Sequence[int], limit: float
) -> tuple[str, str]:
    """OCT and ConTree, one row per data set; and the sums of seconds where both ended, also on two threads."""
    tiny = Dataset.from_arrays(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1]))
    start = min(by_contree(tiny, 1, 10.0)[1] for _ in range(3))
    rows, sums, integrals = [], {depth: np.zeros(3) for depth in depths}, []
    for name in names:
        data = load(str(folder / f"{name}{end}"), target="target", task="classification")
        row = [name, f"{data.n} x {data.p}"]
        for depth in depths:
            problem = problem_of(data, "classes")
            events: list[tuple[float, float]] = []
            outcome, seconds = timed(problem, data, depth, limit, events)
            errors, other, ended = by_contree(data, depth, limit)
            other = max(0.0, other - start)
            assert not (ended and outcome.ended) or round(errors) == round(outcome.value), (name, depth)
            row += found(outcome, seconds)
            row += [f"{other:.2f}" if ended else f"> {other:.0f} ({errors:.0f})".replace(" (nan)", "")]
            if depth == DEEPEST:
                best = np.nanmin([outcome.value, errors])
                integrals.append((name, primal_integral(events, best, limit)))
            if ended and outcome.ended:
                clock = monotonic()
                exact_search(problem, depth, best=greedy(problem, data, depth), threads=2)
                sums[depth] += (seconds, monotonic() - clock, other)
        rows.append(row)
        print(*row, flush=True)
    header = ["data", "n x p"]
    for depth in depths:
        header += [f"D={depth}: errors", "seconds", "ConTree"]
    text = "; ".join(
        f"D={depth}: {ours:.2f} s (on two threads {two:.2f} s of wall time), ConTree {other:.2f} s"
        for depth, (ours, two, other) in sums.items()
    )
    if integrals:
        text += f". Primal integrals at D={DEEPEST} (mean gap to the best tree of either in {limit:g} s, percent): "
        text += ", ".join(f"{name} {value:.2f}" for name, value in integrals)
    return table(header, rows), text


def large_numbers(folder: Path, names: Sequence[str], limit: float) -> str:
    """Trees of three levels with the squared loss on Quant-BnB's sets, one row per target."""
    rows = []
    for name, p, targets in LARGE_NUMBERS:
        if name not in names:
            continue
        values = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
        for k in range(targets):
            data = Dataset.from_arrays(values[:, :p], values[:, p + k], task="regression")
            label = name if targets == 1 else f"{name}, target {k + 1}"
            row = [label, f"{data.n} x {p}", *found(*timed(problem_of(data, "squared"), data, 3, limit))]
            rows.append(row)
            print(*row, flush=True)
    return table(["data", "n x p", "D=3: squared loss", "seconds"], rows)


def regression(folder: Path, limit: float) -> str:
    """ORT with the squared loss, one row per data set."""
    rows = []
    for name in NUMBERS:
        data = load(str(folder / f"{name}.csv"), target="target", task="regression")
        row = [name, f"{data.n} x {data.p}"]
        for depth in (2, 3, 4):
            deep = depth < 4 or name in DEEP_NUMBERS
            row += found(*timed(problem_of(data, "squared"), data, depth, limit)) if deep else ["", ""]
        rows.append(row)
        print(*row, flush=True)
    header = ["data", "n x p"]
    for depth in (2, 3, 4):
        header += [f"D={depth}: squared loss", "seconds"]
    return table(header, rows)


def parameters(folder: Path, limit: float) -> str:
    """What a cost of splits, a least leaf size and the absolute loss cost at depth three."""
    rows = []
    for name, loss in (("banknote", "classes"), ("heart", "classes"), ("auto_mpg", "squared")):
        task = "classification" if loss == "classes" else "regression"
        data = load(str(folder / f"{name}.csv"), target="target", task=task)
        plain = problem_of(data, loss)
        unit = greedy(plain, data, 1)
        row = [name]
        variants = [plain, *(replace(plain, split_cost=share * unit) for share in (0.01, 0.05))]
        variants += [replace(plain, N_min=least) for least in (5, 20)]
        for problem in variants:
            row.append(found(*timed(problem, data, 3, limit))[1])
        row.append(
            found(*timed(replace(plain, loss=PinballLoss()), data, 3, limit))[1] if loss == "squared" else ""
        )
        rows.append(row)
        print(*row, flush=True)
    header = ["data", "plain", "split cost 1%", "split cost 5%", "N_min = 5", "N_min = 20", "absolute loss"]
    return table(header, rows)


def growth(sizes: Sequence[tuple[int, int]], limit: float) -> str:
    """Seconds by the numbers of samples and features: three classes, of three features, 5% of the labels at random."""
    rows = []
    for n, p in sizes:
        rng = np.random.default_rng(0)
        X = rng.random((n, p))
        y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] + (X[:, 2] > 0.3) > 1.2)
        y = np.where(rng.random(n) < 0.05, rng.integers(0, 3, n), y)
        data = Dataset.from_arrays(X, y)
        row = [f"{n} x {p}"]
        for depth in (2, 3):
            row += found(*timed(problem_of(data, "classes"), data, depth, limit))
        rows.append(row)
        print(*row, flush=True)
    return table(["n x p", "D=2: errors", "seconds", "D=3: errors", "seconds"], rows)


def small_sets(folder: Path, depths: Sequence[int], limit: float) -> str:
    """The sections of the small data sets."""
    classes, sums = beside_contree(CLASSES, folder, ".csv", depths, limit)
    return f"""## Classes, beside ConTree

Where both end they find the same number of errors (the benchmark asserts it).

{classes}

Sums over the sets where both ended: {sums}.

## Regression: squared loss

{regression(folder, limit)}

## What parameters cost

Seconds at depth 3; costs of splits are shares of the loss of CART's tree of depth 1.

{parameters(folder, limit)}

## Growth

Three classes without ties, 5% of the labels at random: more samples, and more features, most of which are noise.
[Another page](exact_scale.md) goes to two million samples and two thousand features.

{growth([(n, 4) for n in (100, 1000, 10_000, 100_000)], limit)}

{growth([(1000, p) for p in (4, 8, 16, 32)], limit)}
"""


def large_sets(folder: Path, names: Sequence[str], limit: float) -> str:
    """The sections of ConTree's and Quant-BnB's own data sets."""
    wanted = [name for name in LARGE_CLASSES if name in names]
    classes, sums = beside_contree(wanted, folder, ".csv.gz", (3,), limit)
    return f"""## Larger sets of classes, beside ConTree

ConTree's own benchmark, at depth three; [another page](anytime.md) has depths four and five. If ConTree did not end,
its errors follow the seconds, provided that it gave a tree.

{classes}

Sums over the sets where both ended: {sums}.

## Larger sets of numbers: squared loss

Quant-BnB's benchmark.

{large_numbers(folder, names, limit)}
"""


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the small data sets as CSV files")
    parser.add_argument("--large", type=Path, help="folder with the large data sets as compressed CSV files")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each search")
    parser.add_argument(
        "--depths", type=int, nargs="*", default=[2, 3, 4], help="depths for small sets of classes"
    )
    every = [*LARGE_CLASSES, *(name for name, *_ in LARGE_NUMBERS)]
    parser.add_argument("--only", nargs="*", default=every, help="large data sets, all unless given")
    add_output(parser)
    args = parser.parse_args()
    if args.data is None and args.large is None:
        parser.error("give --data, --large, or both")
    sections, given = [], []
    if args.data is not None:
        sections.append(small_sets(args.data, args.depths, args.limit))
        given.append("--data FOLDER")
    if args.large is not None:
        sections.append(large_sets(args.large, args.only, args.limit))
        given.append("--large FOLDER")
    body = "\n".join(sections)
    page = f"""# The search `exact-search`

Processor seconds of one thread. They include CART's tree, from which the search starts, and exclude compilation. Those
of ConTree are the seconds of its process, less the start of the process. At most {args.limit:g} s of wall time each:
where the search did not end, the bound follows the value. `alpha` = 0, `N_min` = 1 unless given.

{body}
{measured_with(PACKAGES)}
Run again: `python benchmarks/exact_search.py {" ".join(given)} --limit {args.limit:g} --output FILE`.
"""
    publish(page, args.output)


if __name__ == "__main__":
    main()
