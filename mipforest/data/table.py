"""From a table (pandas DataFrame) or arrays to checked feature columns and a target column."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Protocol, get_args, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import DataError, did_you_mean, some_of

#: A class label as the user wrote it.
Label = str | int | float | bool

#: Up to here float64 holds every whole number; beyond, neighbours are rounded to the same value.
EXACT = 1 << 53

#: Digits of a long number that a message shows.
_SHOWN_DIGITS = 30

_NUMBER_KINDS = {"integer", "floating", "mixed-integer-float", "decimal"}


def is_numeric(column: Any) -> bool:
    """Return whether a column holds numbers (true) or levels: texts, categories, true/false (false).

    A categorical column holds levels even if its categories are numbers.

    Parameters
    ----------
    column
        A pandas Series.

    Raises
    ------
    DataError
        If it holds something else: dates, complex numbers, lists, ...
    """
    import pandas as pd  # late, as in all of the package: it takes longer than most commands

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return False
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return True
    if not pd.api.types.is_object_dtype(dtype):
        if pd.api.types.is_string_dtype(dtype):
            return False
        raise DataError(f"column {column.name!r} holds {dtype} values; turn them into numbers or text first")
    present = column.dropna()
    if len(present) and pd.api.types.infer_dtype(present) in _NUMBER_KINDS:
        return True
    for row, value in present.items():
        if not isinstance(value, str | bool | np.bool_ | Real):
            kind = type(value).__name__
            raise DataError(
                f"column {column.name!r} holds a {kind} in {row_text(column, row)}; turn it into numbers or text first"
            )
    return False


class Lines(Protocol):
    """Tells the line of a file that holds a row of the table read from it."""

    def line(self, row: int) -> int | None:
        """Return the line, counted from 1 as editors do, of a data row counted from 0; ``None`` if it is not known."""


#: Key of the attributes (``attrs``) of a pandas table under which its :class:`Lines` stand.
LINES = "lines"


def row_text(table: Any, label: object) -> str:
    """Name a row of a table or column in a message: by its line where a file is known, else by its label."""
    lines: Lines | None = table.attrs.get(LINES)
    line = lines.line(int(label)) if lines is not None and isinstance(label, int | np.integer) else None
    return f"row {label}" if line is None else f"line {line}"


def refuse_missing(frame: Any) -> None:
    """Refuse a table with missing values.

    Raises
    ------
    DataError
        Naming the columns and how many values each lacks.
    """
    counts = frame.isna().sum()
    lacking = [f"{name!r} ({count})" for name, count in counts.items() if count]
    if lacking:
        ways = "remove the columns, fill the values in (impute), or drop the rows, with"
        raise DataError(
            f"missing values in {len(lacking)} column(s) of {len(frame)} rows: {some_of(lacking)}",
            hint=f"{ways} drop=, missing='impute' or missing='drop', or let splits decide where they go: "
            "missing='branch'; estimators take missing='impute' and 'branch'",
            option=f"{ways} --drop COLUMN, --missing impute or --missing drop, or let splits decide where they go: "
            "--missing branch",
        )


def numbers(column: Any, base: int = 0) -> FloatArray:
    """Return a column without missing values, less ``base``, as finite float64 values.

    Parameters
    ----------
    column
        A pandas Series.
    base
        What is subtracted, exactly, before whole numbers become float64 (see :func:`exact_base`).

    Raises
    ------
    DataError
        If a value is not a number, not finite, or a whole number that float64 would round; names the first
        such row.
    """
    import pandas as pd

    try:
        given: Any = [_less(value, base) for value in column] if base else column.to_numpy()
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        bad = pd.to_numeric(column.astype(object), errors="coerce").isna().to_numpy()
        raise DataError(
            f"column {column.name!r} must hold numbers, but {row_text(column, column.index[bad.argmax()])} holds "
            f"{column[bad].iloc[0]!r}; correct the value"
        ) from None
    except OverflowError:
        huge = next(row for row, value in column.items() if _rounded(value))
        raise _rounding(f"column {column.name!r}, {row_text(column, huge)},", column[huge]) from None
    infinite = ~np.isfinite(values)
    if infinite.any():
        raise DataError(
            f"column {column.name!r} has {infinite.sum()} value(s) that are not finite, the first in "
            f"{row_text(column, column.index[infinite.argmax()])}; replace them by finite numbers or drop the rows"
        )
    for k in np.flatnonzero(np.abs(values) >= EXACT).tolist():
        value = given[k]
        if _rounded(value):
            raise _rounding(f"column {column.name!r}, {row_text(column, column.index[k])},", value)
    return values


def exact_base(column: Any) -> int:
    """Return what to subtract from a column of numbers so that float64 keeps all differences of whole numbers.

    0 for columns that float64 holds as they are. Otherwise the smallest value: of times in nanoseconds, about
    1.7e18, float64 keeps every 256th only, but the differences between those of a century are exact.

    Raises
    ------
    DataError
        If the numbers are whole and their range exceeds 2^53, so that neighbours would merge.
    """
    if column.dtype.kind == "f" or not any(map(_rounded, column)):
        return 0
    if not all(isinstance(value, Integral) for value in column):
        return 0  # next to fractions no whole number is exact: numbers() names the value
    least, greatest = int(column.min()), int(column.max())
    if greatest - least > EXACT:
        raise DataError(
            f"column {column.name!r} holds whole numbers from {_short(least)} to {_short(greatest)}: the range "
            f"exceeds 2^53 = {EXACT}, and float64 would make neighbours equal; divide them by a constant, or "
            "split the column in two"
        )
    return least


def refuse_rounding(given: ArrayLike, values: FloatArray, what: str) -> None:
    """Refuse whole numbers that became other numbers on their way to float64.

    Parameters
    ----------
    given
        What the user passed: an array, lists, or a table.
    values
        The same as float64.
    what
        What it is, for the message.

    Raises
    ------
    DataError
        Naming the first such number and where it is.
    """
    large = np.argwhere(np.abs(values) >= EXACT)
    if not len(large) or (isinstance(given, np.ndarray) and given.dtype.kind == "f"):
        return
    import pandas as pd

    exact = (
        given.astype(object).to_numpy()
        if isinstance(given, pd.DataFrame)
        else np.asarray(given, dtype=object)
    )
    for position in map(tuple, large.tolist()):
        if _rounded(exact[position]):
            where = ", ".join(f"{name} {k}" for name, k in zip(("row", "column"), position, strict=False))
            raise _rounding(f"{what}, {where},", exact[position])


def rounds(column: Any) -> bool:
    """Return whether float64 would round a whole number of a column."""
    return column.dtype.kind != "f" and any(map(_rounded, column))


def _rounded(value: object) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value() and abs(value) > EXACT and value != float(value)
    if not isinstance(value, Integral) or abs(int(value)) <= EXACT:
        return False
    try:
        return int(value) != int(float(int(value)))
    except OverflowError:
        return True


def _less(value: Any, base: int) -> Any:
    """Subtract exactly; whole numbers stay whole."""
    return (int(value) if value == int(value) else Fraction(value)) - base


def _rounding(where: str, value: object) -> DataError:
    return DataError(
        f"{where} holds {_short(value)}, which float64 would round: beyond 2^53 = {EXACT} it lacks whole numbers; "
        "subtract a constant or divide by one, or give the numbers as text if they are names"
    )


def _short(value: object) -> str:
    digits = str(value)
    return digits if len(digits) <= _SHOWN_DIGITS else f"{digits[:_SHOWN_DIGITS]}... ({len(digits)} digits)"


def text(value: object) -> str:
    """Write a label as text; whole numbers lose their decimal point, so that 2 and 2.0 are one label."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def texts(column: Any) -> list[str]:
    """Write every value of a column as text (see :func:`text`)."""
    return [text(value) for value in column]


def sort_texts(labels: Iterable[str]) -> tuple[str, ...]:
    """Sort texts: by value if all are finite numbers (so 9 before 10), otherwise alphabetically."""
    alphabetic = sorted(labels)
    try:
        values = {label: Decimal(label) for label in alphabetic}
    except InvalidOperation:
        return tuple(alphabetic)
    if not all(value.is_finite() for value in values.values()):
        return tuple(alphabetic)
    return tuple(sorted(alphabetic, key=values.__getitem__))


def to_label(value: Any) -> Label:
    """Turn a numpy scalar into the Python value it stands for, and what JSON cannot hold into text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | bool) else text(value)


@dataclass(frozen=True)
class Axis(Sequence[str]):
    """A sequence of unique labels that knows the position of each.

    Parameters
    ----------
    labels
        The labels, in order.
    of
        What an entry is, for messages: ``"feature"``, ``"sample"``.

    Raises
    ------
    DataError
        If a label occurs twice.
    """

    labels: tuple[str, ...]
    of: str = "entry"

    def __post_init__(self) -> None:
        if len(self._positions) != len(self.labels):
            repeated = [label for label, count in Counter(self.labels).items() if count > 1]
            names = some_of([repr(label) for label in repeated])
            raise DataError(
                f"{self.of} names must differ, but these occur more than once: {names}; rename them"
            )

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: position for position, label in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self.labels[index]

    def __contains__(self, label: object) -> bool:
        return label in self._positions

    def position(self, label: str) -> int:
        """Return the position of a label.

        Raises
        ------
        DataError
            If there is no such label; names the nearest.
        """
        try:
            return self._positions[label]
        except KeyError:
            hint = did_you_mean(label, self.labels) or f"; there are: {some_of(self.labels)}"
            raise DataError(f"no {self.of} is called {label!r}{hint}") from None


def fingerprint(names: Iterable[str], *arrays: FloatArray | IntArray) -> str:
    """Return the SHA-256 of names and arrays, the same on every machine."""
    digest = sha256("".join(f"{len(name)}:{name}" for name in names).encode())
    for array in arrays:
        kind = "<f8" if array.dtype.kind == "f" else "<i8"
        digest.update(f"{kind}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return digest.hexdigest()


#: What to do with rows that lack a value: refuse the table, drop them, fill them in, or let splits send them to a side;
#: and say so.
Missing = Literal["error", "drop", "impute", "branch"]

#: Most levels of a column of text that becomes features, unless the user says otherwise.
MAX_LEVELS = 100

#: Different numbers from which on a column of text is one of numbers with a slip; of fewer, such as 2, 3, 4 and
#: "5more", all values are levels, and a remark names the one that is no number.
MANY_NUMBERS = 10

#: Packages whose tables are read as pandas tables are, through pyarrow.
ARROW_TABLES = ("polars", "pyarrow")

#: From this number of rows on, a column that counts them is worth a remark.
_ROWS_WORTH_COUNTING = 10


@dataclass(frozen=True, eq=False)
class Table:
    """A checked table: unique column names, at least one row and one feature column, no missing value.

    Attributes
    ----------
    features
        DataFrame of the feature columns.
    target
        Series of the target column; ``None`` with rewards.
    treatment
        Series of the column of treatments; ``None`` without one.
    rewards
        (n, K) rewards of the decisions; ``None`` without these columns.
    samples
        A unique id of every row: its index label, or its position if index labels repeat.
    weights
        (n,) weights of the rows, above 0; 1 without a column of weights.
    notes
        What was done to the table, and what looks odd.
    """

    features: Any
    target: Any
    treatment: Any
    samples: tuple[str, ...]
    weights: FloatArray
    notes: tuple[str, ...]
    rewards: FloatArray | None = None


def read_table(
    frame: Any,
    target: str | None,
    missing: Missing = "error",
    weight: str | None = None,
    *,
    treatment: str | None = None,
    rewards: Sequence[str] = (),
    drop: Collection[str] = (),
    keep: Collection[str] | None = (),
    dates: Dates | None = None,
    categorical: str | Collection[str] = (),
) -> Table:
    """Check a table and separate its target column.

    Parameters
    ----------
    frame
        pandas DataFrame; its column names are taken as text.
    target
        Name of the target column; ``None`` where there are rewards.
    missing
        ``"error"``, ``"drop"``, or ``"impute"`` and ``"branch"``, which leave gaps of features to the encoding: to be
        filled in, or to be sent to a side by each split.
    weight
        Name of the column of weights, which is no feature; rows of weight 0 are left out.
    treatment
        Name of the column of treatments, which is no feature either.
    rewards
        Names of the columns of rewards, one for each decision, which are no features either.
    drop
        Names of columns to leave out.
    keep
        Names of columns of text that are features however many levels they have; ``None`` keeps all.
    dates
        How columns of dates become numbers, see :func:`dates_as_numbers`; ``None`` refuses them.
    categorical
        Names of columns whose sets of levels become features, or ``"all"``; they are kept as they are.

    Raises
    ------
    DataError
        If columns share a name, the target, the weights or all features are absent, no row is there (or left),
        values are missing, a weight is negative, ``missing`` is unknown, or a column of text has more than
        :data:`MAX_LEVELS` levels, or :data:`MANY_NUMBERS` numbers among them.
    """
    if missing not in get_args(Missing):
        raise DataError(f"unknown treatment missing={missing!r}; it is 'error', 'drop', 'impute' or 'branch'")
    frame = with_text_names(frame)
    others = {target, weight, treatment, *rewards, *drop}
    as_sets = column_names(categorical, [name for name in frame.columns if name not in others])
    keep = None if keep is None else (*keep, *(as_sets or ()))
    named = {
        "target": [] if target is None else [target],
        "rewards": rewards,
        "weight": [] if weight is None else [weight],
        "treatment": [] if treatment is None else [treatment],
        "drop": drop,
        "keep": keep or (),
    }
    for role, names in named.items():
        for name in names:
            _require_column(frame, name, role)
    if (target is None) != bool(rewards):
        raise DataError(
            "a table has a target, or rewards, and not both",
            hint="name one column as target=, or two or more as rewards=",
            option="name one column with --target, or two or more with --rewards",
        )
    roles = {"target": target, "weights": weight, "treatments": treatment}
    roles |= {f"reward of decision {k}": name for k, name in enumerate(rewards)}
    taken = {role: name for role, name in roles.items() if name is not None}
    frame = frame.drop(columns=[name for name in drop if name not in taken.values()])
    for (role, name), (other, same) in combinations(taken.items(), 2):
        if name == same:
            raise DataError(f"{name!r} is both the {role} and the column of {other}; name two columns")
    if frame.shape[1] == len(taken):
        named_as = [f"the {role} {name!r}" for role, name in taken.items()]
        only = "is the only column" if len(taken) == 1 else "are the only columns"
        raise DataError(f"{' and '.join(named_as)} {only}: there are no features; add feature columns")
    if frame.empty:
        raise DataError("the table has no rows; add data below the column names")
    frame = dates_as_numbers(frame, dates, (*taken.values(), *(keep or ())))
    if missing == "error":
        lacking = _caught(refuse_missing, frame)
        refuse_together(
            [
                *lacking,
                *(doubtful_text(frame.drop(columns=list(taken.values())), keep) if keep is not None else ()),
            ]
        )
    frame, notes = _without_missing(frame, missing, list(taken.values()))
    samples = map(str, frame.index) if frame.index.is_unique else map(str, range(len(frame)))
    column = None if weight is None else numbers(frame[weight])
    chosen, weights, dropped = positive_weights(
        column, len(frame), f"column {weight!r}", lambda k: row_text(frame, frame.index[k])
    )
    frame = frame[chosen]
    features = frame.drop(columns=list(taken.values()))
    if keep is not None:
        refuse_doubtful_text(features, keep)
    ids = tuple(id for id, kept in zip(samples, chosen, strict=True) if kept)
    given = None if treatment is None else frame[treatment]
    return Table(
        features=features,
        target=None if target is None else frame[target],
        treatment=given,
        samples=ids,
        weights=weights,
        notes=(*notes, *dropped, *_remarks(features, as_sets, missing)),
        rewards=np.column_stack([numbers(frame[name]) for name in rewards]) if rewards else None,
    )


def _caught(check: Callable[[Any], None], table: Any) -> list[DataError]:
    """Return the error of a check as a list, empty where it passes."""
    try:
        check(table)
    except DataError as error:
        return [error]
    return []


def _require_column(frame: Any, name: str, role: str) -> None:
    if name not in frame.columns:
        hint = did_you_mean(name, frame.columns)
        raise DataError(
            f"no column is called {name!r}{hint}; the columns are {some_of(list(frame.columns), 30)}",
            hint=f"name one of them as {role}=",
            option=f"name one of them with --{role} COLUMN",
        )


def refuse_doubtful_text(features: Any, keep: Collection[str] = ()) -> None:
    """Refuse columns of text that are numbers with a slip among them, or dates, names or identifiers.

    Parameters
    ----------
    features
        DataFrame of the feature columns.
    keep
        Names of columns that are features all the same.

    Raises
    ------
    DataError
        Naming a value that makes text of numbers and its row, or the columns and how many levels each has.
    """
    refuse_together(doubtful_text(features, keep))


def doubtful_text(features: Any, keep: Collection[str] = ()) -> list[DataError]:
    """Return all errors of :func:`refuse_doubtful_text`."""
    texts: dict[str, Any] = {}
    found: list[DataError] = []
    dated = [name for name, column in features.items() if name not in keep and _many_dates(column)]
    if dated:
        found.append(_dates_refused(dated, features))
    for name, column in features.items():
        if name in dated:
            continue
        try:
            if name not in keep and not is_numeric(column):
                texts[name] = column
        except DataError as error:
            found.append(error)
    commas: list[str] = []
    slipped: list[str] = []
    for name, column in texts.items():
        slip = _slip_among_numbers(column)
        if slip is not None and slip.commas and slip.numbers >= MANY_NUMBERS:
            commas.append(name)
        elif slip is not None and slip.numbers >= MANY_NUMBERS:
            named = shlex.quote(name)
            slipped.append(name)
            refusal = DataError(
                f"column {name!r} holds numbers and text: {row_text(features, slip.row)} holds {slip.value!r:.60}, and "
                f"{slip.numbers} of its {slip.levels} different values are numbers; as text, each would be a feature",
                hint=f"correct the value (with a decimal point, or empty for missing=), leave the column out with "
                f"drop=[{name!r}], or take it as text with keep=[{name!r}] or astype('category')",
                option=f"correct the value (with a decimal point, or empty for --missing), leave the column out with "
                f"--drop {named}, or take it as text with --keep {named}",
            )
            found.append(refusal)
    if commas:
        slips = {name: slip for name in commas if (slip := _slip_among_numbers(texts[name]))}
        places = {row: row_text(features, row) for row in {slip.row for slip in slips.values()}}
        shown = some_of(
            [f"{name!r} ({slip.value!r:.30} in {places[slip.row]})" for name, slip in slips.items()]
        )
        found.append(
            DataError(
                f"{shown}: this looks like decimal commas",
                hint="read the file with decimal=',' (or take the column as text with keep=)",
                option="--decimal , reads them as numbers (--keep COLUMN takes a column as text)",
            )
        )
    refused = {*commas, *slipped}
    counts = {name: column.nunique() for name, column in texts.items() if name not in refused}
    many = [name for name, count in counts.items() if count > MAX_LEVELS]
    if many:
        columns = some_of([f"{name!r} ({counts[name]} levels)" for name in many])
        refusal = DataError(
            f"{columns}: a feature for every level of a date, a name or an identifier tells nothing of new samples, "
            f"and at most {MAX_LEVELS} levels are taken",
            hint=f"leave it out with drop=[{many[0]!r}], or take it all the same with keep=[{many[0]!r}]",
            option=f"leave it out with --drop {shlex.quote(many[0])}, or take it all the same with --keep",
        )
        found.append(refusal)
    return found


#: How dates become numbers; ``None`` refuses them.
Dates = Literal["days", "parts"]

#: How dates are written that are taken for dates, as they stand in texts: year first, or day first with points.
_DATE = r"\s*(?:\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?|\d{1,2}\.\d{1,2}\.\d{4})\s*"

_DAY = np.timedelta64(1, "D")

#: Parts of a date, and how pandas calls them.
_PARTS = {"year": "year", "month": "month", "day": "day", "weekday": "day_of_week"}


def holds_dates(column: Any) -> bool:
    """Return whether all values of a column that are there are dates, or texts that are written as dates."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    present = column.dropna()
    if isinstance(column.dtype, pd.CategoricalDtype) or not len(present):
        return False
    if pd.api.types.infer_dtype(present) in ("date", "datetime"):
        return True
    if pd.api.types.infer_dtype(present) != "string":
        return False
    return bool(present.str.fullmatch(_DATE).all())


def dates_as_numbers(frame: Any, dates: Dates | None, but: Collection[str] = ()) -> Any:
    """Return a table whose columns of dates became numbers.

    Parameters
    ----------
    frame
        pandas DataFrame.
    dates
        ``"days"``: one column ``NAME (days)``, days since 1970-01-01 with their fractions. ``"parts"``: columns
        ``NAME (year)``, ``(month)`` from 1, ``(day)`` from 1 and ``(weekday)``, 0 on Mondays. ``None`` changes nothing.
    but
        Names of columns that stay, such as the target.

    Raises
    ------
    DataError
        If ``dates`` is something else, or a date does not exist, such as 31 February; names the first such row.
    """
    import pandas as pd

    if dates is None:
        return frame
    if dates not in get_args(Dates):
        raise DataError(f"unknown treatment dates={dates!r}; it is 'days' or 'parts', or left out")
    frame = with_text_names(frame)
    parts: dict[str, Any] = {}
    for name, column in frame.items():
        if name in but or not holds_dates(column):
            parts[name] = column
            continue
        if column.dtype.kind == "O" or pd.api.types.is_string_dtype(column.dtype):
            texts = column.astype("string").str.strip()
            # Years come first in the one way of writing, last in the other.
            points = texts.str.contains(r"^\d{1,2}\.", regex=True).fillna(False).to_numpy(dtype=bool)
            moments = pd.to_datetime(
                texts.str.replace("/", "-").where(~points), format="ISO8601", errors="coerce", utc=True
            ).fillna(pd.to_datetime(texts.where(points), format="%d.%m.%Y", errors="coerce", utc=True))
        else:
            moments = pd.to_datetime(column, utc=True)
        wrong = (moments.isna() & column.notna()).to_numpy()
        if wrong.any():
            at = column.index[int(wrong.argmax())]
            raise DataError(
                f"column {name!r} holds {column[at]!r} in {row_text(frame, at)}, which is no day of the calendar; "
                "correct the value"
            )
        if dates == "days":
            parts[f"{name} (days)"] = (moments - pd.Timestamp(0, tz="UTC")) / _DAY
        else:
            parts |= {f"{name} ({part})": getattr(moments.dt, which) for part, which in _PARTS.items()}
    changed = pd.DataFrame(parts, index=frame.index)
    changed.attrs |= frame.attrs
    return changed


def _dates_refused(names: Sequence[str], features: Any) -> DataError:
    """Return the error that columns hold dates."""
    shown = some_of([f"{name!r} ({features[name].dropna().iloc[0]!s:.30})" for name in names])
    return DataError(
        f"{shown}: this looks like dates, which are neither numbers nor levels",
        hint="take them as numbers with dates='days' or dates='parts' (year, month, day, weekday), or leave them out "
        f"with drop=[{names[0]!r}]; keep=[{names[0]!r}] takes texts as levels",
        option="take them as numbers with --dates days or --dates parts (year, month, day, weekday), or leave them out "
        f"with --drop {shlex.quote(names[0])}; --keep takes texts as levels",
    )


def refuse_together(found: Sequence[DataError]) -> None:
    """Raise what was found wrong with a table as one error; nothing where nothing was.

    Raises
    ------
    DataError
        The only one, or one that lists all.
    """
    if len(found) == 1:
        raise found[0]
    if found:
        listed = [f"({k}) {error}" for k, error in enumerate(found, 1)]
        options = [f"({k}) {error.on_command_line}" for k, error in enumerate(found, 1)]
        raise DataError(
            f"{len(found)} things stand in the way:", hint="; ".join(listed), option="; ".join(options)
        )


def _many_dates(column: Any) -> bool:
    """Return whether a column holds dates; of texts, at least :data:`MANY_NUMBERS` different ones."""
    if is_plain_number(column) or not holds_dates(column):
        return False
    return column.dtype.kind == "M" or bool(column.nunique() >= MANY_NUMBERS)


def is_plain_number(column: Any) -> bool:
    """Return whether a column has a type of numbers of its own, which no text can have."""
    return bool(column.dtype.kind in "biufc")


class _Slip(NamedTuple):
    """The first value of a column of text that is no number although most are; how many are, of how many.

    ``commas`` where each of its values is a number with a decimal comma or without one, so that a comma is no slip.
    """

    row: object
    value: str
    numbers: int
    levels: int
    commas: bool


def _slip_among_numbers(column: Any) -> _Slip | None:
    """Return what makes text of a column whose values are mostly numbers, a decimal comma included; or ``None``.

    Numbers that are text one and all, and categories, were meant so.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    levels = pd.Series(column.dropna().unique()).astype(str)
    plain = pd.to_numeric(levels, errors="coerce").notna()
    meant = plain | pd.to_numeric(levels.str.replace(",", ".", n=1, regex=False), errors="coerce").notna()
    numbers = int(meant.sum())
    if plain.all() or 2 * numbers <= len(levels):
        return None
    # What is no number at all comes before a decimal comma.
    value = levels[~(plain if meant.all() else meant)].iloc[0]
    row = column.index[(column.astype(str) == value).to_numpy().argmax()]
    commas = bool(meant.all()) and not levels.str.contains(".", regex=False).any()
    return _Slip(row, value, numbers, len(levels), commas)


def positive_weights(
    weights: ArrayLike | None, n: int, what: str = "weights", name_row: Callable[[int], str] = "row {}".format
) -> tuple[BoolArray, FloatArray, tuple[str, ...]]:
    """Return which of ``n`` samples have a positive weight, their weights, and what to say of the others.

    Parameters
    ----------
    weights
        (n,) numbers, at least 0, or one number for all; 1 for each where none are given.
    what
        What they are, for messages.
    name_row
        Gives the name of a row, for the message about a weight that is refused.

    Raises
    ------
    DataError
        If the shape is another, a weight is negative or not finite, or all are 0.
    """
    if weights is None:
        return np.ones(n, dtype=np.bool_), np.ones(n), ()
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers ({error}); give one number for each row") from error
    if given.ndim == 0:
        given = np.full(n, float(given))
    if given.shape != (n,):
        raise DataError(f"{what} has shape {given.shape}, it must be ({n},): one weight for each row")
    bad = ~(np.isfinite(given) & (given >= 0))
    if bad.any():
        at = int(bad.argmax())
        raise DataError(
            f"{what}: {name_row(at)} has the weight {given[at]:g}; weights are numbers of "
            "at least 0: correct it, or give 0 to leave the row out"
        )
    if not given.any():
        raise DataError(
            f"{what}: all {n} weights are zero, which leaves no sample; give one that is positive"
        )
    kept = given > 0
    count = int((~kept).sum())
    return kept, given[kept], (f"{count} of {n} rows left out because their weight is 0",) if count else ()


def checked_weights(weights: ArrayLike | None, n: int, what: str) -> FloatArray:
    """Return the weights (n,) of all samples, checked as :func:`positive_weights` does, those of 0 included."""
    kept, positive, _ = positive_weights(weights, n, what)
    found = np.zeros(n)
    found[kept] = positive
    return found


def with_text_names(frame: Any) -> Any:
    """Return a table whose column names are text.

    Raises
    ------
    DataError
        If it is not a pandas DataFrame or two columns share a name.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame) and type(frame).__module__.split(".")[0] in ARROW_TABLES:
        frame = _of_arrow(frame)
    if not isinstance(frame, pd.DataFrame):
        raise DataError(
            f"a {type(frame).__name__} is no table: pass a pandas DataFrame, or use Dataset.from_arrays"
        )
    names = [str(name) for name in frame.columns]
    Axis(tuple(names), "column")
    return frame.set_axis(names, axis="columns")


def _of_arrow(frame: Any) -> Any:
    """Return a Polars or pyarrow table as a pandas one."""
    lazy = getattr(frame, "collect", None)
    table = lazy() if lazy is not None and not hasattr(frame, "to_pandas") else frame
    try:
        return table.to_pandas()
    except ImportError as error:
        raise DataError(
            f"a table of {type(frame).__module__.split('.')[0]} is read through pyarrow, which is not installed "
            f"({error}): pip install 'mipforest[parquet]'"
        ) from error


def _without_missing(frame: Any, missing: Missing, required: list[str]) -> tuple[Any, tuple[str, ...]]:
    """Refuse missing values, or drop the rows that have some, and return the table and what was done.

    Where gaps of features are left to the encoding, only rows without a ``required`` value are dropped.
    """
    gaps = frame.isna()
    lacking = gaps.any(axis="columns")
    if not lacking.any():
        return frame, ()
    if missing in ("impute", "branch"):
        empty = [name for name in frame.columns if gaps[name].all()]
        if empty:
            raise DataError(
                f"column {empty[0]!r} has no value in any row, there is nothing to learn from it: leave it out"
            )
        kept = ~gaps[required].any(axis="columns")
        filled = gaps[kept].to_numpy().sum()
        dropped = (f"{(~kept).sum()} of {len(frame)} rows dropped because they lack {' or '.join(required)}",)
        note = (
            f"{filled} missing values filled in: numbers by the median, text by the most frequent value"
            if missing == "impute"
            else f"{filled} missing values, sent to a side by each split"
        )
        return frame[kept], (*(dropped if not kept.all() else ()), *((note,) if filled else ()))
    if lacking.all():
        count = len(frame)
        raise DataError(
            f"all {count} rows lack a value, none would be left; remove the emptiest columns first"
        )
    return frame[~lacking], (f"{lacking.sum()} of {len(frame)} rows dropped because a value is missing",)


def column_names(categorical: str | Collection[str], columns: Collection[str]) -> frozenset[str] | None:
    """Return the columns named as categorical; ``None`` for ``"all"``, unless a column is called so.

    Raises
    ------
    DataError
        If there is no such column.
    """
    names = [categorical] if isinstance(categorical, str) else list(map(str, categorical))
    if names == ["all"] and "all" not in columns:
        return None
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise DataError(
                f"no feature column is called {name!r}{hint}; the columns are {some_of(list(columns), 30)}",
                hint="name some of them as categorical=, or give categorical='all'",
                option="name some of them with --categorical COLUMN, or give --categorical all",
            )
    return frozenset(names)


def _remarks(features: Any, as_sets: Collection[str] | None, missing: Missing) -> list[str]:
    """Remark on columns whose treatment may surprise: encoded by levels, or merely counting the rows."""
    remarks = []
    for name, column in features.items():
        has_levels = not is_numeric(column)
        is_set = has_levels if as_sets is None else name in as_sets
        levels = column.nunique() if has_levels or is_set else 0  # of a million numbers it takes a while
        if is_set and levels > 2:
            remarks.append(f"column {name!r} has {levels} levels: a split sends a set of them to each side")
        elif has_levels:
            slip = _slip_among_numbers(column)
            comma = ", a decimal comma" if slip is not None and slip.commas else ""
            text = (
                f"{row_text(features, slip.row)} holds {slip.value!r:.60}, which is no number{comma}: "
                if slip is not None
                else ""
            )
            remarks.append(
                f"column {name!r} one-hot encoded: {text}{levels} levels"
                if levels != 2
                else f"column {name!r} has 2 levels and missing values, of which a split sends each to a side"
                if missing == "branch" and column.isna().any()
                else f"column {name!r} has 2 levels and becomes one feature"
            )
        elif _counts_rows(column):
            remarks.append(
                f"column {name!r} counts the rows and is used as a feature; remove it if it is a row number"
            )
    return remarks


def _counts_rows(column: Any) -> bool:
    """Return whether an integer column goes up by one from row to row."""
    import pandas as pd

    if len(column) < _ROWS_WORTH_COUNTING or not pd.api.types.is_integer_dtype(column.dtype):
        return False
    return bool((np.diff(column.to_numpy()) == 1).all())


def feature_matrix(X: ArrayLike) -> FloatArray:
    """Copy a feature matrix to an (n, p) float64 array in C order, n and p at least 1.

    Raises
    ------
    DataError
        If it is sparse, not numeric, not two-dimensional, or has values that are missing, infinite, or whole
        numbers that float64 would round.
    """
    if sparse.issparse(X):
        raise DataError("X is a sparse matrix; pass X.toarray()")
    try:
        matrix = np.array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"X must be a matrix of numbers ({error}); use Dataset.from_frame for text"
        ) from error
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise DataError(
            f"X has shape {matrix.shape}; it must be two-dimensional with at least one row and one column"
        )
    bad = ~np.isfinite(matrix)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise DataError(
            f"X has {bad.sum()} value(s) that are missing or infinite, the first in row {row}, column "
            f"{column}; replace them (impute) or drop the rows"
        )
    refuse_rounding(X, matrix, "X")
    return matrix


def target_column(y: ArrayLike, n: int, name: str) -> Any:
    """Return a target array as a pandas Series of ``n`` values, none missing.

    Raises
    ------
    DataError
        If the shape is not (n,), values are missing, or whole numbers among fractions would be rounded.
    """
    if np.shape(y) != (n,):
        raise DataError(f"y has shape {np.shape(y)}, it must be ({n},): one label or value for each row of X")
    values = np.asarray(y)
    if values.dtype.kind == "f":
        refuse_rounding(y, values, "y")
    import pandas as pd

    column = pd.Series(values, name=name)
    if column.isna().any():
        raise DataError(f"y lacks {column.isna().sum()} of {n} values; drop these rows of X and y")
    return column
