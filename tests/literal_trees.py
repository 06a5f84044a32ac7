"""A second model of every formulation, with what a helper of ``mipforest.constraints`` asks, stated anew for Gurobi.

The models themselves are in ``literal_models``.
"""

import gurobipy
import numpy as np
from gurobipy import GRB
from literal_models import LINEAR, UNIVARIATE, LiteralTree

#: Least weight of a required feature: part of the meaning of ``require_features``.
LEAST_WEIGHT = 1e-3

_ENVIRONMENT = []


def literal_optimum(
    name, values, data, depth, *, target=None, constraint=None, majority=True, parting=False, seconds=10.0
):
    """Return the optimal value; infinite without a feasible tree, ``None`` where Gurobi does not finish.

    ``values`` are the hyperparameters; ``target`` is what MIRET's instance knows of the ensemble, with the ``costs``
    (|B|, p) of features; ``constraint`` is the name of a helper and its arguments; ``majority``: whether leaves with
    classes predict the most common one; ``parting``: whether every univariate split lies between two training values.
    """
    if not _ENVIRONMENT:
        _ENVIRONMENT.append(gurobipy.Env(params={"OutputFlag": 0, "Threads": 1}))
    with gurobipy.Model(env=_ENVIRONMENT[0]) as m:
        for tolerance in ("FeasibilityTol", "IntFeasTol", "OptimalityTol"):
            m.setParam(tolerance, 1e-9)
        m.setParam("MIPGap", 1e-7)
        m.setParam("TimeLimit", seconds)
        literal = ConstrainedTree(m, name, values, data, depth, parting)
        if name in LINEAR:
            objective = literal.linear()
        elif name == "miret":
            objective = literal.miret(*target)
        elif data.task == "regression":
            objective = literal.regression()
        else:
            objective = literal.classes(majority=majority)
        if constraint is not None:
            getattr(literal, constraint[0])(*constraint[1:])
        m.setObjective(objective)
        try:
            m.optimize()
        except gurobipy.GurobiError as error:
            if error.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
                return None
            raise
        if m.Status in (GRB.INFEASIBLE, GRB.INF_OR_UNBD):
            return np.inf
        return m.ObjVal if m.Status == GRB.OPTIMAL else None


class ConstrainedTree(LiteralTree):
    """A tree, and the helpers: each method has the name and the arguments of one."""

    def forbid_features(self, j, nodes):
        for t in nodes:
            self.m.addConstr(self.used[self.nodes[t]][j] == 0)

    def require_features(self, j):
        if self.name in UNIVARIATE:
            self.m.addConstr(sum(self.used[t][j] for t in self.nodes) >= 1)
            return
        either = self.m.addVars(self.nodes, 2, vtype=GRB.BINARY)
        self.m.addConstr(either.sum() >= 1)
        for t in self.nodes:
            self.m.addGenConstrIndicator(either[t, 1], True, self.w[t][j] >= LEAST_WEIGHT)
            self.m.addGenConstrIndicator(either[t, 0], True, self.w[t][j] <= -LEAST_WEIGHT)

    def feature_budget(self, budget):
        somewhere = self.m.addVars(self.p, vtype=GRB.BINARY)
        self.m.addConstr(somewhere.sum() <= budget)
        self.m.addConstrs(somewhere[j] >= self.used[t][j] for t in self.nodes for j in range(self.p))
        for beta in getattr(self, "slopes", ()):  # linear functions of leaves use features, too
            for j in beta:
                self.m.addGenConstrIndicator(somewhere[j], False, beta[j] == 0)

    def once_per_path(self):
        for last in self.nodes[-(2 ** (self.depth - 1)) :]:
            for j in range(self.p):
                on_path = [self.used[last[:level]][j] for level in range(self.depth)]
                self.m.addConstr(sum(on_path) <= 1)

    def monotone(self, j, increasing):
        if self.name in LINEAR:
            for t in self.nodes:
                if len(t) < self.depth - 1:
                    self.m.addConstr(self.w[t][j] == 0)
                else:
                    self.m.addConstr((self.w[t][j] if increasing else -self.w[t][j]) >= 0)
            return
        high, low = (1, 0) if increasing else (0, 1)
        for t in self.nodes:
            if self.name not in UNIVARIATE:
                self.m.addConstr(self.w[t][j] >= 0)
            for left in (end for end in self.ends if end.startswith(t + "0")):
                for right in (end for end in self.ends if end.startswith(t + "1")):
                    labels = self.label[high, left] + self.label[low, right]
                    self.m.addConstr(labels <= 2 - self.used[t][j])

    def fix_split(self, t, j, threshold):
        """Have node t use feature j alone; ``threshold`` is in scaled units."""
        t, below = self.nodes[t], self.X[:, j] < threshold
        for other in range(self.p):
            self.m.addConstr(self.used[t][other] == (1 if other == j else 0))
        if self.name in LINEAR:
            self.m.addConstr(self.b[t] + threshold * self.w[t][j] == 0)
        for i in range(self.n):
            self.m.addConstr(self.score(i, t) <= -self.gap if below[i] else self.score(i, t) >= 0)

    def leaves(self):
        """Return, by leaf, by sample, 1 where a sample is in it."""
        if self.name not in LINEAR:
            return [[self.z[i, end] for i in range(self.n)] for end in self.ends]
        found = []
        for end in self.ends:
            right = self.goes_right(end, self.gap, 0.0)
            found += [[self.z[i, end] - right[i] for i in range(self.n)], right]
        return found

    def min_samples_leaf(self, least):
        for members in self.leaves():
            filled = self.m.addVar(vtype=GRB.BINARY)
            self.m.addConstr(sum(members) >= least * filled)
            self.m.addConstr(sum(members) <= self.n * filled)

    def predicted(self, k):
        """Return, by sample, 1 where it is predicted class k."""
        if self.name in LINEAR:
            right = [self.goes_right(end, self.gap, 0.0) for end in self.ends]
            second = [sum(column) for column in zip(*right, strict=True)]
            return second if k == 1 else [1 - one for one in second]
        if self.name == "miret":
            ends = [end for end in self.ends if int(end[-1]) == k]
            return [sum(self.z[i, end] for end in ends) for i in range(self.n)]
        both = self.m.addVars(self.n, self.ends, vtype=GRB.BINARY)
        for i in range(self.n):
            for end in self.ends:
                self.m.addGenConstrAnd(both[i, end], [self.z[i, end], self.label[k, end]])
        return [both.sum(i, "*") for i in range(self.n)]

    def demographic_parity(self, group, tolerance, k):
        self._equal_shares(group, np.ones(self.n, dtype=bool), tolerance, k)

    def equal_opportunity(self, group, tolerance, k):
        self._equal_shares(group, self.data.y == k, tolerance, k)

    def _equal_shares(self, group, among, tolerance, k):
        predicted, shares = self.predicted(k), []
        for one in np.unique(group):
            members = np.flatnonzero((group == one) & among)
            shares.append(sum(predicted[i] for i in members) / len(members))
        for first in shares:
            for second in shares:
                self.m.addConstr(first - second <= tolerance)

    def max_false_negatives(self, most, k):
        predicted, members = self.predicted(k), np.flatnonzero(self.data.y == k)
        self.m.addConstr(sum(predicted[i] for i in members) >= len(members) - most)
