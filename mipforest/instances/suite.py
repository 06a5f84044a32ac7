"""``suite.toml``: what instances a library has, each by its model, data and seed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mipforest.data.load import BUNDLED
from mipforest.ensembles import names_no_file
from mipforest.runs.data_source import DataSource
from mipforest.trees import MAX_DEPTH

FAMILIES = ("small", "medium", "hard")

#: A suite is written by people: a longer file is none.
LONGEST_SUITE = 1 << 20

#: Names become names of files.
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_SYNTHETIC = re.compile(r"synthetic:[a-z0-9=.,-]+")

#: The type of every key of an instance; ``None`` marks those that must be there.
_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "family": str,
    "model": str,
    "variant": str,
    "depth": int,
    "parameters": dict,
    "data": str,
    "task": str,
    "scaling": str,
    "positive": list,
    "test_size": (int, float),
    "seed": int,
    "ensemble": str,
}
_REQUIRED = ("name", "family", "model", "depth", "data")


class SuiteError(ValueError):
    """The file is no suite; the message says where and why."""


@dataclass(frozen=True, kw_only=True)
class InstanceSpec:
    """One instance of a suite.

    Attributes
    ----------
    name
        Unique; lower-case letters, digits, dots and hyphens.
    family
        ``"small"``, ``"medium"`` or ``"hard"``.
    model, variant, depth, parameters
        The formulation; the default variant if empty.
    data
        A bundled data set or a generator: what anybody has and may redistribute.
    task, scaling, positive, test_size, seed
        As for ``mipforest export``; with ``test_size`` the model is of the training part.
    ensemble
        For models that mimic an ensemble: the name of which to fit, never a file, as loading one can run code.
    """

    name: str
    family: str
    model: str
    depth: int
    data: str
    variant: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    task: str | None = None
    scaling: str | None = None
    positive: tuple[str, ...] = ()
    test_size: float | None = None
    seed: int = 0
    ensemble: str | None = None

    def source(self, scaling: str) -> DataSource:
        """Say what to load; ``scaling`` is the model's own, used unless the suite says otherwise."""
        return DataSource(
            data=self.data,
            task=self.task,  # type: ignore[arg-type] # checked by load
            scaling=self.scaling or scaling,  # type: ignore[arg-type]
            seed=self.seed,
            positive=self.positive,
            test_size=self.test_size,
        )


def read_suite(path: Path) -> dict[str, InstanceSpec]:
    """Read a suite; give its instances by name, in the file's order.

    Raises
    ------
    SuiteError
        If the file is no TOML, or an instance is malformed; models and parameters are checked when built.
    OSError
        If the file cannot be read.
    """
    if path.stat().st_size > LONGEST_SUITE:
        raise SuiteError(f"{path} has more than {LONGEST_SUITE} bytes: that is no suite")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SuiteError(f"{path} is no TOML file: {error}") from error
    listed = content.get("instance")
    if content.keys() - {"instance"} or not isinstance(listed, list) or not listed:
        raise SuiteError(f"{path} holds something else than a list of [[instance]] tables")
    specs: dict[str, InstanceSpec] = {}
    for number, entry in enumerate(listed, 1):
        try:
            spec = _spec(entry)
        except SuiteError as error:
            raise SuiteError(f"{path}, instance {number}: {error}") from error
        if spec.name in specs:
            raise SuiteError(f"{path}, instance {number}: the name {spec.name} stands twice")
        specs[spec.name] = spec
    return specs


def _spec(entry: Any) -> InstanceSpec:
    if not isinstance(entry, dict):
        raise SuiteError("it is no table; write [[instance]] above its keys")
    for key in entry:
        if key not in _KEYS:
            raise SuiteError(f"there is no key {key!r:.80}; known are {', '.join(_KEYS)}")
    for key in _REQUIRED:
        if key not in entry:
            raise SuiteError(f"the key {key!r} is missing")
    for key, kind in _KEYS.items():
        value = entry.get(key)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise SuiteError(f"{key} is {value!r:.80}, of the wrong type")
    if not _NAME.fullmatch(entry["name"]):
        raise SuiteError(
            f"the name {entry['name']!r:.80} must be lower-case letters, digits, dots, hyphens; at most 64"
        )
    if entry["family"] not in FAMILIES:
        raise SuiteError(f"the family is {entry['family']!r:.80}; it is one of {', '.join(FAMILIES)}")
    if entry["data"] not in BUNDLED and not _SYNTHETIC.fullmatch(entry["data"]):
        raise SuiteError(
            f"the data are {entry['data']!r:.80}; a library takes what everybody has: "
            f"{', '.join(BUNDLED)}, or synthetic:..."
        )
    if not all(isinstance(name, str) for name in entry.get("positive", ())):
        raise SuiteError("positive is no list of class names")
    if not 1 <= entry["depth"] <= MAX_DEPTH:
        raise SuiteError(f"the depth is {entry['depth']}; it is 1 to {MAX_DEPTH}")
    if not 0 < entry.get("test_size", 0.5) < 1:
        raise SuiteError(f"test_size is {entry['test_size']}; it is a share between 0 and 1")
    if not names_no_file(entry.get("ensemble", "random-forest")):
        raise SuiteError(
            f"the ensemble is {entry['ensemble']!r:.80}; give a name, as in random-forest:trees=100, and no file"
        )
    parameters = {key: _plain(value) for key, value in entry.get("parameters", {}).items()}
    known = {f.name for f in fields(InstanceSpec)}
    given = {key: value for key, value in entry.items() if key in known}
    return InstanceSpec(**given | {"parameters": parameters, "positive": tuple(entry.get("positive", ()))})


def _plain(value: Any) -> Any:
    """Parameters are numbers, texts, or lists of numbers (one per level or node)."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, int | float | str | bool):
        return value
    raise SuiteError(f"a parameter is {value!r:.80}; give a number, a text, or a list of numbers")
