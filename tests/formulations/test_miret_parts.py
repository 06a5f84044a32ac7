"""The parts of MIRET: groups of samples, frequent features, splits in the box, starts, and what it reports."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from miret_data import blobs, random_split_tree
from sklearn.ensemble import GradientBoostingClassifier

from formulations.frequent_features import frequency_thresholds, frequent_features
from formulations.group_cuts import GroupedNode
from formulations.miret import Miret
from formulations.sample_groups import first_of, merged_where_equal, proximity_groups, summed
from formulations.separating_splits import in_box, swapped_subtrees, with_fixed_labels
from mipforest.ensembles import proximity
from mipforest.problem.parameters import ParameterError
from mipforest.trees import Topology, Tree

FEW = "random-forest:trees=5"


@given(seed=st.integers(0, 10**6), threshold=st.floats(0.1, 1.0))
def test_groups_are_the_reachable_samples(seed, threshold):
    rng = np.random.default_rng(seed)
    upper = np.triu(np.round(rng.random((8, 8)) ** 2, 1), 1)
    close = upper + upper.T + np.eye(8)
    group = proximity_groups(close, threshold)
    reach = (close >= threshold - 1e-12).astype(int)
    for _ in range(8):
        reach = (reach @ reach > 0).astype(int)
    np.testing.assert_array_equal(group[:, None] == group, reach > 0)
    np.testing.assert_array_equal(group[first_of(group)], np.arange(group.max() + 1))
    assert summed(group, np.ones(8)).sum() == 8


def test_equal_samples_join_groups():
    group = np.array([0, 0, 1, 2, 3])
    X = np.array([[1.0], [2.0], [2.0], [3.0], [3.0]])
    np.testing.assert_array_equal(merged_where_equal(group, X), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(merged_where_equal(group, np.arange(5.0)[:, None]), [0, 0, 1, 2, 3])


FREQUENCY = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.4, 0.05]])


def test_thresholds_are_frequencies_or_percentiles():
    np.testing.assert_allclose(frequency_thresholds(FREQUENCY, 0.25, 0.0), 0.25)
    np.testing.assert_allclose(frequency_thresholds(FREQUENCY, 0.0, 50.0), [0.3, 0.15])
    np.testing.assert_allclose(frequency_thresholds(FREQUENCY, (0.4, 0.0), (0.0, 100.0)), [0.4, 0.4])
    allowed = frequent_features(FREQUENCY, np.array([0.3, 0.0]), "abcd")
    np.testing.assert_array_equal(allowed, [[1, 1, 0, 0], [1, 1, 1, 1]])


def test_thresholds_that_leave_nothing_are_refused():
    with pytest.raises(ParameterError, match=r"level 1 .*threshold there is 0\.45.*0\.4 \(c\)"):
        frequent_features(FREQUENCY, np.array([0.3, 0.45]), "abcd")
    with pytest.raises(ParameterError, match="gamma_percentile is 101"):
        frequency_thresholds(FREQUENCY, 0.0, 101.0)
    with pytest.raises(ParameterError, match=r"3 values.*takes 1, or 2"):
        frequency_thresholds(FREQUENCY, (0.1, 0.1, 0.1), 0.0)
    with pytest.raises(ParameterError, match="no tree of the ensemble splits at level 1"):
        frequency_thresholds(np.array([[1.0], [0.0]]), 0.0, 0.0)
    data = blobs(0, 30, 3)
    with pytest.raises(ParameterError, match=r"level 0 .*without a feature"):
        Miret(ensemble=FEW, gamma=1.1).build(data, 2)


@given(seed=st.integers(0, 10**6))
def test_a_split_in_the_box_keeps_its_sides(seed):
    rng = np.random.default_rng(seed)
    X, w = rng.random((12, 3)), rng.uniform(-3, 3, 3)
    score = np.sort(X @ w)
    k = int(rng.integers(0, 13))  # the k lowest go left
    b = -float(score[k - 1] + score[k]) / 2 if 0 < k < 12 else float(rng.uniform(-5, 5))
    scale, low, high = in_box(w, b, score[k:], score[:k], 1e-3)
    assert np.abs(scale * w).max() <= 1 + 1e-12
    if low <= high:
        for intercept in (low, high):
            assert abs(intercept) <= 1
            assert (scale * score[k:] + intercept >= -1e-9).all()
            assert (scale * score[:k] + intercept <= -1e-3 + 1e-9).all()
    else:
        assert 0 < k < 12
        assert scale * (score[k] - score[k - 1]) < 1e-3


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_subtrees_change_places(depth):
    tree = Topology(depth)
    for t in tree.branches:
        number = swapped_subtrees(t, tree)
        np.testing.assert_array_equal(number[number], np.arange(tree.n_nodes))
        assert number[tree.left(t)] == tree.right(t)
        moved = np.flatnonzero(number != np.arange(tree.n_nodes))
        assert all(tree.level(node) == tree.level(number[node]) for node in moved)
        if t in tree.upper_branches:
            leaves = np.asarray(tree.leaves)
            np.testing.assert_array_equal(number[leaves] % 2, leaves % 2)


@given(seed=st.integers(0, 10**6), depth=st.integers(1, 3))
def test_fixed_labels_keep_predictions(seed, depth):
    rng = np.random.default_rng(seed)
    X = rng.random((20, 2))
    n = 2**depth
    tree = Tree(
        depth, rng.uniform(-1, 1, (n - 1, 2)), rng.uniform(-1, 1, n - 1), rng.integers(0, 2, n), ("a", "b")
    )
    np.testing.assert_array_equal(with_fixed_labels(tree).predict(X), tree.predict(X))


@given(seed=st.integers(0, 10**6))
def test_the_cheapest_cut_of_one_feature_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((12, 1)), 1)
    group = np.unique(rng.integers(0, 8, 12), return_inverse=True)[1]
    sides = np.round(rng.random((group.max() + 1, 2)), 3)
    node = GroupedNode(X, group, sides, np.array([0.2]), 1e-3)
    w, b = node.cheapest_split(np.array([0]))  # never None: all costs are finite
    values = [sides[:, 0].sum(), sides[:, 1].sum()]
    for direction in (1.0, -1.0):
        for threshold in np.arange(0.05, 1, 0.1):
            right = direction * (X[:, 0] - threshold) > 0
            where = [right[group == g] for g in range(len(sides))]
            if all(each.all() or not each.any() for each in where) and len({bool(e[0]) for e in where}) == 2:
                values.append(0.2 + sum(sides[g, int(each[0])] for g, each in enumerate(where)))
    goes_right = X @ w + b >= 0
    found = sum(sides[g, int(goes_right[group == g][0])] for g in range(len(sides))) + 0.2 * w.any()
    assert all(len(set(goes_right[group == g])) == 1 for g in range(len(sides)))
    assert found == pytest.approx(min(values))


def test_a_split_that_no_group_may_take_is_none():
    X, group = np.array([[0.0], [0.0], [1.0]]), np.array([0, 1, 1])
    for sides in ([[np.inf, np.inf], [0, 0]], [[np.inf, 0], [0, np.inf]]):
        node = GroupedNode(X, group, np.array(sides), np.array([0.1]), 1e-3)
        assert node.cheapest_split(np.array([0])) is None


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0, 1.5])
def test_starts_keep_groups_together_and_features_allowed(threshold):
    data = blobs(11, 30, 3)
    formulation = Miret(ensemble=FEW, proximity=threshold, alpha=0.05, gamma_percentile=40)
    problem = formulation.build(data, 2)
    instance = problem.instance
    for name in formulation.starts:
        tree = formulation.start(name, instance)
        assert np.isfinite(formulation.evaluate(tree, instance))
        assert problem.model.violations(formulation.encode(tree, instance)).max <= 1e-6
    constant = formulation.start("constant", instance)
    assert formulation.evaluate(instance.known, instance) <= formulation.evaluate(constant, instance)


def test_opposite_predictions_forced_together_are_told_and_cost():
    data = blobs(6, 18, 2)
    result = Miret(ensemble=FEW, alpha=0.1, proximity=0.4).build(data, 2).solve(time_limit=20)
    report = result.to_dict()
    target = result.problem.instance.target
    shared = proximity(target.ensemble, data.X_raw) >= 0.4
    clash = shared & (target.sign[:, None] != target.sign)
    assert clash.any()
    forced = report["forced"]
    assert forced["groups"] >= 1
    assert forced["samples"] >= len(np.flatnonzero(clash.any(axis=1)))
    assert 0 < forced["least_cost"] <= report["unfaithfulness"] + 1e-9
    told = " ".join(report["warnings"])
    assert f"both classes in {forced['groups']} of these groups" in told
    assert f"costs at least {forced['least_cost']:.4g}" in told
    assert "share a leaf" in told
    quiet = Miret(ensemble=FEW, alpha=0.1, proximity=1.5).build(data, 2)
    assert quiet.instance.notes == ()


def test_report_and_measures_say_what_the_tree_does():
    data = blobs(8, 60, 3)
    train, test = data.split(0.3, seed=1)
    result = Miret(ensemble=FEW, alpha=0.05, proximity=1.0).build(train, 2).solve(time_limit=5)
    found, target = result.to_dict(test), result.problem.instance.target
    assert found["unfaithfulness"] + found["feature_cost"] == pytest.approx(found["objective"], abs=1e-6)
    for part, samples in (("train", train), ("test", test)):
        answers, predicted = target.ensemble.predict(samples.X_raw), result.tree.predict(samples.X_raw)
        assert found[f"{part}_fidelity"] == np.mean(answers == predicted)
        assert found[f"{part}_ensemble_accuracy"] == np.mean(answers == samples.y)
        leaves, leaf = target.ensemble.leaves(samples.X_raw), result.tree.apply(samples.X_raw)
        pairs = [
            (i, k) for i in range(samples.n) for k in range(i) if (leaves[i] == leaves[k]).all()
        ]  # proximity 1
        assert found[f"{part}_close_pairs"] == len(pairs)
        together = [leaf[i] == leaf[k] for i, k in pairs]
        assert found[f"{part}_close_pairs_together"] == (np.mean(together) if pairs else None)
    assert found["train_close_pairs_together"] == 1.0
    assert found["merged"]["representatives"] == result.problem.model["z"].shape[0]
    for level in found["features_by_level"]:
        assert set(level["tree"]) <= set(level["ensemble"])
        assert all(level["ensemble"][name] >= level["threshold"] - 1e-12 for name in level["tree"])


def test_constraints_read_features_leaves_and_predictions():
    data = blobs(13, 20, 3)
    formulation = Miret(ensemble=FEW, alpha=0.02, variant="paper")
    for variant in ("tight", "paper"):
        problem = replace(formulation, variant=variant).build(data, 2)
        instance = problem.instance
        tree = problem.formulation.expressions(problem.model, instance)
        point = problem.model.matrix().to_point(problem.formulation.encode(instance.known, instance))
        known = problem.formulation.decode(problem.model.matrix().to_values(point), instance)
        np.testing.assert_array_equal(tree.features().matrix @ point, (known.w != 0).ravel())
        leaf = np.eye(4)[known.apply(data.X) - 3]
        np.testing.assert_array_equal(tree.leaves().matrix @ point, leaf.ravel())
        np.testing.assert_array_equal(tree.predicted(1).matrix @ point, known.predict(data.X))
        tree.require_feature(2)
        result = problem.solve(time_limit=1)
        assert result.verified
        assert "x2" in result.features_used


def test_measures_of_too_many_samples_leave_out_pairs(monkeypatch):
    data = blobs(14, 30, 2)
    problem = Miret(ensemble=FEW).build(data, 2)
    monkeypatch.setattr("mipforest.ensembles.measures.LARGEST_PROXIMITY", 100)
    known = problem.instance.known.with_scaling(data.encoding.offset, data.encoding.scale)
    measured = problem.formulation.measures(known, data, problem.instance)
    assert measured["close_pairs"] is None
    assert measured["close_pairs_together"] is None
    assert measured["fidelity"] > 0.5


def test_no_close_pair_is_no_share():
    data = blobs(9, 25, 2)
    result = Miret(ensemble=FEW, proximity=2.0).build(data, 1).solve(time_limit=5)
    measured = result.problem.formulation.measures(result.tree, data, result.problem.instance)
    assert measured["close_pairs"] == 0
    assert measured["close_pairs_together"] is None


def test_boosted_trees_are_targets_too():
    data = blobs(10, 60, 3)
    boosted = GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0).fit(data.X_raw, data.y)
    result = Miret(ensemble=boosted, alpha=0.02, proximity=0.9).build(data, 2).solve(time_limit=10)
    assert result.verified
    target = result.problem.instance.target
    assert ((target.weight > 0.49) & (target.weight <= 1)).all()
    np.testing.assert_array_equal(target.sign > 0, boosted.predict(data.X_raw) == 1)


def test_random_trees_keep_partitions_through_every_variant():
    data = blobs(12, 40, 3)
    for variant in Miret.variants:
        formulation = Miret(ensemble=FEW, proximity=1.5, variant=variant)
        instance = formulation.bind(data, Topology(3))
        for seed in range(10):
            tree = random_split_tree(np.random.default_rng(seed), data, 3, instance.target.allowed)
            decoded = formulation.decode(formulation.encode(tree, instance), instance)
            groups = {tuple(np.flatnonzero(tree.apply(data.X) == leaf)) for leaf in range(7, 15)}
            assert groups == {tuple(np.flatnonzero(decoded.apply(data.X) == leaf)) for leaf in range(7, 15)}
