"""Digests that tie the files of a run together: whether its tree is the one that its result speaks of.

``digests`` in ``result.json`` holds the SHA-256 of each file's content: of its JSON with sorted keys and without
spaces, so that writing a file anew with another layout changes nothing. That of ``result.json`` itself leaves out the
digests, and where the data are: a table may move.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from mipforest.runs.folder import CARD, RESULT, TREE, RunError

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
    """Refuse a run whose files were changed after it was written; runs of older versions have no digests.

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
    if DIGESTS not in result:
        return
    known = result[DIGESTS]
    if not isinstance(known, dict):
        raise RunError(f"{folder}/{RESULT} was changed: its digests are no object; solve again")
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
    """Tell which files are not those that were written."""
    changed = list[str]()
    if known.get(RESULT) != _of_result(result):
        changed.append(f"{folder}/{RESULT} was changed after the run: it is not what its digest says")
    for name in (TREE, CARD):
        if name not in known and name in files:
            changed.append(f"{folder}/{name} is not of this run: {RESULT} tells of none")
        elif name in known and name not in files:
            changed.append(f"{folder}/{name} is absent, and {RESULT} tells of one")
        elif name in files and known[name] != digest_of(files[name]):
            changed.append(f"{folder}/{name} was changed after the run: it is not the one of {RESULT}")
    return changed


def _of_result(content: Mapping[str, Any]) -> str:
    return digest_of({name: value for name, value in content.items() if name not in _LEFT_OUT})
