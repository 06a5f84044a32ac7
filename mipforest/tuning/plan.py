"""What a tuning will do, checked before anything is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mipforest.data import Dataset
from mipforest.errors import TuningError
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import TIME_LIMIT
from mipforest.problem.registry import get_formulation
from mipforest.problem.tree_search import AUTO, Auto, TreeSearch, solver_or_search
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver
from mipforest.trees import Topology
from mipforest.tuning.fit import Fold, Work, check_folds, make_folds
from mipforest.tuning.grid import Grid
from mipforest.tuning.selection import Rule, Score, check_rule, get_score

#: How every fit is solved unless asked otherwise. With one thread, results do not depend on how many fits run side by
#: side.
SETTINGS = SolveSettings(time_limit=TIME_LIMIT, threads=1)

#: Most fits that are done without being asked for. The MARGOT paper's grid at depth 2 (11 values per level,
#: 4 folds) takes 484.
MAX_FITS = 500


@dataclass(frozen=True, eq=False)
class Plan:
    """A tuning that can be run.

    Attributes
    ----------
    data, depth
        All training samples, and the depth of the trees.
    grid, formulations
        The settings, and a formulation for each.
    folds
        Training and validation samples.
    score, rule
        What settings are compared by, and how one is chosen.
    solver, settings
        Who solves every fit, and how; where a fit starts is found anew for each.
    """

    data: Dataset
    depth: int
    grid: Grid
    formulations: tuple[Formulation, ...]
    folds: tuple[Fold, ...]
    score: Score
    rule: Rule
    solver: str | Solver | TreeSearch | Auto
    settings: SolveSettings

    @classmethod
    def of(
        cls,
        formulation: str | type[Formulation] | Formulation,
        data: Dataset,
        depth: int,
        *,
        grid: Mapping[str, Sequence[Any]],
        per_level: Collection[str] = (),
        folds: int = 4,
        score: str | None = None,
        rule: Rule = "best",
        max_fits: int = MAX_FITS,
        solver: str | Solver | TreeSearch | Auto = AUTO,
        settings: SolveSettings = SETTINGS,
    ) -> Plan:
        """Check what was asked for; see :func:`mipforest.tuning.run.tune`.

        Raises
        ------
        TuningError, ParameterError, DataError, UnknownFormulation, SolverError
            If a name is unknown, a value is not allowed, the data do not suffice, the solver is missing, or
            there are more fits than ``max_fits``.
        """
        if isinstance(solver, str):
            solver_or_search(solver)
        base = _formulation(formulation)
        topology = _topology(depth)
        combinations = Grid.of(type(base), grid, per_level, depth=depth)
        check_rule(rule)
        check_folds(folds)
        _check_number(combinations.size, folds, max_fits, settings.time_limit)
        formulations = tuple(replace(base, **setting) for setting in combinations.settings())
        for each in formulations:
            each.check_data(data, topology)
            each.check_weights(data)
        return cls(
            data=data,
            depth=depth,
            grid=combinations,
            formulations=formulations,
            folds=make_folds(data, folds, settings.seed),
            score=get_score(score, data.task),
            rule=rule,
            solver=solver,
            settings=settings,
        )

    @property
    def n_fits(self) -> int:
        """Number of fits of the cross-validation; the fit on all samples comes on top."""
        return self.grid.size * len(self.folds)

    @property
    def n_chains(self) -> int:
        """Number of fits that can be done at a time: the rest wait for the tree of the setting before."""
        return self.n_fits // self.grid.chain

    def first(self) -> list[Work]:
        """Return the fits that need no other's tree."""
        heads = range(0, self.grid.size, self.grid.chain)
        return [self._work(setting, fold) for setting in heads for fold in range(len(self.folds))]

    def after(self, work: Work) -> Work | None:
        """Return the fit that starts from the tree of this one; ``None`` at the end of the grid's last axis."""
        setting = self.grid.after(work.setting)
        return None if setting is None else self._work(setting, work.fold)

    def _work(self, setting: int, fold: int) -> Work:
        return Work(
            setting, fold, self.formulations[setting], self.depth, self.score.name, self.solver, self.settings
        )


def _formulation(given: str | type[Formulation] | Formulation) -> Formulation:
    if isinstance(given, Formulation):
        return given
    return (get_formulation(given) if isinstance(given, str) else given)()


def _topology(depth: int) -> Topology:
    try:
        return Topology(depth)
    except ValueError as error:
        raise ParameterError(f"depth: {error}") from error


def _check_number(settings: int, folds: int, max_fits: int, time_limit: float | None) -> None:
    fits = settings * folds
    if fits <= max_fits:
        return
    hours = "" if time_limit is None else f", up to {fits * time_limit / 3600:.3g} hours of solving"
    raise TuningError(
        f"{settings} settings on {folds} folds are {fits} fits{hours}, more than {max_fits}",
        hint=f"take fewer values, or allow them with max_fits={fits}",
        option=f"take fewer values, or allow them with --max-fits {fits}",
    )
