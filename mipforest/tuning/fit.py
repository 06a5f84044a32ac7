"""The folds of a tuning, and one fit: a setting, started, trained on one fold, scored on its validation samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mipforest.data import DataError, Dataset
from mipforest.data.target import SEVERAL
from mipforest.data.treatments import imputed_outcomes
from mipforest.errors import TuningError, some_of
from mipforest.problem.formulation import Formulation
from mipforest.problem.problem import Problem
from mipforest.problem.repair import feasible_values
from mipforest.problem.result import Result
from mipforest.problem.tree_search import Auto, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Status
from mipforest.trees import Predictor, Tree

#: Positions of training and of validation samples, for each fold.
Splits: TypeAlias = Iterable[tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True, eq=False)
class Fold:
    """One part of the data for validation, the rest for training.

    Attributes
    ----------
    train
        Training samples; their scaling was fitted on them alone.
    validation
        Validation samples, to be predicted in original units (``X_raw``).
    """

    train: Dataset
    validation: Dataset


def make_folds(data: Dataset, folds: int, seed: int) -> tuple[Fold, ...]:
    """Shuffle the samples and divide them into folds.

    A classification is stratified: every fold has its share of every class; a prescription, of every treatment.
    Samples with rewards belong to no decision.

    Parameters
    ----------
    data
        All samples to train on in the end.
    folds
        Number of folds, at least 2.
    seed
        Seed of the shuffle.

    Raises
    ------
    TuningError
        If there are fewer than two folds.
    DataError
        If a class or treatment has fewer samples than there are folds, a regression fewer than two per fold, or rewards
        fewer than one.
    """
    from sklearn.model_selection import KFold, StratifiedKFold  # takes seconds; fits need none

    check_folds(folds)
    if data.task in ("classification", "prescription"):
        _require_members(data, folds)
        split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(data.X_raw, data.labels)
    else:
        # R2 compares with the mean: of one sample it says nothing.
        of, least = ("rewards", folds) if data.rewards is not None else ("a regression", 2 * folds)
        if data.n < least:
            raise DataError(
                f"{data.name} has {data.n} samples, {folds} folds of {of} need {least} or more; take fewer folds"
            )
        split = KFold(folds, shuffle=True, random_state=seed).split(data.X_raw)
    return given_folds(data, split)


def given_folds(data: Dataset, splits: Splits) -> tuple[Fold, ...]:
    """Divide the samples into given parts.

    Parameters
    ----------
    data
        All samples to train on in the end.
    splits
        For each fold the positions of its training and validation samples, as scikit-learn's splitters give them.

    Raises
    ------
    TuningError
        If there is no fold, a part is empty, or what is given are no positions of samples.
    """
    folds = []
    for number, pair in enumerate(splits):
        try:
            train, rest = (np.arange(data.n)[part if part.size else []] for part in map(np.asarray, pair))
        except (TypeError, ValueError, IndexError) as error:
            raise TuningError(
                f"split {number} is no pair of positions, 0 to {data.n - 1}, to train on and validate ({error})"
            ) from error
        if not (len(train) and len(rest)):
            raise TuningError(
                f"split {number} has {len(train)} samples to train on and {len(rest)} to validate; give both some"
            )
        folds.append(Fold(data.take(train).with_scaling(data.encoding.scaling), data.take(rest)))
    if not folds:
        raise TuningError("there are no splits; give one pair of training and validation samples at least")
    return tuple(folds)


def check_folds(folds: int) -> None:
    """Refuse what is no number of folds.

    Raises
    ------
    TuningError
        If it is not a whole number of 2 or more.
    """
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise TuningError(f"folds is {folds!r}; give a whole number, 2 or more")


def _require_members(data: Dataset, folds: int) -> None:
    kind = "class" if data.task == "classification" else "treatment"
    counts = np.bincount(data.labels.astype(np.int64), minlength=data.n_classes)
    rare = np.flatnonzero((counts > 0) & (counts < folds))
    if not len(rare):
        return
    fewest = int(counts[rare].min())
    named = some_of([f"{data.classes[k]} ({counts[k]})" for k in rare])
    merge = "merge classes" if kind == "class" else "merge treatments"
    advice = f"take {fewest} folds, or {merge}" if fewest >= 2 else f"{merge}, or drop these samples"
    raise DataError(
        f"{folds} folds need {folds} samples of every {kind}, but {data.name} has fewer of: {named}; {advice}"
    )


class Task(Protocol):
    """What executors do on one fold, and how it is named in messages."""

    @property
    def setting(self) -> int:
        """Number of the setting."""

    @property
    def fold(self) -> int:
        """Number of the fold."""

    @property
    def formulation(self) -> Formulation:
        """The formulation, with the setting's hyperparameters."""

    def done(
        self, fold: Fold, neighbour: Predictor | None, stopping: Callable[[], bool] | None = None
    ) -> Any:
        """Do it, after the task before on the same fold has left a tree, if there is one."""


@dataclass(frozen=True, eq=False)
class Work:
    """A fit to be done.

    Attributes
    ----------
    setting, fold
        Numbers of the setting and of the fold.
    formulation, depth
        What to build.
    score
        Name of the measure.
    solver, settings
        Who solves it, and how; the start is that of :func:`better_start`.
    """

    setting: int
    fold: int
    formulation: Formulation
    depth: int
    score: str
    solver: str | Solver | TreeSearch | Auto
    settings: SolveSettings

    def done(
        self, fold: Fold, neighbour: Predictor | None, stopping: Callable[[], bool] | None = None
    ) -> Fit:
        """Do a fit.

        Parameters
        ----------
        fold
            The samples.
        neighbour
            Tree of the setting before on the same fold, if there is one.
        stopping
            Asked during the solve whether to stop.

        Raises
        ------
        KeyboardInterrupt
            If the solve was stopped: its tree is not the one that the full time would have given.
        """
        began = monotonic()
        problem = self.formulation.build(fold.train, self.depth, budget=self.settings.budget(), whole=False)
        start = better_start(problem, neighbour, seed=self.settings.seed)
        result = problem.solve(
            self.solver,
            settings=replace(self.settings, start=start.tree),
            on_progress=None if stopping is None else lambda _: stopping(),
        )
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        train, validation = (_scored(self, result, data) for data in (fold.train, fold.validation))
        return Fit(
            setting=self.setting,
            fold=self.fold,
            train=train,
            validation=validation,
            features=None if result.tree is None else len(result.features_used),
            objective=result.objective,
            gap=result.gap,
            status=result.status,
            verified=result.verified,
            seconds=monotonic() - began,
            start=start.name,
            start_objective=start.objective,
            tree=result.solved_tree,
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """What came out of a fit; small enough to be sent from one process to another.

    Attributes
    ----------
    setting, fold
        Numbers of the setting and of the fold.
    train, validation
        Scores on the training and validation samples; NaN without a tree.
    features
        Number of features used; ``None`` without a tree.
    objective, gap, status, verified
        As in :class:`~mipforest.problem.result.Result`.
    seconds
        Wall time of building, starting and solving.
    start, start_objective
        Which start was taken (see :class:`~mipforest.tuning.fit.Start`), and its value.
    tree
        The solved tree, a start for the next setting; ``None`` if none was found.
    """

    setting: int
    fold: int
    train: float
    validation: float
    features: int | None
    objective: float
    gap: float
    status: str
    verified: bool
    seconds: float
    start: str
    start_objective: float
    tree: Predictor | None


def _scored(work: Work, result: Result, data: Dataset) -> float:
    """Return the score on some samples, NaN without a tree."""
    if result.tree is None:
        return float("nan")
    if work.score == "imputed_outcome":
        return _imputed(result, data)
    own = work.formulation.measures(result.tree, data, result.problem.instance)
    measured = result.measures(data) | own
    if work.score not in measured:
        if data.task in ("regression", SEVERAL):
            known = [score for score, value in measured.items() if isinstance(value, float)]
            raise TuningError(f"{work.formulation.name} has no score {work.score}; it has {', '.join(known)}")
        raise TuningError(
            f"{work.formulation.name} predicts classes without probabilities, and the score {work.score} compares "
            "probabilities of two classes; tune by accuracy or balanced_accuracy"
        )
    return float(measured[work.score])


def _imputed(result: Result, data: Dataset) -> float:
    """Return the mean outcome under the prescriptions of a tree, unknown ones imputed."""
    assert isinstance(result.tree, Tree)
    assert data.treatments is not None  # the score is for prescriptions
    y = np.asarray(data.y, dtype=np.float64)
    outcomes = imputed_outcomes(data.X_raw, data.treatments, y, data.n_classes)
    prescribed = result.tree.predict(data.X_raw).astype(np.int64)
    return float(outcomes[np.arange(data.n), prescribed].mean())


@dataclass(frozen=True, eq=False)
class Start:
    """A tree to start from.

    Attributes
    ----------
    name
        ``"default"`` or ``"neighbour"``.
    tree
        For scaled features.
    objective
        Its value for the problem; of a default start that breaks a row, that of its repair (infinite if there
        is none).
    """

    name: str
    tree: Predictor
    objective: float


def better_start(problem: Problem, neighbour: Predictor | None, *, seed: int) -> Start:
    """Return the better of the default start and a neighbour's tree.

    Parameters
    ----------
    problem
        What is to be solved.
    neighbour
        Tree of the same samples under other hyperparameters, or ``None``. It is taken as it is, or with its
        nodes solved anew for the same routing, if that is feasible and strictly better than the default.
    seed
        Seed of starts that draw.
    """
    tree = problem.start_tree("default", seed=seed)
    if tree is None:
        raise AssertionError(f"{problem.formulation.name} has no default start")
    best = Start("default", tree, _value(problem, tree))
    if neighbour is None:
        return best
    known = problem.start_tree(neighbour)
    if known is None:
        raise AssertionError("a tree is a start")
    for candidate in (known, problem.formulation.polish(known, problem.instance)):
        value = problem.formulation.evaluate(candidate, problem.instance)
        if value < best.objective and feasible_values(problem, candidate) is not None:
            best = Start("neighbour", candidate, value)
    return best


def _value(problem: Problem, tree: Predictor) -> float:
    """Return the objective of a start tree as the solver will get it."""
    if feasible_values(problem, tree) is not None:
        return problem.formulation.evaluate(tree, problem.instance)
    repaired, _ = problem.start_values(tree)
    if repaired is None:
        return np.inf
    form = problem.model.matrix()
    return form.objective(form.to_point(repaired))
