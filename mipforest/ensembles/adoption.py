"""Taking over a classifier that a user fitted."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mipforest.data import Dataset
from mipforest.data.errors import some_of
from mipforest.ensembles.adapter import Adapter
from mipforest.ensembles.class_numbers import class_numbers
from mipforest.ensembles.errors import EnsembleError
from mipforest.ensembles.forests import ExtraTrees, RandomForest
from mipforest.ensembles.gradient_boosting import GradientBoosting
from mipforest.ensembles.xgboost import XGBoost

#: What can be taken over; XGBClassifier is known by name, so that xgboost need not be installed.
FAMILIES: tuple[tuple[Any, type[Adapter]], ...] = (
    (RandomForest.learner, RandomForest),
    (ExtraTrees.learner, ExtraTrees),
    (GradientBoostingClassifier, GradientBoosting),
)
TAKEN = "RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier and XGBClassifier"


def adopt(estimator: Any, data: Dataset) -> Adapter:
    """Take over a fitted classifier.

    Parameters
    ----------
    estimator
        A random forest, extra trees, gradient boosting (scikit-learn) or ``XGBClassifier``, fitted on the
        features of ``data`` in original units.
    data
        A data set of two classes.

    Raises
    ------
    EnsembleError
        If it is something else, not fitted, or fitted on other features or classes.
    """
    family = _family(estimator)
    name = type(estimator).__name__
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise EnsembleError(f"the {name} is not fitted; call its fit(X, y) first") from None
    _check_features(estimator, data)
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise EnsembleError(f"the {name} predicts {estimator.n_outputs_} targets; fit it on one")
    return family(estimator, class_numbers(estimator.classes_, data))


def _family(estimator: Any) -> type[Adapter]:
    for learner, family in FAMILIES:
        if isinstance(estimator, learner):
            return family
    bases = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(estimator).__mro__}
    if "xgboost.XGBClassifier" in bases:
        return XGBoost
    name = type(estimator).__name__
    is_regressor = isinstance(estimator, RegressorMixin)
    why = " is a regressor" if is_regressor else " is no classifier of these kinds"
    raise EnsembleError(f"a {name}{why}; {TAKEN} can be taken, fitted on features in original units")


def _check_features(estimator: Any, data: Dataset) -> None:
    width = estimator.n_features_in_
    if width != data.p:
        raise EnsembleError(
            f"the ensemble was fitted on {width} features, {data.name} has {data.p} "
            f"({some_of(data.features.labels)}); fit it on these, in original units"
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return
    for j, (theirs, ours) in enumerate(zip(map(str, names), data.features.labels, strict=True)):
        if theirs != ours:
            raise EnsembleError(
                f"feature {j + 1} of the ensemble is {theirs!r}, that of {data.name} is {ours!r}; fit the "
                f"ensemble on the features of {data.name} in this order: {some_of(data.features.labels, 20)}"
            )
