"""MIRET, OCT-H, and OCT-H with two features per split: groups, supports, and what ``oblique-search`` proves in a limit.

    python benchmarks/oblique.py [FOLDER] --results oblique.jsonl [--only miret-2 oct-h ...] [--limit 600]
                                 [--lines-limit 300] [--highs-limit 60] [--threads 2]
                                 [--long miret-3:diabetes two-features:banknote ...]
                                 [--output docs/benchmarks/oblique.md]

FOLDER (by default ../shared/data) holds the data sets. Cells are those of the suites ``miret-tables-5-7`` and
``margot-tables-5-6`` in ``campaigns/``, with their hyperparameters and the papers' figures. With two features per
split they are whole data sets of at most ten features. HiGHS solves these, and MIRET at depth two, with the same
threads and a limit of its own. What is not proven, and named by ``--long``, is solved with more time and threads.
Limits are seconds on the clock, so that nothing else should run.

Every solve is one line of the results file. What is in it, with the same limit and threads, is not solved again: a run
that was stopped goes on, and the page has the parts that are complete.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import numpy as np
from markdown import add_output, measured_with, publish, table
from results import Results

from formulations.miret import Miret
from formulations.oct_h import OctH
from mipforest.data import Dataset, load
from mipforest.problem.problem import Problem
from mipforest.problem.structure import HyperplaneCharges, LabelledLeaves
from mipforest.searches.oblique.labelled import table_of, takes
from mipforest.searches.oblique.problem import Level, ObliqueProblem

CAMPAIGNS = Path(__file__).parent.parent / "campaigns"

#: The gap of the suites.
GAP = 1e-4

#: What a bound on a number of errors may lack of a whole number by rounding.
ROUNDED = 1e-6


def cells(suite: str, model: str) -> list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Return name, data, hyperparameters and published figures of each cell of a model."""
    with (CAMPAIGNS / f"{suite}.toml").open("rb") as file:
        content = tomllib.load(file)
    return [
        (name, content["data"][name], own, content["published"][model][name])
        for name, own in content["models"][model]["by_data"].items()
    ]


def read(folder: Path, data: dict[str, Any], seed: int, *, labels: bool) -> tuple[Dataset, Dataset]:
    """Return the training and the test part: stratified on the labels of the file, or on the two classes."""
    whole = load(str(folder / data["load"]), target="target", task="classification")
    merged = dict.fromkeys(data.get("positive", ()), "1")
    if not labels:
        whole = whole.relabel(merged)
    train, test = whole.split(0.2, seed=seed)
    return (train.relabel(merged), test.relabel(merged)) if labels else (train, test)


#: Data sets of at most ten features; target and classes are those of their files.
FEW_FEATURES = (
    "fourclass", "haberman", "transfusion", "balance_scale", "banknote", "monks1_train", "monks2_train", "monks3_train",
    "wholesale", "diabetes", "breast_cancer_wisconsin", "indian_liver",
)  # fmt: skip


#: Seconds on the clock, and threads, of what is named by ``--long``.
LONG_LIMIT, LONG_THREADS = 600.0, 2


#: Parts of the page.
PARTS = ("miret-2", "miret-3", "miret-4", "oct-h", "two-features")


@dataclass(frozen=True)
class Solves:
    """The solves of a run: those of a file, and those that are added to it.

    Attributes
    ----------
    results
        Figures of the solves that are known.
    limits
        Seconds on the clock of a solve, for each part.
    highs_limit
        The same for HiGHS.
    threads
        Threads of a solve.
    only
        Parts to solve; of others the page has what the file has.
    long
        Part and data, ``miret-3:diabetes``, of what is solved with :data:`LONG_LIMIT` and :data:`LONG_THREADS`.
    open
        Figures by part and data of what has no proof, with those of the long solve if there is one.
    """

    results: Results
    limits: dict[str, float]
    highs_limit: float
    threads: int
    only: tuple[str, ...]
    long: tuple[str, ...]
    open: dict[tuple[str, str], dict[str, Any] | None] = field(default_factory=dict)

    def figures(
        self,
        part: str,
        data: str,
        depth: int,
        solver: str,
        build: Callable[[], Problem],
        test: Dataset | None = None,
    ) -> dict[str, Any] | None:
        """Return the figures of a solve; ``None`` where it is not in the file, and its part not to be solved."""
        limit = self.highs_limit if solver == "highs" else self.limits[part]
        found: dict[str, Any] | None = self.results.of(
            (part, data, depth, solver, limit, self.threads),
            lambda: solved(build(), depth, solver, limit, self.threads, test),
            wanted=part in self.only,
        )
        if solver == "oblique-search" and found is not None and found["gap"] > GAP:
            self.open[part, data] = self.results.of(
                (part, data, depth, solver, LONG_LIMIT, LONG_THREADS),
                lambda: solved(build(), depth, solver, LONG_LIMIT, LONG_THREADS, test),
                wanted=f"{part}:{data}" in self.long,
            )
        return found


def solved(
    problem: Problem, depth: int, solver: str, limit: float, threads: int, test: Dataset | None
) -> dict[str, Any]:
    """Solve a problem, and return what the page says of it."""
    clock, processor = monotonic(), process_time()
    result = problem.solve(solver=solver, time_limit=limit, gap=GAP, threads=threads)
    clock, processor = monotonic() - clock, process_time() - processor
    structure, figures = problem.structure, {}
    assert isinstance(structure, HyperplaneCharges | LabelledLeaves)
    unit = structure.unit if isinstance(structure, HyperplaneCharges) else 1.0
    if solver == "oblique-search":
        assert result.verified, result.failed_checks
        own = ObliqueProblem.of(structure, problem.data.X, depth)
        figures = {"groups": own.n_groups, "supports": supports(own, result.objective * unit)}
    if test is not None:
        own_measures = problem.formulation.measures(result.tree, test, problem.instance)
        measured = {**result.measures(test), **own_measures}
        figures |= {name: measured[name] for name in ("accuracy", "fidelity") if name in measured}
    return {
        **figures,
        "n": problem.data.n,
        "p": problem.data.p,
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "unit": unit,
        "seconds": round(clock, 1),
        "processor": round(processor, 1),
    }


def supports(own: ObliqueProblem, objective: float) -> str:
    """Write how many supports each level has whose price leaves less than an objective, ``+`` where there are more."""
    room = objective - float(own.least.sum())
    if takes(own):
        found = table_of(own, objective)
        sizes = [
            (int(size), float(rest) < room)
            for size, rest in zip(np.diff(found.begin), found.rest, strict=True)
        ]
    else:
        levels = [Level.of(own, level, room) for level in range(own.depth)]
        sizes = [(len(level.items.price), np.isfinite(level.rest)) for level in levels]
    return ", ".join(f"{size}{' +' if more else ''}" for size, more in sizes)


HEADER = ("data", "groups", "supports by level", "objective", "bound", "gap %", "paper's gap %", "seconds",
          "processor seconds")  # fmt: skip

ACCURACY = ("test accuracy %", "paper's test accuracy %")

ON_TEST = ("data", "fidelity %", "paper's fidelity %", "accuracy %", "paper's accuracy %")

VALUES = ("objective", "bound")

BESIDE = ("data", "objective", "gap %", "HiGHS: objective", "gap %")

TWO_FEATURES = (
    "data", "n", "p", "depth 1: errors", "bound", "seconds", "depth 2: errors", "bound", "seconds",
    "processor seconds", "HiGHS: errors", "gap %",
)  # fmt: skip


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def row(name: str, found: dict[str, Any], published: dict[str, Any]) -> list[str]:
    """Return the cells of a solve, beside the paper's."""
    cells = [
        name,
        str(found["groups"]),
        found["supports"],
        f"{found['objective']:.4f}",
        f"{found['bound']:.4f}",
    ]
    cells += [
        percent(found["gap"]),
        percent(published["gap"]),
        f"{found['seconds']}",
        f"{found['processor']}",
    ]
    if "fidelity" not in found and "accuracy" in found:
        cells += [percent(found["accuracy"]), percent(published["test_accuracy"])]
    return cells


def counted(found: list[dict[str, Any]], gaps: list[float]) -> str:
    """Say how many solves ended with a proof, here and in the paper."""
    own, theirs = (sum(gap <= GAP for gap in some) for some in ([one["gap"] for one in found], gaps))
    return f"Proven: {own} of {len(found)}; in the paper {theirs}."


def miret(solves: Solves, folder: Path, depth: int) -> str:
    """Return the sections of MIRET at a depth; empty where some solve is missing."""
    part, rows, beside, on_test, all_found, gaps = f"miret-{depth}", [], [], [], [], []
    for name, data, own, published in cells("miret-tables-5-7", part):
        train, test = read(folder, data, 10, labels=False)

        def build(own: dict[str, Any] = own, train: Dataset = train) -> Problem:
            model = Miret(variant="improved", ensemble="random-forest:trees=100,seed=100", **own)
            return model.build(train, depth)

        found = solves.figures(part, name, depth, "oblique-search", build, test)
        highs = solves.figures(part, name, depth, "highs", build) if depth == 2 else found
        if found is None or highs is None:
            return ""
        rows.append(row(name, found, published))
        all_found.append(found)
        gaps.append(published["gap"])
        pairs = [(found[one], published[f"test_{one}"]) for one in ("fidelity", "accuracy")]
        on_test.append([name, *(percent(share) for pair in pairs for share in pair)])
        beside.append(
            [name]
            + [cell for one in (found, highs) for cell in (f"{one['objective']:.4f}", percent(one["gap"]))]
        )
    text = f"## MIRET, depth {depth}\n\n{counted(all_found, gaps)}\n\n{table(HEADER, rows)}\n"
    text += f"\n### Test samples, depth {depth}\n\n{table(ON_TEST, on_test)}\n"
    if depth == 2:
        text += f"\n### HiGHS in {solves.highs_limit:g} s\n\n{table(BESIDE, beside)}\n"
    return text


def oct_h(solves: Solves, folder: Path) -> str:
    """Return the section of OCT-H; empty where some solve is missing."""
    rows, all_found, gaps, as_good = [], [], [], 0
    for name, data, own, published in cells("margot-tables-5-6", "oct-h"):
        train, test = read(folder, data, 0, labels=True)

        def build(own: dict[str, Any] = own, train: Dataset = train) -> Problem:
            return replace(OctH(), **own).build(train, 2)

        found = solves.figures("oct-h", name, 2, "oblique-search", build, test)
        if found is None:
            return ""
        rows.append(row(name, found, published))
        all_found.append(found)
        gaps.append(published["gap"])
        as_good += percent(found["accuracy"]) >= percent(published["test_accuracy"])
    return OCT_H.format(
        counted=counted(all_found, gaps),
        as_good=as_good,
        n=len(rows),
        table=table((*HEADER, *ACCURACY), rows),
    )


def two_features(solves: Solves, folder: Path) -> str:
    """Return the section of splits on two features, without a price for these; empty where some solve is missing."""
    rows, proven = [], 0
    for name in FEW_FEATURES:
        data = load(str(folder / f"{name}.csv"), target="target", task="classification")
        found = []
        for depth, solver in ((1, "oblique-search"), (2, "oblique-search"), (2, "highs")):

            def build(depth: int = depth, data: Dataset = data) -> Problem:
                return OctH(max_features=2).build(data, depth)

            found.append(solves.figures("two-features", name, depth, solver, build))
        if None in found:
            return ""
        one, two, highs = (solve for solve in found if solve is not None)
        rows.append([name, str(one["n"]), str(one["p"]), *errors(one), f"{one['seconds']}", *errors(two),
                     f"{two['seconds']}", f"{two['processor']}", errors(highs)[0], percent(highs["gap"])])  # fmt: skip
        proven += two["gap"] <= GAP
    return LINES.format(
        limit=solves.limits["two-features"],
        highs_limit=solves.highs_limit,
        proven=proven,
        n=len(rows),
        table=table(TWO_FEATURES, rows),
    )


def with_more_time(solves: Solves) -> str:
    """Return the section of the long solves; empty where there are none."""
    rows, proven = [], list[str]()
    for (part, data), found in solves.open.items():
        if found is not None:
            objective = errors(found) if part == "two-features" else [f"{found[one]:.4f}" for one in VALUES]
            seconds = [f"{found['seconds']}", f"{found['processor']}"]
            rows.append([part, data, *objective, percent(found["gap"]), *seconds])
    for part in PARTS:
        gaps = [found["gap"] for (own, _), found in solves.open.items() if own == part and found is not None]
        if gaps:
            proven.append(f"{part} {sum(gap <= GAP for gap in gaps)} of {len(gaps)}")
    if not rows:
        return ""
    return LONGER.format(
        limit=LONG_LIMIT,
        threads=LONG_THREADS,
        n=len(rows),
        open=len(solves.open),
        proven=", ".join(proven),
        table=table(("part", "data", *VALUES, "gap %", "seconds", "processor seconds"), rows),
    )


def errors(found: dict[str, Any]) -> list[str]:
    """Return the errors of a solve, and its bound on them: a whole number."""
    least = max(0.0, float(np.ceil(found["bound"] * found["unit"] - ROUNDED)))
    return [f"{found['objective'] * found['unit']:.0f}", f"{least:.0f}"]


def page(solves: Solves, folder: Path) -> str:
    """Solve what is to be solved, and lay out the page."""
    # Compiles what all solves run, so that none of them does.
    X = np.random.default_rng(0).random((200, 3))
    for most in (0, 2):
        model = OctH(max_features=most)
        model.build(Dataset.from_arrays(X, X[:, 0] > X[:, 1]), 2).solve(solver="oblique-search", time_limit=1)
    parts = [
        *(miret(solves, folder, depth) for depth in (2, 3, 4)),
        oct_h(solves, folder),
        two_features(solves, folder),
        with_more_time(solves),  # of what the others have left open
    ]
    limits = (
        f"--limit {solves.limits['miret-2']:g} --lines-limit {solves.limits['two-features']:g} "
        f"--highs-limit {solves.highs_limit:g}"
    )
    head = HEAD.format(
        command=f"python benchmarks/oblique.py FOLDER --results FILE {limits} --threads {solves.threads}",
        limit=solves.limits["miret-2"],
        threads="one thread" if solves.threads == 1 else f"{solves.threads} threads",
        measured=measured_with(["mipforest", "numba"]),
    )
    return "\n".join([head, *(part for part in parts if part), LACKS])


HEAD = """# Oblique trees with a 0-1 loss

`{command}`: `oblique-search` on the cells of the
suites `miret-tables-5-7` (the paper's improved model) and `margot-tables-5-6` (OCT-H), at most {limit:g} s on the clock
per solve, {threads}. {measured} Compiling is not counted.
A gap of at most 0.01 % is a proof. The papers' gaps are those of Gurobi in an hour (MIRET) and in 600 s (OCT-H). Those
of HiGHS in 60 s are in [Reproduction](../reproduction.md#miret-tables-5-to-7).

- *groups* of samples that no tree separates: they share the leaves of the ensemble, or are equal;
- *supports by level*: number of sets of features whose price is below what the incumbent leaves for them, root first.
  `+` means that there are more sets, with more than six features or beyond the cheapest 40,000 (MIRET: eight and
  10,000); these are bounded by their price alone.
"""

OCT_H = """## OCT-H, depth 2

{counted} Test accuracy is at least the paper's on {as_good} of {n} sets. The samples are
split as in the paper. It publishes accuracies and gaps of its trees, and no objectives.

{table}
"""

LINES = """## Two features per split, depth 1 and 2

OCT-H with `max_features=2` and without a price for features, on all samples: errors, and a lower bound on them,
within {limit:g} s on the clock. HiGHS has {highs_limit:g} s. Proven at depth two: {proven} of {n}.

{table}
"""

LONGER = """## With {limit:g} s and {threads} threads

Of the {open} solves above without a proof, {n} have had {limit:g} s on the clock and {threads} threads (`--long`).
Proven by that: {proven}. Values of two features per split are errors.

{table}
"""

LACKS = """## What the bound lacks

- *MIRET with many errors.* Where the best split of four to six features has thirty errors and more, conflicts, packed
  greedily, pay for a part of them; the rest is branched on. Above the last level no bound adds up in this way.
- *OCT-H with `N_min`.* Bounds leave the least leaf size out. Where a tree with smaller leaves is better, boxes have to
  close what is between both.
- *OCT-H on noisy data with many features.* Samples that a polytope of the root does not send to one side count with
  the lesser charge, which is 0 unless equal samples have different classes.
- *OCT-H with free features* (`alpha = 0`: ionosphere, tic_tac_toe) has one support, all features. It is not searched:
  the bound is the cost of equal samples of two classes, and only a tree without other errors is proven.
- *OCT-H with cheap features* has thousands of supports with three to six features, none of which their price excludes.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("../shared/data"), help="folder with the CSV files"
    )
    parser.add_argument("--results", type=Path, required=True, help="file of solves, read and added to")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to solve")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds on the clock for MIRET and OCT-H")
    parser.add_argument(
        "--lines-limit", type=float, default=300.0, help="the same for two features per split"
    )
    parser.add_argument("--highs-limit", type=float, default=60.0, help="seconds on the clock for HiGHS")
    parser.add_argument("--threads", type=int, default=1, help="threads of each solve")
    parser.add_argument(
        "--long", nargs="+", default=(), metavar="PART:DATA", help="what has more time and threads"
    )
    add_output(parser)
    arguments = parser.parse_args()
    limits = dict.fromkeys(PARTS, arguments.limit) | {"two-features": arguments.lines_limit}
    solves = Solves(
        Results(arguments.results),
        limits,
        arguments.highs_limit,
        arguments.threads,
        tuple(arguments.only),
        tuple(arguments.long),
    )
    publish(page(solves, arguments.folder), arguments.output)


if __name__ == "__main__":
    main()
