"""Assertions and tests for this package and packages that extend it."""

from mipforest.testing.conformance import conformance_tests, run_conformance
from mipforest.testing.formulation_conformance import FormulationTest, assert_same_form, formulation_tests

__all__ = [
    "FormulationTest",
    "assert_same_form",
    "conformance_tests",
    "formulation_tests",
    "run_conformance",
]
