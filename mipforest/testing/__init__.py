"""Assertions for the tests of this package and of packages that extend it."""

from mipforest.testing.forms import assert_same_form

__all__ = ["assert_same_form"]
