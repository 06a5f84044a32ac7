"""A run folder that appears whole or not at all, and the digests that tie its files together.

``digests`` in ``result.json`` holds the SHA-256 of each file's content: of its JSON with sorted keys and without
spaces, so that writing a file anew with another layout changes nothing. That of ``result.json`` itself leaves out the
digests, and where the data are: a table may move. They show whether the tree is the one that the result is of.
"""

from __future__ import annotations

import glob
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

from mipforest.atomic import lock
from mipforest.errors import MipforestError

RESULT = "result.json"
TREE = "tree.json"
PICTURE = "tree.svg"
CARD = "card.json"
CARD_PICTURE = "card.svg"
LOG = "solver.log"
TUNING = "tuning.csv"
TREES = "trees.json"
#: Edits of the tree by hand, of :class:`~mipforest.edits.EditSession`.
EDITS = "edits.json"
REPORT = "report.html"

_DRAWN = {f"{stem}.{suffix}" for stem in ("tree", "partition", "card") for suffix in ("svg", "png", "pdf")}

#: What a run folder may hold: what a solve or a tuning writes, and what the commands plot and report add.
FILES = frozenset({RESULT, TREE, CARD, LOG, TUNING, TREES, EDITS, REPORT} | _DRAWN)


class RunError(MipforestError):
    """A folder that is no run, is there already, or cannot be written; the message says what to do."""


class RunFolder:
    """Collects the files of a run in a hidden folder next to ``path`` and renames it at the end.

    As a context manager: entering makes the hidden folder :attr:`staging`, so that a place that cannot be
    written is refused before the solve; :meth:`commit` puts it in place; leaving without that removes it.
    A process that is killed leaves the hidden folder ``.NAME.*.part`` alone, never a part of ``path``; the
    next run to the same ``path`` removes it.

    Parameters
    ----------
    path
        Where the run folder shall be.
    replace
        Whether an earlier run there may be replaced.

    Attributes
    ----------
    path
        The run folder; a symbolic link is followed.
    staging
        Folder to write into, inside the ``with`` block.
    """

    def __init__(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        self.path = Path(os.path.realpath(path))
        _check_target(self.path, replace)
        self.staging = self._sibling("part")
        self._replace = replace
        self._lock = -1

    def __enter__(self) -> RunFolder:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._remove_stale()
            self.staging.mkdir()
        except OSError as error:
            file = next((parent for parent in self.path.parents if parent.is_file()), None)
            reason = f"{file} is a file" if file else error.strerror or error
            raise RunError(
                f"cannot write the run folder {self.path}: {reason}; choose another place"
            ) from error
        self._lock = _locked(self.staging)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)
        self._unlock()

    def commit(self) -> None:
        """Move the folder into place, its contents flushed to the disk.

        An earlier run is moved aside and removed: between the two renames, ``path`` is absent for an instant.

        Raises
        ------
        OSError
            If the disk is full or something has come into being at ``path``; ``path`` is then as before.
        """
        for file in self.staging.iterdir():
            _flush(file)
        aside = self._sibling("old")
        if self.path.exists():
            _check_target(self.path, self._replace)
            self.path.rename(aside)
        try:
            self.staging.rename(self.path)
        except OSError:
            if aside.exists():
                aside.rename(self.path)
            raise
        shutil.rmtree(aside, ignore_errors=True)

    def _sibling(self, suffix: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.{suffix}")

    def _remove_stale(self) -> None:
        """Remove hidden folders whose process has died: their lock is free."""
        for stale in self.path.parent.glob(f".{glob.escape(self.path.name)}.*.part"):
            descriptor = _locked(stale)
            if descriptor >= 0:
                shutil.rmtree(stale, ignore_errors=True)
                os.close(descriptor)

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _check_target(path: Path, replace: bool) -> None:
    """Refuse a place that holds something else, or an earlier run that is to be kept."""
    if not path.name or Path.cwd().is_relative_to(path):
        raise RunError(f"{path} is the current folder or above it; give the run a folder of its own")
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise RunError(f"{path} is a file; give the run a folder of its own")
    present = {entry.name for entry in path.iterdir()}
    others = sorted(present - FILES)
    if others:
        raise RunError(f"{path} holds {others[0]}, which no run wrote; choose another folder")
    if present and not replace:
        raise RunError(f"{path} holds an earlier run; replace it with --force, or choose another folder")


def _locked(folder: Path) -> int:
    """Lock a folder until this process ends; -1 if another process holds it, or the system has no locks."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return -1
    if lock(descriptor):
        return descriptor
    os.close(descriptor)
    return -1


def _flush(file: Path) -> None:
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())


#: Entry of ``result.json`` that holds the digests.
DIGESTS = "digests"

#: Entries that the digest of ``result.json`` leaves out.
_LEFT_OUT = (DIGESTS, "data_source")


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON object, whatever its layout."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()


def with_digests(result: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of ``result.json`` with its digests, and those of other files of the run by name."""
    # As it is read back: keys become texts, tuples lists.
    content: dict[str, Any]
    content, files = json.loads(json.dumps([{**result}, {**files}]))
    content.pop(DIGESTS, None)
    found = {RESULT: _of_result(content), **{name: digest_of(file) for name, file in files.items()}}
    # The events are by far the longest part: they stay at the end.
    last = {"events": content.pop("events")} if "events" in content else {}
    return content | {DIGESTS: found} | last


def check_digests(folder: Path, result: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a run whose files were changed after it was written.

    Parameters
    ----------
    folder
        The run folder, for messages.
    result, files
        The contents of ``result.json``, and of the tree or card by the name of its file.

    Raises
    ------
    RunError
        Names the file that was changed, is absent, or is of another run.
    """
    known = result.get(DIGESTS)
    if not isinstance(known, dict):
        raise RunError(
            f"{folder}/{RESULT} has no digests, which tell whether the files are those that the run wrote; solve again"
        )
    try:
        changed = _changes(folder, result, known, files)
    except RecursionError:
        raise RunError(f"{folder}: its files are nested too deeply; solve again") from None
    if changed:
        raise RunError(f"{'; '.join(changed)}; restore what was written, or solve again")


def _changes(
    folder: Path,
    result: Mapping[str, Any],
    known: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    """Return which files are not those that were written."""
    changed = list[str]()
    if known.get(RESULT) != _of_result(result):
        changed.append(f"{folder}/{RESULT} was changed after the run: it is not what its digest says")
    for name in (TREE, CARD):
        if name not in known and name in files:
            changed.append(f"{folder}/{name} is not of this run: {RESULT} names none")
        elif name in known and name not in files:
            changed.append(f"{folder}/{name} is absent, and {RESULT} names one")
        elif name in files and known[name] != digest_of(files[name]):
            changed.append(f"{folder}/{name} was changed after the run: it is not the one of {RESULT}")
    return changed


def _of_result(content: Mapping[str, Any]) -> str:
    return digest_of({name: value for name, value in content.items() if name not in _LEFT_OUT})
