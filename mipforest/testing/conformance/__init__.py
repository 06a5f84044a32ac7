"""The conformance suite: one set of small cases for every solver.

A package that brings a solver runs it with one line in a test file::

    test_conformance = conformance_tests("mysolver", opt_out={"node_limit": "counts nodes differently"})

and without pytest through :func:`run_conformance`. Cases that need a feature that the solver does not list
do not apply; cases that it fails for a known reason are opted out by name, until they pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mipforest.errors import SolverUnavailable, closest
from mipforest.solvers.base import Solver, get_solver
from mipforest.testing.conformance import models, requests
from mipforest.testing.conformance.case import Case, Trial

#: By solver: its own option that limits branch and bound to one node.
NODE_LIMIT: Mapping[str, Mapping[str, Any]] = {
    "highs": {"mip_max_nodes": 1},
    "gurobi": {"NodeLimit": 1},
    "scip": {"limits/nodes": 1},
}

_HIGHS_BY_PYOMO = {
    "unknown_option_is_refused": "Pyomo does not look at what HiGHS answers to an option",
}

#: By solver and case: why it opts out.
OPT_OUT: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("pyomo:appsi_highs", "pyomo:highs"), _HIGHS_BY_PYOMO),
    "pyomo:cbc": {"unknown_option_is_refused": "cbc prints a line about it and goes on"},
    "pyomo:glpk": {
        "gap_is_kept": "GLPK calls a solution within the gap feasible, not optimal",
        "lp_infeasible": "GLPK's presolve leaves the status undefined",
        "mip_unbounded": "GLPK's presolve leaves the status undefined",
        "time_limit": "GLPK says that a solution is feasible, not why it stopped",
    },
}


def arguments(solver: str) -> dict[str, Any]:
    """Return the keyword arguments of :func:`~mipforest.testing.conformance.run_conformance` for a solver."""
    return {"opt_out": OPT_OUT.get(solver), "node_limit": NODE_LIMIT.get(solver)}


_TOPICS = (models, requests)

#: All cases by name.
CASES: Mapping[str, Case] = {case.name: case for topic in _TOPICS for case in topic.cases}


class Verdict(StrEnum):
    """How a case ended for a solver."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    """The solver lists a feature too few (or, for a refusal, too many)."""
    OPTED_OUT = "opted out"
    """It fails, as announced."""
    OPT_OUT_IS_STALE = "opt-out is stale"
    """It was announced to fail, and passes: take the opt-out away."""


@dataclass(frozen=True)
class CaseResult:
    """Result of one case.

    Attributes
    ----------
    case
        Name of the case.
    verdict
        How it ended.
    detail
        What went wrong, or why it did not count.
    error
        What a failed case raised.
    """

    case: str
    verdict: Verdict
    detail: str = ""
    error: Exception | None = field(default=None, repr=False, compare=False)

    @property
    def good(self) -> bool:
        """Whether nothing needs attention."""
        return self.verdict not in (Verdict.FAILED, Verdict.OPT_OUT_IS_STALE)


def run_conformance(
    solver: Solver | str,
    *,
    opt_out: Mapping[str, str] | None = None,
    node_limit: Mapping[str, Any] | None = None,
) -> list[CaseResult]:
    """Run all cases on a solver.

    Parameters
    ----------
    solver
        The solver, or its registered name.
    opt_out
        Reasons by name of case.
    node_limit
        The solver's own option that limits branch and bound to one node, ``{"mip_max_nodes": 1}``; the
        case ``node_limit`` does not apply without it.

    Returns
    -------
    list of CaseResult
        One per case, in the order of :data:`CASES`.

    Raises
    ------
    ValueError
        If an opt-out names no case.
    SolverUnavailable
        If the name is unknown or the solver is not installed.
    """
    _check(opt_out)
    plugin = get_solver(solver) if isinstance(solver, str) else solver
    return [_run(case, plugin, (opt_out or {}).get(case.name), node_limit) for case in CASES.values()]


def conformance_tests(
    solver: Solver | str,
    *,
    opt_out: Mapping[str, str] | None = None,
    node_limit: Mapping[str, Any] | None = None,
) -> Callable[..., None]:
    """Return a test function for pytest that runs every case on a solver; see :func:`run_conformance`.

    Cases that do not apply are skipped, and all are when the solver is not installed. A case that was opted
    out of is expected to fail; the test fails when it passes.
    """
    import pytest

    _check(opt_out)

    @pytest.mark.parametrize("case", CASES)
    def test_conformance(case: str) -> None:
        check_case(solver, case, opt_out=opt_out, node_limit=node_limit)

    return test_conformance


def check_case(
    solver: Solver | str,
    case: str,
    *,
    opt_out: Mapping[str, str] | None = None,
    node_limit: Mapping[str, Any] | None = None,
) -> None:
    """Run one case inside a test of pytest; see :func:`conformance_tests`."""
    import pytest

    _check(opt_out)
    try:
        plugin = get_solver(solver) if isinstance(solver, str) else solver
    except SolverUnavailable as error:
        pytest.skip(str(error))
    outcome = _run(CASES[case], plugin, (opt_out or {}).get(case), node_limit)
    if outcome.verdict is Verdict.NOT_APPLICABLE:
        pytest.skip(outcome.detail)
    if outcome.verdict is Verdict.OPTED_OUT:
        pytest.xfail(outcome.detail)
    if not outcome.good:
        raise AssertionError(f"{case}: {outcome.verdict}: {outcome.detail}") from outcome.error


def _run(case: Case, solver: Solver, reason: str | None, node_limit: Mapping[str, Any] | None) -> CaseResult:
    """Run one case; ``reason`` announces that it fails."""
    with TemporaryDirectory() as folder:
        trial = Trial(solver, Path(folder), node_limit or {})
        inapplicable = case.why_not(trial)
        if inapplicable and reason is None:
            return CaseResult(case.name, Verdict.NOT_APPLICABLE, inapplicable)
        if inapplicable:
            return CaseResult(case.name, Verdict.OPT_OUT_IS_STALE, f"{inapplicable}: remove the opt-out")
        try:
            case.check(trial)
        except Exception as error:  # a solver on trial may raise anything
            if reason is not None:
                return CaseResult(case.name, Verdict.OPTED_OUT, reason)
            return CaseResult(case.name, Verdict.FAILED, f"{type(error).__name__}: {error}", error)
    if reason is not None:
        return CaseResult(case.name, Verdict.OPT_OUT_IS_STALE, "the case passes: remove the opt-out")
    return CaseResult(case.name, Verdict.PASSED)


def _check(opt_out: Mapping[str, str] | None) -> None:
    for name in opt_out or {}:
        if name not in CASES:
            raise ValueError(f"opt_out: no case {name!r} in the conformance suite{closest(name, CASES)}")
