"""The solver-agnostic model object: variables, expressions, constraints, and their flat matrix form."""

from mipforest.model.concatenation import concatenate
from mipforest.model.constraints import ConstraintBlock
from mipforest.model.errors import DataValueError, ExpressionError, ModelError, ShapeError, UnknownNameError
from mipforest.model.expressions import LinearExpr
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm, Values
from mipforest.model.model import Model
from mipforest.model.quadratic import QuadraticExpr, sum_squares
from mipforest.model.relation import Relation, between
from mipforest.model.variables import VarArray

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
