"""The solver-agnostic model object: variables, expressions, constraints, and their flat matrix form."""

from mipforest.errors import DataValueError, ExpressionError, ModelError, ShapeError, UnknownNameError
from mipforest.model.blocks import ConstraintBlock, VarArray
from mipforest.model.expressions import LinearExpr, QuadraticExpr, between, concatenate, sum_squares
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm, Values
from mipforest.model.model import Model
from mipforest.model.operators import Relation

__all__ = [
    "Block",
    "ConstraintBlock",
    "DataValueError",
    "ExpressionError",
    "IndicatorRows",
    "LinearExpr",
    "MatrixForm",
    "Model",
    "ModelError",
    "QuadraticExpr",
    "Relation",
    "ShapeError",
    "UnknownNameError",
    "Values",
    "VarArray",
    "between",
    "concatenate",
    "sum_squares",
]
