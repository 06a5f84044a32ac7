"""Assertions and tests for this package and packages that extend it."""

from mipforest.testing.formulation_conformance import FormulationTest, assert_same_form, formulation_tests
from mipforest.testing.solver_conformance import conformance_tests, run_conformance

__all__ = [
    "FormulationTest",
    "assert_same_form",
    "conformance_tests",
    "formulation_tests",
    "run_conformance",
]
