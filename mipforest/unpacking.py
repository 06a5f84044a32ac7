"""Compressed files, unpacked with a bound: a few bytes can stand for gigabytes."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator

from mipforest.errors import MipforestError

#: A compressed file that grows beyond this many times its size is refused: text shrinks to a tenth at best.
SUSPECT_RATIO = 200

#: Up to this size, in bytes, any ratio is fine.
SUSPECT_SIZE = 4 << 20

#: Bytes that are unpacked at a time.
BLOCK = 1 << 20


class UnpackingError(MipforestError, ValueError):
    """A compressed file that is damaged, or grows suspiciously; the message says what to do."""


def max_unpacked(path: str | os.PathLike[str]) -> int:
    """Return the bytes that a compressed file may grow to: 200 times its size, or 4 MiB if that is more."""
    return max(SUSPECT_SIZE, SUSPECT_RATIO * os.path.getsize(path))


def unpacked_blocks(path: str | os.PathLike[str], most: int | None = None) -> Iterator[bytes]:
    """Yield what a gzip file holds, a block at a time.

    Parameters
    ----------
    path
        The file.
    most
        Bytes that it may grow to; :func:`max_unpacked` unless given.

    Raises
    ------
    UnpackingError
        If the file is damaged or cut off, or grows beyond that.
    OSError
        As the system reports it.
    """
    size, most = 0, max_unpacked(path) if most is None else most
    with gzip.open(path, "rb") as file:
        while True:
            try:
                block = file.read(BLOCK)
            except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
                raise UnpackingError(
                    f"the compressed data are damaged or cut off ({cause})",
                    hint="fetch the file again, or leave .gz out of its name if it is plain text",
                ) from cause
            if not block:
                return
            size += len(block)
            if size > most:
                raise UnpackingError(
                    f"the compressed data expand to more than {most >> 20} MiB, "
                    f"{most / max(1, os.path.getsize(path)):.0f} times their size",
                    hint="if you trust the file, unpack it first",
                )
            yield block
