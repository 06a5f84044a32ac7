"""The data sets that come with scikit-learn: no download, no file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.target import Task


@dataclass(frozen=True)
class Bundled:
    """A data set that comes with scikit-learn.

    Attributes
    ----------
    read
        Gives scikit-learn's ``Bunch``.
    task
        What it is for.
    n, p, n_classes
        Numbers of samples, features and classes (0 for a regression).
    description
        What it is about, in a line.
    """

    read: Callable[[], Any]
    task: Task
    n: int
    p: int
    n_classes: int
    description: str


#: Name to data set. ``diabetes`` is read in its original units, not in scikit-learn's normalised ones.
BUNDLED: dict[str, Bundled] = {
    "breast_cancer": Bundled(
        load_breast_cancer,
        "classification",
        569,
        30,
        2,
        "Wisconsin diagnostic: is a tumour malignant (class 0) or benign?",
    ),
    "diabetes": Bundled(
        lambda: load_diabetes(scaled=False), "regression", 442, 10, 0, "progression of diabetes after a year"
    ),
    "digits": Bundled(load_digits, "classification", 1797, 64, 10, "handwritten digits, 8 x 8 pixels"),
    "iris": Bundled(load_iris, "classification", 150, 4, 3, "three species of iris"),
    "wine": Bundled(load_wine, "classification", 178, 13, 3, "three cultivars of wine by chemical analysis"),
}


def load_bundled(name: str, *, task: Task | None = None, scaling: Scaling = "minmax") -> Dataset:
    """Load a data set that comes with scikit-learn.

    Parameters
    ----------
    name
        A key of :data:`BUNDLED`.
    task
        Overrides what the data set is for.
    scaling
        ``"minmax"``, ``"standard"`` or ``"none"``.
    """
    bundled = BUNDLED[name]
    bunch = bundled.read()
    task = task or bundled.task
    names = [str(label) for label in bunch.target_names] if task == bundled.task == "classification" else None
    return Dataset.from_arrays(
        bunch.data,
        bunch.target,
        features=bunch.feature_names,
        classes=names,
        name=name,
        task=task,
        scaling=scaling,
    )
