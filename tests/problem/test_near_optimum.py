"""The trees near the optimum of a problem: which they are, what satisfies constraints, what they have in common."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from tolerance import at_most, same

from mipforest.constraints import forbid_features, limit_label
from mipforest.data import Dataset
from mipforest.errors import NotAllowed, Unsupported
from mipforest.heuristics.thresholds import tree_of_thresholds
from mipforest.problem.constraints import AtMostFeatures, Forbid, LimitLabel, MinLeaf, OncePerPath
from mipforest.problem.no_good_rows import key_of
from mipforest.problem.registry import make_formulation
from mipforest.problem.tree_search import get_search
from mipforest.trees import TreeSet


def samples(seed=0, *, n=14):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)).astype(float)
    return X, ((X[:, 0] > 1) ^ (rng.random(n) < 0.3)).astype(int)


def problem(seed=0, *, depth=2, **parameters):
    return make_formulation("oct", parameters).build(Dataset.from_arrays(*samples(seed)), depth=depth)


@pytest.fixture(scope="module")
def solved():
    return problem(alpha=0.05).solve(within=0.5)


def test_all_trees_within_a_distance(solved):
    trees = solved.trees
    assert trees.complete
    assert f"all {len(trees)} trees within 50%" in repr(trees)
    assert same(trees.objectives[0], solved.objective)
    assert at_most(trees.objectives, 1.5 * solved.objective)
    instance, formulation = solved.problem.instance, solved.problem.formulation
    assert same(trees.objectives, [formulation.evaluate(tree.unscaled(), instance) for tree in trees])
    X = solved.problem.data.X_raw
    assert (trees.predict(X) == [tree.predict(X) for tree in trees]).all()
    assert solved.to_dict()["trees"]["listed"] == len(trees)


def test_the_best_few(solved):
    few = solved.problem.solve(keep_trees=3).trees
    assert few.complete
    assert same(few.objectives, solved.trees.objectives[:3])
    both = solved.problem.solve(keep_trees=3, within=0.5).trees
    assert not both.complete
    assert both.in_words() == f"the best 3 trees of {len(solved.trees)} within 50% of the optimum"
    assert (both.feature == solved.trees.feature[:3]).all()


def test_what_the_trees_have_in_common(solved):
    trees, X = solved.trees, solved.problem.data.X_raw
    use = {entry.feature: entry for entry in trees.feature_use(X)}
    features = [set(tree.features_used().overall) for tree in trees]
    for j, name in enumerate(trees.like.feature_names):
        assert same(use[name].share, np.mean([j in used for used in features]))
        assert at_most(use[name].least, use[name].mean)
    assert len(features[trees.fewest_features()]) == min(map(len, features))
    predicted = trees.predict(X)
    ones = predicted.mean(axis=0)
    assert same(trees.disagreement(X), np.minimum(ones, 1 - ones))
    groups = X[:, 1] > 1
    apart = np.abs(predicted[:, groups].mean(axis=1) - predicted[:, ~groups].mean(axis=1))
    number, difference = trees.fairest(X, groups)
    assert same(difference, apart.min())
    assert same(apart[number], difference)
    again = TreeSet.from_dict(trees.to_dict(), trees.like)
    assert (again.predict(X) == predicted).all()
    assert repr(again) == repr(trees)


@pytest.mark.parametrize("what", ["feature", "label"])
def test_constraints_leave_trees_out(what):
    """Those that are left are those of all trees, whatever the labels of their leaves, that satisfy the constraint."""
    check_constraint(3, what)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 12))
def test_constraints_leave_trees_out_of_more_samples(seed):
    for what in ("feature", "label"):
        check_constraint(seed, what)


def check_constraint(seed, what):
    built = problem(seed, depth=1 if what == "feature" else 2, alpha=0.05)
    data, everything = built.data, {"shrink": False, "all_labels": True, "stopped": lambda: False}
    listed = get_search("exact-search").list_trees(built, budget=np.inf, most=10**5, **everything)
    if what == "feature":
        forbid_features(built, "x0")
    else:
        limit_label(built, "1", 0.2)
    thresholds = built.structure.thresholds
    result = built.solve(within=1.0)
    like = TreeSet(
        like=result.trees.like,
        feature=np.where(listed.chosen < 0, -1, thresholds.feature[listed.chosen]),
        threshold=np.where(listed.chosen < 0, 0.0, thresholds.value[listed.chosen]),
        leaf_value=listed.label,
        objectives=listed.value,
        within=None,
        found=len(listed.value),
        counted=True,
        ended=True,
    )
    fits = ~like.uses()[:, 0] if what == "feature" else like.predict(data.X_raw).mean(axis=1) <= 0.2
    expected = np.sort(listed.value[fits])
    assert result.objective == pytest.approx(expected[0], rel=1e-6)
    expected = expected[expected <= 2 * expected[0] + 1e-9]
    assert result.trees.complete
    assert same(result.trees.objectives, expected)
    few = built.solve(keep_trees=2).trees
    assert few.complete
    assert same(few.objectives, np.sort(listed.value[fits])[:2])


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_values_of_leaves_are_fitted(loss):
    X, _ = samples()
    y = np.sin(X[:, 0]) + X[:, 1]
    built = make_formulation("ort", {"loss": loss}).build(
        Dataset.from_arrays(X, y, task="regression"), depth=2
    )
    trees = built.solve(within=0.5).trees
    assert trees.complete
    values = [built.formulation.evaluate(tree.unscaled(), built.instance) for tree in trees]
    assert same(trees.objectives, values)
    assert same(trees.disagreement(X), np.ptp(trees.predict(X), axis=0))


def test_trees_that_are_not_listed():
    data = Dataset.from_arrays(*samples())
    with pytest.raises(Unsupported, match=r"up to depth 3.*depth is 4"):
        make_formulation("oct", {}, "paper").build(data, depth=4).solve("exact-search", within=0.1)
    margot = make_formulation("margot", {}).build(data, depth=1)
    with pytest.raises(Unsupported, match=r"margot cannot be listed: only univariate trees"):
        margot.solve(keep_trees=2)
    built = problem(depth=1)
    built.model.binary("own")
    with pytest.raises(Unsupported, match=r"no values of the variables own"):
        built.solve("local-search", keep_trees=2)
    built.model.remove("one_class")
    with pytest.raises(Unsupported, match=r"rows of the model were removed"):
        built.solve("highs", keep_trees=2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"keep_trees": 0}, "keep_trees is 0"),
        ({"keep_trees": 1.5}, "keep_trees is 1.5"),
        ({"within": -0.1}, "within is -0.1"),
        ({"within": np.nan}, "within is nan"),
        ({"within": np.inf}, "within is inf"),
        ({"within": 0.1, "time_limit": 0}, "without time no trees are listed"),
    ],
)
def test_requests_that_are_refused(solved, asked, said):
    with pytest.raises(NotAllowed, match=said):
        solved.problem.solve(**asked)


def test_a_listing_that_is_stopped_keeps_what_it_has(solved):
    found = get_search("exact-search").list_trees(
        solved.problem, budget=np.inf, most=10, shrink=True, all_labels=False, stopped=lambda: True
    )
    assert not found.ended
    assert not found.counted


def table(seed):
    """Numbers with missing values, levels with and without, of which one column is taken by sets."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, 9).astype(float)
    c, s = rng.choice(list("rgb"), 9).astype(object), rng.choice(list("uvw"), 9).astype(object)
    a[rng.choice(9, 2, replace=False)], c[rng.integers(9)], s[rng.integers(9)] = np.nan, None, None
    return pd.DataFrame({"a": a, "c": c, "s": s, "y": [0, 1, *rng.integers(0, 2, 7)]})


def partings(frame, rows):
    """Yield each column and the sets of rows of a node that its splits part."""
    for column in ("a", "c", "s"):
        values = {i: frame[column][i] for i in rows}
        missing = frozenset(i for i in rows if pd.isna(values[i]))
        known = sorted({values[i] for i in rows} - {values[i] for i in missing})
        if column == "a":
            sets = [[v for v in known if v <= at] for at in known]
        elif column == "c":
            sets = [list(part) for size in range(len(known) + 1) for part in combinations(known, size)]
        else:
            sets = [[], *([level] for level in known)]
        sides = set()
        for chosen in sets:
            own = frozenset(i for i in rows if i not in missing and values[i] in chosen)
            sides |= {frozenset({side, rows - side}) for side in (own, own | missing)}
        yield from ((column, parted) for parted in sides if frozenset() not in parted)


def distinct_trees(frame, rows, depth):
    """Return the trees of some rows with their errors; leaves predict the first most common class."""
    y = [int(frame["y"][i]) for i in rows]
    found = {("leaf", int(2 * sum(y) > len(y))): min(sum(y), len(y) - sum(y))}
    if depth == 0:
        return found
    for column, parted in partings(frame, rows):
        one, two = parted
        for (first, errors), (second, others) in product(
            distinct_trees(frame, one, depth - 1).items(), distinct_trees(frame, two, depth - 1).items()
        ):
            if "leaf" == first[0] == second[0] and errors + others == min(sum(y), len(y) - sum(y)):
                continue
            found[column, frozenset({(one, first), (two, second)})] = errors + others
    return found


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("seed", "depth", "solver"),
    [(0, 2, "exact-search"), (1, 2, "exact-search"), (2, 1, "highs"), (3, 1, "exact-search")]
    + [pytest.param(seed, 2, "exact-search", marks=pytest.mark.slow) for seed in range(4, 20)]
    + [pytest.param(seed, 1, "highs", marks=pytest.mark.slow) for seed in range(4, 10)]
    + [pytest.param(0, 3, "exact-search", marks=pytest.mark.slow)],
)
def test_a_choice_that_no_sample_sees_is_none(seed, depth, solver):
    """Trees on columns that are several features are those of the table itself, each once."""
    frame = table(seed)
    data = Dataset.from_frame(frame, "y", missing="branch", categorical=["c"], task="classification")
    built = make_formulation("oct", {"alpha": 0.0}).build(data, depth=depth)
    expected = sorted(distinct_trees(frame, frozenset(range(9)), depth).values())
    unit = built.structure.unit
    trees = built.solve(solver, keep_trees=len(expected) + 5).trees
    assert trees.complete
    assert np.rint(trees.objectives * unit).astype(int).tolist() == expected  # exact: whole numbers


def test_a_tree_that_a_constraint_leaves_is_listed_by_another_feature():
    """Where the first of two features that part alike is forbidden, the other one stays."""
    data = Dataset.from_frame(table(0), "y", missing="branch", categorical=["c"], task="classification")
    built = make_formulation("oct", {"alpha": 0.0}).build(data, depth=1)
    free = built.solve(keep_trees=100).trees
    forbid_features(built, "a (missing low)")
    trees = built.solve(keep_trees=100).trees
    assert trees.complete
    keys = [key_of(tree.unscaled(), data, labelled=True) for tree in trees]
    assert len(set(keys)) == len(keys)
    # All trees of the free listing but those that need the forbidden feature are among them.
    other = {key_of(tree.unscaled(), data, labelled=True) for tree in free if tree.w[0, 0] == 0}
    assert other < set(keys)
    assert any(tree.w[0, 1] for tree in trees)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("seed", range(60))
def test_trees_within_constraints_are_those_of_an_enumeration(seed):
    """With rows and without: the same trees, by what they predict and split on."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (14, 3)).astype(float)
    data = Dataset.from_arrays(X, rng.integers(0, 2, 14), features=["a", "b", "c"])
    formulation = make_formulation("oct", {"alpha": float(rng.choice([0.0, 0.05]))})
    kinds = [
        lambda: Forbid(("a",), (int(rng.integers(3)),)),
        lambda: Forbid(("b",)),
        lambda: OncePerPath(),
        lambda: MinLeaf(2),
        lambda: AtMostFeatures(2),
        lambda: LimitLabel("1", 0.5),
        lambda: Forbid(("a", "b", "c"), (2,)),
    ]
    asked = [kinds[int(k)]() for k in rng.choice(len(kinds), 2, replace=False)]
    depth = 2 + int(seed % 6 == 5)
    free = formulation.build(data, depth=depth)
    within = float(rng.choice([0.1, 0.4]))
    found = []
    for problem in (free, free.without_rows()):
        own = problem.with_only(asked)
        result = own.solve("exact-search", within=within, time_limit=60)
        found.append(result)
    rows, searched = found
    assert same(rows.objective, searched.objective)
    # Every tree of a listing without the constraints that satisfies them, and is good enough.
    limit = rows.objective + (within + 1e-9) * abs(rows.objective)
    every = get_search("exact-search").list_trees(
        free, budget=limit, most=200_000, shrink=False, all_labels=True, columns=None
    )
    expected = set()
    for chosen, label in zip(every.chosen, every.label, strict=True):
        tree = tree_of_thresholds(data, free.topology, free.structure.thresholds, chosen)
        tree = replace(tree, leaf_value=label)
        own = tree.with_scaling(data.encoding.offset, data.encoding.scale)
        if all(one.admits(own, data) for one in asked):
            expected.add(key_of(tree, data, labelled=True))
    for result in found:
        assert result.trees.complete
        for tree, value in zip(result.trees, result.trees.objectives, strict=True):
            assert all(one.admits(tree, data) for one in asked)
            assert same(value, free.formulation.evaluate(tree.unscaled(), free.instance))
            assert at_most(value, limit)
        # Others have splits that part none of their samples, above a feature that their node may not have.
        assert expected <= {key_of(tree.unscaled(), data, labelled=True) for tree in result.trees}
