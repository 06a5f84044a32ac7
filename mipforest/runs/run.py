"""A finished run, read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipforest.data.errors import did_you_mean
from mipforest.runs.errors import RunError
from mipforest.runs.folder import RESULT, TREE
from mipforest.runs.json_files import JsonFileError, read_json_object
from mipforest.runs.saved_tree import SavedTree, load_saved_tree


@dataclass(frozen=True, eq=False)
class Run:
    """What a run folder holds.

    Attributes
    ----------
    path
        The folder.
    result
        The content of ``result.json``.
    saved
        The tree, or ``None`` if no solution was found.
    """

    path: Path
    result: dict[str, Any]
    saved: SavedTree | None

    @property
    def found(self) -> SavedTree:
        """The tree.

        Raises
        ------
        RunError
            If no solution was found.
        """
        if self.saved is None:
            status = self.result.get("status")
            raise RunError(f"{self.path} has no tree: its run ended without a solution (status {status})")
        return self.saved


def read_run(path: str | Path) -> Run:
    """Read a run folder.

    Raises
    ------
    RunError
        If there is none, or its ``result.json`` is malformed.
    TreeFileError
        If its ``tree.json`` is malformed.
    OSError
        If a file cannot be read.
    """
    folder = Path(path)
    if not folder.is_dir():
        kind = "is a file, not a run folder" if folder.exists() else f"does not exist{_nearest(folder)}"
        raise RunError(f"{folder} {kind}; give a folder that 'mipforest solve --out' wrote")
    if not (folder / RESULT).is_file():
        raise RunError(f"{folder} has no {RESULT}; give a folder that 'mipforest solve --out' wrote")
    saved = load_saved_tree(folder / TREE) if (folder / TREE).exists() else None
    return Run(folder, _read_result(folder / RESULT), saved)


def _read_result(path: Path) -> dict[str, Any]:
    try:
        result = read_json_object(path)
    except JsonFileError as error:
        raise RunError(f"{error}; solve again") from error
    if "status" not in result:
        raise RunError(f"{path} holds no result of a run; solve again")
    return result


def _nearest(folder: Path) -> str:
    parent = folder.parent
    return (
        did_you_mean(folder.name, [entry.name for entry in parent.iterdir() if entry.is_dir()])
        if parent.is_dir()
        else ""
    )
