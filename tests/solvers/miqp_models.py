"""Small mixed-integer models with a quadratic objective."""

import numpy as np
from scipy import sparse

from mipforest.model.matrix import Block, IndicatorRows, MatrixForm

INF = float("inf")


def miqp(c, Q, lower, upper, integer, *, A=None, row_lower=-INF, row_upper=INF, offset=0.0, maximize=False):
    """A model from dense data."""
    n = len(c)
    rows = np.zeros((0, n)) if A is None else np.atleast_2d(np.asarray(A, dtype=float))
    m = len(rows)
    matrix, quadratic = sparse.csr_array(rows), sparse.csr_array(np.asarray(Q, dtype=float))
    matrix.eliminate_zeros()
    quadratic.eliminate_zeros()
    return MatrixForm(
        c=np.asarray(c, dtype=float),
        A=matrix,
        row_lower=np.broadcast_to(np.asarray(row_lower, dtype=float), m).copy(),
        row_upper=np.broadcast_to(np.asarray(row_upper, dtype=float), m).copy(),
        col_lower=np.broadcast_to(np.asarray(lower, dtype=float), n).copy(),
        col_upper=np.broadcast_to(np.asarray(upper, dtype=float), n).copy(),
        integer=np.broadcast_to(np.asarray(integer, dtype=bool), n).copy(),
        indicators=IndicatorRows.none(n),
        Q=quadratic,
        offset=offset,
        columns=(Block("x", 0, (n,)),),
        rows=(Block("row", 0, (m,)),),
        maximize=maximize,
    )
