"""Scores of two samples of instances: whether they are valid, alike in structure, and how hard.

These are three of the four views of *GenBench-MILP: a benchmark suite for MILP instance generation* (2025); the fourth
one looks into a commercial solver. The statistics of structure are those of Geng, Li, Wang, Li, Zhang and Wu, *A deep
instance generative framework for MILP solvers under limited data availability* (NeurIPS 2023), but for clustering and
modularity of the graph, and with sizes beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from mipforest.arrays import FloatArray
from mipforest.files import read_model
from mipforest.instances.library import Entry, InstanceSpec, Library, SuiteError
from mipforest.instances.results import Run, read_results
from mipforest.model import MatrixForm
from mipforest.model.matrix import statistics
from mipforest.settings import FEASIBILITY_TOLERANCE

#: Bins of a statistic's histogram, from its least to its greatest value in both samples.
BINS = 5

#: Divisions of all instances at random that a divergence is compared with.
DIVISIONS = 200

#: What is compared: sizes, density, degrees in the graph of variables and constraints, coefficients, right-hand sides.
STATISTICS = (
    "columns",
    "binary",
    "rows",
    "density",
    "variable_degree_mean",
    "variable_degree_std",
    "row_degree_mean",
    "row_degree_std",
    "coefficient_mean",
    "coefficient_std",
    "side_mean",
    "side_std",
)


@dataclass(frozen=True, kw_only=True)
class Validity:
    """What is known of the instances of a sample.

    Attributes
    ----------
    instances
        How many there are.
    feasible
        How many have a known solution that holds within the tolerance of their solvers.
    bounded
        How many have a proven bound.
    solved
        How many have a proven optimum.
    """

    instances: int
    feasible: int
    bounded: int
    solved: int


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """How a statistic differs between two samples.

    Attributes
    ----------
    statistic
        One of :data:`STATISTICS`.
    divergence
        Jensen-Shannon divergence of both histograms, 0 (equal) to 1 (no bin in common).
    by_chance
        Its mean over random divisions of all instances into parts of the same sizes: what no difference looks like.
    """

    statistic: str
    divergence: float
    by_chance: float


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """What a solver took for a sample.

    Attributes
    ----------
    solver
        Which one.
    runs, solved
        How many runs stand in ``results.csv``, and how many of them ended with an optimum.
    seconds, nodes
        Medians of wall seconds and branch-and-bound nodes, of all runs.
    """

    solver: str
    runs: int
    solved: int
    seconds: float
    nodes: float


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of two samples.

    Attributes
    ----------
    validity
        Of each sample.
    divergences
        Between both, statistic by statistic.
    hardness
        Of each sample, solver by solver.
    """

    validity: tuple[Validity, Validity]
    divergences: tuple[Divergence, ...]
    hardness: tuple[tuple[Hardness, ...], tuple[Hardness, ...]]

    @property
    def similarity(self) -> float:
        """One minus the mean divergence, 0 to 1."""
        return 1.0 - float(np.mean([own.divergence for own in self.divergences]))

    @property
    def similarity_by_chance(self) -> float:
        """What :attr:`similarity` is for random divisions of all instances, in the mean."""
        return 1.0 - float(np.mean([own.by_chance for own in self.divergences]))


def scores(first: Library, second: Library, *, seed: int = 0) -> Scores:
    """Compare two libraries: the training and the test part of a sample, two levels, or two distributions.

    Parameters
    ----------
    first, second
        The libraries, with one instance in the catalogue and its model's file at least.
    seed
        Seed of the random divisions.

    Raises
    ------
    SuiteError
        If a library has no instance that was built, or a model's file is not there.
    """
    both = (first, second)
    built = [_built(library) for library in both]
    samples = [
        np.array([statistics_of(_form(library, spec)) for spec, _ in own])
        for library, own in zip(both, built, strict=True)
    ]
    return Scores(
        validity=(_validity([entry for _, entry in built[0]]), _validity([entry for _, entry in built[1]])),
        divergences=_divergences(samples[0], samples[1], np.random.default_rng(seed)),
        hardness=(_hardness(read_results(first.results_path)), _hardness(read_results(second.results_path))),
    )


def statistics_of(form: MatrixForm) -> tuple[float, ...]:
    """Return the numbers of :data:`STATISTICS` of a model; sides that are infinite count nowhere."""
    A = form.A
    sides = np.concatenate([form.row_lower, form.row_upper[form.row_upper != form.row_lower]])
    sides = sides[np.isfinite(sides)]
    degrees = (np.bincount(A.indices, minlength=form.n_columns), np.diff(A.indptr))
    spread = [number for values in (*degrees, A.data, sides) for number in _mean_and_std(values)]
    own = statistics(form)
    return (
        own.columns,
        own.binary / max(1, own.columns),
        own.rows,
        A.nnz / max(1, own.rows * own.columns),
        *spread,
    )


def _mean_and_std(values: npt.NDArray[Any]) -> tuple[float, float]:
    return (float(values.mean()), float(values.std())) if len(values) else (0.0, 0.0)


def _built(library: Library) -> list[tuple[InstanceSpec, Entry]]:
    known = library.entries()
    built = [(spec, known[spec.name]) for spec in library.suite.values() if spec.name in known]
    if not built:
        raise SuiteError(f"{library.folder} has no instance that was built; generate or build it first")
    return built


def _form(library: Library, spec: InstanceSpec) -> MatrixForm:
    path = library.model_path(spec)
    if not path.is_file():
        raise SuiteError(f"the model of {spec.name} is not at {path}; run: mipforest instances build")
    return read_model(path)


def _validity(entries: Sequence[Entry]) -> Validity:
    allowed = [FEASIBILITY_TOLERANCE if math.isnan(own.tolerance) else own.tolerance for own in entries]
    return Validity(
        instances=len(entries),
        feasible=sum(own.violation <= most for own, most in zip(entries, allowed, strict=True)),
        bounded=sum(math.isfinite(own.bound) for own in entries),
        solved=sum(own.status == "solved" for own in entries),
    )


def _divergences(first: FloatArray, second: FloatArray, rng: np.random.Generator) -> tuple[Divergence, ...]:
    """Compare the columns of two samples (n, S) and (m, S)."""
    both = np.concatenate([first, second])
    binned = np.column_stack([_bins(values) for values in both.T])
    divisions = [rng.permutation(len(both)) for _ in range(DIVISIONS)]
    return tuple(
        Divergence(
            statistic=name,
            divergence=_divergence(own, len(first)),
            by_chance=float(np.mean([_divergence(own[order], len(first)) for order in divisions])),
        )
        for name, own in zip(STATISTICS, binned.T, strict=True)
    )


def _bins(values: FloatArray) -> FloatArray:
    """Return (n,) the bin of each value."""
    low, high = values.min(), values.max()
    if low == high:
        return np.zeros(len(values))
    return np.asarray(np.minimum(np.floor((values - low) / (high - low) * BINS), BINS - 1))


def _divergence(bins: FloatArray, n_first: int) -> float:
    """Return the Jensen-Shannon divergence of the bins of the first sample and of the others."""
    whole = bins.astype(np.int64)
    shares = [np.bincount(own, minlength=BINS) / len(own) for own in (whole[:n_first], whole[n_first:])]
    middle = (shares[0] + shares[1]) / 2
    # Rounding may leave less than 0 of two equal histograms.
    return max(0.0, float(np.mean([rel_entr(own, middle).sum() for own in shares])) / math.log(2))


def _hardness(runs: Sequence[Run]) -> tuple[Hardness, ...]:
    by_solver: dict[str, list[Run]] = {}
    for run in runs:
        by_solver.setdefault(run.solver, []).append(run)
    return tuple(
        Hardness(
            solver=solver,
            runs=len(own),
            solved=sum(run.status == "optimal" for run in own),
            seconds=float(np.median([run.seconds for run in own])),
            nodes=float(np.median([run.nodes for run in own])),
        )
        for solver, own in sorted(by_solver.items())
    )
