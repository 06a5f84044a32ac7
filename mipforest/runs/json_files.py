"""JSON files of runs and instances: written alike, read with bounds, and refused with a reason."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from mipforest.errors import MipforestError

#: Largest JSON file that is read. A tree of depth 10 with a thousand features and split texts has about 50 MB.
LARGEST = 1 << 28


def json_text(content: dict[str, Any]) -> str:
    """Return a JSON object as runs and instances write it; ValueError if a number is not finite."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


class JsonFileError(MipforestError, ValueError):
    """A file that holds no JSON object; the message says why."""


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    JsonFileError
        If the file is larger than 256 MB, no JSON, nested too deeply, no object, or a number is not finite.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise JsonFileError(f"{path} is larger than {LARGEST >> 20} MB")
    try:
        content = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise JsonFileError(f"{path} is nested too deeply") from None
    except ValueError as error:  # malformed, not UTF-8, or an integer of thousands of digits
        raise JsonFileError(f"{path} is not a JSON file ({error})") from error
    if not isinstance(content, dict):
        raise JsonFileError(f"{path} holds {type(content).__name__}, not an object")
    return content


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"it holds {text[:20]}, and every number of a run is finite")
    return value
