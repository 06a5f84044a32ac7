"""Random forests, extremely randomised trees and gradient boosting of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.utils.class_weight import compute_sample_weight

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles.ensemble import Adapter, MemberTree, output_variance


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


def fit_forest(learner: Any, X: FloatArray, y: IntArray, *, trees: int, depth: int, seed: int) -> Any:
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
    """
    forest = learner(
        n_estimators=trees, max_depth=depth, max_features=None, class_weight="balanced", random_state=seed
    )
    return forest.fit(X, y)


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


def fit_gradient_boosting(X: FloatArray, y: IntArray, *, trees: int, depth: int, seed: int) -> Any:
    """Fit with scikit-learn's learning rate of 0.1; samples are weighted so that classes are balanced.

    Parameters
    ----------
    X, y
        (n, p) features and (n,) class numbers.
    trees, depth, seed
        Number of stages, greatest depth of a tree, and the seed of ties between splits.
    """
    learner = GradientBoostingClassifier(n_estimators=trees, max_depth=depth, random_state=seed)
    return learner.fit(X, y, sample_weight=compute_sample_weight("balanced", y))
