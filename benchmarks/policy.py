"""Policy trees: growth with the number of samples, a budget by prices beside the rows in HiGHS, and hyperplanes.

python benchmarks/policy.py --output docs/benchmarks/policy.md
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
from markdown import add_output, measured_with, publish, table

import mipforest
from mipforest import constraints
from mipforest.data import Dataset
from mipforest.problem.problem import Problem

PACKAGES = ("numpy", "numba", "highspy")

#: Features, and the share of samples that may get the second decision.
P, SHARE = 10, 0.1

#: Cost of a feature in a hyperplane.
ALPHA = 0.01

TEXT = """\
# Policy trees and budgets

`python benchmarks/policy.py --limit {limit:g}`. Rewards of three decisions: a standard normal draw each, of the second
and third one feature more; {p} normal features. Processor seconds of the solve on one thread, after building, with a
time limit of {limit:g} s on the clock. The objective is what is lost against the best decision of each sample.

"""


def problem_of(n: int, depth: int, model: str = "policy", **parameters: float) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, P))
    rewards = rng.normal(size=(n, 3)) + np.column_stack([np.zeros(n), X[:, 0], X[:, 1]])
    data = Dataset.from_arrays(X, rewards=rewards, classes=["a", "b", "c"])
    return mipforest.get_formulation(model)(**parameters).build(data, depth)


def row(problem: Problem, solver: str, limit: float) -> list[str]:
    began = process_time()
    result = problem.solve(solver, time_limit=limit, threads=1)
    seconds = process_time() - began
    shown = [f"{value:.5f}" for value in (result.objective, result.bound)]
    return [
        str(problem.data.n),
        str(problem.topology.depth),
        solver,
        str(result.status),
        *shown,
        f"{seconds:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for each solve")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--deep", type=int, nargs="+", default=[300, 1000], help="sizes at depth 3")
    parser.add_argument("--small", type=int, nargs="+", default=[50, 200], help="sizes for HiGHS, at depth 2")
    parser.add_argument("--hyperplanes", type=int, nargs="+", default=[100, 300], help="sizes for policy-h")
    add_output(parser)
    arguments = parser.parse_args()
    for depth in (2, 3):  # what is compiled, or loaded, is not measured
        limited(problem_of(30, depth)).solve("exact-search")
    free, budget = [], []
    for n, depth in [*((n, 2) for n in arguments.sizes), *((n, 3) for n in arguments.deep)]:
        problem = problem_of(n, depth)
        free.append(row(problem, "exact-search", arguments.limit))
        budget.append(row(limited(problem), "exact-search", arguments.limit))
    for n in arguments.small:
        problem = limited(problem_of(n, 2))
        budget += [row(problem, solver, arguments.limit) for solver in ("exact-search", "highs")]
    for depth in (1, 2):
        for solver in ("local-search", "oblique-search"):
            problem_of(30, depth, "policy-h", alpha=ALPHA).solve(solver, time_limit=arguments.limit)
    hyperplanes = [
        row(problem_of(n, depth, "policy-h", alpha=ALPHA), solver, arguments.limit)
        for n, depth in ((n, depth) for depth in (1, 2) for n in arguments.hyperplanes)
        for solver in ("local-search", "oblique-search", "highs")
    ]
    head = ["samples", "depth", "solver", "status", "objective", "bound", "seconds"]
    text = TEXT.format(limit=arguments.limit, p=P)
    text += f"## Without a budget\n\n{table(head, free)}\n\n"
    text += f"## At most {SHARE:.0%} get the second decision\n\n{table(head, budget)}\n\n"
    text += f"## Hyperplane splits, {ALPHA:g} for each feature in a split\n\n{table(head, hyperplanes)}\n\n"
    publish(f"{text}{measured_with(PACKAGES)}\n", arguments.output)


def limited(problem: Problem) -> Problem:
    constraints.limit_label(problem, "b", SHARE)
    return problem


if __name__ == "__main__":
    main()
