"""``suite.toml``: what instances a library has, each by its model, data and seed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from mipforest.data.loading import BUNDLED, SUFFIXES
from mipforest.ensembles import names_no_file
from mipforest.errors import MipforestError
from mipforest.runs.data_source import DataSource
from mipforest.runs.text_files import TomlReader
from mipforest.trees import MAX_DEPTH

FAMILIES = ("small", "medium", "large")

#: Names become names of files.
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_SYNTHETIC = re.compile(r"synthetic:[a-z0-9=.,-]+")

#: The type of every key of an instance.
_KEYS: dict[str, type] = {
    "name": str,
    "family": str,
    "model": str,
    "variant": str,
    "depth": int,
    "parameters": dict,
    "data": str,
    "target": str,
    "weight": str,
    "drop": list,
    "task": str,
    "scaling": str,
    "positive": list,
    "test_size": float,
    "seed": int,
    "ensemble": str,
}
_REQUIRED = ("name", "family", "model", "depth", "data")


class SuiteError(MipforestError, ValueError):
    """The file is no suite; the message says where and why."""


_TOML = TomlReader(SuiteError)


@dataclass(frozen=True, kw_only=True)
class InstanceSpec:
    """One instance of a suite.

    Attributes
    ----------
    name
        Unique; lower-case letters, digits, dots and hyphens.
    family
        ``"small"``, ``"medium"`` or ``"large"``.
    model, variant, depth, parameters
        The formulation; the default variant if empty.
    data
        A bundled data set or a generator, which anybody has and may redistribute; in a library of one's own also a file
        in its folder.
    target, weight, drop, task, scaling, positive, test_size, seed
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
    target: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    task: str | None = None
    scaling: str | None = None
    positive: tuple[str, ...] = ()
    test_size: float | None = None
    seed: int = 0
    ensemble: str | None = None

    def source(self, scaling: str, folder: Path) -> DataSource:
        """Return what to load; ``scaling`` is the model's own, used unless the suite says otherwise.

        Files are in the library's ``folder``.
        """
        return DataSource(
            data=str(folder / self.data) if self.data.endswith(SUFFIXES) else self.data,
            target=self.target,
            weight=self.weight,
            drop=self.drop,
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
    text = _TOML.text(path)
    try:
        return _instances(_TOML.tables(text))
    except SuiteError as error:
        raise error.located(str(path)) from error


def _instances(content: Mapping[str, Any]) -> dict[str, InstanceSpec]:
    listed = content.get("instance")
    if content.keys() - {"instance"} or not isinstance(listed, list) or not listed:
        raise SuiteError("it holds something else than a list of [[instance]] tables")
    specs: dict[str, InstanceSpec] = {}
    for number, entry in enumerate(listed, 1):
        spec = _spec(f"instance {number}", entry)
        if spec.name in specs:
            raise SuiteError(f"instance {number}: the name {spec.name} stands twice")
        specs[spec.name] = spec
    return specs


def _spec(where: str, entry: Any) -> InstanceSpec:
    _TOML.check_keys(where, entry, _KEYS, _REQUIRED)
    _check_values(where, entry)
    read = {
        "parameters": _TOML.parameters(f"{where}: parameters", entry.get("parameters", {})),
        "positive": tuple(entry.get("positive", ())),
        "drop": tuple(entry.get("drop", ())),
    }
    return InstanceSpec(**{**entry, **read})


def _is_inside(data: str) -> bool:
    """Return whether the data are a file below the library's folder, by its name."""
    path = PurePosixPath(data)
    inside = not path.is_absolute() and ".." not in path.parts
    return data.endswith(SUFFIXES) and inside and not set(data) & set("\\:~\0")


def _check_values(where: str, entry: Mapping[str, Any]) -> None:
    if not _NAME.fullmatch(entry["name"]):
        raise SuiteError(
            f"{where}: the name {entry['name']!r:.80} must be lower-case letters, digits, dots, hyphens; at most 64"
        )
    if entry["family"] not in FAMILIES:
        raise SuiteError(
            f"{where}: the family is {entry['family']!r:.80}; it is one of {', '.join(FAMILIES)}"
        )
    if not (entry["data"] in BUNDLED or _SYNTHETIC.fullmatch(entry["data"]) or _is_inside(entry["data"])):
        raise SuiteError(
            f"{where}: the data are {entry['data']!r:.80}; a library takes what everybody has: "
            f"{', '.join(BUNDLED)}, or synthetic:..., and files in its own folder ({', '.join(SUFFIXES)})"
        )
    for key, what in (("positive", "class"), ("drop", "column")):
        for name in entry.get(key, ()):
            _TOML.check_type(f"{where}: a {what} in {key}", name, str)
    if not 1 <= entry["depth"] <= MAX_DEPTH:
        raise SuiteError(f"{where}: the depth is {entry['depth']}; it is 1 to {MAX_DEPTH}")
    if not 0 < entry.get("test_size", 0.5) < 1:
        raise SuiteError(f"{where}: test_size is {entry['test_size']}; it is a share between 0 and 1")
    if not names_no_file(entry.get("ensemble", "random-forest")):
        raise SuiteError(
            f"{where}: the ensemble is {entry['ensemble']!r:.80}; give a name, as in random-forest:trees=100, "
            "and no file"
        )
