"""An instance on disk: the model, a start, and a file that says what they are."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mipforest.files import atomic_write
from mipforest.files.points import write_point
from mipforest.files.suffixes import stem
from mipforest.model.statistics import statistics
from mipforest.problem.problem import Problem
from mipforest.runs.data_source import DataSource
from mipforest.runs.metadata import (
    ENSEMBLE,
    FORMAT,
    VERSION,
    metadata_path,
    sha256_of_file,
    sha256_of_model,
)
from mipforest.trees import Tree


def instance_files(path: Path) -> tuple[Path, Path]:
    """Give the names of the start and of the metadata that stand next to an instance.

    Raises
    ------
    ValueError
        If the instance's name does not end in ``.mps`` or ``.lp``, with or without ``.gz``.
    """
    return path.with_name(f"{stem(path)}.mst"), metadata_path(path)


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
        ``*.mps`` or ``*.lp``, compressed if ``.gz`` follows; the other two are named after it.
    source
        Where the data came from.
    start
        As for :meth:`Problem.start_tree <mipforest.problem.problem.Problem.start_tree>`.
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
        If the name has another ending, or the model has a part that the format does not tell.
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
        write_point(form, x, start_path, comments=comments, model=path)
    formulation, data = problem.formulation, problem.data
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
        "ensemble": ensemble if isinstance(ensemble := getattr(formulation, ENSEMBLE, None), str) else None,
        "data": {"name": data.name, "n": data.n, "p": data.p, "sha256": data.sha256},
        "data_source": source.to_dict(),
        "sense": "maximize" if form.maximize else "minimize",
        "statistics": asdict(statistics(form)),
        "start": None if objective is None else start_path.name,
        "start_objective": objective,
        "warnings": [*problem.prepared.notes, *warnings],
    }
    with atomic_write(metadata_path, "w") as file:
        file.write(json.dumps(metadata, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
    return metadata
