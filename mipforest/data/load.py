"""One name for every source of data."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mipforest.data.bundled import BUNDLED, load_bundled
from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.errors import DataError, did_you_mean
from mipforest.data.files import SUFFIXES, read_file
from mipforest.data.openml import load_openml
from mipforest.data.synthetic import load_synthetic
from mipforest.data.table import Missing
from mipforest.data.target import Task

#: The target column of a file if none is named.
DEFAULT_TARGET = "target"


class CatalogueEntry(NamedTuple):
    """A data set that :func:`load` gives without a file or network; ``classes`` is 0 for a regression."""

    name: str
    task: Task
    n: int
    p: int
    classes: int
    description: str


def catalogue() -> list[CatalogueEntry]:
    """List the data sets that need neither a file nor a network."""
    bundled = [
        CatalogueEntry(name, entry.task, entry.n, entry.p, entry.n_classes, entry.description)
        for name, entry in sorted(BUNDLED.items())
    ]
    return [
        *bundled,
        CatalogueEntry(
            "synthetic:4-partitions",
            "classification",
            108,
            2,
            2,
            "separable by a tree of depth 2 (MARGOT paper)",
        ),
        CatalogueEntry(
            "synthetic:6-partitions",
            "classification",
            96,
            2,
            2,
            "separable by a tree of depth 3 (MARGOT paper)",
        ),
        CatalogueEntry(
            "synthetic:tree",
            "classification",
            1000,
            5,
            2,
            "random ground-truth tree (Dunn); options: depth= n= p= classes= density= ...",
        ),
    ]


def load(
    spec: str | Path,
    *,
    target: str | None = None,
    seed: int = 0,
    scaling: Scaling = "minmax",
    task: Task | None = None,
    missing: Missing = "error",
) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    spec
        A bundled name (``iris``; see :func:`catalogue`), ``synthetic:...``, ``openml:NAME``,
        ``openml:NAME@VERSION``, ``openml:ID``, or the path of a ``.csv``, ``.csv.gz`` or ``.parquet`` file.
        A bundled name comes before a file.
    target
        Column to predict, for a file (default: ``target``) or an OpenML data set (default: its own).
    seed
        Seed of a generated data set whose name gives none.
    scaling
        ``"minmax"``, ``"standard"`` or ``"none"``.
    task
        ``"classification"``, ``"regression"``, or ``None`` to infer it
        (see :func:`mipforest.data.target.read_target`).
    missing
        Rows that lack a value: ``"error"`` refuses them, ``"drop"`` drops them.

    Raises
    ------
    DataError
        If nothing is found under this name or the data cannot be used.
    """
    name = str(spec)
    kind, colon, rest = name.partition(":")
    if colon and kind == "openml":
        return load_openml(rest, target=target, task=task, scaling=scaling, missing=missing)
    if name not in BUNDLED and not (colon and kind == "synthetic"):
        return _load_file(name, target or DEFAULT_TARGET, scaling, task, missing)
    if target is not None:
        raise DataError(f"{name} has a fixed target, it cannot be {target!r}; leave the target out")
    if name in BUNDLED:
        return load_bundled(name, task=task, scaling=scaling)
    data = load_synthetic(rest, seed=seed, scaling=scaling)
    if task not in (None, data.task):
        raise DataError(
            f"{name} is a {data.task}, not a {task}; for a regression write synthetic:tree,task=regression"
        )
    return data


def _load_file(name: str, target: str, scaling: Scaling, task: Task | None, missing: Missing) -> Dataset:
    path = Path(name).expanduser()
    if not path.exists() and path.name == name and not name.endswith(SUFFIXES):
        known = [entry.name for entry in catalogue()]
        raise DataError(
            f"no data set is called {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}, "
            f"openml:NAME, and files ending in {', '.join(SUFFIXES)}"
        )
    frame = read_file(path)
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    try:
        return Dataset.from_frame(frame, target, name=stem, task=task, scaling=scaling, missing=missing)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
