"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

#: Names of temporary files.
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.[0-9a-f]{16}\.part")

#: Age from which on a temporary file that nobody holds is what a killed process left.
STALE_SECONDS = 60.0


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    r"""Open a temporary file that takes the place of ``path`` once the block has ended without an exception.

    The temporary file lies in the same folder, is flushed to the disk and renamed, and the folder is flushed too:
    readers see the old file or the complete new one, also after a loss of power. After any exception, Ctrl-C
    included, ``path`` is as before and nothing else is left. A process that is killed leaves a hidden file
    ``.*.part``, which the next write in the folder removes. A symbolic link is replaced, not followed: no other
    place than the one that was named is written.

    Parameters
    ----------
    path
        File to write; an existing one is replaced.
    mode
        ``"wb"`` for bytes, ``"w"`` for text (UTF-8, lines end in ``\n`` on every system).

    Yields
    ------
    IO
        The open temporary file.

    Raises
    ------
    OSError
        As the system reports it: no such folder, no permission, disk full, ``path`` is a folder or a device.
    ValueError
        If the mode is another.
    """
    if mode not in ("wb", "w"):
        raise ValueError(f"mode is {mode!r}; write bytes with 'wb' or text with 'w'")
    named = Path(os.path.abspath(path))
    target = Path(os.path.realpath(named.parent)) / named.name
    if target.is_dir() and not target.is_symlink():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    _remove_stale(target.parent)
    # The same beginning for the same file, and never too long a name.
    begins = sha256(os.fsencode(target.name)).hexdigest()[:16]
    temporary = target.with_name(f".{begins}.{secrets.token_hex(8)}.part")
    text: dict[str, Any] = {"encoding": "utf-8", "newline": "\n"} if mode == "w" else {}
    try:
        with open(temporary, mode.replace("w", "x"), **text) as file:
            lock(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, target)
        _flush_folder(target.parent)
    except BaseException as error:
        # On a file system without writes there is nothing to remove, and removing fails.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # The system names the temporary file, or none when the disk is full: people know the file they asked for.
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file until it is closed or the process ends, however it ends.

    Parameters
    ----------
    descriptor
        The file's descriptor.
    wait
        Whether to wait for another process that holds the lock.

    Returns
    -------
    bool
        Whether the lock is held: not if another process holds it, or the system has no such locks.
    """
    if find_spec("fcntl") is None:
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Wait for other processes that change files of a folder together, by a lock on it, and keep them waiting."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def _remove_stale(folder: Path) -> None:
    """Remove what killed processes left, of whatever file: their locks are free, and they are older than a minute.

    A file is locked an instant after it was made, so a young one may be at work.
    """
    for left in folder.glob(".*.part"):
        if not _TEMPORARY.fullmatch(left.name):
            continue  # not ours
        with suppress(OSError), open(left, "rb") as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > STALE_SECONDS and lock(file.fileno()):
                left.unlink()


def _flush_folder(folder: Path) -> None:
    """Flush the renaming; some systems and file systems have no such thing."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
