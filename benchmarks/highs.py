"""What HiGHS offers, measured: settings of its MIP solver, trees given while it runs, its QP solver, its MPS files.

mipforest instances build
python3 -m venv hipo && hipo/bin/pip install "highspy[extras]==1.15.1"
python benchmarks/highs.py --hipo hipo/bin/python --output docs/benchmarks/highs.md

HiGHS reads the files of the library by itself here, without what mipforest adds to it. HiPO, an interior-point solver,
is in a package of its own (``highspy-extras``), which may lag behind highspy: it runs in another environment.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import highspy
import numpy as np
from markdown import add_output, measured_with, publish, table
from pyscipopt import Model as ScipModel

from mipforest.arrays import FloatArray
from mipforest.campaigns.report import shifted_geometric_mean
from mipforest.files import read_mps, write_mps
from mipforest.files.solutions import point_of, read_point
from mipforest.instances import Library, build_problem
from mipforest.instances.race import SHIFT
from mipforest.model import MatrixForm
from mipforest.problem.problem import Problem
from mipforest.settings import DEFAULT_GAP, SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.solution import Status
from mipforest.solving import solve_form

#: Linear instances of several models, of 278 to 2,374 columns; without a start HiGHS solves six of nine in 2 to 11 s.
LINEAR = (
    "oct-paper-iris-d2-alpha",
    "oct-paper-wine-d2",
    "oct-tight-iris-d2",
    "oct-tight-iris-d3",
    "oct-h-iris-d2",
    "ort-tight-diabetes-d2",
    "univariate-olct-versicolor-d2",
    "hinge-l1-digits-8-d2",
    "hinge-l1-hard-versicolor-d2",
)

#: Quadratic instances, whose integers are fixed at the best known tree.
QUADRATIC = (
    "margot-iris-virginica-d2",
    "margot-versicolor-d2-c1",
    "margot-wine-1-d2",
    "margot-4-partitions-d2",
    "sfs-margot-versicolor-d2",
    "svm-leaves-wine-1-d2",
)

#: Factors by which the linear costs are multiplied, one after the other, as in tuning.
PATH = tuple(float(factor) for factor in np.geomspace(0.1, 10, 21))

#: Relative distance within which two values of a convex programme are the same: ten times the solvers' tolerances.
SAME_VALUE = 1e-5

#: Seconds of one local search, and the share of the time limit that such searches have.
SEARCH_SECONDS, SEARCH_SHARE = 1.0, 0.25


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How HiGHS is run.

    Attributes
    ----------
    threads, options
        Its options.
    trees
        What it gets of local searches: nothing, the tree of a first one as a start (``before``), or each better tree
        while it runs (``during``).
    hipo
        Whether it runs in the environment that has HiPO.
    """

    threads: int = 1
    options: Mapping[str, object] = field(default_factory=dict)
    trees: str = ""
    hipo: bool = False


SETTINGS = {
    "default, 1 thread": Setting(),
    "`presolve_mode` = 2 (light)": Setting(options={"presolve_mode": 2}),
    "`mip_lp_solver` = `ipm`": Setting(options={"mip_lp_solver": "ipm"}),
    "local search first, its tree as a start": Setting(trees="before"),
    "local search beside it, trees by callback": Setting(trees="during"),
    "version with HiPO: default, 1 thread": Setting(hipo=True),
    "version with HiPO: `mip_lp_solver` = `ipx`": Setting(hipo=True, options={"mip_lp_solver": "ipx"}),
    "version with HiPO: `mip_lp_solver`, `mip_ipm_solver` = `hipo`": Setting(
        hipo=True, options={"mip_lp_solver": "hipo", "mip_ipm_solver": "hipo"}
    ),
    "2 threads": Setting(threads=2),
}

#: What the other environment runs: it reads a file and options, and prints status, objective, bound and version.
PROGRAM = """
import json, sys, highspy
file, options = json.loads(sys.argv[1])
highs = highspy.Highs()
for name, value in {"output_flag": False, **options}.items():
    assert highs.setOptionValue(name, value) != highspy.HighsStatus.kError, name
highs.readModel(file)
highs.run()
info = highs.getInfo()
optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
print("answer", json.dumps([optimal, highs.getRunTime(), info.objective_function_value, info.mip_dual_bound]))
"""


@dataclass(frozen=True)
class Answer:
    """What HiGHS said: seconds with those of the searches, and NaN or minus infinity where it said nothing."""

    solved: bool
    seconds: float
    objective: float = math.nan
    bound: float = -math.inf


class Silent(highspy.Highs):  # type: ignore[misc]
    """HiGHS that prints nothing, its banner left out too."""

    def enableCallbacks(self) -> None:  # noqa: N802 (the name is that of highspy)
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def silent(options: Mapping[str, object]) -> Any:
    """Return a HiGHS object with options that prints nothing."""
    highs = Silent()
    for name, value in {"output_flag": False, **options}.items():
        if highs.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise SystemExit(f"HiGHS refuses {name} = {value!r}")
    return highs


def searched(problem: Problem, seconds: float, found: Callable[[float, FloatArray], None]) -> None:
    """Run local searches with one seed after the other, and report each better tree as a point of the model."""
    best, latest, seed = math.inf, perf_counter() + seconds, 0
    while perf_counter() < latest:
        result = problem.solve("local-search", time_limit=SEARCH_SECONDS, threads=1, seed=seed)
        if result.verified and result.objective < best and result.solution.x is not None:
            best = result.objective
            found(best, result.solution.x)
        seed += 1


def solved(file: Path, problem: Problem, setting: Setting, limit: float, hipo: Path | None) -> Answer:
    """Let HiGHS solve an instance from its file."""
    options = {"mip_rel_gap": DEFAULT_GAP, "threads": setting.threads, **setting.options}
    if setting.hipo:
        request = json.dumps([str(file), {**options, "time_limit": limit}])
        ran = subprocess.run(
            [str(hipo), "-c", PROGRAM, request], capture_output=True, text=True, check=True
        ).stdout
        return Answer(*json.loads(ran.rpartition("answer ")[2]))
    highs = silent(options)
    highs.readModel(str(file))
    began, trees = perf_counter(), SimpleQueue[tuple[float, FloatArray]]()
    if setting.trees == "before":
        searched(problem, SEARCH_SECONDS, lambda value, x: trees.put((value, x)))
        while not trees.empty():
            start = highspy.HighsSolution()
            start.col_value = list(trees.get()[1])
            highs.setSolution(start)
    elif setting.trees == "during":
        kind = highspy.cb.HighsCallbackType.kCallbackMipUserSolution

        def give(event: int, _message: str, state: Any, reply: Any, _data: Any) -> None:
            try:
                value, x = trees.get_nowait()
            except Empty:
                return
            if event == int(kind) and value < state.mip_primal_bound:
                reply.setSolution(x)

        highs.setCallback(give, None)
        highs.startCallback(kind)
        arguments = problem, SEARCH_SHARE * limit, lambda value, x: trees.put((value, x))
        threading.Thread(target=searched, args=arguments, daemon=True).start()
    highs.setOptionValue("time_limit", max(0.0, limit - (perf_counter() - began)))
    ran = highs.run()
    highs.resetGlobalScheduler(True)  # which else keeps its number of threads
    assert ran != highspy.HighsStatus.kError
    info, seconds = highs.getInfo(), perf_counter() - began
    closed = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Answer(closed, seconds, info.objective_function_value, info.mip_dual_bound)


def mip_sections(library: Library, limit: float, hipo: Path | None) -> list[str]:
    """Return the table of settings, and that of their seconds by instance."""
    entries = library.entries()
    settings = {label: setting for label, setting in SETTINGS.items() if hipo is not None or not setting.hipo}
    answers: dict[str, dict[str, Answer]] = {setting: {} for setting in settings}
    problems = {name: build_problem(library, library.suite[name], entries[name]).problem for name in LINEAR}
    for problem in problems.values():
        problem.solve("local-search", time_limit=SEARCH_SECONDS, threads=1)  # compiles it
    for setting, how in settings.items():
        for name, problem in problems.items():
            file = library.model_path(library.suite[name])
            answers[setting][name] = solved(file, problem, how, limit, hipo)
    rows = []
    for setting, own in answers.items():
        counted = [answer.seconds if answer.solved else limit for answer in own.values()]
        wrong = sum(
            answer.bound > (1 + DEFAULT_GAP) * entries[name].objective for name, answer in own.items()
        )
        best = sum(
            answer.objective <= (1 + DEFAULT_GAP) * entries[name].objective for name, answer in own.items()
        )
        mean = shifted_geometric_mean(counted, SHIFT)
        rows.append((setting, str(sum(a.solved for a in own.values())), str(best), str(wrong), f"{mean:.1f}"))
    cells = [
        (name, *(f"{own[name].seconds:.1f}" if own[name].solved else "-" for own in answers.values()))
        for name in LINEAR
    ]
    numbers = [str(number) for number in range(1, len(settings) + 1)]
    rows = [(number, *row) for number, row in zip(numbers, rows, strict=True)]
    return [
        table(("", "setting", "solved", "best known value", "wrong", "seconds"), rows),
        "Seconds by instance and setting (-: not solved):",
        table(("instance", *numbers), cells),
    ]


# ---------------------------------------------------------------------- convex programmes


def convex_programme(library: Library, name: str) -> MatrixForm:
    """Return the convex programme of an instance with its integers fixed at the best known tree."""
    spec = library.suite[name]
    form, path = read_mps(library.model_path(spec)), library.solution_path(spec)
    x = point_of(form, read_point(path), path).x
    assert x is not None
    return replace(
        form,
        col_lower=np.where(form.integer, np.round(x), form.col_lower),
        col_upper=np.where(form.integer, np.round(x), form.col_upper),
        integer=np.zeros_like(form.integer),
    )


@dataclass
class Tally:
    """What one way to solve the programmes of a path took: seconds, and answers that are not those of the reference."""

    seconds: float = 0.0
    other: int = 0
    failed: int = 0

    def add(self, seconds: float, value: float, reference: float) -> None:
        """Count an answer; NaN is a failure."""
        self.seconds += seconds
        self.failed += math.isnan(value)
        self.other += abs(value - reference) > SAME_VALUE * max(1.0, abs(reference))


def convex_rows(library: Library) -> list[tuple[str, ...]]:
    """Return a row for each quadratic instance: Clarabel, HiGHS from nothing, and HiGHS from its last solution."""
    rows = []
    for name in QUADRATIC:
        form = convex_programme(library, name)
        costed = np.flatnonzero(form.c).astype(np.int32)
        tallies = {"clarabel": Tally(), "cold": Tally(), "hot": Tally()}
        with TemporaryDirectory() as folder:
            file = Path(folder) / "convex.mps"
            write_mps(form, file)
            kept = silent({"threads": 1, "time_limit": 10.0})
            kept.readModel(str(file))
            for factor in PATH:
                costs = factor * form.c[costed]
                began = perf_counter()
                exact = solve_form(
                    replace(form, c=factor * form.c), get_solver("clarabel"), SolveSettings(threads=1)
                )
                assert exact.status is Status.OPTIMAL
                tallies["clarabel"].add(perf_counter() - began, exact.objective, exact.objective)
                cold = silent({"threads": 1, "time_limit": 10.0})
                cold.readModel(str(file))
                for label, highs in (("cold", cold), ("hot", kept)):
                    highs.changeColsCost(len(costed), costed, costs)
                    began = perf_counter()
                    highs.run()
                    seconds = perf_counter() - began
                    optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
                    value = highs.getInfo().objective_function_value if optimal else math.nan
                    tallies[label].add(seconds, value, exact.objective)
        rows.append(
            (
                name,
                str(form.n_columns),
                *(f"{1000 * tally.seconds / len(PATH):.1f}" for tally in tallies.values()),
                *(
                    f"{tally.other} / {tally.failed}"
                    for label, tally in tallies.items()
                    if label != "clarabel"
                ),
            )
        )
    return rows


# ---------------------------------------------------------------------- files


def written_by_highs(source: Path, target: Path) -> None:
    highs = silent({})
    highs.readModel(str(source))
    highs.writeModel(str(target))


def written_by_scip(source: Path, target: Path) -> None:
    scip = ScipModel()
    scip.hideOutput()
    scip.readProblem(str(source))
    scip.writeProblem(str(target), verbose=False)


def digits_rows(library: Library) -> list[tuple[str, ...]]:
    """Return for each solver how many entries of the matrices are others in the files that it wrote."""
    rows = []
    for label, write in (("HiGHS", written_by_highs), ("SCIP", written_by_scip)):
        numbers, changed, largest = 0, 0, 0.0
        for name in LINEAR:
            path = library.model_path(library.suite[name])
            with TemporaryDirectory() as folder:
                copy = Path(folder) / "copy.mps"
                write(path, copy)
                before, after = _entries(read_mps(path)), _entries(read_mps(copy))
            numbers += len(before)
            for key, value in before.items():
                distance = abs(after.get(key, 0.0) - value) / abs(value)
                changed += distance > 0
                largest = max(largest, distance)
        rows.append((label, str(numbers), str(changed), f"{largest:.1e}" if changed else "0"))
    return rows


def _entries(form: MatrixForm) -> dict[tuple[str, str], float]:
    """Return the entries of the matrix by the names of rows and columns, as a writer may change their order."""
    matrix, rows, columns = form.A.tocoo(), form.row_names, form.column_names
    return {
        (rows[i], columns[j]): float(value)
        for i, j, value in zip(matrix.row, matrix.col, matrix.data, strict=True)
    }


MIP_RESULT = """\
What helps is a tree: with one, HiGHS solves two or three instances more. Given before HiGHS runs or while it does, it
is worth nearly as much, so that mipforest gives it as a start, and uses no callback. Two threads change little on these
models. HiPO and the other interior-point methods are slower than the simplex method, which starts each node from the
last basis; for larger `oct` and `ort`, whose relaxations take the simplex method minutes, mipforest asks for
`mip_lp_solver=ipm` nevertheless."""

QP_RESULT = """\
On these programmes HiGHS is right, and takes about as long as Clarabel. A solve from the last solution takes as long as
one from nothing. mipforest stays with Clarabel, as HiGHS' QP solver was
[wrong on others](../solvers.md#highs-the-default)."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_output(parser)
    parser.add_argument(
        "--library", type=Path, default=Path("instances"), help="Folder of the built library."
    )
    parser.add_argument("--hipo", type=Path, help="Python of an environment with highspy[extras].")
    parser.add_argument("--time-limit", type=float, default=20.0, help="Seconds per solve.")
    asked = parser.parse_args()
    library, limit = Library(asked.library), asked.time_limit
    sections = [
        "# What HiGHS offers",
        "Settings of HiGHS on models of the [library](../instances.md). HiGHS reads the files by itself; "
        "[another page](../solvers.md#highs-the-default) says\nwhat mipforest does when it runs HiGHS.",
        "## Settings of the MIP solver",
        f"{len(LINEAR)} linear instances, {limit:g} s each. Best known value: reached within the gap of 1e-4. Wrong: a "
        f"bound above the value of a known\ntree. Seconds: geometric mean, shifted by {SHIFT:g} s; unsolved runs count "
        "as the limit.",
        *mip_sections(library, limit, asked.hipo),
        f"A local search has {SEARCH_SECONDS:g} s, on one thread. Before HiGHS there is one, whose time counts. Beside "
        f"it they run in another thread, one seed\nafter the other, for {100 * SEARCH_SHARE:.0f} % of the limit; the "
        "callback is `kCallbackMipUserSolution`.",
        MIP_RESULT,
        "## The QP solver",
        f"Quadratic instances with their integers fixed at the best known tree. All linear costs are multiplied by "
        f"{len(PATH)} factors from {PATH[0]:g} to {PATH[-1]:g},\none after the other; milliseconds are means. Cold: a "
        "new object for each. Hot: the object of the last solve with new costs.\nOther / failed: values that are not "
        f"Clarabel's within a relative {SAME_VALUE:g}, and runs without an optimum within 10 s.",
        table(
            (
                "instance",
                "columns",
                "Clarabel, ms",
                "HiGHS cold, ms",
                "hot, ms",
                "cold: other / failed",
                "hot: other / failed",
            ),
            convex_rows(library),
        ),
        QP_RESULT,
        "## Digits in MPS files",
        "The linear instances, read and written again by each solver, then compared by mipforest's reader:",
        table(("solver", "entries", "changed", "largest relative change"), digits_rows(library)),
        measured_with(["mipforest", "highspy", "clarabel", "pyscipopt"]),
        "Run again: `mipforest instances build`, then `python benchmarks/highs.py --hipo PYTHON --output "
        "docs/benchmarks/highs.md`, where PYTHON has\n`highspy[extras]`.",
    ]
    publish("\n\n".join(sections) + "\n", asked.output)


if __name__ == "__main__":
    main()
