import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.bounds.depth_two import DepthTwo, misclassified
from formulations.oct import Oct
from mipforest.data import Dataset
from mipforest.trees import Topology


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("split_cost", [0.0, 0.7])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_skipped_roots_have_lower_bounds_and_the_best_is_exact(depth, split_cost, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    X = np.round(rng.random((n, int(rng.integers(1, 4)))), 2)
    y = (X[:, 0] + 0.5 * rng.random(n) > 0.7).astype(int)
    y[:2] = [0, 1]
    data = Dataset.from_arrays(X, y)
    instance = Oct().bind(data, Topology(depth))
    thresholds, counts = instance.exact.thresholds, instance.counts
    exact = DepthTwo(thresholds, counts, split_cost, 1, leaf_cost=lambda c: misclassified(c))
    skipping = DepthTwo(thresholds, counts, split_cost, 1)
    all_values, values = exact.root_values(depth), skipping.root_values(depth)
    assert values.no_split == all_values.no_split
    assert (values.by_threshold <= all_values.by_threshold + 1e-12).all()
    least = all_values.by_threshold.min(initial=np.inf)
    best = min(all_values.no_split, least)
    assert values.by_threshold.min(initial=np.inf) >= min(best, least) - 1e-12
    chosen = all_values.no_split if values.best < 0 else all_values.by_threshold[values.best]
    assert chosen == pytest.approx(best, abs=1e-12)
