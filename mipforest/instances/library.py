"""The instance library: ``suite.toml`` says which instances there are, ``catalogue.csv`` what is known of each.

The suite names each by its model, data and seed. The catalogue has the size, the checksum, the status and the best
known values. Instances are built, verified and improved from both; the same suite gives the same bytes.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import re
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.atomic import atomic_write, turn
from mipforest.data import DataError
from mipforest.data.loading import BUNDLED, SUFFIXES
from mipforest.ensembles import names_no_file
from mipforest.errors import MipforestError, did_you_mean
from mipforest.files import MpsError, read_mps
from mipforest.files.solutions import PointError, point_of, read_point, write_point
from mipforest.files.streams import numbered_lines
from mipforest.instances.results import Run, by_instance, difficulty_of, proof_of, read_results
from mipforest.model import MatrixForm
from mipforest.model.check import violations
from mipforest.problem.constraints import Constraint
from mipforest.problem.constraints.reading import constraints_of, toml_of
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import Problem
from mipforest.problem.proofs import needed_tolerance
from mipforest.problem.registry import UnknownFormulation, get_formulation, make_formulation
from mipforest.problem.result import Result
from mipforest.runs.data_source import DataSource
from mipforest.runs.instance import instance_files, sha256_of_model, write_instance
from mipforest.runs.text_files import TomlReader
from mipforest.settings import DEFAULT_GAP, FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import ROUNDED_ZERO, Solution, closed, relative_gap
from mipforest.trees import MAX_DEPTH, Predictor

__all__ = [
    "BuiltInstance",
    "CatalogueError",
    "Entry",
    "Finding",
    "InstanceSpec",
    "Library",
    "SuiteError",
    "build_instance",
    "build_problem",
    "improve",
    "read_catalogue",
    "read_suite",
    "verify",
    "write_catalogue",
]


FAMILIES = ("small", "medium", "large")

#: Names become names of files.
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_SYNTHETIC = re.compile(r"synthetic:[a-z0-9=.,_-]+")

#: The type of every key of an instance.
_KEYS: dict[str, type] = {
    "name": str,
    "family": str,
    "model": str,
    "variant": str,
    "depth": int,
    "parameters": dict,
    "constraints": dict,
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
    "scores": str,
    "sha256": str,
    "source": str,
    "columns": list,
    "missing": str,
}
_REQUIRED = ("name", "family", "model", "depth", "data")


class SuiteError(MipforestError, ValueError):
    """The file is no suite or distribution, or cannot be used as one; the message says where and why."""


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
    constraints
        Constraints on the tree, as in a file of ``mipforest export --constraints``.
    data
        A bundled data set or a generator, which anybody has and may redistribute; in a library of one's own also a file
        in its folder.
    target, weight, drop, task, scaling, positive, test_size, seed
        As for ``mipforest export``; with ``test_size`` the model is of the training part.
    ensemble
        For models that mimic an ensemble: the name of which to fit, never a file, as loading one can run code.
    scores
        For models of decisions: how rewards are estimated of treatments and outcomes, as for ``mipforest export``.
    sha256, source
        Of data in a file that a user has and the library may not bring: the file's checksum, and where it is from
        (name, DOI, licence). Without the file the instance cannot be built.
    columns
        Names of the columns of a text file that has no line of names, as those of the UCI repository.
    missing
        What is done about missing values, as for ``mipforest export``: ``"error"`` unless given.
    """

    name: str
    family: str
    model: str
    depth: int
    data: str
    variant: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    target: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    task: str | None = None
    scaling: str | None = None
    positive: tuple[str, ...] = ()
    test_size: float | None = None
    seed: int = 0
    ensemble: str | None = None
    scores: str | None = None
    sha256: str = ""
    source: str = ""
    columns: tuple[str, ...] = ()
    missing: str = "error"

    @property
    def file(self) -> str | None:
        """Name of the data's file in the library's folder, ``None`` for data that everybody has."""
        return self.data if self.columns or self.data.endswith(SUFFIXES) else None

    def data_source(self, scaling: str, folder: Path) -> DataSource:
        """Return what to load; ``scaling`` is the model's own, used unless the suite says otherwise.

        Files are in the library's ``folder``.

        Raises
        ------
        SuiteError
            If a file is not there, or is another one than the suite's.
        """
        data = self.data
        if self.file is not None:
            path = folder / self.file
            self._check_file(path)
            data = str(self._with_names(path) if self.columns else path)
        return DataSource(
            data=data,
            target=self.target,
            weight=self.weight,
            drop=self.drop,
            task=self.task,  # type: ignore[arg-type] # checked by load
            scaling=self.scaling or scaling,  # type: ignore[arg-type]
            seed=self.seed,
            positive=self.positive,
            test_size=self.test_size,
            scores=self.scores,  # type: ignore[arg-type] # checked by load
            missing=self.missing,  # type: ignore[arg-type] # checked by load
        )

    def _with_names(self, path: Path) -> Path:
        """Write a file with a line of names on top beside it, under its name with ``.csv``; return the path."""
        named, text = path.with_name(f"{path.name}.csv"), path.read_bytes()
        content = ",".join(self.columns).encode() + b"\n" + text
        if not named.is_file() or named.read_bytes() != content:
            with atomic_write(named, "wb") as file:
                file.write(content)
        return named

    def _check_file(self, path: Path) -> None:
        where = f"instance {self.name}: its data"
        known = f" ({self.source})" if self.source else ""
        if not path.is_file():
            raise SuiteError(f"{where}{known} are the file {path}, which is not there; put it there")
        if self.sha256 and (found := hashlib.sha256(path.read_bytes()).hexdigest()) != self.sha256:
            raise SuiteError(
                f"{where}{known} have the checksum {self.sha256[:16]}..., and {path} has {found[:16]}...; "
                "take the file that the suite names"
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
        return parse_suite(text)
    except SuiteError as error:
        raise error.located(str(path)) from error


#: What a suite may say of the library as a whole.
_LIBRARY_KEYS: dict[str, type] = {"title": str, "version": str, "licence": str}


def _instances(content: Mapping[str, Any]) -> dict[str, InstanceSpec]:
    _TOML.check_keys("library", content.get("library", {}), _LIBRARY_KEYS, ())
    listed = content.get("instance")
    if content.keys() - {"instance", "library"} or not isinstance(listed, list) or not listed:
        raise SuiteError("it holds something else than a list of [[instance]] tables")
    specs: dict[str, InstanceSpec] = {}
    for number, entry in enumerate(listed, 1):
        spec = spec_of(f"instance {number}", entry)
        if spec.name in specs:
            raise SuiteError(f"instance {number}: the name {spec.name} stands twice")
        specs[spec.name] = spec
    return specs


def suite_text(tables: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a suite, from tables with the keys of its instances."""
    return "\n".join(
        "".join(["[[instance]]\n", *(f"{key} = {toml_of(value)}\n" for key, value in own.items())])
        for own in tables
    )


def parse_suite(text: str) -> dict[str, InstanceSpec]:
    """Read the text of a suite; give its instances by name, in the text's order.

    Raises
    ------
    SuiteError
        If it is no TOML, or an instance is malformed; models and parameters are checked when built.
    """
    return _instances(_TOML.tables(text))


def spec_of(where: str, entry: Any) -> InstanceSpec:
    """Read one table of a suite; ``where`` names it in errors.

    Raises
    ------
    SuiteError
        If a key is unknown or missing, or its value is not allowed.
    """
    _TOML.check_keys(where, entry, _KEYS, _REQUIRED)
    _check_values(where, entry)
    read = {
        "parameters": _TOML.parameters(f"{where}: parameters", entry.get("parameters", {})),
        "constraints": _constraints(where, entry.get("constraints", {})),
        "positive": tuple(entry.get("positive", ())),
        "drop": tuple(entry.get("drop", ())),
        "columns": tuple(entry.get("columns", ())),
    }
    return InstanceSpec(**{**entry, **read})


def _constraints(where: str, given: Mapping[str, Any]) -> tuple[Constraint, ...]:
    try:
        return tuple(constraints_of(given, files=False))
    except DataError as error:
        raise error.located(f"{where}: constraints", SuiteError) from error


def _is_inside(data: str) -> bool:
    """Return whether the data can be a file below the library's folder, by its name."""
    path = PurePosixPath(data)
    inside = not path.is_absolute() and ".." not in path.parts and path.name
    return bool(inside) and not set(data) & set("\\:~\0")


def _check_values(where: str, entry: Mapping[str, Any]) -> None:
    if not _NAME.fullmatch(entry["name"]):
        raise SuiteError(
            f"{where}: the name {entry['name']!r:.80} must be lower-case letters, digits, dots, hyphens; at most 64"
        )
    if entry["family"] not in FAMILIES:
        raise SuiteError(
            f"{where}: the family is {entry['family']!r:.80}; it is one of {', '.join(FAMILIES)}"
        )
    is_file = _is_inside(entry["data"]) and ("columns" in entry or entry["data"].endswith(SUFFIXES))
    if not (entry["data"] in BUNDLED or _SYNTHETIC.fullmatch(entry["data"]) or is_file):
        raise SuiteError(
            f"{where}: the data are {entry['data']!r:.80}; a library takes what everybody has: "
            f"{', '.join(BUNDLED)}, or synthetic:..., and files in its own folder ({', '.join(SUFFIXES)})"
        )
    for key, what in (("positive", "class"), ("drop", "column"), ("columns", "column")):
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


class CatalogueError(MipforestError, ValueError):
    """The file is no catalogue; the message says where and why."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One instance of the catalogue: a line of the file.

    Attributes
    ----------
    name, family, model, variant, depth, data, samples, features
        What it is.
    columns, binary, integer, continuous, rows, indicators, nonzeros, quadratic_terms
        Its size; ``integer`` counts columns that are not binary.
    nonzeros_by_class
        Nonzeros of each class of constraints, ``name:count`` joined by ``;``.
    sha256
        Of the model's text as MPS (what the compressed file unpacks to).
    tolerance
        What a solver's tolerances must be for its optimum to be that of a tree, where their default of 1e-6 is too
        coarse; NaN where it is not.
    objective, bound
        Best known objective value and best proven bound; NaN and minus infinity while unknown.
    solver, seconds, time_limit
        Who improved objective or bound last, in what time, of how much.
    proven_for
        What the bound is proven for: ``definition``, or ``constants`` where those of the variant may cut off better
        trees; empty while unknown. The status is that of the instance as it is written.
    proof
        What vouches for the optimum: a certificate that was checked, or two routes that found the same value; empty
        where nothing does.
    difficulty, matrix_seconds
        For matrix solvers: ``easy`` and the least seconds in which one solved it; ``hard`` and the longest time limit
        in which none of those that were tried did, though it is solved. Open instances have no difficulty.
    dynamism
        Greatest ratio of two absolute coefficients of one row.
    violation, relative_violation, integrality
        Of the best known solution: by how much it misses a row or bound, absolutely and divided by the larger of 1 and
        the absolute side of the row or bound, and an integer; NaN without a solution.
    """

    name: str
    family: str
    model: str
    variant: str
    depth: int
    data: str
    samples: int
    features: int
    columns: int
    binary: int
    integer: int
    continuous: int
    rows: int
    indicators: int
    nonzeros: int
    nonzeros_by_class: str
    quadratic_terms: int
    sha256: str
    objective: float = math.nan
    bound: float = -math.inf
    solver: str = ""
    seconds: float = math.nan
    time_limit: float = math.nan
    proven_for: str = ""
    tolerance: float = math.nan
    proof: str = ""
    difficulty: str = ""
    matrix_seconds: float = math.nan
    dynamism: float = math.nan
    violation: float = math.nan
    relative_violation: float = math.nan
    integrality: float = math.nan

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound; infinite while either is unknown."""
        return math.inf if math.isnan(self.objective) else relative_gap(self.objective, self.bound)

    @property
    def has_solution(self) -> bool:
        """Whether a solution is known: of some instances only a bound is."""
        return not math.isnan(self.objective)

    @property
    def status(self) -> str:
        """``solved``: the gap is closed, and a proof stands; ``unconfirmed``: without a proof; ``open``."""
        if not closed(self.objective, self.bound, DEFAULT_GAP):
            return "open"
        return "solved" if self.proof else "unconfirmed"

    @property
    def is_approximated(self) -> bool:
        """Whether points of the file may have objectives below those of their trees, by more than tolerances.

        ``objective`` is then a value of the file too, at least its optimum. ``bound`` is one for the definition alone.
        """
        return bool(get_formulation(self.model).slack_closed_by)

    @property
    def tags(self) -> str:
        """What a solver has to take, or its reader to know.

        ``quadratic``, ``indicators``, ``numerics`` (beyond :data:`CLEAN_DYNAMISM`), ``approximated``
        (:attr:`is_approximated`).
        """
        found = {
            "quadratic": self.quadratic_terms > 0,
            "indicators": self.indicators > 0,
            "numerics": self.dynamism > CLEAN_DYNAMISM,
            "approximated": self.is_approximated,
        }
        return " ".join(tag for tag, has in found.items() if has)


#: Greatest dynamism of an instance that counts as numerically clean, as in MIPLIB 2017 (Gleixner and others,
#: Mathematical Programming Computation 13, 2021).
CLEAN_DYNAMISM = 1e6

#: Columns of the file; the last two are written for readers and follow from the others.
_COLUMNS = [*(f.name for f in fields(Entry)), "status", "tags"]


def write_catalogue(entries: Mapping[str, Entry], path: Path) -> None:
    """Write a catalogue; the file appears complete or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for entry in entries.values():
        writer.writerow([_written(getattr(entry, column)) for column in _COLUMNS])
    with atomic_write(path, "w") as file:
        file.write(text.getvalue())


def write_solu(entries: Iterable[Entry], path: Path) -> None:
    """Write optimal and best known values as MIPLIB does; the file appears complete or not at all.

    They are values of the files: of an approximated instance (:attr:`Entry.is_approximated`) the best known one alone.
    """
    lines = []
    for entry in entries:
        if math.isnan(entry.objective):
            lines.append(f"=unkn= {entry.name}")
        else:
            solved = entry.status == "solved" and not entry.is_approximated
            lines.append(f"{'=opt=' if solved else '=best='} {entry.name} {entry.objective!r}")
        if entry.status != "solved" and math.isfinite(entry.bound) and not entry.is_approximated:
            lines.append(f"=bestdual= {entry.name} {entry.bound!r}")
    with atomic_write(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)


def _written(value: object) -> str:
    if isinstance(value, float):
        return "" if not math.isfinite(value) else repr(value)
    return str(value)


def read_catalogue(path: Path) -> dict[str, Entry]:
    """Read a catalogue; an absent file is an empty one.

    Raises
    ------
    CatalogueError
        If the columns are others, or a number is none.
    OSError
        If the file cannot be read.
    """
    if not path.exists():
        return {}
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    except (csv.Error, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path} is no catalogue: {error}") from error
    return {entry.name: entry for entry in (_entry(path, number, row) for number, row in enumerate(rows, 2))}


def _entry(path: Path, number: int, row: Mapping[str | None, str | None]) -> Entry:
    if set(row) != set(_COLUMNS) or None in row.values():
        raise CatalogueError(f"{path}, line {number}: the columns are not {', '.join(_COLUMNS)}")
    values: dict[str, object] = {}
    for f in fields(Entry):
        text = str(row[f.name])
        try:
            if f.type == "int":
                values[f.name] = int(text)
            elif f.type == "float":
                values[f.name] = float(text) if text else f.default
            else:
                values[f.name] = text
        except ValueError:
            raise CatalogueError(f"{path}, line {number}: {f.name} is {text[:80]!r}, no number") from None
    return Entry(**values)  # type: ignore[arg-type] # typed by its fields above


#: File of a library whose copy is not finished.
UNFINISHED = ".unfinished-copy"


@dataclass(frozen=True)
class Library:
    """A folder with ``suite.toml``, ``catalogue.csv``, ``instances.solu``, and one folder per family.

    A family's folder holds, for each instance, ``NAME.mps.gz`` (the model), ``NAME.json`` (its metadata),
    ``NAME.mst`` (a start) and ``NAME.sol.gz`` (the best known solution). ``results.csv`` has one line per run of a
    solver (:mod:`mipforest.instances.results`).

    Attributes
    ----------
    folder
        The folder.
    """

    folder: Path

    @classmethod
    def installed(cls) -> Library:
        """Return the library that the package brings, to be read: suite, catalogue and best known solutions.

        Raises
        ------
        SuiteError
            If the installation has none.
        """
        checkout = Path(__file__).parents[2] / "instances"
        installed = Path(sysconfig.get_path("data")) / "share" / "mipforest" / "instances"
        for folder in (installed, checkout):
            if (folder / "suite.toml").is_file():
                return cls(folder)
        raise SuiteError(f"this installation of mipforest has no instance library (none in {installed})")

    @classmethod
    def copied(cls, folder: Path) -> Library:
        """Copy what the package brings of its library into a folder: suite, catalogue and best known solutions.

        The suite comes last: a folder that has it has the rest. A copy that was killed is known by its file
        :data:`UNFINISHED`, and finished by the next.

        Raises
        ------
        SuiteError
            If the installation has no library, or the folder holds something else already.
        OSError
            If a file cannot be written.
        """
        source = cls.installed().folder
        library, unfinished = cls(folder), folder / UNFINISHED
        folder.mkdir(parents=True, exist_ok=True)
        with turn(folder):
            if (folder / "suite.toml").is_file():  # another process was faster
                return library
            if any(folder.iterdir()) and not unfinished.is_file():
                raise SuiteError(
                    f"{folder} holds something else than an instance library; give an empty folder"
                )
            unfinished.touch()
            solutions = sorted(source.glob("*/*.sol.gz"))
            for file in (
                *solutions,
                *(source / name for name in ("results.csv", "catalogue.csv", "suite.toml")),
            ):
                copy = folder / file.relative_to(source)
                copy.parent.mkdir(exist_ok=True)
                with atomic_write(copy) as opened:
                    opened.write(file.read_bytes())
            unfinished.unlink()
        return library

    @property
    def catalogue_path(self) -> Path:
        """The catalogue's file."""
        return self.folder / "catalogue.csv"

    @property
    def results_path(self) -> Path:
        """The file of results."""
        return self.folder / "results.csv"

    @cached_property
    def suite(self) -> dict[str, InstanceSpec]:
        """Instances by name.

        Raises
        ------
        SuiteError
            If there is no suite, or it is malformed.
        """
        path = self.folder / "suite.toml"
        if not path.is_file():
            raise SuiteError(
                f"there is no instance library in {self.folder} (no file {path}); give its folder with --library, "
                "or make it there: mipforest instances build --library DIR"
            )
        return read_suite(path)

    def chosen(self, only: tuple[str, ...]) -> list[InstanceSpec]:
        """Return the instances whose name, family or model is listed; all if nothing is.

        Raises
        ------
        SuiteError
            If a word names none.
        """
        chosen = [s for s in self.suite.values() if not only or {s.name, s.family, s.model} & set(only)]
        known = {word for s in self.suite.values() for word in (s.name, s.family, s.model)}
        for word in only:
            if word not in known:
                hint = did_you_mean(word, sorted(known))
                raise SuiteError(f"no instance, family or model is called {word!r}{hint}")
        return chosen

    def entries(self) -> dict[str, Entry]:
        """Read the catalogue."""
        return read_catalogue(self.catalogue_path)

    def record(self, entry: Entry, update: Callable[[Entry], Entry] | None = None) -> Entry:
        """Record an entry in the catalogue, in the suite's order; entries that left the suite come last.

        Several processes may record at the same time: each waits for its turn, by a lock on the
        folder.

        Parameters
        ----------
        entry
            The entry.
        update
            Called within the turn with what the catalogue has of the same model by then, or with the entry; returns
            what is recorded.

        Returns
        -------
        Entry
            What was recorded.
        """
        with turn(self.folder):
            entries = self.entries()
            if update is not None:
                now = entries.get(entry.name)
                entry = update(entry if now is None or now.sha256 != entry.sha256 else now)
            return self._recorded(entries, [entry])[entry.name]

    def record_all(self, entries: Sequence[Entry]) -> None:
        """Record entries of new instances in the catalogue, all at once, as :meth:`record` does one."""
        with turn(self.folder):
            self._recorded(self.entries(), entries)

    def _recorded(self, known: Mapping[str, Entry], new: Sequence[Entry]) -> dict[str, Entry]:
        """Write the catalogue with new entries, and return it."""
        runs = by_instance(read_results(self.results_path), {entry.name: entry.sha256 for entry in new})
        entries = {**known, **{entry.name: _judged(entry, runs.get(entry.name, [])) for entry in new}}
        names = [
            *(name for name in self.suite if name in entries),
            *sorted(entries.keys() - self.suite.keys()),
        ]
        ordered = {name: entries[name] for name in names}
        write_catalogue(ordered, self.catalogue_path)
        write_solu(ordered.values(), self.folder / "instances.solu")
        return ordered

    def model_path(self, spec: InstanceSpec) -> Path:
        """Return the model's file."""
        return self.folder / spec.family / f"{spec.name}.mps.gz"

    def start_path(self, spec: InstanceSpec) -> Path:
        """Return the start's file."""
        return self.folder / spec.family / f"{spec.name}.mst"

    def solution_path(self, spec: InstanceSpec) -> Path:
        """Return the best known solution's file."""
        return self.folder / spec.family / f"{spec.name}.sol.gz"


def _judged(entry: Entry, runs: Sequence[Run]) -> Entry:
    """Return an entry with what follows from the runs of its instance."""
    entry = replace(entry, proof=proof_of(runs, entry))
    difficulty, seconds = difficulty_of(runs, entry, solved=entry.status == "solved")
    return replace(entry, difficulty=difficulty, matrix_seconds=seconds)


@dataclass(frozen=True, eq=False)
class BuiltInstance:
    """A built instance and its line of the catalogue."""

    problem: Problem
    source: DataSource
    entry: Entry


def build_problem(library: Library, spec: InstanceSpec, known: Entry | None = None) -> BuiltInstance:
    """Build the model of an instance.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    known
        What the catalogue says of it: best known values are kept while the model stays the same.

    Raises
    ------
    SuiteError
        If the suite asks for what there is not.
    """
    try:
        formulation = make_formulation(spec.model, spec.parameters, spec.variant, ensemble=spec.ensemble)
        source = spec.data_source(formulation.scaling, library.folder)
        train = source.load().train
        problem = formulation.build(train, spec.depth)
        problem.constrain(*source.with_groups(spec.constraints, train))
        problem.model.name = spec.name
    except (UnknownFormulation, ParameterError, DataError) as error:
        raise error.located(f"instance {spec.name}", SuiteError) from error
    entry = _entry_of(spec, problem)
    if known is not None and known.sha256 == entry.sha256:
        quality = ("violation", "relative_violation", "integrality")
        best = ("objective", "bound", "proven_for", "solver", "seconds", "time_limit", *quality)
        entry = replace(entry, **{name: getattr(known, name) for name in best})
    return BuiltInstance(problem, source, entry)


def _entry_of(spec: InstanceSpec, problem: Problem) -> Entry:
    form, counts = problem.model.matrix(), problem.model.stats()
    tolerance = needed_tolerance(problem)
    if tolerance is None or tolerance >= FEASIBILITY_TOLERANCE:
        tolerance = math.nan  # the solvers' default does
    by_class = ";".join(f"{name}:{block.A.nnz}" for name, block in problem.model.constraints.items())
    return Entry(
        name=spec.name,
        family=spec.family,
        model=spec.model,
        variant=problem.formulation.variant,
        depth=spec.depth,
        data=spec.data,
        samples=problem.data.n,
        features=problem.data.p,
        columns=counts.columns,
        binary=counts.binary,
        integer=counts.integer,
        continuous=counts.continuous,
        rows=counts.rows,
        indicators=counts.indicators,
        nonzeros=counts.nonzeros,
        nonzeros_by_class=by_class,
        quadratic_terms=counts.quadratic_terms,
        sha256=sha256_of_model(form),
        tolerance=tolerance,
        dynamism=counts.dynamism,
    )


def _with_quality(entry: Entry, form: MatrixForm, x: FloatArray) -> Entry:
    """Return an entry with the violations of its best known solution."""
    found = violations(form, x)
    sides = (
        (found.bounds, form.col_lower, form.col_upper),
        (found.rows, form.row_lower, form.row_upper),
        (found.indicators, form.indicators.lower, form.indicators.upper),
    )
    relative = [missed / np.maximum(1.0, np.minimum(np.abs(low), np.abs(up))) for missed, low, up in sides]
    return replace(
        entry,
        violation=max(float(missed.max(initial=0.0)) for missed, _, _ in sides),
        relative_violation=max(float(missed.max(initial=0.0)) for missed in relative),
        integrality=float(found.integrality.max(initial=0.0)),
    )


def pack(library: Library, path: Path) -> list[str]:
    """Write the library as one archive for an upload; the same library gives the same bytes.

    Parameters
    ----------
    library
        A library whose instances are built.
    path
        ``*.tar.gz``. ``MANIFEST.sha256`` in it has the checksum of every file, as ``sha256sum -c`` reads it.

    Returns
    -------
    list
        Names of the files in the archive.

    Raises
    ------
    SuiteError
        If an instance is not built, or the name has another ending.
    OSError
        If a file cannot be read or written.
    """
    if not path.name.endswith(".tar.gz"):
        raise SuiteError(f"the archive is {path.name!r}; give it a name that ends in .tar.gz")
    missing = [spec.name for spec in library.suite.values() if not library.model_path(spec).is_file()]
    if missing:
        raise SuiteError(
            f"{len(missing)} of {len(library.suite)} instances are not built, such as {missing[0]}; "
            "run 'mipforest instances build' first"
        )
    own = ("suite.toml", "catalogue.csv", "instances.solu", "results.csv", "LICENSE", "CITATION.cff")
    files = [library.folder / name for name in own if (library.folder / name).is_file()]
    for spec in library.suite.values():
        model = library.model_path(spec)
        beside = (*instance_files(model), library.solution_path(spec))
        files += [model, *(file for file in beside if file.is_file())]
    contents = {str(file.relative_to(library.folder)): file.read_bytes() for file in sorted(files)}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items())
    contents["MANIFEST.sha256"] = sums.encode()
    with (
        atomic_write(path) as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in contents.items():
            member = tarfile.TarInfo(f"mipforest-instances/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return list(contents)


def build_instance(library: Library, spec: InstanceSpec, *, version: str) -> Entry:
    """Build an instance, write its files and record it in the catalogue.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    version
        Version of mipforest, for the metadata.

    Raises
    ------
    SuiteError
        If the suite asks for what there is not.
    OSError
        If a file cannot be written.
    """
    built = build_problem(library, spec, library.entries().get(spec.name))
    path = library.model_path(spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_instance(built.problem, path, built.source, start="default", seed=spec.seed, version=version)
    entry, solution = built.entry, library.solution_path(spec)
    if not entry.has_solution:
        solution.unlink(missing_ok=True)
    elif solution.is_file():
        form = built.problem.model.matrix()
        entry = _with_quality(entry, form, point_of(form, read_point(solution), solution).x)
    return library.record(entry)


@dataclass(frozen=True)
class Finding:
    """Something wrong with an instance."""

    instance: str
    message: str


def verify(library: Library, spec: InstanceSpec, *, rebuild: bool = False) -> list[Finding]:
    """Check an instance against the catalogue.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    rebuild
        Build the model anew even if its file is there, and compare.

    Returns
    -------
    list
        What is wrong; empty if all is well. A model that cannot be read is one finding.

    Raises
    ------
    SuiteError, CatalogueError
        If the suite asks for what there is not, or the catalogue is damaged.
    """
    entry = library.entries().get(spec.name)
    if entry is None:
        return [Finding(spec.name, "it is not in the catalogue; build it first")]
    return [Finding(spec.name, message) for message in _findings(library, spec, entry, rebuild)]


def _findings(library: Library, spec: InstanceSpec, entry: Entry, rebuild: bool) -> Iterator[str]:
    path = library.model_path(spec)
    form = None
    if path.is_file():
        try:
            form, found = read_mps(path), _sha256_of_text(path)
        except (MpsError, PointError) as error:
            yield str(error)
            return
        if found != entry.sha256:
            yield f"{path.name} has the checksum {found[:16]}..., the catalogue says {entry.sha256[:16]}..."
    if rebuild or form is None:
        built = build_problem(library, spec)
        form = form or built.problem.model.matrix()
        if entry.has_solution and library.solution_path(spec).is_file():
            yield from _wrong_tree(built.problem, library.solution_path(spec), entry.objective)
        if built.entry.sha256 != entry.sha256:
            yield (
                f"built anew it has the checksum {built.entry.sha256[:16]}..., the catalogue says "
                f"{entry.sha256[:16]}...; other versions of the packages it is made with give other models"
            )
    yield from _wrong_point(form, library.start_path(spec), None)
    if entry.has_solution:
        yield from _wrong_point(form, library.solution_path(spec), entry.objective)
    worse = entry.objective > entry.bound if form.maximize else entry.objective < entry.bound
    if worse and abs(entry.objective - entry.bound) > FEASIBILITY_TOLERANCE * max(1.0, abs(entry.objective)):
        yield f"the best objective {entry.objective:.9g} lies beyond the bound {entry.bound:.9g}"


def _wrong_point(form: MatrixForm, path: Path, objective: float | None) -> Iterator[str]:
    """Describe what is wrong with a solution that must be there, or with a start (no objective) that may be."""
    if not path.is_file():
        if objective is not None:
            yield f"{path.name} is not there"
        return
    try:
        x = point_of(form, read_point(path), path).x
    except PointError as error:
        yield str(error)
        return
    worst = violations(form, x)
    if worst.max > FEASIBILITY_TOLERANCE:
        name, amount = worst.worst(1)[0]
        yield f"{path.name} violates {name} by {amount:.3g}"
    found = form.objective(x)
    if objective is not None and abs(found - objective) > FEASIBILITY_TOLERANCE * max(1.0, abs(objective)):
        yield f"{path.name} has the objective {found:.9g}, the catalogue says {objective:.9g}"


def _wrong_tree(problem: Problem, path: Path, objective: float) -> Iterator[str]:
    """Say so where the tree of a solution has another value by the definition than the catalogue says."""
    form = problem.model.matrix()
    try:
        values = form.to_values(point_of(form, read_point(path), path).x)
    except PointError:
        return  # said of the point itself
    tree = problem.formulation.decode(values, problem.instance)
    value = problem.formulation.evaluate(tree, problem.instance)
    if abs(value - objective) > FEASIBILITY_TOLERANCE * max(1.0, abs(objective)):
        yield (
            f"the tree of {path.name} has the value {value:.9g} by the definition, the catalogue says {objective:.9g}: "
            "the point is one by a solver's tolerances"
        )


def _sha256_of_text(path: Path) -> str:
    """Return the checksum of what a compressed file unpacks to."""
    digest = hashlib.sha256()
    for _, line in numbered_lines(
        path, lambda number, reason: PointError(path, number, reason), compressed=True
    ):
        digest.update(line)
    return digest.hexdigest()


def improve(
    library: Library,
    spec: InstanceSpec,
    solver: str | Solver,
    settings: SolveSettings,
) -> Entry:
    """Solve an instance from its best known solution; record a better solution or bound.

    Only verified trees count, and only bounds of the unchanged model.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    solver, settings
        As for :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`; the start is the best known solution.

    Returns
    -------
    Entry
        The entry, as it now stands in the catalogue.
    """
    built = build_problem(library, spec, library.entries().get(spec.name))
    problem, entry = built.problem, built.entry
    start = _best_known(library, spec, problem) if entry.solver else None
    result = problem.solve(solver, settings=replace(settings, start=start or "default"))
    return record_result(library, spec, entry, result, settings)


def record_result(
    library: Library, spec: InstanceSpec, entry: Entry, result: Result, settings: SolveSettings
) -> Entry:
    """Record what a result of an instance has better, and return the entry as it now stands in the catalogue."""
    return library.record(entry, lambda known: improved(library, spec, known, result, settings))


def improved(
    library: Library, spec: InstanceSpec, entry: Entry, result: Result, settings: SolveSettings
) -> Entry:
    """Return an entry with what a result has better, and write the result's point if its value is.

    The catalogue stays as it is.
    """
    solution, form = result.solution, result.problem.model.matrix()
    maximize = form.maximize
    if result.verified and solution.x is not None and _better(result.objective, entry.objective, maximize):
        value = 0.0 if abs(result.objective) <= ROUNDED_ZERO else result.objective
        sparse = np.where(solution.x == 0, np.nan, solution.x)  # a column that is not named is 0
        write_point(
            form,
            sparse,
            library.solution_path(spec),
            comments=(f"best known solution of {spec.name}", f"objective value = {value!r}"),
        )
        entry = _by(replace(_with_quality(entry, form, solution.x), objective=value), solution, settings)
    if _better(entry.bound, result.bound, maximize):
        entry = _by(replace(entry, bound=result.bound), solution, settings)
    if result.bound_for is not None and entry.bound == result.bound:
        entry = replace(entry, proven_for=result.bound_for)
    return entry


def _by(entry: Entry, solution: Solution, settings: SolveSettings) -> Entry:
    limit = math.inf if settings.time_limit is None else float(settings.time_limit)
    by = f"{solution.solver} {solution.solver_version}"
    return replace(entry, solver=by, seconds=round(solution.seconds, 1), time_limit=limit)


def _better(one: float, other: float, maximize: bool) -> bool:
    """Return whether the first objective value is better, or the second unknown."""
    if math.isnan(one):
        return False
    return math.isnan(other) or (one > other if maximize else one < other)


def _best_known(library: Library, spec: InstanceSpec, problem: Problem) -> Predictor | None:
    path = library.solution_path(spec)
    if not path.is_file():
        return None
    form = problem.model.matrix()
    x = point_of(form, read_point(path), path).x
    return problem.formulation.decode(form.to_values(x), problem.instance)
