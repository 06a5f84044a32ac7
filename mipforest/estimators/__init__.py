"""Optimal trees as scikit-learn estimators; see :class:`~mipforest.estimators.base.TreeEstimator`."""

from mipforest.estimators.base import FitWarning, NoTreeFound, UnverifiedTreeWarning
from mipforest.estimators.margot import MargotClassifier
from mipforest.estimators.miret import MIRETClassifier
from mipforest.estimators.oct import OCTClassifier, OCTHClassifier
from mipforest.estimators.olct import OLCTClassifier
from mipforest.estimators.ort import ORTRegressor

__all__ = [
    "FitWarning",
    "MIRETClassifier",
    "MargotClassifier",
    "NoTreeFound",
    "OCTClassifier",
    "OCTHClassifier",
    "OLCTClassifier",
    "ORTRegressor",
    "UnverifiedTreeWarning",
]
