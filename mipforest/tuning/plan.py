"""What a tuning will do, checked before anything is done: the settings to try, in a fixed order, and the fits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Any

from mipforest.data import Dataset
from mipforest.errors import TuningError, did_you_mean
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import (
    NumberPerNode,
    Parameter,
    ParameterError,
    per_node,
    plain_parameters_of,
)
from mipforest.problem.problem import TIME_LIMIT
from mipforest.problem.registry import get_formulation
from mipforest.problem.tree_search import AUTO, Auto, TreeSearch, solver_or_search
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver
from mipforest.trees import Topology
from mipforest.tuning.fit import Fold, Work, check_folds, make_folds
from mipforest.tuning.selection import Rule, Score, check_rule, get_score


@dataclass(frozen=True)
class GridAxis:
    """The values that one hyperparameter takes, at all levels or at one.

    Attributes
    ----------
    parameter
        Its name.
    level
        The level of branch nodes that the values are for, the root's is 0; ``None`` for the whole tree.
    values
        The values, in the order given.
    """

    parameter: str
    level: int | None
    values: tuple[Any, ...]

    @property
    def label(self) -> str:
        """Name of its column in tables: ``C``, or ``C[0]`` for the root."""
        return self.parameter if self.level is None else f"{self.parameter}[{self.level}]"


@dataclass(frozen=True)
class Grid:
    """All combinations of the axes' values, numbered from 0; the last axis changes fastest.

    So the setting before setting k along the last axis is k - 1, unless k is the first one there.
    """

    axes: tuple[GridAxis, ...]

    @classmethod
    def of(
        cls,
        formulation: type,
        values: Mapping[str, Sequence[Any]],
        per_level: Collection[str] = (),
        *,
        depth: int,
    ) -> Grid:
        """Check values against what the formulation takes.

        Parameters
        ----------
        formulation
            Its class.
        values
            The values of each hyperparameter, by name. A value of a parameter per node may itself be a tuple:
            one number per level, or per branch node.
        per_level
            Parameters whose values are combined anew at every level: with depth 2 and 3 values, 9 settings.
        depth
            Depth of the tree.

        Raises
        ------
        TuningError
            If a name is unknown, or its values are none, repeated, or cannot differ between levels.
        ParameterError
            If a value is not allowed.
        """
        known = plain_parameters_of(formulation)
        if not values:
            raise TuningError(f"the grid is empty; give values for at least one of: {', '.join(known)}")
        for name in (*values, *per_level):
            if name not in known:
                raise TuningError(
                    f"no parameter {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}"
                )
        for name in per_level:
            if name not in values:
                raise TuningError(f"{name} is to differ between levels, but the grid has no values for it")
        axes: list[GridAxis] = []
        for name, given in values.items():
            checked = _checked(known[name], given, depth)
            if name in per_level:
                _require_one_number_each(known[name], checked)
                axes += [GridAxis(name, level, checked) for level in range(depth)]
            else:
                axes.append(GridAxis(name, None, checked))
        return cls(tuple(axes))

    @property
    def size(self) -> int:
        """Number of settings."""
        return prod(len(axis.values) for axis in self.axes)

    @property
    def chain(self) -> int:
        """Number of settings along the last axis."""
        return len(self.axes[-1].values)

    def after(self, number: int) -> int | None:
        """Return the number of the next setting along the last axis; ``None`` at its end."""
        return number + 1 if (number + 1) % self.chain else None

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the values on every axis, setting by setting."""
        return product(*(axis.values for axis in self.axes))

    def row(self, number: int) -> tuple[Any, ...]:
        """Return the values on every axis for one setting."""
        return next(islice(self.rows(), number, None))

    def settings(self) -> Iterator[dict[str, Any]]:
        """Return the hyperparameters by name, setting by setting; tuples for what differs between levels."""
        for row in self.rows():
            setting: dict[str, Any] = {}
            for axis, value in zip(self.axes, row, strict=True):
                if axis.level is None:
                    setting[axis.parameter] = value
                else:
                    setting[axis.parameter] = (*setting.get(axis.parameter, ()), value)
            yield setting


def parse_grid(formulation: type, assignments: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``NAME=VALUE,VALUE`` texts; a value per level is written with colons, as in ``B=1:1,1:2``.

    Raises
    ------
    TuningError
        If a text has no ``=``, or a name is unknown or given twice.
    ParameterError
        If a value is not allowed.
    """
    known = plain_parameters_of(formulation)
    values: dict[str, list[Any]] = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise TuningError(f"{assignment!r} is no part of a grid; write NAME=VALUE,VALUE as in C=0.1,1,10")
        if name not in known:
            raise TuningError(f"no parameter {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}")
        if name in values:
            raise TuningError(f"the grid has {name} twice; give all its values at once")
        levels = isinstance(known[name].kind, NumberPerNode)
        parts = (part.strip() for part in text.split(","))
        values[name] = [known[name].parse(part.replace(":", ",") if levels else part) for part in parts]
    return values


def _checked(parameter: Parameter, given: Sequence[Any], depth: int) -> tuple[Any, ...]:
    name = parameter.name
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TuningError(
            f"the grid's values of {name} are {given!r}; give a list, as in {{{name!r}: [1, 10]}}"
        )
    checked = tuple(parameter.check(value) for value in given)
    if not checked:
        raise TuningError(f"the grid has no value for {name}; give at least one")
    repeated = [value for k, value in enumerate(checked) if value in checked[:k]]
    if repeated:
        raise TuningError(f"the grid has {name}={repeated[0]!r} twice; give every value once")
    for value in checked:
        if isinstance(value, tuple):
            per_node(name, value, depth)
    return checked


def _require_one_number_each(parameter: Parameter, values: Sequence[Any]) -> None:
    name = parameter.name
    if not isinstance(parameter.kind, NumberPerNode):
        raise TuningError(
            f"{name} is one {parameter.kind.name} for the whole tree; it cannot differ between levels"
        )
    if any(isinstance(value, tuple) for value in values):
        raise TuningError(f"{name} is to differ between levels, so give single numbers, not one per level")


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
        base = formulation_of(formulation)
        topology = topology_of(depth)
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
            score=_score_of(base, score, data),
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


def formulation_of(given: str | type[Formulation] | Formulation) -> Formulation:
    """Return a formulation; of a class, or its name, the one with default hyperparameters."""
    if isinstance(given, Formulation):
        return given
    return (get_formulation(given) if isinstance(given, str) else given)()


def topology_of(depth: int) -> Topology:
    """Return the topology of a depth, which is refused as any other parameter is."""
    try:
        return Topology(depth)
    except ValueError as error:
        raise ParameterError(f"depth: {error}") from error


def _score_of(formulation: Formulation, name: str | None, data: Dataset) -> Score:
    """Return the score; outcomes are the better the higher they are where the formulation says so."""
    score = get_score(name, data.task)
    higher = score.name == "imputed_outcome" and getattr(formulation, "better", "lower") == "higher"
    return replace(score, sign=1) if higher else score


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
