"""HiGHS, through highspy."""

from mipforest.solvers.highs.plugin import Highs

__all__ = ["Highs"]
