"""Run one experiment, and keep its result with the machine and the versions that it was run with.

Where data are generated, the result also says how much of the tree behind them was found: see :func:`recovery`.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mipforest.arrays import FloatArray
from mipforest.campaigns.experiments import Experiment
from mipforest.campaigns.suite import TREATMENTS, DataEntry
from mipforest.data import Dataset, load
from mipforest.data.loading import SUFFIXES
from mipforest.data.synthetic import GroundTruth, ground_truth, treatment_experiment
from mipforest.data.treatments import policy_measures
from mipforest.errors import CampaignError, SolverError
from mipforest.problem.constraints import constraint_of
from mipforest.problem.result import Result
from mipforest.problem.tree_search import AUTO, searching
from mipforest.runs.instance import sha256_of_model
from mipforest.solvers.base import solver_classes
from mipforest.solvers.solution import Event, Progress, Status
from mipforest.trees import Tree
from mipforest.trees.reachable import ReachableNode, reachable_tree
from mipforest.tuning.run import tune_batch

#: Longest message of an error that is kept, in characters.
LONGEST_ERROR = 2000

#: Entries of a result that say more than numbers do.
_DETAILS = ("parameters", "bridges", "warnings", "doubts", "features_used", "max_violation", "proven_for")

#: Seed of test samples that are drawn from the tree behind generated data: none of a suite's, which draw the training
#: samples.
_TEST_SEED = 2**40

_CPU_INFO = Path("/proc/cpuinfo")

#: time, incumbent, bound and nodes of a moment of a solve
Moment = tuple[float, float | None, float | None, int]


@dataclass(frozen=True)
class ExperimentResult:
    """Result of an experiment, in the columns of :mod:`mipforest.campaigns.store`.

    Attributes
    ----------
    values
        Columns of table ``results``.
    measures
        Name and value of each measure: of predictions, and what the formulation measures and reports.
    events
        Incumbent and bound over time.
    """

    values: Mapping[str, Any]
    measures: Mapping[str, float | None] = field(default_factory=dict)
    events: tuple[Moment, ...] = ()

    @classmethod
    def of(
        cls,
        result: Result,
        whole_sha256: str,
        test: Dataset | None,
        *,
        wall_seconds: float,
        cpu_seconds: float,
    ) -> ExperimentResult:
        """Collect what is worth keeping of a result.

        Parameters
        ----------
        result
            The result.
        whole_sha256
            Checksum of the data before they were split.
        test
            Samples not seen in training, or ``None``.
        wall_seconds, cpu_seconds
            From loading the data to here, on the clock and of processors, those of solvers' own processes included.
        """
        found = result.to_dict(test)
        problem = result.problem
        form = problem.model.matrix()
        tree = result.tree
        columns = ("solver_version", "status", "verified", "objective", "bound", "gap", "nodes", "seconds")
        values = {
            **_circumstances("done"),
            **{name: found[name] for name in (*columns, "prepare_seconds", "build_seconds")},
            "data_sha256": whole_sha256,
            "train_sha256": problem.data.sha256,
            "model_sha256": None if problem.unfinished else sha256_of_model(form),
            "train_samples": problem.data.n,
            "test_samples": None if test is None else test.n,
            "features": problem.data.p,
            "columns": form.n_columns,
            "rows": form.n_rows,
            "start_objective": found["warm_start_objective"],
            "features_used": None if tree is None else len(result.features_used),
            "features_per_split": None
            if tree is None
            else float(np.mean([len(node) for node in tree.features_used().per_node])),
            "wall_seconds": wall_seconds,
            "cpu_seconds": cpu_seconds,
            "details": json.dumps({name: found[name] for name in _DETAILS}, allow_nan=False),
            "tree": None if tree is None else json.dumps(tree.to_dict(), allow_nan=False),
        }
        names = [name for name in found if name.startswith(("train_", "test_")) or name in found["reported"]]
        measures = {name: found[name] for name in names if _is_number(found[name])}
        events = tuple((e["seconds"], e["objective"], e["bound"], e["nodes"]) for e in found["events"])
        return cls(values, measures, events)

    @classmethod
    def failed(cls, error: Exception) -> ExperimentResult:
        """Keep the message of an error."""
        message = f"{type(error).__name__}: {error}"
        return cls({**_circumstances("failed"), "error": message[:LONGEST_ERROR]})


def _circumstances(state: str) -> dict[str, Any]:
    """State, time (UTC) and load of the machine (mean number of processes over a minute)."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"state": state, "finished": now, "load_average": os.getloadavg()[0]}


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


# ---------------------------------------------------------------------- machine and versions


def environment() -> dict[str, str | int]:
    """Describe this machine and the versions of what results depend on, without names of hosts or users.

    The version of the solver stands with each result.

    Returns
    -------
    dict
        ``cpu``, ``cores`` (logical, those this process may use), ``memory_mib``, ``system``, ``python``,
        ``mipforest``, ``numpy``, ``scipy``, ``scikit_learn``.
    """
    return {
        "cpu": _cpu(),
        "cores": _cores(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "mipforest": version("mipforest"),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "scikit_learn": version("scikit-learn"),
    }


def _cpu() -> str:
    """Name of the processor's model; Python itself knows it on few systems."""
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            key, colon, value = line.partition(":")
            if colon and key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class ExperimentData:
    """Samples of an experiment.

    Attributes
    ----------
    sha256
        Checksum of all of them, before classes were merged and test samples put apart.
    train, test
        Training samples, on which the scaling was fitted, and test samples or ``None``.
    """

    sha256: str
    train: Dataset
    test: Dataset | None


def data_path(entry: DataEntry, folder: Path | None) -> Path | None:
    """Return the file that holds the data of an entry; ``None`` for data that need none.

    Raises
    ------
    CampaignError
        If it is missing, or no folder was named.
    """
    if not entry.load.endswith(SUFFIXES):
        return None
    if folder is None:
        raise CampaignError(
            f"the suite reads the file {entry.load}: give the folder that holds it with --data DIR"
        )
    if not folder.is_dir():
        raise CampaignError(f"there is no data folder {folder}; --data DIR names the one with {entry.load}")
    path = folder / entry.load
    if not path.is_file():
        raise CampaignError(f"there is no file {entry.load} in the data folder {folder}")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise CampaignError(
            f"{path} leads out of the data folder {folder}; put the file itself there, or name its folder with --data"
        )
    return path


def load_experiment(experiment: Experiment, folder: Path | None) -> ExperimentData:
    """Load the data of an experiment, merge classes, and put test samples apart.

    Raises
    ------
    CampaignError
        If a file is missing.
    DataError
        If anything about the data is not as it must be.
    """
    entry, split = experiment.data, experiment.split
    whole = load(
        data_path(entry, folder) or entry.load,
        target=entry.target,
        seed=experiment.settings.seed,
        scaling=experiment.scaling,  # type: ignore[arg-type] # checked by the suite
        task=entry.task,
        weight=entry.weight,
    )
    if entry.test_points is not None and not entry.load.startswith(TREATMENTS):
        return ExperimentData(whole.sha256, whole, _from_the_truth(whole, entry.test_points))
    if split is None or entry.test_points is not None:
        return ExperimentData(whole.sha256, _merged(whole, entry), None)
    seed = experiment.settings.seed if split.seed is None else split.seed
    if split.stratify == "labels":
        train, test = whole.split(split.test_size, seed=seed, stratify=True)
        return ExperimentData(whole.sha256, _merged(train, entry), _merged(test, entry))
    train, test = _merged(whole, entry).split(
        split.test_size, seed=seed, stratify=split.stratify == "classes"
    )
    return ExperimentData(whole.sha256, train, test)


def _from_the_truth(train: Dataset, points: int) -> Dataset:
    """Draw test samples, without noise, from the tree that generated data were drawn from."""
    X, y = ground_truth(train.name).draw(points, seed=_TEST_SEED)
    frame = pd.DataFrame(X, columns=list(train.encoding.features)).assign(**{train.target: y})
    return Dataset.from_frame_like(train, frame)


def _merged(data: Dataset, entry: DataEntry) -> Dataset:
    return data.binarise(entry.positive) if entry.positive else data


def solve_experiment(
    experiment: Experiment,
    folder: Path | None,
    *,
    check_data: Callable[[str], None],
    stopping: Callable[[], bool],
) -> ExperimentResult:
    """Load, build, solve and measure one experiment.

    Parameters
    ----------
    experiment, folder
        The experiment, and where files of data are.
    check_data
        Called with the checksum of the data; raises ``CampaignError`` to refuse them.
    stopping
        Asked while the solver runs whether to give the experiment up.

    Raises
    ------
    CampaignError
        If the data cannot be those of the campaign.
    KeyboardInterrupt
        If the experiment was given up, by Ctrl-C or by ``stopping``: what it has by then depends on the moment.
    Exception
        Whatever goes wrong with this experiment alone.
    """

    def on_progress(event: Event) -> bool:
        del event
        return stopping()

    began, began_cpu = perf_counter(), _processor_seconds()
    data = load_experiment(experiment, folder)
    check_data(data.sha256)
    result, chosen = _solved(experiment, data.train, on_progress)
    if result.solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.solution.status is Status.ERROR:
        raise SolverError(result.solution.message or "; ".join(result.solution.warnings))
    if experiment.solver == AUTO:  # the results do not say otherwise who has solved it
        by = f"{result.solution.solver} {result.solution.solver_version}"
        result = replace(result, solution=replace(result.solution, solver_version=by))
    found = ExperimentResult.of(
        result,
        data.sha256,
        data.test,
        wall_seconds=perf_counter() - began,
        cpu_seconds=_processor_seconds() - began_cpu,
    )
    if experiment.data.test_points is not None and isinstance(result.tree, Tree):
        chosen |= _against_the_truth(experiment, data.train.name, result.tree)
    return replace(found, measures={**found.measures, **chosen})


def _processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _against_the_truth(experiment: Experiment, name: str, tree: Tree) -> dict[str, float]:
    """Compare a tree with the one behind generated data, or its prescriptions with the true outcomes of new samples."""
    points = experiment.data.test_points
    if not experiment.data.load.startswith(TREATMENTS) or points is None:
        return recovery_measures(ground_truth(name), tree)
    X, outcomes = treatment_experiment(name).draw(points, experiment.settings.seed)
    measured = policy_measures(outcomes, tree.predict(X).astype(np.int64), tree.predict_outcomes(X))
    return {
        "test_treatment_accuracy": measured.treatment_accuracy,
        "test_effect_r2": measured.effect_accuracy,
    }


def _solved(
    experiment: Experiment, train: Dataset, on_progress: Progress
) -> tuple[Result, dict[str, float | None]]:
    """Solve an experiment, tuned first where it is to be; return what was chosen, too."""
    formulation, settings = experiment.formulation(), experiment.settings
    if experiment.tune is None:
        if experiment.solver.partition(":")[0] in solver_classes():
            settings = replace(settings, isolate=True)  # one that aborts is to end nothing but its cell
        solver = None if experiment.constraints else searching(experiment.solver, settings)
        problem = formulation.build(
            train, experiment.depth, budget=settings.budget(), solver=solver, whole=False
        )
        problem.constrain(*map(constraint_of, experiment.constraints))
        return problem.solve(experiment.solver, settings=settings, on_progress=on_progress), {}

    def on_fit(fit: object) -> None:
        del fit
        if on_progress(Event(0.0, np.nan, np.nan, 0)):
            raise KeyboardInterrupt

    tuning = tune_batch(
        formulation,
        train,
        experiment.depth,
        **experiment.tune,
        solver=experiment.solver,
        settings=settings,
        on_fit=on_fit,
        on_progress=on_progress,
    )
    splits = tuning.result.tree.n_splits if isinstance(tuning.result.tree, Tree) else 0
    return tuning.result, {"chosen_depth": tuning.depth, "chosen_alpha": tuning.alpha, "splits": splits}


#: Greatest distance of two thresholds of the same split, features in [0, 1]; the middle one is that of the measures
#: without a number in their names. All are reported, as none is the thesis' own.
TOLERANCES = (0.01, 0.02, 0.05)
TOLERANCE = 0.02

#: Greatest difference of two coefficients, or thresholds, of the same hyperplane.
HYPERPLANE_TOLERANCE = 0.05


class Recovery(NamedTuple):
    """Rates in [0, 1]: true splits that were found, and fitted splits that are none of the true ones."""

    true_discovery: float
    false_discovery: float


def recovery(truth: GroundTruth, tree: Tree, tolerance: float = TOLERANCE) -> Recovery:
    """Compare the splits of a tree with the true ones.

    Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 2.5: the true
    discovery rate is the share of true splits that the fitted tree has, the false discovery rate that of fitted splits
    which the truth does not have. When two splits are the same the thesis does not say; here

    - the place in the tree does not matter, and every split is matched with one other at most, the closest pairs first;
    - splits on one feature are the same where it is the same feature, and the thresholds are within a tolerance;
    - hyperplanes are the same where they have the same features, and their coefficients and thresholds, scaled to
      coefficients of unit length whose first one is positive, are all within a tolerance. No hyperplane matches a split
      on one feature.

    Parameters
    ----------
    truth
        The tree behind the data, in original units.
    tree
        The fitted tree. Splits that no sample can reach do not count.
    tolerance
        Greatest distance of two thresholds of the same feature, in the features' units.

    Returns
    -------
    Recovery
        A tree without a split has found nothing, and nothing false.
    """
    weights, intercepts = tree.original_units()
    reached = _splits(reachable_tree(tree))
    fitted = _normal(weights[reached], intercepts[reached])
    true = _normal(truth.w[truth.splits], truth.b[truth.splits])
    found = _matches(true, fitted, tolerance)
    return Recovery(
        found / len(true) if len(true) else 1.0, 1.0 - found / len(fitted) if len(fitted) else 0.0
    )


def recovery_measures(truth: GroundTruth, tree: Tree) -> dict[str, float]:
    """Return both rates by name, and for the other tolerances with the tolerance behind the name."""
    measures: dict[str, float] = {}
    for tolerance in (TOLERANCE, *TOLERANCES):
        found = recovery(truth, tree, tolerance)
        behind = "" if not measures else f"_{tolerance:g}"
        measures[f"true_discovery_rate{behind}"] = found.true_discovery
        measures[f"false_discovery_rate{behind}"] = found.false_discovery
    return measures


def _splits(node: ReachableNode) -> list[int]:
    """Return the numbers of the splits of a subtree."""
    own = [node.number] if node.children else []
    return own + [number for child in node.children for number in _splits(child)]


def _normal(w: FloatArray, b: FloatArray) -> FloatArray:
    """Return (m, p + 1) coefficients of unit length, the first one above 0, and thresholds."""
    rows = np.column_stack([w, -b])
    if len(rows) == 0:
        return rows
    first = w[np.arange(len(w)), (w != 0).argmax(axis=1)]
    scaled: FloatArray = rows / (np.sign(first) * np.linalg.norm(w, axis=1))[:, None]
    return scaled


def _matches(true: FloatArray, fitted: FloatArray, tolerance: float) -> int:
    """Return how many pairs of splits are the same, each split in one pair at most, the closest ones first."""
    pairs = []
    for k, one in enumerate(true):
        for other, row in enumerate(fitted):
            used = one[:-1] != 0
            if (used != (row[:-1] != 0)).any():
                continue
            distance, allowed = (
                np.abs(one - row).max(),
                tolerance if used.sum() == 1 else HYPERPLANE_TOLERANCE,
            )
            if distance <= allowed:
                pairs.append((distance, k, other))
    taken: set[tuple[str, int]] = set()
    for _, k, other in sorted(pairs):
        if ("true", k) not in taken and ("fitted", other) not in taken:
            taken |= {("true", k), ("fitted", other)}
    return len(taken) // 2
