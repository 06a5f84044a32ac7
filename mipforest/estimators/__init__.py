"""Optimal trees as scikit-learn estimators: tuned ones, one for each paper, and two that take any formulation."""

from mipforest.errors import NoTreeFound
from mipforest.estimators.base import FitWarning, NotProvenWarning, UnverifiedTreeWarning
from mipforest.estimators.generic import OptimalTreeClassifier, OptimalTreeRegressor
from mipforest.estimators.papers import (
    MargotClassifier,
    MIRETClassifier,
    OCTClassifier,
    OCTHClassifier,
    OLCTClassifier,
    ORTRegressor,
)
from mipforest.estimators.randomized import RandomizedTreeClassifier
from mipforest.estimators.tuned import OptimalTreeClassifierCV, OptimalTreeRegressorCV

__all__ = [
    "FitWarning",
    "MIRETClassifier",
    "MargotClassifier",
    "NoTreeFound",
    "NotProvenWarning",
    "OCTClassifier",
    "OCTHClassifier",
    "OLCTClassifier",
    "ORTRegressor",
    "OptimalTreeClassifier",
    "OptimalTreeClassifierCV",
    "OptimalTreeRegressor",
    "OptimalTreeRegressorCV",
    "RandomizedTreeClassifier",
    "UnverifiedTreeWarning",
]
