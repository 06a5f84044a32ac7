"""What regressors share: targets and predictions are numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.data.encoding import Scaling
from mipforest.estimators.base import TreeEstimator


@dataclass(eq=False, repr=False)
class TreeRegressor(RegressorMixin, TreeEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A regressor that is an optimal tree; see :class:`~mipforest.estimators.base.TreeEstimator`."""

    def _read(self, X_raw: FloatArray, y: Any, features: tuple[str, ...], scaling: Scaling) -> Dataset:
        values = _values(self, y)
        check_consistent_length(X_raw, values)
        return Dataset.from_arrays(X_raw, values, features=features, task="regression", scaling=scaling)

    def predict(self, X: Any) -> FloatArray:
        """Return (n,) predicted values, in the target's units."""
        X_raw = self._features(X)
        return np.asarray(self.tree_.predict(X_raw), dtype=np.float64)


def _values(estimator: TreeRegressor, y: Any) -> FloatArray:
    """(n,) finite values."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give one value per row"
        )
    values: FloatArray = column_or_1d(y, dtype=np.float64, warn=True)
    assert_all_finite(values, input_name="y")
    return values
