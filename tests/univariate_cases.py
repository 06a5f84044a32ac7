"""Small problems for searches over univariate trees: ties, duplicates, weights, costs of classes, leaf sizes."""

from dataclasses import fields, replace

import numpy as np
from enumerate_trees import best_tree_value
from scipy import special

from mipforest.data import Dataset
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss, LabelsLoss, PoissonLoss, error_loss
from mipforest.problem.structure import TreeCharges, UnivariateProblem
from mipforest.searches.local import LocalProblem

LOSSES = ("classes", "squared", "absolute")


def loss_of(name, *, costs=None, level=0.5):
    """The loss that a case names."""
    if name == "classes":
        return ClassLoss(costs)
    return PoissonLoss() if name == "deviance" else error_loss(name, level)


def leaf_cost(loss, y, weight, costs, level=0.5):
    """Cost of a leaf with its best prediction, by the definition."""
    if loss == "classes":
        return lambda rows: (weight[rows, None] * costs[y[rows]]).sum(axis=0).min()
    if loss == "squared":
        return lambda rows: (weight[rows] * (y[rows] - np.average(y[rows], weights=weight[rows])) ** 2).sum()

    if loss == "deviance":
        return lambda rows: deviance(y[rows], weight[rows])

    def pinball(rows):
        errors = y[rows, None] - y[rows]
        return (
            (2.0 * weight[rows, None] * np.maximum(level * errors, (level - 1.0) * errors)).sum(axis=0).min()
        )

    return pinball


def cost_in_file(problem):
    """Cost of a leaf by the problem of a certificate."""
    loss = "classes" if problem.loss == "errors" else problem.loss
    y = problem.y.astype(int) if loss == "classes" else problem.y
    each = [
        leaf_cost(loss, of, problem.weight, costs, problem.level)
        for of, costs in zip(y.T, problem.costs, strict=True)
    ]
    return lambda rows: sum(cost(rows) for cost in each)


def cost_of_targets(data, target_weights):
    """Cost of a leaf that predicts several targets best, numbers or labels, by the definition."""

    def cost(rows):
        rows, total = list(rows), 0.0
        for of, v in zip(data.y[rows].T, target_weights, strict=True):
            w = data.weights[rows]
            if data.target_classes:
                total += v * (w.sum() - np.bincount(of, w).max())
            else:
                total += v * (w * (of - np.average(of, weights=w)) ** 2).sum()
        return total

    return cost


def deviance(y, weight):
    """Half the Poisson deviance of samples around their mean."""
    mean = np.average(y, weights=weight)
    return (weight * (special.kl_div(y, mean) if mean > 0 else 0.0 * y)).sum()


class Case:
    """A small problem with ties, duplicates, constant features, weights, costs of classes and leaf sizes."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n, p, K = int(rng.integers(6, 13)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
        X = rng.integers(0, int(rng.integers(2, 7)), (n, p)).astype(float)
        if seed % 4 == 0:
            X[:, 0] = 3.0
        if seed % 5 == 0:
            X[n // 2 :] = X[: n - n // 2]
        self.loss = LOSSES[seed % 3]
        if self.loss == "squared" and seed // 3 % 3 == 2:
            self.loss = "deviance"
        self.n_min = min(n, int(rng.integers(1, 6)) if rng.random() < 0.5 else 1)
        self.depth = int(rng.integers(1, 5)) if n < 9 else int(rng.integers(1, 4))
        self.split_cost = float(rng.choice([0.0, 0.3, 1.0]))
        self.level = (0.5, 0.9, 0.5, 0.2)[seed // 3 % 4] if self.loss == "absolute" else 0.5
        weight = None if rng.random() < 0.5 else rng.choice([1.0, 2.0, 0.5, 0.37], n)
        costs = None
        if self.loss == "classes":
            y = rng.integers(0, K, n)
            y[:2] = [K - 1, 0]
            if weight is not None and seed % 6 == 0:
                weight = np.array([0.37, 1.0, 0.4**0.5, 2.3])[y]
            if rng.random() < 0.3:
                costs = rng.random((K, K))
                np.fill_diagonal(costs, 0.0 if rng.random() < 0.7 else 0.1)
        else:
            y = rng.integers(0, 8, n) / 2 - 1 if rng.random() < 0.5 else rng.random(n)
            y[:2] = [y[0], y[0] + 1.0]
            y = np.abs(y) if self.loss == "deviance" else y
            self.split_cost *= 0.2
        task = "classification" if self.loss == "classes" else "regression"
        self.data = Dataset.from_arrays(X, y, task=task)
        self.thresholds = find_thresholds(self.data)
        self.cost = leaf_cost(
            self.loss,
            y,
            np.ones(n) if weight is None else weight,
            1.0 - np.eye(K) if costs is None else costs,
            self.level,
        )
        self.problem = UnivariateProblem(
            thresholds=self.thresholds,
            y=y,
            loss=loss_of(self.loss, costs=costs, level=self.level),
            split_cost=self.split_cost,
            N_min=self.n_min,
            weight=weight,
        )

    def enumerated(self, rows, depth):
        """Least cost of a tree on some samples."""
        if len(rows) < self.n_min:
            return np.inf
        return best_tree_value(
            self.data.X[rows], lambda own: self.cost(rows[list(own)]), depth, self.split_cost, self.n_min
        )

    def value(self, chosen):
        """Cost of the tree with these thresholds."""
        here, total = {0: np.arange(self.data.n)}, 0.0
        for t in range(2 ** (self.depth + 1) - 1):
            rows = here.pop(t, np.zeros(0, int))
            if not len(rows):
                continue
            k = chosen[t] if t < 2**self.depth - 1 else -1
            if k < 0:
                assert len(rows) >= self.n_min
                total += self.cost(rows)
                continue
            right = self.data.X[rows, self.thresholds.feature[k]] >= self.thresholds.value[k]
            total += self.split_cost
            here[2 * t + 1], here[2 * t + 2] = rows[~right], rows[right]
        return total


class CaseOfTargets(Case):
    """As :class:`Case`, with two or three targets: numbers, or labels, of which one may have a class more."""

    def __init__(self, seed):
        super().__init__(seed)
        rng, n, labels = np.random.default_rng([seed, 1]), self.data.n, seed % 2 == 0
        T = int(rng.integers(2, 4))
        y = rng.integers(0, 2 + np.arange(T) % 2, (n, T)) if labels else rng.integers(0, 8, (n, T)) / 2 - 1
        y[0] = y[1] + 1 - 2 * (y[1] > 0)
        self.loss = "labels" if labels else "squared"
        weight, v = self.problem.weight, rng.choice([1.0, 2.0, 0.3], T) if labels else np.ones(T)
        self.data = Dataset.from_arrays(
            self.data.X_raw, y, task="classification" if labels else "regression", weights=weight
        )
        y = self.data.y
        self.cost = cost_of_targets(self.data, v)
        loss = LabelsLoss(v) if labels else error_loss("squared")
        self.problem = replace(self.problem, y=y, loss=loss)


def hold_for_all(check, cases):
    """Call a check with every case; fail once, naming the cases it fails for and what each says.

    For slow tests of hundreds of cases: as parameters they would cost every run of the default tests seconds.
    """
    failed = {}
    for case in cases:
        try:
            check(case)
        except AssertionError as error:
            failed[case] = str(error)
    assert not failed, "\n".join(f"{case}: {why}" for case, why in failed.items())


# ---------------------------------------------------------------------- for the local search


def local(problem):
    """The same problem for the local search."""
    charges = {field.name: getattr(problem, field.name) for field in fields(TreeCharges)}
    return LocalProblem(X=problem.thresholds.X[problem.thresholds.group], **charges)


def noisy(seed=0, *, n=150, p=5, classes=3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)), 2)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.4 * rng.random(n), np.linspace(0.4, 1.4, classes - 1))
    return LocalProblem(X=X, y=y, loss=ClassLoss())


def medium(seed, *, n=60, classes=3):
    problem = noisy(seed, n=n, classes=classes)
    return Dataset.from_arrays(problem.X, problem.y)


def numbers(seed=0, *, loss="squared", n=120):
    problem = noisy(seed, n=n)
    rng = np.random.default_rng(seed)
    y = np.sin(5 * problem.X[:, 0]) + problem.X[:, 1] + 0.1 * rng.random(n)
    return replace(problem, y=y, loss=error_loss(loss))
