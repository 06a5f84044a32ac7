"""Assertions and tests for this package and packages that extend it."""

from mipforest.testing.forms import assert_same_form
from mipforest.testing.solver_conformance import conformance_tests, run_conformance

__all__ = ["assert_same_form", "conformance_tests", "run_conformance"]
