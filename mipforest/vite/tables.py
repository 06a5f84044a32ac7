"""VITE's tables as ``.csv`` files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mipforest.files import atomic_write

#: Digits of the numbers in files.
NUMBERS = "%.10g"


def write_tables(tables: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write each table to ``NAME.csv`` in a folder, which is made if need be; existing files are replaced.

    Each file appears whole or not at all.

    Raises
    ------
    OSError
        If the folder cannot be made, or a file not be written.
    """
    folder.mkdir(exist_ok=True)
    paths = []
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        with atomic_write(path, "w") as file:
            table.to_csv(file, index=table.index.name is not None, float_format=NUMBERS)
        paths.append(path)
    return paths
