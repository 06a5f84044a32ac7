"""The contract of formulations as tests: what every formulation must hold, whatever its paper.

A package that brings a formulation runs them with three lines in a test file::

    @pytest.mark.parametrize("contract", formulation_tests(MyFormulation), ids=str)
    def test_contract(contract):
        contract()

The tests rest on small data and random trees, and take a second or two. They vouch for the contract between the
operations of a formulation, not for its mathematics: an optimum needs a witness of its own, enumeration or an
independent model.

A trial holds the data, the trees and the models, each built and solved once. A check is a function that takes a trial
and raises an AssertionError with the defect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice, permutations
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.data import DataError, Dataset
from mipforest.errors import SolverUnavailable
from mipforest.heuristics.thresholds import tree_of_splits
from mipforest.model import Model, Values
from mipforest.model.matrix import Block, MatrixForm
from mipforest.problem.expressions import Expression, NotExpressed, TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.operations import Fitted, Instance
from mipforest.problem.parameters import ParameterError, parameters_of
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
    """Return 16 samples with three features on a grid, scaled as it prefers, with what the formulation predicts.

    Classes, values, several values, treatments or rewards. Of two treatments, one suits low values of the first
    feature, the other high ones.
    """
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (16, 3)) / 20
    score = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(16)
    if formulation.task == "prescription":
        had = rng.integers(0, 2, 16)
        y = np.round(np.where(had, X[:, 0], 1 - X[:, 0]) + 0.2 * score, 2)
        return Dataset.from_arrays(X, y, treatments=had, name="small", scaling=formulation.scaling)
    if formulation.task == "decision":
        rewards = np.round(np.column_stack([np.zeros(16), score, 0.3 - score * X[:, 2]]), 2)
        return Dataset.from_arrays(X, rewards=rewards, name="small", scaling=formulation.scaling)
    if formulation.task == "multi-output":
        several = np.round(np.column_stack([score, 10 * X[:, 2] - score]), 2)
        return Dataset.from_arrays(X, several, name="small", task="regression", scaling=formulation.scaling)
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
    tree = tree_of_splits(data, topology, w, b)
    if not data.targets:  # polish fits them
        tree = replace(tree, leaf_value=np.array([_leaf(data, here[leaf]) for leaf in topology.leaves]))
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
        """Return the tree after encoding and decoding by the model."""
        instance = self.problem(depth).instance
        return self.formulation.decode(self.formulation.encode(tree, instance), instance)

    @cached_property
    def result(self) -> Result:
        """The formulation solved on the few samples."""
        return self.formulation.build(self.few, self.depths[0]).solve(
            "highs", time_limit=SOLVE_TIME_LIMIT, gap=1e-6
        )


#: What the scores of trees are multiplied by, to see which trees keep their gaps: far from either side of a tolerance.
SQUEEZED = (1.0, 0.1, 1e-3)


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
    pairs = [(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)]
    return all(one == other if isinstance(one, tuple) else np.array_equal(one, other) for one, other in pairs)


def few_samples(data: Dataset, n: int) -> Dataset:
    """Return n samples, spread over the sorted target: all classes are among them where n allows it."""
    order = np.argsort(data.y if data.y.ndim == 1 else data.y[:, 0], kind="stable")
    return data.take(np.sort(order[np.linspace(0, data.n - 1, min(n, data.n)).round().astype(np.int64)]))


def repeated(data: Dataset, counts: IntArray) -> Dataset:
    """Return every sample as many times as its count (n,) says, each of weight 1."""
    rows = np.repeat(np.arange(data.n), counts)
    y, event = None if data.rewards is not None else data.y[rows], None
    task: Any = data.task if data.rewards is None else None
    if data.targets:
        task = "classification" if data.target_classes else "regression"
    if data.followed is not None:
        y, event = data.followed[rows, 0], data.followed[rows, 1] > 0
    return Dataset.from_arrays(
        data.X_raw[rows],
        y,
        event=event,
        treatments=None if data.treatments is None else data.treatments[rows],
        rewards=None if data.rewards is None else data.rewards[rows],
        features=data.features.labels,
        classes=data.classes or None,
        targets=data.targets or None,
        unlabelled=data.unlabelled,
        task=task,
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


#: A weight of at least this size, in scaled features, counts as a use of the feature whatever the model's least one.
CLEAR_WEIGHT = 0.05

#: Candidates that are looked at.
CANDIDATES = 5


def variants_agree(trials: Sequence[Trial]) -> None:
    """Compare optima; where the time limit ended a solve, its bound must not exceed another variant's value."""
    for trial, other in permutations(trials, 2):
        bound, value = trial.result.bound, other.result.objective
        names = trial.formulation.variant, other.formulation.variant
        assert bound <= value + FEASIBILITY_TOLERANCE * max(1.0, abs(value)) * 10, (
            f"variant {names[0]} proves that none is below {bound:.9g}, variant {names[1]} has one of {value:.9g}"
        )


# ---------------------------------------------------------------------- model


def _data_accepted(trial: Trial) -> None:
    formulation = trial.formulation
    for name in ("name", "summary", "source"):
        assert getattr(formulation, name, ""), f"the class states no {name}"
    for depth in trial.depths:
        instance = trial.problem(depth).instance
        assert instance.data is trial.data, "bind returns another data set than it was given"
        assert instance.topology.depth == depth, "bind returns another topology than it was given"
        assert len(repr(instance)) < 500, "the instance writes its arrays out: give its dataclass repr=False"


def _bind_repeats(trial: Trial) -> None:
    depth = trial.depths[0]
    before = [np.array(part) for part in (trial.data.X, trial.data.X_raw, trial.data.y)]
    first = trial.problem(depth)
    again = trial.formulation.bind(trial.data, first.topology)
    assert_same_form(with_model(trial.formulation, again).model.matrix(), trial.fresh(depth).model.matrix())
    assert again.notes == first.instance.notes, "notes differ when bound anew"
    known, other = again.known, first.instance.known
    assert (known is None) == (other is None), "there is a known tree only at times"
    assert known is None or other is None or same_tree(known, other), "the known tree differs when bound anew"
    for _, tree in trial.trees(depth):
        trial.decoded(tree, depth)
    after = (trial.data.X, trial.data.X_raw, trial.data.y)
    same = all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    assert same, "bind, declare, encode or decode changed the data set that it was given"


def _parameters_survive_json(trial: Trial) -> None:
    formulation = trial.formulation
    stored = json.loads(json.dumps(formulation.parameters(), allow_nan=False))
    missing = parameters_of(type(formulation)).keys() - stored.keys()
    assert not missing, f"parameters gives {', '.join(stored)}, and not {', '.join(sorted(missing))}"
    again = type(formulation)(variant=formulation.variant, **stored)
    assert again.parameters() == formulation.parameters(), "parameters differ after JSON"
    assert again.variant == formulation.variant


def _proven_value_is_a_number(trial: Trial) -> None:
    for depth in trial.depths:
        problem = trial.problem(depth)
        changed = problem.model.copy()
        as_built = BuiltModel(changed)
        for name, block in problem.model.variables.items():
            changed.add(f"reads_{name}", changed[name].sum() <= 1.0 + block.size)
        for changes in (problem.changes(), as_built.changes()):
            value = trial.formulation.valid_below(problem.instance, changes)
            assert isinstance(value, float), f"valid_below returns {value!r}, which is no float"
            assert not np.isnan(value), "valid_below returns NaN"


# ---------------------------------------------------------------------- trees and points


def _encode_is_complete(trial: Trial) -> None:
    for depth in trial.depths:
        problem = trial.problem(depth)
        for name, tree in trial.trees(depth):
            values = trial.formulation.encode(tree, problem.instance)
            missing = [block for block in problem.model.variables if block not in values]
            assert not missing, (
                f"encode gives no values of {', '.join(missing)}, which declare makes; give all"
            )
            unknown = [block for block in values if block not in problem.model.variables]
            assert not unknown, f"encode gives values of {', '.join(unknown)}, which declare does not make"
            for block, variables in problem.model.variables.items():
                shape = np.shape(values[block])
                assert shape == variables.shape, (
                    f"encode gives {block} the shape {shape}, not {variables.shape}"
                )
                assert np.isfinite(values[block]).all(), f"depth {depth}, {name}: {block} is not finite"


def _encode_is_feasible(trial: Trial) -> None:
    for depth in trial.depths:
        covered = [(name, tree) for name, tree in trial.trees(depth) if trial.is_covered(tree, depth)]
        assert covered, f"depth {depth}: valid_below covers none of the trees, the known one included"
        for name, tree in covered:
            _assert_feasible(trial, depth, name, tree)


def _violations_are_those_of_rows(trial: Trial) -> None:
    for depth in trial.depths:
        problem = trial.problem(depth)
        for name, tree in trial.trees(depth):
            for share in SQUEEZED if problem.formulation.gap_parameter else (1.0,):
                # Scores shrink, and with them the gaps between the sides; thresholds and sides stay.
                other = tree if share == 1.0 else replace(tree, w=share * tree.w, b=share * tree.b)
                if not (np.isfinite(trial.value(other, depth)) and trial.is_covered(other, depth)):
                    continue
                outside, row = problem.outside(other), problem.worst_violation(problem.encoded(other))
                assert bool(outside) == bool(row), (
                    f"depth {depth}, {name}, scores times {share:g}: violations says {outside or 'nothing'!r}, and the "
                    f"rows {row or 'nothing'!r}"
                )


def _objective_is_evaluate(trial: Trial) -> None:
    for depth in trial.depths:
        for name, tree in trial.trees(depth):
            _assert_objective(trial, depth, name, tree)


def _decode_keeps_the_tree(trial: Trial) -> None:
    X = trial.data.X
    for depth in trial.depths:
        for name, tree in trial.trees(depth):
            where, decoded = f"depth {depth}, {name}: decode(encode(tree))", trial.decoded(tree, depth)
            before, after = tree.apply(X), decoded.apply(X)
            together = (before[:, None] == before) == (after[:, None] == after)
            assert together.all(), f"{where} sends samples of one leaf to two, or of two leaves to one"
            if trial.exact_leaves:
                moved = np.flatnonzero(before != after)
                assert not len(moved), (
                    f"{where} sends sample {moved[0]} to leaf {after[moved[0]]}, not {before[moved[0]]}"
                )
            predicted = np.abs(decoded.predict(X) - tree.predict(X)).max()
            assert predicted <= FEASIBILITY_TOLERANCE * size(tree.predict(X)), (
                f"{where} predicts otherwise, by {predicted:.3g}"
            )
            value, expected = trial.value(decoded, depth), trial.value(tree, depth)
            assert close(value, expected), f"{where} evaluates to {value:.9g}, the tree to {expected:.9g}"


def _weights_repeat_samples(trial: Trial) -> None:
    depth, counts = trial.depths[0], 1 + np.arange(trial.few.n) % 3
    weighted, formulation = trial.few.with_weights(counts), trial.formulation
    if not formulation.takes_weights:
        try:
            formulation.build(weighted, depth)
        except DataError:
            return
        raise AssertionError("takes_weights is False, and weights are not refused: build of Formulation does")
    problem = formulation.build(weighted, depth)
    other = formulation.bind(repeated(trial.few, counts), problem.topology)
    rng = np.random.default_rng(2)
    drawn = [(f"random tree {k}", trial.make_tree(problem, rng)) for k in range(trial.n_trees)]
    drawn.append(("the default start", formulation.start(formulation.starts[0], problem.instance)))
    for name, tree in drawn:
        value, expected = formulation.evaluate(tree, problem.instance), formulation.evaluate(tree, other)
        if not (np.isfinite(value) and np.isfinite(expected)):
            continue  # leaves have least numbers of samples, whatever their weights
        assert close(value, expected), (
            f"{name}: evaluate gives {value:.9g} with weights 1, 2, 3, ..., and {expected:.9g} where samples are "
            "repeated as many times: multiply the loss of each sample by data.weights"
        )
        found = problem.model.objective(formulation.encode(tree, problem.instance))
        assert close(found, value), (
            f"{name}: with weights, the objective at encode's values is {found:.9g}, evaluate gives {value:.9g}"
        )


# ---------------------------------------------------------------------- starts and solutions


def _starts_are_feasible(trial: Trial) -> None:
    depth = trial.depths[-1]
    for name, tree in trial.starts(depth):
        value = trial.value(tree, depth)
        assert np.isfinite(value), f"depth {depth}, {name}: evaluate calls it infeasible ({value})"
        _assert_objective(trial, depth, name, tree)
        if trial.is_covered(tree, depth):
            _assert_feasible(trial, depth, name, tree)
        elif name == f"start {trial.formulation.starts[0]}":
            assert trial.problem(depth).instance.known is not None, (
                "the model does not hold the default start"
            )
    try:
        trial.formulation.start("no such start", trial.problem(depth).instance)
    except ParameterError:
        return
    raise AssertionError("an unknown start is not refused with a ParameterError")


def _candidates_repeat(trial: Trial) -> None:
    depth = trial.depths[-1]
    instance = trial.problem(depth).instance
    first, again = (list(islice(trial.formulation.candidates(instance), CANDIDATES)) for _ in range(2))
    assert len(first) == len(again)
    for tree, other in zip(first, again, strict=True):
        assert tree.n_features == trial.data.p
        assert not tree.is_tree or tree.depth == depth, "a candidate does not fit the problem"
        assert same_tree(tree, other), "candidates differ when drawn anew: seed them"
        assert not np.isnan(trial.value(tree, depth)), "evaluate of a candidate is NaN"


def _solution_is_verified(trial: Trial) -> None:
    result = trial.result
    assert result.verified, (
        f"the solution is not verified: {'; '.join(result.failed_checks) or 'there is none'}"
    )
    assert result.tree is not None
    assert result.solved_tree is not None
    solved = result.solved_tree.unscaled()
    refined = result.tree.unscaled()
    report = trial.formulation.report(solved, refined, result.problem.instance)
    json.dumps(report, allow_nan=False)
    json.dumps(trial.formulation.measures(result.tree, trial.few, result.problem.instance), allow_nan=False)


# ---------------------------------------------------------------------- what constraints of users read


def _expressions_are_right(trial: Trial) -> None:
    X = trial.data.X
    readings: dict[str, tuple[Callable[[TreeExpressions], Expression], Callable[[Fitted], Any]]] = {
        "features()": (lambda of: of.features(), uses),
        "leaves()": (
            lambda of: of.leaves(),
            lambda tree: tree.apply(X)[:, None] == np.asarray(tree.topology.leaves),
        ),
    }
    for k in range(len(trial.data.classes)):
        readings[f"predicted({k})"] = (
            lambda of, k=k: of.predicted(k),  # type: ignore[misc]
            lambda tree, k=k: tree.predict(X) == k,  # type: ignore[misc]
        )
    for depth in trial.depths:
        for what, (read, expected) in readings.items():
            problem = trial.fresh(depth)
            try:
                expression = read(trial.formulation.expressions(problem.model, problem.instance))
            except NotExpressed:
                continue
            for name, tree in trial.trees(depth):
                wanted = np.asarray(expected(trial.decoded(tree, depth)), dtype=float)
                assert expression.shape == wanted.shape, (
                    f"{what} has the shape {expression.shape}, not {wanted.shape}"
                )
                point = point_of(problem, tree)
                matrix = expression.matrix
                found = (matrix @ point[: matrix.shape[1]] + expression.constant).reshape(wanted.shape)
                wrong = np.argwhere(np.abs(found - wanted) > FEASIBILITY_TOLERANCE)
                assert not len(wrong), (
                    f"depth {depth}, {name}: {what} is {found[tuple(wrong[0])]:.6g} at {tuple(map(int, wrong[0]))}, "
                    f"and {wanted[tuple(wrong[0])]:g} in the tree"
                )


def _required_features_are_used(trial: Trial) -> None:
    def forced(problem: Problem, j: int) -> None:
        trial.formulation.expressions(problem.model, problem.instance).require_feature(j)

    for depth in trial.depths:
        for j in range(trial.data.p):
            largest = {name: weight_of(tree, j) for name, tree in trial.trees(depth)}
            _assert_admitted(
                trial,
                depth,
                f"require_feature({j})",
                lambda problem, j=j: forced(problem, j),  # type: ignore[misc]
                allowed=[name for name, weight in largest.items() if weight >= CLEAR_WEIGHT],
                forbidden=[name for name, weight in largest.items() if weight == 0],
            )


def _fixed_splits_are_kept(trial: Trial) -> None:
    if not trial.formulation.gives.is_tree:
        return
    for depth in trial.depths:
        trees = dict(trial.trees(depth))
        right = {name: tree.scores(trial.data.X)[:, 0] >= 0 for name, tree in trees.items()}
        for name, tree in trees.items():
            j, threshold = int(np.abs(tree.w[0]).argmax()), 0.0
            if (tree.w[0] != 0).sum() != 1 or tree.w[0, j] < 0 or not 0 < right[name].sum() < trial.data.n:
                continue
            threshold = float(-tree.b[0] / tree.w[0, j])
            others = [key for key in trees if (right[key] != right[name]).any()]
            _assert_admitted(
                trial,
                depth,
                f"fix_split(0, {j}, {threshold:.4g})",
                lambda problem, j=j, at=threshold: trial.formulation.expressions(  # type: ignore[misc]
                    problem.model, problem.instance
                ).fix_split(0, j, at),
                allowed=[name],
                forbidden=others,
            )


def _monotone_rows_are_kept(trial: Trial) -> None:
    if trial.data.task != "classification" or len(trial.data.classes) != 2:
        return
    for depth in trial.depths:
        for j in range(trial.data.p):
            for increasing in (True, False):
                trees = trial.trees(depth)
                _assert_admitted(
                    trial,
                    depth,
                    f"keep_monotone({j}, increasing={increasing})",
                    lambda problem, j=j, up=increasing: trial.formulation.expressions(  # type: ignore[misc]
                        problem.model, problem.instance
                    ).keep_monotone(j, increasing=up),
                    allowed=[name for name, tree in trees if not weight_of(tree, j)],
                    forbidden=[
                        name
                        for name, tree in trees
                        if not is_monotone(tree, trial.data.X, j, increasing=increasing)
                    ],
                )


def _assert_admitted(
    trial: Trial,
    depth: int,
    what: str,
    constrain: Callable[[Problem], None],
    *,
    allowed: Sequence[str],
    forbidden: Sequence[str],
) -> None:
    """Assert that added rows admit some trees, as far as the model did before, and exclude others."""
    problem = trial.fresh(depth)
    try:
        constrain(problem)
    except NotExpressed:
        return
    for name, tree in trial.trees(depth):
        if name in forbidden:
            assert not admits(problem, tree), f"depth {depth}: {what} admits {name}, which breaks it"
        elif name in allowed and trial.is_covered(tree, depth):
            assert admits(problem, tree), f"depth {depth}: {what} excludes {name}, which keeps it"


# ---------------------------------------------------------------------- shared


def _assert_feasible(trial: Trial, depth: int, name: str, tree: Fitted) -> None:
    problem = trial.problem(depth)
    worst = problem.worst_violation(trial.formulation.encode(tree, problem.instance))
    assert not worst, f"depth {depth}, {name}: the values of encode violate the model: {worst}"


def _assert_objective(trial: Trial, depth: int, name: str, tree: Fitted) -> None:
    problem = trial.problem(depth)
    found = problem.model.objective(trial.formulation.encode(tree, problem.instance))
    value = trial.value(tree, depth)
    assert close(found, value), (
        f"depth {depth}, {name}: the objective at encode's values is {found:.9g}, evaluate gives {value:.9g}"
    )


#: What is tested of each variant, by name.
CHECKS: Mapping[str, Callable[[Trial], None]] = {
    "data and depth are bound": _data_accepted,
    "bind repeats and changes nothing": _bind_repeats,
    "parameters survive JSON": _parameters_survive_json,
    "proven value is a number": _proven_value_is_a_number,
    "encode is complete": _encode_is_complete,
    "encode is feasible": _encode_is_feasible,
    "violations are those of the rows": _violations_are_those_of_rows,
    "objective is evaluate": _objective_is_evaluate,
    "decode keeps the tree": _decode_keeps_the_tree,
    "weights repeat samples": _weights_repeat_samples,
    "starts are feasible": _starts_are_feasible,
    "candidates repeat": _candidates_repeat,
    "expressions are right": _expressions_are_right,
    "required features are used": _required_features_are_used,
    "fixed splits are kept": _fixed_splits_are_kept,
    "monotone rows are kept": _monotone_rows_are_kept,
    "solution is verified": _solution_is_verified,
}


@dataclass(frozen=True, eq=False)
class FormulationTest:
    """One test of a formulation: call it, and it raises an AssertionError that names the defect.

    Attributes
    ----------
    name
        What holds where it passes, and for which variant and hyperparameters.
    """

    name: str
    _run: Callable[[], None]
    _why_not: str = ""

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Run the test; one that was opted out of fails when it passes."""
        if not self._why_not:
            self._run()
            return
        try:
            self._run()
        except Exception:  # announced
            return
        raise AssertionError(
            f"{self.name} passes, and was opted out of ({self._why_not}): remove the opt-out"
        )


def formulation_tests(
    formulation: type[Formulation],
    *,
    settings: Sequence[Mapping[str, Any]] = ({},),
    data: Dataset | None = None,
    depths: Sequence[int] = (1, 2),
    trees: TreeMaker = random_tree,
    n_trees: int = 6,
    n_solved: int = 7,
    exact_leaves: bool = True,
    same_optimum: Sequence[str] | None = None,
    opt_out: Mapping[str, str] | None = None,
) -> list[FormulationTest]:
    """Return the tests of a formulation, for every variant.

    Parameters
    ----------
    formulation
        The class.
    settings
        Hyperparameters to test with, one mapping for each round; the defaults alone unless given.
    data
        Training samples; :func:`~mipforest.testing.formulation_conformance.small_data` unless given.
    depths
        Depths of the trees. Solves take the first one.
    trees
        Draws a tree within the formulation's limits; univariate ones, polished, unless given. Trees that
        ``evaluate`` calls infinite are left out.
    n_trees
        How many trees are drawn for each depth.
    n_solved
        How many samples the models that are solved have.
    exact_leaves
        Whether ``decode(encode(tree))`` must keep the numbers of the leaves. Where the model may reflect a tree, the
        samples of a leaf must still stay together, and their predictions stay.
    same_optimum
        Variants that have the same optimal value; all of them unless given.
    opt_out
        Reasons by name of a test, ``{"encode is feasible [paper]": "..."}``: it is expected to fail.

    Returns
    -------
    list of FormulationTest
        To be called, or parametrised over with ``ids=str``.

    Raises
    ------
    ValueError
        If an opt-out names no test.
    """
    known = data or small_data(formulation)
    trials = all_trials(
        formulation,
        settings,
        data=known,
        few=few_samples(known, n_solved),
        depths=tuple(depths),
        make_tree=trees,
        n_trees=n_trees,
        exact_leaves=exact_leaves,
    )
    opted_out = dict(opt_out or {})
    tests = []
    for values, variants in zip(settings, trials, strict=True):
        label = "".join(f" {name}={value}" for name, value in values.items())
        for trial in variants:
            for name, check in CHECKS.items():
                full = f"{name} [{trial.formulation.variant}{label}]"
                tests.append(FormulationTest(full, _bound(check, trial), opted_out.pop(full, "")))
        alike = [
            trial for trial in variants if trial.formulation.variant in (same_optimum or formulation.variants)
        ]
        if len(alike) > 1:
            full = f"variants agree [{' '.join(trial.formulation.variant for trial in alike)}{label}]"
            tests.append(FormulationTest(full, _bound(variants_agree, alike), opted_out.pop(full, "")))
    if opted_out:
        raise ValueError(
            f"opt_out: no test {next(iter(opted_out))!r}; there are {', '.join(map(str, tests))}"
        )
    return tests


def _bound(check: Callable[[Any], None], argument: Any) -> Callable[[], None]:
    return lambda: check(argument)
