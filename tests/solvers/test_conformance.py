"""Every registered solver, and solvers behind Pyomo, against the conformance suite."""

import pytest

from mipforest.solvers.registry import solver_classes
from mipforest.testing.solver_conformance import CASES, arguments, check_case

#: Solvers that stand for themselves: ``pyomo`` alone names none.
DIRECT = [name for name in solver_classes() if name != "pyomo"]
BY_PYOMO = ["pyomo:highs", "pyomo:gurobi_direct"]
MORE_BY_PYOMO = ["pyomo:appsi_highs", "pyomo:gurobi", "pyomo:scip_direct", "pyomo:cbc", "pyomo:glpk"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", DIRECT + BY_PYOMO)
def test_conformance(solver: str, case: str) -> None:
    check_case(solver, case, **arguments(solver))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", MORE_BY_PYOMO)
def test_conformance_of_more_interfaces_of_pyomo(solver: str, case: str) -> None:
    check_case(solver, case, **arguments(solver))
