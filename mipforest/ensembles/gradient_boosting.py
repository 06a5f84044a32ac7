"""Gradient boosting of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.utils.class_weight import compute_sample_weight

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles.adapter import Adapter
from mipforest.ensembles.member import MemberTree, output_variance
from mipforest.ensembles.scikit_trees import leaf_outputs, member_of


class GradientBoosting(Adapter):
    """``GradientBoostingClassifier`` of two classes: one regression tree per stage."""

    kind = "gradient-boosting"

    def members(self) -> tuple[MemberTree, ...]:
        """Give the tree of every stage, weighted by :func:`~mipforest.ensembles.member.output_variance`."""
        stages = self.estimator.estimators_[:, 0]
        return tuple(member_of(tree, output_variance(*leaf_outputs(tree))) for tree in stages)

    def leaves(self, X: FloatArray) -> IntArray:
        """(n, T) number of the leaf that each sample reaches in each stage's tree."""
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
