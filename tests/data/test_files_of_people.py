"""Files as people have them, written here line by line: what is read by which options, and refused without."""

import re

import numpy as np
import pytest

from mipforest.data import DataError, load
from mipforest.data.loading import MISSING_WORDS

N = 40
VALUES = [(37 * k) % 101 for k in range(N)]
SIDES = ["yes" if value >= 50 else "no" for value in VALUES]


def lines(form, values=VALUES, sides=SIDES):
    return "".join(f"{form.format(value)}{side}\n" for value, side in zip(values, sides, strict=True))


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

US_DATES = "".join(f"{v % 12 + 1}/{v % 28 + 1}/{2000 + v},{s}\n" for v, s in zip(VALUES, SIDES, strict=True))
WORDS = "".join(
    f'"{MONTHS[v % 12]} {v % 28 + 1}, {1960 + v}",{s}\n' for v, s in zip(VALUES, SIDES, strict=True)
)
CLOCK = "".join(f"{v // 5:02d}:{v % 60:02d},{s}\n" for v, s in zip(VALUES, SIDES, strict=True))
NO_HEADER = "".join(f"{'FM'[v % 2]},{v},{v / 10},{s}\n" for v, s in zip(VALUES, SIDES, strict=True))
NONE = "bag,x,target\n" + "".join(
    f"{('None', 'one', 'two')[v % 3]},{v},{'yes' if v % 3 == 0 else 'no'}\n" for v in VALUES
)
DOT = "x,target\n" + "".join(f"{'.' if v % 9 == 0 else v},{s}\n" for v, s in zip(VALUES, SIDES, strict=True))

#: Text, what the refusal says (``None`` where it is read), and the options that read it.
FILES = {
    "percent": ("x,target\n" + lines("{}%,"), None, {}),
    "currency": ("x,target\n" + lines("${}.50,"), None, {}),
    "thousand_point": ("x;target\n" + lines("1.{:03d},5;"), None, {}),
    "thousands": ("x,target\n" + lines('"{},000",'), "thousands signs.*--thousands ,", {"thousands": ","}),
    "scientific_comma": ("x;target\n" + lines("{},5E+02;"), "decimal commas; --decimal ,", {"decimal": ","}),
    "us_dates": ("x,target\n" + US_DATES, "looks like dates.*--dates days", {"dates": "days"}),
    "months_words": ("x,target\n" + WORDS, "looks like dates.*--dates days", {"dates": "days"}),
    "clock": ("x,target\n" + CLOCK, "looks like times of day.*--dates days", {"dates": "days"}),
    "no_header_mixed": (
        NO_HEADER,
        "the first line is data.*--no-header",
        {"header": False, "names": ["a", "x", "b", "target"]},
    ),
    "level_none": (NONE, r"'bag' has None.*--keep-words None", {"keep_words": ["None"]}),
    "sas_dot": (DOT, r"--missing-values \.", {"missing_values": ["."], "missing": "drop"}),
    "sentinel_999": (DOT.replace("\n.,", "\n-999,"), None, {"missing_values": ["-999"], "missing": "drop"}),
    "target_trailing": ("x,target\n" + lines("{},").replace("no\n", "no \n"), None, {}),
    "duplicate_names": (
        "x,x,target\n" + "".join(f"{v},{v},{s}\n" for v, s in zip(VALUES, SIDES, strict=True)),
        "occur more than once: 'x'.*--names x_1,x_2,target.*--drop x",
        {"names": ["x", "y", "target"]},
    ),
    "title_line": ("Table 1,\nx,target\n" + lines("{},"), "title; .*--skip-lines 1", {"skip_lines": 1}),
    "excel_sep": ("sep=;\nx;target\n" + lines("{};"), None, {}),
    "all_missing": ("x,z,target\n" + lines("{},,"), "'z' has no value in any row.*--drop z", {"drop": ["z"]}),
    "blank line of bars": ("x|target\n" + lines("{}|"), None, {}),
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_or_refused_with_what_reads_them(tmp_path, name):
    text, told, options = FILES[name]
    path = tmp_path / "table.csv"
    path.write_text(text)
    if told is not None:
        with pytest.raises(DataError) as refused:
            load(path)
        assert re.search(told, refused.value.on_command_line)
    data = load(path, **options)
    assert data.classes == ("no", "yes")
    # No column became a feature for each of its values, and one split has no errors.
    assert data.p <= 5
    assert any(separates(column, data.y) for column in data.X_raw.T)


def separates(column, y):
    order = np.lexsort((y, column))
    values, classes = column[order], y[order]
    changes = np.flatnonzero(np.diff(classes))
    return len(changes) == 1 and values[changes[0]] < values[changes[0] + 1]


def test_words_for_missing_values_are_those_of_pandas_and_a_question_mark():
    from pandas._libs.parsers import STR_NA_VALUES

    assert {*MISSING_WORDS, ""} == STR_NA_VALUES | {"?"}


@pytest.mark.parametrize(
    ("name", "separator", "said"),
    [
        ("a.tsv", "\t", "tabs"),
        ("a.txt", "|", "bars"),
        ("a.data", "   ", "blanks"),
        ("a.txt", ";", None),
        ("a.data", ",", None),
    ],
)
def test_separators_are_found_and_said(tmp_path, name, separator, said):
    path = tmp_path / name
    path.write_text("x,target\n".replace(",", separator) + lines(f"{{}}{separator}"))
    data = load(path)
    assert data.X_raw[:, 0].tolist() == VALUES
    notes = [note for note in data.notes if "separated by" in note]
    assert notes == ([f"values are separated by {said}"] if said else [])


def test_lines_of_blanks_may_begin_and_end_with_blanks(tmp_path):
    path = tmp_path / "housing.data"
    path.write_text("".join(f"  {v}   {v / 2}  {s} \n" for v, s in zip(VALUES, SIDES, strict=True)))
    data = load(path, header=False, target="c3")
    assert data.X_raw[:, 0].tolist() == VALUES
    path.write_text(" 1   2  no\n 3   x1  yes\n 4   3  no\n")
    with pytest.raises(DataError, match="'c2' must hold numbers, but line 2 holds 'x1'"):
        load(path, header=False, target="c3", weight="c2")


@pytest.mark.parametrize(
    "text",
    [
        "5.1,3.5,Iris-setosa\n4.9,3.0,Iris-setosa\n6.0,2.9,Iris-other\n6.1,2.9,Iris-other\n",
        "p,x,s\ne,y,s\np,x,n\ne,x,n\np,y,s\n",
        "p,x,p\ne,y,s\np,x,p\ne,x,p\n",
        "39,?,x\n40,b,y\n41,a,x\n42,b,y\n",
    ],
)
def test_a_first_line_of_data_is_refused(tmp_path, text):
    path = tmp_path / "uci.data"
    path.write_text(text)
    with pytest.raises(DataError, match=r"the first line is data.*header=False"):
        load(path, target="target")
    assert load(path, header=False, target="c3", missing="drop").features.labels[0].startswith("c1")


@pytest.mark.parametrize(
    "text",
    [
        "id,2019,2020,target\nn1,5,6,a\nn2,7,8,b\nn3,9,9,a\n",
        "0,1,target\n5,6,a\n7,8,b\n9,9,a\n4,4,b\n",
        "red,target\nred,1\nblue,2\n",
        "a,b,target\nx,u,1\ny,v,2\nx,u,1\n",
    ],
)
def test_a_first_line_of_names_is_none_of_data(tmp_path, text):
    path = tmp_path / "named.csv"
    path.write_text(text)
    assert load(path).target == "target"


def test_names_take_the_place_of_the_first_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,x,y\n" + "".join(f"{v},{v + 1},{s}\n" for v, s in zip(VALUES, SIDES, strict=True)))
    data = load(path, names=["a", "b", "target"])
    assert data.features.labels == ("a", "b")
    assert "the names of the first line were replaced: x, x, y" in data.notes
    with pytest.raises(DataError, match=r"2 names are given, and the first line of .* has 3 names"):
        load(path, names=["a", "b"])


def test_columns_of_one_name_are_left_out_together(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,x,z,target\n" + "".join(f"{v},,{v},{s}\n" for v, s in zip(VALUES, SIDES, strict=True)))
    assert load(path, drop=["x"]).features.labels == ("z",)
    with pytest.raises(DataError, match="no column is called 'q'"):
        load(path, drop=["x", "q"])


def test_lines_are_counted_with_those_left_out(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("A title\n\nx,target\n1,a\ninf,b\n")
    with pytest.raises(DataError, match="not finite, the first in line 5"):
        load(path, skip_lines=1)
    with pytest.raises(DataError, match="is empty"):
        load(path, skip_lines=10**12)
    path.write_text("1,a\ninf,b\n")
    with pytest.raises(DataError, match="not finite, the first in line 2"):
        load(path, header=False, target="c2")


ARFF = """% a comment
@relation test
@attribute size numeric
@attribute 'the colour' {red, 'dark blue'}
@attribute target {yes, no}
@data
1.5, red, yes
?, 'dark blue', no
3, ?, yes
4, 'dark blue', no
"""


def test_arff_files_are_read(tmp_path):
    path = tmp_path / "table.arff"
    path.write_text(ARFF)
    with pytest.raises(DataError, match=r"'size' \(1\), 'the colour' \(1\)"):
        load(path)
    data = load(path, missing="drop")
    assert data.features.labels == ("size", "the colour=red")
    assert data.X_raw[:, 0].tolist() == [1.5, 4]  # exact: as written
    with pytest.raises(DataError, match="a table of typed values"):
        load(path, sep=";")
    path.write_text(ARFF.replace("3, ?, yes", "5, 'it\\'s', yes"))
    labels = load(path, missing="drop").features.labels
    assert labels[1:] == ("the colour=dark blue", "the colour=it's", "the colour=red")
    path.write_text(ARFF + "1, red, yes, 4\n")
    with pytest.raises(DataError, match=r"not a readable .arff file"):
        load(path)
    path.write_text(ARFF.split("@data")[0] + "@data\n{0 3, 2 yes}\n")
    with pytest.raises(DataError, match=r"sparse"):
        load(path)
    path.write_text("nothing of the kind")
    with pytest.raises(DataError, match=r"not a readable .arff file"):
        load(path)


def test_options_of_files_are_of_files():
    for options in (
        {"thousands": ","},
        {"header": False},
        {"names": ["a"]},
        {"date_order": "dmy"},
        {"skip_lines": 1},
    ):
        with pytest.raises(DataError, match="iris is no file"):
            load("iris", **options)
    with pytest.raises(DataError, match="skip_lines is -1"):
        load("a.csv", skip_lines=-1)
