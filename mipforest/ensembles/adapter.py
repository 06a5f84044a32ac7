"""A fitted scikit-learn or xgboost classifier, with its classes in the data set's order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles.member import MemberTree


@dataclass(frozen=True, eq=False)
class Adapter(ABC):
    """What every family of ensembles shares.

    Attributes
    ----------
    estimator
        The fitted classifier of two classes.
    class_numbers
        (2,) number in the data set of each of the estimator's classes.
    """

    kind: ClassVar[str]

    estimator: Any
    class_numbers: IntArray

    @abstractmethod
    def members(self) -> tuple[MemberTree, ...]:
        """Give the trees that take part in predictions."""

    @abstractmethod
    def leaves(self, X: FloatArray) -> IntArray:
        """(n, T) number of the leaf that each sample reaches in each member."""

    def predict(self, X: FloatArray) -> IntArray:
        """(n,) predicted class, 0 or 1."""
        return self.class_numbers[self._predicted(X)]

    def probability(self, X: FloatArray) -> FloatArray:
        """(n,) probability of the predicted class."""
        every = np.asarray(self.estimator.predict_proba(self._named(X)), dtype=np.float64)
        return every[np.arange(len(every)), self._predicted(X)]

    def _predicted(self, X: FloatArray) -> IntArray:
        """(n,) position of the predicted class among the estimator's; ties are broken as it breaks them."""
        labels = self.estimator.predict(self._named(X))
        return np.asarray(labels == self.estimator.classes_[1], dtype=np.int64)

    def _named(self, X: FloatArray) -> Any:
        """Give the features under the names that the estimator was fitted with, if it was."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return X if names is None else pd.DataFrame(X, columns=names)
