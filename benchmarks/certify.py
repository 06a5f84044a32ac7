"""Time until an optimal univariate tree of depth two is certified: OCT tight and paper on HiGHS, beside ConTree.

    python benchmarks/certify.py --data FOLDER [--limit 300] [--output docs/certify.md]

FOLDER holds the data sets as CSV files whose last column is ``target``.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path
from time import monotonic

from formulations.leaves import baseline_error
from formulations.oct import Oct
from mipforest.data import Dataset, load
from mipforest.heuristics.contree import contree
from mipforest.trees import Topology

DATA = ("wine", "haberman", "transfusion", "parkinsons", "banknote")
DEPTH = 2


def certify(data: Dataset, variant: str, limit: float) -> dict[str, str]:
    """Build and solve one variant; seconds count everything from the data on."""
    began = monotonic()
    result = (
        Oct(variant=variant)
        .build(data, DEPTH)
        .solve(time_limit=limit, start="cart" if variant == "paper" else "default")
    )
    seconds = monotonic() - began
    errors = baseline_error(data)
    assert result.verified, result.failed_checks
    return {
        "errors": f"{result.objective * errors:.0f}",
        "bound": f"{max(0.0, result.bound * errors):.1f}",
        "seconds": f"{seconds:.1f}" if result.status == "optimal" else f"> {limit:.0f}",
    }


def table(folder: Path, limit: float) -> str:
    """Solve everything, one row per data set."""
    lines = [
        "| data | n | p | CART errors | tight: errors | bound | seconds "
        "| paper: errors | bound | seconds | ConTree errors | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in DATA:
        data = load(str(folder / f"{name}.csv"), target="target", task="classification")
        began = monotonic()
        exact = contree(data, Topology(DEPTH))
        seconds = monotonic() - began
        errors = int((exact.predict(data.X) != data.y).sum())
        greedy = Oct().start("cart", Oct(variant="paper").bind(data, Topology(DEPTH)))
        cart_errors = int((greedy.predict(data.X) != data.y).sum())
        tight, paper = certify(data, "tight", limit), certify(data, "paper", limit)
        cells = [
            name,
            data.n,
            data.p,
            cart_errors,
            *tight.values(),
            *paper.values(),
            errors,
            f"{seconds:.2f}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets as CSV files")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each solve")
    parser.add_argument("--output", type=Path, help="write the page to this file")
    arguments = parser.parse_args()
    versions = ", ".join(f"{package} {version(package)}" for package in ("mipforest", "highspy", "pycontree"))
    page = f"""# Optimal trees of depth two as a mixed-integer programme

OCT with `alpha = 0`, `N_min = 1`, on the whole data set: training errors of the tree, proven bound on the errors,
and seconds from the data to the certificate (preparation, building and solving), at a limit of
{arguments.limit:.0f} s per solve on two cores with HiGHS. `tight` and `paper` are variants of the same formulation;
`paper` starts from CART, `tight` from the tree that its preparation finds. ConTree is an independent exact algorithm
for the same problem. {versions}.

The bound of `tight` at depth two comes from a row that its preparation computes by trying all pairs of thresholds
(`formulations/splits/univariate.py`): the solver proves the model's optimum, and the row makes its relaxation
exact. Deeper trees have such a row too, as strong as a search of limited length can prove it. `auto` calls no solver
here: `exact-search` proves these trees in hundredths of a second ([measured](benchmarks/exact_search.md)).

{table(arguments.data, arguments.limit)}

Made by `python benchmarks/certify.py --data FOLDER --output docs/certify.md`.
"""
    if arguments.output:
        arguments.output.write_text(page)
    else:
        print(page)


if __name__ == "__main__":
    main()
