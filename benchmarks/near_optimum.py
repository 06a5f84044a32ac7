"""Numbers of trees near the optimum, and processor seconds of their listing after the solve.

python benchmarks/near_optimum.py --output docs/benchmarks/near_optimum.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np
from markdown import add_output, measured_with, publish, table

from mipforest import get_formulation, load
from mipforest.constraints import limit_label, min_recall
from mipforest.heuristics.thresholds import univariate_tree
from mipforest.problem.problem import Problem
from mipforest.problem.structure import TreeCharges, UnivariateProblem
from mipforest.problem.tree_search import ListedTrees, get_search

#: Seconds on the clock for a solve and its listing.
LIMIT = 300.0


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    data: str
    depth: int
    within: float | None = None
    keep_trees: int | None = None

    def in_words(self) -> str:
        parts = [] if self.within is None else [f"within {self.within:.0%}"]
        parts += [] if self.keep_trees is None else [f"the best {self.keep_trees}"]
        return ", ".join(parts)


REQUESTS = [
    Request("iris", 2, within=0.5),
    Request("wine", 2, within=0.2),
    Request("breast_cancer", 2, within=0.1),
    Request("breast_cancer", 2, keep_trees=100),
    Request("breast_cancer", 2, within=1.0, keep_trees=100),
    Request("iris", 3, within=1.0, keep_trees=1000),
    Request("breast_cancer", 3, within=0.0, keep_trees=1000),
]


def row(request: Request) -> list[str]:
    """Return what the page says of a request; the solve without a listing is measured before."""
    problem = get_formulation("oct")().build(load(request.data), request.depth)
    began = process_time()
    plain = problem.solve("exact-search", time_limit=LIMIT, threads=1)
    solve = process_time() - began
    began = process_time()
    result = problem.solve(
        "exact-search", time_limit=LIMIT, threads=1, within=request.within, keep_trees=request.keep_trees
    )
    both = process_time() - began
    trees = result.trees
    assert trees is not None
    assert isinstance(problem.structure, TreeCharges)
    counted = trees.ended and trees.counted
    assert result.status == plain.status == "optimal"
    errors = [round(value * problem.structure.unit) for value in (trees.objectives[0], trees.objectives[-1])]
    return [
        request.data,
        str(request.depth),
        request.in_words(),
        f"{trees.found:,}" if counted else "not counted",
        f"{len(trees):,}",
        f"{errors[0]} to {errors[1]}",
        f"{solve:.1f}",
        f"{max(0.0, both - solve):.1f}",
    ]


#: Processor seconds for a listing whose trees are held against a limit afterwards, and most trees of it.
LIMIT_AFTER, MOST = 60.0, 100_000


@dataclass(frozen=True)
class Limited:
    """A limit on labels, and how near the best tree within it others are asked for."""

    data: str
    in_words: str
    limit: Callable[[Problem], None]
    within: float


LIMITED = [
    Limited(
        "iris",
        "at most 30 % setosa",
        lambda problem: limit_label(problem, problem.data.classes[0], 0.3),
        0.5,
    ),
    Limited(
        "breast_cancer",
        "recall of malignant at least 0.97",
        lambda p: min_recall(p, 0.97, positive="malignant"),
        0.1,
    ),
    Limited("breast_cancer", "at most 33 % malignant", lambda p: limit_label(p, "malignant", 0.33), 0.1),
]


def limited_row(request: Limited) -> list[str]:
    """Return what the page says of a limit that holds during the listing, and of the same after it."""
    problem = get_formulation("oct")().build(load(request.data), 2)
    request.limit(problem)
    best = problem.solve("exact-search", time_limit=LIMIT, threads=1)
    assert best.status == "optimal"
    sums = problem.formulation.label_sums(problem.model, problem.instance, problem.as_built)
    assert sums is not None
    assert not sums.rest
    budget = (1 + request.within) * best.objective + 1e-9

    def listing(*, during: bool) -> tuple[ListedTrees, float]:
        began = process_time()
        found = get_search("exact-search").list_trees(
            problem,
            budget=budget,
            most=MOST,
            shrink=False,
            all_labels=True,
            limits=sums if during else None,
            stopped=lambda: not during and process_time() - began > LIMIT_AFTER,
        )
        return found, process_time() - began

    during, seconds = listing(during=True)
    assert during.ended
    assert during.counted
    after, seconds_after = listing(during=False)
    told = [f"more than {LIMIT_AFTER:.0f}", "not ended"]
    if after.ended and after.whole:
        began = process_time()
        left = sum(_satisfies(problem, after, k) for k in range(len(after.value)))
        assert left == during.count
        told = [f"{seconds_after + process_time() - began:.1f}", f"{after.count:,}"]
    elif after.ended:
        told = [f"more than {seconds_after:.1f}", f"more than {MOST:,}"]
    assert isinstance(problem.structure, TreeCharges)
    errors = round(best.objective * problem.structure.unit)
    share = f"{request.within:.0%}"
    return [request.data, request.in_words, str(errors), share, f"{during.count:,}", f"{seconds:.1f}", *told]


def _satisfies(problem: Problem, found: ListedTrees, k: int) -> bool:
    charged = problem.structure
    assert isinstance(charged, UnivariateProblem)
    chosen, thresholds = found.chosen[k], charged.thresholds
    feature = np.where(chosen >= 0, thresholds.feature[chosen], -1)
    value = np.where(chosen >= 0, thresholds.value[chosen], 0.0)
    tree = univariate_tree(problem.data, problem.topology, feature, value, found.label[k])
    return problem.worst_violation(problem.encoded(tree)) == ""


LIMITED_HEADER = (
    "data",
    "limit",
    "least errors",
    "within",
    "trees",
    "limit during, s",
    "limit after, s",
    "trees listed then",
)

HEADER = (
    "data",
    "D",
    "asked for",
    "found",
    "kept",
    "errors of those kept",
    "solve, s",
    "listing, s",
)

PAGE = """# Trees near the optimum

`oct` with `alpha = 0` on whole data sets: numbers of trees within a distance of the optimum, and processor seconds of
the solve and of the [listing](../near_optimum.md) after it, on one thread.

{table}

## Limits on labels

Depth 2, with a limit on labels that leaves the best trees out: processor seconds of the listing where trees beyond the
limit are left out on the way, and of one without the limit whose trees are held against it afterwards.
A list of more than 100,000 trees is cut there: the answer is not complete then, and nothing was held against the limit.

{limited}

{measured}
Run again: `python benchmarks/near_optimum.py --output FILE`.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_output(parser)
    arguments = parser.parse_args()
    row(Request("iris", 3, within=0.0))  # compiles the search
    limited_row(LIMITED[0])
    rows = [row(request) for request in REQUESTS]
    limited = table(LIMITED_HEADER, [limited_row(request) for request in LIMITED])
    page = PAGE.format(
        table=table(HEADER, rows), limited=limited, measured=measured_with(["mipforest", "numpy", "numba"])
    )
    publish(page, arguments.output)


if __name__ == "__main__":
    main()
