"""An instance on disk: the model, a start, and metadata, which are all it takes to build the model again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mipforest.atomic import atomic_write
from mipforest.errors import DataError
from mipforest.files import write_model
from mipforest.files.mps import mps_text
from mipforest.files.solutions import write_point
from mipforest.files.streams import stem
from mipforest.model.matrix import MatrixForm, statistics
from mipforest.problem.constraints import Constraint, constraint_of
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ensemble_parameter_of, plain_parameters_of
from mipforest.problem.problem import Problem
from mipforest.problem.proofs import needed_tolerance
from mipforest.problem.registry import get_formulation, make_formulation
from mipforest.runs.data_source import DataSource
from mipforest.runs.folder import RunError
from mipforest.runs.text_files import JsonFileError, json_text, read_json_object
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.base import get_solver
from mipforest.solvers.convexity import QUADRATIC_SOLVER
from mipforest.solvers.outer_approximation import first_tangents
from mipforest.trees import Predictor, Topology

FORMAT = "mipforest-instance"
VERSION = 1

#: What every metadata file holds, apart from a data source.
_TYPES: dict[str, type] = {
    "instance": str,
    "sha256": str,
    "model_sha256": str,
    "mipforest_version": str,
    "model": str,
    "variant": str,
    "depth": int,
    "parameters": dict,
    "data": dict,
    "data_source": dict,
}


def instance_files(path: Path) -> tuple[Path, Path]:
    """Return the names of the start and of the metadata that stand next to an instance.

    Raises
    ------
    ValueError
        If the instance's name does not end in ``.mps``, ``.lp`` or ``.mof.json``, with or without ``.gz``.
    """
    return path.with_name(f"{stem(path)}.mst"), metadata_path(path)


def metadata_path(instance: Path) -> Path:
    """Return the name of the metadata that stand next to an instance.

    Raises
    ------
    ValueError
        If the instance's name has no suffix of a model.
    """
    return instance.with_name(f"{stem(instance)}.json")


def write_instance(
    problem: Problem,
    path: Path,
    source: DataSource,
    *,
    start: str | Predictor | None,
    seed: int,
    version: str,
    tangents: bool = False,
) -> dict[str, Any]:
    """Write a model, its start (``.mst``) and its metadata (``.json``).

    Each file appears whole or not at all. The metadata come last: where they are, the other two are complete.

    Parameters
    ----------
    problem
        What to write.
    path
        ``*.mps``, ``*.lp`` or ``*.mof.json``, compressed if ``.gz`` follows; the other two are named after it.
    source
        Where the data came from.
    start
        As for :meth:`Problem.start_tree <mipforest.problem.problem.Problem.start_tree>`.
    seed
        Seed of starts that draw.
    version
        Version of mipforest.
    tangents
        Whether to write tangents in place of a quadratic objective: a linear model for solvers that take no other. Its
        objective lies below, by a ninth of a square at most where a variable stands alone and has bounds.

    Returns
    -------
    dict
        The metadata.

    Raises
    ------
    ValueError
        If the name has another ending, or the model has a part that the format cannot express.
    ParameterError, StartError
        If the start is unknown or does not fit.
    OSError
        If a file cannot be written.
    """
    problem.require_rows("a file of rows")
    start_path, description = instance_files(path)
    form = problem.model.matrix()
    tree = problem.start_tree(start, seed=seed)
    values, warnings = (
        (None, []) if tree is None else problem.start_values(tree, may_search=start == "default", seed=seed)
    )
    x = None if values is None else form.to_point(values)
    objective = None if x is None else form.objective(x)
    written = form
    if tangents:
        found = first_tangents(form, get_solver(QUADRATIC_SOLVER), x)
        written, x = found.linear_form(), None if x is None else found.extended(x)
    write_model(written, path)
    if x is not None:
        comments = (f"start of {form.name}", f"objective value = {objective!r}")
        write_point(written, x, start_path, comments=comments, model=path)
    formulation, data, tolerance = problem.formulation, problem.data, needed_tolerance(problem)
    if tolerance is not None and tolerance < FEASIBILITY_TOLERANCE:
        warnings = [*warnings, _tolerance_warning(tolerance, formulation.gap_parameter)]
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "mipforest_version": version,
        "instance": path.name,
        "sha256": sha256_of_file(path),
        "model_sha256": sha256_of_model(form),
        "model": formulation.name,
        "variant": formulation.variant,
        "depth": problem.topology.depth,
        "parameters": formulation.parameters(),
        "ensemble": _ensemble_text(formulation),
        "data": {"name": data.name, "n": data.n, "p": data.p, "sha256": data.sha256},
        "data_source": source.to_dict(),
        "sense": "maximize" if form.maximize else "minimize",
        "statistics": asdict(statistics(written)),
        "tolerance": tolerance,
        "start": None if objective is None else start_path.name,
        "start_objective": objective,
        "warnings": [*problem.instance.notes, *warnings],
    } | ({"tangents": True} if tangents else {})
    if problem.constraints:
        metadata["constraints"] = [own.to_dict() for own in problem.constraints]
    with atomic_write(description, "w") as file:
        file.write(json_text(metadata))
    return metadata


def _tolerance_warning(tolerance: float, parameter: str) -> str:
    return (
        f"by big-Ms, tolerances above {tolerance:.1g} can be worth the whole gap {parameter} on a side, and an optimum "
        f"at the solvers' default of {FEASIBILITY_TOLERANCE:g} may be that of no tree: solve with finer ones, or take "
        f"a larger {parameter}"
    )


def _ensemble_text(formulation: object) -> str | None:
    """Return the text that names the ensemble to mimic; ``None`` if there is none or it was given as an object."""
    target = ensemble_parameter_of(type(formulation))
    value = None if target is None else getattr(formulation, target.name)
    return value if isinstance(value, str) else None


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """What is needed of an instance's metadata to build its model again; read from a file, and not trusted.

    Attributes
    ----------
    path
        The file.
    instance, sha256
        Name and checksum of the instance.
    model_sha256
        Checksum of the model's text as MPS.
    model, variant, depth, parameters
        The formulation.
    ensemble
        Text that names the ensemble to mimic, if the formulation has one and it was given as a text.
    source, data_sha256
        Where the data come from, and their checksum.
    version
        Version of mipforest that wrote the instance.
    tangents
        Whether it has tangents in place of the quadratic objective.
    constraints
        Constraints on the tree that its rows have.
    """

    path: Path
    instance: str
    sha256: str
    model_sha256: str
    model: str
    variant: str
    depth: int
    parameters: Mapping[str, Any]
    ensemble: str | None
    source: DataSource
    data_sha256: str
    version: str
    tangents: bool
    constraints: tuple[Constraint, ...] = ()

    def formulation(self, given: Mapping[str, Any], ensemble: str | None) -> Formulation:
        """Make the formulation; nothing that could name a file is taken from the metadata.

        Parameters
        ----------
        given
            Parameters that count instead of the recorded ones.
        ensemble
            Ensemble that counts instead of the recorded one.

        Raises
        ------
        UnknownFormulation, ParameterError
            If a name is unknown, or a value is not allowed.
        RunError
            If the ensemble, or a parameter that is free text, has to be given by the user.
        """
        cls = get_formulation(self.model)
        known, target = plain_parameters_of(cls), ensemble_parameter_of(cls)
        # Among the parameters, an ensemble is described; the text that names it has an entry of its own.
        recorded = {k: v for k, v in self.parameters.items() if target is None or k != target.name}
        unknown = sorted(recorded.keys() - known.keys())
        if unknown:
            raise RunError(
                f"{self.path}: {self.model} has no parameter {unknown[0]!r}; export the instance again"
            )
        for name in recorded.keys() - given.keys():
            if known[name].may_name_file(recorded[name]):
                raise RunError(
                    f"{self.path}: parameter {name} is a text that may name a file, which is not taken from "
                    f"metadata; if you trust it, give --param {name}={recorded[name]}"
                )
        if target is None and ensemble is not None:
            raise RunError(f"{self.model} mimics no ensemble; leave --ensemble out")
        if target is not None and not ensemble and target.may_name_file(self.ensemble):
            stated = "was given as an object" if self.ensemble is None else f"is {self.ensemble!r}"
            raise RunError(
                f"{self.path}: the ensemble {stated}, and loading a file can run code, so that no file is loaded "
                "because metadata say so; give the ensemble that you trust with --ensemble"
            )
        wanted = None if target is None else ensemble or self.ensemble
        return make_formulation(self.model, {**recorded, **given}, self.variant, ensemble=wanted)


def read_metadata(instance: Path) -> Metadata:
    """Read the metadata beside an instance, and check that they are of this file.

    Raises
    ------
    RunError
        If there are none, they are malformed, or the instance is another than the one they describe.
    ValueError
        If the instance's name has no suffix of a model.
    OSError
        If a file cannot be read.
    """
    path = metadata_path(instance)
    if not path.is_file():
        raise RunError(
            f"{instance} has no metadata: there is no file {path}; 'mipforest export' writes both, keep them together"
        )
    try:
        content = read_json_object(path)
    except JsonFileError as error:
        raise RunError(f"{error}; export the instance again") from error
    metadata = _metadata_of(path, content)
    if metadata.instance != instance.name:
        raise RunError(
            f"{path} describes {metadata.instance}, not {instance.name}; export the instance again"
        )
    if sha256_of_file(instance) != metadata.sha256:
        raise RunError(
            f"{instance} is not the file that {path} describes (other checksum): it was changed; "
            "export the instance again"
        )
    return metadata


def _metadata_of(path: Path, content: Mapping[str, Any]) -> Metadata:
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        found = f"format {content.get('format')!r}, version {content.get('version')!r}"
        raise RunError(f"{path} holds no metadata of an instance in a version known here ({found[:200]})")
    for key, kind in _TYPES.items():
        value = content.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise RunError(
                f"{path}: the entry {key!r} is absent or no {kind.__name__}; export the instance again"
            )
    try:
        Topology(content["depth"])
    except ValueError as error:
        raise RunError(f"{path}: {error}") from None
    checksum = content["data"].get("sha256")
    if not isinstance(checksum, str):
        raise RunError(f"{path}: the checksum of the data is absent; export the instance again")
    try:
        source = DataSource.from_dict(content["data_source"])
    except TypeError as error:
        raise RunError(f"{path}: the entry 'data_source' is malformed ({error})") from error
    try:
        constraints = tuple(constraint_of(own) for own in content.get("constraints", ()))
    except (DataError, TypeError) as error:
        raise RunError(f"{path}: the entry 'constraints' is malformed ({error})") from error
    ensemble = content.get("ensemble")
    return Metadata(
        path=path,
        source=source,
        data_sha256=checksum,
        ensemble=ensemble if isinstance(ensemble, str) else None,
        version=content["mipforest_version"],
        tangents=content.get("tangents") is True,
        constraints=constraints,
        **{key: content[key] for key in ("instance", "sha256", "model_sha256", "model", "variant")},
        **{key: content[key] for key in ("depth", "parameters")},
    )


def sha256_of_file(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_model(form: MatrixForm) -> str:
    """Return the checksum of a model: of its text as MPS, whatever format it was written in."""
    digest = hashlib.sha256()
    for text in mps_text(form):
        digest.update(text)
    return digest.hexdigest()
