"""One name for every source of data: scikit-learn's sets, generators, OpenML, and files (CSV, Parquet)."""

from __future__ import annotations

import csv
import os
import re
import shlex
import warnings
from codecs import BOM_UTF8, getincrementaldecoder
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from importlib.util import find_spec
from io import BytesIO, StringIO, TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.error import HTTPError

from mipforest.data.bundled import FEATURES, read_bundled
from mipforest.data.convention import (
    EXACT,
    Convention,
    DateOrder,
    Dates,
    is_text,
    levels_of,
    numbers_in,
    read_all,
    resolved,
    stripped,
)
from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.lines import LINES
from mipforest.data.synthetic import load_synthetic
from mipforest.data.table import Missing, renamed
from mipforest.data.target import Task
from mipforest.data.treatments import POLICY_TABLES, policy_table
from mipforest.errors import DataError, did_you_mean, no_file, some_of
from mipforest.unpacking import BLOCK, SUSPECT_RATIO, UnpackingError, max_unpacked, unpacked_blocks

#: Endings of text files of values, which may be compressed (``.csv.gz``).
TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".data")

#: Endings of the files that can be read.
SUFFIXES = (*TEXT_SUFFIXES, *(f"{suffix}.gz" for suffix in TEXT_SUFFIXES), ".arff", ".parquet")

#: Words of text files that stand for a missing value, beside nothing at all: those of pandas, and ``?``.
MISSING_WORDS = (
    "?",
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)

#: Separators of values that are found by themselves, and how they are called.
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}

#: What is a whole number as it is written; Python takes no more digits at once.
_WHOLE_NUMBER = r"\s*[+-]?[0-9]{1,4000}\s*"

#: Compressed text of more than 32 MiB is refused where it is more than 20 times the file: as numbers, and with what
#: reads them, it takes up to 14 times its size in memory.
_LARGE_TEXT, _LARGE_RATIO = 32 << 20, 20

#: Most rows of a Parquet file that are unpacked at a time.
_BATCH = 1024


@dataclass(frozen=True)
class TextFormat:
    """How a text file of values is written.

    Parameters
    ----------
    sep
        One character between values, a blank for any number of them, or ``"tab"``; ``None`` for what the first line
        has: commas, semicolons, tabs, bars, or blanks where the file is no ``.csv``.
    decimal
        ``"."`` or ``","``.
    encoding
        Name of the encoding, as Python knows it: ``"utf-8"``, ``"cp1252"`` (Windows), ``"latin-1"``.
    thousands
        Sign that sets thousands apart: ``","``, ``"."``, ``"'"`` or a blank; ``None`` for none.
    missing_values
        Words and numbers that stand for a missing value, beside :data:`MISSING_WORDS`.
    keep_words
        Words among these that stand for themselves, such as ``None``.
    header
        Whether the first line holds the names of the columns; otherwise they are ``c1``, ``c2``, ...
    names
        Names of the columns, in place of those in the first line; ``None`` for these.
    skip_lines
        Number of lines at the beginning that are left out, such as a title.

    Raises
    ------
    DataError
        If one of them is something else.
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    thousands: str | None = None
    missing_values: tuple[str, ...] = ()
    keep_words: tuple[str, ...] = ()
    header: bool = True
    names: tuple[str, ...] | None = None
    skip_lines: int = 0

    def __post_init__(self) -> None:
        if self.sep is not None and self.sep != "tab" and (len(self.sep) != 1 or self.sep in '"\n\r'):
            raise DataError(
                f"the separator is {self.sep!r}; give one character that stands between values, or tab"
            )
        Convention(decimal=self.decimal, thousands=self.thousands)
        if isinstance(self.skip_lines, bool) or not isinstance(self.skip_lines, int) or self.skip_lines < 0:
            raise DataError(f"skip_lines is {self.skip_lines!r}; give a number of lines, 0 or more")
        try:
            "".encode(self.encoding)
        except (LookupError, UnicodeError) as error:
            raise DataError(
                f"no encoding is called {self.encoding!r}; usual ones are utf-8, cp1252, latin-1 and utf-16"
            ) from error

    def __deepcopy__(self, _: Any) -> TextFormat:
        """Return itself, as nothing of it changes: pandas copies it with every column."""
        return self

    @property
    def character(self) -> str | None:
        """The separator as a character; ``None`` where the file tells it."""
        return "\t" if self.sep == "tab" else self.sep

    @property
    def missing_words(self) -> tuple[str, ...]:
        """All words that stand for a missing value."""
        words = dict.fromkeys((*MISSING_WORDS, *self.missing_values))
        return tuple(word for word in words if word not in self.keep_words)


#: What files are unless something else is said.
PLAIN = TextFormat()

#: Key of the attributes (``attrs``) of a table under which stands how its file was read, a :class:`TextFormat`, and
#: under which what is worth saying of it.
WRITTEN, REMARKS = "written", "remarks"


def read_file(path: Path, written: TextFormat = PLAIN, drop: Collection[str] = ()) -> Any:
    """Read a file with one column name each in its first line, or its schema (``.parquet``, ``.arff``).

    Text files (``.csv``, ``.tsv``, ``.txt``, ``.data``, also with ``.gz``) have values separated by commas, semicolons,
    tabs or bars, whichever the first line has, unless ``written`` says otherwise; blanks at both ends of values are
    left out. Missing are empty values and :data:`MISSING_WORDS`. Every column is kept, row numbers too. Where a column
    tells how its numbers are written (see :mod:`mipforest.data.convention`), all columns are read so.

    Parameters
    ----------
    path
        The file.
    written
        How a text file is written.
    drop
        Names of columns that are not read, before names are checked.

    Returns
    -------
    pandas.DataFrame
        The table; its index counts the data rows from 0. Its attributes say how the file was read (:data:`WRITTEN`),
        and what is worth a remark (:data:`REMARKS`).

    Raises
    ------
    DataError
        If there is no such file, it is a directory, of another kind, empty, cannot be read, or is a compressed
        file that unpacks to more than 200 times its size (and 4 MiB), text also to more than 20 times (and 32 MiB).
    """
    _check_path(path)
    try:
        if not is_text_file(path):
            of_values = replace(PLAIN, names=written.names, missing_values=written.missing_values)
            if written != replace(of_values, decimal=written.decimal, thousands=written.thousands):
                raise DataError(
                    f"{path} is a table of typed values: separator, encoding and lines of names are those of text "
                    "files; leave them out"
                )
            frame = _read_parquet(path) if path.name.endswith(".parquet") else _read_arff(path)
            frame = frame if written.names is None else renamed(frame, written.names)
            frame.attrs[WRITTEN] = written
            return frame
        return _read_text(path, written, drop)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def is_text_file(path: Path) -> bool:
    """Return whether a file is read as text, so that it has a separator, a decimal sign and an encoding."""
    return path.name.endswith(SUFFIXES) and not path.name.endswith((".parquet", ".arff"))


def first_line(path: Path, written: TextFormat) -> tuple[str, ...]:
    """Return what stands in the first line of a text file, as its names do; errors are those of :func:`read_file`."""
    _check_path(path)
    written = replace(written, header=True, names=None)
    lines = TextIOWrapper(BytesIO(_content_of(path, written.encoding)), encoding="utf-8", newline="")
    _skip(lines, written.skip_lines)
    header = next((line.lstrip() for line in lines if line.strip()), "")
    separator = written.character or _separator_in(header, path, written.decimal)
    return tuple(value.strip() for value in next(_rows([header], separator), ()))


def _check_path(path: Path) -> None:
    if path.is_dir():
        raise DataError(f"{path} is a directory; name one of the {', '.join(SUFFIXES)} files in it")
    if not path.exists():
        raise no_file(path)
    if not path.name.endswith(SUFFIXES):
        raise DataError(f"{path} is of no known kind; convert it to one of {', '.join(SUFFIXES)}")


def _read_text(path: Path, written: TextFormat, drop: Collection[str]) -> Any:
    content = _content_of(path, written.encoding)
    remarks: list[str] = []
    # Spreadsheets write the separator into a line of its own.
    first = content[:80].lstrip().split(b"\n", 1)[0].strip()
    told = re.fullmatch(rb'"?sep=(.)"?', first, re.IGNORECASE)
    if told is not None and written.skip_lines == 0:
        sign = told[1].decode(errors="replace")
        written = replace(written, skip_lines=1, sep=written.sep or ("tab" if sign == "\t" else sign))
        remarks.append(f"the first line says that values are separated by {SEPARATORS.get(sign, repr(sign))}")
    layout = _Layout.of(path, content, written)
    if layout.sniffed not in (None, ",", ";"):
        remarks.append(f"values are separated by {SEPARATORS[str(layout.sniffed)]}")
    if layout.replaced:
        remarks.append(f"the names of the first line were replaced: {some_of(layout.replaced)}")
    frame = _table_of(content, layout, written, drop)
    if written.header:
        _refuse_data_as_names(path, frame, layout.given)
    _refuse_equal_names(layout, list(frame.columns))
    found = resolved(frame, Convention(decimal=written.decimal, thousands=written.thousands))
    if (found.decimal, found.thousands) != (written.decimal, written.thousands):
        # Numbers that pandas has read already, such as 2.018, are written so, too.
        written = replace(written, decimal=found.decimal, thousands=found.thousands)
        before, frame = frame, _table_of(content, layout, written, drop)
        _refuse_mixed(path, before, frame, found)
        remarks.append(f"numbers are read with {found.options(Convention())[0]}, as columns of text tell")
    if frame.empty:
        raise DataError(f"{path} has column names but no rows; add data below them")
    frame.attrs[LINES] = FileLines(path, written, layout)
    frame.attrs[WRITTEN] = written
    frame.attrs[REMARKS] = tuple(remarks)
    return frame


def _refuse_mixed(path: Path, before: Any, frame: Any, found: Convention) -> None:
    """Refuse a file in which some numbers are numbers no more under the convention that others tell."""
    lost = [name for name in frame if is_text(frame[name]) and not is_text(before[name])]
    points = [name for name in lost if read_all(levels_of(frame[name]), found) is None]
    if points:
        others = [
            name for name in frame if is_text(before[name]) and read_all(levels_of(before[name]), found)
        ]
        raise DataError(
            f"{path}: numbers are written in different ways: {some_of(list(map(repr, others)))} with "
            f"{found.options(Convention())[0]}, {some_of(list(map(repr, points)))} with points; write them in one way",
            hint=f"or leave some of them out, such as with drop=[{others[0]!r}]",
            option=f"or leave some of them out, such as with --drop {shlex.quote(others[0])}",
        )


@dataclass(frozen=True)
class _Layout:
    """How the lines of a text file become rows.

    Attributes
    ----------
    path
        The file.
    separator
        The character between values; a blank for any number of blanks.
    sniffed
        The same where the first line told it.
    given, names
        What the first line holds, as it stands (nothing without a line of names), and the names of the columns.
    """

    path: Path
    separator: str
    sniffed: str | None
    given: tuple[str, ...]
    names: tuple[str, ...]
    header: bool
    skip_lines: int

    @property
    def replaced(self) -> tuple[str, ...]:
        """Names in the first line that others take the place of."""
        return self.given if self.header and self.given != self.names else ()

    @classmethod
    def of(cls, path: Path, content: bytes, written: TextFormat) -> _Layout:
        """Read the first line, and find out about the separator and the names."""
        lines = TextIOWrapper(BytesIO(content), encoding="utf-8", newline="")
        _skip(lines, written.skip_lines)
        header = next((line.lstrip() for line in lines if line.strip()), "")
        if not header:
            raise DataError(f"{path} is empty; it needs a line of column names and lines of values")
        separator = written.character or _separator_in(header, path, written.decimal)
        try:
            first = next(_rows(chain([header], lines), separator))
        except csv.Error as error:  # a name longer than any, as where a quote is not closed
            raise DataError(
                f"the first line of {path} holds no column names ({error}); put a line of names on top"
            ) from error
        first = [value.strip() for value in first]
        while separator == " " and first and not first[-1]:
            first.pop()  # blanks at the end of the line
        given = tuple(first) if written.header else ()
        names = written.names or given or tuple(f"c{k}" for k in range(1, len(first) + 1))
        if len(names) != len(first):
            what = "names" if written.header else "values"
            raise DataError(
                f"{len(names)} names are given, and the first line of {path} has {len(first)} {what} "
                f"({some_of([repr(value) for value in first])}); name every column"
            )
        if written.header and written.names is None:
            if all(map(_is_number, names)):
                raise _first_line_is_data(path, names, "numbers, not column names")
            if len(names) > 1 and names[0] and not any(names[1:]):
                raise DataError(
                    f"the first line of {path} has one text, {names[0]!r:.60}, and {len(names) - 1} empty name(s): "
                    "this looks like a title",
                    hint="leave the line out with skip_lines=1",
                    option="leave the line out with --skip-lines 1",
                )
        sniffed = separator if written.sep is None else None
        return cls(path, separator, sniffed, given, names, written.header, written.skip_lines)


def _separator_in(header: str, path: Path, decimal: str) -> str:
    """Return the separator that the first line tells."""
    if ";" in header and ("," not in header or decimal == ","):
        return ";"
    for sign in ("\t", ",", "|") if ".tsv" in path.suffixes else (",", "\t", "|"):
        if sign in header:
            return sign
    is_csv = ".csv" in path.suffixes
    return " " if not is_csv and " " in header.strip() else ","


def _skip(lines: Iterator[str], count: int) -> None:
    """Go past some lines, or all where there are fewer."""
    for _ in islice(lines, count):
        pass


def _rows(lines: Iterable[str], separator: str) -> Any:
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _first_line_is_data(path: Path, names: Sequence[str], what: str) -> DataError:
    shown = ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")
    return DataError(
        f"the first line of {path} holds {what} ({shown}): the first line is data",
        hint="read the file with header=False, and names=[...] for its columns; or put a line of names on top",
        option="read the file with --no-header, and --names a,b,... for its columns; or put a line of names on top",
    )


def _refuse_data_as_names(path: Path, frame: Any, names: Sequence[str]) -> None:
    """Refuse a file whose first line holds values such as those below it.

    Of numbers, a name is a number, too; of texts, it occurs below. A name that is none tells that the line holds names.
    """
    import pandas as pd

    numeric, texts = [], []
    if len(names) != frame.shape[1]:
        return  # columns were left out
    for position, name in enumerate(names):
        column = frame.iloc[:, position]
        if pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
            numeric.append(_is_number(name))
        elif is_text(column) and name:
            levels = column.dropna()
            if (levels == name).any():
                texts.append(True)
            elif levels.nunique() <= len(levels) / 2:  # of names and identifiers nothing can be told
                texts.append(False)
    alike = sum(texts)
    if all(numeric) and 2 * alike > len(texts):
        raise _first_line_is_data(path, names, "values such as those below it, not column names")


def _table_of(content: bytes, layout: _Layout, written: TextFormat, drop: Collection[str]) -> Any:
    """Return the table of a text file, numbers and missing values being read."""
    import pandas as pd
    from pandas.errors import ParserError, ParserWarning

    kept = [k for k, name in enumerate(layout.names) if name not in drop]
    # Positions stand for names while the file is read: those that are left out may be equal.
    options: dict[str, Any] = {
        "sep": r"\s+" if layout.separator == " " else layout.separator,
        "decimal": written.decimal,
        "keep_default_na": False,
        "na_values": ["", *written.missing_words],
        "skipinitialspace": True,
        "index_col": False,
        "low_memory": False,
        **_exactly(),
        "skiprows": layout.skip_lines,
        "header": 0 if layout.header else None,
        "names": list(range(len(layout.names))),
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)
            frame = _with_exact_integers(pd.read_csv(BytesIO(content), **options), content, options)
    except (ParserError, ParserWarning, csv.Error) as error:
        raise _irregular(layout, content, str(error)) from error
    # In place, as pandas before 3 copies all of a table that is made of columns.
    if len(kept) < len(layout.names):
        frame = frame[kept].copy()
    convention = Convention(decimal=written.decimal, thousands=written.thousands)
    for k in kept:
        column = frame[k]
        if is_text(column) and (own := _stripped(column, written, convention)) is not column:
            frame[k] = own
    frame.columns = [layout.names[k] or f"Unnamed: {k}" for k in kept]
    return frame


def _stripped(column: Any, written: TextFormat, convention: Convention) -> Any:
    """Return a column of text without blanks at ends of values; of numbers, where they alone made it text."""
    texts = stripped(column)
    if texts is column:
        return column
    texts = texts.mask(texts.isin(["", *written.missing_words]))
    levels = levels_of(texts)
    values = numbers_in(levels, convention)
    if len(levels) and values.notna().all():
        return texts.map(dict(zip(levels, values, strict=True))).infer_objects()
    return texts


def _refuse_equal_names(layout: _Layout, names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        shown = some_of([repr(name) for name in repeated])
        numbered = ",".join(
            f"{name}_{names[: k + 1].count(name)}" if name in repeated else name
            for k, name in enumerate(names)
        )
        new = numbered.split(",")
        raise DataError(
            f"{layout.path}: column names must differ, but these occur more than once: {shown}; rename them",
            hint=f"give other names, such as names={new if len(new) < 10 else [*new[:6], '...']!r}, or leave all of "
            f"one name out with drop=[{repeated[0]!r}]",
            option=f"give other names, such as --names {shlex.quote(numbered[:200])}, or leave all of one name out "
            f"with --drop {shlex.quote(repeated[0])}",
        )


@dataclass(frozen=True)
class FileLines:
    """The lines of a text file, read again when a message names one."""

    path: Path
    written: TextFormat
    layout: _Layout

    def __deepcopy__(self, _: Any) -> FileLines:
        """Return itself, as nothing of it changes: pandas copies it with every column."""
        return self

    def line(self, row: int) -> int | None:
        """Return the line, counted from 1, on which a data row begins; ``None`` where the file cannot be read again."""
        try:
            content = _content_of(self.path, self.written.encoding)
        except (DataError, OSError):
            return None
        lines, first_row = _records(content, self.layout), -1 if self.layout.header else 0
        last, rows = self.layout.skip_lines, first_row
        try:
            for values in lines:
                first, last = last + 1, self.layout.skip_lines + lines.line_num
                # As in pandas, blank lines do not count.
                if values not in ([], [""]):
                    if rows == row:
                        return first
                    rows += 1
        except csv.Error:
            pass
        return None

    def missing_words(self, column: str) -> Collection[str]:
        """Return the words of a column that count as missing."""
        try:
            content = _content_of(self.path, self.written.encoding)
        except (DataError, OSError):
            return ()
        names, words = [*self.layout.names], {*self.written.missing_words}
        if column not in names:
            return ()
        position = names.index(column)
        found = set()
        try:
            for values in _records(content, self.layout):
                if len(values) > position:
                    found.add(values[position].strip())
        except csv.Error:
            pass
        return found & words

    def short(self) -> str:
        """Say which lines have fewer values than there are columns; empty where none has."""
        try:
            content = _content_of(self.path, self.written.encoding)
        except (DataError, OSError):
            return ""
        expected, count, first = len(self.layout.names), 0, ""
        lines = _records(content, self.layout)
        try:
            for values in lines:
                if values not in ([], [""]) and len(values) < expected:
                    count += 1
                    first = first or f"line {self.layout.skip_lines + lines.line_num} ({len(values)})"
        except csv.Error:
            pass
        if not count:
            return ""
        if count == 1:
            return f"{first} has fewer values than the {expected} columns"
        return f"{count} rows have fewer values than the {expected} columns, the first in {first}"


def _records(content: bytes, layout: _Layout) -> Any:
    """Go through the lines of values of a text file."""
    lines = TextIOWrapper(BytesIO(content), encoding="utf-8", newline="")
    _skip(lines, layout.skip_lines)
    return _rows(lines, layout.separator)


def _irregular(layout: _Layout, content: bytes, why: str) -> DataError:
    """Name the first line that has more values than there are names, counted as an editor does; else pandas' reason."""
    path, count = layout.path, len(layout.names)
    lines = _records(content, layout)
    try:
        for record, values in enumerate(line for line in lines if line not in ([], [""])):
            if len(values) > count:
                what, ways = "names" if layout.header else "values", ("", "")
                if layout.header and record == 1:
                    ways = (
                        "; of a title, skip_lines=1 leaves it out",
                        "; of a title, --skip-lines 1 leaves it out",
                    )
                hint = f"quote a value that holds {layout.separator!r}, or take the extra ones out"
                return DataError(
                    f"{path} is ragged: line {layout.skip_lines + lines.line_num} has {len(values)} values, and the "
                    f"first line {count} {what}",
                    hint=hint + ways[0],
                    option=hint + ways[1],
                )
    except csv.Error as error:
        why = f"line {layout.skip_lines + lines.line_num}: {error}"
    return DataError(f"{path} is not a regular table ({why.strip()}); every line needs {count} values")


def _content_of(path: Path, encoding: str = "utf-8") -> bytes:
    """Read a text file, compressed or not, as UTF-8 without its byte order mark.

    As bytes, which parsers read without a copy: a text of hundreds of megabytes would be there several times.
    """
    try:
        if path.name.endswith(".gz"):
            most = min(max_unpacked(path), max(_LARGE_TEXT, _LARGE_RATIO * path.stat().st_size))
            data = b"".join(unpacked_blocks(path, most))
        else:
            data = path.read_bytes()
        if encoding != "utf-8":
            return _refuse_binary(path, data.decode(encoding).removeprefix("\ufeff").encode())
        decoder = getincrementaldecoder("utf-8")()
        for start in range(0, len(data), BLOCK):
            decoder.decode(data[start : start + BLOCK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise DataError(
                f"{path} is not written in {encoding} ({error.reason} at byte {error.start}); give another encoding"
            ) from error
        _refuse_encoding(path, data)
    except UnpackingError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return _refuse_binary(path, data).removeprefix(BOM_UTF8)


def _refuse_binary(path: Path, data: bytes) -> bytes:
    if b"\0" in data:
        raise DataError(f"{path} is a binary file, not text; export it as .csv")
    return data


def _refuse_encoding(path: Path, data: bytes) -> NoReturn:
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start})",
            hint="save it as UTF-8 .csv, or say how it is written, such as encoding='cp1252' of Windows",
            option="save it as UTF-8 .csv, or say how it is written, such as --encoding cp1252 of Windows",
        ) from error
    raise AssertionError("decoded in parts, the text has an error, and none in one piece")


def _exactly() -> dict[str, Any]:
    """Return what has pandas read numbers as the nearest doubles; from 3.1 on it does so without being told."""
    import pandas as pd

    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}


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
        whole = written[name].astype(object).str.fullmatch(_WHOLE_NUMBER).fillna(False).astype(bool)
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
    return bool(texts.astype(object).str.fullmatch(_WHOLE_NUMBER).all())


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


#: A declaration of a column in the header of an ``.arff`` file: its name and type.
_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)


def _read_arff(path: Path) -> Any:
    """Read a file of Weka: numbers, and texts for all other attributes.

    scipy's reader takes no texts, and no quoted values after blanks.
    """
    import pandas as pd

    text = _content_of(path).decode()
    split = re.split(r"^[ \t]*@data[ \t]*\r?$", text, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)
    head, body = split if len(split) == 2 else (text, "")
    found = [_ATTRIBUTE.match(line.strip()) for line in head.splitlines()]
    attributes = [(match[1].strip("'\""), match[2].strip().lower()) for match in found if match]
    if not attributes or len(split) == 1:
        raise DataError(f"{path} is not a readable .arff file: it needs lines @attribute and @data")
    body = "\n".join(line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("%"))
    if body.lstrip().startswith("{"):
        raise DataError(f"{path} is a sparse .arff file, which is not read; write it as .csv")
    numeric = [kind in ("numeric", "real", "integer") for _, kind in attributes]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = pd.read_csv(
                StringIO(body),
                header=None,
                names=range(len(attributes)),
                index_col=False,
                dtype={k: str for k, is_number in enumerate(numeric) if not is_number},
                keep_default_na=False,
                na_values=["?"],
                skipinitialspace=True,
                quotechar="'" if "'" in body else '"',
                escapechar="\\",
                low_memory=False,
                **_exactly(),
            )
    except (ValueError, Warning) as error:  # pandas' errors of parsing are ValueErrors
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} is not a readable .arff file: {reason}; write it as .csv") from error
    if frame.empty:
        raise DataError(f"{path} has no rows; write it again with data")
    frame = frame.set_axis([name for name, _ in attributes], axis="columns")
    return frame.apply(stripped)


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

    most = max_unpacked(path)
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


#: The target column of a file if none is named.
DEFAULT_TARGET = "target"


class CatalogueEntry(NamedTuple):
    """A data set that :func:`load` finds without a file or network; ``classes`` counts classes or treatments."""

    name: str
    task: Task
    n: int
    p: int
    classes: int
    description: str


#: Data sets that come with scikit-learn.
BUNDLED = tuple(FEATURES)

_CATALOGUE = (
    CatalogueEntry(
        "breast_cancer",
        "classification",
        569,
        30,
        2,
        "Wisconsin diagnostic: is a tumour malignant (class 0) or benign?",
    ),
    CatalogueEntry("diabetes", "regression", 442, 10, 0, "progression of diabetes after a year"),
    CatalogueEntry("digits", "classification", 1797, 64, 10, "handwritten digits, 8 x 8 pixels"),
    CatalogueEntry("iris", "classification", 150, 4, 3, "three species of iris"),
    CatalogueEntry("wine", "classification", 178, 13, 3, "three cultivars of wine by chemical analysis"),
    CatalogueEntry(
        "synthetic:4-partitions",
        "classification",
        108,
        2,
        2,
        "separable by a tree of depth 2 (MARGOT paper)",
    ),
    CatalogueEntry(
        "synthetic:6-partitions",
        "classification",
        96,
        2,
        2,
        "separable by a tree of depth 3 (MARGOT paper)",
    ),
    CatalogueEntry(
        "synthetic:tree",
        "classification",
        1000,
        5,
        2,
        "random ground-truth tree (Dunn); options: depth= n= p= classes= density= ...",
    ),
    CatalogueEntry(
        "synthetic:treatments",
        "prescription",
        1000,
        20,
        2,
        "two treatments with known outcomes (Dunn); options: experiment= n= functions= ...",
    ),
    CatalogueEntry(
        "synthetic:curves",
        "regression",
        200,
        60,
        0,
        "curves of which one interval tells the target; options: n= points= begin= end= noise=",
    ),
)


def catalogue() -> list[CatalogueEntry]:
    """List the data sets that need neither a file nor a network."""
    return list(_CATALOGUE)


def load(
    spec: str | Path,
    *,
    target: str | None = None,
    seed: int = 0,
    scaling: Scaling = "minmax",
    task: Task | None = None,
    missing: Missing = "error",
    weight: str | None = None,
    treatment: str | None = None,
    rewards: Sequence[str] = (),
    targets: Sequence[str] = (),
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    fill_from: Collection[str] | None = None,
    categorical: str | Collection[str] = (),
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    dates: Dates | None = None,
    date_order: DateOrder | None = None,
    thousands: str | None = None,
    missing_values: Collection[str] = (),
    keep_words: Collection[str] = (),
    header: bool = True,
    names: Sequence[str] | None = None,
    skip_lines: int = 0,
    unlabelled: bool = False,
) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    spec
        A bundled name (``iris``; see :func:`catalogue`), ``synthetic:...``, ``openml:NAME``,
        ``openml:NAME@VERSION``, ``openml:ID``, ``jobs:FOLDER`` or ``ihdp:FILE`` (published tables with treatments,
        see :data:`~mipforest.data.treatments.POLICY_TABLES`), or the path of a ``.csv``, ``.csv.gz`` or ``.parquet``
        file. A bundled name comes before a file.
    target
        Column to predict, for a file (default: ``target``) or an OpenML data set (default: its own).
    seed
        Seed of a generated data set whose name has none.
    scaling
        ``"minmax"``, ``"standard"`` or ``"none"``.
    task
        ``"classification"``, ``"regression"``, or ``None`` to infer it
        (see :func:`mipforest.data.target.read_target`).
    missing
        Rows that lack a value: ``"error"`` refuses them, ``"drop"`` drops them, ``"impute"`` fills them in, as learned
        from the samples ``fill_from`` (their ids; all if ``None``), ``"branch"`` lets splits send them to a side.
    weight
        Column of weights, for a file or an OpenML data set; rows of weight 0 are left out.
    treatment
        Column of treatments, of the same; ``target`` then names the column of the outcomes that they led to.
    rewards
        Of a file, columns of rewards, one for each decision, in place of a target: what the decision is worth for the
        row, of any sign, higher is better. Decisions are called as their columns.
    targets
        Of a file, columns of several targets, in place of one: all numbers, or all labels.
    drop, keep
        Of a file or an OpenML data set, columns to leave out, and columns of text that are features however many levels
        they have.
    categorical
        Of the same, columns of which a split sends a set of levels to each side, or ``"all"``; as for
        :meth:`Dataset.from_frame`.
    sep, decimal, encoding, thousands, missing_values, keep_words, header, names, skip_lines
        How a text file is written; see :class:`TextFormat`.
    dates, date_order
        Of a file, how columns of dates become numbers: ``"days"`` or ``"parts"``, see
        :func:`~mipforest.data.dates.dates_as_numbers`; ``None`` refuses them. What comes first in 1/5/2019, the day
        (``"dmy"``) or the month (``"mdy"``); ``None`` where values tell.
    unlabelled
        Of a file or an OpenML data set, whether rows without a value of the target are samples without a label
        (:attr:`Dataset.unlabelled`); otherwise they are missing values.

    Raises
    ------
    DataError
        If nothing is found under this name or the data cannot be used.
    """
    name = str(spec)
    written = TextFormat(
        sep,
        decimal,
        encoding,
        thousands,
        tuple(map(str, missing_values)),
        tuple(map(str, keep_words)),
        header,
        None if names is None else tuple(map(str, names)),
        skip_lines,
    )
    kind, colon, rest = name.partition(":")
    is_file = name not in BUNDLED and not (colon and kind in ("openml", "synthetic", *POLICY_TABLES))
    if (written != PLAIN or dates or date_order or rewards or targets) and not is_file:
        raise DataError(
            f"{name} is no file: it has no separator, decimal sign, encoding, dates, rewards or several targets; leave "
            "them out"
        )
    if colon and kind == "openml":
        return load_openml(
            rest,
            target=target,
            task=task,
            scaling=scaling,
            missing=missing,
            weight=weight,
            treatment=treatment,
            drop=drop,
            keep=keep,
            fill_from=fill_from,
            categorical=categorical,
            unlabelled=unlabelled,
        )
    if colon and kind in POLICY_TABLES:
        if target is not None or treatment is not None or weight is not None:
            raise DataError(f"{kind} has fixed columns of treatments and outcomes, and no weights; name none")
        frame = policy_table(kind, rest)
        return Dataset.from_frame(
            frame,
            "outcome",
            name=kind,
            scaling=scaling,
            missing=missing,
            treatment="treatment",
            drop=drop,
            keep=keep,
            fill_from=fill_from,
            categorical=categorical,
        )
    if is_file:
        how = {"task": task, "scaling": scaling, "missing": missing, "weight": weight, "treatment": treatment}
        return _load_file(
            name,
            target or (None if rewards or targets else DEFAULT_TARGET),
            written,
            **how,
            rewards=rewards,
            targets=targets,
            drop=drop,
            keep=keep,
            fill_from=fill_from,
            categorical=categorical,
            dates=dates,
            date_order=date_order,
            unlabelled=unlabelled,
        )
    if drop or keep or categorical:
        named = [categorical] if isinstance(categorical, str) else categorical
        raise DataError(
            f"{name} has fixed columns of numbers: none is dropped, kept or categorical; leave out "
            f"{some_of([*drop, *keep, *named])}"
        )
    if weight is not None:
        raise DataError(
            f"{name} has no column of weights, it cannot be {weight!r}",
            hint="leave it out, or weigh the samples with data.with_weights(...)",
            option="leave --weight out, or save the data with weights as a .csv file",
        )
    if treatment is not None:
        raise DataError(f"{name} has no column of treatments to name; leave {treatment!r} out")
    if target is not None:
        raise DataError(f"{name} has a fixed target, it cannot be {target!r}; leave the target out")
    if name in BUNDLED:
        return load_bundled(name, task=task, scaling=scaling)
    data = load_synthetic(rest, seed=seed, scaling=scaling)
    if task not in (None, data.task):
        raise DataError(
            f"{name} is a {data.task}, not a {task}; for a regression write synthetic:tree,task=regression"
        )
    return data


def _load_file(name: str, target: str | None, written: TextFormat, **how: Any) -> Dataset:
    path = Path(name).expanduser()
    if not path.exists() and path.name == name and not name.endswith(SUFFIXES):
        known = [entry.name for entry in catalogue()]
        raise DataError(
            f"no data set is called {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}, "
            f"openml:NAME, and files ending in {', '.join(SUFFIXES)}"
        )
    roles = (target, how["weight"], how["treatment"], *how["rewards"], *how["targets"])
    frame = read_file(path, written, [name for name in how["drop"] if name not in roles])
    if (lines := frame.attrs.get(LINES)) is not None:  # what was left out already is not there to be left out
        how["drop"] = [name for name in how["drop"] if name in frame or name not in lines.layout.names]
    written, remarks = frame.attrs.pop(WRITTEN), frame.attrs.pop(REMARKS, ())
    # Bytes that are no text become a sign that says so: the name goes into files, pages and models.
    stem = os.fsencode(path.name.removesuffix(".gz").rpartition(".")[0]).decode(errors="replace")
    try:
        return Dataset.from_frame(
            frame,
            target,
            name=stem,
            decimal=written.decimal,
            thousands=written.thousands,
            missing_values=written.missing_values,
            notes=remarks,
            **how,
        )
    except DataError as error:
        raise error.located(str(path)) from error


def load_bundled(name: str, *, task: Task | None = None, scaling: Scaling = "minmax") -> Dataset:
    """Load a data set that comes with scikit-learn.

    Parameters
    ----------
    name
        One of :data:`BUNDLED`; ``diabetes`` is in its original units.
    task
        Overrides what the data set is for.
    scaling
        ``"minmax"``, ``"standard"`` or ``"none"``.
    """
    table = read_bundled(name)
    usual = next(entry.task for entry in _CATALOGUE if entry.name == name)
    task = task or usual
    names = list(table.classes) if task == usual == "classification" else None
    return Dataset.from_arrays(
        table.X,
        table.y,
        features=table.features,
        classes=names,
        name=name,
        task=task,
        scaling=scaling,
    )


def load_openml(
    reference: str,
    *,
    target: str | None = None,
    task: Task | None = None,
    scaling: Scaling = "minmax",
    missing: Missing = "error",
    weight: str | None = None,
    treatment: str | None = None,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    fill_from: Collection[str] | None = None,
    categorical: str | Collection[str] = (),
    unlabelled: bool = False,
) -> Dataset:
    """Load a data set from OpenML.

    What was fetched once is kept in scikit-learn's data folder (``SCIKIT_LEARN_DATA``) and needs no
    network again. Warnings of OpenML, such as several active versions, are among the notes.

    Parameters
    ----------
    reference
        ``NAME`` (oldest active version), ``NAME@VERSION`` or the data set's number ``ID``.
    target
        Column to predict; OpenML's default target if not given.
    task, scaling, missing, weight, treatment, drop, keep, fill_from, categorical, unlabelled
        As for :meth:`Dataset.from_frame`.

    Raises
    ------
    DataError
        If OpenML cannot be reached, has no such data set, or the data set is sparse or has no single target.
    """
    from sklearn.datasets import fetch_openml, get_data_home  # takes seconds, as above

    query = _query(reference)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            bunch = fetch_openml(
                **query, target_column=target or "default-target", as_frame=True, parser="auto"
            )
    except HTTPError as error:
        raise DataError(
            f"OpenML answered {error.code} ({error.reason}) for {reference!r}; check the name on openml.org, "
            "or try again later"
        ) from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"OpenML cannot be reached ({reason}); check the network, or save the data set as .csv "
            f"and load that file. Data sets fetched before are kept in {get_data_home()} and need no network"
        ) from error
    except KeyError as error:
        raise DataError(
            f"the OpenML data set {reference!r} has no usable column {target!r} ({error.args[0]})"
        ) from error
    except ValueError as error:
        raise DataError(f"the OpenML data set {reference!r} cannot be loaded: {error}") from error
    notes = [f"OpenML: {' '.join(str(warning.message).split())}" for warning in said]
    name = f"openml:{bunch.details['name']}@{bunch.details['version']}"
    return Dataset.from_frame(
        bunch.frame,
        _target_of(bunch, reference),
        name=name,
        task=task,
        scaling=scaling,
        missing=missing,
        weight=weight,
        treatment=treatment,
        notes=notes,
        drop=drop,
        keep=keep,
        fill_from=fill_from,
        categorical=categorical,
        unlabelled=unlabelled,
    )


def _query(reference: str) -> dict[str, Any]:
    """Turn ``NAME``, ``NAME@VERSION`` or ``ID`` into arguments of scikit-learn's client."""
    name, at, version = reference.strip().rpartition("@")
    if not at:
        name, version = version, ""
    if not name or (at and not version.isdecimal()):
        raise DataError(
            f"cannot read 'openml:{reference}'; write openml:NAME, openml:NAME@VERSION or openml:ID"
        )
    if at:
        return {"name": name, "version": int(version)}
    return {"data_id": int(name)} if name.isdecimal() else {"name": name}


def _target_of(bunch: Any, reference: str) -> str:
    names = list(bunch.target_names)
    if len(names) != 1:
        columns = ", ".join(map(str, bunch.frame.columns))
        raise DataError(
            f"the OpenML data set {reference!r} has {len(names)} default targets, one is needed; "
            f"name the column to predict (--target), one of: {columns}"
        )
    return str(names[0])
