"""Files as people have them: decimal commas, other separators and encodings, ragged lines, several refusals at once."""

import numpy as np
import pandas as pd
import pyarrow
import pytest

from mipforest.data import DataError, Dataset, load
from mipforest.data.loading import FileLines
from mipforest.runs import DataSource

COMMAS = "a;b;target\n" + "".join(f"{k};{k},5;{'yes' if k % 2 else 'no'}\n" for k in range(20))


@pytest.fixture
def write(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode(encoding))
        return str(path)

    return write


def test_decimal_commas_are_told_and_read(write):
    path = write(COMMAS)
    with pytest.raises(
        DataError, match=r"'b' \('0,5' in line 2\): this looks like decimal commas"
    ) as refused:
        load(path)
    assert "decimal=','" in str(refused.value)
    assert "--decimal ," in refused.value.on_command_line
    data = load(path, decimal=",")
    np.testing.assert_array_equal(data.X_raw[:, 1], np.arange(20) + 0.5)  # exact: halves
    assert load(path, keep=["b"]).p == 21


@pytest.mark.parametrize(("sep", "sign", "name"), [("tab", "\t", "tabs"), ("|", "|", "bars")])
def test_other_separators_are_read_and_said(write, sep, sign, name):
    path = write("a,target\n1,x\n2,y\n".replace(",", sign))
    data = load(path)
    assert data.features.labels == ("a",)
    assert f"values are separated by {name}" in data.notes
    assert load(path, sep=sep).notes == ()


@pytest.mark.parametrize(("suffix", "decimal"), [("csv", "."), ("csv", ","), ("arff", ".")])
def test_numbers_are_the_doubles_that_were_written(tmp_path, suffix, decimal):
    values = np.random.default_rng(0).normal(size=(500, 2))
    lines = [";".join(map(repr, row)).replace(".", decimal) for row in values.tolist()]
    path = tmp_path / f"table.{suffix}"
    if suffix == "csv":
        path.write_text("\n".join(["a;target", *lines]))
        data = load(str(path), target="target", decimal=decimal)
    else:
        head = ["@relation t", "@attribute a numeric", "@attribute target numeric", "@data"]
        path.write_text("\n".join([*head, *(line.replace(",", ".").replace(";", ",") for line in lines)]))
        data = load(str(path), target="target")
    assert np.array_equal(data.X_raw[:, 0], values[:, 0])  # exact: what was written
    assert np.array_equal(data.y, values[:, 1])  # exact: what was written


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-8-sig"])
def test_other_encodings(write, encoding):
    path = write("größe,target\n1,ä\n2,ö\n", encoding)
    data = load(path, encoding=encoding)
    assert data.features.labels == ("größe",)
    assert data.classes == ("ä", "ö")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"sep": ";;"}, "the separator is ';;'"),
        ({"decimal": "'"}, 'the decimal sign is "\'"'),
        ({"thousands": "x"}, "the thousands sign is 'x'"),
        ({"thousands": "."}, "both the decimal sign and the thousands sign"),
        ({"encoding": "klingon"}, "no encoding is called 'klingon'"),
        ({"encoding": "ascii"}, "not written in ascii"),
    ],
)
def test_what_cannot_be_is_refused(write, written, told):
    with pytest.raises(DataError, match=told):
        load(write("é,target\n1,a\n2,b\n"), **written)


def test_formats_are_of_text_files(tmp_path):
    with pytest.raises(DataError, match=r"iris is no file"):
        load("iris", decimal=",")
    pd.DataFrame({"a": [1, 2], "target": [0, 1]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="a table of typed values"):
        load(tmp_path / "t.parquet", sep=";")


@pytest.mark.parametrize(
    ("text", "line", "count"),
    [
        ("a,target\n1,x\n\n2,y\n3,z,7\n", 5, 3),
        ('a,target\n1,"two\nlines"\n2,y,z,w\n', 4, 4),
    ],
)
def test_ragged_files_are_called_so_with_the_line(write, text, line, count):
    with pytest.raises(
        DataError, match=f"is ragged: line {line} has {count} values, and the first line 2 names"
    ):
        load(write(text))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,target\n1,0\ninf,1\n", 3),
        ("\n\na,target\n1,0\n\ninf,1\n", 6),
        ('a,b,target\n1,"x\ny",0\ninf,"x\nz",1\n', 4),
        ("a,b,target\n1,,0\ninf,x,1\n", 3),
    ],
)
def test_rows_are_counted_as_an_editor_does(write, text, line):
    with pytest.raises(DataError, match=rf"not finite, the first in line {line};"):
        load(write(text), missing="impute")


def test_lines_are_counted_only_for_messages(write, monkeypatch):
    text = "a,w,target\n" + "".join(f"{k},{k},{k % 2}\n" for k in range(50))
    asked = []
    monkeypatch.setattr(FileLines, "line", lambda _, row: asked.append(row))
    assert load(write(text), weight="w").n == 49
    assert asked == []
    with pytest.raises(DataError, match="row 3 has the weight -3"):
        load(write(text.replace("3,3,1", "3,-3,1", 1)), weight="w")
    assert asked == [3]


def test_rows_of_a_table_keep_their_labels():
    frame = pd.DataFrame({"a": [1.0, np.inf], "target": [0, 1]}, index=["one", "two"])
    with pytest.raises(DataError, match="the first in row two"):
        Dataset.from_frame(frame, "target")


def test_all_refusals_of_a_file_at_once(write):
    rows = [f"{k},{k if k != 7 else 'oops'},name{k},{'' if k == 5 else k},{k % 2}" for k in range(200)]
    with pytest.raises(DataError) as refused:
        load(write("a,b,c,d,target\n" + "\n".join(rows)))
    told = str(refused.value)
    assert "3 things stand in the way:\n  (1)" in told
    assert "(1) missing values in 1 column(s) of 200 rows: 'd' (1)" in told
    assert "(2) column 'b' holds numbers and text: line 9 holds 'oops'" in told
    assert "(3) 'c' (200 levels)" in told
    assert "--drop b" in refused.value.on_command_line


def test_a_source_keeps_its_format(write):
    source = DataSource(data=write(COMMAS), decimal=",", sep=";")
    again = DataSource.from_dict(source.to_dict())
    assert (again.decimal, again.sep) == (",", ";")
    assert again.load().train.p == 2
    assert not {"sep", "decimal", "encoding"} & DataSource(data="iris").to_dict().keys()


def test_arrow_tables_are_taken_as_pandas_ones():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"], "target": [0, 1, 0]})
    expected = Dataset.from_frame(frame, "target")
    assert Dataset.from_frame(pyarrow.Table.from_pandas(frame), "target").sha256 == expected.sha256


def test_polars_tables_are_taken_as_pandas_ones():
    polars = pytest.importorskip("polars")
    columns = {"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"], "target": [0, 1, 0]}
    expected = Dataset.from_frame(pd.DataFrame(columns), "target")
    frame = polars.DataFrame(columns)
    for table in (frame, frame.lazy()):
        assert Dataset.from_frame(table, "target").sha256 == expected.sha256


DATES = ["2024-02-29", "2023-12-31 12:00", "1.3.2024", "2024/1/5", "1970-01-02T06:00:00Z"]
DAYS = [19782.0, 19722.5, 19783.0, 19727.0, 1.25]


def with_dates(values):
    return pd.DataFrame(
        {"when": values, "size": range(len(values)), "target": [k % 2 for k in range(len(values))]}
    )


def test_dates_become_days_or_parts():
    data = Dataset.from_frame(with_dates(DATES), "target", dates="days")
    assert data.features.labels == ("when (days)", "size")
    np.testing.assert_array_equal(data.X_raw[:, 0], DAYS)  # exact: quarters of days
    data = Dataset.from_frame(with_dates(DATES), "target", dates="parts")
    assert data.features.labels[:4] == ("when (year)", "when (month)", "when (day)", "when (weekday)")
    np.testing.assert_array_equal(data.X_raw[0, :4], [2024, 2, 29, 3])  # exact: whole numbers


def test_dates_of_a_type_of_their_own():
    days = pd.to_datetime(["2024-02-29", "2024-03-01", None])
    frame = with_dates(days)
    with pytest.raises(DataError, match=r"'when' .*looks like dates") as refused:
        Dataset.from_frame(frame, "target", missing="drop")
    assert "--dates days" in refused.value.on_command_line
    data = Dataset.from_frame(frame, "target", dates="days", missing="drop")
    np.testing.assert_array_equal(data.X_raw[:, 0], [19782, 19783])  # exact: whole numbers


def test_many_texts_of_dates_are_refused_with_the_option():
    frame = with_dates([f"2024-03-{k + 1:02d}" for k in range(20)])
    with pytest.raises(DataError, match=r"'when' \(2024-03-01\): this looks like dates.*dates='days'"):
        Dataset.from_frame(frame, "target")
    assert Dataset.from_frame(frame, "target", keep=["when"]).p == 21
    assert Dataset.from_frame(frame, "target", keep=["when"], dates="days").p == 21
    few = with_dates(["2024-03-01", "2024-03-02", "2024-03-03"])
    assert Dataset.from_frame(few, "target").p == 4


def test_what_is_no_date_is_refused_or_stays(write):
    frame = with_dates(["2024-02-29", "2023-02-29"])
    with pytest.raises(DataError, match="holds '2023-02-29' in row 1, which is no day of the calendar"):
        Dataset.from_frame(frame, "target", dates="days")
    with pytest.raises(DataError, match="unknown treatment dates='weeks'"):
        Dataset.from_frame(frame, "target", dates="weeks")
    with pytest.raises(DataError, match="line 3, which is no day"):
        load(write("when,target\n1.1.2024,0\n31.2.2024,1\n"), dates="days")
    assert Dataset.from_frame(with_dates(["a", "b"]), "target", dates="days").features.labels[1] == "size"


def test_a_source_keeps_its_dates(write, tmp_path):
    text = "when,target\n" + "".join(f"2024-03-{k + 1:02d},{int(k > 9)}\n" for k in range(20))
    test = tmp_path / "test.csv"
    test.write_text("when,target\n2025-01-01,1\n")
    source = DataSource(data=write(text), dates="days", test=str(test))
    again = DataSource.from_dict(source.to_dict()).load()
    assert again.train.features.labels == ("when (days)",)
    np.testing.assert_array_equal(again.test.X_raw, [[20089]])  # exact: whole numbers


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "a,b,target\n1,2,x\n3,y\n4,5,x\n",
            r"; line 3 \(2\) has fewer values than the 3 columns, a value or",
        ),
        (
            "a,b,target\n1,2,x\n\n3,y\n4\n",
            "; 2 rows have fewer values than the 3 columns, the first in line 4",
        ),
    ],
)
def test_rows_with_too_few_values_are_called_so(write, text, told):
    with pytest.raises(DataError, match=f"missing values in .*{told}"):
        load(write(text))


def test_the_settings_that_do_away_with_all_obstacles_are_told_and_read_the_table(write):
    lines = ["id;when;price;rate;group;y"]
    for k in range(180):
        group = "" if k == 5 else "ab"[k % 2]
        rate = "n/e" if k == 7 else k % 60
        lines.append(
            f"P{k:03d};{k % 28 + 1:02d}.{k % 12 + 1:02d}.2019;{k},5;{rate};{group};{'xy'[k % 3 == 0]}"
        )
    path = write("\n".join(lines))
    with pytest.raises(DataError) as refused:
        load(path, target="y")
    told = refused.value.on_command_line.splitlines()[-1]
    assert told.startswith("  all together: ")
    options = "--missing impute --dates days --decimal , --drop id --missing-values n/e"
    assert sorted(told.split()[2:]) == sorted(options.split())
    data = load(
        path, target="y", missing="impute", dates="days", decimal=",", drop=["id"], missing_values=["n/e"]
    )
    assert data.n == 180
    assert [column.name for column in data.encoding.columns] == ["when (days)", "price", "rate", "group"]
