"""Uses of estimators for type checkers: those above are right, those below are five mistakes."""

from mipforest.estimators import (
    ForestSelectorClassifier,
    MargotClassifier,
    OCTClassifier,
    OptimalTreeClassifier,
    OptimalTreeClassifierCV,
    ORTRegressor,
)

X, y = [[1.0], [2.0], [3.0], [4.0]], ["a", "a", "b", "b"]

fitted: OCTClassifier = OCTClassifier(2, alpha=0.1, N_min=5, time_limit=10).fit(X, y)
leaves: int = fitted.set_params(depth=1).get_n_leaves()
score: float = OptimalTreeClassifier(model="margot", parameters={"C": 1}).fit(X, y).score(X, y)
depth: int = OptimalTreeClassifierCV(depth=3, class_weight="balanced", missing="impute").fit(X, y).depth_
selector: ForestSelectorClassifier = ForestSelectorClassifier(depth=2, n_trees=20).fit(X, y)

OCTClassifier(dept=2)  # mistake: a name that there is not
OCTClassifier(depth="2")  # mistake: a text for a number
MargotClassifier(scaling="maxmin")  # mistake: a value that there is not
ORTRegressor(3, 0.1)  # mistake: a value without its name
fitted.predict_prob(X)  # mistake: a method that there is not
