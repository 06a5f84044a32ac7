"""Seconds of a grid of 20 values of C of loss-optimal trees (hinge loss, l1 norm: linear MARGOT) on HiGHS, three ways.

- built anew: the formulation is built for each C and solved, as a grid search does.
- changed: the model is built once, its costs are changed, and HiGHS gets it anew for each C.
- session: the model is built once, its costs are changed, and HiGHS keeps it (`mipforest.Session`).

The variant is ``paper``, whose rows do not depend on C. The optima of the three ways are compared. The integer
programmes have one or two levels; the linear ones have two, and the binaries are fixed to CART's routing.

    python benchmarks/resolve.py --repeats 3 --output docs/benchmarks/resolve.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
from markdown import add_output, measured_with, publish, table

from formulations.loss_optimal import LossOptimal
from mipforest import Model, load, solve
from mipforest.problem.problem import Problem
from mipforest.solving import Session

#: The grid.
PENALTIES = np.geomspace(0.01, 1.0, 20)

#: Relative gap of the solves.
GAP = 1e-6

#: Relative difference up to which optima count as equal: binaries may be off by HiGHS' tolerance of 1e-6, which
#: big-Ms of about 100 multiply.
SAME = 1e-4


@dataclass(frozen=True)
class Case:
    """A data set, the number of samples drawn of it, the depth, and whether binaries are fixed."""

    data: str
    n: int
    depth: int
    linear: bool

    def build(self, penalty: float) -> Problem:
        formulation = LossOptimal(C=penalty, variant="paper")
        data = load(self.data)
        chosen = np.random.default_rng(0).permutation(data.n)[: self.n]
        problem = formulation.build(data.take(chosen).with_scaling(formulation.scaling), self.depth)
        if self.linear:
            start = problem.encoded(problem.start_tree("cart"))
            z = problem.model["z"]
            z.fix(start["z"])
            z.relax()
        return problem

    def __str__(self) -> str:
        kind = "linear" if self.linear else "integer"
        return f"{self.data}, {self.n} samples, depth {self.depth}, {kind}"


CASES = (
    Case("breast_cancer", 100, 1, linear=False),
    Case("breast_cancer", 20, 2, linear=False),
    Case("breast_cancer", 500, 2, linear=True),
)


def built_anew(case: Case) -> list[float]:
    return [solve(case.build(penalty).model, gap=GAP).objective for penalty in PENALTIES]


def with_costs_changed(model: Model) -> Iterator[None]:
    """Set the objective of each C in turn; the model was built for the first."""
    base, loss = model.objective_expression, model["xi"].sum()
    for penalty in PENALTIES:
        model.minimize(base + (penalty - PENALTIES[0]) * loss)
        yield


def changed(case: Case) -> list[float]:
    model = case.build(PENALTIES[0]).model
    return [solve(model, gap=GAP).objective for _ in with_costs_changed(model)]


def in_a_session(case: Case) -> list[float]:
    model = case.build(PENALTIES[0]).model
    with Session(model) as session:
        return [session.solve(gap=GAP).objective for _ in with_costs_changed(model)]


WAYS: dict[str, Callable[[Case], list[float]]] = {
    "built anew": built_anew,
    "changed": changed,
    "session": in_a_session,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="repetitions, which take turns")
    add_output(parser)
    arguments = parser.parse_args()
    rows = []
    for case in CASES:
        case.build(1.0)  # compiles and loads what is compiled and loaded once
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(arguments.repeats):
            optima = {}
            for way, run in WAYS.items():
                began = perf_counter()
                optima[way] = run(case)
                seconds[way].append(perf_counter() - began)
            for way in WAYS:
                np.testing.assert_allclose(optima[way], optima["session"], rtol=SAME)
        middle = [median(seconds[way]) for way in WAYS]
        rows.append((str(case), *(f"{s:.2f}" for s in middle), f"{middle[0] / middle[-1]:.1f}"))
    page = f"""# Solving a model again

{(__doc__ or "").split("    python")[0]}
{table(("data", *(f"{way}, s" for way in WAYS), "built anew / session"), rows)}

Seconds of all 20 solves, medians of {arguments.repeats} repetitions that took turns. The optima of the ways agree to
{SAME:g}. HiGHS starts a linear programme from its last basis. It begins an integer programme anew: there a
session saves the build, and uses the last solution as a start.

{measured_with(("numpy", "scipy", "highspy"))}
Run again: `python benchmarks/resolve.py --repeats {arguments.repeats}`.
"""
    publish(page, arguments.output)


if __name__ == "__main__":
    main()
