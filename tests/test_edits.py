"""Sessions of edits: answers are those of fresh solves of the rows, prices are differences, files bring all back."""

import json
from contextlib import suppress
from itertools import pairwise, product

import numpy as np
import pytest
from seeds import seeds
from tolerance import at_least, at_most, same

import mipforest
from mipforest.data import Dataset
from mipforest.edits import Edit, EditSession, split_of
from mipforest.errors import DataError
from mipforest.heuristics.thresholds import tree_of_thresholds
from mipforest.problem.constraints import AtMostFeatures, AtMostOf, LimitLabel, MinLeaf, Recall
from mipforest.problem.expressions import NotExpressed
from mipforest.searches.exact import cover_search
from mipforest.solvers.solution import Status

NAMES = ["a", "b", "c"]

#: Random sessions by default, and of the slow test.
FEW, MANY = 4, 170


def built(model, seed, n=14, depth=2, alpha=None):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 3)).astype(float)
    X[:2] = [[0.0] * 3, [3.0] * 3]
    score = X[:, 0] + X[:, 1] + rng.standard_normal(n)
    alpha = float(rng.choice([0.0, 0.02])) if alpha is None else alpha
    if model == "ort":
        data = Dataset.from_arrays(X, score, features=NAMES, task="regression")
    elif model == "policy":
        rewards = np.round(rng.random((n, 2)) + np.outer(score > 2, [0, 1]), 2)
        data = Dataset.from_arrays(X, rewards=rewards, features=NAMES)
    else:
        y = (score > np.median(score)).astype(int)
        data = Dataset.from_arrays(X, y, features=NAMES)
    return mipforest.get_formulation(model)(alpha=alpha).build(data, depth)


def edited(session, rng):
    """Make a random edit."""
    node, feature = int(rng.integers(3)), str(rng.choice(NAMES))
    at = [None, 1.5, (0.5, 1.7), (None, 2.0)][rng.integers(4)]
    label = session.problem.data.classes[-1] if session.problem.data.classes else None
    limits = [MinLeaf(2), AtMostFeatures(2), *([LimitLabel(label, 0.6)] if label is not None else [])]
    kinds = [
        lambda: session.pin(node, feature, at),
        lambda: session.forbid(feature, node),
        lambda: session.leaf(1 + node % 2),
        lambda: session.limit(limits[rng.integers(len(limits))]),
        session.undo,
        session.redo,
        lambda: session.pin(0),
        lambda: session.label(int(rng.integers(7)), str(rng.choice(session.problem.data.classes or ["a"]))),
    ]
    with suppress(DataError, NotExpressed):  # nothing to undo, no split to keep, or no labels
        kinds[rng.integers(len(kinds))]()


def agree(model, seed):
    rng = np.random.default_rng(seed)
    session = EditSession(built(model, seed), time_limit=60, gap=0.0)
    for _ in range(int(rng.integers(2, 7))):
        edited(session, rng)
        found = session.best()
    fresh = session.problem.with_only(session.constraints).solve("highs", time_limit=60, gap=1e-6, start=None)
    said = (model, seed, [edit.words for edit in session.edits], found.objective, fresh.objective)
    if fresh.solution.status is Status.INFEASIBLE:
        assert found.solution.status is Status.INFEASIBLE, said
        return
    assert found.status == fresh.status == "optimal", said
    assert same(found.objective, fresh.evaluated_objective), said
    assert at_most(found.bound, fresh.evaluated_objective), said
    assert all(one.admits(found.tree, session.problem.data) for one in session.constraints), said


@pytest.mark.parametrize("model", ["oct", "ort", "policy"])
def test_every_answer_is_that_of_a_fresh_solve_of_the_rows(model):
    for seed in range(FEW):
        agree(model, seed)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["oct", "ort", "policy"])
def test_many_sessions_have_the_answers_of_fresh_solves(model):
    for seed in range(FEW, MANY):
        agree(model, seed)


@pytest.mark.parametrize("seed", seeds(8, 300))
def test_what_earlier_searches_have_proven_changes_no_answer(seed, monkeypatch):
    """Trees of three levels, whose searches take over bounds on the sides of the root's thresholds."""
    monkeypatch.setattr(cover_search, "LONG", 0)  # thresholds are evaluated many at a time
    model, rng = ("oct", "ort", "policy")[seed % 3], np.random.default_rng(seed)
    session = EditSession(built(model, seed, n=24, depth=3), time_limit=60, gap=0.0)
    session.best()
    for _ in range(int(rng.integers(2, 7))):
        edited(session, rng)
        found = session.best()
        constraints = session.constraints
        fresh = built(model, seed, n=24, depth=3).with_only(constraints).solve(time_limit=60, gap=0.0)
        assert found.status == fresh.status
        if fresh.tree is not None:
            assert same(found.objective, fresh.objective)
            assert same(found.bound, fresh.bound)


def test_prices_are_differences_of_proven_optima():
    session = EditSession(built("oct", 1, n=40, alpha=0.0), gap=0.0)
    free = session.best().objective
    session.forbid("a")
    alone = session.best().objective
    session.leaf(1)
    prices = session.prices()
    assert same(prices.together.least, session.best().objective - free)
    assert prices.together.least == prices.together.most  # exact: a copy
    assert same(prices.alone[0].least, alone - free)
    assert at_least(prices.together.least, prices.alone[1].least)
    assert len(prices.alone) == 2


@pytest.mark.parametrize("node", [0, 1])
def test_alternatives_have_the_best_totals_of_all_trees_with_their_split(node):
    session = EditSession(built("oct", 5, n=30, alpha=0.0), gap=0.0)
    best = session.best()
    found = session.alternatives(node, k=3)
    assert same(found[0].objective, best.objective)
    assert all(at_most(one.objective, other.objective) for one, other in pairwise(found))
    above = () if node == 0 else session._around(node)[1]
    for one in found:
        assert one.is_proven
        own = mipforest.problem.constraints.Split(one.feature, None, node)
        fresh = session.problem.with_only([*above, own]).solve("highs", time_limit=60, gap=1e-6, start=None)
        assert same(one.objective, fresh.objective)
    assert len(session.alternatives(node, k=1)) == 1


def best_with(problem, above, node, feature):
    """The least objective of all trees of depth 2 with some splits above a node that splits on a feature."""
    thresholds, best = problem.structure.thresholds, np.inf
    options = [-1, *range(len(thresholds))]
    for chosen in product(options, repeat=3):
        if chosen[0] < 0 and max(chosen[1:]) >= 0:
            continue
        if thresholds.names[thresholds.feature[chosen[node]]] != feature or chosen[node] < 0:
            continue
        splits = tree_of_thresholds(problem.data, problem.topology, thresholds, np.array(chosen))
        encoding = problem.data.encoding
        if all(
            one.admits(splits.with_scaling(encoding.offset, encoding.scale), problem.data) for one in above
        ):
            tree = problem.formulation.relabel(splits, problem.instance)
            best = min(best, problem.formulation.evaluate(tree, problem.instance))
    return best


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("seed", range(200))
def test_alternatives_are_those_of_an_enumeration(seed):
    problem = built(["oct", "ort"][seed % 2], seed, n=10)
    session, node = EditSession(problem, gap=0.0), seed % 3
    if node and session.best().tree.is_trivial(0):
        node = 0
    above = session._path(node)
    found = {one.feature: one.objective for one in session.alternatives(node, k=3)}
    for feature in NAMES:
        best = best_with(problem, above, node, feature)
        assert same(found[feature], best) if np.isfinite(best) else feature not in found


def test_a_node_is_given_a_label():
    session = EditSession(built("oct", 1, n=40, alpha=0.0), gap=0.0)
    tree = session.best().tree
    leaf = int(tree.apply(session.problem.data.X_raw)[0])
    label = next(one for one in tree.classes if one != tree.classes[int(tree.leaf_value[leaf - 3])])
    session.label(leaf, str(label))
    found = session.best().tree
    here = tree.apply(session.problem.data.X_raw) == leaf
    assert (found.predict(session.problem.data.X_raw)[here] == tree.classes.index(label)).all()
    assert f"node {leaf} predicts {label}" in session.edits[0].words
    session.label(leaf, str(label))  # it replaces the one before
    assert len(session.edits) == 1
    for node, given, why in ((7, label, "nodes 0 to 6"), (leaf, "nope", "no 'nope'")):
        with pytest.raises(DataError, match=why):
            session.label(node, str(given))
    with pytest.raises(NotExpressed, match="predicts numbers"):
        EditSession(built("ort", 1), gap=0.0).label(0, "1")


def test_a_near_tree_is_kept():
    session = EditSession(built("oct", 2, n=40, alpha=0.0), gap=0.0)
    session.forbid("c", 0)
    near = session.near(0.5, most=8)
    assert same(near.objectives[0], session.best().objective)
    session.adopt(near[len(near) - 1])
    found = session.best()
    assert at_most(found.objective, near.objectives[-1])  # its labels are the best ones
    assert (found.tree.w.any(axis=1) == near[len(near) - 1].w.any(axis=1)).all()


def test_a_curve_has_the_best_total_of_each_threshold():
    session = EditSession(built("oct", 5, n=30, alpha=0.0), gap=0.0)
    tree = session.best().tree
    feature, threshold = split_of(tree, 0)
    curve = session.curve(0, feature)
    assert [one.threshold for one in curve] == [0.5, 1.5, 2.5]  # exact: middles of whole numbers
    nearest = min(curve, key=lambda one: abs(one.threshold - threshold))
    assert same(nearest.objective, session.best().objective)
    assert all(at_least(one.objective, session.best().objective) for one in curve)
    assert len(session.curve(0, feature, points=2)) == 2


def test_edits_at_a_node_do_not_limit_its_alternatives():
    session = EditSession(built("oct", 5, n=30, alpha=0.0), gap=0.0)
    session.pin(0, "c")
    assert {one.feature for one in session.alternatives(0, k=3)} == set(NAMES)


def test_undo_and_redo_go_through_the_edits():
    session = EditSession(built("oct", 1), gap=0.0)
    free = session.best()
    session.forbid("a")
    without = session.best()
    assert session.undo().words == "no node uses a"
    assert session.best() is free
    assert session.redo().words == "no node uses a"
    assert session.best() is without
    session.undo()
    session.forbid("b")
    with pytest.raises(DataError, match="no edit to redo"):
        session.redo()
    session.undo()
    with pytest.raises(DataError, match="no edit to undo"):
        session.undo()


def test_what_the_best_tree_splits_on_is_pinned():
    session = EditSession(built("oct", 1, n=40, alpha=0.0), gap=0.0)
    best = session.best()
    edit = session.pin(0)
    assert edit.words.startswith("node 0 splits on ")
    assert same(session.best().objective, best.objective)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda s: s.pin(7, "a"), "there is no branch node 7; a tree of depth 2 has the nodes 0 to 2"),
        (lambda s: s.leaf(-1), "there is no branch node -1"),
        (lambda s: s.pin(0, "z"), "z"),
        (lambda s: s.pin(0, "a", 99.0), "puts all training samples on one side"),
        (lambda s: s.forbid("z"), "z"),
        (lambda s: s.limit(), "no constraint is given"),
        (lambda s: s.limit(Recall("x", 0.5)), "x"),
        (lambda s: s.alternatives(9), "there is no branch node 9"),
        (lambda s: s.curve(0, "z"), "z"),
    ],
)
def test_an_edit_that_cannot_be_is_refused_and_leaves_the_others(ask, why):
    session = EditSession(built("oct", 1), gap=0.0)
    session.forbid("a", 0)
    with pytest.raises(DataError, match=why):
        ask(session)
    assert [edit.words for edit in session.edits] == ["node 0 does not use a"]


def test_a_session_comes_back_from_its_file(tmp_path):
    problem = built("oct", 1)
    session = EditSession(problem, gap=0.0)
    session.pin(1, "b", (0.5, None))
    session.limit(MinLeaf(2), AtMostOf(1.0, {"a": 1.0, "b": 1.0}))
    session.leaf(2)
    session.undo()
    session.save(tmp_path / "edits.json")
    again = EditSession.load(problem, tmp_path / "edits.json", gap=0.0)
    assert again.edits == session.edits
    assert same(again.best().objective, session.best().objective)
    assert again.redo().words == "node 2 does not split"
    options, _ = again.options()
    assert ("split", "1: b in 0.5..") in options


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is no session"),
        ("[]", "is no session of edits of format 1"),
        ('{"format": 2}', "is no session of edits of format 1"),
        ('{"format": 1, "edits": 3, "undone": []}', "has to be a list of edits"),
        ('{"format": 1, "edits": [{"words": "x"}], "undone": []}', "is no edit"),
        (
            '{"format": 1, "edits": [{"words": "x", "node": true, "constraints": []}], "undone": []}',
            "is no edit; words are a text",
        ),
        (
            '{"format": 1, "edits": [{"words": "x", "node": 0, "constraints": [{"kind": "forbid", "features": ["z"]}]}]'
            ', "undone": []}',
            "z",
        ),
    ],
)
def test_a_file_that_is_no_session_is_refused(tmp_path, content, why):
    (tmp_path / "edits.json").write_text(content)
    with pytest.raises(DataError, match=why):
        EditSession.load(built("oct", 1), tmp_path / "edits.json")


def test_rows_that_are_no_constraint_are_refused():
    problem = built("oct", 1)
    problem.model.minimize(problem.model.objective_expression + 0.1 * problem.model["c"][0, 0])
    with pytest.raises(DataError, match=r"state them by problem\.constrain"):
        EditSession(problem)


def test_rows_on_labels_of_leaves_stay_beside_edits():
    problem = built("oct", 2)
    problem.model.add("first_label", problem.model["c"][0, 0] == 1)
    session = EditSession(problem, time_limit=30)
    free = session.best()
    session.forbid(problem.data.features.labels[0])
    within = session.best()
    assert free.verified
    assert within.verified
    assert within.tree.classes[within.tree.leaf_value[0]] == problem.data.classes[0]
    assert at_least(within.objective, free.objective)


def test_trees_of_hyperplanes_are_edited_too():
    rng = np.random.default_rng(0)
    X = rng.random((24, 2))
    data = Dataset.from_arrays(X, (X[:, 0] > 0.5).astype(int), features=["a", "b"])
    result = mipforest.get_formulation("margot")(C=1.0).build(data, 1).solve(time_limit=30)
    session = EditSession(result.problem, time_limit=30)
    session.forbid("a")
    assert session.best().verified
    assert at_least(session.best().objective, result.objective)


def test_no_tree_within_edits_is_said():
    session = EditSession(built("oct", 1), gap=0.0)
    session.pin(1, "a")
    session.leaf(0)
    assert session.best().solution.status is Status.INFEASIBLE
    with pytest.raises(DataError, match="no tree satisfies node 1 splits on a; node 0 does not split"):
        session.alternatives(1)
    assert Edit.from_dict(json.loads(json.dumps(session.edits[0].to_dict()))) == session.edits[0]


def test_deep_trees_are_edited_with_the_rows_where_no_search_keeps_an_edit():
    session = EditSession(built("oct", 3, depth=4, alpha=0.02), time_limit=20)
    session.pin(0, "c", 1.5)
    found = session.best()
    assert found.verified
    assert all(one.admits(found.tree, session.problem.data) for one in session.constraints)


def test_a_pin_replaces_one_of_the_same_node_and_brings_it_back():
    session = EditSession(built("oct", 0))
    session.forbid("c", 0)
    first = session.pin(0, "a", 1.5)
    session.pin(1, "b")
    second = session.pin(0, "b", 0.5)
    assert [edit.words for edit in session.edits] == [
        "node 0 does not use c", "node 1 splits on b", "node 0 splits on b >= 0.5",
    ]  # fmt: skip
    assert session.undo().words == second.words
    assert {edit.words for edit in session.edits} == {
        "node 0 does not use c",
        "node 1 splits on b",
        first.words,
    }
    session.redo()
    session.leaf(0)
    assert [edit.words for edit in session.edits] == [
        "node 0 does not use c", "node 1 splits on b", "node 0 does not split",
    ]  # fmt: skip


def test_a_proof_for_fewer_edits_bounds_more():
    session = EditSession(built("oct", 7, n=40, alpha=0.0), gap=0.0)
    free = session.best()
    session.pin(0)  # the best tree has it
    assert session._bound(session.constraints) == free.bound  # exact: a copy
    kept = session.best()
    assert kept.status == "optimal"
    assert same(kept.objective, free.objective)
    session.leaf(1)
    worse = session.best()
    assert at_least(worse.objective, kept.objective)
    fresh = session.problem.with_only(session.constraints).solve("exact-search", gap=0.0)
    assert same(worse.objective, fresh.objective)
    assert same(worse.bound, fresh.bound)
