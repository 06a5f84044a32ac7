"""The tree search ``routing`` on the training sets of the MARGOT paper, beside HiGHS and the paper's own figures.

The folder given by ``--data`` holds the data sets as ``NAME.csv``, last column ``target``. The split is the
paper's: 80%, stratified, seed 0, features scaled to [0, 1] on the training part.

    python benchmarks/routing.py --data FOLDER --depth 2 --limit 60 --output docs/benchmarks/routing.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

from markdown import add_output, measured_with, publish, table
from starts import MARGOT, paper_split

from formulations.margot import Margot
from mipforest.problem import Problem
from mipforest.searches.routing.machine_dives import compile_kernels
from mipforest.time_budget import TimeBudget

#: Data set: the paper's penalties C by level, and seconds of its Gurobi 9.5.1 (600 s: the gap that was left).
CASES = {
    **{name: case[0] for name, case in MARGOT.items()},
    "tic_tac_toe_margot18": (1e0, 1e0),
}
PAPER = {
    "breast_cancer_diagnostic": "7.4 s",
    "breast_cancer_wisconsin": "8.7 s",
    "climate_model": "10.7 s",
    "cleveland": "318 s",
    "ionosphere": "11.2 s",
    "parkinsons": "207 s",
    "sonar": "1.5 s",
    "spectf": "3.3% left",
    "tic_tac_toe_margot18": "3.5 s",
    "wholesale": "46.4 s",
}

PACKAGES = ("numpy", "numba", "highspy", "clarabel")


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each search")
    parser.add_argument("--highs-limit", type=float, default=0.0, help="seconds for HiGHS; 0: leave it out")
    parser.add_argument("--names", nargs="*", default=sorted(CASES))
    add_output(parser)
    args = parser.parse_args()
    compile_kernels(TimeBudget())
    rows = [row(args.data, name, args.depth, args.limit, args.highs_limit) for name in args.names]
    publish(page(rows, args.depth, args.limit, args.highs_limit), args.output)


def row(folder: Path, name: str, depth: int, limit: float, highs_limit: float) -> list[str]:
    """Solve one training set; penalties below the second level are those of the second."""
    top, below = CASES[name]
    data = paper_split(folder, name)
    problem = Margot(C=(top, *(below,) * (depth - 1))).build(data, depth)
    found = problem.solve("routing", time_limit=limit)
    cells = [
        name,
        f"{data.n} x {data.p}",
        f"{found.objective:.6g}",
        f"{found.bound:.6g}",
        f"{100 * found.gap:.2f}%",
        f"{found.solution.seconds:.1f}",
        str(found.solution.nodes),
        "yes" if found.verified else "NO",
    ]
    cells += highs(problem, highs_limit) if highs_limit else []
    cells += [PAPER[name]] if depth == 2 else []
    print(" | ".join(cells), flush=True)
    return cells


def highs(problem: Problem, limit: float) -> list[str]:
    """Objective and gap of HiGHS."""
    found = problem.solve("highs", time_limit=limit)
    return [f"{found.objective:.6g}", f"{100 * found.gap:.1f}%"]


def page(rows: list[list[str]], depth: int, limit: float, highs_limit: float) -> str:
    header = ["data", "n x p", "objective", "bound", "gap", "seconds", "nodes", "verified"]
    header += [f"HiGHS, {highs_limit:g} s", "gap"] if highs_limit else []
    header += ["paper: Gurobi 9.5.1"] if depth == 2 else []
    certified = sum(float(cells[4].rstrip("%")) <= 0.01 for cells in rows)
    total = sum(float(cells[5]) for cells in rows)
    return f"""# The search `routing` on the sets of the MARGOT paper

MARGOT, depth {depth}, the paper's splits and penalties, at most {limit:g} s each. The search begins with the tree known
from building the model (`svm-path`), whose time is not in the seconds; its compilation is not either.

{table(header, rows)}

{certified} of {len(rows)} certified within a gap of 0.01%, in {total:.0f} s of search together.

{measured_with(PACKAGES)}
Run again: `python benchmarks/routing.py --data FOLDER --depth {depth} --limit {limit:g} --output FILE`.
"""


if __name__ == "__main__":
    main()
