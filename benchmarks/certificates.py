"""What a certificate costs: processor time of the search with and without it, of the check, and the file's size.

The folder given by ``--data`` holds the training sets of the MARGOT paper, and small sets for univariate trees, as
``NAME.csv`` with a column ``target``; that of ``--large`` the sets of ConTree, compressed. One thread; median of
``--repeats`` runs, of ``routing`` with and without a certificate in turn. The second checker needs a C++ compiler.

    python benchmarks/certificates.py --data FOLDER --large FOLDER --output docs/benchmarks/certificates.md
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import monotonic, process_time
from typing import Any

from exact_search import CLASSES, NUMBERS, problem_of, seconds_of_children
from markdown import add_output, measured_with, publish, table
from routing import CASES
from starts import paper_split

import mipforest
from formulations.margot import Margot
from mipforest.certificates.univariate import value_of
from mipforest.data import load
from mipforest.searches.exact.certificate_writer import Proof, compiled_proof
from mipforest.searches.exact.search import compile_kernels, exact_search
from mipforest.searches.routing.svm_backend import SvmBackend
from mipforest.time_budget import TimeBudget

#: Data sets of ``--large``.
LARGE = ["bank", "raisin", "segment", "wilt", "page", "room"]

SECOND_CHECKER = Path(__file__).parents[1] / "tests" / "certificates" / "second_checker.cpp"


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--large", type=Path, help="folder with larger data sets for univariate trees")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each search")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--names", nargs="*", default=sorted(CASES), help="of the MARGOT paper")
    parser.add_argument("--classes", nargs="*", default=CLASSES, help="for univariate trees")
    parser.add_argument("--numbers", nargs="*", default=NUMBERS, help="for univariate regression trees")
    parser.add_argument("--large-names", nargs="*", default=LARGE, help="of --large")
    add_output(parser)
    args = parser.parse_args()
    SvmBackend.compile(TimeBudget())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.gz"
        rows = [row(args.data, name, args.depth, args.limit, args.repeats, path) for name in args.names]
        second = second_checker(Path(folder))
        kinds = [("classes", name, args.data / f"{name}.csv") for name in args.classes]
        kinds += [("squared", name, args.data / f"{name}.csv") for name in args.numbers]
        if args.large is not None:
            kinds += [("classes", name, args.large / f"{name}.csv.gz") for name in args.large_names]
        univariate = [
            univariate_row(*kind, depth, args.limit, args.repeats, path, second)
            for kind in kinds
            for depth in (2, 3)
        ]
    publish(page(rows, univariate, args.depth, args.limit, args.repeats), args.output)


#: Seconds below which processor time is not told apart.
TICK = 0.01


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


def second_checker(folder: Path) -> Path | None:
    """Compile the second checker, if there is a compiler."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return None
    program = folder / "second_checker"
    flags = ["-std=c++17", "-O2", "-ffp-contract=off"]
    subprocess.run([compiler, *flags, "-o", program, SECOND_CHECKER], check=True)
    return program


def seconds_of_second(program: Path | None, path: Path) -> float | None:
    """Check a certificate by the second checker; return its processor seconds."""
    if program is None:
        return None
    began = seconds_of_children()
    subprocess.run([program], input=gzip.decompress(path.read_bytes()), check=True, stdout=subprocess.DEVNULL)
    return seconds_of_children() - began


def univariate_row(
    loss: str, name: str, file: Path, depth: int, limit: float, repeats: int, path: Path, program: Path | None
) -> list[str]:
    """Search one data set for univariate trees, write the proof, and check it by both checkers."""
    task = "classification" if loss == "classes" else "regression"
    data = load(str(file), target="target", task=task)
    problem = problem_of(data, loss)
    compile_kernels(TimeBudget(), problem, depth)
    compiled_proof(TimeBudget(), problem, depth)
    seconds: dict[str, list[float]] = {step: [] for step in ("search", "write", "check", "second")}
    for _ in range(repeats):
        spent, outcome = timed(lambda: exact_search(problem, depth, deadline=monotonic() + limit))
        seconds["search"].append(spent)
        spent, bound = timed(lambda: written_proof(problem, depth, outcome, path))  # noqa: B023
        seconds["write"].append(spent)
        spent, proof = timed(lambda: mipforest.certify(path))
        seconds["check"].append(spent)
        assert proof.bound == bound
        second = seconds_of_second(program, path)
        seconds["second"] += [] if second is None else [second]
    middle = {step: median(values) if values else None for step, values in seconds.items()}
    cells = [
        name,
        f"{data.n} x {data.p}",
        str(depth),
        f"{outcome.value:.6g}",
        f"{100 * proof.gap:.2g}%",
        *("-" if spent is None else f"{spent:.2f}" for spent in middle.values()),
        f"{middle['check'] / max(middle['search'], TICK):.1f}",
        f"{path.stat().st_size / 1e6:.3f}",
        str(proof.intervals),
    ]
    print(" | ".join(cells), flush=True)
    return cells


def written_proof(problem: Any, depth: int, outcome: Any, path: Path) -> float:
    """Write the certificate of what was found; return the bound that it proves."""
    proof, thresholds = Proof(problem, depth), problem.thresholds
    bound = proof.prove(outcome.value if outcome.ended else outcome.bound)
    tree = [
        (int(thresholds.feature[k]), float(thresholds.value[k])) if k >= 0 else (-1, 0.0)
        for k in outcome.chosen
    ]
    proof.write(path, {}, float(value_of(proof.problem, tree, proof.constraints)), tree, bound)
    return bound


def univariate_section(rows: Sequence[Sequence[str]], limit: float, repeats: int) -> str:
    """Return what is said of univariate trees."""
    if not rows:
        return ""
    header = [
        "data",
        "n x p",
        "depth",
        "objective",
        "gap",
        "search",
        "write",
        "check",
        "second",
        "check / search",
    ]
    header += ["MB", "intervals"]
    return f"""
## Univariate trees

OCT and ORT without a cost of splits, `exact-search` on one thread, at most {limit:g} s. Processor seconds, median of
{repeats} run(s): of the search without a certificate, of writing the proof afterwards, and of both
[checkers](../certificates.md#a-second-checker). The gap is that of the certificate.

{table(header, rows)}
"""


def page(rows: list[list[str]], univariate: list[list[str]], depth: int, limit: float, repeats: int) -> str:
    header = ["data", "n x p", "objective", "gap", "nodes", "search", "with certificate"]
    header += ["MB", "leaves", "check", "exact check"]
    return f"""# What certificates cost

MARGOT, depth {depth}, the training sets and penalties of the MARGOT paper, `routing` on one thread, at most {limit:g} s
of search. Processor seconds, median of {repeats} run(s): of the solve without and with a
[certificate](../certificates.md), and of `mipforest certify` without and with `--exact`, which both certified
the bound that the search had reported. Nodes are those of the search with the certificate, which also closes
the nodes that the other search drops.

{table(header, rows)}
{univariate_section(univariate, limit, repeats)}
{measured_with(("numpy", "numba"))}
Run again: `python benchmarks/certificates.py --data FOLDER --large FOLDER --depth {depth} --limit {limit:g}
--output FILE`.
"""


if __name__ == "__main__":
    main()
