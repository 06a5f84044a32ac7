"""Small instances of every registered formulation, solved by several solvers: do they agree?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markdown import table

from mipforest import Problem, load, solve
from mipforest.data import Dataset
from mipforest.errors import LicenseLimit
from mipforest.problem.registry import formulation_classes
from mipforest.solvers.solution import Solution, Status

#: Relative difference (absolute below 1) of two optima that counts as none: the solvers' tolerance.
TOLERANCE = 1e-6

#: Relative gap asked of each solver: below the tolerance, above what round-off allows.
GAP = 1e-7

#: Samples of instances of depth one, and of the few of depth two.
SAMPLES, SAMPLES_AT_DEPTH_TWO = 15, 10

#: Fewer samples for the models that would take minutes.
FEWER_SAMPLES = {"ort-l": 10, "ort-lh": 10}

#: Models that are also solved at depth two.
DEPTH_TWO = ("hfs-margot", "miret", "oct", "olct", "ort")

#: Samples of an instance that is beyond Gurobi's licence for quadratic models inside its package.
BEYOND_THE_LICENSE = ("margot", 100)


@dataclass(frozen=True)
class Instance:
    """A formulation with its default parameters, some samples of a data set, and a depth."""

    model: str
    samples: int
    depth: int

    def build(self) -> Problem:
        """Build it on samples drawn with a fixed seed."""
        formulation = formulation_classes()[self.model]
        data = _data(formulation.task)
        if not formulation.gives.is_tree:  # cards have rules of features as they are
            data = data.with_scaling(formulation.scaling)
        rows = np.random.default_rng(0).choice(data.n, self.samples, replace=False)
        return formulation().build(data.take(np.sort(rows)), self.depth)


def instances() -> Iterator[Instance]:
    """Give the instances: all registered formulations with rows, whoever brings them; ogrs also for ors."""
    for name in (name for name, cls in formulation_classes().items() if cls.has_rows and name != "ors"):
        yield Instance(name, FEWER_SAMPLES.get(name, SAMPLES), 1)
    for name in DEPTH_TWO:
        yield Instance(name, SAMPLES_AT_DEPTH_TWO, 2)
    yield Instance(*BEYOND_THE_LICENSE, 1)


def agreement_table(solvers: Sequence[str], limit: float) -> tuple[str, bool]:
    """Solve all instances with all solvers; give the table, and whether all optima agree."""
    header = ["instance", "columns", "rows", "quadratic", "optimum", *(f"{name}, s" for name in solvers)]
    rows, agree = [], True
    for instance in instances():
        problem = instance.build()
        form = problem.model.matrix()
        solutions = [_solution(problem, name, limit) for name in solvers]
        optima = [found.objective for found in solutions if found and found.status is Status.OPTIMAL]
        best = min(optima, default=np.nan)
        agree &= all(abs(value - best) <= TOLERANCE * max(1.0, abs(best)) for value in optima)
        rows.append(
            [
                f"{instance.model}, n={instance.samples}, depth {instance.depth}",
                str(form.n_columns),
                str(form.n_rows),
                "yes" if form.is_quadratic else "",
                f"{best:.7f}",
                *(_cell(found, best) for found in solutions),
            ]
        )
        print(rows[-1], flush=True)
    return table(header, rows), agree


def _data(task: str) -> Dataset:
    return load("iris").binarise("versicolor") if task == "classification" else load("diabetes")


def _solution(problem: Problem, solver: str, limit: float) -> Solution | None:
    """Give the solution of a model without any start; ``None`` if it is beyond the solver's licence."""
    try:
        return solve(problem.model, solver, gap=GAP, time_limit=limit)
    except LicenseLimit:
        return None


def _cell(found: Solution | None, best: float) -> str:
    if found is None:
        return "-"
    if found.status is not Status.OPTIMAL:
        return f"> {found.seconds:.0f}"
    differs = abs(found.objective - best) > TOLERANCE * max(1.0, abs(best))
    return f"**{found.objective:.7f}**" if differs else f"{found.seconds:.1f}"
