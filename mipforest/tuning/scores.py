"""The measures that a tuning can go by."""

from __future__ import annotations

from dataclasses import dataclass

from mipforest.data.errors import did_you_mean
from mipforest.data.target import Task
from mipforest.tuning.errors import TuningError


@dataclass(frozen=True)
class Score:
    """A measure of predictions, in original units; see :meth:`mipforest.problem.result.Result.measures`.

    Attributes
    ----------
    name
        Its name among the measures.
    task
        What kind of target it is for.
    sign
        1 if larger is better, else -1.
    """

    name: str
    task: Task
    sign: int


_ALL = (
    Score("accuracy", "classification", 1),
    Score("balanced_accuracy", "classification", 1),
    Score("r2", "regression", 1),
    Score("mse", "regression", -1),
    Score("mae", "regression", -1),
)

#: All scores by name; the first of a task is its default.
SCORES = {score.name: score for score in _ALL}


def get_score(name: str | None, task: Task) -> Score:
    """Give a score by name, or the default one of a task.

    Raises
    ------
    TuningError
        If there is none of that name, or it is for the other task.
    """
    fitting = [score for score in _ALL if score.task == task]
    if name is None:
        return fitting[0]
    names = ", ".join(score.name for score in fitting)
    if name not in SCORES:
        raise TuningError(
            f"no score is called {name!r}{did_you_mean(name, SCORES)}; for a {task} there are {names}"
        )
    score = SCORES[name]
    if score.task != task:
        raise TuningError(
            f"the score {name} is for a {score.task}, the data are a {task}; choose from: {names}"
        )
    return score
