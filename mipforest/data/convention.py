"""How numbers are written in texts: decimal sign, thousands sign, and a sign such as % that all values have.

One rule tells what a column of text is. It is a column of numbers where every value is a number under the convention,
each without a sign that all of them have: a per cent sign, a currency, or a unit. A column tells its own convention
where it can be read in one way alone: points beside commas (``2.018,5``), or thousands set apart by blanks or
apostrophes. A column of commas without points does not: ``1,479`` is a decimal comma or a thousands sign.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from mipforest.data.lines import row_text
from mipforest.errors import DataError, some_of

#: How dates become numbers; ``None`` refuses them.
Dates = Literal["days", "parts"]

#: What comes first in dates such as 1/5/2019: the day, or the month.
DateOrder = Literal["dmy", "mdy"]

#: Up to here float64 holds every whole number; beyond, neighbours are rounded to the same value.
EXACT = 1 << 53

#: Different numbers from which on a column of text is one of numbers with a slip; of fewer, such as 2, 3, 4 and
#: "5more", all values are levels, and a remark names the one that is no number.
MANY_NUMBERS = 10

#: Texts that are looked at before all of a column are.
_SAMPLE = 200

#: Signs that set thousands apart, each with how it is found in texts.
_THOUSANDS = {",": ",", ".": r"\.", "'": "['\u2019]", " ": "[ \u00a0\u202f]"}

_CURRENCY = (
    "(?:US|AU|CA|NZ|HK)?[$\u00a2-\u00a5\u20a0-\u20cf]"
    "|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|BRL|Rs\\.?"
)

_UNIT = r"°?[^\W\d_]+(?:/[^\W\d_]+)?[²³]?"

#: A number with what may stand before and behind it.
_SIGNED = re.compile(
    rf"(?P<minus>[+\-\u2212]?)\s*(?P<before>{_CURRENCY})?\s*"
    r"(?P<number>[+\-\u2212]?[.,]?\d(?:[\d.,'\u2019 \u00a0\u202f]*\d)?[.,]?(?:[eE][+-]?\d+)?)"
    rf"\s*(?P<behind>%|‰|{_CURRENCY}|{_UNIT})?"
)


@dataclass(frozen=True, kw_only=True)
class Convention:
    """How the values of a table are written.

    Parameters
    ----------
    decimal
        ``"."`` or ``","``.
    thousands
        Sign that sets thousands apart: ``","``, ``"."``, ``"'"`` or a blank; ``None`` for none.
    missing_values
        Words and numbers that stand for a missing value.
    dates
        ``"days"``, ``"parts"`` or ``None``; see :func:`~mipforest.data.dates.dates_as_numbers`.
    date_order
        What comes first in dates such as 1/5/2019: ``"dmy"`` the day, ``"mdy"`` the month; ``None`` where each column
        tells.

    Raises
    ------
    DataError
        If one of them is something else, or two contradict each other.
    """

    decimal: str = "."
    thousands: str | None = None
    missing_values: tuple[str, ...] = ()
    dates: Dates | None = None
    date_order: DateOrder | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise DataError(f"the decimal sign is {self.decimal!r}; give . or ,")
        if self.thousands is not None and self.thousands not in _THOUSANDS:
            raise DataError(
                f"the thousands sign is {self.thousands!r}; give one of {' '.join(map(repr, _THOUSANDS))}"
            )
        if self.thousands == self.decimal:
            other = "," if self.decimal == "." else "."
            raise DataError(
                f"{self.decimal!r} is both the decimal sign and the thousands sign",
                hint=f"also give decimal={other!r}",
                option=f"also give --decimal {other}",
            )
        if self.dates is not None and self.dates not in get_args(Dates):
            raise DataError(f"unknown treatment dates={self.dates!r}; it is 'days' or 'parts', or left out")
        if self.date_order is not None and self.date_order not in get_args(DateOrder):
            raise DataError(f"unknown order of dates {self.date_order!r}; it is 'dmy' or 'mdy', or left out")

    def others(self) -> Iterator[Convention]:
        """Yield other signs of numbers, the likeliest first: of ``1,479`` alone the comma sets thousands apart."""
        other = "," if self.decimal == "." else "."
        if self.thousands is None:
            for sign in _THOUSANDS:
                if sign != self.decimal:
                    yield replace(self, thousands=sign)
        for thousands in (None, *_THOUSANDS):
            if thousands != other:
                yield replace(self, decimal=other, thousands=thousands)

    def options(self, than: Convention) -> tuple[str, str]:
        """Write the signs in which it differs from another convention, in Python and on the command line."""
        changed = [
            (name, getattr(self, name))
            for name in ("decimal", "thousands")
            if getattr(self, name) != getattr(than, name)
        ]
        quoted = {"'": '"\'"', " ": "' '"}
        return (
            ", ".join(f"{name}={sign!r}" for name, sign in changed),
            " ".join(f"--{name} {quoted.get(sign, sign)}" for name, sign in changed),
        )


#: How values are written unless something else is said.
PLAIN = Convention()


class Reading(NamedTuple):
    """Texts as numbers.

    Attributes
    ----------
    values
        pandas Series of the numbers, in the order of the texts.
    sign
        What every text has beside its number, such as ``%``; empty for none.
    """

    values: Any
    sign: str


def levels_of(column: Any) -> Any:
    """Return the different values of a column as a pandas Series of texts without blanks at their ends."""
    import pandas as pd

    # Of type object: expressions are Python's, whichever way pandas stores texts.
    return pd.Series([str(value).strip() for value in column.dropna().unique()], dtype=object)


def numbers_in(texts: Any, convention: Convention = PLAIN) -> Any:
    """Return the numbers of texts, each a number alone, and not-a-number for all others.

    Parameters
    ----------
    texts
        pandas Series of texts.
    convention
        Decimal sign and thousands sign; thousands are groups of exactly three digits.
    """
    import pandas as pd

    texts = texts.astype(object)
    if convention.decimal == "." and convention.thousands is None:
        return pd.to_numeric(texts, errors="coerce")
    point, whole = re.escape(convention.decimal), r"\d+"
    if convention.thousands is not None:
        between = _THOUSANDS[convention.thousands]
        whole = rf"(?:\d{{1,3}}(?:{between}\d{{3}})+|\d+)"
        found = texts.str.fullmatch(rf"[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?")
        plain = texts.str.replace(between, "", regex=True)
    else:
        found = texts.str.fullmatch(rf"[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?")
        plain = texts
    plain = plain.str.replace(convention.decimal, ".", regex=False)
    return pd.to_numeric(plain.where(found.astype(bool)), errors="coerce")


def read_all(levels: Any, convention: Convention = PLAIN, *, known: bool = False) -> Reading | None:
    """Return the numbers of texts where each is one under a convention, beside a sign that all have; else ``None``.

    Parameters
    ----------
    levels
        pandas Series of different texts.
    convention
        Decimal sign and thousands sign.
    known
        Whether they are known to be numbers, so that signs may be absent. Otherwise a unit is taken beside ten or more
        different numbers: of fewer, such as 36 months and 60 months, all texts are levels.
    """
    if not len(levels):
        return None
    levels = _with_minus(levels)
    few = sample_of(levels)
    # Of names and identifiers, which may be many, some tell.
    if _has_no_number(few):
        return None
    if len(few) < len(levels) and read_all(few, convention, known=known) is None:
        return None
    values = numbers_in(levels, convention)
    if values.notna().all():
        return Reading(_exact(levels, values, convention), "")
    parts = signed_parts(levels)
    if parts["number"].isna().any():
        return None
    if known:
        values = numbers_in(parts["number"], convention)
        return Reading(_exact(parts["number"], values, convention), "") if values.notna().all() else None
    before, behind = parts["before"].unique(), parts["behind"].unique()
    if len(before) != 1 or len(behind) != 1 or bool(before[0]) == bool(behind[0]):
        return None
    sign = before[0] or behind[0]
    if re.fullmatch(f"%|‰|{_CURRENCY}", sign) is None and len(levels) < MANY_NUMBERS:
        return None
    values = numbers_in(parts["number"], convention)
    return Reading(_exact(parts["number"], values, convention), sign) if values.notna().all() else None


def _with_minus(levels: Any) -> Any:
    """Return texts with a minus in front for what stands for one: brackets, a minus behind, and that of typography."""
    import pandas as pd

    texts = levels.tolist()
    for written, meant in (
        (r"^\(([^()]*\d[^()]*)\)$", r"-\1"),
        (r"^([^-]*\d)\s?-$", r"-\1"),
        ("^\u2212", "-"),
    ):
        texts = [re.sub(written, meant, text) for text in texts]
    return pd.Series(texts, index=levels.index, dtype=object)


def _has_no_number(texts: Any) -> bool:
    """Return whether the first text that is no digits with signs is no other number either, such as an infinity."""
    import pandas as pd

    other = next((text for text in texts if _SIGNED.fullmatch(text) is None), None)
    return other is not None and bool(pd.isna(pd.to_numeric(other, errors="coerce")))


def sample_of(levels: Any) -> Any:
    """Return at most some hundreds of texts, evenly spaced."""
    return levels.iloc[:: len(levels) // _SAMPLE + 1]


def signed_parts(levels: Any) -> Any:
    """Return a table of ``number``, ``before`` and ``behind`` of texts; a number that is not there is missing."""
    found = levels.astype(object).str.extract(f"^(?:{_SIGNED.pattern})$", flags=_SIGNED.flags)
    number = (found["minus"] + found["number"]).str.replace("\u2212", "-", regex=False)
    return found[["before", "behind"]].fillna("").assign(number=number)


def _exact(texts: Any, values: Any, convention: Convention) -> Any:
    """Keep whole numbers that float64 would round."""
    if values.dtype.kind != "f" or not np.isfinite(values).all() or not (values.abs() >= EXACT).any():
        return values
    plain = texts.astype(object).str.replace(
        _THOUSANDS.get(convention.thousands or "", "(?!)"), "", regex=True
    )
    whole = plain.str.fullmatch(r"[+-]?\d{1,4000}")
    exact = values.astype(object)
    exact[whole] = [int(digits) for digits in plain[whole]]
    return exact


def tells_itself(levels: Any, given: Convention = PLAIN) -> Convention | None:
    """Return the convention that texts of numbers tell by themselves, other than the given one; or ``None``.

    They do where they can be read in one way alone: with points beside commas, such as ``2.018,5``, with several
    thousands signs, such as ``1.250.000``, or with blanks or apostrophes between thousands.
    """
    if given.thousands is not None or given.decimal != ".":
        return None
    levels = _with_minus(levels)
    few = sample_of(levels)
    if read_all(few, given) is None and all(read_all(few, other) is None for other in given.others()):
        return None
    both = levels.str.contains(".", regex=False) & levels.str.contains(",", regex=False)
    several = levels.str.contains(r"[.,]\d{3}[.,]\d{3}", regex=True)
    apart = levels.str.contains(r"\d['\u2019 \u00a0\u202f]\d{3}", regex=True)
    if not (both | several | apart).any() or read_all(levels, given) is not None:
        return None
    return next((other for other in given.others() if read_all(levels, other) is not None), None)


def resolved(frame: Any, given: Convention, but: Collection[str] = ()) -> Convention:
    """Return the convention that the columns of text of a table tell, or else the given one.

    Parameters
    ----------
    frame
        pandas DataFrame.
    given
        What the user says; a thousands sign or a decimal comma is final.
    but
        Names of columns that are texts.

    Raises
    ------
    DataError
        If two columns tell different ones.
    """
    found: dict[Convention, str] = {}
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if str(name) in but or not is_text(column):
            continue
        told = tells_itself(levels_of(column), given)
        if told is not None:
            found.setdefault(told, str(name))
    if len(found) > 1:
        columns = [f"{name!r} ({other.options(given)[0]})" for other, name in found.items()]
        raise DataError(
            f"columns of numbers are written in different ways: {some_of(columns)}; write them in one way",
            hint="or leave one of them out with drop=",
            option="or leave one of them out with --drop",
        )
    return next(iter(found), given)


def is_text(column: Any) -> bool:
    """Return whether a column holds texts alone, and is no categorical column."""
    import pandas as pd

    if column.dtype.kind in "biufcmM" or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return bool(pd.api.types.infer_dtype(column, skipna=True) == "string")


def stripped(column: Any) -> Any:
    """Return a column of texts without blanks at their ends; other values stay."""
    import pandas as pd

    if column.dtype.kind in "biufcmM" or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    if pd.api.types.infer_dtype(column, skipna=True) not in ("string", "mixed", "mixed-integer"):
        return column
    texts = column.str.strip()
    changed = (texts != column) & texts.notna()
    return column.where(~changed, texts) if changed.any() else column


def without_words(column: Any, words: Collection[str]) -> Any:
    """Return a column in which some words are missing values; of numbers, the words that are numbers."""
    import pandas as pd

    if not words or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    if column.dtype.kind in "iuf":
        wanted = pd.to_numeric(pd.Series(list(words), dtype=object), errors="coerce").dropna()
        missing = column.isin(wanted)
        if not missing.any():
            return column
        # Whole numbers that float64 would round stay whole.
        large = column.dtype.kind != "f" and bool((column.abs() >= EXACT).any())
        return column.astype(object if large else float).mask(missing, None if large else np.nan)
    return column.mask(column.isin(list(words)))


class Read(NamedTuple):
    """A table whose columns of numbers written as text became numbers.

    Attributes
    ----------
    frame
        The table.
    notes
        What was done, in sentences.
    """

    frame: Any
    notes: tuple[str, ...]


def read_columns(
    frame: Any,
    convention: Convention,
    *,
    texts: Collection[str] = (),
    few: Collection[str] = (),
    most: int = 0,
    known: Collection[str] = (),
) -> Read:
    """Return a table as its values are meant: without blanks at ends of texts, and with numbers for their texts.

    Parameters
    ----------
    frame
        pandas DataFrame with one text each as names of columns.
    convention
        How values are written.
    texts
        Names of columns that stay texts.
    few
        Names of columns that stay texts where at most ``most`` of their values differ: they are classes.
    known
        Names of columns that are known to hold numbers, with or without a sign.

    Raises
    ------
    DataError
        If a value of a column that is known to hold numbers is none; names the first such row.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    notes: list[str] = []
    for name, given in frame.items():
        column = without_words(stripped(given), convention.missing_values)
        if name not in texts and is_text(column):
            levels = pd.Series(column.dropna().unique(), dtype=object)
            is_known = name in known
            read = (
                None if name in few and len(levels) <= most else read_all(levels, convention, known=is_known)
            )
            if is_known and read is None and len(levels):
                raise _no_number(column, levels, convention, frame)
            # Plain numbers that are text one and all were meant so.
            plain = read is not None and not read.sign and _are_plain(levels, convention)
            lost = is_known or column.isna().sum() > given.isna().sum()
            if read is not None and (not plain or lost):
                notes += _said(str(name), levels, read)
                column = column.map(dict(zip(levels, read.values, strict=True)))
                column = column.astype(float) if read.values.dtype.kind == "f" else column.infer_objects()
        columns[name] = column
    changed = pd.DataFrame(columns, index=frame.index)
    changed.attrs |= frame.attrs
    return Read(changed, tuple(notes))


def _are_plain(levels: Any, convention: Convention) -> bool:
    """Return whether texts are numbers that need no convention."""
    usual = convention.decimal == "." and convention.thousands is None
    return bool(numbers_in(levels).notna().all() if usual else levels.str.fullmatch(r"[+-]?\d+").all())


def _no_number(column: Any, levels: Any, convention: Convention, frame: Any) -> DataError:
    """Return the error that a value of a column of numbers is none."""
    alone = (read_all(levels[levels == level], convention, known=True) is None for level in levels)
    value = next((level for level, bad in zip(levels, alone, strict=True) if bad), levels.iloc[0])
    row = column.index[(column == value).to_numpy().argmax()]
    return DataError(
        f"column {column.name!r} must hold numbers, but {row_text(frame, row)} holds {value!r}; correct the value"
    )


def _said(name: str, levels: Any, read: Reading) -> list[str]:
    """Say what was read of a column."""
    sign = f", without their {read.sign!r}" if read.sign else ""
    return [f"column {name!r} read as numbers{sign}: {levels.iloc[0]!r:.30} is {read.values.iloc[0]:.15g}"]
