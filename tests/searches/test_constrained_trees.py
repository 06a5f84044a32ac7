"""Trees within constraints: value, bound and infeasibility are those of an enumeration without any search."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from tolerance import at_most, less, same

import mipforest
import mipforest.problem.constraints as c
from mipforest.data import Dataset
from mipforest.data.columns import features_named
from mipforest.errors import Unsupported
from mipforest.heuristics.thresholds import tree_of_thresholds
from mipforest.model import Model
from mipforest.problem.tree_search import get_search
from mipforest.solvers.solution import Status
from mipforest.solving import solve

#: Random cases by default, and of the slow test.
FEW, MANY = 12, 3000


#: What bounds are lowered by at most: limits on labels are widened by what rounding makes of sums.
LOWERED = 1e-5


@pytest.fixture(autouse=True)
def no_explanation(monkeypatch):
    """Do not look for constraints that contradict each other: that solves each problem without a tree again."""
    for name in ("CONFLICT_TIME_LIMIT", "FEW_SECONDS"):
        monkeypatch.setattr(f"mipforest.problem.problem.{name}", 0.0)


class EveryTree:
    """All trees of depth 2 over some samples: splits, labels, and what constraints read of them."""

    depth = 2

    def __init__(self, X, y, weight, K, alpha, loss=None):
        """With the errors of a classifier, as a share of those of its best leaf, or with losses (n, K) of labels."""
        n, p = X.shape
        options = [(-1, 0.0)] + [(j, v) for j in range(p) for v in np.unique(X[:, j])[1:]]
        self.splits = np.array(
            [
                (a, b, d)
                for a, b, d in product(range(len(options)), repeat=3)
                if a or not (b or d)  # a node below one that does not split does not
            ]
        )
        feature = np.array([j for j, _ in options])
        right = np.array([np.ones(n, bool) if j < 0 else X[:, j] >= v for j, v in options])
        self.feature, self.at = feature[self.splits], np.array([v for _, v in options])[self.splits]
        root = right[self.splits[:, 0]]
        below = np.where(root, right[self.splits[:, 2]], right[self.splits[:, 1]])
        self.leaf = 2 * root + below
        self.labels = np.array(list(product(range(K), repeat=4)))
        self.predicted = self.labels[:, self.leaf].transpose(1, 0, 2)  # (splits, labels, n)
        self.size = np.array([(self.leaf == k).sum(axis=1) for k in range(4)]).T
        if loss is None:
            base = min(weight[y != k].sum() for k in range(K))
            loss = weight[:, None] * (y[:, None] != np.arange(K)) / base
        lost = loss[np.arange(n), self.predicted].sum(axis=2)
        self.value = lost + alpha * (self.feature >= 0).sum(axis=1)[:, None]
        self.X, self.y, self.weight = X, y, weight

    def used(self):
        """(splits, p) which features are used."""
        return np.array([(self.feature == j).any(axis=1) for j in range(self.X.shape[1])]).T

    def rate(self, chosen):
        return (self.weight * chosen).sum(axis=2)

    def holds(self, constraint):
        """(splits, labels) which trees satisfy a constraint, by its definition."""
        names = [f"x{j}" for j in range(self.X.shape[1])]
        w, y, ones = self.weight, self.y, np.ones((len(self.splits), len(self.labels)), bool)
        label = getattr(constraint, "label", None)
        hit = None if label is None else self.predicted == int(label)
        match constraint:
            case c.Forbid(features, nodes):
                at = [names.index(name) for name in features]
                own = self.feature if nodes is None else self.feature[:, list(nodes)]
                return ones & ~np.isin(own, at).any(axis=1)[:, None]
            case c.OncePerPath(features):
                some = range(len(names)) if features is None else [names.index(name) for name in features]
                return ones & ~self._again(list(some))[:, None]
            case c.Require(features):
                return ones & self.used()[:, [names.index(name) for name in features]].all(axis=1)[:, None]
            case c.AtMostFeatures(most):
                return ones & (self.used().sum(axis=1) <= most)[:, None]
            case c.AtMostSplits(most, weights):
                return (
                    ones
                    & ((self.feature >= 0) @ np.array(weights or [1] * self.feature.shape[1]) <= most)[
                        :, None
                    ]
                )
            case c.FeatureBudget(budget, cost):
                prices = np.array([cost.get(name, 0.0) for name in names])
                return ones & (self.used() @ prices <= budget + 1e-9)[:, None]
            case c.MinLeaf(least):
                return ones & ((self.size == 0) | (self.size >= least)).all(axis=1)[:, None]
            case c.Split(feature, threshold, node) if not isinstance(threshold, float):
                least, most = threshold or (None, None)
                x, at = np.unique(self.X[:, names.index(feature)]), self.at[:, node]
                below = (x[:, None] < at).sum(axis=0)
                first = 1 if least is None else max(1, (x < least).sum())
                last = len(x) if most is None else (x < most).sum()
                splits = self.feature[:, node] == names.index(feature)
                return ones & (splits & (first <= below) & (below <= last))[:, None]
            case c.Split(feature, threshold, node):
                j = names.index(feature)
                splits = self.feature[:, node] == j
                half = 2 ** (self.depth - 1)
                goes = (self.leaf >= half) if node == 0 else self.leaf // (half // 2) % 2 == 1
                here = np.ones_like(goes) if node == 0 else (self.leaf >= half) == (node == 2)
                return ones & (splits & ((goes == (self.X[:, j] >= threshold)) | ~here).all(axis=1))[:, None]
            case c.Monotone(feature, increasing):
                return self._monotone(names.index(feature), increasing)
            case c.Recall(_, least):
                return self.rate(hit & (y == int(label))) / w[y == int(label)].sum() >= least - 1e-9
            case c.Precision(_, least):
                return self.rate(hit & (y == int(label))) >= least * self.rate(hit) - 1e-9
            case c.F1(_, least):
                both = self.rate(hit) + w[y == int(label)].sum()
                return 2 * self.rate(hit & (y == int(label))) >= least * both - 1e-9
            case c.LimitLabel(_, most):
                return self.rate(hit) / w.sum() <= most + 1e-9
            case c.Parity(column, most):
                group = self.X[:, names.index(column)]
                last = self.predicted == self.labels.max()
                shares = [self.rate(last & (group == g)) / w[group == g].sum() for g in np.unique(group)]
                return np.max(shares, axis=0) - np.min(shares, axis=0) <= most + 1e-9
        raise AssertionError(constraint)

    def _again(self, features):
        again = np.zeros(len(self.splits), bool)
        for t in range(1, self.feature.shape[1]):
            above = t
            while above:
                above = (above - 1) // 2
                for j in features:
                    again |= (self.feature[:, t] == j) & (self.feature[:, above] == j)
        return again

    def _monotone(self, j, increasing):
        good = np.ones((len(self.splits), len(self.labels)), bool)
        sign = 1 if increasing else -1
        parts = {0: ([0, 1], [2, 3]), 1: ([0], [1]), 2: ([2], [3])}
        held = self.size > 0
        for node, (left, right) in parts.items():
            on = self.feature[:, node] == j
            for a, b in product(left, right):
                falls = sign * self.labels[:, a] > sign * self.labels[:, b]
                good &= ~((on & held[:, a] & held[:, b])[:, None] & falls)
        return good


class EverySplit(EveryTree):
    """All trees of depth 3 with the best labels, for constraints on what is split on."""

    depth = 3

    def __init__(self, X, y, weight, K, alpha):
        n, p = X.shape
        options = [(-1, 0.0)] + [(j, v) for j in range(p) for v in np.unique(X[:, j])[1:]]
        splits = np.array(list(product(range(len(options)), repeat=7)))
        stops = splits == 0
        self.splits = splits[~(stops[:, [0, 0, 1, 1, 2, 2]] & ~stops[:, 1:]).any(axis=1)]
        self.feature = np.array([j for j, _ in options])[self.splits]
        self.at = np.array([v for _, v in options])[self.splits]
        right = np.array([np.ones(n, bool) if j < 0 else X[:, j] >= v for j, v in options])
        at = np.zeros((len(self.splits), n), np.int64)
        for _ in range(3):
            at = 2 * at + 1 + right[np.take_along_axis(self.splits, at, axis=1), np.arange(n)]
        self.leaf, self.labels, lost = at - 7, np.zeros((1, 8), np.int64), 0.0
        self.size = np.array([(self.leaf == k).sum(axis=1) for k in range(8)]).T
        for leaf in range(8):
            inside = (self.leaf == leaf) @ (weight[:, None] * np.eye(K)[y])
            lost = lost + inside.sum(axis=1) - inside.max(axis=1)
        base = min(weight[y != k].sum() for k in range(K))
        self.value = (lost / base + alpha * (self.feature >= 0).sum(axis=1))[:, None]
        self.predicted, self.X, self.y, self.weight = np.zeros((1, 1, n)), X, y, weight


class EveryLabeling(EverySplit):
    """All trees of depth 3 with all labels."""

    def __init__(self, X, y, weight, K, alpha):
        super().__init__(X, y, weight, K, alpha)
        self.labels = np.array(list(product(range(K), repeat=8)))
        self.predicted = self.labels[:, self.leaf].transpose(1, 0, 2)
        base = min(weight[y != k].sum() for k in range(K))
        lost = (weight * (self.predicted != y)).sum(axis=2)
        self.value = lost / base + alpha * (self.feature >= 0).sum(axis=1)[:, None]


class EveryMean(EverySplit):
    """All trees of depth 2 with the best numbers in the leaves, for constraints on what is split on."""

    depth = 2

    def __init__(self, X, y, weight, loss, alpha):
        EveryTree.__init__(self, X, np.arange(len(y)) % 2, weight, 2, 0.0)  # labels do not matter
        self.labels, self.predicted = np.zeros((1, 4), np.int64), np.zeros((1, 1, len(y)))

        def lost(inside):
            w, own = weight[inside], y[inside]
            if not len(own):
                return 0.0
            if loss == "squared":
                return w @ (own - np.average(own, weights=w)) ** 2
            return min(w @ np.abs(own - middle) for middle in own)

        value = np.array([sum(lost(leaf == k) for k in range(4)) for leaf in self.leaf])
        splits = (self.feature >= 0).sum(axis=1)
        self.value = (value / lost(np.ones(len(y), bool)) + alpha * splits)[:, None]


#: Ranges of thresholds of features with the values 0, 1 and 2.
RANGES = [None, (0.5, None), (None, 0.7), (1.0, 1.5), (1.2, 2.5)]


def drawn_of_nodes(rng, X, depth):
    """Draw a constraint that differs from node to node, or that some node has to satisfy."""
    some = [f"x{j}" for j in range(X.shape[1])]
    pick = lambda: str(rng.choice(some))  # noqa: E731
    nodes = tuple(sorted({int(t) for t in rng.integers(0, 3, 2)}))
    kinds = [
        lambda: c.Forbid((pick(),), nodes),
        lambda: c.OncePerPath(None if rng.integers(2) else (pick(),)),
        lambda: c.Require((pick(),)),
        lambda: c.Split(pick(), float(rng.choice([0.5, 1.5])), int(rng.integers(3))),
        lambda: c.Split(pick(), RANGES[rng.integers(len(RANGES))], int(rng.integers(3))),
        lambda: c.AtMostSplits(int(rng.integers(0, 2**depth - 1))),
        lambda: c.AtMostSplits(2, tuple(rng.integers(0, 3, 2**depth - 1).tolist())),
    ]
    return kinds[rng.integers(len(kinds))]()


def drawn_constraint(rng, p, K, n, binary):
    some = [f"x{j}" for j in range(p)]
    pick = lambda: str(rng.choice(some))  # noqa: E731
    label, share = str(rng.integers(K)), float(rng.choice([0.3, 0.5, 0.75, 0.9, 1.0]))
    kinds = [
        lambda: c.Forbid((pick(),)),
        lambda: c.AtMostFeatures(int(rng.integers(0, p))),
        lambda: c.FeatureBudget(
            float(rng.integers(0, 5)), {name: float(rng.integers(0, 4)) for name in some}
        ),
        lambda: c.MinLeaf(int(rng.integers(2, 4))),
        lambda: c.Recall(label, share),
        lambda: c.Precision(label, share),
        lambda: c.F1(label, share),
        lambda: c.LimitLabel(label, float(rng.choice([0.0, 0.2, 0.4, 0.6]))),
        lambda: c.Parity(pick(), float(rng.choice([0.0, 0.2, 0.5]))),
    ]
    if binary:
        kinds.append(lambda: c.Monotone(pick(), bool(rng.integers(2))))
    return kinds[rng.integers(len(kinds))]()


def one_case(seed, *, of_nodes=False, depth=2):
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(5, 9)), int(rng.integers(2, 4)), 2 if rng.random() < 0.8 else 3
    p = p if depth == 2 else 2
    X = rng.integers(0, 3, (n, p)).astype(float)
    X[:2] = [[0.0] * p, [2.0] * p]
    y = rng.integers(0, K, n)
    y[:K] = np.arange(K)
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else np.ones(n)
    alpha = float(rng.choice([0.0, 0.0, 0.03, 0.2]))
    data = Dataset.from_arrays(X, y, features=[f"x{j}" for j in range(p)], weights=weight)
    asked = [drawn_constraint(rng, p, K, n, K == 2) for _ in range(int(rng.integers(1, 4 - of_nodes)))]
    if of_nodes:
        drawn = [drawn_of_nodes(rng, X, depth) for _ in range(int(rng.integers(1, 3)))]
        asked += [
            one for k, one in enumerate(drawn) if all(type(one) is not type(other) for other in drawn[:k])
        ]
    if of_nodes and rng.integers(2):
        asked = [one for one in asked if not isinstance(one, c.MinLeaf)] + [
            c.MinLeaf(int(rng.integers(2, 4)))
        ]
    if depth == 3:
        alone = (
            c.Forbid,
            c.AtMostFeatures,
            c.FeatureBudget,
            c.OncePerPath,
            c.Require,
            c.Split,
            c.MinLeaf,
            c.AtMostSplits,
        )
        asked = [one for one in asked if isinstance(one, alone)]
    trees = (EveryTree if depth == 2 else EverySplit)(X, y, weight, K, alpha)
    holds = np.logical_and.reduce([trees.holds(one) for one in asked])
    best = trees.value[holds].min(initial=np.inf)
    problem = mipforest.get_formulation("oct")(alpha=alpha).build(data, depth)
    problem.constrain(*asked)
    return problem, asked, best


def agree(seed, case=one_case, **kind):
    problem, asked, best = case(seed, **kind)
    assert not (why := get_search("exact-search").objection(problem)), (seed, why)
    result = problem.solve("exact-search", time_limit=60, gap=0.0)
    said = (seed, [str(one) for one in asked], result.status, result.objective, result.bound, best)
    if not np.isfinite(best):
        assert result.solution.status is Status.INFEASIBLE, said
        return
    assert result.status == "optimal", said
    assert result.verified, (said, result.failed_checks)
    assert same(result.objective, best), said
    assert at_most(result.bound, best), said
    assert at_most(best, result.bound + LOWERED), said
    for one in asked:
        assert one.admits(result.tree, problem.data), (said, one)


def test_trees_within_constraints_are_those_of_an_enumeration():
    for seed in (*range(FEW), 1616):  # the best tree within limits on labels breaks what is asked of trees
        agree(seed)


def test_trees_whose_nodes_are_told_what_to_split_on_are_those_of_an_enumeration():
    for seed in range(FEW):
        agree(seed, of_nodes=True)


def test_deeper_trees_whose_nodes_are_told_what_to_split_on_are_those_of_an_enumeration():
    for seed in (*range(FEW // 4), 120):  # samples that no tree tells apart
        agree(seed, of_nodes=True, depth=3)


def case_of_labels(seed):
    """Draw limits on labels beside what nodes of three levels are told, over features of two values."""
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(5, 9)), 3, 2
    X, y = rng.integers(0, 2, (n, p)).astype(float), rng.integers(0, K, n)
    X[:2], y[:K] = [[0.0] * p, [1.0] * p], np.arange(K)
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else np.ones(n)
    alpha = float(rng.choice([0.0, 0.0, 0.03, 0.2]))
    data = Dataset.from_arrays(X, y, features=[f"x{j}" for j in range(p)], weights=weight)
    asked = [drawn_constraint(rng, p, K, n, binary=False) for _ in range(int(rng.integers(1, 3)))]
    drawn = [drawn_of_nodes(rng, X, 3) for _ in range(int(rng.integers(1, 3)))]
    drawn = [
        c.Split(one.feature, 0.5 if rng.integers(2) else None, one.node) if isinstance(one, c.Split) else one
        for one in drawn
    ]
    asked += [one for k, one in enumerate(drawn) if all(type(one) is not type(other) for other in drawn[:k])]
    trees = EveryLabeling(X, y, weight, K, alpha)
    best = trees.value[np.logical_and.reduce([trees.holds(one) for one in asked])].min(initial=np.inf)
    problem = mipforest.get_formulation("oct")(alpha=alpha).build(data, 3)
    problem.constrain(*asked)
    return problem, asked, best


def test_limits_on_labels_beside_what_nodes_of_three_levels_are_told_are_those_of_an_enumeration():
    for seed in (*range(FEW // 2), 157):  # no feature is left
        agree(seed, case_of_labels)


@pytest.mark.slow
def test_many_limits_on_labels_beside_what_nodes_are_told_are_those_of_an_enumeration():
    for seed in range(FEW, MANY // 10):
        agree(seed, case_of_labels)


def case_of_budgets(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (8, 3)).astype(float), np.arange(8) % 2
    cost = {f"x{j}": float(rng.integers(1, 4)) for j in range(3)}
    asked = [c.AtMostFeatures(1 + seed % 2), c.FeatureBudget(float(rng.integers(2, 6)), cost)]
    trees = EveryTree(X, y, np.ones(8), 2, 0.0)
    best = trees.value[np.logical_and.reduce([trees.holds(one) for one in asked])].min(initial=np.inf)
    problem = mipforest.get_formulation("oct")(alpha=0.0).build(
        Dataset.from_arrays(X, y, features=list(cost)), 2
    )
    problem.constrain(*asked)
    return problem, asked, best


def test_budgets_are_kept_by_branching_too(monkeypatch):
    monkeypatch.setattr("mipforest.searches.univariate.constrained.MAX_SETS", 0)
    for seed in range(8):
        agree(seed, case_of_budgets)


# ---------------------------------------------------------------------- columns of levels, and missing values


def drawn_of_columns(rng, labels):
    """Draw a constraint on columns of numbers, one of levels and the features of its levels."""
    columns = ["age", "colour", "dose"]
    features = [*columns, *(label for label in labels if label.startswith("colour="))]
    pick = lambda names: str(rng.choice(names))  # noqa: E731
    label, share = "1", float(rng.choice([0.3, 0.5, 0.75, 1.0]))
    prices = {name: float(rng.integers(0, 4)) for name in columns}
    nodes = tuple(sorted({int(t) for t in rng.integers(0, 3, 2)}))
    kinds = [
        lambda: c.Forbid((pick(features),), nodes if rng.integers(2) else None),
        lambda: c.OncePerPath(None if rng.integers(2) else (pick(columns),)),
        lambda: c.Require((pick(features),)),
        lambda: c.AtMostFeatures(int(rng.integers(0, 3))),
        lambda: c.FeatureBudget(float(rng.integers(0, 4)), prices),
        lambda: c.AtMostSplits(int(rng.integers(0, 4))),
        lambda: c.MinLeaf(int(rng.integers(2, 4))),
        lambda: c.Split("age", RANGES[rng.integers(len(RANGES) - 1)], int(rng.integers(3))),
        lambda: c.Split(features[-1], 0.5, int(rng.integers(3))),
        lambda: c.Split("colour", None, int(rng.integers(3))),
        lambda: c.Recall(label, share),
        lambda: c.LimitLabel(label, float(rng.choice([0.0, 0.2, 0.4]))),
        lambda: c.Parity(pick(columns), float(rng.choice([0.0, 0.2, 0.5]))),
        lambda: c.Monotone(pick(["age", "dose"]), bool(rng.integers(2))),
    ]
    return kinds[rng.integers(len(kinds))]()


def table_of_columns(rng):
    """Return a small table with a column of levels and missing values."""
    n = int(rng.integers(6, 10))
    levels = ["blue", "green", "red"][: int(rng.integers(2, 4))]
    table = pd.DataFrame({"age": rng.integers(0, 3, n) * 1.0, "colour": rng.choice(levels, n)})
    table["dose"], table["target"] = rng.integers(0, 2, n) * 1.0, rng.integers(0, 2, n)
    table.loc[:1, ["age", "dose", "target"]] = [[0.0, 0.0, 0], [2.0, 1.0, 1]]
    for column, chance in (("age", 0.6), ("colour", 0.4), ("dose", 0.3)):
        if rng.random() < chance:
            table.loc[int(rng.integers(2, n)), column] = None
    if rng.random() < 0.3:
        table["weight"] = rng.integers(1, 4, n) * 1.0
    return table


def best_of_columns(problem, asked, alpha):
    """Return the least objective of all trees over some thresholds, by the definition of each constraint."""
    data, thresholds, K = problem.data, problem.structure.thresholds, 2
    y, weight, X = data.y.astype(int), data.weights, thresholds.X[thresholds.group]
    above = [X[:, f] >= v for f, v in zip(thresholds.feature, thresholds.value, strict=True)]
    above.append(np.ones(data.n, bool))  # of a node that does not split
    base, best = min(weight[y != k].sum() for k in range(K)), np.inf
    for chosen in product(range(-1, len(thresholds)), repeat=3):
        if chosen[0] < 0 and max(chosen) >= 0:
            continue
        right = [above[k] for k in chosen]
        leaf = 2 * right[0] + np.where(right[0], right[2], right[1])
        lost = np.array([[weight[(leaf == k) & (y != label)].sum() for label in range(K)] for k in range(4)])
        cost = alpha * sum(k >= 0 for k in chosen)
        if lost.min(axis=1).sum() / base + cost >= best:
            continue
        splits = tree_of_thresholds(data, problem.topology, thresholds, np.array(chosen))
        for labels in product(range(K), repeat=4):
            alike = (0, 1) if chosen[1] < 0 <= chosen[0] else (), (2, 3) if chosen[2] < 0 <= chosen[0] else ()
            same_label = all(len({labels[k] for k in pair}) < 2 for pair in alike)
            value = sum(lost[k, label] for k, label in enumerate(labels)) / base + cost
            if value >= best or not same_label or (chosen[0] < 0 and len(set(labels)) > 1):
                continue
            tree = replace(splits, leaf_value=np.array(labels))
            tree = tree.with_scaling(data.encoding.offset, data.encoding.scale)
            if all(one.admits(tree, data) and _splits_on(one, chosen, thresholds, data) for one in asked):
                best = value
    return best


def _splits_on(constraint, chosen, thresholds, data):
    """Whether a given split is on its own feature: its definition asks where samples go, its rows for the feature."""
    if not isinstance(constraint, c.Split):
        return True
    k = chosen[constraint.node]
    return k >= 0 and thresholds.feature[k] in features_named(data, constraint.feature)


def case_of_columns(seed, folder):
    rng = np.random.default_rng(seed)
    table = table_of_columns(rng)
    path, alpha = folder / "columns.csv", float(rng.choice([0.0, 0.05, 0.3]))
    table.to_csv(path, index=False)
    weight = "weight" if "weight" in table else None
    data = mipforest.load(path, target="target", missing="branch", weight=weight)
    asked = [drawn_of_columns(rng, data.features.labels) for _ in range(int(rng.integers(1, 4)))]
    problem = mipforest.get_formulation("oct")(alpha=alpha).build(data, 2)
    problem.constrain(*asked)
    return problem, asked, best_of_columns(problem, asked, alpha)


@pytest.mark.slow
def test_constraints_on_columns_of_levels_and_missing_values_are_kept(tmp_path):
    for seed in range(FEW // 3):
        agree(seed, case_of_columns, folder=tmp_path)


@pytest.mark.slow
def test_many_constraints_on_columns_of_levels_and_missing_values_are_kept(tmp_path):
    for seed in range(FEW // 3, MANY // 40):
        agree(seed, case_of_columns, folder=tmp_path)


def case_of_numbers(seed):
    rng = np.random.default_rng(seed)
    n, loss = int(rng.integers(5, 9)), str(rng.choice(["squared", "absolute"]))
    X = rng.integers(0, 3, (n, 2)).astype(float)
    X[:2] = [[0.0, 0.0], [2.0, 2.0]]
    y = rng.integers(0, 9, n) + 0.5
    y[:2] = 0.5, 9.5
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else np.ones(n)
    alpha = float(rng.choice([0.0, 0.05]))
    drawn = [drawn_of_nodes(rng, X, 2) for _ in range(int(rng.integers(1, 3)))]
    asked = [one for k, one in enumerate(drawn) if all(type(one) is not type(other) for other in drawn[:k])]
    trees = EveryMean(X, y, weight, loss, alpha)
    best = trees.value[np.logical_and.reduce([trees.holds(one) for one in asked])].min(initial=np.inf)
    data = Dataset.from_arrays(X, y, features=["x0", "x1"], weights=weight, task="regression")
    problem = mipforest.get_formulation("ort")(alpha=alpha, loss=loss, N_min=1).build(data, 2)
    problem.constrain(*asked)
    return problem, asked, best


def test_trees_of_numbers_whose_nodes_are_told_what_to_split_on_are_those_of_an_enumeration():
    for seed in range(FEW):
        agree(seed, case_of_numbers)


def case_of_policies(seed):
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(5, 9)), int(rng.integers(2, 4)), int(rng.integers(2, 4))
    X, rewards = rng.integers(0, 3, (n, p)).astype(float), rng.integers(-4, 5, (n, K)).astype(float)
    X[:2], rewards[0, :2] = [[0.0] * p, [2.0] * p], [3.0, -3.0]
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else np.ones(n)
    alpha = float(rng.choice([0.0, 0.1]))
    data = Dataset.from_arrays(X, features=[f"x{j}" for j in range(p)], rewards=rewards, weights=weight)
    asked = []
    while not asked:
        drawn = [drawn_constraint(rng, p, K, n, False) for _ in range(int(rng.integers(1, 4)))]
        asked = [one for one in drawn if not isinstance(one, c.Recall | c.Precision | c.F1)]
    lost = weight[:, None] * (rewards.max(axis=1)[:, None] - rewards) / weight.sum()
    trees = EveryTree(X, data.y, weight, K, alpha, lost)
    best = trees.value[np.logical_and.reduce([trees.holds(one) for one in asked])].min(initial=np.inf)
    problem = mipforest.get_formulation("policy")(alpha=alpha).build(data, 2)
    problem.constrain(*asked)
    return problem, asked, best


def test_policies_within_constraints_are_those_of_an_enumeration():
    for seed in range(FEW):
        agree(seed, case_of_policies)


@pytest.mark.slow
def test_many_policies_within_constraints_are_those_of_an_enumeration():
    for seed in range(FEW, 1500):
        agree(seed, case_of_policies)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_files_with_the_rows_have_the_optimum_of_an_enumeration(tmp_path, solver):
    """The rows of constraints, written as a model of MPS, read back and solved."""
    cases = one_case, case_of_numbers, case_of_policies
    for seed in range(200):
        problem, asked, best = cases[seed % 3](seed)
        problem.model.write(tmp_path / "constrained.mps")
        solution = solve(Model.read(tmp_path / "constrained.mps"), solver, time_limit=60, gap=0.0)
        said = (seed, [str(one) for one in asked], solution.status, best)
        if not np.isfinite(best):
            assert solution.status is Status.INFEASIBLE, said
        elif not any("violates" in warning for warning in solution.warnings):  # SCIP 10, once: by 0.4
            assert solution.objective == pytest.approx(best, abs=1e-5), said


@pytest.mark.slow
def test_many_trees_of_numbers_are_those_of_an_enumeration():
    for seed in range(FEW, 500):
        agree(seed, case_of_numbers)


@pytest.mark.slow
def test_many_trees_within_constraints_are_those_of_an_enumeration():
    for seed in range(FEW, MANY):
        agree(seed, of_nodes=bool(seed % 2), depth=2 if seed % 5 else 3)


def test_any_condition_is_kept_by_listing_and_refused_where_there_are_rows_alone():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, (12, 3)).astype(float)
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 1)).astype(int)
    trees = EveryTree(X, y, np.ones(12), 2, 0.0)
    problem = mipforest.get_formulation("oct")(alpha=0.0).build(Dataset.from_arrays(X, y), 2)
    problem.require(lambda tree: tree.features_used().overall != (0, 1), "not x0 and x1 alone")
    good = ~((trees.used() == [True, True, False]).all(axis=1))
    result = problem.solve(time_limit=60, gap=0.0)
    assert result.status == "optimal"
    assert same(result.objective, trees.value[good].min())
    (held,) = result.constraints
    assert str(held.constraint) == "condition not x0 and x1 alone"
    assert held.value == 1.0
    with pytest.raises(Unsupported, match="not x0 and x1 alone is a function of the tree"):
        problem.solve("highs", time_limit=10)


class Ignored(c.Forbid):
    """A constraint of which searches are told nothing."""

    def restrict(self, own, problem, thresholds):
        return own


def test_a_constraint_that_a_search_ignores_makes_no_wrong_claim():
    rng = np.random.default_rng(7)
    X = rng.integers(0, 4, (20, 3)).astype(float)
    data = Dataset.from_arrays(X, (X[:, 0] > 1).astype(int), features=["x0", "x1", "x2"])
    problem = mipforest.get_formulation("oct")(alpha=0.0).build(data, 2)
    problem.constrain(Ignored(("x0",)))
    result = problem.solve("exact-search", time_limit=20)
    assert result.status != "optimal"
    assert "x0" not in result.features_used
    assert result.bound == 0.0


@pytest.mark.slow
def test_a_deep_search_begins_with_cart_within_the_constraints():
    data = mipforest.load("synthetic:tree,depth=4,n=4000,p=8,label_noise=0.2,seed=1", scaling="minmax")
    names = [str(name) for name in data.features.labels]
    for constraint in (c.Forbid((names[0],)), c.AtMostFeatures(3), c.MinLeaf(50)):
        problem = mipforest.get_formulation("oct")().build(data, 4, whole=False)
        problem.constrain(constraint)
        result = problem.solve("exact-search", time_limit=0.5)
        assert less(result.objective, 1.0)  # that of a leaf
        assert constraint.admits(result.tree, data)


def test_a_search_of_three_levels_begins_with_a_tree_of_two():
    data = mipforest.load("synthetic:tree,depth=3,n=4000,p=8,label_noise=0.2,seed=1", scaling="minmax")
    names = [str(name) for name in data.features.labels]
    asked = c.Require((names[7],)), c.MinLeaf(50)
    problem = mipforest.get_formulation("oct")().build(data, 3, whole=False)
    problem.constrain(*asked)
    result = problem.solve("exact-search", time_limit=1.0)
    assert less(result.objective, 1.0)  # that of a leaf
    assert all(one.admits(result.tree, data) for one in asked)


def fewest_errors(X, y, weight, member, depth, least, barred=(), t=0):
    """Return the fewest errors of trees of a depth with at most 0, 1, 2, ... splits, on some samples.

    ``barred`` are pairs of a node and a feature that it may not split on; t is the root.
    """
    of_class = np.bincount(y[member], weight[member], 2)
    found = np.full(2**depth, np.inf if member.sum() < least else of_class.sum() - of_class.max())
    if depth == 0 or found[0] == 0:
        return found
    for j, x in enumerate(X.T):
        for at in np.unique(x[member])[1:] if (t, j) not in barred else ():
            sides = ((x < at, 2 * t + 1), (x >= at, 2 * t + 2))
            left, right = (
                fewest_errors(X, y, weight, member & side, depth - 1, least, barred, child)
                for side, child in sides
            )
            for a, b in np.ndindex(len(left), len(right)):
                found[a + b + 1] = min(found[a + b + 1], left[a] + right[b])
    return np.minimum.accumulate(found)


@pytest.mark.first_cases(8)
@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("seed", range(40))
def test_limits_on_the_number_of_splits_are_those_of_all_trees(seed, depth, monkeypatch):
    by_price, is_barred = seed % 4 == 1, seed % 3 == 2
    if by_price:  # whose first prices are guessed; else the search keeps the limit
        monkeypatch.setattr("mipforest.searches.univariate.constrained.LONG", 0)
        monkeypatch.setattr("mipforest.searches.exact.search.are_faster", lambda *_: False)
    rng = np.random.default_rng([seed, depth])
    n, p, K = (40, 5, 2 + seed % 2) if depth == 3 else (24, 3, 2)
    X = rng.integers(0, 2 + (seed % 3 == 0), (n, p)).astype(float)
    y, least, alpha = rng.integers(0, K, n), (1, 3)[seed // 2 % 2], (0.0, 0.02)[seed // 4 % 2]
    y[:K] = np.arange(K)
    weight = np.array([1.0, 1.5, 1.25])[y] if seed % 5 == 3 else np.ones(n)
    barred = [(0, 0), (2, 1), (4, 2)] if is_barred else []
    fewest = fewest_errors(X, y, weight, np.ones(n, dtype=bool), depth, least, barred)
    base = weight.sum() - np.bincount(y, weight).max()
    data = Dataset.from_arrays(X, y, weights=weight)
    for most in range(1, 2**depth - 1, depth - 2):
        problem = mipforest.get_formulation("oct")(alpha=alpha, N_min=least).build(data, depth)
        names = [str(name) for name in data.features.labels]
        problem.constrain(c.AtMostSplits(most), *(c.Forbid((names[j],), (t,)) for t, j in barred))
        result = problem.solve("exact-search", time_limit=60)
        assert result.status == "optimal"
        assert same(result.objective, min(fewest[k] / base + alpha * k for k in range(most + 1)))
        assert at_most(result.bound, result.objective)
        assert result.tree.n_splits <= most


def test_values_and_bounds_that_are_told_are_those_of_trees_within_a_limit_on_splits(monkeypatch):
    for name, value in (("LONG", 0), ("WATCHED_EVERY", 0.0002)):
        monkeypatch.setattr(f"mipforest.searches.exact.cover_search.{name}", value)
    monkeypatch.setattr("mipforest.problem.driver.PROGRESS_INTERVAL", 0.0)
    data = mipforest.load("synthetic:tree,depth=3,n=1500,p=6,label_noise=0.2,seed=2", scaling="minmax")
    problem = mipforest.get_formulation("oct")(alpha=0.0).build(data, 3, whole=False)
    problem.constrain(c.AtMostSplits(4))
    told = []
    result = problem.solve("exact-search", time_limit=60, on_progress=told.append)
    assert result.status == "optimal"
    bounds = [event.bound for event in told if event.bound is not None]
    assert max(bounds) > 0
    assert at_most(max(bounds), result.objective)
    assert at_most(result.objective, min(event.objective for event in told if event.objective is not None))


def labelings(X, samples, depth):
    """Return the sets of samples (as bits) that some tree of a depth predicts the second class, of some samples."""
    here = sum(1 << int(i) for i in samples)
    found = {0, here}
    if depth == 0:
        return found
    for x in X.T:
        for at in np.unique(x[samples])[1:]:
            left, right = (
                labelings(X, samples[side], depth - 1) for side in (x[samples] < at, x[samples] >= at)
            )
            found |= {a | b for a in left for b in right}
    return found


@pytest.mark.first_cases(6)
@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("seed", range(60))
def test_limits_on_labels_are_those_of_all_labelings(seed, depth):
    rng = np.random.default_rng(seed)
    n = 10
    X = rng.integers(0, 4, (n, 2)).astype(float)
    X[:2] = [[0.0, 0.0], [3.0, 3.0]]
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    data = Dataset.from_arrays(X, y, features=["x0", "x1"])
    problem = mipforest.get_formulation("oct")(alpha=0.0).build(data, depth)
    share = float(rng.choice([0.2, 0.4, 0.6, 0.9]))
    kinds = [c.LimitLabel("1", share), c.Recall("1", share), c.Precision("1", share), c.F1("1", share)]
    asked = [kinds[k] for k in rng.choice(4, 1 + seed % 2, replace=False)]
    problem.constrain(*asked)
    chosen = np.array([[bits >> i & 1 for i in range(n)] for bits in labelings(X, np.arange(n), depth)])
    hits, all_hit = (chosen * y).sum(axis=1), chosen.sum(axis=1)
    within = {
        "limit-label": all_hit <= share * n + 1e-9,
        "recall": hits >= share * y.sum() - 1e-9,
        "precision": hits >= share * all_hit - 1e-9,
        "f1": 2 * hits >= share * (all_hit + y.sum()) - 1e-9,
    }
    kept = np.logical_and.reduce([within[one.kind] for one in asked])
    errors = (chosen != y).sum(axis=1)[kept]
    result = problem.solve("exact-search", time_limit=60, gap=0.0)
    if not len(errors):
        assert result.solution.status is Status.INFEASIBLE
        return
    assert result.status == "optimal"
    assert result.verified, result.failed_checks
    assert (np.asarray(result.tree.predict(X)) != y).sum() == errors.min()  # exact: a count
    assert all(one.admits(result.tree, problem.data) for one in asked)
