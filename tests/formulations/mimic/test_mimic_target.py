"""Groups of samples, frequent features, ensembles as targets; what a tree is said to have learned of its ensemble."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from miret_data import blobs
from scipy import sparse
from sklearn.ensemble import GradientBoostingClassifier
from tolerance import same

from formulations.mimic.target import (
    first_members,
    frequency_thresholds,
    frequent_features,
    group_sums,
    merge_equal_samples,
    proximity_groups,
)
from formulations.miret import Miret
from mipforest.data import Dataset
from mipforest.ensembles import CloseSamples, proximity
from mipforest.problem.parameters import ParameterError

FEW = "random-forest:trees=5"


@given(seed=st.integers(0, 10**6), threshold=st.floats(0.1, 1.0))
def test_groups_are_the_reachable_samples(seed, threshold):
    rng = np.random.default_rng(seed)
    upper = np.triu(np.round(rng.random((8, 8)) ** 2, 1), 1)
    close = upper + upper.T + np.eye(8)
    samples = CloseSamples(np.arange(8), sparse.csr_array(close >= threshold - 1e-12))
    group = proximity_groups(samples)
    reach = (close >= threshold - 1e-12).astype(int)
    for _ in range(8):
        reach = (reach @ reach > 0).astype(int)
    np.testing.assert_array_equal(group[:, None] == group, reach > 0)
    np.testing.assert_array_equal(group[first_members(group)], np.arange(group.max() + 1))
    assert group_sums(group, np.ones(8)).sum() == 8


def test_equal_samples_join_groups():
    group = np.array([0, 0, 1, 2, 3])
    X = np.array([[1.0], [2.0], [2.0], [3.0], [3.0]])
    np.testing.assert_array_equal(merge_equal_samples(group, X), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(merge_equal_samples(group, np.arange(5.0)[:, None]), [0, 0, 1, 2, 3])


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
    data = blobs(0, 30, 3)
    with pytest.raises(ParameterError, match=r"level 0 .*without a feature"):
        Miret(ensemble=FEW, gamma=1.1).build(data, 2)


@pytest.mark.parametrize("variant", ["tight", "improved", "paper"])
def test_a_level_at_which_the_ensemble_never_splits_has_no_split(variant):
    """One feature tells the classes apart: every tree of the forest is a stump."""
    data = Dataset.from_arrays(np.repeat([[0.0], [1.0]], 10, axis=0), np.repeat([0, 1], 10))
    problem = Miret(ensemble=FEW, variant=variant).build(data, 2)
    assert problem.instance.allowed.tolist() == [[True], [False], [False]]
    result = problem.solve(time_limit=20)
    assert result.verified
    assert result.status == "optimal"
    assert result.tree.features_used().per_node == ((0,), (), ())
    assert "no tree of the ensemble splits at level 1" in " ".join(result.solution.warnings)
    # Thresholds beyond what there is at the other levels are refused as before.
    with pytest.raises(ParameterError, match=r"level 0 .*without a feature"):
        Miret(ensemble=FEW, gamma=1.1).build(data, 2)


def test_boosted_trees_are_targets_too():
    data = blobs(10, 60, 3)
    boosted = GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0).fit(data.X_raw, data.y)
    result = Miret(ensemble=boosted, alpha=0.02, proximity=0.9).build(data, 2).solve("highs", time_limit=10)
    assert result.verified
    target = result.problem.instance.target
    assert ((target.weight > 0.49) & (target.weight <= 1)).all()
    np.testing.assert_array_equal(target.sign > 0, boosted.predict(data.X_raw) == 1)


def test_opposite_predictions_forced_together_are_told_and_cost():
    data = blobs(6, 18, 2)
    result = Miret(ensemble=FEW, alpha=0.1, proximity=0.4).build(data, 2).solve("highs", time_limit=20)
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


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_report_and_measures_say_what_the_tree_does(share):
    data = blobs(8, 60, 3)
    train, test = data.split(0.3, seed=1)
    result = Miret(ensemble=FEW, alpha=0.05, proximity=share).build(train, 2).solve("highs", time_limit=5)
    found, target = result.to_dict(test), result.problem.instance.target
    assert found["unfaithfulness"] + found["feature_cost"] == pytest.approx(found["objective"], abs=1e-6)
    for part, samples in (("train", train), ("test", test)):
        answers, predicted = target.ensemble.predict(samples.X_raw), result.tree.predict(samples.X_raw)
        assert same(found[f"{part}_fidelity"], np.mean(answers == predicted))
        assert same(found[f"{part}_ensemble_accuracy"], np.mean(answers == samples.y))
        leaves, leaf = target.ensemble.leaves(samples.X_raw), result.tree.apply(samples.X_raw)
        pairs = [
            (i, k) for i in range(samples.n) for k in range(i) if np.mean(leaves[i] == leaves[k]) >= share
        ]
        assert found[f"{part}_close_pairs"] == len(pairs)
        together = [leaf[i] == leaf[k] for i, k in pairs]
        assert found[f"{part}_close_pairs_together"] == (pytest.approx(np.mean(together)) if pairs else None)
    assert found["train_close_pairs_together"] == 1.0
    assert found["merged"]["representatives"] == result.problem.model["z"].shape[0]
    for level in found["features_by_level"]:
        assert set(level["tree"]) <= set(level["ensemble"])
        assert all(level["ensemble"][name] >= level["threshold"] - 1e-12 for name in level["tree"])


def test_measures_of_too_many_samples_leave_out_pairs(monkeypatch):
    data = blobs(14, 30, 2)
    problem = Miret(ensemble=FEW, proximity=0.7).build(data, 2)
    monkeypatch.setattr("mipforest.ensembles.ensemble.LARGEST_PROXIMITY", 100)
    known = problem.instance.known.with_scaling(data.encoding.offset, data.encoding.scale)
    measured = problem.formulation.measures(known, data, problem.instance)
    assert measured["close_pairs"] is None
    assert measured["close_pairs_together"] is None
    assert measured["fidelity"] > 0.5


def test_no_close_pair_is_no_share():
    data = blobs(9, 25, 2)
    result = Miret(ensemble=FEW, proximity=2.0).build(data, 1).solve("highs", time_limit=5)
    measured = result.problem.formulation.measures(result.tree, data, result.problem.instance)
    assert measured["close_pairs"] == 0
    assert measured["close_pairs_together"] is None
