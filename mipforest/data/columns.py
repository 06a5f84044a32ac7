"""Which features a name stands for: all of a column of the table, or one by its own name.

A column of numbers is one feature, or two where splits decide where its missing values go. A column of levels is a
feature for each level, or for each way to part its levels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Column
from mipforest.errors import DataError, did_you_mean, some_of


def features_of_columns(data: Dataset) -> list[IntArray]:
    """Return the numbers of the features of each column of the table."""
    sizes = [len(column.features) for column in data.encoding.columns]
    return np.split(np.arange(data.p), np.cumsum(sizes)[:-1])


def column_of_features(data: Dataset) -> IntArray:
    """Return the (p,) number of the column of each feature."""
    sizes = [len(column.features) for column in data.encoding.columns]
    return np.repeat(np.arange(len(sizes)), sizes)


def features_named(data: Dataset, name: str) -> IntArray:
    """Return the numbers of the features that a name stands for: those of a column, or a feature of this name.

    Raises
    ------
    DataError
        If there is neither.
    """
    columns = [column.name for column in data.encoding.columns]
    if name in columns:
        return features_of_columns(data)[columns.index(name)]
    labels = list(data.features.labels)
    if name not in labels:
        raise DataError(
            f"{data.name} has no feature {name!r}{did_you_mean(name, [*columns, *labels])}; it has {some_of(columns)}"
        )
    return np.array([labels.index(name)])


def base_of(data: Dataset, name: str) -> int:
    """Return what a column of dates or the like is counted from: its values are those of its features, and this."""
    return next((column.base for column in data.encoding.columns if column.name == name), 0)


def name_of(data: Dataset, features: IntArray) -> str:
    """Return the name of a feature, or of the column of several."""
    if len(features) == 1:
        return data.features.labels[int(features[0])]
    return data.encoding.columns[int(column_of_features(data)[features[0]])].name


def counted_as_one(data: Dataset, name: str) -> IntArray:
    """Return the features that a name counts once: with a feature those that differ in missing values alone."""
    features = features_named(data, name)
    if len(features) > 1:
        return features
    column, own = _column(data, features)
    if column.levels is None:
        return own
    parts = _parts(column)
    chosen = parts[:, features[0] - own[0]]
    same = (parts == chosen[:, None]).all(axis=0) | (parts != chosen[:, None]).all(axis=0)
    return own[same] if 0 < chosen.sum() < len(chosen) else features


def directions(data: Dataset, name: str) -> Iterator[tuple[int, bool]]:
    """Yield features, and whether each rises or falls (for some values: both) as what a name stands for rises.

    A column of numbers rises as its values do, one of two levels from the first to the second, and a feature of levels
    from a level that it is 0 for to one that it is 1 for: whichever features these values have. Missing values are
    neither greater nor smaller than others, but for a feature that tells them alone.

    Raises
    ------
    DataError
        If the name is unknown, or its column has several levels, which have no order.
    """
    features = features_named(data, name)
    column, own = _column(data, features)
    if column.levels is None:
        yield from ((int(j), True) for j in own)
        return
    parts = _parts(column)
    if len(column.levels) == 2 and name == column.name:
        high: BoolArray = np.array([False, True])
    elif len(features) == 1:
        at = int(features[0] - own[0])
        if parts[:, at].all() or not parts[:, at].any():  # it tells missing values alone
            parts = _parts(column, missing=True)
        high = parts[:, at]
    else:
        raise DataError(
            f"the levels of {name} have no order ({some_of(column.levels)}); name the feature of a level or of a set "
            f"of levels, such as {column.features[0]!r}"
        )
    for j, part in zip(own.tolist(), parts.T, strict=True):
        if (~part[~high]).any() and part[high].any():
            yield j, True
        if part[~high].any() and (~part[high]).any():
            yield j, False


def _column(data: Dataset, features: IntArray) -> tuple[Column, IntArray]:
    """Return the column of some features, and all of its features."""
    number = int(column_of_features(data)[features[0]])
    return data.encoding.columns[number], features_of_columns(data)[number]


def _parts(column: Column, *, missing: bool = False) -> BoolArray:
    """Return (L, k) which levels, and a missing value, each feature of a column is 1 for."""
    parts: BoolArray = column.table[: len(column.levels or ()) + missing] > 0
    return parts


def steps(data: Dataset, name: str) -> tuple[IntArray, list[FloatArray]]:
    """Return the features of the column of a name, and their values in the data in groups that rise one after another.

    Each group is a (k, features) array of values that are neither greater nor smaller than each other, as
    :func:`directions` says: of a column of numbers one row for each known value, and of levels those that are smaller
    and those that are larger.
    """
    features = features_named(data, name)
    column, own = _column(data, features)
    if column.levels is None:
        values = np.unique(data.X_raw[:, own], axis=0)
        known = values[(values == values[:, :1]).all(axis=1)]  # those of missing values differ
        return own, list(known[:, None, :])
    table = column.table[: len(column.levels) + 1]
    if len(column.levels) == 2 and name == column.name:
        rows, high = table[:2], np.array([False, True])
    else:
        at = int(features[0] - own[0])
        rows = table[: len(column.levels)]
        if rows[:, at].all() or not rows[:, at].any():
            rows = table
        high = rows[:, at] > 0
    return own, [np.asarray(rows[side], dtype=np.float64) for side in (~high, high) if side.any()]
