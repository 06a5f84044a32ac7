"""Trees and score cards where mipforest is not installed: as scikit-learn's trees, as ONNX models, as SQL.

Every form compares a feature with the exact double at which a split of one feature changes sides
(:func:`~mipforest.trees.sides.exact_cuts`), so that it predicts as the tree does, also next to a threshold.
"""

from mipforest.deployment.onnx_model import to_onnx
from mipforest.deployment.scikit import to_sklearn
from mipforest.deployment.sql import to_sql

__all__ = ["to_onnx", "to_sklearn", "to_sql"]
