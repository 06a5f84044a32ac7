"""Optimal trees as scikit-learn estimators: tuned, one for each paper, two for any formulation; prescriptive ones.

Selectors choose one tree of a forest for each sample.
"""

from mipforest.data.treatments import imputed_outcomes, policy_measures
from mipforest.errors import NoTreeFound
from mipforest.estimators.base import FitWarning, NotProvenWarning, UnverifiedTreeWarning
from mipforest.estimators.forest_selector import (
    ForestSelectorClassifier,
    ForestSelectorRegressor,
    SelectionReport,
)
from mipforest.estimators.generic import (
    OptimalTreeClassifier,
    OptimalTreeClassifierCV,
    OptimalTreeRegressor,
    OptimalTreeRegressorCV,
)
from mipforest.estimators.multi_output import MultiTreeClassifier, MultiTreeRegressor
from mipforest.estimators.papers import (
    FunctionalTreeRegressor,
    MargotClassifier,
    MIRETClassifier,
    OCTClassifier,
    OCTHClassifier,
    OLCTClassifier,
    OptimalPrescriptiveTree,
    ORTRegressor,
    PoissonTreeRegressor,
    PolicyTreeClassifier,
    QuantileTreeRegressor,
    RandomizedTreeClassifier,
    RandomizedTreeRegressor,
    RegressAndCompare,
    RiskScoreClassifier,
    SemiSupervisedTreeClassifier,
    SurvivalTree,
)

__all__ = [
    "FitWarning",
    "ForestSelectorClassifier",
    "ForestSelectorRegressor",
    "FunctionalTreeRegressor",
    "MIRETClassifier",
    "MargotClassifier",
    "MultiTreeClassifier",
    "MultiTreeRegressor",
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
    "PoissonTreeRegressor",
    "PolicyTreeClassifier",
    "QuantileTreeRegressor",
    "RandomizedTreeClassifier",
    "RandomizedTreeRegressor",
    "RegressAndCompare",
    "RiskScoreClassifier",
    "SelectionReport",
    "SemiSupervisedTreeClassifier",
    "SurvivalTree",
    "UnverifiedTreeWarning",
    "imputed_outcomes",
    "policy_measures",
]
