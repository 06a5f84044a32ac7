"""Numbers as people write them: read under their convention, told by their column, or refused with what reads them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipforest.data import DataError, Dataset, load
from mipforest.data.convention import Convention, numbers_in, read_all, tells_itself
from mipforest.runs import DataSource

N = 40
SIDES = ["yes" if k >= N // 2 else "no" for k in range(N)]


def as_written(value: int, decimals: int, decimal: str, thousands: str) -> str:
    """Write a whole number of units of the last decimal, with Python's own grouping."""
    grouped = f"{abs(value) // 10**decimals:,}".replace(",", thousands)
    rest = f"{decimal}{abs(value) % 10**decimals:0{decimals}d}" if decimals else ""
    return f"{'-' if value < 0 else ''}{grouped}{rest}"


@given(
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=20),
    st.integers(0, 3),
    st.sampled_from([(".", ","), (",", "."), (".", "'"), (",", " "), (".", " ")]),
    st.sampled_from(["", "%", " €", "kr", "$ "]),
)
def test_numbers_are_read_as_they_are_written(values, decimals, signs, beside):
    texts = [as_written(value, decimals, *signs) for value in values]
    before = beside == "$ "
    levels = pd.Series([beside + text if before else text + beside for text in texts]).drop_duplicates()
    convention = Convention(decimal=signs[0], thousands=signs[1])
    read = read_all(levels, convention, known=True)
    expected = np.array(values)[levels.index] / 10**decimals
    assert list(read.values) == pytest.approx(list(expected))
    assert numbers_in(pd.Series(texts), convention).notna().all()


@given(st.lists(st.integers(1_000_00, 10**9), min_size=1, max_size=20))
def test_points_beside_commas_tell_the_convention(values):
    for decimal, thousands in ((",", "."), (".", ",")):
        levels = pd.Series([as_written(value, 2, decimal, thousands) for value in values])
        told = tells_itself(levels)
        assert (told.decimal, told.thousands) == (decimal, thousands)


@pytest.mark.parametrize(
    "text", ["1,47", "1,4790", "12345,678", "1,,479", ",479", "1,479,", "1.479,5", "0x10", ""]
)
def test_thousands_are_groups_of_three_digits(text):
    assert numbers_in(pd.Series([text]), Convention(thousands=",")).isna().all()


@pytest.mark.parametrize("values", [["1,479", "232"], ["18,5", "3"], ["0,5", "1,0"]])
def test_commas_alone_tell_nothing(values):
    assert tells_itself(pd.Series(values)) is None


def test_a_convention_is_checked():
    for wrong in (
        {"decimal": ";"},
        {"thousands": "x"},
        {"thousands": "."},
        {"dates": "weeks"},
        {"date_order": "ymd"},
    ):
        with pytest.raises(DataError):
            Convention(**wrong)


# ---------------------------------------------------------------------- files and frames alike

#: How the numbers 1000.5, 2000.5, ... are written, and the options that read them, none where the column tells.
READ = {
    "per cent": ("{:.1f}%", {}),
    "dollars": ("${:.1f}", {}),
    "euros": ("{:.1f} €", {}),
    "codes": ("USD {:.1f}", {}),
    "units": ("{:.1f} km/h", {}),
    "both, English": ("{:,.1f}", {}),
    "both, German": (("{:,.1f}", ".,"), {}),
    "Swiss": (("{:,.1f}", "'."), {}),
    "French": (("{:,.1f}", " ."), {}),
    "decimal commas": (("{:.1f}", ",,"), {"decimal": ","}),
    "exponents": (("{:.6e}", ",,"), {"decimal": ","}),
}


def written(how, values):
    if isinstance(how, str):
        return [how.format(value) for value in values]
    form, (thousands, decimal) = how
    table = str.maketrans({",": thousands, ".": decimal})
    return [form.format(value).translate(table) for value in values]


@pytest.mark.parametrize("name", READ)
def test_files_and_frames_are_read_alike(tmp_path, name):
    how, options = READ[name]
    values = [1000.5 + 1000 * k for k in range(N)]
    texts = written(how, values)
    path = tmp_path / "table.csv"
    path.write_text(
        "x;target\n" + "".join(f"{text};{side}\n" for text, side in zip(texts, SIDES, strict=True))
    )
    frame = pd.DataFrame({"x": texts, "target": SIDES})
    if options:
        for read in (lambda: load(path), lambda: Dataset.from_frame(frame, "target")):
            with pytest.raises(DataError, match=r"decimal commas.*decimal=','") as refused:
                read()
            assert "--decimal ," in refused.value.on_command_line
    for data in (load(path, **options), Dataset.from_frame(frame, "target", **options)):
        assert data.features.labels == ("x",)
        np.testing.assert_array_equal(data.X_raw[:, 0], values)  # exact: halves
    assert load(path, keep=["x"]).p == N


def test_a_decimal_comma_with_few_different_values_is_one_too():
    frame = pd.DataFrame({"x": ["0,5", "1,0"] * 10, "target": ["a", "b"] * 10})
    with pytest.raises(DataError, match="decimal commas"):
        Dataset.from_frame(frame, "target")
    assert Dataset.from_frame(frame, "target", decimal=",").X_raw[:2, 0].tolist() == [
        0.5,
        1.0,
    ]  # exact: halves


def test_exactly_three_digits_behind_every_comma_are_thousands(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("pay;target\n232;no\n1,479;yes\n693;no\n2,744;yes\n")
    with pytest.raises(DataError, match=r"thousands signs; read the file with thousands=','") as refused:
        load(path)
    assert "if they are decimal signs, --decimal , does" in refused.value.on_command_line
    assert load(path, thousands=",").X_raw[:, 0].tolist() == [232, 1479, 693, 2744]
    assert load(path, decimal=",").X_raw[1, 0] == pytest.approx(1.479)


def test_few_values_with_a_unit_are_levels():
    frame = pd.DataFrame({"term": ["36 months", "60 months"] * 10, "target": ["a", "b"] * 10})
    assert Dataset.from_frame(frame, "target").features.labels == ("term=60 months",)


def test_what_is_told_by_one_column_holds_for_all(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"2.{k:03d},5;3.{k:03d};{side}" for k, side in enumerate(SIDES)]
    path.write_text("x;y;target\n" + "\n".join(rows))
    data = load(path)
    assert data.X_raw[1].tolist() == [2001.5, 3001]  # exact: halves
    assert "numbers are read with decimal=',', thousands='.', as columns of text tell" in data.notes
    path.write_text(path.read_text().replace(";3.", ";3.").replace(";3.000;", ";3.5;"))
    with pytest.raises(
        DataError, match=r"in different ways: 'x' with decimal=',', thousands='.', 'y' with points"
    ):
        load(path)
    frame = pd.DataFrame({"x": ["1,000.5", "2,000.5"], "y": ["1.000,5", "2.000,5"], "target": [0, 1]})
    with pytest.raises(DataError, match="written in different ways"):
        Dataset.from_frame(frame, "target")


def test_whole_numbers_beyond_float64_stay_whole():
    texts = [f"9.007.199.254.740.99{k}" for k in range(1, 9)]
    data = Dataset.from_frame(pd.DataFrame({"x": texts, "target": [0, 1] * 4}), "target")
    assert data.X_raw[:, 0].tolist() == [*range(8)]


def test_words_for_missing_values():
    values = [*map(str, range(20)), ".", "-999"]
    frame = pd.DataFrame({"x": values, "target": ["a", "b"] * 11})
    with pytest.raises(DataError, match=r"holds '\.'.*missing_values=\['\.'\]"):
        Dataset.from_frame(frame, "target")
    data = Dataset.from_frame(frame, "target", missing_values=[".", "-999"], missing="drop")
    assert data.X_raw[:, 0].tolist() == [*range(20)]
    numbers = frame.assign(x=[*range(20), 0, -999])
    assert Dataset.from_frame(numbers, "target", missing_values=["-999"], missing="drop").n == 21
    large = frame.assign(x=[(1 << 60) + k for k in range(21)] + [-999])
    exact = Dataset.from_frame(large, "target", missing_values=["-999"], missing="drop")
    assert exact.X_raw[:, 0].tolist() == [*range(21)]


def test_numbers_that_stand_for_missing_values_are_worth_a_remark():
    frame = pd.DataFrame({"x": [1.5, -999, 2, -999, 3], "target": [0, 1, 0, 1, 0]})
    assert "holds -999 in 2 rows, far from all others (1.5 to 3)" in " ".join(
        Dataset.from_frame(frame, "target").notes
    )
    near = frame.assign(x=[-999, -998, -999, 2000, 3])
    assert "-999" not in " ".join(Dataset.from_frame(near, "target").notes)


def test_the_advice_names_what_reads_the_whole_column():
    texts = [f"{k}%" for k in range(20)]
    frame = pd.DataFrame({"x": [*texts, "-"], "target": [k % 2 for k in range(21)]})
    with pytest.raises(DataError, match=r"holds '-'.*missing_values=\['-'\]"):
        Dataset.from_frame(frame, "target")
    assert Dataset.from_frame(frame, "target", missing_values=["-"], missing="drop").n == 20
    frame = pd.DataFrame({"x": [*texts, "a", "b", "c", "d"], "target": [k % 2 for k in range(24)]})
    with pytest.raises(DataError, match="holds 'a'") as refused:
        Dataset.from_frame(frame, "target")
    assert "missing_values" not in str(refused.value)


def test_targets_of_numbers_are_read_where_they_are_many():
    x = [*range(N)]
    values = Dataset.from_frame(pd.DataFrame({"x": x, "y": [f"{k}%" for k in x]}), "y")
    assert values.task == "regression"
    assert values.y.tolist() == x
    classes = Dataset.from_frame(pd.DataFrame({"x": x, "y": [f"{10 * (k % 3)}%" for k in x]}), "y")
    assert classes.classes == ("0%", "10%", "20%")
    commas = pd.DataFrame({"x": x, "y": [f"{k},5" for k in x]})
    with pytest.raises(DataError, match=r"target 'y' .*decimal commas.*task='classification'"):
        Dataset.from_frame(commas, "y")
    assert Dataset.from_frame(commas, "y", task="classification").n_classes == N


def test_a_target_of_very_many_classes_is_remarked_on():
    frame = pd.DataFrame({"x": range(120), "y": [f"name {k % 60}" for k in range(120)]})
    assert "target 'y' has 60 classes in 120 rows: is it a name?" in Dataset.from_frame(frame, "y").notes
    frame = pd.DataFrame({"x": range(5), "y": list("abcde")})
    assert "5 classes in 5 rows, all of them of one sample" in " ".join(Dataset.from_frame(frame, "y").notes)
    frame = pd.DataFrame({"x": range(4), "y": list("aabb")})
    assert "is it a name" not in " ".join(Dataset.from_frame(frame, "y").notes)


def test_blanks_at_both_ends_go():
    frame = pd.DataFrame({"c": ["red ", "blue", " red", "blue"], "y": ["no ", "yes", "no", " yes"]})
    data = Dataset.from_frame(frame, "y")
    assert data.classes == ("no", "yes")
    assert data.features.labels == ("c=red",)
    like = Dataset.from_frame_like(data, pd.DataFrame({"c": [" blue "], "y": ["yes "]}))
    assert like.y.tolist() == [1]


def test_tables_like_the_training_data_are_read_as_they_were():
    frame = pd.DataFrame({"x": [f"1.{k:03d},5" for k in range(N)], "y": SIDES})
    data = Dataset.from_frame(frame, "y")
    like = Dataset.from_frame_like(data, pd.DataFrame({"x": ["2.018", "3", "4,5"], "y": ["no", "yes", "no"]}))
    assert like.X_raw[:, 0].tolist() == [2018, 3, 4.5]  # exact: halves
    with pytest.raises(DataError, match="'x' must hold numbers, but row 1 holds 'many'"):
        Dataset.from_frame_like(data, pd.DataFrame({"x": ["2.018", "many"], "y": ["no", "yes"]}))


def test_a_source_keeps_how_values_are_written(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x;target\n" + "".join(f"1.{k:03d},5;{side}\n" for k, side in enumerate(SIDES)))
    source = DataSource(data=str(path), missing_values=(".",), keep_words=("None",), skip_lines=0)
    found = DataSource.from_dict(source.as_found(source.load().train).to_dict())
    assert (found.decimal, found.thousands) == (",", ".")
    assert (found.missing_values, found.keep_words) == ((".",), ("None",))
    assert found.load().train.sha256 == source.load().train.sha256
    plain = DataSource(data="iris")
    assert (
        plain.as_found(plain.load().train) == plain
        or plain.to_dict() == plain.as_found(plain.load().train).to_dict()
    )


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["2.0", "(4.6)", "7"], [2.0, -4.6, 7.0]),
        (["2.0", "4.6-", "7"], [2.0, -4.6, 7.0]),
        (["2.0", "\u22124.6", "7"], [2.0, -4.6, 7.0]),
        (["$2.00", "($4600.50)"], [2.0, -4600.5]),
    ],
)
def test_negative_numbers_as_accounts_write_them(texts, values):
    read = read_all(pd.Series(texts))
    assert read is not None
    assert read.values.tolist() == values  # exact: read from texts


def test_words_in_brackets_are_words():
    assert read_all(pd.Series(["(none)", "(4.6)"])) is None
