"""From a table (pandas DataFrame) or arrays to checked feature columns and a target column."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property, partial
from hashlib import sha256
from itertools import combinations
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, get_args, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data.convention import (
    EXACT,
    MANY_NUMBERS,
    PLAIN,
    Convention,
    is_text,
    levels_of,
    numbers_in,
    read_all,
    read_columns,
    resolved,
    sample_of,
    signed_parts,
)
from mipforest.data.dates import dates_as_numbers, dates_refused, is_date, many_dates
from mipforest.data.lines import missing_words, row_text, short_lines
from mipforest.errors import DataError, Remedy, did_you_mean, some_of

#: A class label as the user wrote it.
Label = str | int | float | bool

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


def refuse_missing(frame: Any, target: str | None = None) -> None:
    """Refuse a table with missing values; where those of a target are among them, say which models take them.

    Raises
    ------
    DataError
        Naming the columns and how many values each lacks, and the words that count as missing.
    """
    counts = frame.isna().sum()
    lacking = [f"{name!r} ({count})" for name, count in counts.items() if count]
    if lacking:
        words = {name: missing_words(frame, name) for name, count in counts.items() if count}
        named = sorted({word for found in words.values() for word in found})
        short = short_lines(frame)
        few = f"; {short}, a value or a separator may be lost" if short else ""
        told = few + "".join(f"; {name!r} has {some_of(found)}" for name, found in words.items() if found)
        kept = f", or take words as they are with keep_words={named!r}" if named else ""
        option = (
            f", or take words as they are with --keep-words {shlex.quote(','.join(named))}" if named else ""
        )
        if target is not None and counts.get(target, 0):
            told += (
                f"; rows without {target!r} are samples without a label for semi-supervised models alone (semi-oct, "
                "from Python with unlabelled=True)"
            )
        ways = "remove the columns, fill the values in (impute), or drop the rows, with"
        raise DataError(
            f"missing values in {len(lacking)} column(s) of {len(frame)} rows: {some_of(lacking)}{told}",
            hint=f"{ways} drop=, missing='impute' or missing='drop', or let splits decide where they go: "
            f"missing='branch'; estimators take missing='impute' and 'branch'{kept}",
            option=f"{ways} --drop COLUMN, --missing impute or --missing drop, or let splits decide where they go: "
            f"--missing branch{option}",
        ).cured_by("--missing impute", missing="impute")


def refuse_empty(frame: Any) -> None:
    """Refuse a table with columns that have no value in any row, of which there is nothing to learn.

    Raises
    ------
    DataError
        Naming them.
    """
    empty = [str(name) for name, lacks in frame.isna().all().items() if lacks]
    if empty and len(frame):
        option = " ".join(f"--drop {shlex.quote(name)}" for name in empty[:8])
        have = "columns {} have" if len(empty) > 1 else "column {} has"
        raise DataError(
            f"{have.format(some_of([repr(name) for name in empty]))} no value in any row: nothing can be learned there",
            hint=f"leave it out with drop={empty[:8]!r}",
            option=f"leave it out with {option}",
        ).cured_by(" ".join(f"--drop {shlex.quote(name)}" for name in empty), drop=tuple(empty))


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
    levels, codes = coded_texts(column)
    written: list[str] = np.array([*levels, ""], dtype=object)[codes].tolist()
    return written


def coded_texts(column: Any) -> tuple[list[str], IntArray]:
    """Return the different values of a column as text, in order of appearance, and (n,) the number of each row's.

    Each different value is written once: columns of a million rows have few.
    """
    import pandas as pd

    # 1, 1.0 and True are one value where values are told apart by hash, and True is not written as 1.
    mixed = column.dtype.kind == "O" and pd.api.types.infer_dtype(column, skipna=True).startswith("mixed")
    if mixed:
        every = [text(value) for value in column]
        codes, levels = pd.factorize(np.array(every, dtype=object))
        return list(levels), codes.astype(np.int64)
    codes, values = pd.factorize(column, use_na_sentinel=False)
    written = [text(value) for value in values]
    again, levels = pd.factorize(np.array(written, dtype=object))
    return list(levels), again[codes].astype(np.int64)


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

#: A numeric target is read as class labels if all values are whole numbers and at most this many differ.
MAX_NUMERIC_CLASSES = 20

#: Most levels of a column of text that becomes features, unless the user says otherwise.
MAX_LEVELS = 100

#: Packages whose tables are read as pandas tables are, through pyarrow.
ARROW_TABLES = ("polars", "pyarrow")

#: Numbers that often stand for a missing value.
_NINES = re.compile(r"-?9{2,}")

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
        Series of the target column, DataFrame of those of several targets; ``None`` with rewards.
    treatment
        Series of the column of treatments; ``None`` without one.
    rewards
        (n, K) rewards of the decisions; ``None`` without these columns.
    convention
        How values were written, as found.
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
    convention: Convention = PLAIN


def read_table(
    frame: Any,
    target: str | None,
    missing: Missing = "error",
    weight: str | None = None,
    *,
    treatment: str | None = None,
    rewards: Sequence[str] = (),
    targets: Sequence[str] = (),
    drop: Collection[str] = (),
    keep: Collection[str] | None = (),
    convention: Convention = PLAIN,
    categorical: str | Collection[str] = (),
    task: str | None = None,
    unlabelled: bool = False,
) -> Table:
    """Check a table and separate its target column.

    Parameters
    ----------
    frame
        pandas DataFrame; its column names are taken as text.
    target
        Name of the target column; ``None`` where there are rewards, or several targets.
    missing
        ``"error"``, ``"drop"``, or ``"impute"`` and ``"branch"``, which leave gaps of features to the encoding: to be
        filled in, or to be sent to a side by each split.
    weight
        Name of the column of weights, which is no feature; rows of weight 0 are left out.
    treatment
        Name of the column of treatments, which is no feature either.
    rewards
        Names of the columns of rewards, one for each decision, which are no features either.
    targets
        Names of the columns of several targets.
    drop
        Names of columns to leave out.
    keep
        Names of columns of text that are features however many levels they have; ``None`` keeps all.
    convention
        How numbers, missing values and dates are written; dates are refused unless it says what becomes of them.
    categorical
        Names of columns whose sets of levels become features, or ``"all"``; they are kept as they are.
    task
        What to predict, ``None`` where values decide: classes that are written as numbers with a sign stay texts.
    unlabelled
        Whether the target may be missing: these rows are kept.

    Raises
    ------
    DataError
        If columns share a name, the target, the weights or all features are absent, no row is there (or left),
        values are missing, a weight is negative, ``missing`` is unknown, or a column of text has more than
        :data:`MAX_LEVELS` levels, or :data:`MANY_NUMBERS` numbers among them.
    """

    def read(missing: Missing, convention: Convention, drop: Collection[str]) -> Table:
        return _read_table(
            frame,
            target,
            missing,
            weight,
            treatment=treatment,
            rewards=rewards,
            targets=targets,
            drop=drop,
            keep=keep,
            convention=convention,
            categorical=categorical,
            task=task,
            unlabelled=unlabelled,
        )

    try:
        return read(missing, convention, drop)
    except DataError as error:
        if len(error.remedies) > 1 and (
            options := _all_together(read, error.remedies, missing, convention, drop)
        ):
            told = f"\n  all together: {options}"
            raise DataError(error.message, hint=error.hint, option=error.option + told) from None
        raise


def _all_together(
    read: Callable[[Missing, Convention, Collection[str]], Table],
    remedies: Sequence[Remedy],
    missing: Missing,
    convention: Convention,
    drop: Collection[str],
) -> str:
    """Return the options that do away with all that stands in the way, empty where the table is not read with them."""
    for _ in range(MAX_ROUNDS):
        changed = {
            name: value for remedy in remedies for name, value in remedy.settings.items() if name != "drop"
        }
        out = [name for remedy in remedies for name in remedy.settings.get("drop", ())]
        words = [word for remedy in remedies for word in remedy.settings.get("missing_values", ())]
        if words:
            changed["missing_values"] = (*convention.missing_values, *words)
        try:
            read(
                changed.pop("missing", missing),
                replace(convention, **changed),
                [*drop, *out],
            )
        except DataError as further:
            if not further.remedies:
                return ""
            remedies = [*remedies, *further.remedies]
        else:
            return " ".join(dict.fromkeys(remedy.option for remedy in remedies))
    return ""


def _read_table(
    frame: Any,
    target: str | None,
    missing: Missing,
    weight: str | None,
    *,
    treatment: str | None,
    rewards: Sequence[str],
    targets: Sequence[str],
    drop: Collection[str],
    keep: Collection[str] | None,
    convention: Convention,
    categorical: str | Collection[str],
    task: str | None,
    unlabelled: bool,
) -> Table:
    """Read a table as :func:`read_table` does, without trying what would do away with obstacles."""
    if missing not in get_args(Missing):
        raise DataError(f"unknown treatment missing={missing!r}; it is 'error', 'drop', 'impute' or 'branch'")
    predicted = [*targets, *([] if target is None else [target])]
    frame = with_text_names(
        frame, [name for name in drop if name not in (*predicted, weight, treatment, *rewards)]
    )
    others = {*predicted, weight, treatment, *rewards, *drop}
    as_sets = column_names(categorical, [name for name in frame.columns if name not in others])
    keep = None if keep is None else (*keep, *(as_sets or ()))
    named = {
        "target": [] if target is None else [target],
        "rewards": rewards,
        "targets": targets,
        "weight": [] if weight is None else [weight],
        "treatment": [] if treatment is None else [treatment],
        "keep": keep or (),
    }
    for role, names in named.items():
        for name in names:
            _require_column(frame, name, role)
    if (target is not None) + bool(rewards) + bool(targets) != 1:
        raise DataError(
            "a table has a target, several targets, or rewards",
            hint="name one column as target=, several as targets=, or two or more as rewards=",
            option="name one column with --target, several with --targets, or two or more with --rewards",
        )
    roles = {"target": target, "weights": weight, "treatments": treatment}
    roles |= {f"reward of decision {k}": name for k, name in enumerate(rewards)}
    roles |= {f"target {k}": name for k, name in enumerate(targets)}
    taken = {role: name for role, name in roles.items() if name is not None}
    for (role, name), (other, same) in combinations(taken.items(), 2):
        if name == same:
            raise DataError(f"{name!r} is both the {role} and the column of {other}; name two columns")
    if frame.shape[1] == len(taken):
        named_as = [f"the {role} {name!r}" for role, name in taken.items()]
        only = "is the only column" if len(taken) == 1 else "are the only columns"
        raise DataError(f"{' and '.join(named_as)} {only}: there are no features; add feature columns")
    if frame.empty:
        raise DataError("the table has no rows; add data below the column names")
    texts = {*(keep or ()), *(() if treatment is None else (treatment,))}
    texts |= set(predicted) if task == "classification" else set()
    convention = resolved(frame, convention, (*texts, *taken.values()))
    frame, said = read_columns(frame, convention, texts=texts, few=predicted, most=MAX_NUMERIC_CLASSES)
    frame = dates_as_numbers(frame, convention.dates, (*taken.values(), *(keep or ())), convention.date_order)
    convention = replace(convention, date_order=frame.attrs.get("date_order", convention.date_order))
    if keep is not None:  # of training samples
        refuse_empty(frame)
    may_lack = [target] if unlabelled and target is not None else []
    if missing == "error":
        lacking = _caught(partial(refuse_missing, target=target), frame.drop(columns=may_lack))
        refuse_together(
            [
                *lacking,
                *_doubtful_targets(frame, predicted, task, convention),
                *(
                    doubtful_text(frame.drop(columns=list(taken.values())), keep, convention)
                    if keep is not None
                    else ()
                ),
            ]
        )
    frame, notes = _without_missing(
        frame, missing, [name for name in taken.values() if name not in may_lack], may_lack
    )
    samples = map(str, frame.index) if frame.index.is_unique else map(str, range(len(frame)))
    column = None if weight is None else numbers(frame[weight])
    chosen, weights, dropped = positive_weights(
        column, len(frame), f"column {weight!r}", lambda k: row_text(frame, frame.index[k])
    )
    frame = frame[chosen]
    features = frame.drop(columns=list(taken.values()))
    if keep is not None:
        refuse_together(_doubtful_targets(frame, predicted, task, convention))
        refuse_doubtful_text(features, keep, convention)
    ids = tuple(id for id, kept in zip(samples, chosen, strict=True) if kept)
    given = None if treatment is None else frame[treatment]
    return Table(
        features=features,
        target=frame[list(targets)] if targets else None if target is None else frame[target],
        treatment=given,
        samples=ids,
        weights=weights,
        notes=(*said, *notes, *dropped, *_remarks(features, as_sets, missing)),
        rewards=np.column_stack([numbers(frame[name]) for name in rewards]) if rewards else None,
        convention=convention,
    )


def _doubtful_targets(
    frame: Any, targets: Sequence[str], task: str | None, convention: Convention
) -> list[DataError]:
    """Return the errors that targets of numbers are written under another convention."""
    return [error for name in targets for error in _doubtful_target(frame, name, task, convention)]


def _doubtful_target(frame: Any, target: str, task: str | None, convention: Convention) -> list[DataError]:
    """Return the error that a target of numbers is written under another convention, in a list."""
    if task == "classification" or not is_text(frame[target]):
        return []
    levels = levels_of(frame[target])
    if len(levels) <= MAX_NUMERIC_CLASSES:
        return []
    other = _other_convention(levels, convention)
    if other is None:
        return []
    told = _written_otherwise([target], frame, other, convention, frame)
    hint = told.hint.replace(
        "take the column as text with keep=", "take it as classes with task='classification'"
    )
    option = told.option.replace(
        "--keep COLUMN takes a column as text", "--task classification takes it as classes"
    )
    return [DataError(f"target {told.message}", hint=hint, option=option)]


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


def refuse_doubtful_text(features: Any, keep: Collection[str] = (), convention: Convention = PLAIN) -> None:
    """Refuse columns of text that are numbers with a slip among them, or dates, names or identifiers.

    Parameters
    ----------
    features
        DataFrame of the feature columns.
    keep
        Names of columns that are features all the same.
    convention
        How numbers are written.

    Raises
    ------
    DataError
        Naming a value that makes text of numbers and its row, or the columns and how many levels each has.
    """
    refuse_together(doubtful_text(features, keep, convention))


def doubtful_text(
    features: Any, keep: Collection[str] = (), convention: Convention = PLAIN
) -> list[DataError]:
    """Return all errors of :func:`refuse_doubtful_text`."""
    dated = [name for name, column in features.items() if name not in keep and many_dates(column)]
    found = [dates_refused(dated, features)] if dated else []
    texts: dict[str, Any] = {}
    for name, column in features.items():
        try:
            if name not in keep and name not in dated and not is_numeric(column):
                texts[name] = column
        except DataError as error:
            found.append(error)
    levels = {name: levels_of(column) for name, column in texts.items() if is_text(column)}
    otherwise: dict[Convention, list[str]] = {}
    refused = set()
    for name in levels:
        other = _other_convention(levels[name], convention)
        refusal = None
        if other is not None:
            otherwise.setdefault(other, []).append(name)
            refused.add(name)
        else:
            refusal = _not_read(texts[name], levels[name], convention, features)
        if refusal is not None:
            found.append(refusal)
            refused.add(name)
    for other, names in otherwise.items():
        found.append(_written_otherwise(names, texts, other, convention, features))
    counts = {name: column.nunique() for name, column in texts.items() if name not in refused}
    many = [name for name, count in counts.items() if count > MAX_LEVELS]
    if many:
        columns = some_of([f"{name!r} ({counts[name]} levels)" for name in many])
        refusal = DataError(
            f"{columns}: a feature for every level of a date, a name or an identifier tells nothing of new samples, "
            f"and at most {MAX_LEVELS} levels are taken",
            hint=f"leave it out with drop=[{many[0]!r}], or take it all the same with keep=[{many[0]!r}]",
            option=f"leave it out with --drop {shlex.quote(many[0])}, or take it all the same with --keep",
        ).cured_by(" ".join(f"--drop {shlex.quote(name)}" for name in many), drop=tuple(many))
        found.append(refusal)
    return found


def _other_convention(levels: Any, convention: Convention) -> Convention | None:
    """Return a convention under which all levels are numbers, where they are none under the given one."""
    if read_all(levels, convention) is not None:
        return None
    return next((other for other in convention.others() if read_all(levels, other) is not None), None)


def _written_otherwise(
    names: Sequence[str], texts: Mapping[str, Any], other: Convention, given: Convention, features: Any
) -> DataError:
    """Return the error that columns of numbers are written under another convention than the table's."""
    shown = []
    for name in names:
        levels = levels_of(texts[name])
        at = int(numbers_in(levels, given).isna().to_numpy().argmax())
        row = _row_of(texts[name], levels.iloc[at])
        shown.append(f"{name!r} ({levels.iloc[at]!r:.30} in {row_text(features, row)})")
    python, option = other.options(given)
    thousands = other.decimal == given.decimal
    what = "thousands signs" if thousands else f"decimal {'commas' if other.decimal == ',' else 'points'}"
    decimal = Convention(decimal="," if given.decimal == "." else ".")
    also = thousands and all(read_all(levels_of(texts[name]), decimal) is not None for name in names)
    return DataError(
        f"{some_of(shown)}: this looks like {what}",
        hint=f"read the file with {python} (or take the column as text with keep=)"
        + (f"; if they are decimal signs, with decimal={decimal.decimal!r}" if also else ""),
        option=f"{option} reads them as numbers (--keep COLUMN takes a column as text)"
        + (f"; if they are decimal signs, --decimal {decimal.decimal} does" if also else ""),
    ).cured_by(option, decimal=other.decimal, thousands=other.thousands)


def _not_read(column: Any, levels: Any, convention: Convention, features: Any) -> DataError | None:
    """Return the error that most values of a column are numbers, or dates, and some are not; or ``None``."""
    name, read = str(column.name), read_all(levels, convention)
    if read is not None:
        if not read.sign:  # numbers that are text one and all were meant so
            return None
        return DataError(
            f"column {name!r} holds numbers with a sign, {levels.iloc[0]!r:.60}; as text, each would be a feature",
            hint="make them numbers (Dataset.from_frame does)",
        )
    slip = _slip_among_numbers(column, convention)
    named = shlex.quote(name)
    if slip is not None and slip.numbers >= MANY_NUMBERS:
        absent, listed = "", ""
        if 0 < len(slip.words) <= _FEW_WORDS:
            absent = f", read it as missing with missing_values={list(slip.words)!r}"
            listed = f", read it as missing with --missing-values {shlex.quote(','.join(slip.words))}"
        return DataError(
            f"column {name!r} holds numbers and text: {row_text(features, slip.row)} holds {slip.value!r:.60}, and "
            f"{slip.numbers} of its {slip.levels} different values are numbers; as text, each would be a feature",
            hint=f"correct the value (with a decimal point, or empty for missing=){absent}, leave the column out with "
            f"drop=[{name!r}], or take it as text with keep=[{name!r}] or astype('category')",
            option=f"correct the value (with a decimal point, or empty for --missing){listed}, leave the column out "
            f"with --drop {named}, or take it as text with --keep {named}",
        ).cured_by(_cure(slip.words, name))
    dates = int(is_date(levels).sum()) if _mostly(is_date(sample_of(levels))) else 0
    if MANY_NUMBERS <= dates < len(levels) and 2 * dates > len(levels):
        words = [level for level, dated in zip(levels, is_date(levels), strict=True) if not dated]
        absent, listed = "", ""
        if len(words) <= _FEW_WORDS:
            absent = f", read it as missing with missing_values={words!r}"
            listed = f", read it as missing with --missing-values {shlex.quote(','.join(words))}"
        return DataError(
            f"column {name!r} holds dates and text: {row_text(features, _row_of(column, words[0]))} holds "
            f"{words[0]!r:.60}, and {dates} of its {len(levels)} different values are dates; as text, each would be a "
            "feature",
            hint=f"correct the value{absent}, leave the column out with drop=[{name!r}], or take it as text with "
            f"keep=[{name!r}]",
            option=f"correct the value{listed}, leave the column out with --drop {named}, or take it as text with "
            f"--keep {named}",
        )
    return None


def _cure(words: Sequence[str], name: str) -> Remedy:
    """Return what reads a column of numbers and a few words, or leaves it out."""
    if 0 < len(words) <= _FEW_WORDS:
        return Remedy(f"--missing-values {shlex.quote(','.join(words))}", {"missing_values": tuple(words)})
    return Remedy(f"--drop {shlex.quote(name)}", {"drop": (name,)})


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
        listed = [f"\n  ({k}) {error}" for k, error in enumerate(found, 1)]
        options = [f"\n  ({k}) {error.on_command_line}" for k, error in enumerate(found, 1)]
        error = DataError(
            f"{len(found)} things stand in the way:", hint="".join(listed), option="".join(options)
        )
        # What cannot be done away with by a setting has to be corrected first.
        if all(one.remedies for one in found):
            error.remedies = tuple(remedy for one in found for remedy in one.remedies)
        raise error


#: Times that further obstacles are looked for behind those that are done away with.
MAX_ROUNDS = 4

#: Most words beside numbers that a message takes for missing values.
_FEW_WORDS = 3


class _Slip(NamedTuple):
    """The first value of a column of text that is no number although most are; how many are, of how many.

    ``words`` are the values without which all are numbers.
    """

    row: object
    value: str
    numbers: int
    levels: int
    words: tuple[str, ...]


def _slip_among_numbers(column: Any, convention: Convention = PLAIN) -> _Slip | None:
    """Return what makes text of a column whose values are mostly numbers, however written; or ``None``.

    Numbers that are text one and all, and categories, were meant so.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    levels = levels_of(column)
    if not _mostly(_meant(sample_of(levels), convention)):
        return None
    plain, meant = numbers_in(levels, convention).notna(), _meant(levels, convention)
    count = int(meant.sum())
    if plain.all() or 2 * count <= len(levels) or read_all(levels, convention) is not None:
        return None
    # What is no number at all comes before one that is written otherwise.
    value = levels[~(plain if meant.all() else meant)].iloc[0]
    read = read_all(levels[meant], convention) is not None
    return _Slip(_row_of(column, value), value, count, len(levels), tuple(levels[~meant]) if read else ())


def _meant(levels: Any, convention: Convention) -> Any:
    """Return whether each of some texts is a number, however it is written, as a pandas Series."""
    parts = signed_parts(levels)
    number = parts["number"].where(parts["number"].notna(), "")
    meant = numbers_in(levels, convention).notna()
    if not number.any():
        return meant
    for other in (convention, *convention.others()):
        meant |= numbers_in(number, other).notna()
    return meant


def _mostly(some: Any) -> bool:
    """Return whether so many of a sample are true that more than half of all may be."""
    return bool(3 * some.sum() >= len(some))


def _row_of(column: Any, value: str) -> object:
    """Return the label of the first row with a value, blanks at its ends left out."""
    found: object = column.index[(column.astype(str).str.strip() == value).to_numpy().argmax()]
    return found


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


def with_text_names(frame: Any, drop: Collection[str] = ()) -> Any:
    """Return a table whose column names are text, without some columns.

    Raises
    ------
    DataError
        If it is not a pandas DataFrame, two of the columns that are left share a name, or there is none of a name to
        leave out.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame) and type(frame).__module__.split(".")[0] in ARROW_TABLES:
        frame = _of_arrow(frame)
    if not isinstance(frame, pd.DataFrame):
        raise DataError(
            f"a {type(frame).__name__} is no table: pass a pandas DataFrame, or use Dataset.from_arrays"
        )
    frame = frame.set_axis([str(name) for name in frame.columns], axis="columns")
    for name in drop:
        _require_column(frame, name, "drop")
    if drop:
        frame = frame.loc[:, [name not in drop for name in frame.columns]]
    Axis(tuple(frame.columns), "column")
    return frame


def renamed(frame: Any, names: Sequence[str]) -> Any:
    """Return a table whose columns have other names, one for each in order.

    Raises
    ------
    DataError
        If there is not one name for each column.
    """
    if len(names) != len(frame.columns):
        raise DataError(
            f"{len(names)} names for {len(frame.columns)} columns ({some_of(list(names), 20)}); name every column"
        )
    return frame.set_axis(list(map(str, names)), axis="columns")


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


def _without_missing(
    frame: Any, missing: Missing, required: list[str], may_lack: list[str]
) -> tuple[Any, tuple[str, ...]]:
    """Refuse missing values, or drop the rows that have some, and return the table and what was done.

    Where gaps of features are left to the encoding, only rows without a ``required`` value are dropped; gaps of columns
    that ``may_lack`` values are none.
    """
    gaps = frame.isna()
    gaps[may_lack] = False
    lacking = gaps.any(axis="columns")
    if not lacking.any():
        return frame, ()
    if missing in ("impute", "branch"):
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
            text = (
                f"{row_text(features, slip.row)} holds {slip.value!r:.60}, which is no number: "
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
        else:
            remarks += _stands_for_missing(str(name), column)
    return remarks


def _stands_for_missing(name: str, column: Any) -> list[str]:
    """Remark on a number of nines, such as -999, that is repeated far from all other values of a column."""
    if column.dtype.kind not in "iuf":
        return []
    values = column.dropna().to_numpy()
    for value in {values.min(), values.max()} if len(values) else ():
        others = values[values != value]
        count = len(values) - len(others)
        if count > 1 and len(others) and _NINES.fullmatch(f"{value:.15g}"):
            low, high = others.min(), others.max()
            if max(low - value, value - high) > high - low:
                return [
                    f"column {name!r} holds {value:.15g} in {count} rows, far from all others ({low:.6g} to "
                    f"{high:.6g}); if it stands for a missing value, say so with missing_values (--missing-values)"
                ]
    return []


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
