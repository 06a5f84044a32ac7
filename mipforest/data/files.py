"""Reading ``.csv``, ``.csv.gz`` and ``.parquet`` files into tables."""

from __future__ import annotations

import csv
import re
import warnings
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Mapping
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from mipforest.data.columns import EXACT, Axis
from mipforest.errors import DataError, did_you_mean
from mipforest.files.streams import BLOCK, SUSPECT_RATIO, UnpackingError, most_unpacked, unpacked_blocks

#: Endings of the files that can be read.
SUFFIXES = (".csv", ".csv.gz", ".parquet")

#: What is a whole number as it is written; Python takes no more digits at once.
_WHOLE_NUMBER = r"\s*[+-]?[0-9]{1,4000}\s*"

#: Compressed text of more than 32 MiB is refused where it is more than 20 times the file: as numbers, and with what
#: reads them, it takes up to 14 times its size in memory.
_LARGE_TEXT, _LARGE_RATIO = 32 << 20, 20

#: Most rows of a Parquet file that are unpacked at a time.
_BATCH = 1024


def read_file(path: Path) -> Any:
    """Read a file with one column name each in its first line (``.csv``) or its schema (``.parquet``).

    ``.csv`` is UTF-8 text with values separated by commas, or by semicolons if the first line has
    semicolons and no comma; decimal points; blanks after a separator are ignored. Missing are empty
    values, ``NA``, ``NaN``, ``null`` and the like (pandas' list) and ``?``. ``.csv.gz`` is the same,
    compressed. Every column is kept, row numbers too.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    pandas.DataFrame
        The table; its index counts the data rows from 0.

    Raises
    ------
    DataError
        If there is no such file, it is a directory, of another kind, empty, cannot be read, or is a compressed
        file that unpacks to more than 200 times its size (and 4 MiB), text also to more than 20 times (and 32 MiB).
    """
    _check_path(path)
    try:
        return _read_parquet(path) if path.name.endswith(".parquet") else _read_csv(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _check_path(path: Path) -> None:
    if path.is_dir():
        raise DataError(f"{path} is a directory; name one of the {', '.join(SUFFIXES)} files in it")
    if not path.exists():
        neighbours = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        where = "" if path.parent.is_dir() else f": there is no directory {path.parent}"
        raise DataError(f"no file {path}{where}{did_you_mean(path.name, neighbours)}; check the path")
    if not path.name.endswith(SUFFIXES):
        raise DataError(f"{path} is of no known kind; convert it to one of {', '.join(SUFFIXES)}")


def _read_csv(path: Path) -> Any:
    content = _content_of(path)
    lines = TextIOWrapper(BytesIO(content), encoding="utf-8", newline="")
    header = next((line.lstrip() for line in lines if line.strip()), "")
    if not header:
        raise DataError(f"{path} is empty; it needs a line of column names and lines of values")
    separator = ";" if ";" in header and "," not in header else ","
    try:
        names = next(csv.reader(chain([header], lines), delimiter=separator, skipinitialspace=True))
    except csv.Error as error:  # a name longer than any, as where a quote is not closed
        raise DataError(
            f"the first line of {path} holds no column names ({error}); put a line of names on top"
        ) from error
    if all(map(_is_number, names)):
        raise DataError(
            f"the first line of {path} holds numbers, not column names; put a line of names on top"
        )
    Axis(tuple(names), f"{path}: column")
    options: dict[str, Any] = {
        "sep": separator,
        "na_values": ["?"],
        "skipinitialspace": True,
        "index_col": False,
        "low_memory": False,
    }
    import pandas as pd
    from pandas.errors import ParserError, ParserWarning

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)
            frame = _with_exact_integers(pd.read_csv(BytesIO(content), **options), content, options)
    except (ParserError, ParserWarning, csv.Error) as error:
        raise DataError(
            f"{path} is not a regular table ({str(error).strip()}); every line needs {len(names)} values"
        ) from error
    if frame.empty:
        raise DataError(f"{path} has column names but no rows; add data below them")
    return frame


def _content_of(path: Path) -> bytes:
    """Read a text file, compressed or not, without its byte order mark.

    As bytes, which parsers read without a copy: a text of hundreds of megabytes would be there several times.
    """
    try:
        if path.name.endswith(".gz"):
            most = min(most_unpacked(path), max(_LARGE_TEXT, _LARGE_RATIO * path.stat().st_size))
            data = b"".join(unpacked_blocks(path, most))
        else:
            data = path.read_bytes()
        decoder = getincrementaldecoder("utf-8")()
        for start in range(0, len(data), BLOCK):
            decoder.decode(data[start : start + BLOCK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        _refuse_encoding(path, data)
    except UnpackingError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if b"\0" in data:
        raise DataError(f"{path} is a binary file, not text; export it as .csv")
    return data.removeprefix(BOM_UTF8)


def _refuse_encoding(path: Path, data: bytes) -> NoReturn:
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8 .csv"
        ) from error
    raise AssertionError("decoded in parts, the text has an error, and none in one piece")


def _with_exact_integers(frame: Any, content: bytes, options: Mapping[str, Any]) -> Any:
    """Return a table whose columns keep whole numbers that pandas rounds, or takes for text.

    pandas reads a column as float64 if one of its values is missing or has a fraction, and as text if no type
    of its own has the range.
    """
    import pandas as pd

    suspects = [name for name in frame.columns if _may_be_rounded(frame[name])]
    if not suspects:
        return frame
    written = pd.read_csv(BytesIO(content), **options, dtype=str, usecols=suspects)
    for name in suspects:
        whole = written[name].str.fullmatch(_WHOLE_NUMBER).fillna(False).astype(bool)
        exact = frame[name].astype(object)
        exact[whole] = pd.Series([int(text) for text in written[name][whole]], exact.index[whole], object)
        frame[name] = exact
    return frame


def _may_be_rounded(column: Any) -> bool:
    import pandas as pd

    if column.dtype.kind == "f":
        return bool((column.abs() >= EXACT).any())
    texts = column.dropna()
    kind = pd.api.types.infer_dtype(texts)
    if kind != "string" or not re.fullmatch(_WHOLE_NUMBER, texts.iloc[0]):
        return False
    return bool(texts.str.fullmatch(_WHOLE_NUMBER).all())


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path) -> Any:
    if find_spec("pyarrow") is None:
        raise DataError("reading .parquet needs the package pyarrow: pip install 'mipforest[parquet]'")
    try:
        frame = _bounded_table(path)
    except DataError:
        raise
    except Exception as error:  # damage shows up as any of pyarrow's errors, and as several of Python's
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(
            f"{path} is not a readable parquet file: {reason}; write it again, or as .csv"
        ) from error
    if frame.empty:
        raise DataError(f"{path} has no rows or no columns; write it again with data")
    return frame


def _bounded_table(path: Path) -> Any:
    """Read a Parquet file in parts, and refuse one that grows as no honest file does.

    A dictionary and run lengths make any number of equal values out of a few bytes.
    """
    import pyarrow
    from pyarrow import parquet

    most = most_unpacked(path)
    suspect = DataError(
        f"{path} expands to more than {SUSPECT_RATIO} times its size; if you trust the file, write it as .csv"
    )
    with parquet.ParquetFile(path) as file:
        stored = [file.metadata.row_group(k).total_byte_size for k in range(file.metadata.num_row_groups)]
        if sum(stored) > most:
            raise suspect
        # No row is larger than all that its group stores: a part never holds more than is allowed.
        rows = max(1, min(_BATCH, most // max([1, *stored])))
        parts, size = [], 0
        for part in file.iter_batches(batch_size=rows):
            parts.append(part)
            size += max(part.nbytes, part.num_rows * part.num_columns)
            if size > most:
                raise suspect
        table = pyarrow.Table.from_batches(parts, file.schema_arrow)
    table.validate(full=True)  # texts that are no UTF-8 would fail when they are used
    return table.to_pandas(integer_object_nulls=True)
