"""An instance on disk: the model, a start, and a file that says what they are."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mipforest.files import atomic_write
from mipforest.files.mps_lines import is_compressed
from mipforest.files.points import write_point
from mipforest.model.statistics import statistics
from mipforest.parameters import parameters_of
from mipforest.problem import Problem
from mipforest.runs.data_source import DataSource
from mipforest.trees import Tree

FORMAT = "mipforest-instance"
VERSION = 1


def instance_files(path: Path) -> tuple[Path, Path]:
    """Give the names of the start and of the metadata that stand next to an instance.

    Raises
    ------
    ValueError
        If the instance's name ends neither in ``.mps`` nor in ``.mps.gz``.
    """
    stem = path.name[: -len(".mps.gz" if is_compressed(path) else ".mps")]
    return path.with_name(f"{stem}.mst"), path.with_name(f"{stem}.json")


def write_instance(
    problem: Problem, path: Path, source: DataSource, *, start: str | Tree | None, seed: int, version: str
) -> dict[str, Any]:
    """Write a model, its start (``.mst``) and its metadata (``.json``).

    Each file appears whole or not at all. The metadata come last: where they are, the other two are complete.

    Parameters
    ----------
    problem
        What to write.
    path
        ``*.mps`` or ``*.mps.gz``; the other two are named after it.
    source
        Where the data came from.
    start
        As for :meth:`Problem.start_tree <mipforest.problem.Problem.start_tree>`.
    seed
        Seed of starts that draw.
    version
        Version of mipforest.

    Returns
    -------
    dict
        The metadata.

    Raises
    ------
    ValueError
        If the name has another ending, or the model has a part that no MPS file tells.
    ParameterError, StartError
        If the start is unknown or does not fit.
    OSError
        If a file cannot be written.
    """
    start_path, metadata_path = instance_files(path)
    form = problem.model.matrix()
    tree = problem.start_tree(start, seed=seed)
    values, warnings = (None, []) if tree is None else problem.start_values(tree)
    problem.write(path)
    objective = None
    if values is not None:
        x = form.to_point(values)
        objective = form.objective(x)
        comments = (f"start of {form.name}", f"objective value = {objective!r}")
        write_point(form, x, start_path, comments=comments)
    formulation, data = problem.formulation, problem.data
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "mipforest_version": version,
        "instance": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "model": formulation.name,
        "variant": formulation.variant,
        "depth": problem.topology.depth,
        "parameters": {name: getattr(formulation, name) for name in parameters_of(type(formulation))},
        "data": {"name": data.name, "n": data.n, "p": data.p, "sha256": data.sha256},
        "data_source": source.to_dict(),
        "sense": "maximize" if form.maximize else "minimize",
        "statistics": asdict(statistics(form)),
        "start": None if objective is None else start_path.name,
        "start_objective": objective,
        "warnings": warnings,
    }
    with atomic_write(metadata_path, "w") as file:
        file.write(json.dumps(metadata, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
    return metadata
