"""What the tests of a formulation run on: small data, random trees, models built, solved once, and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.data import Dataset
from mipforest.errors import SolverUnavailable
from mipforest.model import Model, Values
from mipforest.model.matrix import Block, MatrixForm
from mipforest.problem.formulation import Formulation
from mipforest.problem.operations import Fitted, Instance
from mipforest.problem.problem import Problem
from mipforest.problem.result import Result
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solving import solve
from mipforest.trees import Tree

#: Makes a tree within a formulation's limits, for a built problem: as for :func:`random_tree`.
TreeMaker = Callable[[Problem, np.random.Generator], Fitted]

#: Samples of the two sides of a random split are at least this far apart, in scaled features: wider than the gaps
#: that stand for strict inequalities.
SPLIT_GAP = 0.02

#: Seconds for a solve; what is not proven by then is compared as far as it is.
SOLVE_TIME_LIMIT = 5.0


def small_data(formulation: type[Formulation]) -> Dataset:
    """Return 16 samples with three features on a grid, scaled as it prefers: two classes, a real target, or treatments.

    Of two treatments, one suits low values of the first feature, the other high ones.
    """
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (16, 3)) / 20
    score = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(16)
    if formulation.task == "prescription":
        had = rng.integers(0, 2, 16)
        y = np.round(np.where(had, X[:, 0], 1 - X[:, 0]) + 0.2 * score, 2)
        return Dataset.from_arrays(X, y, treatments=had, name="small", scaling=formulation.scaling)
    regression = formulation.task == "regression"
    y = np.round(score, 2) if regression else (score > np.median(score)).astype(int)
    return Dataset.from_arrays(X, y, name="small", task=formulation.task, scaling=formulation.scaling)  # type: ignore[arg-type]


def random_tree(problem: Problem, rng: np.random.Generator) -> Tree:
    """Return random univariate splits with the leaves that suit the training samples, polished by the formulation.

    Every split has samples on both sides, :data:`SPLIT_GAP` apart. A node without a split sends all samples right, and
    no node below it splits.

    Parameters
    ----------
    problem
        The formulation, built.
    rng
        Where the splits are drawn from.
    """
    return _random_tree(problem, lambda: np.eye(problem.data.p)[rng.integers(problem.data.p)], rng)


def random_oblique_tree(problem: Problem, rng: np.random.Generator) -> Tree:
    """Return random hyperplane splits, their weights of sum 1 in size, otherwise as :func:`random_tree` does."""

    def direction() -> FloatArray:
        w = rng.uniform(-1, 1, problem.data.p) * (rng.random(problem.data.p) < 0.7)
        return w / max(float(np.abs(w).sum()), 1e-9)

    return _random_tree(problem, direction, rng)


def _random_tree(problem: Problem, direction: Callable[[], FloatArray], rng: np.random.Generator) -> Tree:
    data, topology = problem.data, problem.topology
    w, b = np.zeros((topology.n_branches, data.p)), np.zeros(topology.n_branches)
    here: dict[int, IntArray] = {0: np.arange(data.n)}
    for t in topology.branches:
        rows, w_t = here[t], direction()
        score = np.sort(data.X[rows] @ w_t)
        apart = np.flatnonzero(np.diff(score) >= SPLIT_GAP)
        below_split = t == 0 or w[topology.parent(t)].any()
        if len(apart) and below_split and rng.random() < 0.85:
            k = int(rng.choice(apart))
            w[t], b[t] = w_t, -(score[k] + score[k + 1]) / 2
        goes_right = data.X[rows] @ w[t] + b[t] >= 0
        here[topology.left(t)], here[topology.right(t)] = rows[~goes_right], rows[goes_right]
    leaves = np.array([_leaf(data, here[leaf]) for leaf in topology.leaves])
    tree = Tree(topology.depth, w, b, leaves, tuple(data.classes), tuple(data.features.labels))
    polished: Tree = problem.formulation.polish(tree, problem.instance)
    return polished


def _leaf(data: Dataset, rows: IntArray) -> float:
    """Return the most common class of some samples, or their mean; 0 for none, and for treatments (polish chooses)."""
    if len(rows) == 0 or data.treatments is not None:
        return 0.0
    return float(data.y[rows].mean() if data.task == "regression" else np.bincount(data.y[rows]).argmax())


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    """A formulation with its hyperparameters and variant, on small data.

    Attributes
    ----------
    formulation
        The formulation.
    data, few
        Training samples for trees, and a few of them for solves.
    depths
        Depths of the trees; solves take the first.
    make_tree, n_trees
        What draws trees, and how many for each depth.
    exact_leaves
        Whether ``decode(encode(tree))`` keeps the numbers of the leaves, and not only who shares one.
    """

    formulation: Formulation
    data: Dataset
    few: Dataset
    depths: tuple[int, ...]
    make_tree: TreeMaker
    n_trees: int
    exact_leaves: bool
    _problems: dict[int, Problem] = field(default_factory=dict, init=False)
    _trees: dict[int, list[tuple[str, Fitted]]] = field(default_factory=dict, init=False)

    def problem(self, depth: int) -> Problem:
        """Return the problem of a depth, built once; its model stays as built."""
        if depth not in self._problems:
            self._problems[depth] = self.formulation.build(self.data, depth)
        return self._problems[depth]

    def fresh(self, depth: int) -> Problem:
        """Return the problem of a depth with a model of its own, to add rows to."""
        return with_model(self.formulation, self.problem(depth).instance)

    def starts(self, depth: int) -> list[tuple[str, Fitted]]:
        """Return the tree of every start that is installed."""
        instance, found = self.problem(depth).instance, []
        for name in self.formulation.starts:
            try:
                found.append((f"start {name}", self.formulation.start(name, instance)))
            except SolverUnavailable:  # a start may need a package that is not here
                continue
        return found

    def trees(self, depth: int) -> list[tuple[str, Fitted]]:
        """Return random trees and the known one, by name, that evaluate to a finite value.

        Raises
        ------
        AssertionError
            If there is none.
        """
        if depth not in self._trees:
            problem, rng = self.problem(depth), np.random.default_rng(1)
            drawn = [(f"random tree {k}", self.make_tree(problem, rng)) for k in range(self.n_trees)]
            if problem.instance.known is not None:
                drawn.append(("the known tree", problem.instance.known))
            finite = [(name, tree) for name, tree in drawn if np.isfinite(self.value(tree, depth))]
            assert finite, (
                f"depth {depth}: evaluate calls every drawn tree infeasible; give a function trees= that draws trees "
                "within the formulation's limits"
            )
            self._trees[depth] = finite
        return self._trees[depth]

    def value(self, tree: Fitted, depth: int) -> float:
        """Return the objective of a tree by its definition."""
        return self.formulation.evaluate(tree, self.problem(depth).instance)

    def is_covered(self, tree: Fitted, depth: int) -> bool:
        """Say whether the model, as built, has to hold the tree.

        A value of -inf says that nothing is proven once the model is changed: as built, it holds every tree.
        """
        problem = self.problem(depth)
        limit = self.formulation.valid_below(problem.instance, problem.changes())
        return limit == -np.inf or self.value(tree, depth) <= limit + FEASIBILITY_TOLERANCE * max(
            1.0, abs(limit)
        )

    def decoded(self, tree: Fitted, depth: int) -> Fitted:
        """Return the tree after a way through the model."""
        instance = self.problem(depth).instance
        return self.formulation.decode(self.formulation.encode(tree, instance), instance)

    @cached_property
    def result(self) -> Result:
        """The formulation solved on the few samples."""
        return self.formulation.build(self.few, self.depths[0]).solve(
            "highs", time_limit=SOLVE_TIME_LIMIT, gap=1e-6
        )


def with_model(formulation: Formulation, instance: Instance) -> Problem:
    """Return a problem with a newly declared model."""
    model = Model("small")
    formulation.declare(model, instance)
    return Problem(
        formulation=formulation, instance=instance, model=model, prepare_seconds=0.0, build_seconds=0.0
    )


def admits(problem: Problem, tree: Fitted) -> bool:
    """Say whether a problem's model, added rows included, has a feasible point for a tree."""
    values = problem.encoded(tree)
    if values.keys() >= problem.model.variables.keys():
        return not problem.worst_violation(values)
    rest = problem.model.copy()
    rest.minimize(0.0)
    for name, value in values.items():
        rest[name].fix(value)
    completed = solve(rest, time_limit=SOLVE_TIME_LIMIT)
    return completed.x is not None and not problem.worst_violation(completed.values)


def is_monotone(tree: Fitted, X: FloatArray, j: int, *, increasing: bool) -> bool:
    """Say whether predictions never fall (rise) as feature j of a sample takes its values in turn."""
    grid = np.unique(X[:, j])
    rows = np.repeat(X, len(grid), axis=0)
    rows[:, j] = np.tile(grid, len(X))
    steps = np.diff(tree.predict(rows).astype(float).reshape(len(X), len(grid)), axis=1)
    return bool((steps >= 0).all() if increasing else (steps <= 0).all())


def weight_of(tree: Fitted, j: int) -> float:
    """Return the largest size of a feature's weights in a tree; of a score card that uses it, 1."""
    if isinstance(tree, Tree):
        return float(np.abs(tree.w[:, j]).max())
    return float(j in tree.features_used().overall)


def same_tree(first: Fitted, second: Fitted) -> bool:
    """Say whether two trees are equal in every number."""
    return all(np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(first))


def few_samples(data: Dataset, n: int) -> Dataset:
    """Return n samples, spread over the sorted target: all classes are among them where n allows it."""
    order = np.argsort(data.y, kind="stable")
    return data.take(np.sort(order[np.linspace(0, data.n - 1, min(n, data.n)).round().astype(np.int64)]))


def repeated(data: Dataset, counts: IntArray) -> Dataset:
    """Return every sample as many times as its count (n,) says, each of weight 1."""
    rows = np.repeat(np.arange(data.n), counts)
    return Dataset.from_arrays(
        data.X_raw[rows],
        data.y[rows],
        treatments=None if data.treatments is None else data.treatments[rows],
        features=data.features.labels,
        classes=data.classes or None,
        task=data.task,
        scaling=data.encoding.scaling,
    )


def all_trials(
    formulation: type[Formulation], settings: Sequence[Mapping[str, Any]], **shared: Any
) -> list[list[Trial]]:
    """Return one list for each set of hyperparameters: a trial for each variant."""
    return [
        [Trial(formulation=formulation(variant=name, **values), **shared) for name in formulation.variants]
        for values in settings
    ]


def point_of(problem: Problem, tree: Fitted) -> FloatArray:
    """Return the point of a problem's model that stands for a tree, blocks of constraints included."""
    encoded: Values = problem.encoded(tree)
    return problem.model.matrix().to_point(encoded)


def assert_same_form(first: MatrixForm, second: MatrixForm, *, names: bool = True) -> None:
    """Assert that two models are the same, every number to the last bit, columns and rows in order.

    Zeros of both signs are equal, as are ``Q = None`` and a ``Q`` without entries. How names are
    grouped into blocks does not matter.

    Parameters
    ----------
    first, second
        The models.
    names
        Whether the names of the model, its columns, rows and indicator rows must agree too.

    Raises
    ------
    AssertionError
        With the first part that differs, where it differs, and both values.
    """
    for part in ("n_columns", "n_rows", "maximize", "offset"):
        _assert_equal(part, getattr(first, part), getattr(second, part))
    _assert_equal("indicators.n_rows", first.indicators.n_rows, second.indicators.n_rows)
    if names:
        _assert_equal("name", first.name, second.name)
        for part in ("column_names", "row_names"):
            _assert_arrays(part, getattr(first, part), getattr(second, part))
        _assert_arrays("indicator names", _names(first.indicators.rows), _names(second.indicators.rows))
    for part in ("c", "row_lower", "row_upper", "col_lower", "col_upper", "integer"):
        _assert_arrays(part, getattr(first, part), getattr(second, part))
    for part in ("binary", "value", "lower", "upper"):
        _assert_arrays(
            f"indicators.{part}", getattr(first.indicators, part), getattr(second.indicators, part)
        )
    _assert_matrices("A", first.A, second.A)
    _assert_matrices("indicators.A", first.indicators.A, second.indicators.A)
    if first.is_quadratic or second.is_quadratic:
        _assert_equal("is_quadratic", first.is_quadratic, second.is_quadratic)
        _assert_matrices("Q", first.Q, second.Q)


def _names(blocks: tuple[Block, ...]) -> list[str]:
    return [name for block in blocks for name in block.names()]


def _assert_equal(part: str, first: object, second: object) -> None:
    if first != second:
        raise AssertionError(f"{part} differs: {first!r} and {second!r}")


def _assert_arrays(part: str, first: object, second: object) -> None:
    a, b = np.asarray(first), np.asarray(second)
    _assert_equal(f"shape of {part}", a.shape, b.shape)
    different = np.flatnonzero(a != b)
    if len(different):
        k = int(different[0])
        raise AssertionError(
            f"{part} differs at {len(different)} places, first at {k}: {a[k]!r} and {b[k]!r}"
        )


def _assert_matrices(part: str, first: SparseMatrix, second: SparseMatrix) -> None:
    _assert_equal(f"shape of {part}", first.shape, second.shape)
    for array in ("indptr", "indices", "data"):
        _assert_arrays(f"{part}.{array}", getattr(first, array), getattr(second, array))


def uses(tree: Fitted) -> BoolArray:
    """Return (|B|, p) whether a branch node uses a feature; a score card counts as one node."""
    per_node = tree.features_used().per_node
    return np.array([np.isin(np.arange(tree.n_features), used) for used in per_node])


def close(first: float, second: float) -> bool:
    """Return whether two values are equal up to the feasibility tolerance."""
    return abs(first - second) <= FEASIBILITY_TOLERANCE * max(1.0, abs(second))


def size(values: Any) -> float:
    """Return the largest size among values, at least 1."""
    return max(1.0, float(np.abs(values).max(initial=0.0)))
