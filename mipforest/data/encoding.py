"""How the columns of a table become features, and how features are scaled; remembered to be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, cast, get_args

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.data.convention import Convention, read_columns
from mipforest.data.dates import dates_as_numbers, is_date
from mipforest.data.lines import row_text
from mipforest.data.table import (
    Axis,
    coded_texts,
    column_names,
    exact_base,
    is_numeric,
    numbers,
    refuse_empty,
    refuse_missing,
    sort_texts,
    text,
    texts,
    with_text_names,
)
from mipforest.errors import DataError, did_you_mean, some_of
from mipforest.meanings import LevelSet, Meaning, MissingEnd

#: ``"minmax"``: to [0, 1]; ``"standard"``: to mean 0, population standard deviation 1; ``"none"``: as given.
Scaling = Literal["minmax", "standard", "none"]


#: Most levels of a column of which each set becomes a feature, missing values counted as a level: 511 features.
MAX_SET_LEVELS = 10


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
        What a missing value counts as, a number or a level; ``None`` refuses missing values unless ``branch``.
    base
        What is subtracted from whole numbers that float64 would round (see
        :func:`~mipforest.data.table.exact_base`): ``time`` becomes the feature ``time-1700000000000000000``.
        0, and the feature has the column's name, for all others.
    sets
        Whether each way to part the levels into two sets becomes a 0/1 feature, ``colour in {red, blue}``.
    branch
        Whether a split decides where missing values go. Every feature is there twice then: once its missing values
        are on the side of small values (of 0), once on that of large ones (of 1). Of sets and of columns of one or two
        levels, missing is a level.
    ends
        Of a column of numbers with ``branch``: what stands for missing values below, the smallest and the largest
        known value, and what stands for missing values above.
    """

    name: str
    levels: tuple[str, ...] | None = None
    base: int = 0
    single: bool = False
    fill: float | str | None = None
    sets: bool = False
    branch: bool = False
    ends: tuple[float, float, float, float] | None = None

    @property
    def plain(self) -> bool:
        """Whether it becomes one feature per number or level, so that sums of features mean something."""
        return not (self.branch or self.sets)

    @property
    def encoded_levels(self) -> tuple[str, ...]:
        """Levels that have a feature of their own, in order; empty for a column of numbers."""
        return () if self.levels is None else self.levels[1:] if self.single else self.levels

    @cached_property
    def meanings(self) -> tuple[Meaning, ...]:
        """What each feature says of the column; ``None`` for numbers without missing values."""
        if self.levels is None:
            if self.ends is None:
                return (None,)
            _, low, high, _ = self.ends
            return MissingEnd(self.shifted, True, low), MissingEnd(self.shifted, False, high)
        return tuple(self._level_sets())

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the features it becomes."""
        return tuple(self._feature(meaning) for meaning in self.meanings)

    @property
    def shifted(self) -> str:
        """Name of a column of numbers less its base."""
        return f"{self.name}{-self.base:+d}" if self.base else self.name

    def _feature(self, meaning: Meaning) -> str:
        """Name the feature of a meaning."""
        if isinstance(meaning, MissingEnd):
            return f"{self.shifted} (missing {'low' if meaning.low else 'high'})"
        if meaning is None:
            return self.shifted
        if len(meaning.levels) == 1:
            return f"{self.name}={meaning.levels[0]}{' or missing' if meaning.missing else ''}"
        return str(meaning.condition(holds=True))

    def _level_sets(self) -> list[LevelSet]:
        """Return the sets of levels that have a feature, small ones first: of equal splits the first is taken."""
        levels = self.levels or ()
        if self.branch and (self.sets or len(levels) <= 2):
            return [
                _part_with_missing(self.name, levels, chosen)
                for size in range(1, len(levels) + 1)
                for chosen in combinations(levels, size)
            ]
        if self.sets:
            sets = [
                chosen
                for size in range(1, len(levels) // 2 + 1)
                for chosen in combinations(levels, size)
                # Of halves, one of two that complement each other.
                if 2 * size < len(levels) or levels[0] not in chosen
            ]
            return [LevelSet(self.name, chosen, self._other) for chosen in sets]
        sets = [(level,) for level in self.encoded_levels]
        if not self.branch:
            return [LevelSet(self.name, chosen, self._other) for chosen in sets]
        found = [LevelSet(self.name, chosen, None, missing) for chosen in sets for missing in (False, True)]
        return [*found, LevelSet(self.name, (), None, True)]

    @property
    def _other(self) -> str | None:
        """The level whose feature is left out, of two."""
        return self.levels[0] if self.levels is not None and len(self.levels) == 2 and self.single else None

    @cached_property
    def table(self) -> FloatArray:
        """(L + 2, k) features of each level, of a missing value, and of a level that is none of these."""
        levels, meanings = self.levels or (), self.meanings
        told = np.zeros((len(levels) + 2, len(meanings)))
        position = {level: k for k, level in enumerate(levels)}
        for j, meaning in enumerate(meanings):
            assert isinstance(meaning, LevelSet)
            told[[position[level] for level in meaning.levels], j] = 1.0
            told[len(levels), j] = float(bool(meaning.missing))
        return told


def _part_with_missing(name: str, levels: tuple[str, ...], chosen: tuple[str, ...]) -> LevelSet:
    """Return the feature that tells some levels from the others and missing values; the smaller set is its 1."""
    rest = tuple(level for level in levels if level not in chosen)
    if not rest:
        return LevelSet(name, (), None, True)
    small, other, missing = (chosen, rest, False) if len(chosen) <= len(rest) else (rest, chosen, True)
    return LevelSet(name, small, other[0] if len(other) == 1 else None, missing)


@dataclass(frozen=True, eq=False, repr=False)
class Encoding:
    """From a table to scaled features, and back to original units.

    ``encode`` returns the features in original units, ``X_raw``; ``to_scaled`` what models see,
    ``X = (X_raw - offset) / scale``. Values outside the range that the scaling was fitted on leave [0, 1]. Only beside
    stand-ins of missing values known ones are brought to the range of training, so that none is taken for missing.

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
    def fit(
        cls,
        frame: Any,
        *,
        fill_from: BoolArray | None = None,
        branch: bool = False,
        categorical: str | Collection[str] = (),
    ) -> Encoding:
        """Learn the columns of a table; the features keep their units.

        Parameters
        ----------
        frame
            pandas DataFrame of n rows, of the feature columns.
        fill_from
            (n,) rows whose values tell what missing ones count as: the lower median of numbers, the most frequent
            level, of several the first. ``None`` refuses missing values.
        branch
            Whether splits decide instead where the missing values of a column go that has some.
        categorical
            Names of columns, of numbers too, whose sets of levels become features; ``"all"`` for all columns of text.

        Raises
        ------
        DataError
            If values are missing, a column holds neither numbers nor texts, names of features coincide,
            whole numbers range over more than float64 tells apart, or a column has more sets of levels than are taken.
        """
        if fill_from is None and not branch:
            refuse_missing(frame)
        refuse_empty(frame)
        named = column_names(categorical, frame.columns)
        columns = []
        for name, column in frame.items():
            present = column.dropna()
            lacks = branch and len(present) < len(column)
            if is_numeric(column) and (named is None or name not in named):
                learned = Column(name, base=exact_base(present))
                if lacks:
                    learned = replace(learned, branch=True, ends=_ends(numbers(present, learned.base)))
            else:
                levels = sort_texts(coded_texts(present)[0])
                sets = len(levels) > 2 and (named is None or name in named)
                learned = Column(name, levels, single=len(levels) == 2, sets=sets, branch=lacks)
            if fill_from is not None:
                learned = replace(learned, fill=_fill(learned, column[fill_from].dropna()))
            columns.append(learned)
        _refuse_many_sets(columns)
        encoding = cls.unscaled(columns)
        Axis(encoding.features, "feature")
        return encoding

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the p features."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def levels(self) -> tuple[Meaning, ...]:
        """What each feature says of a column, ``None`` for numbers; ``()`` where all are numbers."""
        if all(column.levels is None and column.plain for column in self.columns):
            return ()
        return tuple(meaning for column in self.columns for meaning in column.meanings)

    def encode(
        self, frame: Any, *, unseen: Unseen = "error", needed: Collection[int] | None = None
    ) -> FloatArray:
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
        needed
            Numbers of the features that are read: columns with none of these may be absent, and their features are 0;
            ``None`` for all.

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
        columns = self.columns_of(needed)
        read = {column.name for column in columns}
        absent = [column.name for column in columns if column.name not in frame.columns]
        if absent:
            hint = did_you_mean(absent[0], frame.columns)
            raise DataError(f"the table lacks {len(absent)} feature column(s): {some_of(absent)}{hint}")
        _refuse_gaps(frame, columns)
        parts = [
            _encode_column(column, frame[column.name], unseen)
            if column.name in read
            else np.zeros((len(frame), len(column.features)))
            for column in self.columns
        ]
        return np.hstack(parts) if parts else np.zeros((len(frame), 0))

    def as_written(
        self,
        frame: Any,
        convention: Convention,
        others: Collection[str | None] = (),
        needed: Collection[int] | None = None,
    ) -> Any:
        """Return a table whose columns are as those that this encoding was learned of, before they are encoded.

        Parameters
        ----------
        frame
            pandas DataFrame with one text each as names of columns.
        convention
            How the values of the training samples' table were written, as found.
        others
            Names of columns that are no features, such as the target; they stay as they are.
        needed
            As for :meth:`encode`: columns with none of these may hold anything.

        Raises
        ------
        DataError
            If a value is not a number where numbers are due, or no date of the calendar; names the first such row.
        """
        read = {column.name: column for column in self.columns_of(needed)}
        numbers = [name for name, column in read.items() if column.levels is None]
        dated = {name.rpartition(" (")[0] for name in numbers}
        texts = [name for name in frame.columns if name not in numbers]
        frame = read_columns(frame, convention, texts=texts, known=numbers).frame
        stays = [name for name in frame.columns if name in others or name in read or name not in dated]
        dates = dates_as_numbers(frame, convention.dates, stays, convention.date_order)
        for name in numbers:
            written = name.rpartition(" (")[0]
            if (
                convention.dates is not None
                and name not in dates
                and written in dates
                and written not in others
            ):
                raise _no_date(dates[written], dates)
        return dates

    def columns_of(self, needed: Collection[int] | None) -> tuple[Column, ...]:
        """Return the columns that have one of some features, by their numbers; all for ``None``."""
        if needed is None:
            return self.columns
        chosen, first, wanted = [], 0, frozenset(needed)
        for column in self.columns:
            after = first + len(column.features)
            if not wanted.isdisjoint(range(first, after)):
                chosen.append(column)
            first = after
        return tuple(chosen)

    def without_unread_gaps(self, frame: Any, needed: Collection[int]) -> Any:
        """Return a table whose missing values are filled with any value in columns that predictions do not read.

        Parameters
        ----------
        frame
            pandas DataFrame with the columns of this encoding.
        needed
            Numbers of the features that are read.
        """
        read = {column.name for column in self.columns_of(needed)}
        for column in self.columns:
            if column.name not in read and column.fill is None and not column.branch:
                values = frame[column.name]
                if values.isna().any():
                    some = column.base if column.levels is None else column.levels[0]
                    frame = frame.assign(**{column.name: values.astype(object).where(values.notna(), some)})
        return frame

    def missing_notes(self, frame: Any, needed: Collection[int] | None = None) -> list[str]:
        """Return, for each of n rows, which values are missing and what they count as, ``""`` where none is.

        ``"age missing, counted as 41; city missing"``: ``city`` goes to the sides that splits chose.

        Parameters
        ----------
        frame, needed
            As for :meth:`encode`; columns that are not read are not named.
        """
        frame, columns = with_text_names(frame), self.columns_of(needed)
        says = [
            f"{column.name} missing{'' if column.fill is None else f', counted as {text(column.fill)}'}"
            for column in columns
        ]
        gaps = frame[[column.name for column in columns]].isna().to_numpy()
        return ["; ".join(note for note, gap in zip(says, row, strict=True) if gap) for row in gaps.tolist()]

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
                | ({"sets": True} if column.sets else {})
                | ({"branch": True} if column.branch else {})
                | ({} if column.ends is None else {"ends": list(column.ends)})
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


def _refuse_gaps(frame: Any, columns: Sequence[Column]) -> None:
    """Refuse missing values of columns that had none when they were learned, as nothing says what they count as."""
    names = [column.name for column in columns if column.fill is None and not column.branch]
    counts = frame[names].isna().sum()
    lacking = [name for name in names if counts[name]]
    if not lacking:
        return
    row = frame.index[int(frame[lacking[0]].isna().to_numpy().argmax())]
    others = [column.name for column in columns if column.branch or column.fill is not None]
    why = (
        "the training data lack no value there, so that no split says where missing ones go"
        if any(column.branch for column in columns)
        else "nothing that was learned says what missing values count as"
    )
    ways = "fill them in, or leave the rows out"
    raise DataError(
        f"missing values in {len(lacking)} column(s) of {len(frame)} rows, the first in {row_text(frame, row)}: "
        f"{some_of([f'{name!r} ({counts[name]})' for name in lacking])}; {why}",
        hint=ways if others else f"{ways}, or train with missing='impute'",
        option=ways if others else f"{ways}, or train with --missing impute",
    )


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
    sets, branch = (entry.get(name, False) is True for name in ("sets", "branch"))
    if sets and (levels is None or len(levels) > MAX_SET_LEVELS):
        raise DataError(f"not a saved encoding: column {name!r:.40} has no sets of levels")
    ends = _saved_ends(name, entry.get("ends")) if branch and levels is None else None
    return Column(name, None if levels is None else tuple(levels), base, single, fill, sets, branch, ends)


def _saved_ends(name: str, given: Any) -> tuple[float, float, float, float]:
    numeric = isinstance(given, list) and len(given) == 4
    if not numeric or any(isinstance(end, bool) or not isinstance(end, int | float) for end in given):
        raise DataError(f"not a saved encoding: column {name!r:.40} has no four ends")
    below, low, high, above = map(float, given)
    if not (np.isfinite([below, above]).all() and below < low <= high < above):
        raise DataError(f"not a saved encoding: the ends of column {name!r:.40} are not in order")
    return below, low, high, above


def _refuse_many_sets(columns: Sequence[Column]) -> None:
    """Refuse columns with more sets of levels than are taken."""
    counts = {column.name: len(column.levels or ()) + column.branch for column in columns if column.sets}
    many = [f"{name!r} ({count})" for name, count in counts.items() if count > MAX_SET_LEVELS]
    if many:
        raise DataError(
            f"{some_of(many)}: of a categorical column at most {MAX_SET_LEVELS} levels are taken, missing values "
            "counted as one, as each of their sets becomes a feature",
            hint="leave it out of categorical=, so that each level becomes a feature (one-hot), or merge levels",
            option="leave it out of --categorical, so that each level becomes a feature (one-hot), or merge levels",
        )


def _ends(known: FloatArray) -> tuple[float, float, float, float]:
    """Return what stands for missing values below, the smallest and largest known value, and the same above.

    The distance is the mean one between neighbouring values, so that scaling keeps their resolution.
    """
    values = np.unique(known)
    low, high = float(values[0]), float(values[-1])
    step = (high - low) / (len(values) - 1) if len(values) > 1 else max(1.0, abs(low) * np.finfo(float).eps)
    # Of large numbers a step may round to none.
    below, above = (
        min(low - step, float(np.nextafter(low, -np.inf))),
        max(high + step, float(np.nextafter(high, np.inf))),
    )
    return below, low, high, above


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
    missing = values.isna().to_numpy()
    if column.levels is None:
        if column.ends is None:
            return numbers(values, column.base)[:, None]
        below, low, high, above = column.ends
        known = np.full(len(values), low)
        known[~missing] = numbers(values[~missing], column.base)
        # A known value beyond those of the training samples stays on the side of known values.
        return np.column_stack(
            [
                np.where(missing, below, np.maximum(known, low)),
                np.where(missing, above, np.minimum(known, high)),
            ]
        )
    position = {level: k for k, level in enumerate(column.levels)}
    (labels, codes), unknown = coded_texts(values), len(column.levels) + 1
    found = np.array([position.get(label, unknown) for label in labels], dtype=np.int64)[codes]
    if column.branch:
        found[missing] = len(column.levels)
    if (found == unknown).any() and unseen == "error":
        row = int((found == unknown).argmax())
        raise UnseenLevelError(
            f"column {column.name!r} has the level {labels[codes[row]]!r} in {row_text(values, values.index[row])}, "
            f"which the training data do not have (they have {some_of(column.levels)})",
            hint="correct it, leave out the row, or take it for none of these with unseen='none', of an "
            "estimator handle_unknown='ignore'",
            option="correct it, leave out the row, or take it for none of these with --unseen none",
        )
    features: FloatArray = column.table[found]
    return features


def _no_date(column: Any, frame: Any) -> DataError:
    """Return the error that a column of dates has a value that is none."""
    texts = column.map(str, na_action="ignore")
    wrong = column.isna() | ~is_date(texts.fillna(""))
    at = column.index[int(wrong.to_numpy().argmax())]
    value = "no value" if column.isna()[at] else repr(column[at])
    return DataError(
        f"column {column.name!r} must hold dates or times, but {row_text(frame, at)} holds {value}; correct the value"
    )
