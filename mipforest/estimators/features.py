"""From the X that a user gives to features in original units, by the rules that data sets follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mipforest.arrays import FloatArray
from mipforest.data.encoding import Column, Encoding
from mipforest.data.table import with_text_names
from mipforest.estimators.scikit_versions import validate

#: With one sample there is nothing to tell apart.
LEAST_SAMPLES = 2


def learn_features(estimator: Any, X: Any) -> tuple[Encoding, FloatArray]:
    """Check training samples and learn what their columns are.

    Columns of numbers are features. In a pandas DataFrame every other column (texts, categories, true/false)
    is one-hot encoded, as :meth:`Dataset.from_frame <mipforest.data.Dataset.from_frame>` does.

    Parameters
    ----------
    estimator
        Gets ``n_features_in_`` and, for a DataFrame with text names, ``feature_names_in_``.
    X
        (n, p) array-like or DataFrame of n >= 2 rows, without missing values.

    Returns
    -------
    encoding
        What the columns are; features keep their units.
    X_raw
        (n, p') features.

    Raises
    ------
    ValueError, TypeError
        If X cannot be used, :class:`~mipforest.data.DataError` for a DataFrame; scikit-learn's otherwise.
    """
    if isinstance(X, pd.DataFrame):
        validate(estimator, X, reset=True, skip_check_array=True)
        if len(X) < LEAST_SAMPLES or X.shape[1] == 0:
            raise ValueError(
                f"X has {X.shape[1]} feature(s) and n_samples={len(X)}; give at least one feature (column) and "
                f"{LEAST_SAMPLES} samples (rows)"
            )
        frame = with_text_names(X)
        encoding = Encoding.fit(frame)
        return encoding, encoding.encode(frame)
    matrix = validate(estimator, X, reset=True, dtype=np.float64, ensure_min_samples=LEAST_SAMPLES)
    names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(matrix.shape[1])])
    return Encoding.unscaled([Column(str(name)) for name in names]), matrix


def read_features(estimator: Any, encoding: Encoding, X: Any) -> FloatArray:
    """Turn samples into (n, p') features in original units, as the training samples were.

    They are laid out row by row, as the training samples are: another layout rounds scores differently.

    Raises
    ------
    ValueError, TypeError
        If columns are others than in training, a value is missing, or a level is new.
    """
    numeric = all(column.levels is None for column in encoding.columns)
    if numeric and not isinstance(X, pd.DataFrame):
        matrix: FloatArray = validate(estimator, X, reset=False, dtype=np.float64, order="C")
        return matrix
    validate(estimator, X, reset=False, skip_check_array=True)
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(np.asarray(X, dtype=object))
    # Names are checked above where there are any; without them columns are told by position.
    frame = X.set_axis([column.name for column in encoding.columns], axis="columns")
    return np.ascontiguousarray(encoding.encode(frame))
