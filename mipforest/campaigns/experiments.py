"""From a suite to its experiments: one solve each, and the locks by which processes share them out.

Results files, tables and messages call an experiment a *cell*: of the table of all models on all data.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from mipforest.campaigns.suite import DataEntry, ModelEntry, Split, Suite
from mipforest.ensembles import names_no_file
from mipforest.errors import CampaignError, did_you_mean
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError, check_parameters
from mipforest.problem.registry import get_formulation, make_formulation
from mipforest.problem.tree_search import solver_or_search
from mipforest.settings import SolveSettings
from mipforest.trees import Topology

#: Digits of a key: enough that two experiments never share one.
KEY_DIGITS = 24

#: Settings of a solve that a suite states: they are part of an experiment's definition.
_DECISIVE = ("start", "seed", "time_limit", "gap", "threads", "solver_options")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One solve of a campaign.

    Attributes
    ----------
    model_label, data_label
        As in the suite.
    model, variant, depth, parameters, ensemble, scaling
        The formulation.
    data, split
        The samples.
    solver, settings
        How it is solved. The seed is also that of generated data, of the split unless it has its own, and of starts
        that draw.
    tune
        Where depth and cost of a split are chosen first: how; see :class:`~mipforest.campaigns.suite.ModelEntry`.
    constraints
        As for :class:`~mipforest.campaigns.suite.ModelEntry`.
    """

    model_label: str
    data_label: str
    model: str
    variant: str
    depth: int
    parameters: Mapping[str, Any]
    ensemble: str | None
    scaling: str
    data: DataEntry
    split: Split | None
    solver: str
    settings: SolveSettings
    tune: Mapping[str, Any] | None = None
    constraints: tuple[Mapping[str, Any], ...] = ()

    def definition(self) -> str:
        """Return all that decides the result as JSON; equal for equal experiments only."""
        plain = asdict(self)
        # As before suites had these: results keep their keys.
        for name in ("weight", "test_points"):
            if plain["data"][name] is None:
                del plain["data"][name]
        if self.tune is None:
            del plain["tune"]
        if not self.constraints:
            del plain["constraints"]
        settings = plain.pop("settings")
        plain |= {name: settings[name] for name in _DECISIVE}
        return json.dumps(plain, sort_keys=True, allow_nan=False)

    @property
    def key(self) -> str:
        """What the experiment is called in a results file: a checksum of its definition."""
        return hashlib.sha256(self.definition().encode()).hexdigest()[:KEY_DIGITS]

    def formulation(self) -> Formulation:
        """Make the formulation.

        Raises
        ------
        UnknownFormulation, ParameterError
            If a name is unknown or a value is not allowed.
        """
        return make_formulation(self.model, self.parameters, self.variant, ensemble=self.ensemble)


@dataclass(frozen=True)
class PlannedExperiment:
    """An experiment and its place in the suite.

    Attributes
    ----------
    position
        Number of the experiment, from 0.
    setting
        What distinguishes its model and limits from the others of the suite: what differs between data sets and
        seeds is left out.
    experiment
        The experiment.
    """

    position: int
    setting: str
    experiment: Experiment


def plan(suite: Suite, *, time_limit: float | None = None) -> tuple[PlannedExperiment, ...]:
    """Multiply a suite out: models, settings, data, seeds, solvers and limits, the last one fastest.

    Parameters
    ----------
    suite
        The suite.
    time_limit
        Seconds that count instead of the suite's own limits.

    Raises
    ------
    CampaignError
        If a model, parameter, variant, depth or start is unknown or not allowed.
    SolverUnavailable
        If a solver is unknown or not installed.
    """
    for solver in suite.solvers:
        solver_or_search(solver)
    for name in suite.solver_options:
        if name not in suite.solvers:
            raise CampaignError(
                f"solver_options has {name!r:.60}, no solver of the suite{did_you_mean(name, suite.solvers)}"
            )
    limits = suite.time_limits if time_limit is None else (time_limit,)
    planned: dict[str, PlannedExperiment] = {}
    for setting, experiment in _experiments(suite, limits):
        if experiment.key not in planned:
            planned[experiment.key] = PlannedExperiment(len(planned), setting, experiment)
    return tuple(planned.values())


def _experiments(suite: Suite, limits: tuple[float, ...]) -> Iterator[tuple[str, Experiment]]:
    for label, entry in suite.models.items():
        kind = _kind(label, entry)
        for variant, depth, start, *values in product(
            entry.variants, entry.depths, entry.starts, *entry.grid.values()
        ):
            grid = dict(zip(entry.grid, values, strict=True))
            swept = _swept(entry, variant, depth, start, grid)
            for (data_label, data), seed, solver, limit in product(
                suite.data.items(), suite.seeds, suite.solvers, limits
            ):
                parameters = {**entry.parameters, **entry.by_data.get(data_label, {}), **grid}
                experiment = Experiment(
                    model_label=label,
                    data_label=data_label,
                    model=entry.model,
                    variant=variant or kind.variants[0],
                    depth=depth,
                    parameters=_checked(label, kind, parameters),
                    ensemble=entry.ensemble,
                    scaling=entry.scaling or data.scaling or kind.scaling,
                    data=data,
                    split=suite.split,
                    solver=solver,
                    settings=SolveSettings(
                        start=start,
                        seed=seed,
                        time_limit=limit,
                        gap=suite.gap,
                        threads=suite.threads,
                        solver_options=suite.solver_options.get(solver, {}),
                    ),
                    tune=entry.tune,
                    constraints=entry.constraints,
                )
                _check(label, experiment, kind)
                several = (
                    [solver] if len(suite.solvers) > 1 else [],
                    [f"{limit:g} s"] if len(limits) > 1 else [],
                )
                yield ", ".join([label, *swept, *several[0], *several[1]]), experiment


def _kind(label: str, entry: ModelEntry) -> type[Formulation]:
    """Return the formulation's class; refuse what does not depend on data."""
    where = f"[models.{label}]"
    kind = get_formulation(entry.model)
    for depth in entry.depths:
        try:
            Topology(depth)
        except ValueError as error:
            raise CampaignError(f"{where}: {error}") from None
    for start in entry.starts:
        known = ("default", "none", *kind.starts)
        if start not in known:
            raise CampaignError(
                f"{where}: {entry.model} has no start {start!r:.60}{did_you_mean(start, known)}; "
                f"it has {', '.join(known)}"
            )
    if entry.ensemble is not None and not names_no_file(entry.ensemble):
        raise CampaignError(
            f"{where}: the ensemble is {entry.ensemble!r:.80}; a suite names one to fit, such as "
            "random-forest:trees=100, and no file, as loading one can run code"
        )
    return kind


def _swept(entry: ModelEntry, variant: str, depth: int, start: str, grid: Mapping[str, Any]) -> list[str]:
    """Name the values of what a model is run with several of."""
    return [
        *([variant or "default"] if len(entry.variants) > 1 else []),
        *([f"depth {depth}"] if len(entry.depths) > 1 else []),
        *([f"start {start}"] if len(entry.starts) > 1 else []),
        *(f"{name}={_short(value)}" for name, value in grid.items() if len(entry.grid[name]) > 1),
    ]


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(map(_short, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _checked(label: str, kind: type[Formulation], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyperparameters in the form that the formulation keeps, so that 1 and 1.0 are the same experiment."""
    try:
        return check_parameters(kind, parameters)
    except ParameterError as error:
        raise error.located(f"[models.{label}]", CampaignError) from error


def _check(label: str, experiment: Experiment, kind: type[Formulation]) -> None:
    try:
        experiment.formulation()
    except ParameterError as error:
        raise error.located(f"[models.{label}]", CampaignError) from error
    task = experiment.data.task
    if task is not None and task != kind.task:
        raise CampaignError(
            f"[models.{label}]: {experiment.model} is for {kind.task}, and [data.{experiment.data_label}] is a {task}; "
            "put them into two suites"
        )


class ExperimentLocks:
    """Locks of this process on experiments of a results file: of the operating system, on one byte of a file for each.

    The system drops a lock when its process ends, however it ends: a killed process leaves nothing to wait for,
    and one that hangs, sleeps or holds up all its threads keeps its lock. Leases with a clock give neither.

    Parameters
    ----------
    path
        The lock file; made where it is missing, left where it is.

    Raises
    ------
    CampaignError
        If the system has no such locks.
    OSError
        If the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise CampaignError(
                "campaigns need file locks of POSIX systems, which this system lacks; "
                "run them on Linux, macOS or in WSL"
            ) from error
        self._fcntl = fcntl
        # Closing any descriptor of this file would drop all locks of the process: it is opened once.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def close(self) -> None:
        """Drop all locks."""
        os.close(self._file)

    @contextmanager
    def held(self, number: int) -> Iterator[bool]:
        """Lock an experiment for the ``with`` block; yield ``False`` where another process has locked it.

        Parameters
        ----------
        number
            The experiment's number in the results file, at least 0.
        """
        locked = self._lock(number)
        try:
            yield locked
        finally:
            if locked:
                self._fcntl.lockf(self._file, self._fcntl.LOCK_UN, 1, number)

    def _lock(self, number: int) -> bool:
        try:
            self._fcntl.lockf(self._file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):  # POSIX allows either to say that another has it
            return False
        return True
