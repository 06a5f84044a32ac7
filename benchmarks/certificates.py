"""What a certificate costs: processor time of the search with and without it, of the check, and the file's size.

The folder given by ``--data`` holds the training sets of the MARGOT paper as ``NAME.csv``, last column ``target``. One
thread; median of ``--repeats`` runs, with and without in turn.

    python benchmarks/certificates.py --data FOLDER --output docs/benchmarks/certificates.md
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from markdown import add_output, measured_with, publish, table
from routing import CASES
from starts import paper_split

import mipforest
from formulations.margot import Margot
from mipforest.searches.routing.svm_backend import SvmBackend
from mipforest.time_budget import TimeBudget


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each search")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--names", nargs="*", default=sorted(CASES))
    add_output(parser)
    args = parser.parse_args()
    SvmBackend.compile(TimeBudget())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.gz"
        rows = [row(args.data, name, args.depth, args.limit, args.repeats, path) for name in args.names]
    publish(page(rows, args.depth, args.limit, args.repeats), args.output)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = process_time()
    result = work()
    return process_time() - began, result


def row(data_folder: Path, name: str, depth: int, limit: float, repeats: int, path: Path) -> list[str]:
    """Search one training set with and without a certificate, and check it in both ways."""
    top, below = CASES[name]
    data = paper_split(data_folder, name)
    problem = Margot(C=(top, *(below,) * (depth - 1))).build(data, depth)
    seconds: dict[Path | None, list[float]] = {None: [], path: []}
    for _ in range(repeats):
        for certificate in seconds:
            spent, found = timed(
                lambda certificate=certificate: problem.solve(
                    "routing", time_limit=limit, threads=1, certificate=certificate
                )
            )
            seconds[certificate].append(spent)
    outward, proof = timed(lambda: mipforest.certify(path))
    exact, again = timed(lambda: mipforest.certify(path, exact=True))
    assert proof.bound == again.bound == found.bound
    cells = [
        name,
        f"{data.n} x {data.p}",
        f"{found.objective:.6g}",
        f"{100 * proof.gap:.2f}%",
        str(found.solution.nodes),
        *(f"{median(spent):.1f}" for spent in seconds.values()),
        f"{path.stat().st_size / 1e6:.2f}",
        str(proof.leaves),
        f"{outward:.1f}",
        f"{exact:.1f}",
    ]
    print(" | ".join(cells), flush=True)
    return cells


def page(rows: list[list[str]], depth: int, limit: float, repeats: int) -> str:
    header = ["data", "n x p", "objective", "gap", "nodes", "search", "with certificate"]
    header += ["MB", "leaves", "check", "exact check"]
    return f"""# What certificates cost

MARGOT, depth {depth}, the training sets and penalties of the MARGOT paper, `routing` on one thread, at most {limit:g} s
of search. Processor seconds, median of {repeats} run(s): of the solve without and with a
[certificate](../certificates.md), and of `mipforest certify` without and with `--exact`, which both certified the bound
that the search had reported. Nodes are of the search with the certificate, which also closes what the other drops.

{table(header, rows)}

{measured_with(("numpy", "numba"))}
Run again: `python benchmarks/certificates.py --data FOLDER --depth {depth} --limit {limit:g} --output FILE`.
"""


if __name__ == "__main__":
    main()
