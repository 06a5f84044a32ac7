"""Mixed-integer modelling toolkit for optimal decision trees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mipforest.certificates import certify
    from mipforest.data import DataError, Dataset, load, reward_scores
    from mipforest.edits import EditSession
    from mipforest.estimators import (
        ForestSelectorClassifier,
        ForestSelectorRegressor,
        FunctionalTreeRegressor,
        MargotClassifier,
        MIRETClassifier,
        MultiTreeClassifier,
        MultiTreeRegressor,
        OCTClassifier,
        OCTHClassifier,
        OLCTClassifier,
        OptimalPrescriptiveTree,
        OptimalTreeClassifier,
        OptimalTreeClassifierCV,
        OptimalTreeRegressor,
        OptimalTreeRegressorCV,
        ORTRegressor,
        PoissonTreeRegressor,
        QuantileTreeRegressor,
        RandomizedTreeClassifier,
        RandomizedTreeRegressor,
        RiskScoreClassifier,
        SemiSupervisedTreeClassifier,
        SurvivalTree,
    )
    from mipforest.model import Model, between, concatenate, sum_squares
    from mipforest.problem.problem import Problem
    from mipforest.problem.registry import get_formulation
    from mipforest.problem.result import Result
    from mipforest.pyomo import from_pyomo, to_pyomo
    from mipforest.settings import SolveSettings
    from mipforest.solving import Session, solve
    from mipforest.trees import Topology, Tree
    from mipforest.updates import update

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "Dataset",
    "EditSession",
    "ForestSelectorClassifier",
    "ForestSelectorRegressor",
    "FunctionalTreeRegressor",
    "MIRETClassifier",
    "MargotClassifier",
    "Model",
    "MultiTreeClassifier",
    "MultiTreeRegressor",
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
    "Problem",
    "QuantileTreeRegressor",
    "RandomizedTreeClassifier",
    "RandomizedTreeRegressor",
    "Result",
    "RiskScoreClassifier",
    "SemiSupervisedTreeClassifier",
    "Session",
    "SolveSettings",
    "SurvivalTree",
    "Topology",
    "Tree",
    "between",
    "certify",
    "concatenate",
    "from_pyomo",
    "get_formulation",
    "load",
    "reward_scores",
    "solve",
    "sum_squares",
    "to_pyomo",
    "update",
]

#: Where each public name lives; imported on first use, so that the command line starts at once.
_HOMES = {
    "mipforest.certificates": ("certify",),
    "mipforest.edits": ("EditSession",),
    "mipforest.data": ("DataError", "Dataset", "load", "reward_scores"),
    "mipforest.estimators": (
        "ForestSelectorClassifier",
        "ForestSelectorRegressor",
        "FunctionalTreeRegressor",
        "MIRETClassifier",
        "MargotClassifier",
        "MultiTreeClassifier",
        "MultiTreeRegressor",
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
        "RiskScoreClassifier",
        "SemiSupervisedTreeClassifier",
        "SurvivalTree",
    ),
    "mipforest.model": ("Model", "between", "concatenate", "sum_squares"),
    "mipforest.problem.problem": ("Problem",),
    "mipforest.pyomo": ("from_pyomo", "to_pyomo"),
    "mipforest.problem.registry": ("get_formulation",),
    "mipforest.problem.result": ("Result",),
    "mipforest.settings": ("SolveSettings",),
    "mipforest.solving": ("Session", "solve"),
    "mipforest.trees": ("Topology", "Tree"),
    "mipforest.updates": ("update",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'mipforest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
