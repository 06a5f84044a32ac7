"""The models of a second statement, written from the definitions for Gurobi: indicator rows, and no big-M.

They share no row with the package. Thresholds of univariate splits compare ranks: no gap between values is small.
Losses of samples are multiplied by their weights; leaf sizes and constraints count samples.
"""

from dataclasses import dataclass, field

import gurobipy
import numpy as np
from gurobipy import GRB
from independent_lp import HINGE, V0, tangent

LOG_LOSS = {"V0": V0, "V1": (*V0, tangent(1.9), tangent(-1.9))}
UNIVARIATE = ("oct", "ort", "ort-l", "quantile")
MARGINS = ("margot", "hfs-margot", "sfs-margot", "svm-leaves")
LINEAR = (*MARGINS, "olct", "budgeted-olct", "univariate-olct", "loss-optimal")


@dataclass
class LiteralTree:
    """The tree: splits by node, named by its path from the root ('', '0', '1', '01', ...), 1 for right."""

    m: gurobipy.Model
    name: str
    values: dict
    data: object
    depth: int
    parting: bool = False
    w: dict = field(default_factory=dict)
    b: dict = field(default_factory=dict)
    used: dict = field(default_factory=dict)

    def __post_init__(self):
        self.X, (self.n, self.p) = self.data.X, self.data.X.shape
        self.weight = [float(weight) for weight in self.data.weights]
        paths = [format(k, f"0{d}b") if d else "" for d in range(self.depth) for k in range(2**d)]
        self.nodes, self.ends = paths, paths[-(2 ** (self.depth - 1)) :]
        if self.name not in LINEAR:
            self.ends = [end + side for end in self.ends for side in "01"]
        self.z = self.m.addVars(self.n, self.ends, vtype=GRB.BINARY)
        self.m.addConstrs(self.z.sum(i, "*") == 1 for i in range(self.n))

    # ------------------------------------------------------------------ splits

    def splits(self, box, scores_of=None):
        """Make free or boxed splits, and binaries that switch features on."""
        scores_of = self.X if scores_of is None else scores_of
        for t in self.nodes:
            self.w[t] = self.m.addVars(self.p, lb=-box, ub=box)
            self.b[t] = self.m.addVar(lb=-box, ub=box)
            self.used[t] = self.m.addVars(self.p, vtype=GRB.BINARY)
            for j in range(self.p):
                self.m.addGenConstrIndicator(self.used[t][j], False, self.w[t][j] == 0)
        self.scores_of = scores_of

    def score(self, i, t):
        return sum(float(self.scores_of[i, j]) * self.w[t][j] for j in range(self.p)) + self.b[t]

    def route(self, gap):
        """Send samples right at a score of at least 0, left at one of at most -gap, above their ends."""
        for i in range(self.n):
            for end in self.ends:
                for level in range(len(end)):
                    score = self.score(i, end[:level])
                    side = score >= 0 if end[level] == "1" else score <= -gap
                    self.m.addGenConstrIndicator(self.z[i, end], True, side)

    def sizes(self, t):
        """Return variables for the sizes of the weights of a node."""
        size = self.m.addVars(self.p)
        self.m.addConstrs(size[j] >= sign * self.w[t][j] for j in range(self.p) for sign in (-1, 1))
        return size

    # ------------------------------------------------------------------ the models

    def linear(self):
        values, epsilon = self.values, self.values["epsilon"]
        self.gap = epsilon
        logistic = values.get("loss") == "logistic" or "olct" in self.name
        lines = LOG_LOSS[values["tangents"]] if logistic else HINGE
        norm = values.get("regulariser", "l2" if self.name in MARGINS else "l1")
        budget, alpha = self._selection()
        self.splits(GRB.INFINITY)
        self.route(epsilon)
        objective = gurobipy.QuadExpr()
        for t in self.nodes:
            excess = sum(self.used[t].values()) - (budget or 0)
            if budget is not None and alpha is None:
                self.m.addConstr(excess <= 0)
            elif budget is not None:
                u = self.m.addVar()
                self.m.addConstr(u >= excess)
                objective += alpha * u
            if values.get("levels") == "last" and len(t) < self.depth - 1:
                continue
            objective += self._norm(t, norm)
            if self.name != "svm-leaves" or len(t) == self.depth - 1:
                objective += values["C"] * self._losses(t, lines, epsilon)
        return objective

    def _selection(self):
        """Return the budget of features of a node, and the price of one beyond it."""
        values = self.values
        if self.name == "univariate-olct":
            return 1, None
        if self.name in ("hfs-margot", "budgeted-olct") or values.get("selection") == "hard":
            return values["B"], None
        if self.name == "sfs-margot" or values.get("selection") == "soft":
            return values["B"], values["alpha"]
        return None, None

    def _norm(self, t, norm):
        if norm == "none":
            return 0.0
        if norm == "l2":
            return 0.5 * sum(self.w[t][j] * self.w[t][j] for j in range(self.p))
        return sum(self.sizes(t).values())

    def _losses(self, t, lines, epsilon):
        if self.values.get("loss") == "misclassification":
            right = self.goes_right(t, epsilon, 0.0)
            here = [sum(self.z[i, end] for end in self.ends if end.startswith(t)) for i in range(self.n)]
            positive = self.data.sign > 0
            wrong = [here[i] - right[i] if positive[i] else right[i] for i in range(self.n)]
            return self.weighted(wrong)
        xi = self.m.addVars(self.n)
        for i in range(self.n):
            margin = float(self.data.sign[i]) * self.score(i, t)
            for end in self.ends:
                if end.startswith(t):
                    for intercept, slope in lines:
                        row = xi[i] >= intercept + slope * margin
                        self.m.addGenConstrIndicator(self.z[i, end], True, row)
        return self.weighted(xi.values())

    def weighted(self, losses):
        """Return the sum of the losses of all samples times their weights."""
        return sum(weight * loss for weight, loss in zip(self.weight, losses, strict=True))

    def goes_right(self, t, below, above):
        """Return, by sample, 1 where it passes t and goes right: a score of at least ``above``; else at most -below."""
        right = []
        for i in range(self.n):
            here = sum(self.z[i, end] for end in self.ends if end.startswith(t))
            to_right, to_left = self.m.addVar(vtype=GRB.BINARY), self.m.addVar(vtype=GRB.BINARY)
            self.m.addConstr(to_right + to_left == here)
            self.m.addGenConstrIndicator(to_right, True, self.score(i, t) >= above)
            self.m.addGenConstrIndicator(to_left, True, self.score(i, t) <= -below)
            right.append(to_right)
        return right

    def miret(self, costs, allowed, sign, weight, group):
        self.gap = self.values["epsilon"]
        self.splits(1.0)
        self.route(self.gap)
        for t in self.nodes:
            for j in range(self.p):
                if not allowed[self.nodes.index(t), j]:
                    self.m.addConstr(self.used[t][j] == 0)
        for i in range(self.n):
            first = int(np.flatnonzero(group == group[i])[0])
            for end in self.ends:
                self.m.addConstr(self.z[i, end] == self.z[first, end])
        wrong = sum(
            float(weight[i]) * self.z[i, end]
            for i in range(self.n)
            for end in self.ends
            if (end[-1] == "1") != (sign[i] > 0)
        )
        paid = sum(
            float(costs[k, j]) * self.used[t][j] for k, t in enumerate(self.nodes) for j in range(self.p)
        )
        return wrong + paid

    def _leaf_tree(self):
        """Make the splits of Dunn's trees; return what they cost."""
        values, m = self.values, self.m
        d = m.addVars(self.nodes, vtype=GRB.BINARY)
        if self.name in UNIVARIATE:
            self.ranks = np.column_stack([np.unique(x, return_inverse=True)[1] for x in self.X.T])
            self.splits(float(self.n), self.ranks)
            self.gap = 0.5
        else:
            self.splits(1.0)
            self.gap = values["mu"]
        self.route(self.gap)
        for t in self.nodes:
            picked = sum(self.used[t].values())
            if t:
                m.addConstr(d[t] <= d[t[:-1]])
            m.addGenConstrIndicator(d[t], False, self.b[t] == 0)
            for j in range(self.p):
                m.addConstr(self.used[t][j] <= d[t])
                if self.name in UNIVARIATE:
                    m.addConstr(self.w[t][j] == self.used[t][j])
            m.addConstr(picked >= d[t])
            if self.name in UNIVARIATE:
                m.addConstr(picked <= d[t])
                # A threshold is at most the greatest value; the least one parts nothing.
                greatest = self.ranks.max(axis=0)
                m.addConstr(-self.b[t] <= sum(float(greatest[j]) * self.used[t][j] for j in range(self.p)))
                m.addConstr(-self.b[t] >= (0.5 if self.parting else 0.0) * d[t])
            else:
                m.addConstr(sum(self.sizes(t).values()) <= 1)
        self.filled = m.addVars(self.ends, vtype=GRB.BINARY)
        for end in self.ends:
            m.addConstr(self.z.sum("*", end) >= values["N_min"] * self.filled[end])
            m.addConstrs(self.z[i, end] <= self.filled[end] for i in range(self.n))
        if self.name in UNIVARIATE:
            return values["alpha"] * d.sum()
        return values["alpha"] * sum(self.used[t][j] for t in self.nodes for j in range(self.p))

    def classes(self, *, majority):
        cost, K, y = self._leaf_tree(), len(self.data.classes), self.data.y
        self.label = self.m.addVars(K, self.ends, vtype=GRB.BINARY)
        wrong = self.m.addVars(self.n)
        for end in self.ends:
            # Empty leaves may have a label or none: monotone effects are asked of labelled ones.
            self.m.addConstr(self.label.sum("*", end) == self.filled[end])
            for i in range(self.n):
                self.m.addConstr(wrong[i] >= self.z[i, end] - self.label[int(y[i]), end])
            if majority:
                size = [
                    sum(self.weight[i] * self.z[i, end] for i in np.flatnonzero(y == k)) for k in range(K)
                ]
                for k in range(K):
                    for other in range(K):
                        self.m.addGenConstrIndicator(self.label[k, end], True, size[k] >= size[other])
        baseline = sum(self.weight) - float(np.bincount(y, self.weight).max())
        return self.weighted(wrong.values()) / baseline + cost

    def regression(self):
        cost, values, m = self._leaf_tree(), self.values, self.m
        y = (self.data.y - self.data.y.min()) / np.ptp(self.data.y)
        squared, linear = values.get("loss") == "squared", self.name in ("ort-l", "ort-lh")
        # What an error is charged below and above 0.
        below, above = (1.0, 1.0) if "loss" in values else (2 * values["tau"], 2 - 2 * values["tau"])
        # The best constant is the mean, or one of the targets.
        centres = [np.average(y, weights=self.weight)] if squared else y
        power = 1 + squared
        baseline = min(
            float(self.weighted(np.where(y > centre, below, above) * np.abs(y - centre) ** power))
            for centre in centres
        )
        fitted = m.addVars(self.n, lb=-GRB.INFINITY)
        objective = gurobipy.QuadExpr(cost)
        counts = linear and values["regulariser"] == "l0"
        limit = 10.0 if counts or (linear and values["lam"] == 0) else GRB.INFINITY
        self.slopes = []
        for end in self.ends:
            beta0 = m.addVar(lb=-GRB.INFINITY)
            beta = m.addVars(self.p if linear else 0, lb=-limit, ub=limit)
            self.slopes.append(beta)
            for i in range(self.n):
                leaf = beta0 + sum(float(self.X[i, j]) * beta[j] for j in beta)
                m.addGenConstrIndicator(self.z[i, end], True, fitted[i] == leaf)
            for j in beta:
                if counts:
                    r = m.addVar(vtype=GRB.BINARY)
                    m.addConstrs(sign * beta[j] <= limit * r for sign in (-1, 1))
                else:
                    r = m.addVar()
                    m.addConstrs(r >= sign * beta[j] for sign in (-1, 1))
                objective += values["lam"] * r
        for i in range(self.n):
            error = fitted[i] - float(y[i])
            if squared:
                objective += self.weight[i] / baseline * error * error
            else:
                size = m.addVar()
                m.addConstr(size >= -below * error)
                m.addConstr(size >= above * error)
                objective += self.weight[i] / baseline * size
        return objective
