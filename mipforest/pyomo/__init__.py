"""Exchange with Pyomo: models to it, and from it."""

from mipforest.errors import PyomoModelError
from mipforest.pyomo.exchange import from_pyomo, to_pyomo

__all__ = ["PyomoModelError", "from_pyomo", "to_pyomo"]
