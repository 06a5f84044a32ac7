"""Features of the data of an instance: what a learner knows of a training set without its model."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset

#: Significant digits: the last ones depend on the processor.
DIGITS = 9


def data_features(data: Dataset) -> dict[str, Any]:
    """Return features of training samples, by name.

    Parameters
    ----------
    data
        n samples of p features.

    Returns
    -------
    dict
        - ``samples``, ``features``, ``classes`` (0 without any), ``treatments`` (0 without any), ``task``;
        - ``distinct_rows``: samples with features of their own, as a share; ``conflicting``: share of samples whose
          features are those of one with another target;
        - ``values_least``, ``values_median``, ``values_most``: distinct values of a feature; ``binary_features``: share
          of features with two of them; ``thresholds``: distinct splits on one feature;
        - ``correlation_mean``, ``correlation_most``: absolute correlations of two features;
        - ``target_correlation_mean``, ``target_correlation_most``: of a feature and the target (of a class of two, its
          number), ``None`` for three classes or more;
        - ``class_shares`` (by class), ``class_entropy`` in bits; or ``target_mean``, ``target_deviation``,
          ``target_skewness``.
    """
    X, y = data.X_raw, data.y.astype(float)
    rows, group = np.unique(X, axis=0, return_inverse=True)
    targets_of = np.unique(np.column_stack([group.ravel(), y]), axis=0)[:, 0].astype(np.int64)
    several = np.bincount(targets_of, minlength=len(rows)) > 1
    values = np.array([len(np.unique(column)) for column in X.T])
    between = _correlations(X, X)[np.triu_indices(data.p, 1)]
    classes = data.n_classes if data.task == "classification" else 0
    with_target = _correlations(X, y[:, None]).ravel() if classes <= 2 else np.zeros(0)
    found: dict[str, Any] = {
        "samples": data.n,
        "features": data.p,
        "classes": classes,
        "treatments": 0 if data.treatments is None else len(np.unique(data.treatments)),
        "task": data.task,
        "distinct_rows": len(rows) / data.n,
        "conflicting": several[group.ravel()].mean(),
        "values_least": int(values.min()),
        "values_median": np.median(values),
        "values_most": int(values.max()),
        "binary_features": (values == 2).mean(),
        "thresholds": int((values - 1).sum()),
        "correlation_mean": _mean(between),
        "correlation_most": between.max(initial=0.0),
        "target_correlation_mean": _mean(with_target) if len(with_target) else None,
        "target_correlation_most": with_target.max() if len(with_target) else None,
    }
    return {name: _plain(value) for name, value in (found | _target(data, classes)).items()}


def _target(data: Dataset, classes: int) -> dict[str, Any]:
    if classes:
        shares = np.bincount(data.y.astype(np.int64), minlength=classes) / data.n
        positive = shares[shares > 0]
        return {
            "class_shares": [_plain(share) for share in shares],
            "class_entropy": -(positive * np.log2(positive)).sum() + 0.0,
        }
    deviation = data.y.std()
    centred = data.y - data.y.mean()
    skewness = (centred**3).mean() / deviation**3 if deviation > 0 else 0.0
    return {"target_mean": data.y.mean(), "target_deviation": deviation, "target_skewness": skewness}


def _correlations(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return absolute correlations of columns of A and of B; 0 where a column is constant."""

    def normed(M: FloatArray) -> FloatArray:
        centred = M - M.mean(axis=0)
        length = np.sqrt((centred**2).sum(axis=0))
        return np.asarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))

    return np.asarray(np.abs(normed(A).T @ normed(B)))


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _plain(value: Any) -> Any:
    """Return a number as JSON has it."""
    if isinstance(value, float | np.floating):
        return float(f"{float(value):.{DIGITS}g}")
    return value
