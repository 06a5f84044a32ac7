"""Suites: which models meet which data, under which solvers, seeds and limits, read from ``SUITE.toml``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, get_args

from mipforest.data.encoding import Scaling
from mipforest.data.loading import SUFFIXES
from mipforest.data.target import Task
from mipforest.errors import CampaignError, DataError, NotAllowed, did_you_mean
from mipforest.problem.constraints import constraints_of
from mipforest.runs.text_files import TomlReader
from mipforest.settings import DEFAULT_GAP, SolveSettings
from mipforest.tuning.batch_plan import Trees
from mipforest.tuning.cost_complexity import Midpoint

#: What the shares of the classes are kept for, when data are split.
STRATIFY = ("labels", "classes", "none")

_TOML = TomlReader(CampaignError)

#: What options of HiGHS, Gurobi, SCIP and others that take a file or folder have in their names.
_FILE_OPTION = re.compile(r"file|dir|path|^write_|^record$", re.IGNORECASE)

TREE, TREATMENTS = "synthetic:tree", "synthetic:treatments"  #: generated data whose truth is known

#: Labels stand in tables and in names of files.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")

_SUITE: dict[str, type] = {
    "name": str,
    "summary": str,
    "source": str,
    "seeds": object,
    "solvers": object,
    "time_limits": object,
    "gap": float,
    "threads": int,
    "solver_options": dict,
    "split": dict,
    "data": dict,
    "models": dict,
    "published": dict,
}
_INCLUDING: dict[str, type] = {"name": str, "summary": str, "include": list}
_INCLUDED: dict[str, type] = {"suite": str, "only": object, "time_limit": float}
_SPLIT: dict[str, type] = {"test_size": float, "stratify": str, "seed": int}
_DATA: dict[str, type] = {
    "load": str,
    "target": str,
    "task": str,
    "positive": list,
    "scaling": str,
    "weight": str,
    "test_points": int,
}
_TUNE: dict[str, type] = {
    "trees": str,
    "starts": int,
    "folds": int,
    "validation": float,
    "midpoint": str,
    "grid": dict,
}
_MODEL: dict[str, type] = {
    "model": str,
    "variant": object,
    "depth": object,
    "start": object,
    "scaling": str,
    "ensemble": str,
    "parameters": dict,
    "grid": dict,
    "by_data": dict,
    "tune": dict,
    "constraints": dict,
}


@dataclass(frozen=True, kw_only=True)
class Split:
    """How test samples are put apart.

    Attributes
    ----------
    test_size
        Their share, between 0 and 1.
    stratify
        ``"labels"``: both parts keep the shares of the labels as they stand in the data; ``"classes"``: those of
        the classes after labels were merged; ``"none"``: neither.
    seed
        Seed of the shuffle; that of the experiment if ``None``.
    """

    test_size: float
    stratify: str = "classes"
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class DataEntry:
    """A data set of a suite.

    Attributes
    ----------
    load
        Bundled name, generator, ``openml:NAME``, or name of a file in the folder that the user names.
    target, task, scaling, weight
        As for :func:`mipforest.data.load`; the model's own scaling if ``None``.
    positive
        Classes that are merged into the positive one, all others into the negative one; empty to merge none.
    test_points
        Of generated data whose truth is known, how many points are drawn again, without noise, as test samples.
    """

    load: str
    target: str | None = None
    task: Task | None = None
    positive: tuple[str, ...] = ()
    scaling: Scaling | None = None
    weight: str | None = None
    test_points: int | None = None


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A model of a suite, with every setting that it is to be run in.

    Attributes
    ----------
    model, ensemble, scaling
        Name of the formulation; the ensemble that it mimics and how features are scaled, where given.
    variants, depths, starts
        Each makes experiments of its own; ``""`` is the default variant.
    parameters
        Hyperparameters of all its experiments.
    grid
        Values of hyperparameters that each make experiments of their own.
    by_data
        Hyperparameters that count for one data set, by its label.
    tune
        Where depth, up to the one given, and cost of a split are to be chosen: what
        :func:`~mipforest.tuning.run.tune_batch` is given, such as the share of ``validation`` samples.
    constraints
        What the trees have to satisfy, each as its ``to_dict`` returns it.
    """

    model: str
    ensemble: str | None = None
    scaling: Scaling | None = None
    variants: tuple[str, ...] = ("",)
    depths: tuple[int, ...]
    starts: tuple[str, ...] = ("default",)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    by_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tune: Mapping[str, Any] | None = None
    constraints: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A campaign as it was written.

    Attributes
    ----------
    name, summary, source
        What it is, and where its experiment comes from.
    data, models
        By label.
    seeds, solvers, time_limits
        Each makes experiments of its own; a time limit is in seconds, infinite for none.
    gap, threads, solver_options
        As for :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`; options by solver.
    split
        How test samples are put apart, or ``None``.
    published
        Published figures by label of a model, label of a data set, and name of a measure; for reports.
    text, sha256
        The file.
    """

    name: str
    summary: str = ""
    source: str = ""
    data: Mapping[str, DataEntry]
    models: Mapping[str, ModelEntry]
    seeds: tuple[int, ...] = (0,)
    solvers: tuple[str, ...] = ("auto",)
    time_limits: tuple[float, ...] = (60.0,)
    gap: float = DEFAULT_GAP
    threads: int | None = None
    solver_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    split: Split | None = None
    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    text: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class IncludedSuite:
    """A suite, and what a suite that includes it asks for.

    Attributes
    ----------
    path
        The file.
    only
        Labels of models or data, or solvers, that are run; all if empty.
    time_limit
        Seconds that count instead of its own limits; ``None``: its own.
    """

    path: Path
    only: tuple[str, ...] = ()
    time_limit: float | None = None


# ---------------------------------------------------------------------- reading


def read_suite(path: Path) -> Suite:
    """Read a suite that has models and data.

    Raises
    ------
    CampaignError
        If the file is no suite, or includes others: see :func:`included_suites`. Names of models and parameters are
        checked with the experiments.
    OSError
        If the file cannot be read.
    """
    text = _TOML.text(path)
    try:
        return parse_suite(text)
    except CampaignError as error:
        raise error.located(str(path)) from error


def included_suites(path: Path) -> tuple[IncludedSuite, ...]:
    """Return the suites with models that a file includes, in its order; the file itself if it includes none.

    Raises
    ------
    CampaignError
        If the file is malformed, or includes a file that is absent, that leads out of its folder, that includes it in
        turn, or that is there already.
    OSError
        If the file cannot be read.
    """
    return tuple(_included(path, ()))


def _included(path: Path, within: tuple[Path, ...]) -> list[IncludedSuite]:
    """Read the suites that a file includes, itself included by the files ``within``, outermost first."""
    text = _TOML.text(path)
    try:
        content = _TOML.tables(text)
        if "include" not in content:
            return [IncludedSuite(path=path)]
        _TOML.check_keys("the suite", content, _INCLUDING, required=("name", "include"))
        _check_label("the suite's name", content["name"])
        if not content["include"]:
            raise CampaignError("include is an empty list; name one suite at least")
        chain = (*within, path)
        found: dict[Path, IncludedSuite] = {}
        for value in content["include"]:
            entry = _include_entry(value)
            own = path.parent / entry["suite"]
            if not own.is_file():
                raise CampaignError(f"include names {entry['suite']!r:.80}, and there is no file {own}")
            if own.resolve() in [file.resolve() for file in chain]:
                files = " -> ".join(file.name for file in (*chain, own))
                raise CampaignError(
                    f"include names {entry['suite']!r:.80}, which includes this file: {files}"
                )
            for suite in _with_entry(_included(own, chain), own, entry):
                if suite.path.resolve() in found:
                    raise CampaignError(f"include has {suite.path.name!r:.80} twice")
                found[suite.path.resolve()] = suite
        return list(found.values())
    except CampaignError as error:
        raise error.located(str(path)) from error


def _with_entry(suites: list[IncludedSuite], path: Path, entry: Mapping[str, Any]) -> list[IncludedSuite]:
    """Ask for what an entry of ``include`` says of a file, which stands for these suites."""
    only = _TOML.several("include: only", entry["only"], str) if "only" in entry else ()
    limit = entry.get("time_limit")
    if suites == [IncludedSuite(path=path)]:
        return [IncludedSuite(path=path, only=only, time_limit=None if limit is None else float(limit))]
    if only or limit is not None:
        raise CampaignError(
            f"include: {entry['suite']!r:.80} includes other suites, so it takes no only and no time_limit; "
            "name those suites here"
        )
    return suites


def _include_entry(value: Any) -> dict[str, Any]:
    """Read an entry of ``include``: the name of a file, or a table with that and what to run of it."""
    entry: dict[str, Any] = {"suite": value} if isinstance(value, str) else value
    _TOML.check_keys("an entry of include", entry, _INCLUDED, required=("suite",))
    _check_place("include", "suite", entry["suite"], "of the suite")
    if "time_limit" in entry:
        try:
            SolveSettings(time_limit=entry["time_limit"])
        except NotAllowed as error:
            raise CampaignError(f"include: {entry['suite']}: {error}") from error
    return dict(entry)


def parse_suite(text: str) -> Suite:
    """Read the text of a suite.

    Raises
    ------
    CampaignError
        If it is no suite.
    """
    content = _TOML.tables(text)
    if "include" in content:
        raise CampaignError(
            "it includes other suites, and has no models of its own; 'mipforest campaign run' and "
            "mipforest.campaigns.campaigns() take it"
        )
    _TOML.check_keys("the suite", content, _SUITE, required=("name", "data", "models"))
    _check_label("the suite's name", content["name"])
    data = {label: _data(label, entry) for label, entry in content["data"].items()}
    models = {label: _model(label, entry, data) for label, entry in content["models"].items()}
    if not data or not models:
        raise CampaignError("there must be one [data.LABEL] and one [models.LABEL] at least")
    lists: dict[str, Any] = {
        key: _TOML.several(key, content[key], kind)
        for key, kind in (("seeds", int), ("solvers", str), ("time_limits", float))
        if key in content
    }
    _check_settings(lists, content)
    plain: dict[str, Any] = {
        key: content[key] for key in ("name", "summary", "source", "threads") if key in content
    }
    options = content.get("solver_options", {})
    for solver, own in options.items():
        _check_options(f"solver_options.{solver}", own)
    return Suite(
        **plain,
        **lists,
        gap=float(content.get("gap", DEFAULT_GAP)),
        solver_options=options,
        split=_split(content["split"]) if "split" in content else None,
        data=data,
        models=models,
        published=_published(content.get("published", {}), models, data),
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def _check_settings(lists: Mapping[str, tuple[Any, ...]], content: Mapping[str, Any]) -> None:
    try:
        SolveSettings(**{key: content[key] for key in ("gap", "threads") if key in content})
        for seed in lists.get("seeds", ()):
            SolveSettings(seed=seed)
        for limit in lists.get("time_limits", ()):
            SolveSettings(time_limit=limit)
    except NotAllowed as error:
        raise CampaignError(str(error)) from error


def _check_options(where: str, own: Any) -> None:
    """Refuse options that are no plain values, or name a file: a suite may come from anyone.

    Solvers write and read whatever file their options name, with the rights of who runs the suite.
    """
    _TOML.check_type(where, own, dict)
    for name, value in own.items():
        if not isinstance(value, bool | int | float | str):
            raise CampaignError(f"{where}: {name} is {value!r:.60}; give a number, a text, true or false")
        if _FILE_OPTION.search(name) or (isinstance(value, str) and re.search(r"[/\\]", value)):
            raise CampaignError(
                f"{where}: {name} = {value!r:.60} names a file, which a suite may not: it would write or read "
                "anywhere; leave it out, and pass it to 'mipforest solve --solver-option' where you need the file"
            )
    try:
        SolveSettings(solver_options=own)
    except NotAllowed as error:
        raise CampaignError(f"{where}: {error}") from error


def _check_label(what: str, label: str) -> None:
    if not _LABEL.fullmatch(label):
        raise CampaignError(
            f"{what} is {label!r:.80}; take letters, digits and _ . + -, at most 64, a letter or digit first"
        )


def _choice(where: str, table: Mapping[str, Any], key: str, known: tuple[str, ...]) -> None:
    if key in table and table[key] not in known:
        hint = did_you_mean(table[key], known)
        raise CampaignError(f"{where}: {key} is {table[key]!r:.60}{hint}; it is one of {', '.join(known)}")


def _split(table: Mapping[str, Any]) -> Split:
    _TOML.check_keys("[split]", table, _SPLIT, required=("test_size",))
    _choice("[split]", table, "stratify", STRATIFY)
    if not 0 < table["test_size"] < 1:
        raise CampaignError(f"[split]: test_size is {table['test_size']}; give a share between 0 and 1")
    if table.get("seed", 0) < 0:
        raise CampaignError(f"[split]: seed is {table['seed']}; it must be 0 or more")
    return Split(**dict(table))


def _data(label: str, table: Any) -> DataEntry:
    where = f"[data.{label}]"
    _check_label("a label of data", label)
    _TOML.check_keys(where, table, _DATA, required=("load",))
    _choice(where, table, "task", get_args(Task))
    _choice(where, table, "scaling", get_args(Scaling))
    if not table["load"].startswith(("openml:", "synthetic:")) or table["load"].endswith(SUFFIXES):
        _check_place(where, "load", table["load"], "of data")
    if "test_points" in table and table["load"].split(",")[0] not in (TREE, TREATMENTS):
        raise CampaignError(
            f"{where}: test_points are drawn from a known tree or truth: {TREE}, {TREATMENTS}"
        )
    if table.get("test_points", 1) < 1:
        raise CampaignError(f"{where}: test_points is {table['test_points']}; give 1 or more")
    for name in table.get("positive", ()):
        _TOML.check_type(f"{where}: a class in positive", name, str)
    return DataEntry(**table | {"positive": tuple(table.get("positive", ()))})


def _check_place(where: str, key: str, file: str, folder: str) -> None:
    """Refuse a file outside a folder."""
    parts = PurePath(file.replace("\\", "/")).parts
    if PurePath(file).is_absolute() or ".." in parts or file.startswith("~") or "\0" in file:
        raise CampaignError(
            f"{where}: {key} is {file!r:.80}, which leads out of the folder {folder}; name a file in that folder"
        )


def _model(label: str, table: Any, data: Mapping[str, DataEntry]) -> ModelEntry:
    where = f"[models.{label}]"
    _check_label("a label of models", label)
    _TOML.check_keys(where, table, _MODEL, required=("model", "depth"))
    _choice(where, table, "scaling", get_args(Scaling))
    grid = table.get("grid", {})
    for name, values in grid.items():
        _TOML.check_type(f"{where}: grid.{name}", values, list)
        if not values:
            raise CampaignError(f"{where}: grid.{name} is an empty list; give one value at least")
    return ModelEntry(
        model=table["model"],
        ensemble=table.get("ensemble"),
        scaling=table.get("scaling"),
        variants=_TOML.several(f"{where}: variant", table.get("variant", ""), str),
        depths=_TOML.several(f"{where}: depth", table["depth"], int),
        starts=_TOML.several(f"{where}: start", table.get("start", "default"), str),
        parameters=_TOML.parameters(where, table.get("parameters", {})),
        grid={
            name: tuple(_TOML.parameter(f"{where}: grid.{name}", value) for value in values)
            for name, values in grid.items()
        },
        by_data=_by_data(where, table.get("by_data", {}), data),
        tune=_tune(where, table["tune"]) if "tune" in table else None,
        constraints=_constraints(where, table),
    )


def _constraints(where: str, table: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Read the constraints of a model, which are written as in a file of ``mipforest solve --constraints``."""
    given = table.get("constraints", {})
    if given and "tune" in table:
        raise CampaignError(f"{where}: a tuning takes no constraints; leave out one of tune and constraints")
    try:
        return tuple(own.to_dict() for own in constraints_of(given, files=False))
    except DataError as error:
        raise error.located(f"{where}: constraints", CampaignError) from error


def _tune(where: str, table: Mapping[str, Any]) -> dict[str, Any]:
    _TOML.check_keys(f"{where}: tune", table, _TUNE)
    _choice(f"{where}: tune", table, "trees", get_args(Trees))
    _choice(f"{where}: tune", table, "midpoint", get_args(Midpoint))
    for name, values in table.get("grid", {}).items():
        _TOML.check_type(f"{where}: tune.grid.{name}", values, list)
    return dict(table)


def _by_data(where: str, table: Mapping[str, Any], data: Mapping[str, DataEntry]) -> dict[str, Any]:
    for label, own in table.items():
        if label not in data:
            raise CampaignError(f"{where}: by_data names {label!r:.60}, no data{did_you_mean(label, data)}")
        _TOML.check_type(f"{where}: by_data.{label}", own, dict)
    return {label: _TOML.parameters(f"{where}: by_data.{label}", own) for label, own in table.items()}


def _published(
    tables: Mapping[str, Any], models: Mapping[str, Any], data: Mapping[str, Any]
) -> dict[str, dict[str, dict[str, float]]]:
    for model, by_data in tables.items():
        if model not in models:
            raise CampaignError(f"[published.{model}] names no model{did_you_mean(model, models)}")
        _TOML.check_type(f"[published.{model}]", by_data, dict)
        for label, figures in by_data.items():
            where = f"[published.{model}.{label}]"
            if label not in data:
                raise CampaignError(f"{where} names no data{did_you_mean(label, data)}")
            _TOML.check_type(where, figures, dict)
            for name, value in figures.items():
                _TOML.check_type(f"{where}: {name}", value, float)
    return dict(tables)
