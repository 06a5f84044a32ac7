"""The MARGOT model (variant ``paper``) built in three ways: with mipforest, by hand, with Pyomo.

Each way starts from numpy arrays, ``X`` (n, p) within (0, 1) and ``y`` (n,) of 0 and 1. The first two end
with the model loaded in HiGHS; Pyomo, with its model object, as handing it over would only add to its time.
Packages are imported by the function that needs them: no way is charged with the memory of another's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mipforest.model.matrix import MatrixForm
    from mipforest.solvers.highs import HighsSession

C, M_XI, M_H, EPSILON = 1.0, 50.0, 100.0, 1e-3


def samples(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Give features without zeros (no way has to drop any) and labels 0 and 1."""
    rng = np.random.default_rng(0)
    return rng.uniform(1e-3, 1.0, (n, p)), (rng.random(n) < 0.5).astype(int)


# ---------------------------------------------------------------------- mipforest


def with_mipforest(X: np.ndarray, y: np.ndarray, depth: int) -> tuple[HighsSession, MatrixForm]:
    from mipforest.solvers.highs import HighsSession
    from mipforest.solvers.worker import Worker

    form = mipforest_form(X, y, depth)
    session = HighsSession(Worker(maximize=False))
    session.load(form)
    load_quadratic(session, form)
    return session, form


def load_quadratic(session: HighsSession, form: MatrixForm) -> None:
    """Pass the quadratic part too: the package leaves it to a bridge, as HiGHS solves no such model."""
    import highspy
    from scipy import sparse

    triangle = sparse.triu(form.Q, format="csr")
    status = session.highs.passHessian(
        form.n_columns,
        triangle.nnz,
        int(highspy.HessianFormat.kTriangular),
        triangle.indptr.astype(np.int32),
        triangle.indices.astype(np.int32),
        triangle.data,
    )
    assert status == highspy.HighsStatus.kOk


def mipforest_form(X: np.ndarray, y: np.ndarray, depth: int) -> MatrixForm:
    from formulations.margot import Margot
    from mipforest.data import Dataset
    from mipforest.model import Model
    from mipforest.trees import Topology

    data = Dataset.from_arrays(X, y, scaling="none")
    margot = Margot(variant="paper", C=C, epsilon=EPSILON)
    model = Model("margot")
    margot.declare(model, margot.bind(data, Topology(depth)))
    return model.matrix()


# ---------------------------------------------------------------------- by hand


def by_hand(X: np.ndarray, y: np.ndarray, depth: int) -> Any:
    """Fill CSR arrays with numpy and hand them to HiGHS' positional ``passModel``; columns w, b, xi, z."""
    import highspy

    n, p = X.shape
    n_branches, n_last = 2**depth - 1, 2 ** (depth - 1)
    n_upper = n_last - 1
    first_b = n_branches * p
    first_xi = first_b + n_branches
    first_z = first_xi + n * n_branches
    n_columns = first_z + n * n_last
    sign = 2.0 * y - 1.0
    xi = first_xi + np.arange(n)[:, None] * n_branches
    z = first_z + np.arange(n)[:, None] * n_last

    below = [last_branches_below(t, n_last) for t in range(2 * n_last - 1)]
    margin = np.array([p + 2 + len(below[t]) for t in range(n_branches)])
    right = np.array([p + 1 + len(below[2 * t + 2]) for t in range(n_upper)])
    left = np.array([p + 1 + len(below[2 * t + 1]) for t in range(n_upper)])
    lengths = np.concatenate([np.full(n, n_last), np.tile(margin, n), np.tile(right, n), np.tile(left, n)])
    start = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=start[1:])
    index, value = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])

    # All samples have equally many entries in a family of rows: it is a matrix, filled by columns.
    ends = np.cumsum([n * n_last, n * margin.sum(), n * right.sum()])
    parts = [
        (columns.reshape(n, -1), coefficients.reshape(n, -1))
        for columns, coefficients in zip(np.split(index, ends), np.split(value, ends), strict=True)
    ]
    fill_assign(*parts[0], z)
    fill_margin(*parts[1], X, sign, below, first_b, xi, z)
    if n_upper:
        fill_routing(*parts[2], X, below[2::2], -M_H, first_b, z)
        fill_routing(*parts[3], X, below[1::2], M_H, first_b, z)
    ends = np.cumsum([n, n * n_branches, n * n_upper])
    row_lower = np.empty(len(lengths))
    row_upper = np.empty(len(lengths))
    sides = [(1.0, 1.0), (1 - M_XI, np.inf), (-M_H, np.inf), (-np.inf, M_H - EPSILON)]
    for family, (low, high) in enumerate(sides):
        np.split(row_lower, ends)[family][:] = low
        np.split(row_upper, ends)[family][:] = high

    cost = np.zeros(n_columns)
    cost[first_xi:first_z] = C
    col_lower = np.full(n_columns, -np.inf)
    col_lower[first_xi:] = 0.0
    col_upper = np.full(n_columns, np.inf)
    col_upper[first_z:] = 1.0
    integrality = np.zeros(n_columns, dtype=np.int32)
    integrality[first_z:] = 1
    hessian_start = np.minimum(np.arange(n_columns + 1), first_b).astype(np.int32)

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    status = highs.passModel(
        n_columns,
        len(lengths),
        len(value),
        first_b,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.HessianFormat.kTriangular),
        int(highspy.ObjSense.kMinimize),
        0.0,
        cost,
        col_lower,
        col_upper,
        row_lower,
        row_upper,
        start,
        index,
        value,
        hessian_start,
        np.arange(first_b, dtype=np.int32),
        np.ones(first_b),
        integrality,
    )
    assert status == highspy.HighsStatus.kOk
    return highs


def fill_assign(columns: np.ndarray, coefficients: np.ndarray, z: np.ndarray) -> None:
    """``sum_s z_s = 1``."""
    columns[:] = z + np.arange(columns.shape[1])
    coefficients[:] = 1.0


def fill_margin(
    columns: np.ndarray,
    coefficients: np.ndarray,
    X: np.ndarray,
    sign: np.ndarray,
    below: list[np.ndarray],
    first_b: int,
    xi: np.ndarray,
    z: np.ndarray,
) -> None:
    """``y (w_t.x + b_t) + xi_t - M sum_{s below t} z_s >= 1 - M``."""
    p = X.shape[1]
    signed = sign[:, None] * X
    k = 0
    for t in range(first_b // p):
        s = below[t]
        columns[:, k : k + p] = np.arange(t * p, (t + 1) * p)
        coefficients[:, k : k + p] = signed
        columns[:, k + p] = first_b + t
        coefficients[:, k + p] = sign
        columns[:, k + p + 1] = xi[:, 0] + t
        coefficients[:, k + p + 1] = 1.0
        k += p + 2
        columns[:, k : k + len(s)] = z + s
        coefficients[:, k : k + len(s)] = -M_XI
        k += len(s)


def fill_routing(
    columns: np.ndarray,
    coefficients: np.ndarray,
    X: np.ndarray,
    below: list[np.ndarray],
    M: float,
    first_b: int,
    z: np.ndarray,
) -> None:
    """``w_t.x + b_t + M sum_{s below a child of t} z_s``, with M negative for the right child."""
    p = X.shape[1]
    k = 0
    for t, s in enumerate(below):
        columns[:, k : k + p] = np.arange(t * p, (t + 1) * p)
        coefficients[:, k : k + p] = X
        columns[:, k + p] = first_b + t
        coefficients[:, k + p] = 1.0
        k += p + 1
        columns[:, k : k + len(s)] = z + s
        coefficients[:, k : k + len(s)] = M
        k += len(s)


def last_branches_below(t: int, n_last: int) -> np.ndarray:
    """Numbers, from 0, of the nodes of the last branching level in the subtree of node t."""
    first = last = t
    while first < n_last - 1:
        first, last = 2 * first + 1, 2 * last + 2
    return np.arange(first, last + 1) - (n_last - 1)


# ---------------------------------------------------------------------- Pyomo


def with_pyomo(X: np.ndarray, y: np.ndarray, depth: int) -> Any:
    """Build with one ``LinearExpression`` per row: faster than sums of products, and no less readable."""
    import pyomo.environ as pyo
    from pyomo.core.expr.numeric_expr import LinearExpression

    n, p = X.shape
    n_branches, n_last = 2**depth - 1, 2 ** (depth - 1)
    below = [last_branches_below(t, n_last).tolist() for t in range(2 * n_last - 1)]
    sign, rows = (2.0 * y - 1.0).tolist(), X.tolist()

    m = pyo.ConcreteModel()
    m.samples, m.features = pyo.RangeSet(0, n - 1), pyo.RangeSet(0, p - 1)
    m.branches, m.last = pyo.RangeSet(0, n_branches - 1), pyo.RangeSet(0, n_last - 1)
    m.upper = pyo.RangeSet(0, n_last - 2)
    m.w = pyo.Var(m.branches, m.features)
    m.b = pyo.Var(m.branches)
    m.xi = pyo.Var(m.samples, m.branches, within=pyo.NonNegativeReals)
    m.z = pyo.Var(m.samples, m.last, within=pyo.Binary)
    w = [[m.w[t, j] for j in range(p)] for t in range(n_branches)]
    b = [m.b[t] for t in range(n_branches)]
    z = [[m.z[i, s] for s in range(n_last)] for i in range(n)]

    m.objective = pyo.Objective(
        expr=0.5 * pyo.quicksum(v * v for node in w for v in node)
        + pyo.quicksum(C * slack for slack in m.xi.values())
    )

    def assign(_: Any, i: int) -> Any:
        return LinearExpression(linear_coefs=[1.0] * n_last, linear_vars=z[i]) == 1

    def margin(m: Any, i: int, t: int) -> Any:
        coefficients = [sign[i] * x for x in rows[i]]
        coefficients += [sign[i], 1.0, *[-M_XI] * len(below[t])]
        variables = [*w[t], b[t], m.xi[i, t], *(z[i][s] for s in below[t])]
        return LinearExpression(linear_coefs=coefficients, linear_vars=variables) >= 1 - M_XI

    def right(_: Any, i: int, t: int) -> Any:
        s = below[2 * t + 2]
        coefficients = [*rows[i], 1.0, *[-M_H] * len(s)]
        variables = [*w[t], b[t], *(z[i][k] for k in s)]
        return LinearExpression(linear_coefs=coefficients, linear_vars=variables) >= -M_H

    def left(_: Any, i: int, t: int) -> Any:
        s = below[2 * t + 1]
        coefficients = [*rows[i], 1.0, *[M_H] * len(s)]
        variables = [*w[t], b[t], *(z[i][k] for k in s)]
        return LinearExpression(linear_coefs=coefficients, linear_vars=variables) <= M_H - EPSILON

    m.assign = pyo.Constraint(m.samples, rule=assign)
    m.margin = pyo.Constraint(m.samples, m.branches, rule=margin)
    m.right = pyo.Constraint(m.samples, m.upper, rule=right)
    m.left = pyo.Constraint(m.samples, m.upper, rule=left)
    return m
