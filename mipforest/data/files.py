"""Reading ``.csv``, ``.csv.gz`` and ``.parquet`` files into tables."""

from __future__ import annotations

import csv
import gzip
import warnings
import zlib
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.errors import ParserError, ParserWarning

from mipforest.data.axis import Axis
from mipforest.errors import DataError, did_you_mean

#: Endings of the files that can be read.
SUFFIXES = (".csv", ".csv.gz", ".parquet")


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
        If there is no such file, it is a directory, of another kind, empty, or cannot be read.
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
    content = _text_of(path)
    if not content.strip():
        raise DataError(f"{path} is empty; it needs a line of column names and lines of values")
    header = content.lstrip().partition("\n")[0]
    separator = ";" if ";" in header and "," not in header else ","
    names = next(csv.reader(StringIO(content.lstrip()), delimiter=separator, skipinitialspace=True))
    if all(map(_is_number, names)):
        raise DataError(
            f"the first line of {path} holds numbers, not column names; put a line of names on top"
        )
    Axis(tuple(names), f"{path}: column")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)
            frame = pd.read_csv(
                StringIO(content),
                sep=separator,
                na_values=["?"],
                skipinitialspace=True,
                index_col=False,
                low_memory=False,
            )
    except (ParserError, ParserWarning, csv.Error) as error:
        raise DataError(
            f"{path} is not a regular table ({str(error).strip()}); every line needs {len(names)} values"
        ) from error
    if frame.empty:
        raise DataError(f"{path} has column names but no rows; add data below them")
    return frame


def _text_of(path: Path) -> str:
    """Read a text file, compressed or not, without its byte order mark."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8 .csv"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} is not a complete gzip file ({error}); compress it again, or rename it to .csv"
        ) from error
    if "\0" in text:
        raise DataError(f"{path} is a binary file, not text; export it as .csv")
    return text


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
        frame = pd.read_parquet(path, engine="pyarrow")
    except ValueError as error:  # pyarrow's ArrowInvalid, and columns of the same name
        raise DataError(f"{path} is not a readable parquet file: {error}") from error
    if frame.empty:
        raise DataError(f"{path} has no rows or no columns; write it again with data")
    return frame
