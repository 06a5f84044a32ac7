"""Small data, ensembles and trees for tests of MIRET, and its optimum by a route of its own."""

import numpy as np

from mipforest.data import Dataset
from mipforest.trees import Topology, Tree


def blobs(seed, n=20, p=2, *, decimals=2):
    """Two overlapping classes; features with few distinct values, so that samples repeat."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)), decimals)
    y = (np.sin(6 * X[:, 0]) + X[:, -1] + 0.4 * rng.standard_normal(n) > 0.8).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, name="blobs")


def random_split_tree(rng, data, depth, allowed):
    """A random tree of allowed features, within MIRET's box, whose splits keep a gap of 0.002 in the data."""
    topology = Topology(depth)
    w = rng.uniform(-1, 1, (topology.n_branches, data.p)) * allowed[topology.levels]
    w[rng.random(w.shape) < 0.4] = 0.0
    b = rng.choice([-1.0, 1.0], topology.n_branches)
    for t in range(topology.n_branches):
        size = max(np.abs(w[t]).sum(), 1e-9)
        w[t] /= max(size, 1.0)
        scores = np.sort(np.unique(data.X @ w[t]))
        wide = np.flatnonzero(np.diff(scores) > 0.002)
        if w[t].any() and len(wide):
            k = rng.choice(wide)
            b[t] = -(scores[k] + scores[k + 1]) / 2
        else:
            w[t] = 0.0
    labels = np.tile([0, 1], topology.n_leaves // 2)
    return Tree(depth, w, b, labels, tuple(data.classes), tuple(data.features.labels))


def gurobi_optimum(X, sign, weight, costs, pairs, depth, epsilon):
    """Optimal value of MIRET's basic model, written with indicator constraints, without a big-M, for Gurobi.

    ``costs`` (depth, p) is infinite where a feature is not allowed; ``pairs`` share a leaf.
    """
    import gurobipy
    from gurobipy import GRB

    n, p = X.shape
    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
        model.setParam("MIPGap", 1e-9)
        model.setParam("FeasibilityTol", 1e-9)
        model.setParam("IntFeasTol", 1e-9)
        objective = gurobipy.LinExpr()
        leaves = [format(leaf, f"0{depth}b") for leaf in range(2**depth)]
        z = {(i, leaf): model.addVar(vtype=GRB.BINARY) for i in range(n) for leaf in leaves}
        for i in range(n):
            model.addConstr(sum(z[i, leaf] for leaf in leaves) == 1)
            wrong = "0" if sign[i] > 0 else "1"
            objective += weight[i] * sum(z[i, leaf] for leaf in leaves if leaf[-1] == wrong)
        for i, k in pairs:
            for leaf in leaves:
                model.addConstr(z[i, leaf] == z[k, leaf])
        for level in range(depth):
            for number in range(2**level):
                path = format(number, f"0{level}b") if level else ""
                a = model.addVars(p, lb=-1, ub=1)
                b = model.addVar(lb=-1, ub=1)
                for j in range(p):
                    if np.isinf(costs[level, j]):
                        model.addConstr(a[j] == 0)
                        continue
                    s = model.addVar(vtype=GRB.BINARY)
                    objective += costs[level, j] * s
                    model.addConstr(a[j] <= s)
                    model.addConstr(a[j] >= -s)
                for i in range(n):
                    score = sum(float(X[i, j]) * a[j] for j in range(p)) + b
                    for leaf in leaves:
                        if leaf[: level + 1] == path + "1":
                            model.addGenConstrIndicator(z[i, leaf], True, score >= 0)
                        elif leaf[: level + 1] == path + "0":
                            model.addGenConstrIndicator(z[i, leaf], True, score <= -epsilon)
        model.setObjective(objective)
        model.optimize()
        assert model.Status == GRB.OPTIMAL
        return model.ObjVal
