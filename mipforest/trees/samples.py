"""Samples as a float array, from whatever table the caller holds."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray


def as_samples(X: Any, features: tuple[str, ...], n_features: int) -> FloatArray:
    """Give the samples as an (n, p) float array.

    Parameters
    ----------
    X
        (n, p) array-like, or a pandas DataFrame. The columns of a DataFrame are matched to ``features`` by
        name, in any order, and others are ignored; without names, position decides.
    features
        Feature names, or ``()``.
    n_features
        p.

    Raises
    ------
    ValueError
        If a feature is missing or doubled, the width is not p, or an entry is not a finite number.
    """
    if features and hasattr(X, "columns"):
        X = X.iloc[:, _positions([str(column) for column in X.columns], features)]
    try:
        samples = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must be a table of numbers: {error}; encode categorical features first"
        ) from error
    if samples.ndim != 2:
        raise ValueError(
            f"X must have shape (n, {n_features}), got {samples.shape}; pass a single sample x as x[None, :]"
        )
    if samples.shape[1] != n_features:
        raise ValueError(
            f"X has {samples.shape[1]} features (shape {samples.shape}), the tree has {n_features}"
        )
    if not np.isfinite(samples).all():
        row, column = np.argwhere(~np.isfinite(samples))[0]
        name = repr(features[column]) if features else str(column)
        raise ValueError(
            f"X holds {samples[row, column]} in row {row}, feature {name}; a split needs a number: "
            f"impute it or drop the row"
        )
    return samples


def _positions(columns: list[str], features: tuple[str, ...]) -> list[int]:
    missing = [feature for feature in features if feature not in columns]
    if missing:
        close = get_close_matches(missing[0], columns, n=1)
        hint = f"; is {missing[0]!r} the column {close[0]!r}?" if close else ""
        raise ValueError(
            f"X lacks {len(missing)} of the tree's {len(features)} features: {', '.join(missing)}{hint}"
        )
    doubled = [feature for feature in features if columns.count(feature) > 1]
    if doubled:
        raise ValueError(
            f"X has more than one column named {doubled[0]!r}; keep the one the tree was fitted on"
        )
    return [columns.index(feature) for feature in features]
