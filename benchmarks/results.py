"""Figures that are measured once: a file that a benchmark reads and continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Results:
    """What was measured, by key, one line of JSON each in a file, so that a run that was stopped goes on.

    Attributes
    ----------
    known
        Figures by key: those of the file, and those that were added.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file is not None and file.exists() else []
        self.known: dict[tuple[Any, ...], Any] = {tuple(key): found for key, found in map(json.loads, lines)}

    def of(self, key: tuple[Any, ...], measure: Callable[[], Any], *, wanted: bool = True) -> Any:
        """Return what is known, or measure and keep it if it is wanted; ``None`` if it is not."""
        if key not in self.known and wanted:
            self.known[key] = measure()
            print(*key, self.known[key], flush=True)
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known.get(key)
