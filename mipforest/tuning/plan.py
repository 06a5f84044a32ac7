"""What a tuning will do, checked before anything is done: the settings to try, in a fixed order, and how to choose."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.data.target import Task
from mipforest.errors import NoTreeFound, TuningError, did_you_mean, some_of
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import (
    NumberPerNode,
    Parameter,
    ParameterError,
    meant_by_scikit_name,
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

if TYPE_CHECKING:
    import pandas as pd

Rule = Literal["best", "sparse"]

#: Loss of score that the sparse rule accepts, as a share of the best mean score (MARGOT paper, section 6.2).
ACCEPTED_LOSS = 0.025

#: Name of the axis of depths, which are no hyperparameter of a formulation.
DEPTH = "depth"

#: Digits behind the point that count in a mean score: the same scores added in another order differ further behind.
SCORE_DIGITS = 12


@dataclass(frozen=True)
class Score:
    """A measure of predictions, in original units; see :meth:`mipforest.problem.result.Result.measures`.

    Of prescriptions there is also ``imputed_outcome``, the mean outcome under them where unknown outcomes are those
    of the nearest validation samples that had the treatment; the other scores of prescriptions are those of the
    estimates of the known outcomes.

    Attributes
    ----------
    name
        Its name among the measures.
    task
        What kind of target it is for.
    sign
        1 if larger is better, else -1.
    of_probabilities
        Whether it needs probabilities of two classes.
    """

    name: str
    task: Task
    sign: int
    of_probabilities: bool = False


_ALL = (
    Score("accuracy", "classification", 1),
    Score("balanced_accuracy", "classification", 1),
    Score("auc", "classification", 1, of_probabilities=True),
    Score("log_loss", "classification", -1, of_probabilities=True),
    Score("brier_score", "classification", -1, of_probabilities=True),
    Score("r2", "regression", 1),
    Score("mse", "regression", -1),
    Score("mae", "regression", -1),
    Score("deviance_explained", "regression", 1),
    Score("concordance", "regression", 1),
    Score("integrated_brier_score", "regression", -1),
    Score("r2", "multi-output", 1),
    Score("mse", "multi-output", -1),
    Score("mae", "multi-output", -1),
    Score("label_accuracy", "multi-output", 1),
    Score("exact_match", "multi-output", 1),
    Score("imputed_outcome", "prescription", -1),
    Score("r2", "prescription", 1),
    Score("mse", "prescription", -1),
    Score("mae", "prescription", -1),
    Score("mean_reward", "decision", 1),
)


def get_score(name: str | None, task: Task) -> Score:
    """Return a score by name, or the default one of a task, which is the first.

    Raises
    ------
    TuningError
        If there is none of that name, or it is for the other task.
    """
    fitting = {score.name: score for score in _ALL if score.task == task}
    if name is None:
        return next(iter(fitting.values()))
    if name in fitting:
        return fitting[name]
    names = ", ".join(fitting)
    others = [score for score in _ALL if score.name == name]
    if others:
        raise TuningError(
            f"the score {name} is for a {others[0].task}, the data are a {task}; choose from: {names}"
        )
    known = list(dict.fromkeys(score.name for score in _ALL))
    raise TuningError(
        f"no score is called {name!r}{did_you_mean(name, known)}; for a {task} there are {names}"
    )


def check_rule(rule: str) -> None:
    """Refuse a rule that is unknown.

    Raises
    ------
    TuningError
        Naming the rules.
    """
    if rule not in _RULES:
        raise TuningError(
            f"no rule is called {rule!r}{did_you_mean(rule, _RULES)}; choose from: {', '.join(_RULES)}"
        )


def choose(table: pd.DataFrame, rule: Rule, *, sign: int = 1) -> int:
    """Choose a setting.

    Parameters
    ----------
    table
        One row per setting, in grid order, with ``finished``, ``validation_mean`` and ``features_mean``.
        Settings that are not finished, or lack a score in some fold, are left out.
    rule
        ``"best"``: the best mean validation score. ``"sparse"``: among the settings whose mean validation
        score is within 2.5% of the best, those with the fewest features on average, and among these the best
        score (D'Onofrio, Grani, Monaci, Palagi 2024, section 6.2). For a score that is positive and larger is
        better, that is 97.5% of the best. Ties go to the first setting in grid order.
    sign
        1 if a larger score is better, -1 if a smaller one is.

    Returns
    -------
    int
        Position of its row.

    Raises
    ------
    TuningError
        If the rule is unknown; :class:`~mipforest.errors.NoTreeFound` if no setting has a score in every
        fold.
    """
    check_rule(rule)
    scored = table["finished"].to_numpy(dtype=bool) & table["validation_mean"].notna().to_numpy()
    if not scored.any():
        raise NoTreeFound(
            "no setting has a tree in every fold, so there is nothing to choose from; raise the time limit"
        )
    score = np.where(
        scored, sign * np.round(table["validation_mean"].to_numpy(dtype=float), SCORE_DIGITS), -np.inf
    )
    return _RULES[rule](score, table["features_mean"].to_numpy(dtype=float))


def _best(score: FloatArray, features: FloatArray) -> int:
    del features
    return int(np.argmax(score))


def _sparse(score: FloatArray, features: FloatArray) -> int:
    best = score.max()
    least = np.round(best - ACCEPTED_LOSS * abs(best), SCORE_DIGITS)
    good = np.flatnonzero(score >= least)
    return int(min(good, key=lambda number: (features[number], -score[number], number)))


_RULES: Mapping[str, Callable[[FloatArray, FloatArray], int]] = {"best": _best, "sparse": _sparse}


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
        depth: int | Sequence[int],
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
            Depth of the tree; several make the first axis.

        Raises
        ------
        TuningError
            If a name is unknown, or its values are none, repeated, or cannot differ between levels.
        ParameterError
            If a value is not allowed.
        """
        known = plain_parameters_of(formulation)
        depths = (depth,) if isinstance(depth, int) else tuple(depth)
        if not values and len(depths) < 2:
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
        if len(depths) > 1:
            if len(set(depths)) < len(depths):
                raise TuningError(f"the depths {some_of(depths)} have one twice; give every depth once")
            if per_level:
                raise TuningError(
                    f"{some_of(list(per_level))} cannot differ between levels where several depths are tried; give "
                    "one depth"
                )
            axes.append(GridAxis(DEPTH, None, depths))
        for name, given in values.items():
            for each in depths:
                checked = _checked(known[name], given, each)
            if name in per_level:
                _require_one_number_each(known[name], checked)
                axes += [GridAxis(name, level, checked) for level in range(depths[0])]
            else:
                axes.append(GridAxis(name, None, checked))
        return cls(tuple(axes))

    @property
    def size(self) -> int:
        """Number of settings."""
        return prod(len(axis.values) for axis in self.axes)

    @property
    def chain(self) -> int:
        """Number of settings along the last axis that can start from one another: trees of one depth."""
        return 1 if self.axes[-1].parameter == DEPTH else len(self.axes[-1].values)

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
        """Return the hyperparameters by name, setting by setting, without depths; tuples for what differs by level."""
        for row in self.rows():
            setting: dict[str, Any] = {}
            for axis, value in zip(self.axes, row, strict=True):
                if axis.parameter == DEPTH:
                    continue
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
            hint = (
                f": {meant}"
                if (meant := meant_by_scikit_name(formulation, name))
                else did_you_mean(name, known)
            )
            raise TuningError(f"no parameter {name!r}{hint}; known: {', '.join(known)}")
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
    data
        All training samples.
    grid, formulations, depths
        The settings, and a formulation and the depth of its trees for each.
    folds
        Training and validation samples.
    score, rule
        What settings are compared by, and how one is chosen.
    solver, settings
        Who solves every fit, and how; where a fit starts is found anew for each.
    """

    data: Dataset
    grid: Grid
    formulations: tuple[Formulation, ...]
    depths: tuple[int, ...]
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
        depth: int | Sequence[int],
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
        topologies = {each: topology_of(each) for each in ((depth,) if isinstance(depth, int) else depth)}
        combinations = Grid.of(type(base), grid, per_level, depth=depth)
        check_rule(rule)
        check_folds(folds)
        _check_number(combinations.size, folds, max_fits, settings.time_limit)
        formulations = tuple(replace(base, **setting) for setting in combinations.settings())
        several = combinations.axes[0].parameter == DEPTH
        depths = tuple(row[0] if several else next(iter(topologies)) for row in combinations.rows())
        for each, levels in zip(formulations, depths, strict=True):
            each.check_data(data, topologies[levels])
            each.check_weights(data)
        return cls(
            data=data,
            grid=combinations,
            formulations=formulations,
            depths=depths,
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
            setting,
            fold,
            self.formulations[setting],
            self.depths[setting],
            self.score.name,
            self.solver,
            self.settings,
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
    own = "label_accuracy" if data.target_classes else formulation.tunes_by
    score = get_score(name or own, data.task)
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
