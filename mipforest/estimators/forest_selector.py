"""Forest selectors: a forest is grown, and every sample is predicted by one of its trees, whose path explains it.

Source: the chapter on choosing one tree of a forest per sample (CCT, CRT) of the thesis behind OLCT. It trains a policy
network on the rewards of drawn trees; here all rewards are used, and simpler gates stand beside the network.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_consistent_length

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.estimators.gates import Scale, rewards_of_labels, rewards_of_values
from mipforest.estimators.generic import read_classes, read_values
from mipforest.estimators.selector_base import ForestSelector, check_choice
from mipforest.heuristics.cart import class_shares


@dataclass(eq=False, repr=False)
class ForestSelectorClassifier(ClassifierMixin, ForestSelector):  # type: ignore[misc] # scikit-learn has no types
    """Classifier that chooses one tree of a random forest for every sample (CCT); any number of classes.

    A tree's reward on a sample is 1 where it predicts the sample's class, else -1.

    Parameters
    ----------
    class_weight
        What the weights of a class's samples are multiplied with, as for
        :class:`~mipforest.estimators.generic.TreeClassifier`.
    depth, and all others
        As for :class:`~mipforest.estimators.selector_base.ForestSelector`, and so are the attributes.

    Attributes
    ----------
    classes_
        (K,) labels, sorted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = ForestSelectorClassifier(depth=2, n_trees=10, gate_depth=1).fit(X, y)
    >>> selector.select(X.iloc[:2]).shape, bool(selector.score(X, y) > 0.9)
    ((2,), True)
    """

    _: KW_ONLY
    class_weight: Any = None

    def _learners(self) -> tuple[type, tuple[type, ...]]:
        return DecisionTreeClassifier, (RandomForestClassifier, ExtraTreesClassifier)

    def _read(self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...]) -> Dataset:
        return read_classes(self, X_raw, y, weights, features, "none")

    def _rewards(self, predicted: FloatArray, y: Any) -> FloatArray:
        return rewards_of_labels(predicted, y)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return (n,) labels predicted by the chosen trees, of :attr:`classes_`."""
        X_raw = self._features(X)
        labels: npt.NDArray[Any] = self.classes_[self._chosen(X_raw).astype(np.int64)]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return (n, K) shares of the classes, among the samples drawn for the chosen tree, in the leaf reached."""
        X_raw = self._features(X)
        selected, found = self.gate_.select(X_raw), np.empty((len(X_raw), len(self.classes_)))
        for a in np.unique(selected):
            rows, tree = selected == a, self.trees_[a]
            shares = class_shares(self.forest_.estimators_[a], tree.topology)
            found[rows] = shares[tree.apply(X_raw[rows]) - tree.topology.n_branches]
        return found

    def _measure(self, y: Any, weights: FloatArray) -> tuple[str, Any, Any]:
        labels = np.asarray(y)
        # A label that training did not have is no class: every prediction of it is wrong.
        known = np.isin(labels, self.classes_)
        numbers = np.where(
            known, np.searchsorted(self.classes_, np.where(known, labels, self.classes_[0])), -1
        )
        return (
            "accuracy",
            lambda predicted: float(np.average(predicted == numbers, weights=weights)),
            lambda predicted: (predicted == numbers[:, None]).argmax(axis=1),
        )


@dataclass(eq=False, repr=False)
class ForestSelectorRegressor(RegressorMixin, ForestSelector):  # type: ignore[misc] # scikit-learn has no types
    """Regressor that chooses one tree of a random forest for every sample (CRT).

    Parameters
    ----------
    reward
        Unit of the squared errors that rewards are made of: ``"global"``, one for all samples; ``"per_sample"``, each
        sample's own range over the trees, as in the thesis; see :func:`~mipforest.estimators.gates.rewards_of_values`.
    depth, and all others
        As for :class:`~mipforest.estimators.selector_base.ForestSelector`, and so are the attributes.
    """

    _: KW_ONLY
    reward: str = "global"

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("reward", self.reward, get_args(Scale))

    def _learners(self) -> tuple[type, tuple[type, ...]]:
        return DecisionTreeRegressor, (RandomForestRegressor, ExtraTreesRegressor)

    def _read(self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...]) -> Dataset:
        values = read_values(self, y)
        check_consistent_length(X_raw, values)
        return Dataset.from_arrays(
            X_raw, values, features=features, task="regression", scaling="none", weights=weights
        )

    def _rewards(self, predicted: FloatArray, y: Any) -> FloatArray:
        return rewards_of_values(predicted, y, cast("Scale", self.reward))

    def predict(self, X: Any) -> FloatArray:
        """Return (n,) values predicted by the chosen trees, in the target's units."""
        X_raw = self._features(X)
        return self._chosen(X_raw)

    def _measure(self, y: Any, weights: FloatArray) -> tuple[str, Any, Any]:
        targets = np.asarray(y, dtype=np.float64)
        return (
            "RMSE",
            lambda predicted: float(np.sqrt(np.average((predicted - targets) ** 2, weights=weights))),
            lambda predicted: np.abs(predicted - targets[:, None]).argmin(axis=1),
        )
