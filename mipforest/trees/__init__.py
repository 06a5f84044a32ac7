"""Decision trees: index sets, prediction, text, files and figures. Knows no model, solver or data set.

The figures are loaded on first use, so that everything else does not wait for matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mipforest.trees.export import TreeFileError, from_dict, load, save, to_dict, to_dot, to_python
from mipforest.trees.measures import (
    CalibrationMeasures,
    ClassMeasures,
    DiagnosticMeasures,
    LabelMeasures,
    PrescriptionMeasures,
    RegressionMeasures,
    Reliability,
    ReliabilityBin,
    RewardMeasures,
    auc_of_scores,
    calibration_measures,
    class_measures,
    diagnostic_measures,
    measures_of_targets,
    prescription_measures,
    regression_measures,
    reward_measures,
)
from mipforest.trees.node_statistics import (
    NodeStatistics,
    feature_importances,
    feature_influence,
    leaf_shares,
    node_statistics,
)
from mipforest.trees.randomized import Curve, FunctionalTree, RandomizedTree
from mipforest.trees.reachable import leaf_regions, shown_tree
from mipforest.trees.sides import midpoint
from mipforest.trees.text import explanations, to_text
from mipforest.trees.topology import MAX_DEPTH, Nodes, Topology
from mipforest.trees.tree import FeaturesUsed, Predictor, Tree
from mipforest.trees.tree_set import FeatureUse, TreeSet

if TYPE_CHECKING:
    from mipforest.trees.partition import plot_partition
    from mipforest.trees.plot import Picture, plot_explanation, plot_tree, save_figure, save_plot

_FIGURES = {
    "Picture": "plot",
    "save_figure": "plot",
    "plot_explanation": "plot",
    "plot_partition": "partition",
    "plot_tree": "plot",
    "save_plot": "plot",
}

__all__ = [
    "MAX_DEPTH",
    "CalibrationMeasures",
    "ClassMeasures",
    "Curve",
    "DiagnosticMeasures",
    "FeatureUse",
    "FeaturesUsed",
    "FunctionalTree",
    "LabelMeasures",
    "NodeStatistics",
    "Nodes",
    "Picture",
    "Predictor",
    "PrescriptionMeasures",
    "RandomizedTree",
    "RegressionMeasures",
    "Reliability",
    "ReliabilityBin",
    "RewardMeasures",
    "Topology",
    "Tree",
    "TreeFileError",
    "TreeSet",
    "auc_of_scores",
    "calibration_measures",
    "class_measures",
    "diagnostic_measures",
    "explanations",
    "feature_importances",
    "feature_influence",
    "from_dict",
    "leaf_regions",
    "leaf_shares",
    "load",
    "measures_of_targets",
    "midpoint",
    "node_statistics",
    "plot_explanation",
    "plot_partition",
    "plot_tree",
    "prescription_measures",
    "regression_measures",
    "reward_measures",
    "save",
    "save_figure",
    "save_plot",
    "shown_tree",
    "to_dict",
    "to_dot",
    "to_python",
    "to_text",
]


def __getattr__(name: str) -> Any:
    if name in _FIGURES:
        return getattr(import_module(f"{__name__}.{_FIGURES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
