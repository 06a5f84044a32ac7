"""Errors of the exchange with Pyomo."""

from mipforest.model.errors import ModelError


class PyomoModelError(ModelError, ValueError):
    """A Pyomo model that is no mixed-integer model with linear rows and a quadratic objective."""
