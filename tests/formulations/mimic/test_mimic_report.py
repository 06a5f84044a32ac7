"""What a tree is said to have learned of its ensemble."""

import numpy as np
import pytest
from miret_data import blobs
from tolerance import same

from formulations.miret import Miret
from mipforest.ensembles import proximity

FEW = "random-forest:trees=5"


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
