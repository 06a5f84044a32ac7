"""Random forests and extremely randomised trees of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles.adapter import Adapter
from mipforest.ensembles.member import MemberTree
from mipforest.ensembles.scikit_trees import member_of


class RandomForest(Adapter):
    """``RandomForestClassifier``: every tree counts the same; the probability is the mean over the trees."""

    kind = "random-forest"
    learner: Any = RandomForestClassifier

    def members(self) -> tuple[MemberTree, ...]:
        """Give all trees, with weight 1."""
        return tuple(map(member_of, self.estimator.estimators_))

    def leaves(self, X: FloatArray) -> IntArray:
        """(n, T) number of the leaf that each sample reaches in each tree."""
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
