"""A run folder that appears whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from pathlib import Path
from types import TracebackType

from mipforest.atomic import lock
from mipforest.errors import MipforestError

RESULT = "result.json"
TREE = "tree.json"
PICTURE = "tree.svg"
CARD = "card.json"
CARD_PICTURE = "card.svg"
LOG = "solver.log"
TUNING = "tuning.csv"
REPORT = "report.html"

_DRAWN = {f"{stem}.{suffix}" for stem in ("tree", "partition", "card") for suffix in ("svg", "png", "pdf")}

#: What a run folder may hold: what a solve or a tuning writes, and what the commands plot and report add.
FILES = frozenset({RESULT, TREE, CARD, LOG, TUNING, REPORT} | _DRAWN)


class RunError(MipforestError):
    """A run folder that is none, is in the way, or cannot be written; the message says what to do."""


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
