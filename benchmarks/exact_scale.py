"""The exact search on large tables: many features, many actions with and without a budget, many samples.

    python benchmarks/exact_scale.py [--limit 1800] --picture docs/pictures/exact-growth.svg [--output FILE]

The page is docs/benchmarks/exact_scale.md; it takes about an hour. Each search has one thread. ConTree is the extra
``dp``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import monotonic, process_time

import numpy as np
from exact_search import PACKAGES, by_contree, found, greedy, problem_of, timed
from markdown import add_output, measured_with, publish, table
from matplotlib.figure import Figure

import mipforest
from mipforest import constraints
from mipforest.data import Dataset
from mipforest.problem.problem import Problem
from mipforest.problem.result import Result
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact.search import ExactResult, compile_kernels, exact_search, rows_of
from mipforest.time_budget import TimeBudget

#: Samples and features of wide tables, shares of labels at random, and seconds of ConTree.
WIDE = ((40_000, 200), (10_000, 2000))
WIDE_NOISE = (0.1, 0.2)
CONTREE_LIMIT = 60.0

#: Samples, features, depth and decisions.
POLICIES = ((10_000, 30, 2, 20), (10_000, 10, 3, 3), (100_000, 30, 2, 20))

#: Most samples of a search with a budget, and its seconds on the clock.
MOST_WITH_BUDGET, BUDGET_LIMIT = 10_000, 600.0

#: Samples, features and depth of numbers that are predicted.
NUMBERS = ((100_000, 10, 3), (2_000_000, 10, 2))

#: Samples of the picture of growth, by depth: of two classes and five features, and of numbers and ten features.
CLASSES_GROW = {2: (1000, 10_000, 100_000, 1_000_000), 3: (1000, 5000, 20_000, 50_000, 100_000, 200_000)}
NUMBERS_GROW = {2: (10_000, 100_000, 500_000, 2_000_000), 3: (1000, 10_000, 50_000, 100_000)}
GROWTH_LIMIT = 300.0


@dataclass
class Measured:
    """A search, its processor seconds, and when a bound above 0 was there, on the clock; empty if never."""

    outcome: ExactResult
    seconds: float
    first_bound: str


def searched(problem: UnivariateProblem, depth: int, best: float, limit: float) -> Measured:
    """Search with one thread, from the value of a known tree."""
    compile_kernels(TimeBudget(), problem, depth)
    bounds: list[float] = []
    began, clock = process_time(), monotonic()

    def note(value: float, bound: float, nodes: int) -> None:
        del value, nodes
        if bound > 0 and not bounds:
            bounds.append(monotonic() - clock)

    outcome = exact_search(problem, depth, best=best, deadline=clock + limit, on_progress=note)
    return Measured(outcome, process_time() - began, f"{bounds[0]:.1f}" if bounds else "")


def built(make: Callable[[], UnivariateProblem]) -> tuple[UnivariateProblem, float]:
    """Return a problem with its tables, and processor seconds of making them."""
    began = process_time()
    problem = make()
    rows_of(problem)
    return problem, process_time() - began


def labels_of(X: np.ndarray) -> np.ndarray:
    """Labels of a tree of two levels, the features of whose two children differ."""
    return np.where(X[:, 0] > 0.5, X[:, 1] > 0.3, X[:, 2] + 0.5 * X[:, 3] > 0.7)


def classes(n: int, p: int, noise: float) -> Dataset:
    """Two classes, a share of them at random."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    y = labels_of(X).astype(int)
    return Dataset.from_arrays(X, np.where(rng.random(n) < noise, rng.integers(0, 2, n), y))


def numbers(n: int, p: int) -> Dataset:
    """Numbers that depend on five features."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    y = labels_of(X) + 0.5 * X[:, 4] + 0.3 * rng.normal(size=n)
    return Dataset.from_arrays(X, y, task="regression")


def wide_tables(limit: float) -> str:
    """Tables of many features, four of which say something, beside ConTree."""
    rows = []
    for n, p in WIDE:
        for noise in WIDE_NOISE:
            data = classes(n, p, noise)
            problem, seconds = built(lambda data=data: problem_of(data, "classes"))  # type: ignore[misc]
            best = greedy(problem, data, 2)
            own = searched(problem, 2, best, limit)
            errors, other, ended = by_contree(data, 2, CONTREE_LIMIT)
            assert not (ended and own.outcome.ended) or round(errors) == round(own.outcome.value), (n, p)
            row = [f"{n} x {p}", f"{noise:.0%}", f"{seconds:.1f}", f"{best:g}"]
            row += [*found(own.outcome, own.seconds), own.first_bound]
            row += [f"{other:.1f}" if ended else f"> {other:.0f} ({errors:.0f})".replace(" (nan)", "")]
            rows.append(row)
            print(*row, flush=True)
    return table(
        [
            "n x p",
            "labels at random",
            "building",
            "CART",
            "D=2: errors",
            "seconds",
            "first bound",
            "ConTree",
        ],
        rows,
    )


def solved(problem: Problem, limit: float) -> tuple[Result, list[str]]:
    """Solve with one thread; return the result, and loss, bound, gap and processor seconds."""
    began = process_time()
    result = problem.solve("exact-search", threads=1, time_limit=limit)
    seconds = process_time() - began
    return result, [
        f"{result.objective:.6g}",
        f"{result.bound:.6g}",
        f"{result.gap:.2%}",
        f"{seconds:.1f}",
    ]


def policies(limit: float) -> tuple[str, str]:
    """Policy trees, and those with half as many samples for the decision that most samples get."""
    free, budget = [], []
    for n, p, depth, K in POLICIES:
        rng = np.random.default_rng(0)
        X, rewards = rng.normal(size=(n, p)), rng.normal(size=(n, K))
        rewards[:, 1:] += X[:, : K - 1]
        names = [f"d{k}" for k in range(K)]
        data = Dataset.from_arrays(X, rewards=rewards, classes=names)
        # Depth two of the variant "tight" is searched while the model is built.
        problem = mipforest.get_formulation("policy")(variant="valid").build(data, depth)
        head = [f"{n} x {p}", f"{K}", f"{depth}"]
        result, own = solved(problem, limit)
        free.append([*head, *own])
        print(*free[-1], flush=True)
        if n > MOST_WITH_BUDGET:
            continue
        counts = np.bincount(result.tree.predict(X).astype(int), minlength=K)
        most, share = int(counts.argmax()), 0.5 * float(counts.max()) / n
        constraints.limit_label(problem, names[most], share)
        _, own = solved(problem, min(limit, BUDGET_LIMIT))
        budget.append([*head, f"{share:.1%}", *own])
        print(*budget[-1], flush=True)
    head = ["n x p", "decisions", "D"]
    end = ["loss", "bound", "gap", "seconds"]
    return table([*head, *end], free), table([*head, "at most", *end], budget)


def row_of_numbers(n: int, p: int, depth: int, limit: float) -> list[str]:
    """Squared loss of many samples, without a tree to begin with."""
    data = numbers(n, p)
    problem, seconds = built(lambda: problem_of(data, "squared"))
    own = searched(problem, depth, np.inf, limit)
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1e6
    row = [f"{n} x {p}", f"{depth}", f"{seconds:.1f}", *found(own.outcome, own.seconds)]
    return [*row, own.first_bound, f"{peak:.1f}"]


def large_numbers(limit: float) -> str:
    """Squared loss, each size in a process of its own."""
    rows = []
    for size in NUMBERS:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            rows.append(pool.submit(row_of_numbers, *size, limit).result())
        print(*rows[-1], flush=True)
    return table(["n x p", "D", "building", "squared loss", "seconds", "first bound", "GB"], rows)


def draw_growth(file: Path) -> None:
    """Draw processor seconds of one thread against the number of samples, of classes and of numbers."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    kinds = (
        ("two classes, 5 features", "classes", CLASSES_GROW),
        ("numbers, 10 features", "squared", NUMBERS_GROW),
    )
    for axis, (title, loss, grows) in zip(figure.subplots(1, 2, sharey=True), kinds, strict=True):
        for depth, sizes in grows.items():
            drawn = []
            for n in sizes:
                data = classes(n, 5, 0.1) if loss == "classes" else numbers(n, 10)
                outcome, seconds = timed(problem_of(data, loss), data, depth, GROWTH_LIMIT)
                drawn.append((n, seconds))
                print(f"{title}, depth {depth}, n {n}: {found(outcome, seconds)}", flush=True)
                axis.plot(n, seconds, "o", color=f"C{depth}", fillstyle="full" if outcome.ended else "none")
            axis.plot(
                *zip(*drawn, strict=True), "-", color=f"C{depth}", linewidth=0.8, label=f"depth {depth}"
            )
        axis.set(xscale="log", yscale="log", xlabel="samples", title=title)
        axis.minorticks_off()
        axis.grid(visible=True, alpha=0.3)
        axis.legend()
    figure.axes[0].set_ylabel("processor s")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for each search")
    parser.add_argument("--picture", type=Path, required=True, help="file of the picture of growth")
    add_output(parser)
    args = parser.parse_args()
    wide = wide_tables(args.limit)
    free, budget = policies(args.limit)
    many = large_numbers(args.limit)
    draw_growth(args.picture)
    page = f"""# Large tables

Processor seconds of `exact-search` with one thread, without compilation; the first bound above 0 is in seconds on the
clock. At most {args.limit:g} s for each search unless it is said otherwise. Where a search did not
end, its bound follows.

## Many features

Two classes, continuous features without ties: four say something, all others are noise. Building the tables of
thresholds has seconds of its own, and CART's tree, from which the search starts, is in neither. ConTree has
{CONTREE_LIMIT:g} s.

{wide}

## Many decisions

Normal rewards, of all but one decision a normal feature more. The loss is what a sample loses on average against its
best decision. Seconds are those of `solve`, once the model is built.

{free}

With a budget: the decision that most samples get above may be given to half as many. The search has {BUDGET_LIMIT:g} s
on the clock.

{budget}

## Many numbers

Squared loss, continuous features; five of ten say something. The search is given no tree to begin with. Memory is the
most that the process holds at a time, its data included.

{many}

## Growth

Two classes, 10% of the labels at random, and numbers. Circles are not proven after {GROWTH_LIMIT:g} s. CART's
tree, from which the search starts, is included.

![Processor seconds against the number of samples, of two classes to a million and of numbers to two
million](../pictures/exact-growth.svg)

{measured_with(PACKAGES)}
Run again: `python benchmarks/exact_scale.py --limit {args.limit:g} --picture FILE --output FILE`.
"""
    publish(page, args.output)


if __name__ == "__main__":
    main()
