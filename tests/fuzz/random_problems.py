"""Small random problems of every model: data, hyperparameters, and constraints of ``mipforest.constraints``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mipforest import constraints
from mipforest.data import Dataset
from mipforest.problem.formulation import Formulation
from mipforest.problem.problem import Problem

Draw = Callable[[np.random.Generator], Any]


def one_of(*values: Any) -> Draw:
    """Draw one of these values."""
    return lambda rng: values[int(rng.integers(len(values)))]


SPLITS = {"alpha": one_of(0.0, 0.02, 0.1, 0.6), "N_min": one_of(1, 1, 2, 3)}
HYPERPLANES = SPLITS | {"mu": one_of(0.005, 0.05, 0.001)}
LOSS = {"loss": one_of("squared", "absolute")}
LEAVES = {"regulariser": one_of("l1", "l0"), "lam": one_of(0.0, 0.01, 0.2)}
PRESCRIPTIONS = {
    "mu": one_of(0.0, 0.5, 1.0),
    "n_treatment": one_of(1, 2),
    "better": one_of("lower", "higher"),
    "outcome_scale": one_of("none", "standard"),
}
LINEAR = {"C": one_of(0.001, 0.1, 1.0, 10.0, 300.0), "epsilon": one_of(1e-3, 1e-2, 0.1)}
LEVELS = LINEAR | {"tangents": one_of("V0", "V1")}
CARDS = {"rules": one_of(1, 2, 3), "tangents": one_of("V0", "V3"), "min_points": one_of(-5, -2, 0)}
#: Hyperparameters of every model, by name.
PARAMETERS: dict[str, dict[str, Draw]] = {
    "oct": SPLITS,
    "oct-h": HYPERPLANES,
    "semi-oct": SPLITS
    | {"totals": one_of((("0", 0.4),), (("0", 1.0), ("1", 2.0))), "total_price": one_of(0.3, 1.0)},
    "ort": SPLITS | LOSS,
    "multi": SPLITS | {"target_weights": one_of("variance", "equal")},
    "poisson": SPLITS | {"tangents": one_of(4, 32)},
    "survival": SPLITS | {"tangents": one_of(4, 32)},
    "quantile": SPLITS | {"tau": one_of(0.5, 0.1, 0.8)},
    "ort-h": HYPERPLANES | LOSS,
    "ort-l": SPLITS | LOSS | LEAVES,
    "ort-lh": HYPERPLANES | LOSS | LEAVES,
    "margot": LINEAR,
    "hfs-margot": LINEAR | {"B": one_of(1, 2)},
    "sfs-margot": LINEAR | {"B": one_of(1, 2), "alpha": one_of(0.01, 1.0)},
    "svm-leaves": LINEAR,
    "olct": LEVELS,
    "budgeted-olct": LEVELS | {"B": one_of(1, 2)},
    "univariate-olct": LEVELS,
    "loss-optimal": LEVELS
    | {
        "loss": one_of("misclassification", "misclassification", "hinge", "logistic"),
        "regulariser": one_of("l1", "l2", "none"),
        "selection": one_of("none", "hard", "soft"),
        "levels": one_of("all", "all", "last"),
        "alpha": one_of(0.01, 1.0),
    },
    "policy": SPLITS,
    "policy-h": HYPERPLANES,
    "opt": SPLITS | PRESCRIPTIONS,
    "opt-l": SPLITS | PRESCRIPTIONS | {"lam": one_of(0.05, 0.5, 5.0)},
    "opt-lh": SPLITS | PRESCRIPTIONS | {"lam": one_of(0.05, 0.5, 5.0), "epsilon": one_of(0.005, 0.05, 0.001)},
    "opt-h": SPLITS | PRESCRIPTIONS | {"epsilon": one_of(0.005, 0.05, 0.001)},
    "ors": CARDS,
    "ogrs": CARDS,
    "miret": {
        "ensemble": one_of("random-forest:trees=5"),
        "alpha": one_of(0.0, 0.05, 3.0),
        "proximity": one_of(0.6, 1.0, 1.5),
        "epsilon": one_of(1e-3, 1e-2),
    },
}


@dataclass(frozen=True)
class Constraint:
    """A helper of ``mipforest.constraints`` with its arguments, for the package and for the literal model."""

    name: str
    given: tuple[Any, ...]
    literal: tuple[Any, ...]
    named: dict[str, Any] = field(default_factory=dict)

    def add(self, problem: Problem) -> None:
        getattr(constraints, self.name)(problem, *self.given, **self.named)

    def __str__(self) -> str:
        return f"{self.name}{tuple(np.asarray(value).tolist() for value in self.literal)}"


def random_constraint(rng: np.random.Generator, data: Dataset, depth: int) -> Constraint | None:
    """Draw a helper and its arguments; ``None`` where the data do not suit it."""
    j, n_branches, classes = int(rng.integers(data.p)), 2**depth - 1, data.task == "classification"
    feature = data.features.labels[j]
    kinds = ["forbid", "require", "budget", "path", "split", "leaf"]
    kind = one_of(*kinds, *(["monotone", "parity", "opportunity", "negatives"] if classes else []))(rng)
    if kind == "forbid":
        nodes = sorted({int(t) for t in rng.integers(0, n_branches, 2)})
        return Constraint("forbid_features", (feature,), (j, nodes), {"nodes": nodes})
    if kind == "require":
        return Constraint("require_features", (feature,), (j,))
    if kind == "budget":
        return Constraint("feature_budget", (1,), (1,))
    if kind == "path":
        return Constraint("once_per_path", (), ())
    if kind == "split":
        t, column = int(rng.integers(n_branches)), np.unique(data.X_raw[:, j])
        if len(column) < 2:
            return None
        k = int(rng.integers(len(column) - 1))
        threshold = float((column[k] + column[k + 1]) / 2)
        scaled = float((threshold - data.encoding.offset[j]) / data.encoding.scale[j])
        return Constraint("fix_split", (feature, threshold), (t, j, scaled), {"node": t})
    if kind == "leaf":
        least = int(rng.integers(2, data.n // 2 + 2))
        return Constraint("min_samples_leaf", (least,), (least,))
    if kind == "monotone":
        up = bool(rng.random() < 0.5)
        return Constraint("monotone", (feature,), (j, up), {"increasing": up})
    k = int(rng.integers(len(data.classes)))
    positive = {"positive": data.classes[k]}
    if kind == "negatives":
        most = int(rng.integers(0, 2))
        return Constraint("max_false_negatives", (most,), (most, k), positive)
    group, tolerance = np.arange(data.n) % 2, float(one_of(0.0, 0.2, 0.4)(rng))
    name = "demographic_parity" if kind == "parity" else "equal_opportunity"
    among = group if kind == "parity" else group[data.y == k]
    if len(np.unique(among)) < 2:
        return None
    return Constraint(name, (group, tolerance), (group, tolerance, k), positive)


def random_data(rng: np.random.Generator, model: type[Formulation]) -> Dataset:
    """Draw few samples: on a grid or not, with repeated samples, constant features, and units of any size."""
    n, p = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    X = rng.integers(0, 5, (n, p)).astype(float) if rng.random() < 0.5 else rng.random((n, p))
    if rng.random() < 0.2:
        X[-1] = X[0]
    if p > 1 and rng.random() < 0.1:
        X[:, -1] = 2.0
    X = (X + one_of(0.0, 0.0, 100.0)(rng)) * 10.0 ** one_of(0, 0, -9, 9)(rng)
    if model.task == "prescription":
        had = rng.permutation(np.arange(n) % int(rng.integers(1, 4)))
        return Dataset.from_arrays(
            X, np.round(rng.normal(size=n), 1), treatments=had, scaling=model.scaling, name="fuzz"
        )
    if model.task == "decision":
        rewards = np.round(rng.normal(size=(n, int(rng.integers(2, 4)))), 1)
        rewards[0, 0] += 5.0  # there is something to decide
        return Dataset.from_arrays(X, rewards=rewards, scaling=model.scaling, name="fuzz")
    if model.name == "ors":  # features of 0 and 1
        X = (X.min(axis=0) < X).astype(float)
    if model.name == "survival":
        event, time = rng.random(n) < 0.7, np.round(rng.exponential(size=n), 1)
        event[:2], time[:2] = True, [0.1, 0.5]
        return Dataset.from_arrays(X, time, event=event, scaling=model.scaling, name="fuzz")
    if model.task == "multi-output":
        if rng.random() < 0.5:
            Y = np.round(rng.normal(size=(n, int(rng.integers(1, 4)))), 1)
            Y[:2] = [[0.0], [1.0]]
            task = "regression"
        else:
            Y, task = rng.integers(0, 3, (n, int(rng.integers(1, 4)))), "classification"
            Y[:2] = [[0], [1]]
        names = [f"y{t}" for t in range(Y.shape[1])]
        return Dataset.from_arrays(X, Y, targets=names, task=task, scaling=model.scaling, name="fuzz")  # type: ignore[arg-type]
    if model.name == "poisson":
        y = rng.integers(0, 4, n) / 2.0
        y[:2] = [0, 1]
    elif model.task == "regression":
        y = np.round(rng.normal(size=n), 1)
    else:
        y = rng.integers(0, 2 if model.two_classes else 3, n)
        y[:2] = [0, 1]
    others = X[rng.integers(0, n, 3)][:, rng.permutation(p)] if model.takes_unlabelled else None
    return Dataset.from_arrays(X, y, task=model.task, scaling=model.scaling, name="fuzz", unlabelled=others)
