"""Whether a quadratic objective is convex."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky

from mipforest.arrays import SparseMatrix
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.errors import NotAllowed

#: Negative curvature, relative to the largest entry of Q, that counts as round-off: well above the backward
#: error of a Cholesky factorisation (about n * 1e-16), well below any curvature meant by a modeller.
ROUND_OFF = 1e-9


def is_convex(form: MatrixForm) -> bool:
    """Whether the objective is convex when minimised, concave when maximised, up to round-off.

    ``Q + ROUND_OFF max|Q| I`` must be positive definite (of ``-Q`` when maximising). A diagonally dominant
    Q is recognised at once; otherwise each connected component of its graph is factorised on its own, in
    time cubic and memory quadratic in the size of the largest component.

    Parameters
    ----------
    form
        The model; rows and integrality play no part.
    """
    if form.Q is None or form.Q.nnz == 0:
        return True
    Q = -form.Q if form.maximize else form.Q
    shift = ROUND_OFF * float(np.abs(Q.data).max())
    diagonal = Q.diagonal() + shift
    if (diagonal <= 0).any():
        return False
    off_diagonal = Q - sparse.diags_array(Q.diagonal())
    if (diagonal > abs(off_diagonal).sum(axis=1)).all():
        return True
    return all(_positive_definite(block, shift) for block in _components(Q))


def require_convex(form: MatrixForm, solver: str) -> None:
    """Refuse a model whose objective is not convex.

    Raises
    ------
    NotAllowed
        Naming the solver that was to take it.
    """
    if not is_convex(form):
        wanted = "negative" if form.maximize else "positive"
        raise NotAllowed(
            f"solver {solver} takes convex objectives only, and the quadratic part is not {wanted} "
            "semidefinite; check its signs, or choose a solver for nonconvex models (gurobi)"
        )


def _components(Q: SparseMatrix) -> list[SparseMatrix]:
    """Diagonal blocks of Q, one per connected component with more than one column."""
    count, component = sparse.csgraph.connected_components(Q, directed=False)
    order = np.argsort(component, kind="stable")
    groups = np.split(order, np.searchsorted(component[order], np.arange(1, count)))
    return [Q[group][:, group] for group in groups if len(group) > 1]


def _positive_definite(block: SparseMatrix, shift: float) -> bool:
    """Whether ``block + shift I`` has a Cholesky factor."""
    try:
        cholesky(block.toarray() + shift * np.eye(block.shape[0]), check_finite=False, overwrite_a=True)
    except LinAlgError:
        return False
    return True
