"""What fits classifiers of every kind, and those that a user fitted: an object, or a ``.joblib`` file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import RegressorMixin
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import IntArray
from mipforest.data import Dataset
from mipforest.data.columns import text
from mipforest.ensembles.ensemble import Adapter
from mipforest.ensembles.libraries import (
    ExtraTrees,
    GradientBoosting,
    RandomForest,
    XGBoost,
    fit_forest,
    fit_gradient_boosting,
    fit_xgboost,
    require_xgboost,
)
from mipforest.errors import EnsembleError, some_of

#: Adapter of each kind, and what fits its estimator.
FITTED: dict[str, tuple[type[Adapter], Callable[..., Any]]] = {
    RandomForest.kind: (RandomForest, partial(fit_forest, RandomForest.learner)),
    ExtraTrees.kind: (ExtraTrees, partial(fit_forest, ExtraTrees.learner)),
    GradientBoosting.kind: (GradientBoosting, fit_gradient_boosting),
    XGBoost.kind: (XGBoost, fit_xgboost),
}

#: Classifiers that have an adapter; XGBClassifier is known by name, so that xgboost need not be installed.
FAMILIES: tuple[tuple[Any, type[Adapter]], ...] = (
    (RandomForest.learner, RandomForest),
    (ExtraTrees.learner, ExtraTrees),
    (GradientBoostingClassifier, GradientBoosting),
)
SUPPORTED = "RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier and XGBClassifier"


def adapter_of(estimator: Any, data: Dataset) -> Adapter:
    """Wrap a fitted classifier in the adapter of its kind.

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
    raise EnsembleError(f"a {name}{why}; {SUPPORTED} can be taken, fitted on features in original units")


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


def class_numbers(labels: Any, data: Dataset) -> IntArray:
    """Match an estimator's classes to those of a data set: by label, by name, or by class number.

    Labels are compared as text. Numbers 0 and 1 (or False and True) that are not labels of the data set are
    its class numbers, as in ``estimator.fit(data.X_raw, data.y)``.

    Parameters
    ----------
    labels
        The estimator's ``classes_``.
    data
        A data set of two classes.

    Returns
    -------
    IntArray
        (2,) class number of each of the estimator's classes.

    Raises
    ------
    EnsembleError
        If there are not two classes, they are not those of the data set, or they can be read in two ways.
    """
    wanted = [text(label) for label in np.asarray(labels).tolist()]
    if len(wanted) != 2:
        raise EnsembleError(
            f"the ensemble was fitted on {len(wanted)} class(es) ({some_of(wanted)}); it must tell two apart"
        )
    are_numbers = np.asarray(labels).tolist() == [0, 1]
    for known in (list(map(text, data.class_values)), list(data.classes)):
        if sorted(known) == sorted(wanted):
            found = [known.index(label) for label in wanted]
            if are_numbers and found != [0, 1]:
                raise EnsembleError(
                    f"class 0 of the ensemble may be label {known[1]!r} of {data.name} or its class number 0, "
                    f"which has label {known[0]!r}; keep the classes of {data.name} in the order of their "
                    "labels (do not binarise), or fit the ensemble on class names"
                )
            return np.array(found, dtype=np.int64)
    if are_numbers:
        return np.array([0, 1], dtype=np.int64)
    raise EnsembleError(
        f"the ensemble tells {wanted[0]!r} from {wanted[1]!r}, but the classes of {data.name} are "
        f"{data.classes[0]!r} and {data.classes[1]!r}; fit it on the labels of {data.name}, or on 0 and 1 in "
        "this order"
    )


def load_estimator(path: Path) -> Any:
    """Read what ``joblib.dump(estimator, path)`` wrote.

    **Loading runs code that the file contains.** Load files only from people you trust.

    Raises
    ------
    EnsembleError
        If the file is not a joblib file, needs a package that is not installed, or was written by another
        version of scikit-learn.
    OSError
        If there is no such file, or it cannot be read.
    """
    with path.open("rb"):
        pass  # joblib words the system's errors in its own way.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", InconsistentVersionWarning)
            return joblib.load(path)
    except InconsistentVersionWarning as warning:
        raise EnsembleError(
            f"{path} was written with scikit-learn {warning.original_sklearn_version}, this is "
            f"{warning.current_sklearn_version}, and trees of one version may be misread by another; fit the "
            "ensemble again, or install that version"
        ) from None
    except ModuleNotFoundError as error:
        if error.name == "xgboost":
            require_xgboost()
        raise EnsembleError(f"{path} needs the Python package {error.name}; install it") from error
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:  # A damaged pickle may raise anything.
        kind = type(error).__name__
        raise EnsembleError(
            f"{path} cannot be read as a joblib file ({kind}: {error}); write it with "
            "joblib.dump(estimator, path)"
        ) from error
