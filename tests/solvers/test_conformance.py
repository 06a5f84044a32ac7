"""Every registered solver against the conformance suite."""

import pytest

from mipforest.solvers.registry import solver_classes
from mipforest.testing.conformance.opt_outs import arguments
from mipforest.testing.solver_conformance import CASES, check_case


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", solver_classes())
def test_conformance(solver: str, case: str) -> None:
    check_case(solver, case, **arguments(solver))
