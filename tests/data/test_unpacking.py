"""Compressed data files that unpack to far more than they are: refused, with little memory."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mipforest.data import DataError, load

#: What Python, pandas and the like take is less; what the files would unpack to is more.
MOST_BYTES = 1 << 29


def memory_of_loading(path):
    """What the program says, and its greatest memory, which the parent's counters would not tell."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom mipforest.data import DataError, load\n"
        "try:\n    load(sys.argv[1])\nexcept DataError as error:\n    print(error)\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(int(status.split('VmHWM:')[1].split()[0]) * 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    *told, used = done.stdout.splitlines()
    return "\n".join(told), int(used)


def test_a_csv_that_unpacks_to_gigabytes_is_refused_while_it_is_read(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    line = b"0," * 499 + b"0\n"
    header = b",".join(b"c%d" % k for k in range(499)) + b",target\n"
    # Members of a gzip file are read one after the other.
    path.write_bytes(gzip.compress(header) + gzip.compress(line * 1000) * 600)
    assert path.stat().st_size < 5 << 20
    told, used = memory_of_loading(path)
    assert "expand to more than 32 MiB" in told
    assert "times their size; if you trust the file, unpack it first" in told
    assert used < MOST_BYTES


def test_large_text_that_is_mostly_the_same_is_refused_before_it_becomes_numbers(tmp_path, monkeypatch):
    path = tmp_path / "zeros.csv.gz"
    path.write_bytes(gzip.compress(b"a,target\n" + b"0,x\n1,y\n" * 200_000))
    assert load(path).n == 400_000
    monkeypatch.setattr("mipforest.data.loading._LARGE_TEXT", 1 << 20)
    with pytest.raises(
        DataError, match=r"expand to more than 1 MiB, .* times their size; if you trust the file"
    ):
        load(path)


@pytest.mark.parametrize("kind", [pytest.param("rows", marks=pytest.mark.slow), "texts"])
def test_a_parquet_file_that_unpacks_to_gigabytes_is_refused(tmp_path, kind):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    value, count = (0.5, 20_000_000) if kind == "rows" else ("x" * 1_000_000, 3000)
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int8), [value])
    path = tmp_path / "bomb.parquet"
    parquet.write_table(
        pyarrow.table(
            {"a": column.cast(column.type.value_type) if kind == "rows" else column, "target": column}
        ),
        path,
        compression="zstd",
        store_schema=False,
    )
    told, used = memory_of_loading(path)
    assert "expands to more than 200 times its size" in told
    assert used < MOST_BYTES


def test_a_csv_that_shrinks_well_is_read(tmp_path):
    path = tmp_path / "even.csv.gz"
    rows = "".join("1.5,x\n" if k % 2 else "2.5,y\n" for k in range(50_000))
    path.write_bytes(gzip.compress(f"a,target\n{rows}".encode()))
    assert load(path).n == 50_000


@pytest.mark.parametrize("cut", [8, 100, 300, -20])
def test_a_damaged_parquet_file_is_refused_with_the_reason(tmp_path, cut):
    pytest.importorskip("pyarrow")
    path = tmp_path / "toy.parquet"
    pd.DataFrame({"a": [1.5, 2.5], "target": ["x", "y"]}).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[cut : cut + 12] = b"\xff" * 12
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a readable parquet file"):
        load(path)
