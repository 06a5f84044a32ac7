"""Ensembles of the libraries: forests and gradient boosting of scikit-learn, boosted trees of XGBoost.

The optional package ``xgboost`` is imported here only, where it is used.
An ensemble is fitted here, or given by the user: an object, or a ``.joblib`` file.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import RegressorMixin
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.table import text
from mipforest.ensembles.ensemble import Adapter, MemberTree, output_variance
from mipforest.errors import EnsembleError, NoTreeFound, some_of
from mipforest.time_budget import TimeBudget

#: Numbers in the features whose trees of a forest are grown between two looks at the time: tenths of a second.
ENTRIES_AT_ONCE = 1_000_000


class RandomForest(Adapter):
    """``RandomForestClassifier``: every tree counts the same; the probability is the mean over the trees."""

    kind = "random-forest"
    learner: Any = RandomForestClassifier

    def members(self) -> tuple[MemberTree, ...]:
        """Return all trees, each with weight 1."""
        return tuple(map(member_of, self.estimator.estimators_))

    def leaves(self, X: FloatArray) -> IntArray:
        """Return the (n, T) number of the leaf that each sample reaches in each tree."""
        return np.asarray(self.estimator.apply(self._named(X)), dtype=np.int64)


class ExtraTrees(RandomForest):
    """``ExtraTreesClassifier``: as a random forest."""

    kind = "extra-trees"
    learner = ExtraTreesClassifier


def fit_forest(
    learner: Any,
    X: FloatArray,
    y: IntArray,
    *,
    trees: int,
    depth: int,
    seed: int,
    budget: TimeBudget,
    weight: FloatArray | None = None,
) -> Any:
    """Fit a forest with the settings of the MIRET paper (section 8): balanced classes, all features tried.

    From scikit-learn 1.9 on, the class weights decide how bootstrap samples are drawn; before, they weighed
    the samples that were drawn. The forests differ: those of the paper are the earlier ones.

    Parameters
    ----------
    learner
        ``RandomForestClassifier`` or ``ExtraTreesClassifier``.
    X, y
        (n, p) features and (n,) class numbers.
    trees, depth, seed
        Number of trees, their greatest depth, and the seed of their randomness.
    budget
        Asked between some trees and the next ones.
    weight
        (n,) weights of the samples; 1 unless given.

    Raises
    ------
    NoTreeFound
        If the time runs out.
    """
    forest = learner(max_depth=depth, max_features=None, class_weight="balanced", random_state=seed)
    if weight is not None:
        # From scikit-learn 1.9 on, "balanced" counts weights instead of samples, and would cancel those of classes.
        weight = _balanced(y, weight)
        forest.set_params(class_weight=None)
    # Begun anew for more trees, a forest goes on with the numbers that it would have drawn; the data are the same.
    forest.set_params(warm_start=True)
    step = max(1, ENTRIES_AT_ONCE // X.size)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "class_weight presets", UserWarning)
        for grown in range(0, trees, step):
            require_time(budget, grown, trees)
            forest.set_params(n_estimators=min(grown + step, trees)).fit(X, y, sample_weight=weight)
    return forest.set_params(warm_start=False)


def require_time(budget: TimeBudget, grown: int, trees: int) -> None:
    """Refuse to go on without time: an ensemble of fewer trees would be another target.

    Raises
    ------
    NoTreeFound
        If the time limit has come.
    KeyboardInterrupt
        If a stop was asked for: there is nothing to keep yet.
    """
    if budget.stopped:
        raise KeyboardInterrupt
    if budget.expired:
        raise NoTreeFound(
            f"the time limit came when {grown} of the {trees} trees of the ensemble were fitted, before the search for "
            "a tree that mimics them: give more time, an ensemble of fewer trees, or one that is fitted already"
        )


def _balanced(y: IntArray, weight: FloatArray | None) -> FloatArray:
    """Return the weights that balance the classes, times those of the samples."""
    balance: FloatArray = compute_sample_weight("balanced", y)
    return balance if weight is None else balance * weight


def member_of(tree: Any, weight: float = 1.0) -> MemberTree:
    """Return a fitted ``DecisionTreeClassifier`` or ``DecisionTreeRegressor`` as a member.

    scikit-learn sends a sample left where its single-precision value is at most the threshold.
    """
    source = tree.tree_
    left = source.children_left.astype(np.int64)
    return MemberTree(
        left=left,
        right=source.children_right.astype(np.int64),
        feature=np.where(left < 0, -1, source.feature).astype(np.int64),
        threshold=source.threshold.astype(np.float64),
        weight=weight,
    )


def leaf_outputs(tree: Any) -> tuple[FloatArray, FloatArray]:
    """Return the value of each leaf of a fitted ``DecisionTreeRegressor``, and the weight of the samples in it."""
    source = tree.tree_
    is_leaf: IntArray = source.children_left < 0
    return source.value[is_leaf, 0, 0], source.weighted_n_node_samples[is_leaf]


class GradientBoosting(Adapter):
    """``GradientBoostingClassifier`` of two classes: one regression tree per stage."""

    kind = "gradient-boosting"

    def members(self) -> tuple[MemberTree, ...]:
        """Return the tree of each stage, weighted by :func:`~mipforest.ensembles.ensemble.output_variance`."""
        stages = self.estimator.estimators_[:, 0]
        return tuple(member_of(tree, output_variance(*leaf_outputs(tree))) for tree in stages)

    def leaves(self, X: FloatArray) -> IntArray:
        """Return the (n, T) number of the leaf that each sample reaches in each stage's tree."""
        # Asked as a whole, an estimator that was fitted on a table warns of the names that its own trees lack.
        stages = self.estimator.estimators_[:, 0]
        return np.column_stack([tree.apply(X) for tree in stages]).astype(np.int64)


def fit_gradient_boosting(
    X: FloatArray,
    y: IntArray,
    *,
    trees: int,
    depth: int,
    seed: int,
    budget: TimeBudget,
    weight: FloatArray | None = None,
) -> Any:
    """Fit with scikit-learn's learning rate of 0.1; samples are weighted so that classes are balanced.

    Parameters
    ----------
    X, y
        (n, p) features and (n,) class numbers.
    trees, depth, seed
        Number of stages, greatest depth of a tree, and the seed of ties between splits.
    budget
        Asked after each stage.
    weight
        (n,) weights of the samples; 1 unless given.

    Raises
    ------
    NoTreeFound
        If the time runs out.
    """

    def ask(stage: int, *_: object) -> bool:
        require_time(budget, stage + 1, trees)
        return False

    learner = GradientBoostingClassifier(n_estimators=trees, max_depth=depth, random_state=seed)
    return learner.fit(X, y, sample_weight=_balanced(y, weight), monitor=ask)


class XGBoost(Adapter):
    """``XGBClassifier``; after early stopping, its trees up to the best round."""

    kind = "xgboost"

    def members(self) -> tuple[MemberTree, ...]:
        """Return the trees, weighted by :func:`~mipforest.ensembles.ensemble.output_variance`.

        Raises
        ------
        EnsembleError
            If the booster is not of trees in equal standing, or splits on categories.
        """
        booster = self.estimator.get_booster()
        best_round = getattr(self.estimator, "best_iteration", None)
        if best_round is not None:
            booster = booster[: best_round + 1]
        source = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
        if source["name"] != "gbtree":
            raise EnsembleError(
                f"the XGBClassifier has the booster {source['name']!r}; only the trees of 'gbtree' can be read: "
                "fit it again with booster='gbtree'"
            )
        return tuple(map(_member_of, source["model"]["trees"]))

    def leaves(self, X: FloatArray) -> IntArray:
        """Return the (n, T) number of the leaf that each sample reaches in each tree."""
        return np.asarray(self.estimator.apply(self._named(X)), dtype=np.int64)


def _member_of(tree: dict[str, Any]) -> MemberTree:
    """Read a tree of XGBoost's JSON format.

    XGBoost sends a sample left where its single-precision value is below the threshold.
    """
    if any(tree["split_type"]):
        raise EnsembleError(
            "the XGBClassifier splits on categories; turn them into 0/1 columns before it is fitted"
        )
    left = np.array(tree["left_children"], dtype=np.int64)
    is_leaf = left < 0
    # The file writes single-precision numbers in few digits: read as double precision they would be others.
    conditions = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    mass = np.array(tree["sum_hessian"], dtype=np.float64)
    return MemberTree(
        left=left,
        right=np.array(tree["right_children"], dtype=np.int64),
        feature=np.where(is_leaf, -1, np.array(tree["split_indices"], dtype=np.int64)),
        threshold=conditions,
        weight=output_variance(conditions[is_leaf], mass[is_leaf]),
    )


def require_xgboost() -> None:
    """Refuse to go on without the package.

    Raises
    ------
    EnsembleError
        If it is not installed.
    """
    if find_spec("xgboost") is None:
        raise EnsembleError(
            "the ensemble needs the Python package xgboost; run: pip install 'mipforest[xgboost]'"
        )


def fit_xgboost(
    X: FloatArray,
    y: IntArray,
    *,
    trees: int,
    depth: int,
    seed: int,
    budget: TimeBudget,
    weight: FloatArray | None = None,
) -> Any:
    """Fit with XGBoost's own settings; samples are weighted so that classes are balanced.

    One thread: the outcome then does not depend on the machine.

    Parameters
    ----------
    X, y
        (n, p) features and (n,) class numbers.
    trees, depth, seed
        Number of rounds, greatest depth of a tree, and the seed.
    budget
        Asked before; a hundred thousand samples take seconds.
    weight
        (n,) weights of the samples; 1 unless given.

    Raises
    ------
    EnsembleError
        If the package is not installed.
    NoTreeFound
        If the time has run out.
    """
    require_xgboost()
    require_time(budget, 0, trees)
    from xgboost import XGBClassifier

    learner = XGBClassifier(n_estimators=trees, max_depth=depth, random_state=seed, n_jobs=1)
    return learner.fit(X, y, sample_weight=_balanced(y, weight))


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
