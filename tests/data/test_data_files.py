import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from mipforest.data import DataError, load
from mipforest.data.loading import read_file
from mipforest.unpacking import BLOCK

ROWS = "size,colour,target\n1.5,red,a\n2,green,b\n0.1,red,b\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="toy.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_csv(write):
    data = load(write(ROWS))
    assert (data.name, data.target) == ("toy", "target")
    assert data.features.labels == ("size", "colour=red")
    np.testing.assert_array_equal(data.X_raw[:, 0], [1.5, 2, 0.1])
    np.testing.assert_array_equal(data.y, [0, 1, 1])


@pytest.mark.parametrize(
    "content",
    [
        ROWS.replace(",", ";"),
        ROWS.replace(",", ", "),
        ROWS.replace("\n", "\r\n"),
        "\ufeff" + ROWS,
        "\n\n" + ROWS + "\n\n",
        ROWS.replace("red", '"red"'),
    ],
    ids=["semicolons", "blanks", "windows", "byte order mark", "empty lines", "quotes"],
)
def test_csv_dialects(write, content):
    assert load(write(content)).sha256 == load(write(ROWS, "plain.csv")).sha256


def test_a_semicolon_within_a_comma_separated_header_is_no_separator(write):
    assert load(write("a;b,c,target\n1,2,x\n3,4,y\n")).features.labels == ("a;b", "c")


def test_compressed_csv_and_parquet_give_the_same(write, tmp_path):
    plain = load(write(ROWS))
    packed = load(write(gzip.compress(ROWS.encode()), "toy.csv.gz"))
    assert (packed.sha256, packed.name) == (plain.sha256, "toy")
    pytest.importorskip("pyarrow")
    pd.read_csv(tmp_path / "toy.csv").to_parquet(tmp_path / "toy.parquet")
    assert load(tmp_path / "toy.parquet").sha256 == plain.sha256


def test_a_long_file_is_not_in_memory_several_times(write):
    path = write("a,b\n" + "0.5,1\n" * 100_000)
    read_file(path)  # what pandas loads on first use
    tracemalloc.start()
    try:
        frame = read_file(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A copy as wide text alone is 4 times the file, which makes it 2.1; pandas before 3.1 needs 1.7 by itself.
    assert peak < 1.9 * (path.stat().st_size + frame.memory_usage().sum())


def test_bytes_that_are_no_utf_8_are_named_beyond_the_first_block(write):
    with pytest.raises(DataError, match=f"at byte {BLOCK + 6}"):
        load(write(b"a,b\n" + b"x,1\n" * (BLOCK // 4) + b"z,\xff\n"))


def test_target_is_named_or_called_target(write):
    path = write(ROWS)
    assert load(path, target="colour").classes == ("green", "red")
    with pytest.raises(DataError, match=r"toy.csv: no column is called 'class'.*size, colour, target"):
        load(path, target="class")
    with pytest.raises(DataError, match=r"no column is called 'target'.*'Target'"):
        load(write(ROWS.replace("target", "Target")))


@pytest.mark.parametrize("hole", ["", "?", "NA", "NaN"])
def test_missing_values(write, hole):
    path = write(f"x,target\n1,a\n{hole},b\n3,b\n4,a\n")
    with pytest.raises(DataError, match=r"'x' \(1\)"):
        load(path)
    data = load(path, missing="drop")
    assert data.samples.labels == ("0", "2", "3")
    assert data.p == 1


def test_row_numbers_are_kept_and_remarked(write):
    lines = "".join(f"{i},{i % 3},{i % 2}\n" for i in range(12))
    data = load(write(",x,target\n" + lines))
    assert data.features.labels == ("Unnamed: 0", "x")
    assert "'Unnamed: 0' counts the rows" in data.notes[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("x,target\n", "no rows"),
        ("x,x,target\n1,2,a\n", "must differ.*'x'"),
        ("5.1,3.5,0\n4.9,3.0,1\n", "first line .* holds numbers"),
        ("x,target\n1,a\n1,2,b\n", "is ragged: line 3 has 3 values, and the first line 2 names"),
        ("x,target\n1,2,a\n3,4,b\n", "is ragged: line 2 has 3 values"),
        ('x,target\n1,"a\n', "not a regular table"),
        (b"x,target\n1,\xff\n", "not UTF-8"),
        (b"x,target\n1,\0\n", "binary file"),
        ("x,target\n1,a\n2,a\n", "one class only"),
        ("target\na\nb\n", "only column"),
        ("x,target\ninf,a\n1,b\n", "not finite"),
    ],
)
def test_bad_csv(write, content, message):
    path = write(content)
    with pytest.raises(DataError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(ROWS.encode(), mtime=0)[:-12], b""])
def test_bad_gzip(write, content):
    with pytest.raises(DataError, match=r"gzip|empty"):
        load(write(content, "toy.csv.gz"))


@pytest.mark.parametrize("content", [b"", b"no parquet"])
def test_bad_parquet(write, content):
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"not a readable parquet file"):
        load(write(content, "toy.parquet"))


def test_parquet_with_texts_that_are_no_utf_8(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "toy.parquet"
    pd.DataFrame({"x": ["red", "blue"] * 4, "target": ["a", "b"] * 4}).to_parquet(path, compression=None)
    path.write_bytes(path.read_bytes().replace(b"blue", b"b\xe5ue"))
    with pytest.raises(DataError, match=r"not a readable parquet file"):
        load(path)


def test_empty_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": [], "target": []}).to_parquet(tmp_path / "toy.parquet")
    with pytest.raises(DataError, match=r"no rows"):
        load(tmp_path / "toy.parquet")


def test_parquet_without_pyarrow(write, monkeypatch):
    monkeypatch.setattr("mipforest.data.loading.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install 'mipforest\[parquet\]'"):
        load(write(b"", "toy.parquet"))


def test_paths_that_lead_nowhere(write, tmp_path):
    write(ROWS)
    write(ROWS, "toy.xlsx")
    with pytest.raises(DataError, match=r"did you mean 'toy.csv'"):
        load(tmp_path / "toi.csv")
    with pytest.raises(DataError, match=r"there is no directory"):
        load(tmp_path / "nowhere" / "toy.csv")
    with pytest.raises(DataError, match=r"is a directory"):
        load(tmp_path)
    with pytest.raises(DataError, match=r"no known kind.*\.parquet"):
        load(tmp_path / "toy.xlsx")


def test_home_directory_is_understood(write, monkeypatch, tmp_path):
    write(ROWS)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load("~/toy.csv").n == 3


def test_unreadable_file(write, monkeypatch):
    path = write(ROWS)

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(DataError, match=r"Permission denied"):
        load(path)


def test_a_name_longer_than_any_is_refused(write):
    with pytest.raises(DataError, match="holds no column names"):
        load(write('"' + "x" * 200_000 + "\n1\n"))
