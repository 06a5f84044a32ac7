"""SCIP, through PySCIPOpt."""

from mipforest.solvers.scip.plugin import Scip

__all__ = ["Scip"]
