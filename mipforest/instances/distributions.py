"""Distributions of instances: TOML files that say what an instance is drawn from, at several levels of hardness.

A distribution has a table ``[draws]`` of random quantities, tables ``[levels.NAME]`` with those of a level, and one or
several ``[[instance]]`` with the keys of a suite. ``{NAME}`` in a text stands for a draw; a text that is nothing but
``"{NAME}"`` has its type.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from mipforest.atomic import atomic_write, turn
from mipforest.data import DataError
from mipforest.errors import did_you_mean
from mipforest.instances.library import Library, SuiteError, spec_of
from mipforest.problem.parameters import ParameterError
from mipforest.problem.registry import UnknownFormulation, make_formulation
from mipforest.runs.text_files import TomlReader

_TOML = TomlReader(SuiteError)

#: Folder of a library with distributions.
FOLDER = "distributions"

#: Draws of one instance whose data are refused, as where a class does not occur, before this is an error.
ATTEMPTS = 100

#: Decimal places of draws that are no whole numbers: they stand in names of data.
DECIMALS = 4

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_DRAWN = re.compile(r"\{(\w+)\}")
_KEYS: dict[str, type] = {"summary": str, "draws": dict, "levels": dict, "instance": list}


@dataclass(frozen=True)
class Uniform:
    """Numbers from ``low`` to ``high``, each as likely; whole numbers where both are."""

    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw one."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(rng.integers(self.low, self.high, endpoint=True))
        return round(float(rng.uniform(self.low, self.high)), DECIMALS)


@dataclass(frozen=True)
class OneOf:
    """Values, each as likely."""

    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw one."""
        return self.values[int(rng.integers(len(self.values)))]


Draw = Uniform | OneOf


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """What instances are drawn from.

    Attributes
    ----------
    name
        Name of its file, without the suffix.
    summary
        One line about it.
    levels
        Draws by name, for each level.
    instances
        Tables with the keys of an instance; each instance is one of them, with draws in place of their names.
    """

    name: str
    summary: str
    levels: Mapping[str, Mapping[str, Draw]]
    instances: Sequence[Mapping[str, Any]]

    def draw(self, level: str, seed: int, number: int) -> dict[str, Any]:
        """Draw an instance: the table of a suite, which depends on the arguments alone.

        Parameters
        ----------
        level
            One of ``levels``.
        seed
            Seed of the sample, 0 or more.
        number
            Number of the instance in the sample, 0 or more.

        Raises
        ------
        SuiteError
            If there is no such level, or none of :data:`ATTEMPTS` draws has data that can be loaded.
        """
        if level not in self.levels:
            raise SuiteError(
                f"{self.name} has no level {level!r:.40}{did_you_mean(level, self.levels)}; it has "
                f"{', '.join(self.levels)}"
            )
        label = f"{self.name}-{level}-{seed}-{number:05d}"
        refusal: DataError | None = None
        for attempt in range(ATTEMPTS):
            rng = np.random.default_rng([crc32(f"{self.name}-{level}".encode()), seed, number, attempt])
            chosen = OneOf(tuple(self.instances)).draw(rng)
            values = {name: own.draw(rng) for name, own in self.levels[level].items()}
            table = {"name": label, **_filled(chosen, values), "seed": int(rng.integers(1 << 31))}
            spec = spec_of(label, table)
            try:
                spec.data_source("none", Path()).load()
            except DataError as error:
                refusal = error
            else:
                return table
        raise SuiteError(
            f"{label}: {ATTEMPTS} draws gave no data that can be loaded; the last one: {refusal}"
        )


def shipped() -> dict[str, Path]:
    """Return the files of the distributions that mipforest brings, by name."""
    files = (Library.installed().folder / FOLDER).glob("*.toml")
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def read_distribution(name: str) -> Distribution:
    """Read a distribution: one that mipforest brings, by name, or a file ``*.toml``.

    Raises
    ------
    SuiteError
        If there is none, or it is malformed; the message has key and value.
    OSError
        If the file cannot be read.
    """
    known = shipped()
    path = Path(name) if name.endswith(".toml") else known.get(name)
    if path is None or not path.is_file():
        raise SuiteError(
            f"there is no distribution {name!r:.80}{did_you_mean(name, known)}; give one of {', '.join(known)}, "
            "or a file *.toml that is there"
        )
    text = _TOML.text(path)
    try:
        return _distribution(path.stem, _TOML.tables(text))
    except SuiteError as error:
        raise error.located(str(path)) from error


def _distribution(name: str, content: Mapping[str, Any]) -> Distribution:
    _TOML.check_keys("the distribution", content, _KEYS, required=("summary", "levels", "instance"))
    _check_name("the file's name", name)
    if not content["levels"] or not content["instance"]:
        raise SuiteError("there must be one [levels.NAME] and one [[instance]] at least")
    shared = _draws("draws", content.get("draws", {}))
    levels = {}
    for level, own in content["levels"].items():
        _check_name("a level", level)
        _TOML.check_type(f"levels.{level}", own, dict)
        levels[level] = shared | _draws(f"levels.{level}", own)
    found = Distribution(
        name=name, summary=content["summary"], levels=levels, instances=tuple(content["instance"])
    )
    for level, draws in levels.items():
        for number, table in enumerate(found.instances, 1):
            _check_instance(f"instance {number}, level {level}", table, draws)
    return found


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SuiteError(f"{what} is {name!r:.60}; take lower-case letters, digits and hyphens, at most 31")


def _draws(where: str, table: Mapping[str, Any]) -> dict[str, Draw]:
    return {name: _draw(f"{where}: {name}", value) for name, value in table.items()}


def _draw(where: str, value: Any) -> Draw:
    """Read a draw: ``{from = 1, to = 9}``, a list of values, or one value."""
    if isinstance(value, dict):
        _TOML.check_keys(where, value, {"from": float, "to": float}, required=("from", "to"))
        if not -np.inf < value["from"] <= value["to"] < np.inf:
            raise SuiteError(f"{where}: from is {value['from']}, to is {value['to']}; from is at most to")
        return Uniform(value["from"], value["to"])
    values = value if isinstance(value, list) else [value]
    if not values:
        raise SuiteError(f"{where} is an empty list; give one value at least")
    for own in values:
        if not isinstance(own, bool | int | float | str):
            raise SuiteError(f"{where}: {own!r:.60} is no value; give a number, a text, true or false")
    return OneOf(tuple(values))


def _check_instance(where: str, table: Any, draws: Mapping[str, Draw]) -> None:
    """Check an instance with values of its draws in place of their names."""
    _TOML.check_type(where, table, dict)
    for key in ("name", "seed"):
        if key in table:
            raise SuiteError(
                f"{where}: {key} is {table[key]!r:.60}, and every instance gets its own; leave it out"
            )
    for name in _names(table):
        if name not in draws:
            raise SuiteError(
                f"{where}: {{{name}}} is no draw{did_you_mean(name, draws)}; there are {', '.join(draws) or 'none'}"
            )
    rng = np.random.default_rng(0)
    filled = _filled(table, {name: draw.draw(rng) for name, draw in draws.items()})
    spec = spec_of(where, {"name": "drawn", **filled})
    if spec.file is not None:
        raise SuiteError(
            f"{where}: data is {spec.data!r:.60}, a file; instances are drawn from data that everybody has"
        )
    try:
        make_formulation(spec.model, spec.parameters, spec.variant, ensemble=spec.ensemble)
    except (UnknownFormulation, ParameterError, DataError) as error:
        raise error.located(where, SuiteError) from error


def _names(value: Any) -> Iterator[str]:
    """Yield the names of draws within a value."""
    if isinstance(value, str):
        yield from _DRAWN.findall(value)
    elif isinstance(value, Mapping):
        for own in value.values():
            yield from _names(own)
    elif isinstance(value, list):
        for own in value:
            yield from _names(own)


def _filled(value: Any, draws: Mapping[str, Any]) -> Any:
    """Return a value with draws in place of their names."""
    if isinstance(value, Mapping):
        return {key: _filled(own, draws) for key, own in value.items()}
    if isinstance(value, list):
        return [_filled(own, draws) for own in value]
    if not isinstance(value, str):
        return value
    alone = _DRAWN.fullmatch(value)
    return draws[alone[1]] if alone else _DRAWN.sub(lambda found: str(draws[found[1]]), value)


# ---------------------------------------------------------------------- what levels were measured at

#: File of measured runs, beside the distributions.
MEASURED = "measured.csv"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run of a solver on an instance of a level.

    Attributes
    ----------
    distribution, level, instance
        What was solved.
    solver, version
        By what; ``auto`` is the search or solver that ``mipforest solve`` takes.
    seconds, time_limit
        Seconds of the processor, and the most of them.
    status
        How it ended.
    """

    distribution: str
    level: str
    instance: str
    solver: str
    version: str
    seconds: float
    time_limit: float
    status: str


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The runs of a solver on a level.

    Attributes
    ----------
    distribution, level, solver
        Which ones.
    runs, solved
        How many, and how many of them ended with an optimum.
    median
        Median of their seconds.
    at_limit
        Whether the median run ended without an optimum: ``median`` is then what it had taken by then.
    """

    distribution: str
    level: str
    solver: str
    runs: int
    solved: int
    median: float
    at_limit: bool

    @property
    def words(self) -> str:
        """The median, behind ``>`` where that run ended at the limit."""
        return f"> {self.median:.0f}" if self.at_limit else f"{self.median:.2g}"


def read_measured(path: Path | None = None) -> list[Measured]:
    """Read measured runs, of the distributions that mipforest brings unless given; none if there is no file.

    Raises
    ------
    SuiteError
        If the columns are others, or a number is none.
    OSError
        If the file cannot be read.
    """
    path = Library.installed().folder / FOLDER / MEASURED if path is None else path
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        return [
            Measured(**row | {key: float(row[key]) for key in ("seconds", "time_limit")})  # type: ignore[arg-type]
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise SuiteError(f"{path} holds no measured runs: {error}") from error


def record_measured(path: Path, run: Measured) -> None:
    """Add a run to a file of measured ones, in order of their instances."""
    with turn(path.parent):
        runs = sorted([*read_measured(path), run], key=lambda own: (own.instance, own.solver))
        text = io.StringIO()
        writer = csv.DictWriter(text, [own.name for own in fields(Measured)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(own) for own in runs)
        with atomic_write(path, "w") as file:
            file.write(text.getvalue())


def summaries(runs: Sequence[Measured]) -> list[Summary]:
    """Return the median of every distribution, level and solver, in the order of the runs.

    The median is the lower one of two; a run without an optimum counts as longer than any other.
    """
    groups: dict[tuple[str, str, str], list[Measured]] = {}
    for run in runs:
        groups.setdefault((run.distribution, run.level, run.solver), []).append(run)
    found = []
    for (distribution, level, solver), own in groups.items():
        by_time = sorted(own, key=lambda run: (run.status != "optimal", run.seconds))
        middle = by_time[(len(by_time) - 1) // 2]
        found.append(
            Summary(
                distribution=distribution,
                level=level,
                solver=solver,
                runs=len(own),
                solved=sum(run.status == "optimal" for run in own),
                median=middle.seconds,
                at_limit=middle.status != "optimal",
            )
        )
    return found
