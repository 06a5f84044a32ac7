"""Numbers of trees near the optimum, and processor seconds of their listing after the solve.

python benchmarks/near_optimum.py --output docs/benchmarks/near_optimum.md
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import process_time

from markdown import add_output, measured_with, publish, table

from mipforest import get_formulation, load
from mipforest.problem.structure import TreeCharges

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


HEADER = (
    "data",
    "D",
    "asked for",
    "found",
    "kept",
    "errors of those kept",
    "all counted",
    "solve, s",
    "listing, s",
)

PAGE = """# Trees near the optimum

`oct` with `alpha = 0` on whole data sets: numbers of trees within a distance of the optimum, and processor seconds of
the solve and of the [listing](../near_optimum.md) after it, on one thread.

{table}

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
    rows = [row(request) for request in REQUESTS]
    page = PAGE.format(table=table(HEADER, rows), measured=measured_with(["mipforest", "numpy", "numba"]))
    publish(page, arguments.output)


if __name__ == "__main__":
    main()
