"""Columns of dates and of times of day: how they are written, and how they become numbers.

Taken for dates are texts with the year first (``2024-03-01``, ``2024/3/1``, ``2019-01``), with the day or the month
first (``1.3.2024``, ``19-07-2011``, ``7/19/2011``), and with the month as a word (``Jul 19, 2011``, ``19 July 2011``,
``Jul 2011``), each optionally with a time; times of day alone (``14:31``, ``2:31 pm``); and types of dates of pandas.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from mipforest.data.convention import MANY_NUMBERS, DateOrder, Dates, is_text, levels_of, sample_of
from mipforest.data.lines import row_text
from mipforest.errors import DataError, some_of

_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d+)?))?"
    r"\s?(?P<half>[AaPp]\.?[Mm]\.?)?\s?(?P<zone>Z|[+-]\d{2}:?\d{2})?"
)

_AT = rf"(?:(?:T|,?\s+){_TIME})?"

#: In one text, as one of them is the name of a model too.
_MONTHS = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())  # noqa: SIM905

_MONTH = (
    "(?P<month>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)

_DAY_OF_WEEK = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\.?,?\s+)?"

#: Ways to write a date, and a time of day; where the year is last, the order of ``first`` and
#: ``then`` is to be found.
_WAYS = {
    "year first": rf"(?P<year>\d{{4}})(?P<sign>[-/.])(?P<month>\d{{1,2}})(?P=sign)(?P<day>\d{{1,2}}){_AT}",
    "year and month": r"(?P<year>\d{4})[-/](?P<month>\d{1,2})",
    "year last": rf"(?P<first>\d{{1,2}})(?P<sign>[-/.])(?P<then>\d{{1,2}})(?P=sign)(?P<year>\d{{4}}|\d{{2}}){_AT}",
    "day and word": rf"{_DAY_OF_WEEK}(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?[ -]{_MONTH},?[ -]"
    rf"(?P<year>\d{{4}}|\d{{2}}){_AT}",
    "word and day": rf"{_DAY_OF_WEEK}{_MONTH}[ -](?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,\s*|[ -])"
    rf"(?P<year>\d{{4}}){_AT}",
    "word and year": rf"{_MONTH},?[ -](?P<year>\d{{4}})",
    "time": _TIME,
}

#: Ways that have no day.
_MONTHLY = ("year and month", "word and year")

_DAY = np.timedelta64(1, "D")

#: Parts of a date, and how pandas calls them.
_PARTS = {"year": "year", "month": "month", "day": "day", "weekday": "day_of_week"}

#: Years of two digits from here on are of the 20th century, as POSIX has it.
_CENTURY = 69


class Moments(NamedTuple):
    """Texts as dates or times of day.

    Attributes
    ----------
    values
        pandas Series of dates, in UTC, or of hours since midnight; missing where there is no such day or time.
    kind
        ``"day"``, ``"month"`` or ``"time"``.
    order
        Order of day and month where a text such as 1/5/2019 needs one: as told, or as some value tells.
    doubtful
        The first text whose order nothing tells; ``None`` where there is none.
    """

    values: Any
    kind: str
    order: DateOrder | None
    doubtful: str | None


def is_date(levels: Any) -> Any:
    """Return whether each of some texts is written as a date or time, as a pandas Series."""
    return _way_of(levels).notna()


def _way_of(levels: Any) -> Any:
    """Return how each text is written; missing where it is no date."""
    import pandas as pd

    ways = [
        next((name for name, way in _WAYS.items() if re.fullmatch(way, text, re.IGNORECASE)), pd.NA)
        for text in levels
    ]
    return pd.Series(ways, index=levels.index, dtype=object)


def read_moments(levels: Any, order: DateOrder | None = None) -> Moments | None:
    """Read texts as dates, or as times of day; ``None`` where some are neither.

    Parameters
    ----------
    levels
        pandas Series of different texts.
    order
        Whether the day or the month comes first in 1/5/2019; ``None`` where a value above 12 tells. With points, as in
        1.5.2019, the day does unless told otherwise.
    """
    import pandas as pd

    if not len(levels):
        return None
    ways = _way_of(levels)
    if ways.isna().any() or ((ways == "time").any() and not (ways == "time").all()):
        return None
    if (ways == "time").all():
        return Moments(_hours(levels.str.extract(f"^{_TIME}$", flags=re.IGNORECASE)), "time", None, None)
    last = levels[ways == "year last"]
    found, doubtful = _order_of(last, order)
    parts = []
    for name in ways.unique():
        chosen = levels[ways == name]
        part = chosen.str.extract(f"^{_WAYS[name]}$", flags=re.IGNORECASE)
        if name == "year last":
            points = part["sign"] == "."
            day_first = points if found is None else pd.Series(found == "dmy", index=part.index)
            part["day"] = part["first"].where(day_first, part["then"])
            part["month"] = part["then"].where(day_first, part["first"])
        if name in _MONTHLY:
            part["day"] = "1"
        parts.append(part)
    table = pd.concat(parts).reindex(levels.index)
    names = table["month"].str[:3].str.lower()
    month = names.map({word: k for k, word in enumerate(_MONTHS, 1)})
    year = table["year"].astype(int)
    short = table["year"].str.len() == 2
    dates = pd.to_datetime(
        pd.DataFrame(
            {
                "year": year + short * np.where(year >= _CENTURY, 1900, 2000),
                "month": month.fillna(pd.to_numeric(table["month"], errors="coerce")),
                "day": table["day"].astype(int),
            }
        ),
        errors="coerce",
        utc=True,
    )
    if "hour" in table:
        timed = table["hour"].notna()
        hours = _hours(table[timed])
        zones = _zones(table["zone"][timed])
        seconds = ((hours - zones) * 3600).round(6)
        dates[timed] = dates[timed] + pd.to_timedelta(seconds, unit="s")
    return Moments(dates, "month" if ways.isin(_MONTHLY).all() else "day", found, doubtful)


def _order_of(texts: Any, order: DateOrder | None) -> tuple[DateOrder | None, str | None]:
    """Return the order of day and month in texts such as 1/5/2019, and the first text of which nothing tells it."""
    if order is not None or not len(texts):
        return (order if len(texts) else None), None
    parts = texts.str.extract(r"^(?P<first>\d{1,2})(?P<sign>[-/.])(?P<then>\d{1,2})")
    first, then = parts["first"].astype(int), parts["then"].astype(int)
    if (first > 12).any():
        return "dmy", None
    if (then > 12).any():
        return "mdy", None
    unclear = texts[(first != then) & (parts["sign"] != ".")]
    return None, (None if unclear.empty else str(unclear.iloc[0]))


def _hours(parts: Any) -> Any:
    """Return hours since midnight; not-a-number where there is no such time."""
    import pandas as pd

    hour, minute, second = (pd.to_numeric(parts[name]).fillna(0) for name in ("hour", "minute", "second"))
    half = parts["half"].astype("string").str.lower().str[0].fillna("")
    twelve = (half != "") & (hour == 12)
    wrong = (
        (hour > np.where(half != "", 12, 23)) | ((half != "") & (hour == 0)) | (minute > 59) | (second >= 60)
    )
    hour = hour.where(~twelve, 0) + 12 * (half == "p").astype(int)
    return (hour + minute / 60 + second / 3600).mask(wrong)


def _zones(zones: Any) -> Any:
    """Return the hours by which time zones are ahead."""
    import pandas as pd

    parts = zones.astype("string").str.extract(r"^([+-])(\d{2}):?(\d{2})$")
    ahead = pd.to_numeric(parts[1]).fillna(0) + pd.to_numeric(parts[2]).fillna(0) / 60
    return (ahead * np.where(parts[0].fillna("+") == "-", -1, 1)).astype(float)


def holds_dates(column: Any) -> bool:
    """Return whether all values of a column that are there are dates or times, or texts that are written so."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    if column.dtype.kind in "biufc" or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    present = column.dropna()
    if not len(present):
        return False
    if pd.api.types.infer_dtype(present) in ("date", "datetime"):
        return True
    if not is_text(present):
        return False
    levels = levels_of(present)
    return bool(is_date(sample_of(levels)).all() and is_date(levels).all())


def many_dates(column: Any) -> bool:
    """Return whether a column holds dates; of texts, at least ten different ones."""
    if not holds_dates(column):
        return False
    return column.dtype.kind == "M" or bool(column.nunique() >= MANY_NUMBERS)


def dates_as_numbers(
    frame: Any, dates: Dates | None, but: Collection[str] = (), order: DateOrder | None = None
) -> Any:
    """Return a table whose columns of dates and times became numbers.

    Parameters
    ----------
    frame
        pandas DataFrame whose names of columns are texts.
    dates
        ``"days"``: one column ``NAME (days)``, days since 1970-01-01 with their fractions; of times of day
        ``NAME (hours)``. ``"parts"``: columns ``NAME (year)``, ``(month)`` from 1, ``(day)`` from 1 and
        ``(weekday)``, 0 on Mondays; of months the first two; of times ``NAME (hour)`` and ``(minute)``. ``None``
        changes nothing.
    but
        Names of columns that stay, such as the target.
    order
        What comes first in dates such as 1/5/2019, ``"dmy"`` or ``"mdy"``; ``None`` where values tell.

    Returns
    -------
    pandas.DataFrame
        The table; its attribute ``date_order`` is the order that was found, if one was.

    Raises
    ------
    DataError
        If ``dates`` is something else, a date does not exist, such as 31 February (names the first such row), or
        nothing tells the day from the month.
    """
    import pandas as pd

    if dates is None:
        return frame
    if dates not in get_args(Dates):
        raise DataError(f"unknown treatment dates={dates!r}; it is 'days' or 'parts', or left out")
    parts: dict[str, Any] = {}
    orders = set()
    for name, column in frame.items():
        if name in but or not holds_dates(column):
            parts[name] = column
            continue
        moments, kind, found = _moments_of(column, order)
        orders.add(found)
        wrong = (moments.isna() & column.notna()).to_numpy()
        if wrong.any():
            at = column.index[int(wrong.argmax())]
            what = "time of day" if kind == "time" else "day of the calendar"
            raise DataError(
                f"column {name!r} holds {column[at]!r} in {row_text(frame, at)}, which is no {what}; "
                "correct the value"
            )
        if kind == "time":
            hours = moments + 1e-9  # one nanosecond and more, so that 14:20 has 20 minutes
            parts |= (
                {f"{name} (hours)": moments}
                if dates == "days"
                else {f"{name} (hour)": hours // 1, f"{name} (minute)": hours % 1 * 60 // 1}
            )
        elif dates == "days":
            parts[f"{name} (days)"] = (moments - pd.Timestamp(0, tz="UTC")) / _DAY
        else:
            shown = {
                part: which for part, which in _PARTS.items() if kind == "day" or part in ("year", "month")
            }
            parts |= {f"{name} ({part})": getattr(moments.dt, which) for part, which in shown.items()}
    changed = pd.DataFrame(parts, index=frame.index)
    changed.attrs |= frame.attrs
    orders.discard(None)
    if len(orders) == 1:
        changed.attrs["date_order"] = orders.pop()
    return changed


def _moments_of(column: Any, order: DateOrder | None) -> tuple[Any, str, DateOrder | None]:
    """Return the dates or hours of a column that holds some, what they are, and their order."""
    import pandas as pd

    if not is_text(column):
        return pd.to_datetime(column, utc=True), "day", None
    levels = pd.Series(column.dropna().unique(), dtype=object)
    read = read_moments(levels.str.strip(), order)
    if read is None:
        raise DataError(f"column {column.name!r} holds dates and times of day; make two columns of it")
    if read.doubtful is not None:
        raise _in_doubt(str(column.name), read.doubtful)
    values = column.map(dict(zip(levels, read.values, strict=True)))
    values = values.astype(float) if read.kind == "time" else pd.to_datetime(values, utc=True)
    return values, read.kind, read.order


def _in_doubt(name: str, text: str) -> DataError:
    return DataError(
        f"column {name!r} holds {text!r}, and no value tells whether the day or the month comes first",
        hint="say it with date_order='dmy' (the day) or date_order='mdy' (the month)",
        option="say it with --date-order dmy (the day) or --date-order mdy (the month)",
    )


def dates_refused(names: Sequence[str], features: Any) -> DataError:
    """Return the error that columns hold dates or times."""
    shown = some_of([f"{name!r} ({features[name].dropna().iloc[0]!s:.30})" for name in names])
    texts = [name for name in names if is_text(features[name])]
    reads = {name: read_moments(levels_of(features[name])) for name in texts}
    unclear = {name: read.doubtful for name, read in reads.items() if read is not None and read.doubtful}
    doubt, how, told = "", "", ""
    if unclear:
        name, text = next(iter(unclear.items()))
        doubt = f" (in {name!r} no value tells whether the day or the month comes first: {text!r})"
        how, told = " and date_order='dmy' or 'mdy'", " and --date-order dmy or mdy"
    times = all(reads.get(name) is not None and reads[name].kind == "time" for name in names)  # type: ignore[union-attr]
    what = "times of day" if times else "dates"
    parts = "hour, minute" if times else "year, month, day, weekday"
    return DataError(
        f"{shown}: this looks like {what}, which are neither numbers nor levels{doubt}",
        hint=f"take them as numbers with dates='days' or dates='parts' ({parts}){how}, or leave them out "
        f"with drop=[{names[0]!r}]; keep=[{names[0]!r}] takes texts as levels",
        option=f"take them as numbers with --dates days or --dates parts ({parts}){told}, or leave them out "
        f"with --drop {shlex.quote(names[0])}; --keep takes texts as levels",
    ).cured_by(
        f"--dates days{' --date-order dmy' if unclear else ''}",
        dates="days",
        **({"date_order": "dmy"} if unclear else {}),
    )
