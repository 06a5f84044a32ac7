"""Solve small random problems with every model, variant and solver: no wrong word about a tree or an optimum.

python tests/fuzz/fuzz_models.py --minutes 30 --seed 0

A failure names its seed and case; ``--seed S --case K`` repeats it alone.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

import formulations  # noqa: F401 - before the path below, which has a folder of this name

sys.path.append(str(Path(__file__).parents[1]))  # the independent routes, when run as a command

from enumerate_trees import absolute_loss, best_tree_value, misclassified, squared_loss
from independent_lp import HINGE, enumerated_errors, enumerated_tree

from mipforest.data import DataError, Dataset
from mipforest.errors import EnsembleError
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import Problem
from mipforest.problem.registry import formulation_classes
from mipforest.problem.result import Result
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.registry import solver_classes
from mipforest.testing.formulation_trial import random_oblique_tree, random_tree

#: Seconds for a solve; bounds and values are compared also where it ends the solve.
TIME_LIMIT = 5.0

#: Solvers that take turns, where they are installed; the first has half of the cases.
SOLVERS = ("highs", "scip", "gurobi")

#: Relative difference of two values that count as equal: gaps and tolerances of solvers.
EQUAL = 2e-5

#: Variants that assume something of the data, or leave out trees: their bounds hold for themselves.
OWN_BOUND = {"miret": ("improved",)} | dict.fromkeys(
    ("margot", "hfs-margot", "sfs-margot", "olct", "budgeted-olct", "univariate-olct", "loss-optimal"),
    ("paper",),
)

Draw = Callable[[np.random.Generator], Any]


def one_of(*values: Any) -> Draw:
    """Draw one of these values."""
    return lambda rng: values[int(rng.integers(len(values)))]


SPLITS = {"alpha": one_of(0.0, 0.02, 0.1, 0.6), "N_min": one_of(1, 1, 2, 3)}
HYPERPLANES = SPLITS | {"mu": one_of(0.005, 0.05, 0.001)}
LOSS = {"loss": one_of("squared", "absolute")}
LEAVES = {"regulariser": one_of("l1", "l0"), "lam": one_of(0.0, 0.01, 0.2)}
LINEAR = {"C": one_of(0.001, 0.1, 1.0, 10.0, 300.0), "epsilon": one_of(1e-3, 1e-2, 0.1)}
LEVELS = LINEAR | {"tangents": one_of("V0", "V1")}
#: Hyperparameters of every model, by name.
PARAMETERS: dict[str, dict[str, Draw]] = {
    "oct": SPLITS,
    "oct-h": HYPERPLANES,
    "ort": SPLITS | LOSS,
    "ort-h": HYPERPLANES | LOSS,
    "ort-l": SPLITS | LOSS | LEAVES,
    "ort-lh": HYPERPLANES | LOSS | LEAVES,
    "margot": LINEAR,
    "hfs-margot": LINEAR | {"B": one_of(1, 2)},
    "sfs-margot": LINEAR | {"B": one_of(1, 2), "alpha": one_of(0.01, 1.0)},
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
    "miret": {
        "ensemble": one_of("random-forest:trees=5"),
        "alpha": one_of(0.0, 0.05, 3.0),
        "proximity": one_of(0.6, 1.0, 1.5),
        "epsilon": one_of(1e-3, 1e-2),
    },
}


@dataclass
class Figures:
    """What came out of a run."""

    solves: Counter[str] = field(default_factory=Counter)
    proven: int = 0
    trees: int = 0
    enumerated: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def random_data(rng: np.random.Generator, model: type[Formulation]) -> Dataset:
    """Draw few samples: on a grid or not, with repeated samples, constant features, and units of any size."""
    n, p = int(rng.integers(4, 11)), int(rng.integers(1, 4))
    X = rng.integers(0, 5, (n, p)).astype(float) if rng.random() < 0.5 else rng.random((n, p))
    if rng.random() < 0.2:
        X[-1] = X[0]
    if p > 1 and rng.random() < 0.1:
        X[:, -1] = 2.0
    X = (X + one_of(0.0, 0.0, 100.0)(rng)) * 10.0 ** one_of(0, 0, -9, 9)(rng)
    if model.task == "regression":
        y = np.round(rng.normal(size=n), 1)
    else:
        y = rng.integers(0, 2 if model.two_classes else 3, n)
        y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, task=model.task, scaling=model.scaling, name="fuzz")


def check(rng: np.random.Generator, solvers: tuple[str, ...], figures: Figures) -> Iterator[str]:
    """Draw a problem and check it in all variants; yield what is wrong."""
    models = formulation_classes()
    name = one_of(*PARAMETERS)(rng)
    model = models[name]
    values = {key: draw(rng) for key, draw in PARAMETERS[name].items()}
    data = random_data(rng, model)
    depth = int(rng.choice([1, 2, 3], p=[0.45, 0.45, 0.1]))
    solver = solvers[0] if rng.random() < 0.5 else one_of(*solvers)(rng)
    what = f"{name} depth {depth} n {data.n} p {data.p} {solver} {values}"
    results: dict[str, Result] = {}
    for variant in model.variants:
        try:
            problem = model(variant=variant, **values).build(data, depth)
        except (ParameterError, DataError, EnsembleError):
            figures.refused += 1
            continue
        yield from (f"{what} {variant}: {text}" for text in _trees(problem, rng, figures))
        result = problem.solve(solver, time_limit=TIME_LIMIT, gap=1e-6)
        figures.solves[f"{name} {solver}"] += 1
        figures.proven += result.status == "optimal"
        results[variant] = result
        if result.tree is not None and not result.verified:
            yield f"{what} {variant}: {result.doubts}"
        if result.tree is None and result.status != "limit":
            yield f"{what} {variant}: {result.status}, no tree"
    yield from (f"{what}: {text}" for text in _claims(name, results))
    expected = _enumerated(model(**values), data, depth)
    if expected is not None:
        figures.enumerated += 1
        yield from (f"{what}: {text}" for text in _against(expected, name, results))


def _trees(problem: Problem, rng: np.random.Generator, figures: Figures) -> Iterator[str]:
    """Compare random trees with their points of the model: objective, and the tree decoded again."""
    formulation, instance = problem.formulation, problem.instance
    for make in (random_tree, random_oblique_tree):
        tree = make(problem, rng)
        value = formulation.evaluate(tree, instance)
        try:
            values = problem.encoded(tree)
        except ValueError:
            continue
        if not np.isfinite(value) or problem.worst_violation(values):
            continue  # outside the formulation's limits
        figures.trees += 1
        objective = problem.model.objective(values)
        if not _equal(objective, value):
            yield f"{make.__name__}: the model says {objective!r}, the definition {value!r}"
        decoded = formulation.decode(values, instance)
        again = formulation.evaluate(decoded, instance)
        if again > value and not _equal(again, value):
            yield f"{make.__name__}: decoded, its value is {again!r} in place of {value!r}"
        alone = [int(decoded.apply(x[None])[0]) for x in problem.data.X]
        if alone != decoded.apply(problem.data.X).tolist():
            yield f"{make.__name__}: decoded, samples take other sides one by one than all at once"


def _claims(name: str, results: dict[str, Result]) -> Iterator[str]:
    """Check that no variant's bound exceeds a value that another one attains."""
    for variant, result in results.items():
        for other, attained in results.items():
            if variant != other and (variant in OWN_BOUND.get(name, ()) or "improved" in (variant, other)):
                continue
            if attained.tree is None:
                continue
            value = attained.evaluated_objective
            if result.bound > value and not _equal(result.bound, value):
                yield f"{variant} proves {result.bound!r}, {other} attains {value!r}"


def _enumerated(formulation: Formulation, data: Dataset, depth: int) -> float | None:
    """Return the optimum by trying all trees, where there is a route and it is quick."""
    X, values = data.X, formulation.parameters()
    if formulation.name == "oct" and depth <= 2:
        baseline = misclassified(data.y)(list(range(data.n)))
        cost = values["alpha"] * baseline
        return best_tree_value(X, misclassified(data.y), depth, cost, values["N_min"]) / max(baseline, 1)
    if formulation.name == "ort" and depth <= 2:
        loss = (squared_loss if values["loss"] == "squared" else absolute_loss)(data.y)
        baseline = loss(list(range(data.n)))
        if baseline <= 1e-9:
            return None
        return best_tree_value(X, loss, depth, values["alpha"] * baseline, values["N_min"]) / baseline
    literal = formulation.name == "loss-optimal" and depth == 2 and data.n <= 5
    if (
        not literal
        or values["regulariser"] != "l1"
        or values["selection"] != "none"
        or values["levels"] != "all"
    ):
        return None
    C, epsilon = float(np.ravel(values["C"])[0]), values["epsilon"]
    if values["loss"] == "misclassification":
        return enumerated_errors(X, data.sign, C, epsilon)
    return enumerated_tree(X, data.sign, (C, C), epsilon, HINGE) if values["loss"] == "hinge" else None


def _against(expected: float, name: str, results: dict[str, Result]) -> Iterator[str]:
    for variant, result in results.items():
        if result.tree is not None and result.objective < expected and not _equal(result.objective, expected):
            yield f"{variant} has {result.objective!r}, the least of all trees is {expected!r}"
        bounded = variant not in OWN_BOUND.get(name, ())
        if bounded and result.bound > expected and not _equal(result.bound, expected):
            yield f"{variant} proves {result.bound!r}, a tree attains {expected!r}"


def _equal(first: float, second: float) -> bool:
    return abs(first - second) <= max(EQUAL * abs(second), FEASIBILITY_TOLERANCE)


def fuzz(seed: int, *, minutes: float = np.inf, cases: int | None = None, only: int | None = None) -> Figures:
    """Check problems until the time or their number is over; an exception fails like a wrong answer."""
    classes = solver_classes()
    solvers = tuple(name for name in SOLVERS if classes[name].available())
    figures, deadline, k = Figures(), monotonic() + 60 * minutes, only or 0
    while monotonic() < deadline and (cases is None or k < cases):
        try:
            found = list(check(np.random.default_rng((seed, k)), solvers, figures))
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        for text in found:
            figures.failures.append(f"seed {seed} case {k}: {text}")
            print(figures.failures[-1], flush=True)
        k += 1
        if only is not None:
            break
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, default=None)
    arguments = parser.parse_args()
    figures = fuzz(arguments.seed, minutes=arguments.minutes, only=arguments.case)
    for key, count in sorted(figures.solves.items()):
        print(f"{key:24} {count:6} solves")
    print(
        f"{sum(figures.solves.values())} solves, {figures.proven} proven, {figures.trees} random trees, "
        f"{figures.enumerated} optima enumerated, {figures.refused} refused, {len(figures.failures)} failures"
    )
    sys.exit(bool(figures.failures))


if __name__ == "__main__":
    main()
