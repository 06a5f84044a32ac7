"""The solvers behind Pyomo."""

from mipforest.solvers.pyomo.plugin import Pyomo

__all__ = ["Pyomo"]
