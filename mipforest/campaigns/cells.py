"""From a suite to its cells: one solve each."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from mipforest.campaigns.suite import DataEntry, ModelEntry, Split, Suite
from mipforest.ensembles import names_no_file
from mipforest.errors import CampaignError, did_you_mean
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError, check_parameters
from mipforest.problem.registry import get_formulation, make_formulation
from mipforest.solvers.registry import get_solver
from mipforest.trees import Topology

#: Digits of a key: enough that two cells never share one.
KEY_DIGITS = 24


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One solve of a campaign.

    Attributes
    ----------
    model_label, data_label
        As in the suite.
    model, variant, depth, start, parameters, ensemble, scaling
        The formulation, and where to start.
    data, split
        The samples.
    seed
        Of generated data, of the split unless it has its own, of starts that draw, and of the solver.
    solver, solver_options, time_limit, gap, threads
        How it is solved; no time limit if ``None``.
    """

    model_label: str
    data_label: str
    model: str
    variant: str
    depth: int
    start: str
    parameters: Mapping[str, Any]
    ensemble: str | None
    scaling: str
    data: DataEntry
    split: Split | None
    seed: int
    solver: str
    solver_options: Mapping[str, Any]
    time_limit: float | None
    gap: float
    threads: int | None

    def definition(self) -> str:
        """Give all that decides the result as JSON; equal for equal cells only."""
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @property
    def key(self) -> str:
        """What the cell is called in a results file: a checksum of its definition."""
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
class Planned:
    """A cell and its place in the suite.

    Attributes
    ----------
    position
        Number of the cell, from 0.
    setting
        What tells its model and limits from the others of the suite: what differs between data sets and
        seeds is left out.
    cell
        The cell.
    """

    position: int
    setting: str
    cell: Cell


def plan(suite: Suite, *, time_limit: float | None = None) -> tuple[Planned, ...]:
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
        get_solver(solver)
    for name in suite.solver_options:
        if name not in suite.solvers:
            raise CampaignError(
                f"solver_options has {name!r:.60}, no solver of the suite{did_you_mean(name, suite.solvers)}"
            )
    limits = suite.time_limits if time_limit is None else (time_limit,)
    planned: dict[str, Planned] = {}
    for setting, cell in _cells(suite, limits):
        if cell.key not in planned:
            planned[cell.key] = Planned(len(planned), setting, cell)
    return tuple(planned.values())


def _cells(suite: Suite, limits: tuple[float, ...]) -> Iterator[tuple[str, Cell]]:
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
                cell = Cell(
                    model_label=label,
                    data_label=data_label,
                    model=entry.model,
                    variant=variant or kind.variants[0],
                    depth=depth,
                    start=start,
                    parameters=_checked(label, kind, parameters),
                    ensemble=entry.ensemble,
                    scaling=entry.scaling or data.scaling or kind.scaling,
                    data=data,
                    split=suite.split,
                    seed=seed,
                    solver=solver,
                    solver_options=suite.solver_options.get(solver, {}),
                    time_limit=None if math.isinf(limit) else limit,
                    gap=suite.gap,
                    threads=suite.threads,
                )
                _check(label, cell, kind)
                several = (
                    [solver] if len(suite.solvers) > 1 else [],
                    [f"{limit:g} s"] if len(limits) > 1 else [],
                )
                yield ", ".join([label, *swept, *several[0], *several[1]]), cell


def _kind(label: str, entry: ModelEntry) -> type[Formulation]:
    """Give the formulation's class; refuse what does not depend on data."""
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
    """Give hyperparameters in the form that the formulation keeps, so that 1 and 1.0 are the same cell."""
    try:
        return check_parameters(kind, parameters)
    except ParameterError as error:
        raise error.located(f"[models.{label}]", CampaignError) from error


def _check(label: str, cell: Cell, kind: type[Formulation]) -> None:
    try:
        cell.formulation()
    except ParameterError as error:
        raise error.located(f"[models.{label}]", CampaignError) from error
    task = cell.data.task
    if task is not None and task != kind.task:
        raise CampaignError(
            f"[models.{label}]: {cell.model} is for {kind.task}, and [data.{cell.data_label}] is a {task}; "
            "put them into two suites"
        )
