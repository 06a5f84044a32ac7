"""Rows by hand on known blocks are read into constraints, which searches keep: the optimum is that of the rows."""

import numpy as np
import pandas as pd
import pytest
from seeds import few_of
from tolerance import at_most, same

import mipforest
from mipforest import constraints
from mipforest.data import Dataset
from mipforest.problem.constraints import (
    AtMostFeatures,
    AtMostSplits,
    FeatureBudget,
    Forbid,
    GroupBudget,
    LimitLabel,
    NodeRows,
    Recall,
)

NAMES = ["a", "b", "c"]


def built(model, parameters, depth, seed=0, n=12):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 3)), 2)
    y = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n)
    if model == "ort":
        data = Dataset.from_arrays(X, y, features=NAMES, task="regression")
    else:
        data = Dataset.from_arrays(X, (y > np.median(y)).astype(int), features=NAMES)
    return mipforest.get_formulation(model)(**parameters).build(data, depth)


def splits(problem):
    problem.model.add("few_splits", problem.model["d"].sum() <= 2)


def weighed(problem):
    problem.model.add("few_splits", np.array([1.0, 2.0, 2.0]) @ problem.model["d"] <= 3)


def used(problem):
    problem.model.add("few", constraints.features_used(problem).sum() <= 1)


def paid(problem):
    problem.model.add(
        "paid", constraints.features_used(problem)["a"] * 4 + constraints.features_used(problem)["b"] <= 3
    )


def at_root(problem):
    name = "a" if "a" in problem.model.variables else "w"
    problem.model.add("not_here", problem.model[name][0, "a"] == 0)


def visits(problem):
    """A visit is paid once, whichever of a and b it tells; c needs another one."""
    used, visit = constraints.features_used(problem), problem.model.binary("visit", 2)
    problem.model.add("first_visit", used["a"] + used["b"] <= 2 * visit[0])
    problem.model.add("second_visit", used["c"] <= visit[1])
    problem.model.add("one_visit", 2 * visit[0] + visit[1] <= 2)


def of_nodes(problem):
    """Binaries above those of every node, and no larger than needed."""
    own, a = problem.model.binary("own", 3), problem.model["a"]
    for t in range(3):
        problem.model.add(f"at_{t}", own >= a[t])
    problem.model.add("no_more", own <= a.sum(axis=0))
    problem.model.add("one", own.sum() <= 1)


CASES = [
    ("oct", {"alpha": 0.0}, visits, GroupBudget(2, (("a", "b"), ("c",)), (2.0, 1.0))),
    ("margot", {"C": 2.0}, visits, GroupBudget(2, (("a", "b"), ("c",)), (2.0, 1.0))),
    ("oct", {"alpha": 0.0, "variant": "paper"}, of_nodes, GroupBudget(1, (("a",), ("b",), ("c",)))),
    ("oct", {"alpha": 0.0}, splits, AtMostSplits(2)),
    ("oct", {"alpha": 0.0}, weighed, AtMostSplits(3, (1.0, 2.0, 2.0))),
    ("oct", {"alpha": 0.0}, used, AtMostFeatures(1)),
    ("oct", {"alpha": 0.0}, paid, FeatureBudget(3, {"a": 4, "b": 1})),
    ("margot", {"C": 2.0}, used, AtMostFeatures(1)),
    ("margot", {"C": 2.0}, at_root, Forbid(("a",), (0,))),
    ("ort", {"alpha": 0.05}, used, AtMostFeatures(1)),
]


@pytest.mark.first_cases(6)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("model", "parameters", "write", "expected"), CASES)
def test_they_are_read_and_kept(model, parameters, write, expected, seed):
    problem, other = built(model, parameters, 2, seed), built(model, parameters, 2, seed)
    write(problem)
    write(other)
    result = problem.solve(time_limit=60, gap=1e-6)
    assert result.solution.solver in ("exact-search", "routing")
    assert [str(held.constraint) for held in result.constraints] == [str(expected)]
    assert result.status == "optimal"
    assert result.verified, result.failed_checks
    assert expected.holds(result.tree, problem.data).met
    rows = other.solve("highs", time_limit=60, gap=1e-6, start=None)
    assert rows.status == "optimal"
    assert result.objective == pytest.approx(rows.objective, rel=1e-4, abs=1e-9)
    assert at_most(result.bound, rows.objective + 1e-6 * (1 + abs(rows.objective)))


def share(problem):
    predicted = problem.formulation.expressions(problem.model, problem.instance).predicted(1)
    problem.model.add("few_of_it", predicted.sum() <= 4)
    problem.model.add("some_of_it", predicted[:6].sum() >= 2)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", range(2))
def test_sums_over_labels_are_read(seed):
    problem, other = (built("oct", {"alpha": 0.0}, 2, seed) for _ in range(2))
    share(problem)
    share(other)
    result = problem.solve(time_limit=60, gap=1e-6)
    assert result.solution.solver == "exact-search"
    assert [str(held.constraint) for held in result.constraints] == ["few_of_it, some_of_it"]
    assert result.status == "optimal"
    assert result.verified, result.failed_checks
    rows = other.solve("highs", time_limit=60, gap=1e-6, start=None)
    assert rows.status == "optimal"
    assert same(result.objective, rows.objective)
    chosen = np.asarray(result.tree.predict(problem.data.X_raw)) == 1
    assert chosen.sum() <= 4  # exact: a count
    assert chosen[:6].sum() >= 2  # exact: a count
    again = problem.with_only(problem.constraints).solve(time_limit=60, gap=1e-6)
    assert same(again.objective, rows.objective)


def a_lower_limit(problem):
    problem.model.add("many_splits", problem.model["d"].sum() >= 2)


def two_signs(problem):
    problem.model.add(
        "either", constraints.features_used(problem)["a"] <= constraints.features_used(problem)["b"]
    )


def a_term(problem):
    m = problem.model
    m.minimize(m.objective_expression + 0.1 * m["d"].sum())


def a_binary_of_the_root(problem):
    at_root = problem.model.binary("at_root")
    problem.model.add(
        "tie", problem.formulation.expressions(problem.model, problem.instance).features()[0, 0] <= at_root
    )
    problem.model.add("limit", at_root <= 0)


def a_sum_with_weights(problem):
    """Of hyperplanes, whose weights may be negative."""
    visit, used = problem.model.binary("visit"), constraints.features_used(problem)
    problem.model.add("tie", used["a"] <= visit)
    problem.model.add("no_more", visit <= used["a"] + problem.model["w"][0, "b"])
    problem.model.add("limit", visit <= 1)


def a_binary_from_below(problem):
    visit = problem.model.binary("visit")
    problem.model.add("tie", constraints.features_used(problem)["a"] <= visit)
    problem.model.add("at_least", visit >= 1)


def a_binary_that_is_less(problem):
    visit, used = problem.model.binary("visit"), constraints.features_used(problem)
    problem.model.add("tie", used["a"] + used["b"] <= visit)  # at most one of them, too
    problem.model.add("limit", visit <= 1)


def a_binary_that_forbids(problem):
    visit, used = problem.model.binary("visit"), constraints.features_used(problem)
    problem.model.add("tie", used["a"] + used["b"] <= 2 * visit)
    problem.model.add("only_with_a", visit <= used["a"])
    problem.model.add("limit", visit <= 1)


OF_NODES = [
    a_lower_limit,
    two_signs,
    a_binary_of_the_root,
    a_binary_from_below,
    a_binary_that_is_less,
    a_binary_that_forbids,
]


@pytest.mark.parametrize("write", few_of(OF_NODES, 2))
def test_what_is_none_of_them_and_reads_splits_is_kept_as_rows_of_nodes(write):
    problem, other = (built("oct", {"alpha": 0.0}, 2) for _ in range(2))
    for one in (problem, other):
        splits(one)
        write(one)
    result = problem.solve(time_limit=60, gap=1e-6)
    assert result.solution.solver == "exact-search"
    assert any(isinstance(one, NodeRows) for one in problem.constraints)
    agree(result, other)
    again = problem.with_only(problem.constraints).solve("highs", time_limit=60, gap=1e-6, start=None)
    agree(again, other)


def agree(result, other):
    """Compare a result with that of a problem whose rows no search has read."""
    rows = other.solve("highs", time_limit=60, gap=1e-6, start=None)
    assert result.status == rows.status
    if rows.status == "infeasible":
        return
    assert rows.status == "optimal"
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(rows.objective, rel=1e-4, abs=1e-9)
    assert at_most(result.bound, rows.objective + 1e-6 * (1 + abs(rows.objective)))


def drawn_rows(problem, seed):
    """Add one or two kinds of rows on splits, used features, and binaries of their own."""
    rng, m, n_nodes = np.random.default_rng(seed), problem.model, problem.topology.n_branches
    a = problem.formulation.expressions(m, problem.instance).features()

    def node():
        return int(rng.integers(n_nodes))

    def feature():
        return int(rng.integers(3))

    def implied(name):
        m.add(name, a[node(), feature()] <= a[node(), feature()])

    def least(name):
        m.add(name, m["d"].sum() >= int(rng.integers(1, n_nodes + 1)))

    def threshold(name):
        if "u" in m.variables:
            t, k = node(), int(rng.integers(m["u"].shape[1]))
            m.add(name, m["u"][t, k] + int(rng.integers(2)) * m["d"][t] == int(rng.integers(2)))

    def of_both_signs(name):
        own, weights = m.binary(f"{name}_own", 2), rng.integers(-2, 3, (n_nodes, 3)).astype(float)
        terms = [weights[t, j] * a[t, j] for t in range(n_nodes) for j in range(3)]
        m.add(name, sum(terms[1:], terms[0]) <= 1 + 2 * own[0] - own[1])
        m.add(f"{name}_some", own.sum() >= 1)
        m.add(f"{name}_tie", own[1] <= a[0, feature()])

    def many(name):
        m.add(name, constraints.features_used(problem).sum() >= int(rng.integers(1, 4)))

    def either(name):
        m.add(name, constraints.features_used(problem)[feature()] + m["d"][node()] == 1)

    def of_one_node(name):
        t = node()
        m.add(name, a[t].sum() - 2 * a[t, feature()] >= 0)

    def fixed(_):
        m["d"][node()].fix(int(rng.integers(2)))

    kinds = [implied, least, threshold, of_both_signs, many, either, of_one_node, fixed]
    for r in range(int(rng.integers(1, 3))):
        kinds[int(rng.integers(len(kinds)))](f"drawn_{r}")


@pytest.mark.first_cases(6)
@pytest.mark.parametrize("seed", range(200))
def test_drawn_rows_on_splits_have_the_optimum_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    model, depth = ("ort" if seed % 4 == 2 else "oct"), (3 if seed % 12 == 1 else 2)
    parameters = {"alpha": float(rng.choice([0.0, 0.02])), "N_min": int(rng.choice([1, 1, 2]))}
    parameters |= {"variant": "valid"} if seed % 4 == 3 else {}
    problem, other = (built(model, parameters, depth, seed, n=12) for _ in range(2))
    asked = []
    if model == "oct" and seed % 3 == 0:
        asked = [Recall("1", 0.8) if seed % 2 else LimitLabel("1", 0.4)]
    for one in (problem, other):
        drawn_rows(one, seed)
    problem.constrain(*asked)
    for constraint in asked:
        constraint.rows(other)
    result = problem.solve(time_limit=60, gap=1e-6)
    assert result.solution.solver == "exact-search"
    agree(result, other)


def test_a_row_of_the_users_own_name_tells_no_value():
    """Whatever a row is called, a variable of the user's is completed."""
    problem = built("margot", {"C": 2.0}, 1)
    visit, used = problem.model.binary("visit"), constraints.features_used(problem)
    problem.model.add("visit_at_least", used["a"] - visit <= 0)
    problem.model.add("more", visit >= 1)
    result = problem.solve("highs", time_limit=30)
    assert result.verified, result.failed_checks
    assert "visit" not in problem.encoded(result.solved_tree)


def a_split_of_the_root(problem):
    """Without binaries for thresholds, a root that has to split may part no sample."""
    problem.model.add("splits", problem.model["d"][0] >= 1)


OTHERS = [(a_term, "tight"), (a_split_of_the_root, "paper")]


@pytest.mark.parametrize(("write", "variant"), OTHERS)
def test_what_is_none_of_them_is_left_to_the_rows(write, variant):
    problem = built("oct", {"alpha": 0.0, "variant": variant}, 2)
    splits(problem)
    write(problem)
    problem.read_by_hand()
    assert problem.constraints == ()
    result = problem.solve(time_limit=60)
    assert result.verified, result.failed_checks
    assert result.solution.solver == "highs"


def test_weights_that_may_be_negative_are_no_binaries():
    problem = built("margot", {"C": 2.0}, 2)
    a_sum_with_weights(problem)
    problem.read_by_hand()
    assert problem.constraints == ()


def test_weights_of_hyperplanes_from_above_are_not_forbidden():
    """A row ``a <= 0`` leaves negative weights."""
    problem, other = (built("oct-h", {"alpha": 0.05}, 1) for _ in range(2))
    problem.model.add("not_up", problem.model["a"][0, "a"] <= 0)
    problem.read_by_hand()
    assert problem.constraints == ()
    other.model.add("not_at_all", other.model["a"][0, "a"] == 0)
    other.read_by_hand()
    assert [str(one) for one in other.constraints] == [str(Forbid(("a",), (0,)))]


@pytest.mark.parametrize("first", [True, False])
def test_beside_constraints_as_objects(first):
    problem, other = built("oct", {"alpha": 0.0}, 2), built("oct", {"alpha": 0.0}, 2)
    if first:
        splits(problem)
    for one in (problem, other):
        one.constrain(Forbid("a"))
    if not first:
        splits(problem)
    other.constrain(AtMostSplits(2))
    result, again = problem.solve(time_limit=60), other.solve(time_limit=60)
    assert result.solution.solver == again.solution.solver == "exact-search"
    assert same(result.objective, again.objective)
    assert sorted(str(held.constraint) for held in result.constraints) == ["at-most-splits 2", "forbid a"]


def test_a_feature_that_counts_with_others_has_no_cost_of_its_own():
    frame = pd.DataFrame(
        {"x": [1.0, 2, 3, 4, 5, 6], "z": [np.nan, 1, 2, 0, 1, np.nan], "y": ["n", "y", "n", "y", "y", "n"]}
    )
    data = Dataset.from_frame(frame, "y", missing="branch")
    problem = mipforest.get_formulation("oct")(alpha=0.0).build(data, 1)
    part = next(name for name in data.features.labels if "missing" in name)
    problem.model.add("few", constraints.features_used(problem)[part] <= 0)
    problem.read_by_hand()
    assert [type(one) for one in problem.constraints] == [NodeRows]
    result = problem.solve(time_limit=20)
    assert part not in result.features_used
