"""JSON and TOML files: read with bounds, and refused with a reason.

JSON is what runs and instances write. TOML is what people write, such as suites: keys are known, values have their
types.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipforest.errors import MipforestError, did_you_mean

#: Largest JSON file that is read. A tree of depth 10 with a thousand features and split texts has about 50 MB.
LARGEST = 1 << 28


def json_text(content: dict[str, Any]) -> str:
    """Return a JSON object as runs and instances write it; ValueError if a number is not finite."""
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:  # names of files may hold bytes that are no text; JSON has escapes for them
        return json.dumps(content, indent=2, allow_nan=False) + "\n"
    return text


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


#: A suite is written by people: a longer file is none.
LONGEST = 1 << 20

#: What a value of a wrong type should have been.
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    list: "a list",
    bool: "true or false",
}


@dataclass(frozen=True)
class TomlReader:
    """Reads and checks TOML tables; what is wrong becomes an error that says where, and what it must be.

    Attributes
    ----------
    error
        The exception to raise; every method may.
    """

    error: type[Exception]

    def text(self, path: Path) -> str:
        """Read a file as text; OSError if that is impossible."""
        if path.stat().st_size > LONGEST:
            raise self.error(f"{path} has more than {LONGEST} bytes: that is no suite")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise self.error(f"{path} is no TOML file: {error}") from error

    def tables(self, text: str) -> dict[str, Any]:
        """Read the tables of a text."""
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # no TOML, or an integer of thousands of digits
            raise self.error(f"it is no TOML: {error}") from error

    def check_keys(
        self, where: str, table: Any, known: Mapping[str, type], required: tuple[str, ...] = ()
    ) -> None:
        """Refuse keys that are unknown or missing, and values of another type.

        Parameters
        ----------
        where
            What the table is, for the message.
        table
            The table.
        known
            Type of the value of each key; ``float`` takes whole numbers too. The lists that :meth:`several` reads
            are not checked here: their type is ``object``.
        required
            Keys that must be there.
        """
        if not isinstance(table, dict):
            raise self.error(f"{where} is {table!r:.60}; it must be a table")
        for key, value in table.items():
            if key not in known:
                raise self.error(
                    f"{where} has the key {key!r:.60}, which means nothing{did_you_mean(key, known)}; "
                    f"known are {', '.join(known)}"
                )
            self.check_type(f"{where}: {key}", value, known[key])
        for key in required:
            if key not in table:
                raise self.error(f"{where} lacks the key {key!r}")

    def check_type(self, where: str, value: Any, kind: type) -> None:
        """Refuse a value of another type; whole numbers are numbers, truth values are not."""
        allowed: type | tuple[type, ...] = (int, float) if kind is float else kind
        a_number = kind in (int, float)
        if not isinstance(value, allowed) or (a_number and isinstance(value, bool)):
            raise self.error(f"{where} is {value!r:.60}; it must be {_WORDS[kind]}")

    def several(self, where: str, value: Any, kind: type) -> tuple[Any, ...]:
        """Read one value, or a list of values, none of them twice."""
        values = value if isinstance(value, list) else [value]
        if not values:
            raise self.error(f"{where} is an empty list; give one value at least")
        for number, entry in enumerate(values):
            self.check_type(where, entry, kind)
            if entry in values[:number]:
                raise self.error(f"{where} has {entry!r:.60} twice")
        return tuple(float(entry) for entry in values) if kind is float else tuple(values)

    def parameter(self, where: str, value: Any) -> Any:
        """Read a hyperparameter: a number, a text, true or false, or a list of numbers per level or node."""
        if isinstance(value, list):
            for entry in value:
                self.check_type(where, entry, float)
            return tuple(value)
        if isinstance(value, int | float | str):
            return value
        raise self.error(f"{where} is {value!r:.60}; give a number, a text, or a list of numbers per level")

    def parameters(self, where: str, table: Mapping[str, Any]) -> dict[str, Any]:
        """Read hyperparameters by name."""
        return {name: self.parameter(f"{where}: {name}", value) for name, value in table.items()}
