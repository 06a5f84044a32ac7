"""Fitted classifiers from ``.joblib`` files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import joblib
from sklearn.exceptions import InconsistentVersionWarning

from mipforest.ensembles.errors import EnsembleError
from mipforest.ensembles.xgboost import require_xgboost

SUFFIX = ".joblib"


def load_estimator(path: Path) -> Any:
    """Read what ``joblib.dump(estimator, path)`` wrote.

    **Loading runs code that the file contains.** Load files only from people you trust.

    Raises
    ------
    EnsembleError
        If the file is no joblib file, needs a package that is not installed, or was written by another
        version of scikit-learn.
    OSError
        If there is no such file, or it cannot be read.
    """
    with path.open("rb"):
        pass  # joblib words the system's errors in its own way.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", InconsistentVersionWarning)
            return joblib.load(path)
    except InconsistentVersionWarning as warning:
        raise EnsembleError(
            f"{path} was written with scikit-learn {warning.original_sklearn_version}, this is "
            f"{warning.current_sklearn_version}, and trees of one version may be misread by another; fit the "
            "ensemble again, or install that version"
        ) from None
    except ModuleNotFoundError as error:
        if error.name == "xgboost":
            require_xgboost()
        raise EnsembleError(f"{path} needs the Python package {error.name}; install it") from error
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:  # A damaged pickle may raise anything.
        kind = type(error).__name__
        raise EnsembleError(
            f"{path} cannot be read as a joblib file ({kind}: {error}); write it with "
            "joblib.dump(estimator, path)"
        ) from error
