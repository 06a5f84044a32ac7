"""Convex quadratic objectives: how they are recognised, and solved to high accuracy once integers are fixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.errors import NotAllowed
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.solution import Status

#: Negative curvature, relative to the largest entry of Q, that counts as round-off: well above the backward
#: error of a Cholesky factorisation (about n * 1e-16), well below any curvature meant by a modeller.
ROUND_OFF = 1e-9

#: Solves continuous quadratic programmes: those of the outer approximation, the rest of a model whose integers
#: are fixed, and whole models for a solver that takes none.
QUADRATIC_SOLVER = "clarabel"

#: Seconds that the continuous rest may take; it takes milliseconds unless the model is huge.
TIME_LIMIT = 5.0


def is_convex(form: MatrixForm) -> bool:
    """Return whether the objective is convex when minimised, concave when maximised, up to round-off.

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
    if np.count_nonzero(Q.diagonal()) == Q.nnz:
        return True
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
    """Return the diagonal blocks of Q, one per connected component with more than one column."""
    from scipy.sparse import csgraph  # late, as below

    count, component = csgraph.connected_components(Q, directed=False)
    order = np.argsort(component, kind="stable")
    groups = np.split(order, np.searchsorted(component[order], np.arange(1, count)))
    return [Q[group][:, group] for group in groups if len(group) > 1]


def _positive_definite(block: SparseMatrix, shift: float) -> bool:
    """Return whether ``block + shift I`` has a Cholesky factor."""
    from scipy.linalg import cholesky  # late: slow to import, and most models are linear

    try:
        cholesky(block.toarray() + shift * np.eye(block.shape[0]), check_finite=False, overwrite_a=True)
    except np.linalg.LinAlgError:
        return False
    return True


def continuous_rest(form: MatrixForm, x: FloatArray) -> MatrixForm:
    """Fix the integer columns at a point; indicator rows become rows where that switches them on.

    Parameters
    ----------
    form
        The model.
    x
        (n,) point whose integer columns hold exact integers.
    """
    indicators = form.indicators
    on = x[indicators.binary] == indicators.value
    return replace(
        form.relaxed(),
        A=sparse.csr_array(sparse.vstack([form.A, indicators.A[on]])),
        row_lower=np.concatenate([form.row_lower, indicators.lower[on]]),
        row_upper=np.concatenate([form.row_upper, indicators.upper[on]]),
        rows=(),
        col_lower=np.where(form.integer, x, form.col_lower),
        col_upper=np.where(form.integer, x, form.col_upper),
    )


def with_best_rest(form: MatrixForm, x: FloatArray) -> FloatArray:
    """Return the best point with the integers of ``x``, or ``x`` where none better is found.

    Parameters
    ----------
    form
        A model with a convex objective.
    x
        (n,) point.
    """
    if not np.array_equal(x[form.integer], np.round(x[form.integer])):
        return x
    solved = get_solver(QUADRATIC_SOLVER).solve(
        continuous_rest(form, x), SolveSettings(time_limit=TIME_LIMIT)
    )
    if solved.status is not Status.OPTIMAL or solved.x is None:
        return x
    best = np.where(form.integer, x, solved.x)
    feasible = violations(form, best).max <= max(FEASIBILITY_TOLERANCE, violations(form, x).max)
    sign = -1.0 if form.maximize else 1.0
    return best if feasible and sign * form.objective(best) <= sign * form.objective(x) else x
