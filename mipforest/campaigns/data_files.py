"""The files of data that suites read: where each comes from, how it is made of that, and its checksum.

A checksum is of the values, row by row, with the target last: neither the names of columns nor how numbers are written
count, but the order of the rows does, because splits depend on it.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipforest.atomic import atomic_write
from mipforest.campaigns.known_files import KNOWN, DataFile
from mipforest.campaigns.suite import included_suites, read_suite
from mipforest.data.bundled import read_bundled
from mipforest.data.loading import SUFFIXES
from mipforest.errors import CampaignError

Rows = list[list[str]]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What became of a file.

    Attributes
    ----------
    name
        Its name.
    state
        ``"there"``, ``"made"`` or ``"missing"``.
    about
        What it was made of; of a missing one, where it comes from.
    as_published
        Whether its values are those that the results of the documentation were computed with; ``None`` where these are
        not known.
    """

    name: str
    state: str
    about: str
    as_published: bool | None = None


def files_of(suite: Path) -> tuple[str, ...]:
    """Return the names of the files that a suite, or those that it includes, reads.

    Raises
    ------
    CampaignError
        If the suite is malformed.
    """
    names = {
        entry.load: None
        for included in included_suites(suite)
        for entry in read_suite(included.path).data.values()
        if entry.load.endswith(SUFFIXES)
    }
    return tuple(names)


def prepare(
    names: Iterable[str],
    folder: Path,
    *,
    uci: Path | None = None,
    openml: bool = False,
    known: Mapping[str, DataFile] = KNOWN,
) -> list[Prepared]:
    """Make the files that a folder lacks of what packages bundle, of files of UCI, and of OpenML, in this order.

    A file that is there is never replaced.

    Parameters
    ----------
    names
        Names of the files.
    folder
        Where they are to be.
    uci
        Folder with files as the UCI repository has them; files in its subfolders count.
    openml
        Whether to ask OpenML for what is missing then.
    known
        What is known of files, by name; that of the suites that come with mipforest unless given.

    Raises
    ------
    CampaignError
        If the folder of UCI files is not there.
    """
    if uci is not None and not uci.is_dir():
        raise CampaignError(f"there is no folder {uci}; give the one with the files of UCI")
    return [_prepared(name, folder, known.get(name), uci, openml) for name in names]


def _prepared(name: str, folder: Path, source: DataFile | None, uci: Path | None, openml: bool) -> Prepared:
    path = folder / name
    if path.exists():
        same = None if source is None else checksum(path) == source.checksum
        return Prepared(name=name, state="there", about="", as_published=same)
    if source is None:
        return Prepared(name=name, state="missing", about="a file of your own; put it there")
    tries: list[tuple[str, Callable[[], Rows | None]]] = [
        ("what scikit-learn bundles", lambda: _of_bundled(source)),
        ("files of UCI", lambda: None if uci is None else _of_raw(source, uci)),
        (f"openml:{source.openml}", lambda: _of_openml(source) if openml else None),
    ]
    problems = []
    for what, make in tries:
        try:
            rows = make()
        except Exception as error:  # of a file in another format, or a network: the next way is tried
            problems.append(f"{what}: {str(error) or type(error).__name__}")
            continue
        if rows:
            _write(path, rows)
            return Prepared(
                name=name, state="made", about=f"of {what}", as_published=_digest(rows) == source.checksum
            )
    why = f" ({'; '.join(problems)})" if problems else ""
    return Prepared(name=name, state="missing", about=f"{source.origin}{why}")


def _of_bundled(source: DataFile) -> Rows | None:
    if source.bundled is None:
        return None
    name, labels = source.bundled
    table = read_bundled(name)
    return [
        [*map(repr, row), labels[int(label)]] for row, label in zip(table.X.tolist(), table.y, strict=True)
    ]


def _of_raw(source: DataFile, uci: Path) -> Rows | None:
    raw = source.raw
    if raw is None:
        return None
    paths = [next(iter(sorted(uci.rglob(name))), None) for name in raw.files]
    if None in paths:
        return None
    rows: Rows = []
    for path in paths:
        assert path is not None
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[1 if raw.header else 0 :]
        for line in lines:
            values = [value.strip().strip('"') for value in line.split(raw.sep)]
            # Rows with a question mark lack a value; the files of the results leave them out.
            if line.strip() and "?" not in values:
                if len(values) <= max(raw.target, *raw.drop, 0):
                    raise CampaignError(f"{path} has a line of {len(values)} values, {line[:40]!r}")
                if rows and len(values) - len(raw.drop) != len(rows[0]):
                    raise CampaignError(
                        f"{path} has lines of {len(rows[0]) + len(raw.drop)} and {len(values)} values"
                    )
                rows.append(_with_target_last(values, raw.target, raw.drop))
    return rows


def _with_target_last(values: Sequence[str], target: int, drop: Collection[int]) -> list[str]:
    kept = [value for at, value in enumerate(values) if at != target and at not in drop]
    return [*kept, values[target]]


def _of_openml(source: DataFile) -> Rows | None:
    if source.openml is None:
        return None
    from sklearn.datasets import fetch_openml  # takes seconds

    bunch = fetch_openml(data_id=source.openml, as_frame=True, parser="auto")
    table = bunch.data.assign(target=bunch.target).dropna()
    return [list(map(str, row)) for row in table.itertuples(index=False)]


def _write(path: Path, rows: Rows) -> None:
    names = [*(f"x{at}" for at in range(len(rows[0]) - 1)), "target"]
    text = "".join(f"{','.join(map(_quoted, row))}\n" for row in [names, *rows])
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text.encode())


def _quoted(value: str) -> str:
    return f'"{value}"' if "," in value else value


def checksum(path: Path) -> str:
    """Return the checksum of the values of a ``.csv`` file whose last column is the target, without its first line."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.reader(lines) if row]
    return _digest(rows[1:])


def _digest(rows: Iterable[Sequence[str]]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(("\t".join(map(_plain, row)) + "\n").encode())
    return digest.hexdigest()[:16]


def _plain(value: Any) -> str:
    text = str(value).strip()
    try:
        return repr(float(text))
    except ValueError:
        return text
