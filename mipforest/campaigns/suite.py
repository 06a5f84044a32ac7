"""What a campaign is to run: which models meet which data, under which solvers, seeds and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mipforest.data.encoding import Scaling
from mipforest.data.target import Task

#: What the shares of the classes are kept for, when data are split.
STRATIFY = ("labels", "classes", "none")


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
        Seed of the shuffle; that of the cell if ``None``.
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
    target, task, scaling
        As for :func:`mipforest.data.load`; the model's own scaling if ``None``.
    positive
        Classes that are merged into the positive one, all others into the negative one; empty to merge none.
    """

    load: str
    target: str | None = None
    task: Task | None = None
    positive: tuple[str, ...] = ()
    scaling: Scaling | None = None


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A model of a suite, with every setting that it is to be run in.

    Attributes
    ----------
    model, ensemble, scaling
        Name of the formulation; the ensemble that it mimics and how features are scaled, where given.
    variants, depths, starts
        Each makes cells of its own; ``""`` is the default variant.
    parameters
        Hyperparameters of all its cells.
    grid
        Values of hyperparameters that each make cells of their own.
    by_data
        Hyperparameters that count for one data set, by its label.
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
        Each makes cells of its own; a time limit is in seconds, infinite for none.
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
    solvers: tuple[str, ...] = ("highs",)
    time_limits: tuple[float, ...] = (60.0,)
    gap: float = 1e-4
    threads: int | None = None
    solver_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    split: Split | None = None
    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    text: str
    sha256: str
