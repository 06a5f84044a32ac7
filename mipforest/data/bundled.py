"""Tables that scikit-learn has, read from its files: importing scikit-learn takes longer than most solves."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.errors import DataError

_CELL_MEASURES = (
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "symmetry",
    "fractal dimension",
)


@dataclass(frozen=True)
class Table:
    """A table of scikit-learn's.

    Attributes
    ----------
    X, y
        (n, p) features and (n,) targets: numbers of classes, or values.
    features, classes
        Names of the p features and, for a classification, of its classes.
    """

    X: FloatArray
    y: FloatArray
    features: tuple[str, ...]
    classes: tuple[str, ...]


#: Names of the features of each table.
FEATURES: Mapping[str, tuple[str, ...]] = {
    "breast_cancer": (
        *(f"mean {name}" for name in _CELL_MEASURES),
        *(f"{name} error" for name in _CELL_MEASURES),
        *(f"worst {name}" for name in _CELL_MEASURES),
    ),
    "diabetes": ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"),
    "digits": tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8)),
    "iris": ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)"),
    "wine": (
        "alcohol",
        "malic_acid",
        "ash",
        "alcalinity_of_ash",
        "magnesium",
        "total_phenols",
        "flavanoids",
        "nonflavanoid_phenols",
        "proanthocyanins",
        "color_intensity",
        "hue",
        "od280/od315_of_diluted_wines",
        "proline",
    ),
}


def read_bundled(name: str) -> Table:
    """Return a table by its name in :data:`FEATURES`, with what ``sklearn.datasets`` gives for it.

    Diabetes has its raw measurements.

    Raises
    ------
    DataError
        If scikit-learn's package has no such file.
    """
    features = FEATURES[name]
    if name == "diabetes":
        X, y = _numbers("diabetes_data_raw.csv.gz"), _numbers("diabetes_target.csv.gz")
        return Table(X, y.ravel(), features, ())
    if name == "digits":
        values = _numbers("digits.csv.gz", delimiter=",")
        return Table(values[:, :-1], values[:, -1].astype(int), features, tuple(map(str, range(10))))
    text = _bytes("wine_data.csv" if name == "wine" else f"{name}.csv").decode()
    first, rest = text.split("\n", 1)
    values = np.loadtxt(io.StringIO(rest), delimiter=",", ndmin=2)
    # The first line has the numbers of rows and features, and the names of the classes.
    return Table(values[:, :-1], values[:, -1].astype(int), features, tuple(first.strip().split(",")[2:]))


def _numbers(file: str, delimiter: str | None = None) -> FloatArray:
    read: FloatArray = np.loadtxt(io.StringIO(_bytes(file).decode()), delimiter=delimiter)
    return read


def _bytes(file: str) -> bytes:
    spec = find_spec("sklearn")  # finds the package without importing it
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    for folder in folders:
        path = Path(folder) / "datasets" / "data" / file
        if path.is_file():
            content = path.read_bytes()
            return gzip.decompress(content) if path.suffix == ".gz" else content
    raise DataError(
        f"scikit-learn's package has no file datasets/data/{file}; install scikit-learn anew: "
        "pip install --force-reinstall scikit-learn"
    )
