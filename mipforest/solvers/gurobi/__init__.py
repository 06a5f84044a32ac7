"""Gurobi, through gurobipy."""

from mipforest.solvers.gurobi.plugin import Gurobi

__all__ = ["Gurobi"]
