"""Groups of samples, frequent features, and ensembles as targets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from miret_data import blobs
from scipy import sparse
from sklearn.ensemble import GradientBoostingClassifier

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
from mipforest.ensembles import CloseSamples
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
