"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    r"""Open a temporary file that takes the place of ``path`` once the block has ended without an exception.

    The temporary file lies in the same folder, is flushed to the disk and renamed: readers see the old file
    or the complete new one. After any exception, Ctrl-C included, ``path`` is as before and nothing else is
    left. A symbolic link is followed: its target is replaced.

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
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    text: dict[str, Any] = {"encoding": "utf-8", "newline": "\n"} if mode == "w" else {}
    try:
        with open(temporary, mode.replace("w", "x"), **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        # On a file system without writes there is nothing to remove, and removing fails.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # The system names the temporary file, or none when the disk is full: people know the file they asked for.
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
