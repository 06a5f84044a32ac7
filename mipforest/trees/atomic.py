"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there in one step, so that no reader sees half a file.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written; a file already at ``path`` is then as before.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
