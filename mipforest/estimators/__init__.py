"""Optimal trees as scikit-learn estimators: tuned, one for each paper, two for any formulation; prescriptive ones."""

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
from mipforest.estimators.prescriptive import (
    OptimalPrescriptiveTree,
    RegressAndCompare,
    imputed_outcomes,
    policy_measures,
)
from mipforest.estimators.randomized import RandomizedTreeClassifier, RandomizedTreeRegressor
from mipforest.estimators.risk_scores import RiskScoreClassifier
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
    "OptimalPrescriptiveTree",
    "OptimalTreeClassifier",
    "OptimalTreeClassifierCV",
    "OptimalTreeRegressor",
    "OptimalTreeRegressorCV",
    "RandomizedTreeClassifier",
    "RandomizedTreeRegressor",
    "RegressAndCompare",
    "RiskScoreClassifier",
    "UnverifiedTreeWarning",
    "imputed_outcomes",
    "policy_measures",
]
