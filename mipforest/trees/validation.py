"""Checks of what callers hand to a tree: samples, targets, names, the leaves of a logistic tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import close_names, suggestion


def as_samples(X: Any, features: tuple[str, ...], n_features: int) -> FloatArray:
    """Return the samples as an (n, p) float array.

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
        near = close_names(missing[0], columns)
        hint = f"; is {missing[0]!r} the column {near[0]!r}?" if near else ""
        raise ValueError(
            f"X lacks {len(missing)} of the tree's {len(features)} features: {', '.join(missing)}{hint}"
        )
    doubled = [feature for feature in features if columns.count(feature) > 1]
    if doubled:
        raise ValueError(
            f"X has more than one column named {doubled[0]!r}; keep the one the tree was fitted on"
        )
    return [columns.index(feature) for feature in features]


def class_numbers(classes: tuple[str, ...], y: npt.ArrayLike, n_samples: int) -> IntArray:
    """Return the (n,) class number of each sample.

    Numbers are taken as class numbers, 0 to K - 1; strings as names in ``classes``.

    Raises
    ------
    ValueError
        If y does not have shape (n,), or holds an unknown number or name.
    """
    labels = _as_targets(y, n_samples)
    if labels.dtype.kind in "OUST" and all(isinstance(label, str) for label in labels):
        position = {name: k for k, name in enumerate(classes)}
        for label in labels:
            if label not in position:
                hint = suggestion(label, classes)
                raise ValueError(
                    f"y holds {str(label)!r}, which is no class of the tree ({', '.join(classes)}){hint}"
                )
        return np.array([position[label] for label in labels], dtype=np.int64)
    values = target_values(labels, n_samples)
    wrong = (values != np.floor(values)) | (values < 0) | (values >= len(classes))
    if wrong.any():
        raise ValueError(
            f"y holds {values[wrong][0]:g}, but numbers in y mean classes 0 to {len(classes) - 1}; "
            f"give class names as strings ({', '.join(classes)})"
        )
    return values.astype(np.int64)


def target_values(y: npt.ArrayLike, n_samples: int) -> FloatArray:
    """Return (n,) real targets; ValueError if one is not a finite number."""
    targets = _as_targets(y, n_samples)
    try:
        values = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers: {error}") from error
    if not np.isfinite(values).all():
        raise ValueError(f"y must be finite, but its entry {int(np.argmin(np.isfinite(values)))} is not")
    return values


def _as_targets(y: npt.ArrayLike, n_samples: int) -> npt.NDArray[Any]:
    targets = np.asarray(y)
    if targets.shape != (n_samples,):
        raise ValueError(
            f"y has shape {targets.shape}, but X has {n_samples} samples; y must have shape ({n_samples},)"
        )
    return targets


def checked_scaling(
    offset: npt.ArrayLike | None, scale: npt.ArrayLike | None, names: tuple[str, ...]
) -> dict[str, npt.ArrayLike]:
    """Return offset and scale by name; a ValueError if one is missing, or the scale is not above 0 throughout."""
    if offset is None or scale is None:
        raise ValueError("offset and scale come together: give both, or neither")
    divisors = np.asarray(scale, dtype=np.float64).ravel()
    if (divisors <= 0).any():
        j = int(np.argmax(divisors <= 0))
        name = repr(names[j]) if j < len(names) else str(j)
        raise ValueError(
            f"scale must be above 0, but feature {name} has {divisors[j]}; use 1 for a constant feature"
        )
    return {"offset": offset, "scale": scale}


def check_class_numbers(
    classes: tuple[str, ...], leaf_value: FloatArray | IntArray, leaf_w: FloatArray | None
) -> None:
    """Refuse leaves of a classifier that predict something else than its classes, with a ValueError."""
    if leaf_w is not None:
        raise ValueError(
            f"leaf_w makes leaves linear, which predict numbers, but the tree has the classes "
            f"{', '.join(classes)}; leave leaf_w out, or leave classes empty for a regression tree"
        )
    wrong = (leaf_value != np.floor(leaf_value)) | (leaf_value < 0) | (leaf_value >= len(classes))
    if wrong.any():
        raise ValueError(
            f"leaf_value must hold class numbers, 0 to {len(classes) - 1} for the classes "
            f"{', '.join(classes)}, but holds {leaf_value[wrong][0]:g}; leave classes empty for a regression tree"
        )


def check_logistic(classes: tuple[str, ...], leaf_value: IntArray | FloatArray) -> None:
    """Refuse a logistic tree whose leaves do not follow the sign of the scores.

    Parameters
    ----------
    classes
        Names of the classes.
    leaf_value
        (|L|,) class number of each leaf, left to right.

    Raises
    ------
    ValueError
        If there are not two classes, or a left leaf does not predict class 0, or a right one not class 1.
    """
    if len(classes) != 2:
        kind = f"the {len(classes)} classes {', '.join(classes)}" if classes else "no classes"
        raise ValueError(
            f"a logistic tree tells two classes apart, but this one has {kind}; leave logistic out"
        )
    wrong = leaf_value != np.arange(len(leaf_value)) % 2
    if wrong.any():
        position = int(np.argmax(wrong))
        side = "right" if position % 2 else "left"
        raise ValueError(
            f"in a logistic tree every left leaf predicts class 0 ({classes[0]}) and every right one class 1 "
            f"({classes[1]}), but leaf_value[{position}], a {side} leaf, is {int(leaf_value[position])}; turn "
            f"the signs of the weights and the intercept above it, or leave logistic out"
        )


def check_names(
    features: tuple[str, ...],
    classes: tuple[str, ...],
    levels: tuple[tuple[str, str] | None, ...],
    w: FloatArray,
) -> None:
    """Refuse names that repeat, and names or levels that are not one for each column of the weights (ValueError)."""
    if levels and len(levels) != w.shape[1]:
        raise ValueError(f"{len(levels)} levels for w of shape {w.shape}; give {w.shape[1]} or none")
    if features and len(features) != w.shape[1]:
        raise ValueError(
            f"{len(features)} feature names for w of shape {w.shape}; give {w.shape[1]} names or none"
        )
    for kind, names in (("feature", features), ("class", classes)):
        repeated = [name for position, name in enumerate(names) if name in names[:position]]
        if repeated:
            raise ValueError(f"{kind} names must differ, but {repeated[0]!r} comes more than once")
