"""What makes the instances of the library hard: bounds of relaxations, sizes, and what solvers reached.

python benchmarks/instances.py --output docs/benchmarks/instances.md --pictures docs/pictures

Bounds of relaxations are computed; what solvers reached is read from the library, where ``mipforest instances race
--record`` put it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from markdown import add_output, measured_with, publish, table

from mipforest.campaigns.report import shifted_geometric_mean
from mipforest.instances import Entry, Library, Run, build_problem, fault_of, read_results
from mipforest.instances.race import SHIFT
from mipforest.instances.results import solved_by
from mipforest.settings import SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.solution import Status
from mipforest.solving import solve_form
from mipforest.trees.plot import new_figure, save_figure

#: Seconds for a relaxation.
LIMIT = 20.0

#: Models by what their objective counts.
GROUPS = {
    "OCT": ("oct", "policy"),
    "OCT-H": ("oct-h", "policy-h"),
    "ORT": ("ort", "ort-h", "ort-l", "ort-lh"),
    "MARGOT": ("margot", "hfs-margot", "sfs-margot", "svm-leaves"),
    "OLCT, hinge": ("olct", "univariate-olct", "budgeted-olct", "loss-optimal"),
    "MIRET": ("miret",),
    "risk scores": ("ogrs", "ors"),
    "prescription": ("opt", "opt-h", "opt-l", "opt-lh"),
}
MARKERS = "os^vDP*X"


def relaxations(library: Library, cache: Path) -> dict[str, float]:
    """Return the value of the continuous relaxation of each instance; NaN where the time was over."""
    known: dict[str, dict[str, float | str]] = json.loads(cache.read_text()) if cache.exists() else {}
    for entry in library.entries().values():
        if known.get(entry.name, {}).get("sha256") == entry.sha256:
            continue
        built = build_problem(library, library.suite[entry.name], entry)
        form = built.problem.model.matrix().relaxed()
        if entry.indicators:
            value = math.nan  # rows behind indicators have no relaxation of their own
        else:
            solution = solve_form(form, get_solver("highs"), SolveSettings(time_limit=LIMIT, threads=1))
            value = solution.objective if solution.status is Status.OPTIMAL else math.nan
        known[entry.name] = {"sha256": entry.sha256, "value": value}
        cache.write_text(json.dumps(known))
    return {name: float(found["value"]) for name, found in known.items()}


def root_gap(entry: Entry, relaxation: float) -> float:
    """Return the share of the best known value that the relaxation leaves open, 0 to 1 and more."""
    return (entry.objective - relaxation) / abs(entry.objective) if entry.objective else math.nan


def percent(gap: float) -> str:
    """Return a gap in whole per cent, of at most 1000."""
    return f"{max(0.0, gap):.0%}" if gap <= 10.0 else "> 1000%"


def refused(run: Run) -> bool:
    """Tell whether the solver did not begin: its licence is for smaller models, or it takes no such model."""
    return run.status == "failed" and ("licence" in run.message or "does not take" in run.message)


def own_runs(runs: Sequence[Run], entries: Mapping[str, Entry]) -> list[Run]:
    """Return the runs on the library's present models that began."""
    return [
        run
        for run in runs
        if run.instance in entries and run.sha256 == entries[run.instance].sha256 and not refused(run)
    ]


def group_of(model: str) -> str:
    return next(group for group, models in GROUPS.items() if model in models)


def by_model(entries: Sequence[Entry], relaxation: Mapping[str, float]) -> Iterator[list[str]]:
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.model, entry.variant].append(entry)
    for (model, variant), group in sorted(groups.items()):
        gaps = [gap for e in group if not math.isnan(gap := root_gap(e, relaxation.get(e.name, math.nan)))]
        yield [
            f"{model}, {variant}",
            str(len(group)),
            f"{min(e.columns for e in group):,} to {max(e.columns for e in group):,}",
            percent(median(gaps)) if gaps else "",
            f"{percent(min(gaps))} to {percent(max(gaps))}" if gaps else "",
            str(sum(e.difficulty == "easy" for e in group)),
            str(sum(e.difficulty == "hard" for e in group)),
            str(sum(e.status == "open" for e in group)),
        ]


def by_solver(runs: Sequence[Run], entries: Mapping[str, Entry]) -> Iterator[list[str]]:
    groups: dict[tuple[str, str, float], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.solver, run.version, run.time_limit].append(run)
    for (solver, version, limit), group in sorted(groups.items()):
        known = [(run, entries[run.instance]) for run in group]
        seconds = [run.seconds if solved_by(run, entry) else run.time_limit for run, entry in known]
        yield [
            f"{solver} {version}",
            f"{limit:g}",
            str(len(group)),
            str(sum(solved_by(run, entry) for run, entry in known)),
            str(sum(bool(fault_of(run, entry)) for run, entry in known)),
            str(sum(run.status in ("failed", "error") for run in group)),
            f"{shifted_geometric_mean(seconds, SHIFT):.1f}",
        ]


def faults(runs: Sequence[Run], entries: Mapping[str, Entry]) -> Iterator[list[str]]:
    for run in runs:
        if fault := fault_of(run, entries[run.instance]):
            yield [run.instance, f"{run.solver} {run.version}", fault]
        elif run.status in ("failed", "error"):
            yield [run.instance, f"{run.solver} {run.version}", run.message]


def draw(entries: Sequence[Entry], relaxation: Mapping[str, float], folder: Path) -> None:
    """Draw density, dynamism and root gaps by group of models; filled marks are hard or open."""
    figure = new_figure(12.0, 4.2, layout="constrained")
    sizes, ranges, gaps = figure.subplots(1, 3)
    for k, group in enumerate(GROUPS):
        own = [e for e in entries if group_of(e.model) == group]
        for hard in (False, True):
            some = [e for e in own if (e.difficulty != "easy") == hard]
            face = f"C{k}" if hard else "none"
            label = group if hard or not any(e.difficulty != "easy" for e in own) else None
            density = [e.nonzeros / (e.rows * e.columns) for e in some]
            marks = {"marker": MARKERS[k], "facecolors": face, "edgecolors": f"C{k}", "s": 22, "label": label}
            sizes.scatter([e.columns for e in some], density, **marks)
            ranges.scatter([e.columns for e in some], [e.dynamism for e in some], **marks)
            shown = [(e, root_gap(e, relaxation.get(e.name, math.nan))) for e in some]
            there = [(e, gap) for e, gap in shown if not math.isnan(gap)]
            gaps.scatter([e.columns for e, _ in there], [max(0.0, min(1.5, g)) for _, g in there], **marks)
    labels = "density", "dynamism: greatest ratio in a row", "gap of the relaxation, at most 1.5"
    for axes, label in zip((sizes, ranges, gaps), labels, strict=True):
        axes.set_xscale("log")
        axes.set_xlabel("columns")
        axes.set_ylabel(label)
    sizes.set_yscale("log")
    ranges.set_yscale("log")
    figure.legend(*sizes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save_figure(figure, folder / "instances.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_output(parser)
    parser.add_argument("--library", type=Path, default=Path("instances"), help="Folder of the library.")
    parser.add_argument("--pictures", type=Path, help="Folder for the picture.")
    parser.add_argument(
        "--cache", type=Path, default=Path("relaxations.json"), help="File of known relaxations."
    )
    asked = parser.parse_args()
    library = Library(asked.library)
    entries = library.entries()
    runs = own_runs(read_results(library.results_path), entries)
    relaxation = relaxations(library, asked.cache)
    every = list(entries.values())
    if asked.pictures is not None:
        draw(every, relaxation, asked.pictures)
    wrong = list(faults(runs, entries))
    linear = sum(e.quadratic_terms == 0 for e in every)
    status = {word: sum(e.status == word for e in every) for word in ("solved", "unconfirmed", "open")}
    hard = [e for e in every if e.difficulty == "hard"]
    sections = [
        "# Instances of the library",
        "How hard the [instance library](../instances.md) is for solvers, and why. Rerun with\n"
        "`python benchmarks/instances.py --output docs/benchmarks/instances.md --pictures docs/pictures`; runs of "
        "solvers come\nfrom `mipforest instances race --record`.",
        measured_with(["mipforest", "highspy", "pyscipopt", "gurobipy"]),
        f"{len(every)} instances, {linear} of them linear: {status['solved']} solved with a proof, "
        f"{status['unconfirmed']} with a closed gap and no\nsecond witness, {status['open']} open. "
        f"{sum(e.difficulty == 'easy' for e in every)} are easy: a matrix solver closed them. {len(hard)} are hard: "
        "their optimum has a proof, and no matrix\nsolver that was tried closed them within its time limit, "
        f"{_limits(hard)}.",
        "![Density, dynamism and gaps of relaxations](../pictures/instances.svg)",
        "Marks that are not filled are easy instances. A gap of 1: the relaxation is worth nothing.",
        "## By model and variant",
        '"Root" is the gap between the best known value and the continuous relaxation: median, and range.',
        table(
            ("model", "instances", "columns", "root", "range", "easy", "hard", "open"),
            list(by_model(every, relaxation)),
        ),
        "## By solver",
        f"Runs without a start. Seconds: geometric mean, shifted by {SHIFT:g} s; unsolved runs count as the limit.\n"
        "Gurobi has the licence of its Python package, which takes 2,000 columns and rows, or 200 columns with a\n"
        "quadratic objective; larger models are left out.",
        table(
            ("solver", "limit", "runs", "solved", "wrong", "failed", "seconds"),
            list(by_solver(runs, entries)),
        ),
        "## Wrong answers and failures",
        WRONG,
        table(("instance", "solver", "what happened"), wrong) if wrong else "None.",
        HARD,
    ]
    publish("\n\n".join(sections) + "\n", asked.output)


def _limits(hard: Sequence[Entry]) -> str:
    found = sorted({e.matrix_seconds for e in hard})
    return (
        " to ".join(f"{limit:g} s" for limit in (found[:1] + found[-1:])[: len(found)]) if found else "none"
    )


WRONG = """Points below a proven bound by a relative 1e-5 are what tolerances of 1e-6 are worth on rows and on quadratic
objectives. `card-enumeration` finds the optimum by the definition, which need not be a point of the variant `paper`
of `ogrs`: its gap epsilon parts no near values. [Another page](../solvers.md#wrong-answers-of-solvers) has wrong claims
of other size, with small models."""

HARD = """## What makes these models hard

- **Big-M.** Oblique splits (`margot`, `olct`, `oct-h`, `miret`) route a sample with two rows,
  `w'x + b >= eps - M (1 - z)` and `w'x + b <= M z`. With z = 1/2 both hold for w = 0: the relaxation routes every
  sample to both sides and pays neither a norm nor a loss. Variants `valid` and `tight` have the smallest M that is
  proven, `paper` the constants of the paper; indicator variants leave the choice to the solver.
- **Leaves share samples.** In `oct`, `ort` and `policy` a sample may be half in each of two leaves, and right in
  both: the relaxation of the variant `paper` has the value 0.
- **The bound does not make the tree.** The variant `tight` of these models has rows `root_value`, with bounds of an
  exact search for each threshold of the root, so its relaxation has the value of the optimum. Solvers have no start
  here and do not find a tree of this value: what is hard is the primal side. The variant `valid` is the same without
  these rows, and its relaxation is worth little.
- **Depth is symmetric.** At each node the sides can be exchanged together with their subtrees: there are
  2^(2^D - 1) copies of a tree of depth D, but for the strict side of a split.
- **Products of a leaf and its samples.** A leaf's mean (`ort`) or label (`oct`) meets each sample in a row with a
  big-M of the size of the target's range; `ort-l` and `ort-lh` have a regression in each leaf.
- **Many ties.** Objectives of `oct` are multiples of one error: the last error to prove costs most nodes.

What closes them: a search over routings with support vector machines as bounds (`routing`), one over thresholds with
bounds from neighbouring intervals (`exact-search`), and one over boxes of hyperplanes (`oblique-search`); see
[tree searches](../tree_searches.md)."""


if __name__ == "__main__":
    main()
