"""Ensembles of the libraries: forests and gradient boosting of scikit-learn, boosted trees of XGBoost.

The optional package ``xgboost`` is imported here only, where it is used.
"""

from __future__ import annotations

import json
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.utils.class_weight import compute_sample_weight

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles.ensemble import Adapter, MemberTree, output_variance
from mipforest.errors import EnsembleError, NoTreeFound
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
