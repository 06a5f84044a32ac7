"""Constraints as objects, one small class for each kind: made by options, files and estimators.

Each adds its rows to a model, and has its definition on a tree: its value beside its limit.
"""

from mipforest.problem.constraints.changes import AtMostChanges
from mipforest.problem.constraints.constraint import Built, Condition, Constraint, Holding
from mipforest.problem.constraints.features import (
    AtMostFeatures,
    AtMostOf,
    AtMostSplits,
    FeatureBudget,
    Forbid,
    GroupBudget,
    Monotone,
    OncePerPath,
    Require,
    Split,
)
from mipforest.problem.constraints.labels import (
    F1,
    LabelRows,
    LimitLabel,
    MinLeaf,
    OfLabels,
    Parity,
    Precision,
    Recall,
    RegionLabel,
)
from mipforest.problem.constraints.node_rows import NodeRows
from mipforest.problem.constraints.reading import (
    KINDS,
    as_options,
    constraint_of,
    constraints_of,
    read_constraints,
)
from mipforest.problem.constraints.tree_rows import TreeRows

__all__ = [
    "F1",
    "KINDS",
    "AtMostChanges",
    "AtMostFeatures",
    "AtMostOf",
    "AtMostSplits",
    "Built",
    "Condition",
    "Constraint",
    "FeatureBudget",
    "Forbid",
    "GroupBudget",
    "Holding",
    "LabelRows",
    "LimitLabel",
    "MinLeaf",
    "Monotone",
    "NodeRows",
    "OfLabels",
    "OncePerPath",
    "Parity",
    "Precision",
    "Recall",
    "RegionLabel",
    "Require",
    "Split",
    "TreeRows",
    "as_options",
    "constraint_of",
    "constraints_of",
    "read_constraints",
]
