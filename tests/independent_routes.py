"""Routes to an optimum that share no code with the package: enumeration over Gurobi's QPs, and SCIP's native MIQP."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

gurobipy = pytest.importorskip("gurobipy")


@cache
def silent():
    """Gurobi's environment, of which each takes longer to start than a small problem to solve."""
    return gurobipy.Env(params={"OutputFlag": 0, "Threads": 1})


def margin_qp(X, sign, C, right=None, epsilon=0.0):
    """Value of the soft-margin problem of a node, by Gurobi, C one or by sample; inf if the sides cannot be kept."""
    n, p = X.shape
    if n == 0:
        return 0.0
    score = np.column_stack([X, np.ones(n)])
    with gurobipy.Model(env=silent()) as qp:
        x = qp.addMVar(p + 1 + n, lb=np.r_[np.full(p + 1, -np.inf), np.zeros(n)])  # w, b, xi
        qp.setMObjective(
            np.diag(np.r_[np.full(p, 0.5), np.zeros(1 + n)]), np.r_[np.zeros(p + 1), np.full(n, C)], 0.0
        )
        qp.addMConstr(np.column_stack([sign[:, None] * score, np.eye(n)]), x, ">", np.ones(n))
        if right is not None:
            side = np.where(right, 1.0, -1.0)[:, None]
            least = np.where(right, 0.0, epsilon)
            qp.addMConstr(np.column_stack([side * score, np.zeros((n, n))]), x, ">", least)
        qp.setParam("OptimalityTol", 1e-9)
        qp.setParam("FeasibilityTol", 1e-9)
        qp.setParam("Method", 1)
        qp.optimize()
        if qp.Status in (gurobipy.GRB.INFEASIBLE, gurobipy.GRB.INF_OR_UNBD):
            return np.inf
        assert qp.Status in (gurobipy.GRB.OPTIMAL, gurobipy.GRB.SUBOPTIMAL)
        return qp.ObjVal


def enumerated_margot(X, sign, C, depth, epsilon, weight=None):
    """Optimal value of MARGOT by trying every routing of the samples; one penalty C per level."""
    return enumerated_tree(X, sign, C, depth, lambda *node: margin_qp(*node, epsilon), weight)


def enumerated_tree(X, sign, C, depth, node_value, weight=None):
    """Optimal value of a tree by trying every routing of the samples.

    ``node_value`` takes X, sign, C by sample, and sides or ``None``; it is at least 0, and no less with sides than
    without. A routing is passed over where its nodes without sides are worth more than a routing that was tried.
    """
    weight = np.ones(len(X)) if weight is None else weight
    everywhere, least, known = parted(X) if depth > 1 else None, {}, {}

    def without_sides(rows, level):
        key = (rows.tobytes(), level)
        if key not in least:
            least[key] = node_value(X[rows], sign[rows], C[level] * weight[rows], None)
        return least[key]

    def subtree(rows, level):
        if level == depth - 1:
            return without_sides(rows, level)
        key = (rows.tobytes(), level)
        if key not in known:
            known[key] = best(rows, level)
        return known[key]

    def best(rows, level):
        ways = []
        # What parts some of the samples parts all of them: a hyperplane through a sample can give way.
        for right in np.unique(everywhere[:, rows], axis=0):
            parts = rows[~right], rows[right]
            ways.append((sum(without_sides(part, level + 1) for part in parts), parts, right))
        value, own_least = np.inf, without_sides(rows, level)
        for below, parts, right in sorted(ways, key=lambda way: way[0]):
            if own_least + below >= value:
                break
            own = node_value(X[rows], sign[rows], C[level] * weight[rows], right)
            if own + below < value:
                value = min(value, own + sum(subtree(part, level + 1) for part in parts))
        return value

    return subtree(np.arange(len(X)), 0)


def parted(X):
    """All ways, (k, n), to send the samples right (True) or left of a hyperplane that touches none of them."""
    n, p = X.shape
    found = []
    with gurobipy.Model(env=silent()) as lp:
        w, b = lp.addMVar(p, lb=-np.inf), lp.addVar(lb=-np.inf)

        def extend(sides):
            if len(sides) == n:
                found.append(sides)
                return
            for right in (True, False) if sides else (True,):
                score = X[len(sides)] @ w + b
                row = lp.addConstr(score >= 1.0 if right else score <= -1.0)
                lp.optimize()
                if lp.Status == gurobipy.GRB.OPTIMAL:
                    extend([*sides, right])
                lp.remove(row)

        extend([])
    ways = np.array(found)
    return np.concatenate([ways, ~ways])


def best_features(node_value, X, budget, alpha):
    """Least value of a node over all choices of features; each beyond the budget costs alpha, infinite: none may be."""
    p = X.shape[1]
    return min(
        node_value(X[:, used]) + (alpha * (k - budget) if k > budget else 0.0)
        for k in range(1, p + 1)
        if k <= budget or np.isfinite(alpha)
        for used in map(list, combinations(range(p), k))
    )


def l1_lp(X, sign, C, lines, right=None, epsilon=0.0):
    """Value of a node with the l1 norm and a loss of lines (intercept, slope), by scipy's linear solver; or inf."""
    n, p = X.shape
    if n == 0:
        return 0.0
    score, own = np.column_stack([X, -X, np.ones(n)]), np.eye(n)  # parts of w, b, xi
    rows = [np.column_stack([slope * sign[:, None] * score, -own]) for _, slope in lines]
    sides = [np.full(n, -intercept) for intercept, _ in lines]
    if right is not None:
        rows.append(np.column_stack([np.where(right, -1.0, 1.0)[:, None] * score, 0.0 * own]))
        sides.append(np.where(right, 0.0, -epsilon))
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n
    found = linprog(
        np.r_[np.ones(2 * p), 0.0, np.full(n, C)], np.vstack(rows), np.concatenate(sides), bounds=bounds
    )
    return found.fun if found.status == 0 else np.inf


def scip_optimum(form, time_limit=120.0):
    """Optimal value of a mixed-integer convex quadratic form, by SCIP; ``None`` if SCIP did not finish."""
    import pyscipopt

    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.setParam("limits/time", time_limit)
    scip.setParam("limits/gap", 1e-8)
    scip.setParam("numerics/feastol", 1e-8)
    sides = (
        [None if np.isinf(v) else v for v in form.col_lower],
        [None if np.isinf(v) else v for v in form.col_upper],
    )
    x = [
        scip.addVar(f"x{j}", vtype="I" if form.integer[j] else "C", lb=sides[0][j], ub=sides[1][j])
        for j in range(form.n_columns)
    ]
    A = form.A.tocsr()
    for i in range(form.n_rows):
        entries = range(A.indptr[i], A.indptr[i + 1])
        body = pyscipopt.quicksum(float(A.data[k]) * x[A.indices[k]] for k in entries)
        if np.isfinite(form.row_lower[i]):
            scip.addCons(body >= form.row_lower[i])
        if np.isfinite(form.row_upper[i]):
            scip.addCons(body <= form.row_upper[i])
    objective = form.offset + pyscipopt.quicksum(float(form.c[j]) * x[j] for j in range(form.n_columns))
    if form.Q is not None and form.Q.nnz:
        theta = scip.addVar("theta", lb=0.0)
        Q = form.Q.tocoo()
        squares = (0.5 * float(v) * x[i] * x[j] for i, j, v in zip(Q.row, Q.col, Q.data, strict=True))
        scip.addCons(pyscipopt.quicksum(squares) <= theta)
        objective += theta
    scip.setObjective(objective, "maximize" if form.maximize else "minimize")
    scip.optimize()
    return scip.getObjVal() if scip.getStatus() in ("optimal", "gaplimit") else None
