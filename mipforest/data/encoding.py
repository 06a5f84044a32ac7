"""How the columns of a table become features, and how features are scaled; remembered to be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, cast, get_args

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.data.table import (
    Axis,
    exact_base,
    is_numeric,
    numbers,
    refuse_missing,
    row_text,
    sort_texts,
    texts,
    with_text_names,
)
from mipforest.errors import DataError, did_you_mean, some_of

#: ``"minmax"``: to [0, 1]; ``"standard"``: to mean 0, population standard deviation 1; ``"none"``: as given.
Scaling = Literal["minmax", "standard", "none"]


#: What happens to a level that the training data do not have; see :meth:`Encoding.encode`.
Unseen = Literal["error", "none"]


class UnseenLevelError(DataError):
    """A level that the training data do not have."""


@dataclass(frozen=True)
class Column:
    """One input column.

    Attributes
    ----------
    name
        Its name in the table.
    levels
        ``None`` for a column of numbers, which becomes one feature of the same name. For texts,
        categories and true/false, all values as text, sorted (numerically if all are numbers):
        level ``red`` of ``colour`` becomes the 0/1 feature ``colour=red``.
    single
        Whether a column of two levels becomes one feature, that of the second level: the first is its 0.
    fill
        What a missing value counts as, a number or a level; ``None`` refuses missing values.
    base
        What is subtracted from whole numbers that float64 would round (see
        :func:`~mipforest.data.table.exact_base`): ``time`` becomes the feature ``time-1700000000000000000``.
        0, and the feature has the column's name, for all others.
    """

    name: str
    levels: tuple[str, ...] | None = None
    base: int = 0
    single: bool = False
    fill: float | str | None = None

    @property
    def encoded_levels(self) -> tuple[str, ...]:
        """Levels that have a feature, in order; empty for a column of numbers."""
        return () if self.levels is None else self.levels[1:] if self.single else self.levels

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features it becomes."""
        if self.levels is not None:
            return tuple(f"{self.name}={level}" for level in self.encoded_levels)
        return (f"{self.name}{-self.base:+d}" if self.base else self.name,)


@dataclass(frozen=True, eq=False, repr=False)
class Encoding:
    """From a table to scaled features, and back to original units.

    ``encode`` returns the features in original units, ``X_raw``; ``to_scaled`` what models see,
    ``X = (X_raw - offset) / scale``. Nothing is clipped: values outside the range that the scaling was
    fitted on leave [0, 1].

    Attributes
    ----------
    columns
        The input columns, in order.
    offset, scale
        (p,) the affine scaling of each feature; ``scale`` is positive.
    scaling
        The rule they were fitted by.
    """

    columns: tuple[Column, ...]
    offset: FloatArray
    scale: FloatArray
    scaling: Scaling = "none"

    def __repr__(self) -> str:
        return f"Encoding({len(self.columns)} columns, {len(self.offset)} features, scaling {self.scaling!r})"

    @classmethod
    def unscaled(cls, columns: Sequence[Column]) -> Encoding:
        """Make an encoding of these columns whose features keep their units."""
        p = sum(len(column.features) for column in columns)
        return cls(tuple(columns), np.zeros(p), np.ones(p))

    @classmethod
    def fit(cls, frame: Any, *, fill_from: BoolArray | None = None) -> Encoding:
        """Learn the columns of a table; the features keep their units.

        Parameters
        ----------
        frame
            pandas DataFrame of n rows, of the feature columns.
        fill_from
            (n,) rows whose values tell what missing ones count as: the lower median of numbers, the most frequent
            level, of several the first. ``None`` refuses missing values.

        Raises
        ------
        DataError
            If values are missing, a column holds neither numbers nor texts, names of features coincide, or
            whole numbers range over more than float64 tells apart.
        """
        if fill_from is None:
            refuse_missing(frame)
        columns = []
        for name, column in frame.items():
            present = column.dropna()
            if is_numeric(column):
                learned = Column(name, base=exact_base(present))
            else:
                levels = sort_texts(set(texts(present)))
                learned = Column(name, levels, single=len(levels) == 2)
            if fill_from is not None:
                learned = replace(learned, fill=_fill(learned, column[fill_from].dropna()))
            columns.append(learned)
        encoding = cls.unscaled(columns)
        Axis(encoding.features, "feature")
        return encoding

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the p features."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def levels(self) -> tuple[tuple[str, str] | None, ...]:
        """Of each feature the column and value that it tells, ``None`` for numbers; ``()`` where all are numbers."""
        if all(column.levels is None for column in self.columns):
            return ()
        return tuple(
            level
            for column in self.columns
            for level in (
                [(column.name, value) for value in column.encoded_levels]
                if column.levels is not None
                else [None]
            )
        )

    def encode(self, frame: Any, *, unseen: Unseen = "error") -> FloatArray:
        """Turn a table with the columns of this encoding into features in original units.

        Levels are compared as text, so a column read as numbers in one file and as text in another still
        matches. Columns the encoding does not know are ignored.

        Parameters
        ----------
        frame
            pandas DataFrame of n rows.
        unseen
            A level that the training data do not have: ``"error"`` refuses it, ``"none"`` takes it for none of theirs,
            so that all features of its column are 0 (the single one of a column of two levels too).

        Returns
        -------
        FloatArray
            (n, p) features, ``X_raw``.

        Raises
        ------
        DataError
            If a column or a value is missing, a value is not a finite number where numbers are due, or
            a level was not seen when the encoding was learned.
        """
        frame = with_text_names(frame)
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            hint = did_you_mean(absent[0], frame.columns)
            raise DataError(f"the table lacks {len(absent)} feature column(s): {some_of(absent)}{hint}")
        frame = frame[[column.name for column in self.columns]]
        refuse_missing(frame[[column.name for column in self.columns if column.fill is None]])
        parts = [_encode_column(column, frame[column.name], unseen) for column in self.columns]
        return np.hstack(parts) if parts else np.zeros((len(frame), 0))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of columns that are shifted."""
        return tuple(
            f"column {column.name!r} holds whole numbers beyond 2^53, which float64 would round: the feature "
            f"{column.features[0]!r} is their exact difference from the smallest"
            for column in self.columns
            if column.base
        )

    def fit_scaling(self, scaling: Scaling, X_raw: FloatArray, weights: FloatArray | None = None) -> Encoding:
        """Fit the scaling of every feature.

        A constant feature gets its value as offset and scale 1, so that it is 0 after scaling
        (except with ``"none"``, which changes nothing).

        Parameters
        ----------
        scaling
            ``"minmax"``, ``"standard"`` or ``"none"``.
        X_raw
            (n, p) features in original units, n >= 1.
        weights
            (n,) weights of the samples in mean and standard deviation, above 0; equal unless given.

        Raises
        ------
        DataError
            If the rule is unknown or the range of a feature exceeds the floating-point numbers.
        """
        if scaling not in get_args(Scaling):
            known = ", ".join(map(repr, get_args(Scaling)))
            raise DataError(
                f"unknown scaling {scaling!r}; there are {known}{did_you_mean(scaling, get_args(Scaling))}"
            )
        p = X_raw.shape[1]
        if scaling == "none":
            return replace(self, offset=np.zeros(p), scale=np.ones(p), scaling=scaling)
        low = X_raw.min(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            spread = X_raw.max(axis=0) - low
            offset, scale = (low, spread) if scaling == "minmax" else _mean_and_deviation(X_raw, weights)
        constant = (spread == 0) | (scale == 0)
        offset, scale = np.where(constant, low, offset), np.where(constant, 1.0, scale)
        too_wide = np.flatnonzero(~(np.isfinite(offset) & np.isfinite(scale)))
        if len(too_wide):
            names = [self.features[j] for j in too_wide]
            raise DataError(
                f"the values of {some_of(names)} are too large to scale; divide them by a constant first"
            )
        return replace(self, offset=offset, scale=scale, scaling=scaling)

    def to_scaled(self, X_raw: FloatArray) -> FloatArray:
        """Scale features: (n, p) in original units to (n, p) as models see them."""
        return (X_raw - self.offset) / self.scale

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as a JSON-able dictionary; :meth:`from_dict` restores it exactly."""
        return {
            "columns": [
                {"name": column.name, "levels": None if column.levels is None else list(column.levels)}
                | ({"base": column.base} if column.base else {})
                | ({"single": True} if column.single else {})
                | ({} if column.fill is None else {"fill": column.fill})
                for column in self.columns
            ],
            "scaling": self.scaling,
            "offset": self.offset.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Encoding:
        """Restore an encoding from :meth:`to_dict`'s dictionary.

        Raises
        ------
        DataError
            If an entry is absent or of another type, the lengths do not fit, or a scale is not positive.
        """
        try:
            columns = tuple(map(_saved_column, entries["columns"]))
            offset, scale = (
                np.array(entries["offset"], dtype=np.float64),
                np.array(entries["scale"], dtype=np.float64),
            )
            encoding = cls(columns, offset, scale, cast(Scaling, entries["scaling"]))
        except KeyError as absent:
            raise DataError(f"not a saved encoding: the entry {absent} is absent") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"not a saved encoding: {error}") from error
        p = len(encoding.features)
        if offset.shape != (p,) or scale.shape != (p,):
            raise DataError(
                f"not a saved encoding: {p} features, but {offset.size} offsets and {scale.size} scales"
            )
        if not (np.isfinite(offset).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise DataError("not a saved encoding: an offset or scale is not finite, or a scale not positive")
        return encoding


def _mean_and_deviation(X: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return mean and population standard deviation of every column, (p,) each."""
    if weights is None or (weights == weights[0]).all():
        return X.mean(axis=0), X.std(axis=0)
    mean: FloatArray = np.average(X, axis=0, weights=weights)
    return mean, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))


def _saved_column(entry: Any) -> Column:
    name, levels, base = entry["name"], entry["levels"], entry.get("base", 0)
    if not isinstance(name, str) or isinstance(base, bool) or not isinstance(base, int):
        raise DataError(f"not a saved encoding: a column has the name {name!r:.40} and the base {base!r:.40}")
    if levels is not None and not (
        isinstance(levels, list) and all(isinstance(text, str) for text in levels)
    ):
        raise DataError(f"not a saved encoding: the levels of column {name!r:.40} are no list of texts")
    single = entry.get("single", False) is True and levels is not None and len(levels) == 2
    fill = entry.get("fill")
    known = (
        fill in levels if levels is not None else isinstance(fill, int | float) and not isinstance(fill, bool)
    )
    if fill is not None and not known:
        raise DataError(f"not a saved encoding: column {name!r:.40} cannot be filled with {fill!r:.40}")
    return Column(name, None if levels is None else tuple(levels), base, single, fill)


def _fill(column: Column, present: Any) -> float | str:
    """Return what a missing value of a column counts as, from the values that are there."""
    if not len(present):
        raise DataError(
            f"column {column.name!r} has no value in the training samples, nothing tells what to fill in: leave it out"
        )
    if column.levels is None:
        ordered = sorted(present)
        middle = ordered[(len(ordered) - 1) // 2]
        return int(middle) if isinstance(middle, Integral) else float(middle)
    counts = Counter(texts(present))
    return max(column.levels, key=lambda level: counts[level])


def _encode_column(column: Column, values: Any, unseen: Unseen) -> FloatArray:
    """Return the (n, k) features of one column."""
    if column.fill is not None and values.isna().any():
        values = values.astype(object).where(values.notna(), column.fill)
    if column.levels is None:
        return numbers(values, column.base)[:, None]
    position = {level: k for k, level in enumerate(column.levels)}
    labels = texts(values)
    found = np.array([position.get(label, -1) for label in labels], dtype=np.int64)
    if (found < 0).any() and unseen == "error":
        row = int((found < 0).argmax())
        raise UnseenLevelError(
            f"column {column.name!r} has the level {labels[row]!r} in {row_text(values, values.index[row])}, which the "
            f"training data do not have (they have {some_of(column.levels)})",
            hint="correct it, leave out the row, or take it for none of these with unseen='none', of an "
            "estimator handle_unknown='ignore'",
            option="correct it, leave out the row, or take it for none of these with --unseen none",
        )
    one_hot: FloatArray = (found[:, None] == np.arange(len(column.levels))).astype(np.float64)
    return one_hot[:, 1:] if column.single else one_hot
