"""Small models for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.testing.conformance.models import empty_split, market_split

__all__ = ["INF", "empty_split", "enumerated", "market_split", "model", "spread"]

INF = float("inf")


def model(
    c: Sequence[float],
    A: Any = None,
    row_lower: Any = None,
    row_upper: Any = None,
    *,
    lower: Any = 0.0,
    upper: Any = INF,
    integer: Any = False,
    Q: Any = None,
    offset: float = 0.0,
    maximize: bool = False,
) -> MatrixForm:
    """A matrix form from dense data; scalars stand for all columns (or rows)."""
    n = len(c)
    matrix = sparse.csr_array(np.zeros((0, n)) if A is None else np.atleast_2d(np.asarray(A, dtype=float)))
    m = matrix.shape[0]
    return MatrixForm(
        c=np.asarray(c, dtype=float),
        A=matrix,
        row_lower=spread(-INF if row_lower is None else row_lower, m),
        row_upper=spread(INF if row_upper is None else row_upper, m),
        col_lower=spread(lower, n),
        col_upper=spread(upper, n),
        integer=np.broadcast_to(np.asarray(integer, dtype=bool), n).copy(),
        indicators=IndicatorRows.none(n),
        Q=None if Q is None else sparse.csr_array(np.asarray(Q, dtype=float)),
        offset=offset,
        columns=(Block("x", 0, (n,)),),
        rows=(Block("row", 0, (m,)),),
        maximize=maximize,
    )


def spread(value: Any, size: int) -> np.ndarray:
    return np.broadcast_to(np.asarray(value, dtype=float), size).copy()


def enumerated(form: MatrixForm) -> float | None:
    """Optimal value of a model of bounded integers, by trying all points; ``None`` if infeasible."""
    ranges = [
        np.arange(np.ceil(a), np.floor(b) + 1) for a, b in zip(form.col_lower, form.col_upper, strict=True)
    ]
    points = np.array(list(product(*ranges))).reshape(-1, form.n_columns)
    activity = points @ form.A.toarray().T
    feasible = ((activity >= form.row_lower) & (activity <= form.row_upper)).all(axis=1)
    if not feasible.any():
        return None
    values = points[feasible] @ form.c + form.offset
    return float(values.max() if form.maximize else values.min())
