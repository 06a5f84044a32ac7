"""What the name of a file says about its format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

#: Formats of models that can be written.
MODEL_SUFFIXES = (".mps", ".lp")

_FORMATS = {".mps": "an MPS file", ".lp": "an LP file"}


def split_suffix(path: str | os.PathLike[str], suffixes: Sequence[str] = MODEL_SUFFIXES) -> tuple[str, bool]:
    """Read the format of a model off the name of its file, and whether it is compressed.

    Returns
    -------
    suffix, compressed
        One of ``suffixes``; whether the name ends in ``.gz``.

    Raises
    ------
    ValueError
        If the name ends neither in a suffix nor in a suffix and ``.gz``.
    """
    name = Path(path).name.lower()
    for suffix in suffixes:
        if name.endswith((suffix, f"{suffix}.gz")):
            return suffix, name.endswith(".gz")
    kind = " or ".join(_FORMATS[suffix] for suffix in suffixes)
    raise ValueError(
        f"{os.fspath(path)} is not named as {kind}; end the name in {' or '.join(suffixes)}, or "
        f"{' or '.join(f'{suffix}.gz' for suffix in suffixes)} to compress"
    )


def stem(path: Path) -> str:
    """Name of a model's file without suffix."""
    suffix, compressed = split_suffix(path)
    return path.name[: -len(suffix + ".gz" * compressed)]
