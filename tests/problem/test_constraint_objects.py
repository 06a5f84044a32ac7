"""Constraints as objects: their words, their rows beside those of the helpers, and optima against enumeration."""

import tomllib
from contextlib import suppress
from itertools import product

import numpy as np
import pandas as pd
import pytest
from tolerance import at_least, same

from mipforest import constraints as helpers
from mipforest import get_formulation
from mipforest.data import Dataset
from mipforest.errors import DataError
from mipforest.problem.constraints import (
    F1,
    KINDS,
    AtMostFeatures,
    AtMostSplits,
    FeatureBudget,
    Forbid,
    LimitLabel,
    MinLeaf,
    Monotone,
    OncePerPath,
    Parity,
    Precision,
    Recall,
    RegionLabel,
    Require,
    Split,
    constraint_of,
    constraints_of,
    read_constraints,
)
from mipforest.problem.constraints.reading import as_options
from mipforest.problem.expressions import NotExpressed

N = 14


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.integers(0, 4, N) for name in ("age", "dose")})
    frame["sex"] = rng.integers(0, 2, N)
    noise = rng.random(N) < 0.2
    frame["ill"] = np.where((frame.age + frame.dose > 3) ^ noise, "yes", "no")
    return Dataset.from_frame(frame, "ill")


def build(data, depth=2):
    return get_formulation("oct")().build(data, depth=depth)


WORDS = {
    "forbid": ("age,sex", Forbid(("age", "sex")), lambda p: helpers.forbid_features(p, ["age", "sex"])),
    "require": ("dose", Require("dose"), lambda p: helpers.require_features(p, "dose")),
    "at-most-splits": ("2", AtMostSplits(2), lambda p: p.model.add("splits", p.model["d"].sum() <= 2)),
    "at-most-features": ("1", AtMostFeatures(1), lambda p: helpers.feature_budget(p, 1)),
    "feature-budget": ("2", FeatureBudget(2), lambda p: helpers.feature_budget(p, 2)),
    "monotone": ("age-", Monotone("age", False), lambda p: helpers.monotone(p, "age", increasing=False)),
    "once-per-path": (
        "age,sex",
        OncePerPath(("age", "sex")),
        lambda p: helpers.once_per_path(p, ["age", "sex"]),
    ),
    "split": ("1: age >= 2", Split("age", 2, 1), lambda p: helpers.fix_split(p, "age", 2, node=1)),
    "min-leaf": ("3", MinLeaf(3), lambda p: helpers.min_samples_leaf(p, 3)),
    "parity": (
        "sex=3%",
        Parity("sex", 0.03),
        lambda p: helpers.demographic_parity(p, p.data.X_raw[:, 2], 0.03),
    ),
    "recall": ("yes=90%", Recall("yes", 0.9), lambda p: helpers.min_recall(p, 0.9, positive="yes")),
    "precision": ("no=0.8", Precision("no", 0.8), lambda p: helpers.min_precision(p, 0.8, positive="no")),
    "f1": ("yes=85%", F1("yes", 0.85), lambda p: helpers.min_f1(p, 0.85, positive="yes")),
    "label": (
        "yes: age >= 3, sex < 1",
        RegionLabel("yes", ("age >= 3", "sex < 1")),
        lambda p: helpers.forbid_label(p, "no", (p.data.X_raw[:, 0] >= 3) & (p.data.X_raw[:, 2] < 1)),
    ),
    "limit-label": ("yes=30%", LimitLabel("yes", 0.3), lambda p: helpers.limit_label(p, "yes", 0.3)),
}


def test_every_kind_is_tried():
    assert WORDS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_words_and_rows_are_those_of_the_option_and_the_helper(data, kind):
    text, constraint, helper = WORDS[kind]
    assert KINDS[kind].parse(text) == [constraint]
    assert KINDS[kind].parse(constraint.words) == [constraint]
    assert constraint_of(constraint.to_dict()) == constraint
    assert constraints_of({kind: text}) == [constraint]
    one, other = build(data), build(data)
    one.constrain(constraint)
    helper(other)
    assert one.constraints == (constraint,)
    first, second = one.model.matrix(), other.model.matrix()
    assert first.columns == second.columns
    assert first.A.shape == second.A.shape
    assert abs(first.A - second.A).nnz == 0
    assert np.array_equal(first.row_lower, second.row_lower)
    assert np.array_equal(first.row_upper, second.row_upper)


def test_a_share_of_a_leaf_is_that_of_the_helper(data):
    one, other = build(data), build(data)
    one.constrain(MinLeaf("20%"))
    helpers.min_weight_fraction_leaf(other, 0.2)
    assert abs(one.model.matrix().A - other.model.matrix().A).nnz == 0


def all_trees(X):
    """Yield all trees of depth 2, univariate: splits used, leaves (n,) and predicted classes (n,)."""
    cuts = [(j, value) for j in range(X.shape[1]) for value in np.unique(X[:, j])[1:]]
    right = {None: np.ones(len(X), int), **{cut: (X[:, cut[0]] >= cut[1]).astype(int) for cut in cuts}}
    for root, low, high in product(right, repeat=3):
        leaf = 2 * right[root] + np.where(right[root] == 1, right[high], right[low])
        for labels in product((0, 1), repeat=4):
            yield (root, low, high), leaf, np.array(labels)[leaf]


@pytest.fixture(scope="module")
def trees(data):
    return sorted(all_trees(data.X_raw), key=lambda tree: (tree[2] != data.y).sum())


def used(splits):
    return {cut[0] for cut in splits if cut is not None}


def recall(y, chosen, k=1):
    return (chosen[y == k] == k).mean()


def difference(groups, chosen):
    return abs(chosen[groups == 0].mean() - chosen[groups == 1].mean())


#: A constraint, and the same said of splits, leaves and predicted classes.
CASES = [
    (Forbid("age"), lambda s, leaf, c, y, X: 0 not in used(s)),
    (Forbid(("age",), nodes=(0,)), lambda s, leaf, c, y, X: s[0] is None or s[0][0] != 0),
    (Require("sex"), lambda s, leaf, c, y, X: 2 in used(s)),
    (AtMostFeatures(1), lambda s, leaf, c, y, X: len(used(s)) <= 1),
    (AtMostSplits(2), lambda s, leaf, c, y, X: sum(split is not None for split in s) <= 2),
    (AtMostSplits(1), lambda s, leaf, c, y, X: sum(split is not None for split in s) <= 1),
    (
        FeatureBudget(2, {"age": 2, "dose": 1}),
        lambda s, leaf, c, y, X: sum({0: 2, 1: 1, 2: 0}[j] for j in used(s)) <= 2,
    ),
    (Split("dose", 2), lambda s, leaf, c, y, X: s[0] == (1, 2)),
    (Split("dose", (1.5, 2)), lambda s, leaf, c, y, X: s[0] == (1, 2)),
    (Split("age", (None, 2)), lambda s, leaf, c, y, X: s[0] in [(0, 1), (0, 2)]),
    (Split("sex", None), lambda s, leaf, c, y, X: s[0] is not None and s[0][0] == 2),
    (Split("sex", None, 1), lambda s, leaf, c, y, X: s[1] is not None and s[1][0] == 2),
    (MinLeaf(4), lambda s, leaf, c, y, X: min(size for size in np.bincount(leaf) if size) >= 4),
    (MinLeaf("25%"), lambda s, leaf, c, y, X: min(size for size in np.bincount(leaf) if size) >= 3.5),
    (Parity("sex", 0.1), lambda s, leaf, c, y, X: difference(X[:, 2], c) <= 0.1),
    (Recall("yes", 0.95), lambda s, leaf, c, y, X: recall(y, c) >= 0.95),
    (Precision("yes", 0.95), lambda s, leaf, c, y, X: not c.any() or y[c == 1].mean() >= 0.95),
    (
        F1("no", 0.9),
        lambda s, leaf, c, y, X: 2 * ((c == 0) & (y == 0)).sum() >= 0.9 * ((c == 0).sum() + (y == 0).sum()),
    ),
    (LimitLabel("yes", 0.3), lambda s, leaf, c, y, X: c.mean() <= 0.3),
]


@pytest.mark.parametrize(
    ("constraint", "allowed"), CASES, ids=lambda case: str(case) if case in dict(CASES) else ""
)
def test_the_optimum_is_that_of_enumeration(data, trees, constraint, allowed):
    y, X = data.y, data.X_raw
    best = next(chosen for splits, leaf, chosen in trees if allowed(splits, leaf, chosen, y, X))
    problem = build(data)
    problem.constrain(constraint)
    result = problem.solve(time_limit=30)
    assert result.proven_for == "definition"
    assert (result.tree.predict(X) != y).sum() == (best != y).sum()
    (held,) = result.constraints
    above = constraint.to_dict().keys() & {"least", "features"} and constraint.kind != "forbid"
    assert at_least(held.value, held.limit) if above else at_least(held.limit, held.value)
    if held.binds is False:  # it stands nowhere in the way
        assert not same(held.value, held.limit)


@pytest.mark.parametrize("variant", ["tight", "paper"])
@pytest.mark.parametrize(
    "split",
    [Split("age", (1.5, 2.5)), Split("dose", (None, 1), 1), Split("sex", None), Split("age", None, 2)],
)
def test_rows_of_a_range_of_thresholds_have_the_same_optimum(data, split, variant):
    searched = build(data)
    searched.constrain(split)
    problem = get_formulation("oct")(variant=variant).build(data, depth=2)
    problem.constrain(split)
    by_rows = problem.solve("highs", time_limit=60, start=None)
    assert by_rows.status == "optimal"
    assert split.admits(by_rows.tree, data)
    assert same(by_rows.objective, searched.solve("exact-search", gap=0.0).objective)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("age", Split("age", None)),
        ("2: age in 1..3", Split("age", (1, 3), 2)),
        ("age in ..3", Split("age", (None, 3))),
        ("1: age in 1.5..", Split("age", (1.5, None), 1)),
    ],
)
def test_a_range_of_thresholds_is_read_and_written(text, split):
    assert Split.parse(text) == [split]
    assert split.words == text
    kept = split.to_dict()
    assert Split.from_dict({key: value for key, value in kept.items() if key != "kind"}) == split


@pytest.mark.parametrize(
    ("split", "why"),
    [
        (lambda: Split("age", (3, 1)), "no threshold is from 3 to 1"),
        (lambda: Split("age", ("a", 1)), "is no threshold"),
        (lambda: Split("age", (np.inf, None)), "finite numbers"),
    ],
)
def test_what_is_no_range_is_refused(split, why):
    with pytest.raises(DataError, match=why):
        split()


def test_a_range_that_parts_no_samples_is_refused(data):
    with pytest.raises(DataError, match="puts all training samples on one side: age lies between 0 and 3"):
        build(data).constrain(Split("age", (7, 9)))


def test_monotone_trees_hold_it_and_others_do_not(data):
    free = build(data).solve(time_limit=20)
    problem = build(data)
    problem.constrain(Monotone("age", increasing=False))
    falling = problem.solve(time_limit=20)
    assert falling.constraints[0].value == 0  # exact: a count
    assert Monotone("age", increasing=False).holds(free.tree, data).value > 0


def test_a_constraint_binds_where_one_sample_more_would_break_it(data):
    tree = build(data).solve(time_limit=20).tree
    share = (tree.predict(data.X_raw) == 1).mean()
    near, far = (LimitLabel("yes", share + more / N).holds(tree, data) for more in (0.5, 1.5))
    assert near.value == pytest.approx(share)
    assert near.binds
    assert not far.binds


def test_values_are_in_what_is_kept(data):
    problem = build(data)
    problem.constrain(Recall("yes", 0.9), AtMostFeatures(2))
    found = problem.solve(time_limit=20).to_dict()["constraints"]
    assert [own["words"] for own in found] == ["recall yes=90%", "at-most-features 2"]
    assert found[0]["share"]
    assert found[0]["limit"] == pytest.approx(0.9)


def test_constraints_that_contradict_each_other_are_named(data):
    problem = build(data)
    problem.constrain(Forbid("age"), Require("age"))
    result = problem.solve(time_limit=20)
    assert result.tree is None
    assert "forbid_age" in str(result.conflict)
    assert "require_age" in str(result.conflict)
    (said,) = (text for text in result.solution.warnings if "together" in text)
    assert said == (
        "no tree satisfies forbid age and require age together; with any one of them left out there is one"
    )
    assert [held.value for held in result.constraints] == [None, None]


def test_a_file_holds_all_of_them(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(
        'forbid = ["a, b", "sex"]\nat-most-features = 3\nmonotone = ["age+", "dose-"]\nmin_leaf = "5%"\n'
        'parity = {sex = "3%", site = 0.1}\nsplit = "age >= 60"\n'
        '[[recall]]\nlabel = "yes"\nleast = "90%"\n[feature-budget]\nbudget = 3\ncost = {age = 1}\n'
    )
    assert read_constraints(path) == [
        Forbid(("a, b", "sex")),
        AtMostFeatures(3),
        Monotone("age"),
        Monotone("dose", increasing=False),
        MinLeaf("5%"),
        Parity("sex", 0.03),
        Parity("site", 0.1),
        Split("age", 60),
        Recall("yes", 0.9),
        FeatureBudget(3, {"age": 1}),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("forbit = 'a'", "there is no constraint 'forbit' (did you mean 'forbid'?)"),
        ("forbid = 3", "give a table"),
        ("recall = {yes = 'most'}", "'most' is no share"),
        ("recall = {yes = 1.5}", "1.5 is no share from 0% to 100%"),
        ("split = {node = 1}", "does not say what it is"),
        ("at-most-features = true", "True is no constraint"),
        ("at-most-features = -1", "no whole number of 0 or more"),
        ("min-leaf = 'few'", "nor a share such as 5%"),
        ("[feature-budget]\nbudget = 'x'", "give a number of 0 or more"),
        ("forbid = [[]]", "is no text"),
        ("x = ", "is no TOML file"),
    ],
)
def test_what_a_file_may_not_hold(tmp_path, content, said):
    path = tmp_path / "rules.toml"
    path.write_text(content)
    if content == "forbid = 3":
        assert read_constraints(path) == [Forbid("3")]  # a column may be called so
        return
    with pytest.raises(DataError, match=r"rules\.toml") as refused:
        read_constraints(path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (MinLeaf(15), "a leaf has to hold 15 training samples, and there are 14 in all"),
        (Split("age", 9), "age lies between 0 and 3; choose a threshold inside"),
        (Split("age", 2, 3), "there is no branch node 3; a tree of depth 2 has the nodes 0 to 2"),
        (Recall("maybe", 0.5), "no class 'maybe'"),
        (Forbid("agee"), "did you mean 'age'?"),
        (Require(("age", "ill")), "no feature 'ill'"),
        (
            Require(("age", "dose", "sex", "a=1")),
            "4 names have to be used (age,dose,sex,a=1), and a tree of depth 2 has 3 splits of one feature each",
        ),
        (Forbid("age", nodes=(4,)), "forbid: there is no branch node 4"),
    ],
)
def test_what_cannot_hold_alone_is_refused(data, constraint, said):
    problem = build(data)
    with pytest.raises(DataError) as refused:
        problem.constrain(constraint)
    assert said in str(refused.value)
    assert not problem.constraints


WORTHLESS = (
    None,
    True,
    -1,
    7,
    0.5,
    float("nan"),
    1e400,
    "",
    "x",
    "5%",
    [],
    [3],
    ["x"],
    {},
    {"x": -1},
    {3: "y"},
)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_file_holds_is_read_or_refused_in_words(data, kind):
    entries = [name for name in WORDS[kind][1].to_dict() if name != "kind"]
    for values in product(WORTHLESS, repeat=len(entries)):
        with suppress(DataError, NotExpressed):
            constraint = constraint_of({"kind": kind, **dict(zip(entries, values, strict=True))})
            assert constraint_of(constraint.to_dict()) == constraint
            build(data, depth=1).constrain(constraint)


def test_nodes_of_forbidden_features_are_read_from_the_table_that_is_written():
    written = [Forbid(("age",), (0, 2))]
    options, text = as_options(written)
    assert options == []
    assert constraints_of(tomllib.loads(text)) == written


def test_a_given_split_that_no_sample_reaches_is_paid_for():
    """Without rows as with them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (12, 2)).astype(float)
    data = Dataset.from_arrays(X, (X[:, 0] > 1).astype(int), features=["a", "b"])
    found = []
    for declare in (True, False):
        problem = get_formulation("oct")(alpha=0.1).build(data, 2, declare=declare)
        problem.constrain(Split("b", 1.5, 2))
        found.append(problem.solve("exact-search"))
        assert found[-1].status == "optimal"
        assert not found[-1].tree.is_trivial(2)
    assert same(found[0].objective, found[1].objective)
