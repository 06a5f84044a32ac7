"""Dates and times of day as people write them."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipforest.data import DataError, Dataset
from mipforest.data.convention import Convention
from mipforest.data.dates import read_moments

#: Ways to write a day, by Python's own formats.
DAYS = [
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%Y", "%m/%d/%Y", "%m-%d-%Y"),
    *("%d/%m/%y", "%m/%d/%y", "%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y"),
    *("%a, %d %b %Y", "%A, %B %d, %Y", "%B %d %Y"),
]

MONTHS = ["%Y-%m", "%Y/%m", "%b %Y", "%B, %Y"]

TIMES = ["%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p"]

dates = st.lists(st.dates(datetime.date(1970, 1, 1), datetime.date(2068, 12, 31)), min_size=1, max_size=15)


def order_of(form):
    return (
        "mdy"
        if form.startswith("%m")
        else "dmy"
        if form.startswith("%d") and "b" not in form.lower()
        else None
    )


@pytest.mark.parametrize("form", DAYS)
@settings(max_examples=8)
@given(days=dates)
def test_days_are_read_as_they_are_written(form, days):
    levels = pd.Series([day.strftime(form) for day in days]).drop_duplicates()
    read = read_moments(levels, order_of(form))
    assert read.kind == "day"
    assert [*read.values.dt.date] == [days[k] for k in levels.index]


@pytest.mark.parametrize("form", MONTHS)
@given(days=dates)
def test_months_are_read_as_their_first_day(form, days):
    levels = pd.Series([day.strftime(form) for day in days]).drop_duplicates()
    read = read_moments(levels)
    assert read.kind == "month"
    assert [*read.values.dt.date] == [days[k].replace(day=1) for k in levels.index]


@pytest.mark.parametrize("form", TIMES)
@given(times=st.lists(st.times(), min_size=1, max_size=15))
def test_times_are_read_as_hours(form, times):
    levels = pd.Series([time.strftime(form) for time in times]).drop_duplicates()
    read = read_moments(levels)
    seconds = [times[k].second if "%S" in form else 0 for k in levels.index]
    hours = [
        times[k].hour + times[k].minute / 60 + s / 3600 for k, s in zip(levels.index, seconds, strict=True)
    ]
    assert read.kind == "time"
    assert list(read.values) == pytest.approx(hours)


@given(days=dates, minutes=st.integers(0, 1439))
def test_days_may_have_a_time(days, minutes):
    clock = f"{minutes // 60}:{minutes % 60:02d}"
    for text in ("{} {}", "{}T{}:30", "{}, {}"):
        levels = pd.Series([text.format(day.isoformat(), clock) for day in days]).drop_duplicates()
        read = read_moments(levels)
        expected = minutes * 60 + (30 if ":30" in text else 0)
        assert (
            (read.values.dt.hour * 60 + read.values.dt.minute) * 60 + read.values.dt.second == expected
        ).all()


@pytest.mark.parametrize("text", ["2024-13-01", "31.2.2024", "25:00", "12:60", "0:30 pm", "2023-02-29"])
def test_what_does_not_exist_is_missing(text):
    assert read_moments(pd.Series([text])).values.isna().all()


@pytest.mark.parametrize(
    "text", ["", "1", "1.5", "2024", "20240101", "abc", "Maybe 2019", "1:2", "-1/2/2019"]
)
def test_other_texts_are_no_dates(text):
    assert read_moments(pd.Series([text])) is None


def frame_of(texts):
    return pd.DataFrame({"day": texts, "target": [k % 2 for k in range(len(texts))]})


SLASHES = [f"{k % 12 + 1}/{5 * k % 12 + 1}/{2000 + k}" for k in range(20)]


def test_the_order_of_day_and_month_is_told_by_a_value_or_asked_for():
    with pytest.raises(DataError, match=r"no value tells whether .*'2/6/2001'.*date_order='dmy' or 'mdy'"):
        Dataset.from_frame(frame_of(SLASHES), "target")
    with pytest.raises(DataError, match=r"'day' holds '2/6/2001', and no value") as refused:
        Dataset.from_frame(frame_of(SLASHES), "target", dates="days")
    assert "--date-order dmy" in refused.value.on_command_line
    days = Dataset.from_frame(frame_of(SLASHES), "target", dates="parts", date_order="dmy")
    months = Dataset.from_frame(frame_of(SLASHES), "target", dates="parts", date_order="mdy")
    assert days.X_raw[1, :3].tolist() == [2001, 6, 2]
    assert months.X_raw[1, :3].tolist() == [2001, 2, 6]
    told = Dataset.from_frame(frame_of([*SLASHES, "1/31/2019"]), "target", dates="parts")
    np.testing.assert_array_equal(told.X_raw[:-1], months.X_raw)
    assert told.convention.date_order == "mdy"
    with pytest.raises(DataError, match=r"'31/1/2019' in row 20, which is no day"):
        Dataset.from_frame(frame_of([*SLASHES, "31/1/2019"]), "target", dates="days", date_order="mdy")
    same = Dataset.from_frame(frame_of(["1/1/2019", "2/2/2019"]), "target", dates="days")
    assert same.X_raw[:, 0].tolist() == [17897, 17929]


def test_new_dates_are_read_in_the_order_of_the_training_data():
    data = Dataset.from_frame(frame_of([*SLASHES, "1/31/2019"]), "target", dates="days")
    like = Dataset.from_frame_like(data, frame_of(["2/3/2019"]))
    assert like.X_raw[0, 0] == 17930


def test_months_and_times_have_fewer_parts():
    months = Dataset.from_frame(frame_of(["2019-01", "Feb 2020"]), "target", dates="parts")
    assert months.features.labels == ("day (year)", "day (month)")
    assert months.X_raw.tolist() == [[2019, 1], [2020, 2]]
    times = Dataset.from_frame(frame_of(["14:20", "2:20 pm", "0:59"]), "target", dates="parts")
    assert times.features.labels == ("day (hour)", "day (minute)")
    assert times.X_raw.tolist() == [[14, 20], [14, 20], [0, 59]]
    hours = Dataset.from_frame(frame_of(["14:30", "0:15"]), "target", dates="days")
    assert hours.features.labels == ("day (hours)",)
    assert hours.X_raw[:, 0].tolist() == [14.5, 0.25]  # exact: quarters
    with pytest.raises(DataError, match=r"holds dates and times of day; make two columns"):
        Dataset.from_frame(frame_of(["14:30", "2019-01-01"]), "target", dates="days")


def test_dates_with_a_word_among_them_are_refused():
    texts = [f"2024-03-{k + 1:02d}" for k in range(20)]
    with pytest.raises(
        DataError, match=r"row 20 holds 'unknown', and 20 of its 21 .*missing_values=\['unknown'\]"
    ):
        Dataset.from_frame(frame_of([*texts, "unknown"]), "target")
    data = Dataset.from_frame(
        frame_of([*texts, "unknown"]), "target", dates="days", missing_values=["unknown"], missing="drop"
    )
    assert data.n == 20


@pytest.mark.parametrize(("value", "holds"), [("foo", "'foo'"), (None, "no value")])
def test_a_new_value_that_is_no_date_is_named(value, holds):
    known = pd.DataFrame({"day": [f"{k}.1.2021" for k in range(1, 21)], "y": ["a", "b"] * 10})
    encoding = Dataset.from_frame(known, "y", dates="days").encoding
    new = pd.DataFrame({"day": [value, value]})
    with pytest.raises(DataError, match=f"'day' must hold dates or times, but .* holds {holds}"):
        encoding.as_written(new, Convention(dates="days"))
