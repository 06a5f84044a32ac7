"""What the suite must know of the solvers in this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: By solver: its own option that limits branch and bound to one node.
NODE_LIMIT: Mapping[str, Mapping[str, Any]] = {
    "highs": {"mip_max_nodes": 1},
    "gurobi": {"NodeLimit": 1},
    "scip": {"limits/nodes": 1},
}

_HIGHS_BY_PYOMO = {
    "threads": "HiGHS fixes its threads per process, and Pyomo does not reset them",
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
    """Keyword arguments of :func:`~mipforest.testing.solver_conformance.run_conformance` for a solver."""
    return {"opt_out": OPT_OUT.get(solver), "node_limit": NODE_LIMIT.get(solver)}
