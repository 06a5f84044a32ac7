"""Every estimator of one target in every shape that has a formulation of its own, and the generic ones."""

from mipforest.estimators import (
    MargotClassifier,
    MIRETClassifier,
    MultiTreeClassifier,
    MultiTreeRegressor,
    OCTClassifier,
    OCTHClassifier,
    OLCTClassifier,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    ORTRegressor,
    PoissonTreeRegressor,
    QuantileTreeRegressor,
    SemiSupervisedTreeClassifier,
)

SHAPES = {
    "oct": OCTClassifier(),
    "oct-h": OCTHClassifier(),
    "semi-oct": SemiSupervisedTreeClassifier(),
    "ort": ORTRegressor(),
    "ort-h": ORTRegressor(splits="hyperplane"),
    "ort-l": ORTRegressor(leaves="linear"),
    "ort-lh": ORTRegressor(splits="hyperplane", leaves="linear"),
    "quantile": QuantileTreeRegressor(tau=0.8),
    "poisson": PoissonTreeRegressor(),
    "margot": MargotClassifier(),
    "hfs-margot": MargotClassifier(feature_selection="hard"),
    "sfs-margot": MargotClassifier(feature_selection="soft"),
    "olct": OLCTClassifier(),
    "budgeted-olct": OLCTClassifier(B=2),
    "miret": MIRETClassifier(ensemble="random-forest:trees=5"),
}

GENERIC = {
    "any": OptimalTreeClassifier(),
    "any-loss-optimal": OptimalTreeClassifier(
        model="loss-optimal", parameters={"selection": "hard", "B": 2, "C": 10.0}
    ),
    "any-miret": OptimalTreeClassifier(model="miret", parameters={"ensemble": "random-forest:trees=5"}),
    "any-regressor": OptimalTreeRegressor(),
    "multi": MultiTreeRegressor(),
    "multi-labels": MultiTreeClassifier(),
    "any-linear": OptimalTreeRegressor(model="ort-l", parameters={"loss": "absolute"}),
}
