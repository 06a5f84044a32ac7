"""The tables of docs/solvers.md: what each solver takes, how it conforms, and whether solvers agree.

    python benchmarks/solvers.py [--page docs/solvers.md] [--limit 60]

Each table replaces what stands between its two marks on the page. Ends with 1 if two solvers disagree or a
conformance case fails.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from agreement import agreement_table
from markdown import measured_with, table

from mipforest.errors import SolverUnavailable
from mipforest.solvers.base import Feature, get_solver, solver_classes
from mipforest.testing.conformance import CASES, CaseResult, Verdict, arguments, run_conformance

#: Heading of each feature's column.
HEADINGS = {
    Feature.LP: "LP",
    Feature.MIP: "MIP",
    Feature.QP: "QP",
    Feature.MIQP: "MIQP",
    Feature.INDICATORS: "indicators",
    Feature.START: "starts",
    Feature.PARTIAL_START: "partial starts",
    Feature.PRIORITIES: "priorities",
    Feature.PROGRESS: "progress",
    Feature.INTERRUPT: "interruption",
}

#: Interfaces of Pyomo that the conformance suite is run on, where they are found.
BY_PYOMO = ("highs", "appsi_highs", "gurobi", "gurobi_direct", "scip_direct", "cbc", "glpk")

PACKAGES = ("highspy", "clarabel", "gurobipy", "pyscipopt", "pyomo")

MARKS = {
    Verdict.PASSED: "pass",
    Verdict.NOT_APPLICABLE: "",
    Verdict.OPTED_OUT: "opted out",
    Verdict.FAILED: "**fails**",
    Verdict.OPT_OUT_IS_STALE: "**passes, though opted out**",
}


def found_solvers() -> list[str]:
    """Names of the solvers that can be used here, plug-ins first."""
    names = [*(name for name in solver_classes() if name != "pyomo"), *(f"pyomo:{name}" for name in BY_PYOMO)]
    return [name for name in names if _usable(name)]


def capability_table() -> str:
    """One row per solver, one column per feature."""
    rows = []
    for name in found_solvers():
        solver = get_solver(name)
        marks = ["yes" if feature in solver.features else "" for feature in HEADINGS]
        rows.append([name, f"`pip install {solver.install}`", *marks])
    return table(["solver", "install", *HEADINGS.values()], rows)


def conformance_tables() -> tuple[str, bool]:
    """Counts by solver, the reasons of opt-outs, and case by solver; and whether all is well."""
    names = found_solvers()
    outcomes = {name: _conformance(name) for name in names}
    count = [
        [name, *(str(sum(o.verdict is verdict for o in outcomes[name].values())) for verdict in MARKS)]
        for name in names
    ]
    reasons = [
        f"- `{name}`, `{outcome.case}`: {outcome.detail}."
        for name in names
        for outcome in outcomes[name].values()
        if outcome.verdict is Verdict.OPTED_OUT
    ]
    cases = [[f"`{case}`", *(MARKS[outcomes[name][case].verdict] for name in names)] for case in CASES]
    parts = [
        table(["solver", *MARKS], count),
        "Opted out:",
        "\n".join(reasons) or "None.",
        "<details><summary>Case by solver (empty: not applicable)</summary>",
        table(["case", *names], cases),
        "</details>",
    ]
    good = all(outcome.good for name in names for outcome in outcomes[name].values())
    return "\n\n".join(parts), good


def replaced(page: str, name: str, text: str) -> str:
    """Give the page with ``text`` between the marks of that name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"the page needs one line {begin} and one line {end}")
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"


def main() -> None:
    """Make the tables, print them, and write them into the page if one is given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, help="page whose marked sections are replaced")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each solve")
    wanted = parser.parse_args()
    exact = [name for name in found_solvers() if ":" not in name and Feature.MIP in get_solver(name).features]
    conformance, conforms = conformance_tables()
    agreement, agrees = agreement_table(exact, wanted.limit)
    versions = measured_with([package for package in PACKAGES if _installed(package)])
    sections = {
        "capabilities": capability_table(),
        "conformance": f"{conformance}\n\n{versions}",
        "agreement": f"{agreement}\n\n{versions}",
    }
    if wanted.page:
        page = wanted.page.read_text(encoding="utf-8")
        for name, text in sections.items():
            page = replaced(page, name, text)
        wanted.page.write_text(page, encoding="utf-8")
    else:
        print(*sections.values(), sep="\n\n")
    sys.exit(0 if conforms and agrees else 1)


def _conformance(name: str) -> dict[str, CaseResult]:
    return {outcome.case: outcome for outcome in run_conformance(name, **arguments(name))}


def _usable(name: str) -> bool:
    try:
        get_solver(name)
    except SolverUnavailable:
        return False
    return True


def _installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
