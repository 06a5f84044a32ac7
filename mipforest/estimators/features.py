"""Turn the X that a user gives into features in original units, by the rules that data sets follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import validation

from mipforest.arrays import FloatArray
from mipforest.data.encoding import Column, Encoding, Unseen
from mipforest.data.table import refuse_doubtful_text, refuse_rounding, with_text_names

#: With one sample there is nothing to tell apart.
LEAST_SAMPLES = 2


def learn_features(estimator: Any, X: Any, sample_weight: Any = None) -> tuple[Encoding, FloatArray]:
    """Check training samples and learn what their columns are.

    Columns of numbers are features. In a pandas DataFrame every other column (texts, categories, true/false)
    is one-hot encoded, as :meth:`Dataset.from_frame <mipforest.data.Dataset.from_frame>` does.

    Parameters
    ----------
    estimator
        Gets ``n_features_in_`` and, for a DataFrame with text names, ``feature_names_in_``. Its ``missing`` says
        whether missing values are filled in.
    X
        (n, p) array-like or DataFrame of n >= 2 rows.
    sample_weight
        (n,) weights; samples of weight 0 do not tell what to fill in.

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
        refuse_doubtful_text(frame)
    else:
        matrix = validate(estimator, X, reset=True, dtype=np.float64, ensure_min_samples=LEAST_SAMPLES)
        refuse_rounding(X, matrix, "X")
        names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(matrix.shape[1])])
        if estimator.missing == "error":
            return Encoding.unscaled([Column(str(name)) for name in names]), matrix
        frame = pd.DataFrame(matrix, columns=[str(name) for name in names])
    filled = None
    if estimator.missing == "impute":
        filled = np.ones(len(frame), dtype=bool)
        if sample_weight is not None and np.shape(sample_weight) == filled.shape:
            filled = np.asarray(sample_weight) > 0
    encoding = Encoding.fit(frame, fill_from=filled)
    return encoding, encoding.encode(frame)


def read_features(estimator: Any, encoding: Encoding, X: Any, unseen: Unseen = "error") -> FloatArray:
    """Turn samples into (n, p') features in original units, as the training samples were.

    They are laid out row by row, as the training samples are: another layout rounds scores differently.

    Raises
    ------
    ValueError, TypeError
        If columns are others than in training, a value is missing that nothing fills in, or a level is new.
    """
    numeric = all(column.levels is None and not column.base for column in encoding.columns)
    if numeric and not isinstance(X, pd.DataFrame):
        matrix: FloatArray = validate(estimator, X, reset=False, dtype=np.float64, order="C")
        refuse_rounding(X, matrix, "X")
        if not np.isnan(matrix).any():
            return matrix
        X = pd.DataFrame(matrix)
    else:
        validate(estimator, X, reset=False, skip_check_array=True)
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(np.asarray(X, dtype=object))
    # Names are checked above where there are any; without them columns are told by position.
    frame = X.set_axis([column.name for column in encoding.columns], axis="columns")
    return np.ascontiguousarray(encoding.encode(frame, unseen=unseen))


def validate(estimator: Any, X: Any, *, reset: bool, skip_check_array: bool = False, **checks: Any) -> Any:
    """Check samples, and set or compare ``n_features_in_`` and ``feature_names_in_``.

    scikit-learn 1.6 moved this from a method of estimators to a function; 1.5 is supported too.

    Parameters
    ----------
    estimator
        Who asks.
    X
        (n, p) samples.
    reset
        Whether this is a fit, which sets the attributes.
    skip_check_array
        Check only names and number of columns, and give X as it is.
    checks
        As for :func:`sklearn.utils.check_array`.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn states.
    """
    if hasattr(validation, "validate_data"):
        if not skip_check_array:
            checks["ensure_all_finite"] = "allow-nan" if estimator.missing == "impute" else True
        return validation.validate_data(
            estimator, X, reset=reset, skip_check_array=skip_check_array, **checks
        )
    if skip_check_array:
        return estimator._validate_data(X, reset=reset, cast_to_ndarray=False)
    checks["force_all_finite"] = "allow-nan" if estimator.missing == "impute" else True
    return estimator._validate_data(X, reset=reset, **checks)
