"""Mixed-integer modelling toolkit for optimal decision trees."""

from mipforest.data import DataError, Dataset, load
from mipforest.model import Model, between, concatenate, sum_squares
from mipforest.problem import Problem
from mipforest.registry import get_formulation
from mipforest.result import Result
from mipforest.solving import solve
from mipforest.trees import Topology, Tree

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "Dataset",
    "Model",
    "Problem",
    "Result",
    "Topology",
    "Tree",
    "between",
    "concatenate",
    "get_formulation",
    "load",
    "solve",
    "sum_squares",
]
