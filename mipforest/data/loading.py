"""One name for every source of data: scikit-learn's sets, generators, OpenML, and files (CSV, Parquet)."""

from __future__ import annotations

import csv
import os
import re
import shlex
import warnings
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.error import HTTPError

from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.synthetic import load_synthetic
from mipforest.data.table import EXACT, LINES, Axis, Dates, Missing
from mipforest.data.target import Task
from mipforest.data.treatments import POLICY_TABLES, policy_table
from mipforest.errors import DataError, did_you_mean, some_of
from mipforest.unpacking import BLOCK, SUSPECT_RATIO, UnpackingError, max_unpacked, unpacked_blocks

#: Endings of the files that can be read.
SUFFIXES = (".csv", ".csv.gz", ".parquet")

#: What is a whole number as it is written; Python takes no more digits at once.
_WHOLE_NUMBER = r"\s*[+-]?[0-9]{1,4000}\s*"

#: Compressed text of more than 32 MiB is refused where it is more than 20 times the file: as numbers, and with what
#: reads them, it takes up to 14 times its size in memory.
_LARGE_TEXT, _LARGE_RATIO = 32 << 20, 20

#: Most rows of a Parquet file that are unpacked at a time.
_BATCH = 1024


@dataclass(frozen=True)
class TextFormat:
    """How a ``.csv`` file is written.

    Parameters
    ----------
    sep
        One character between values, or ``"tab"``; ``None`` for commas, or semicolons where the first line has
        semicolons and no comma, or the decimal sign is a comma.
    decimal
        ``"."`` or ``","``.
    encoding
        Name of the encoding, as Python knows it: ``"utf-8"``, ``"cp1252"`` (Windows), ``"latin-1"``.

    Raises
    ------
    DataError
        If one of them is something else.
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.sep is not None and self.sep != "tab" and (len(self.sep) != 1 or self.sep in '"\n\r'):
            raise DataError(
                f"the separator is {self.sep!r}; give one character that stands between values, or tab"
            )
        if self.decimal not in (".", ","):
            raise DataError(f"the decimal sign is {self.decimal!r}; give . or ,")
        if self.sep == self.decimal:
            raise DataError(
                f"{self.sep!r} is both the separator and the decimal sign; values could not be told apart: write the "
                "file with another separator, such as ;"
            )
        try:
            "".encode(self.encoding)
        except (LookupError, UnicodeError) as error:
            raise DataError(
                f"no encoding is called {self.encoding!r}; usual ones are utf-8, cp1252, latin-1 and utf-16"
            ) from error

    @property
    def character(self) -> str | None:
        """The separator as a character; ``None`` where the file tells it."""
        return "\t" if self.sep == "tab" else self.sep


#: What files are unless something else is said.
PLAIN = TextFormat()


def read_file(path: Path, written: TextFormat = PLAIN) -> Any:
    """Read a file with one column name each in its first line (``.csv``) or its schema (``.parquet``).

    ``.csv`` is text with values separated by commas, or by semicolons if the first line has
    semicolons and no comma, unless ``written`` says otherwise; blanks after a separator are ignored. Missing are empty
    values, ``NA``, ``NaN``, ``null`` and the like (pandas' list) and ``?``. ``.csv.gz`` is the same,
    compressed. Every column is kept, row numbers too.

    Parameters
    ----------
    path
        The file.
    written
        How a ``.csv`` is written.

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
        if not path.name.endswith(".parquet"):
            return _read_csv(path, written)
        if written != PLAIN:
            raise DataError(
                f"{path} is a table of typed values: separator, decimal sign and encoding are those of .csv files; "
                "leave them out"
            )
        return _read_parquet(path)
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


def _read_csv(path: Path, written: TextFormat) -> Any:
    content = _content_of(path, written.encoding)
    lines = TextIOWrapper(BytesIO(content), encoding="utf-8", newline="")
    header = next((line.lstrip() for line in lines if line.strip()), "")
    if not header:
        raise DataError(f"{path} is empty; it needs a line of column names and lines of values")
    semicolons = ";" in header and ("," not in header or written.decimal == ",")
    separator = written.character or (";" if semicolons else ",")
    if separator == written.decimal:
        raise DataError(
            f"the first line of {path} separates names by commas, and the decimal sign is a comma, too; give the "
            "separator, or write the file with semicolons"
        )
    try:
        names = next(csv.reader(chain([header], lines), delimiter=separator, skipinitialspace=True))
    except csv.Error as error:  # a name longer than any, as where a quote is not closed
        raise DataError(
            f"the first line of {path} holds no column names ({error}); put a line of names on top"
        ) from error
    other = next((sign for sign in "\t|" if sign in names[0]), None)
    if len(names) == 1 and written.sep is None and other is not None:
        called = "tab" if other == "\t" else other
        raise DataError(
            f"the first line of {path} is one name, {names[0]!r:.60}: this looks like another separator",
            hint=f"read the file with sep={called!r}",
            option=f"--sep {shlex.quote(called)} reads it",
        )
    if all(map(_is_number, names)):
        raise DataError(
            f"the first line of {path} holds numbers, not column names; put a line of names on top"
        )
    Axis(tuple(names), f"{path}: column")
    options: dict[str, Any] = {
        "sep": separator,
        "decimal": written.decimal,
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
        raise DataError(_what_is_irregular(path, content, separator, names, str(error))) from error
    if frame.empty:
        raise DataError(f"{path} has column names but no rows; add data below them")
    frame.attrs[LINES] = FileLines(path, written, separator)
    return frame


@dataclass(frozen=True)
class FileLines:
    """The lines of a ``.csv`` file, read again when a message names one."""

    path: Path
    written: TextFormat
    separator: str

    def line(self, row: int) -> int | None:
        """Return the line, counted from 1, on which a data row begins; ``None`` where the file cannot be read again."""
        try:
            content = _content_of(self.path, self.written.encoding)
        except (DataError, OSError):
            return None
        lines, last, rows = _records(content, self.separator), 0, -1
        try:
            for values in lines:
                first, last = last + 1, lines.line_num
                # As in pandas, blank lines do not count; the first other one holds the names.
                if values not in ([], [""]):
                    if rows == row:
                        return first
                    rows += 1
        except csv.Error:
            pass
        return None


def _records(content: bytes, separator: str) -> Any:
    """Go through the lines of values of a text file."""
    lines = TextIOWrapper(BytesIO(content), encoding="utf-8", newline="")
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _what_is_irregular(path: Path, content: bytes, separator: str, names: list[str], why: str) -> str:
    """Name the first line that has more values than there are names, counted as an editor does; else pandas' reason."""
    lines = _records(content, separator)
    try:
        for values in lines:
            if len(values) > len(names):
                return (
                    f"{path} is ragged: line {lines.line_num} has {len(values)} values, and the first line "
                    f"{len(names)} names; quote a value that holds {separator!r}, or take the extra ones out"
                )
    except csv.Error as error:
        why = f"line {lines.line_num}: {error}"
    return f"{path} is not a regular table ({why.strip()}); every line needs {len(names)} values"


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


#: Data sets that come with scikit-learn, with the arguments of its ``load_NAME``; ``diabetes`` in its original units.
BUNDLED: dict[str, dict[str, Any]] = {
    "breast_cancer": {},
    "diabetes": {"scaled": False},
    "digits": {},
    "iris": {},
    "wine": {},
}

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
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    fill_from: Collection[str] | None = None,
    categorical: str | Collection[str] = (),
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    dates: Dates | None = None,
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
    drop, keep
        Of a file or an OpenML data set, columns to leave out, and columns of text that are features however many levels
        they have.
    categorical
        Of the same, columns of which a split sends a set of levels to each side, or ``"all"``; as for
        :meth:`Dataset.from_frame`.
    sep, decimal, encoding
        How a ``.csv`` file is written; see :class:`TextFormat`.
    dates
        Of a file, how columns of dates become numbers: ``"days"`` or ``"parts"``, see
        :func:`~mipforest.data.table.dates_as_numbers`; ``None`` refuses them.

    Raises
    ------
    DataError
        If nothing is found under this name or the data cannot be used.
    """
    name, written = str(spec), TextFormat(sep, decimal, encoding)
    kind, colon, rest = name.partition(":")
    is_file = name not in BUNDLED and not (colon and kind in ("openml", "synthetic", *POLICY_TABLES))
    if (written != PLAIN or dates or rewards) and not is_file:
        raise DataError(
            f"{name} is no file: it has no separator, decimal sign, encoding, dates or rewards; leave them out"
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
            target or (None if rewards else DEFAULT_TARGET),
            written,
            **how,
            rewards=rewards,
            drop=drop,
            keep=keep,
            fill_from=fill_from,
            categorical=categorical,
            dates=dates,
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
    frame = read_file(path, written)
    # Bytes that are no text become a sign that says so: the name goes into files, pages and models.
    stem = os.fsencode(path.name.removesuffix(".gz").rpartition(".")[0]).decode(errors="replace")
    try:
        return Dataset.from_frame(frame, target, name=stem, **how)
    except DataError as error:
        raise error.located(str(path)) from error


def load_bundled(name: str, *, task: Task | None = None, scaling: Scaling = "minmax") -> Dataset:
    """Load a data set that comes with scikit-learn.

    Parameters
    ----------
    name
        A key of :data:`BUNDLED`.
    task
        Overrides what the data set is for.
    scaling
        ``"minmax"``, ``"standard"`` or ``"none"``.
    """
    from sklearn import datasets  # takes seconds, and other sources of data need none of it

    bunch = getattr(datasets, f"load_{name}")(**BUNDLED[name])
    usual = next(entry.task for entry in _CATALOGUE if entry.name == name)
    task = task or usual
    names = [str(label) for label in bunch.target_names] if task == usual == "classification" else None
    return Dataset.from_arrays(
        bunch.data,
        bunch.target,
        features=bunch.feature_names,
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
    task, scaling, missing, weight, treatment, drop, keep, fill_from, categorical
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
