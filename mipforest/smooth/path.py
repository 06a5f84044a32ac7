"""Sparsity paths: a grid of both penalties, each problem started from the solutions of the one before; resumable."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mipforest.data import Dataset
from mipforest.errors import ParameterError
from mipforest.smooth.formulation import SmoothFormulation, SmoothInstance
from mipforest.smooth.model import Point
from mipforest.smooth.search import descend
from mipforest.trees import Topology, class_measures, regression_measures

#: Exponents r of the papers' grids, whose penalties are powers 2^r, divided by how many coefficients they are for.
EXPONENTS = range(-12, 4)


def penalty_grid(formulation: SmoothFormulation, p: int, depth: int) -> tuple[list[float], list[float]]:
    """Return the papers' grids of ``lam_local`` and ``lam_global``: 0 and 2^r, r = -12..3, divided.

    Local penalties are divided by the number of coefficients, p for each split and linear leaf, global ones by p
    (Blanquero et al. 2020, section 3.2; 2022, section 4).

    Parameters
    ----------
    formulation
        ``s-orct`` or ``s-orrt``.
    p, depth
        Features, and levels of branch nodes.
    """
    nodes = 2**depth - 1 + (2**depth if formulation.task == "regression" else 0)
    powers = [2.0**r for r in EXPONENTS]
    return [0.0, *(power / (p * nodes) for power in powers)], [0.0, *(power / p for power in powers)]


def sparsity_path(
    formulation: SmoothFormulation,
    train: Dataset,
    depth: int,
    *,
    test: Dataset | None = None,
    local: Sequence[float] = (0.0,),
    glob: Sequence[float] = (0.0,),
    seed: int = 0,
    store: Path | None = None,
) -> pd.DataFrame:
    """Solve a formulation for every pair of penalties, warm-started along the grid.

    The first pair starts from ``n_starts`` random points. For one local penalty, global ones grow; every problem starts
    from the solutions of the one before, the first for the next local penalty from those of the first before.

    Parameters
    ----------
    formulation
        One with ``lam_local`` and ``lam_global``; its own values do not count.
    train, depth, seed
        Training samples (scaled), levels of branch nodes, seed of the starts.
    test
        Samples not seen, for ``test`` in the table.
    local, glob
        Ascending penalties; :func:`penalty_grid` gives those of the papers.
    store
        File of one line per pair, to which what is solved is added at once; what stands in it is not solved again.

    Returns
    -------
    DataFrame
        One row per pair: ``lam_local``, ``lam_global``, ``objective``, ``local_sparsity``, ``global_sparsity``, and the
        accuracy (or R2) ``train`` and ``test``.

    Raises
    ------
    ParameterError
        If the formulation has no such penalties, they do not ascend, or the file is of another path.
    """
    if not hasattr(formulation, "lam_local"):
        raise ParameterError(f"{formulation.name} has no penalties; take s-orct or s-orrt")
    for name, values in (("local", local), ("glob", glob)):
        if not len(values) or list(values) != sorted(values):
            raise ParameterError(f"{name} must hold ascending penalties, got {list(values)!r:.80}")
    key = [formulation.name, train.sha256, depth, seed, list(local), list(glob)]
    known = _read(store, key)
    rows, n_known = [], len(known)
    for record in _solved(formulation, train, test, depth, (local, glob), seed, known):
        rows.append({name: value for name, value in record.items() if name != "points"})
        if store is not None and len(rows) > n_known:
            with store.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, **record}) + "\n")
    return pd.DataFrame(rows)


def _read(store: Path | None, key: list[Any]) -> list[dict[str, Any]]:
    """Read what is solved; a last line that was not written whole does not count."""
    found: list[dict[str, Any]] = []
    if store is None or not store.exists():
        return found
    whole = store.read_text(encoding="utf-8").rpartition("\n")[0]
    for line in filter(None, whole.split("\n")):
        record = json.loads(line)
        if record.pop("key", None) != key:
            raise ParameterError(
                f"{store} is of another path (other data, seed or penalties); name another file"
            )
        found.append(record)
    store.write_text(whole + "\n" if whole else "", encoding="utf-8")
    return found


def _solved(
    formulation: SmoothFormulation,
    train: Dataset,
    test: Dataset | None,
    depth: int,
    grid: tuple[Sequence[float], Sequence[float]],
    seed: int,
    known: list[dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    first: list[Point] = []
    for lam_local in grid[0]:
        points = first
        for lam_global in grid[1]:
            penalties = {"lam_local": lam_local, "lam_global": lam_global}
            if known:
                record = known.pop(0)
                points = [
                    {name: np.array(part) for name, part in point.items()} for point in record["points"]
                ]
            else:
                own: Any = replace(formulation, **penalties)  # type: ignore[arg-type]
                instance = own.bind(train, Topology(depth))
                points = _descended(own, instance, points, seed)
                tree = own.tree_of(points[0], instance)
                scores = {
                    "objective": instance.smooth.objective(points[0]),
                    **own.report(tree, tree, instance),
                }
                scores["train"] = _score(tree, train)
                if test is not None:
                    scores["test"] = _score(tree, test)
                lists = [{name: part.tolist() for name, part in point.items()} for point in points]
                record = {**penalties, **scores, "points": lists}
            first = points if lam_global == grid[1][0] else first
            yield record


def _descended(
    formulation: SmoothFormulation, instance: SmoothInstance, points: list[Point], seed: int
) -> list[Point]:
    """Return local optima, the best first: from the points before, or from random ones."""
    model = instance.smooth
    if not points:
        rng = np.random.default_rng(seed)
        points = []
        for k in range(formulation.n_starts):
            point = model.random_point(rng)
            stages = formulation.stages_of(k)
            for level in reversed(range(stages if stages > 1 else 0)):
                gentle = model.balanced().without_penalties().at(model.gamma / 2**level)
                point = descend(gentle, point, lambda: False)
            points.append(point)
    found = [descend(model, point, lambda: False) for point in points]
    return sorted(found, key=model.objective)


def _score(tree: Any, data: Dataset) -> float:
    """Return the accuracy, or R2, for scaled samples."""
    predicted = np.asarray(tree.predict(data.X))
    if data.task == "classification":
        return class_measures(data.y, predicted, data.weights).accuracy
    return regression_measures(np.asarray(data.y, dtype=np.float64), predicted, data.weights).r2
