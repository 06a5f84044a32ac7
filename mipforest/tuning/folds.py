"""Training and validation samples of a cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.data import DataError, Dataset
from mipforest.errors import TuningError, some_of


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

    A classification is stratified: every fold has its share of every class.

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
        If a class has fewer samples than there are folds, or a regression fewer than two per fold.
    """
    from sklearn.model_selection import KFold, StratifiedKFold  # takes seconds; fits need none

    check_folds(folds)
    if data.task == "classification":
        _require_members(data, folds)
        split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(data.X_raw, data.y)
    else:
        if data.n < 2 * folds:  # R2 compares with the mean: of one sample it says nothing
            raise DataError(
                f"{data.name} has {data.n} samples, {folds} folds of a regression need {2 * folds} or more; "
                "take fewer folds"
            )
        split = KFold(folds, shuffle=True, random_state=seed).split(data.X_raw)
    scaling = data.encoding.scaling
    return tuple(Fold(data.take(train).with_scaling(scaling), data.take(rest)) for train, rest in split)


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
    counts = data.class_counts
    rare = np.flatnonzero((counts > 0) & (counts < folds))
    if not len(rare):
        return
    fewest = int(counts[rare].min())
    named = some_of([f"{data.classes[k]} ({counts[k]})" for k in rare])
    advice = (
        f"take {fewest} folds, or merge classes" if fewest >= 2 else "merge classes, or drop these samples"
    )
    raise DataError(
        f"{folds} folds need {folds} samples of every class, but {data.name} has fewer of: {named}; {advice}"
    )
