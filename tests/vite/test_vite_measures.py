"""VITE's tables: a forest written by hand, definitions spelled out, and the paper's forest."""

from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
import sklearn
from handmade_forest import LEAF, TREES, forest_of, forests
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight
from tolerance import same

from mipforest.data import Dataset, load
from mipforest.ensembles import EnsembleError
from mipforest.ensembles.libraries import fit_forest
from mipforest.time_budget import TimeBudget
from mipforest.vite import vite


def data_of(n_features, n=12):
    X = np.random.default_rng(0).random((n, n_features))
    return Dataset.from_arrays(X, np.arange(n) % 2, features=[f"f{j}" for j in range(n_features)])


@pytest.fixture(scope="module")
def by_hand():
    return vite(forest_of(TREES, 4), data_of(4), 2)


def test_levels_of_a_forest_written_by_hand(by_hand):
    assert by_hand.levels.loc["f0"].tolist() == pytest.approx([200 / 3, 0])
    assert by_hand.levels.loc["f1"].tolist() == pytest.approx([0, 200 / 3])
    assert by_hand.levels.loc["f2"].tolist() == pytest.approx([0, 100 / 3])
    assert by_hand.levels.loc["f3"].tolist() == pytest.approx([100 / 3, 0])


def test_nodes_of_a_forest_written_by_hand(by_hand):
    assert by_hand.nodes[1].to_dict() == {"f0": 0, "f1": 100, "f2": 0, "f3": 0}
    assert by_hand.nodes[2].to_dict() == {"f0": 0, "f1": 50, "f2": 50, "f3": 0}
    assert by_hand.roles.loc[0].tolist() == [100, 0, 0]
    assert by_hand.roles.loc[1].tolist() == pytest.approx([100 / 3, 200 / 3, 0])
    assert by_hand.roles.loc[2].tolist() == pytest.approx([200 / 3, 100 / 3, 0])


def test_thresholds_of_a_forest_written_by_hand(by_hand):
    found = by_hand.thresholds.set_index(["node", "feature"])[["splits", "lower", "upper"]]
    assert found.to_dict("index") == {
        (0, "f0"): {"splits": 2, "lower": 0.4, "upper": 0.5},
        (0, "f3"): {"splits": 1, "lower": 0.9, "upper": 0.9},
        (1, "f1"): {"splits": 1, "lower": 0.2, "upper": 0.2},
        (2, "f1"): {"splits": 1, "lower": 0.7, "upper": 0.7},
        (2, "f2"): {"splits": 1, "lower": 0.6, "upper": 0.6},
    }


def walk(tree, depth, node=0):
    """(node, tree there) of every node above a depth."""
    if node >= 2**depth - 1:
        return
    yield node, tree
    if tree != LEAF:
        yield from walk(tree[2], depth, 2 * node + 1)
        yield from walk(tree[3], depth, 2 * node + 2)


@settings(max_examples=20)
@given(forests(), st.integers(1, 4))
def test_tables_follow_the_definitions(drawn, depth):
    trees, weights = drawn
    if all(tree == LEAF for tree in trees):
        return
    seen = vite(forest_of(trees, 3, weights), data_of(3), depth)
    uses, thresholds, leaves = defaultdict(float), defaultdict(list), defaultdict(float)
    for tree, weight in zip(trees, weights, strict=True):
        for node, found in walk(tree, depth):
            if found == LEAF:
                leaves[node] += weight
            else:
                uses[node, found[0]] += weight
                thresholds[node, found[0]].append(found[1])
    for node in seen.nodes:
        total = sum(uses[node, j] for j in range(3))
        expected = [100 * uses[node, j] / total if total else 0 for j in range(3)]
        assert seen.nodes[node].tolist() == pytest.approx(expected)
        roles = [100 * part / sum(weights) for part in (total, leaves[node])]
        assert seen.roles.loc[node, ["split", "leaf"]].tolist() == pytest.approx(roles)
    for level in range(depth):
        nodes = range(2**level - 1, 2 ** (level + 1) - 1)
        count = [sum(uses[node, j] for node in nodes) for j in range(3)]
        expected = [100 * part / sum(count) if sum(count) else 0 for part in count]
        assert seen.levels[level].tolist() == pytest.approx(expected)
    found = {
        (row.node, int(row.feature[1:])): (row.splits, row.lower, row.upper)
        for row in seen.thresholds.itertuples()
    }
    assert found == {key: (len(cuts), min(cuts), max(cuts)) for key, cuts in thresholds.items()}
    assert np.allclose(seen.roles.sum(axis=1), 100)


def test_what_no_tree_does_is_exactly_zero():
    """Also where sums of weights are rounded."""
    weights = [0.1, 0.2, 0.4]
    roles = vite(forest_of([TREES[0]] * 3, 4, weights), data_of(4), 3).roles
    assert (roles.loc[:2, ["leaf", "absent"]] == 0).all(axis=None)
    assert (roles.loc[3:, ["split", "absent"]] == 0).all(axis=None)
    assert np.allclose(roles.sum(axis=1), 100)


@pytest.mark.parametrize("target", ["random-forest:trees=20", "gradient-boosting:trees=20"])
def test_columns_sum_to_one_hundred(target):
    seen = vite(target, load("breast_cancer"), 3)
    assert np.allclose(seen.levels.sum(), 100)
    assert np.allclose(seen.nodes.sum()[seen.roles.split > 0], 100)
    by_node = seen.thresholds.groupby("node")["percent"]
    assert np.allclose(by_node.sum(), 100)
    assert by_node.apply(lambda share: share.is_monotonic_decreasing).all()
    assert (seen.thresholds.lower <= seen.thresholds.upper).all()


def test_what_the_ensemble_says_of_samples():
    data = load("breast_cancer")
    seen = vite("random-forest:trees=20", data, 2)
    estimator = seen.ensemble.adapter.estimator
    names = np.array(data.classes)
    assert (seen.probabilities.predicted == names[estimator.predict(data.X_raw)]).all()
    assert (seen.probabilities.target == names[data.y]).all()
    assert same(seen.accuracy, estimator.score(data.X_raw, data.y))
    best = estimator.predict_proba(data.X_raw).max(axis=1)
    for k, name in enumerate(data.classes):
        mine = estimator.predict(data.X_raw) == k
        row = seen.classes.loc[name]
        assert row.samples == mine.sum()
        assert row.probability == pytest.approx(best[mine].mean())
        assert row.right == pytest.approx((data.y[mine] == k).mean())
    assert seen.proximity.index.tolist() == list(data.samples.labels)


def test_deeper_trees_are_shown_to_the_depth():
    data = load("breast_cancer")
    whole = vite("random-forest:trees=10", data, 4)
    top = vite(whole.ensemble, data, 2)
    pd.testing.assert_frame_equal(top.levels, whole.levels[[0, 1]])
    pd.testing.assert_frame_equal(top.nodes, whole.nodes[[0, 1, 2]])
    pd.testing.assert_frame_equal(top.roles, whole.roles.loc[:2])


def test_tables_are_written_whole_or_not_at_all(by_hand, tmp_path):
    folder = tmp_path / "tables"
    written = by_hand.write_tables(folder)
    assert {path.name for path in written} == {f"{name}.csv" for name in by_hand.tables()}
    levels = pd.read_csv(folder / "levels.csv", index_col="feature")
    assert np.allclose(levels, by_hand.levels)
    nodes = pd.read_csv(folder / "thresholds.csv")
    pd.testing.assert_frame_equal(nodes, by_hand.thresholds, check_dtype=False)
    proximity = pd.read_csv(folder / "proximity.csv", index_col="sample")
    assert np.allclose(proximity, by_hand.proximity)
    assert len(list(folder.iterdir())) == len(written)
    with pytest.raises(FileNotFoundError):
        by_hand.write_tables(tmp_path / "absent" / "tables")


def test_bad_depth_and_target():
    data = load("breast_cancer")
    with pytest.raises(ValueError, match="depth must be 1 to 10"):
        vite("random-forest", data, 11)
    with pytest.raises(EnsembleError, match="no ensemble is called"):
        vite("forest", data, 2)


def test_thal_leads_the_papers_forest_on_cleveland(papers_data):
    """Section 5 of the paper: 66% of the roots split on thal, with a scikit-learn before 1.9.

    From 1.9 on, class weights decide how bootstrap samples are drawn, and it is another forest.
    """
    whole = load(papers_data / "cleveland.csv").binarise([1, 2, 3, 4])
    train = whole.split(0.2, seed=10)[0]
    seen = vite("random-forest:trees=100", train, 3)
    version = tuple(map(int, sklearn.__version__.split(".")[:2]))
    assert seen.levels[0].idxmax() == "thal"
    assert seen.levels.loc["thal", 0] == (66 if version < (1, 9) else 55)
    assert set(seen.levels[0].nlargest(3).index) == {"thal", "cp", "ca"}
    assert (seen.levels.loc[["thal", "cp", "ca", "thalach"]] > 0).all(axis=None)


def test_the_papers_share_of_thal_comes_back_with_weighted_samples(papers_data):
    """Trees as scikit-learn before 1.9 grew them: samples drawn evenly, then weighted to balance the classes."""
    data = load(papers_data / "cleveland.csv").binarise([1, 2, 3, 4]).split(0.2, seed=10)[0]
    options = {"trees": 100, "depth": 2, "seed": 100, "budget": TimeBudget()}
    forest = fit_forest(RandomForestClassifier, data.X_raw, data.y, **options)
    balance = compute_sample_weight("balanced", data.y)
    roots = []
    for tree in forest.estimators_:
        drawn = np.random.RandomState(tree.random_state).randint(0, data.n, data.n)
        weights = balance * np.bincount(drawn, minlength=data.n)
        root = DecisionTreeClassifier(max_depth=1, random_state=tree.random_state)
        roots.append(root.fit(data.X_raw, data.y, sample_weight=weights).tree_.feature[0])
    assert roots.count(data.features.labels.index("thal")) == 66
