"""Scores of settings, and the rules that choose one by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data.target import Task
from mipforest.errors import NoTreeFound, TuningError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

Rule = Literal["best", "sparse"]

#: Loss of score that the sparse rule accepts, as a share of the best mean score (MARGOT paper, section 6.2).
ACCEPTED_LOSS = 0.025

#: Digits behind the point that count in a mean score: the same scores added in another order differ further behind.
SCORE_DIGITS = 12


@dataclass(frozen=True)
class Score:
    """A measure of predictions, in original units; see :meth:`mipforest.problem.result.Result.measures`.

    Of prescriptions there is ``imputed_outcome`` besides, the mean outcome under them where unknown outcomes are those
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
    Score("imputed_outcome", "prescription", -1),
    Score("r2", "prescription", 1),
    Score("mse", "prescription", -1),
    Score("mae", "prescription", -1),
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
