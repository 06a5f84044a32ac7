"""Which class of the data set an estimator means by each of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipforest.arrays import IntArray
from mipforest.data import Dataset
from mipforest.data.columns import text
from mipforest.data.errors import some_of
from mipforest.ensembles.errors import EnsembleError


def class_numbers(labels: Any, data: Dataset) -> IntArray:
    """Match an estimator's classes to those of a data set: by label, by name, or by class number.

    Labels are compared as text. Numbers 0 and 1 (or False and True) that are no labels of the data set are
    its class numbers, as in ``estimator.fit(data.X_raw, data.y)``.

    Parameters
    ----------
    labels
        The estimator's ``classes_``.
    data
        A data set of two classes.

    Returns
    -------
    IntArray
        (2,) class number of each of the estimator's classes.

    Raises
    ------
    EnsembleError
        If there are not two classes, they are not those of the data set, or they can be read in two ways.
    """
    wanted = [text(label) for label in np.asarray(labels).tolist()]
    if len(wanted) != 2:
        raise EnsembleError(
            f"the ensemble was fitted on {len(wanted)} class(es) ({some_of(wanted)}); it must tell two apart"
        )
    are_numbers = np.asarray(labels).tolist() == [0, 1]
    for known in (list(map(text, data.class_values)), list(data.classes)):
        if sorted(known) == sorted(wanted):
            found = [known.index(label) for label in wanted]
            if are_numbers and found != [0, 1]:
                raise EnsembleError(
                    f"class 0 of the ensemble may be label {known[1]!r} of {data.name} or its class number 0, "
                    f"which has label {known[0]!r}; keep the classes of {data.name} in the order of their "
                    "labels (do not binarise), or fit the ensemble on class names"
                )
            return np.array(found, dtype=np.int64)
    if are_numbers:
        return np.array([0, 1], dtype=np.int64)
    raise EnsembleError(
        f"the ensemble tells {wanted[0]!r} from {wanted[1]!r}, but the classes of {data.name} are "
        f"{data.classes[0]!r} and {data.classes[1]!r}; fit it on the labels of {data.name}, or on 0 and 1 in "
        "this order"
    )
