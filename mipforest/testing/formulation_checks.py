"""What holds of every formulation, one function each: it takes a trial and raises an AssertionError with the defect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, permutations
from typing import Any

import numpy as np

from mipforest.data import DataError
from mipforest.problem.expressions import Expression, NotExpressed, TreeExpressions
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.operations import Fitted
from mipforest.problem.parameters import ParameterError, parameters_of
from mipforest.problem.problem import Problem
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.testing.formulation_trial import (
    Trial,
    admits,
    assert_same_form,
    close,
    is_monotone,
    point_of,
    repeated,
    same_tree,
    size,
    uses,
    weight_of,
    with_model,
)

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
