"""Choosing training and test rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import train_test_split

from mipforest.arrays import IntArray
from mipforest.data.errors import DataError, some_of


def split_rows(
    n: int, test_size: float, seed: int, strata: IntArray | None, names: Sequence[str]
) -> tuple[IntArray, IntArray]:
    """Choose rows as scikit-learn's ``train_test_split`` does.

    Parameters
    ----------
    n
        Number of rows.
    test_size
        Share (a float between 0 and 1) or number (an int) of test rows.
    seed
        Seed of the shuffle.
    strata
        (n,) class indices whose shares both parts are to keep, or ``None``.
    names
        Names of the classes, for messages.

    Returns
    -------
    tuple
        Positions of the training rows and of the test rows, shuffled.

    Raises
    ------
    DataError
        If the sizes are impossible, or a class has too few rows to be in both parts.
    """
    if strata is not None:
        rare = [names[k] for k in np.flatnonzero(np.bincount(strata) == 1).tolist()]
        if rare:
            raise DataError(
                f"class(es) {some_of(rare)} have one sample, a stratified split needs two; merge classes, "
                "or split with stratify=False"
            )
    try:
        train, test = train_test_split(np.arange(n), test_size=test_size, random_state=seed, stratify=strata)
    except ValueError as error:
        raise DataError(f"{n} samples cannot be split with test_size={test_size}: {error}") from error
    return train, test
