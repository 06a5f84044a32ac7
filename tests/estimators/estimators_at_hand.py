"""Every estimator in every shape that has a formulation of its own."""

from mipforest.estimators import (
    MargotClassifier,
    MIRETClassifier,
    OCTClassifier,
    OCTHClassifier,
    OLCTClassifier,
    ORTRegressor,
)

SHAPES = {
    "oct": OCTClassifier(),
    "oct-h": OCTHClassifier(),
    "ort": ORTRegressor(),
    "ort-h": ORTRegressor(splits="hyperplane"),
    "ort-l": ORTRegressor(leaves="linear"),
    "ort-lh": ORTRegressor(splits="hyperplane", leaves="linear"),
    "margot": MargotClassifier(),
    "hfs-margot": MargotClassifier(feature_selection="hard"),
    "sfs-margot": MargotClassifier(feature_selection="soft"),
    "olct": OLCTClassifier(),
    "budgeted-olct": OLCTClassifier(B=2),
    "miret": MIRETClassifier(ensemble="random-forest:trees=5"),
}
