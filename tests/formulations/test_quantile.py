"""Quantile trees: the definition is scikit-learn's pinball loss, and search and rows have the optimum of both."""

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss
from tolerance import at_most, same

from formulations.ort import range_of_quantiles
from formulations.quantile import Quantile
from mipforest.data import Dataset
from mipforest.objectives.leaf_losses import PinballLoss


def drawn(seed, n=14):
    rng = np.random.default_rng(seed)
    X, y = np.round(6 * rng.random((n, 3))) / 6, np.round(8 * rng.random(n))
    weights = rng.integers(1, 4, n).astype(float) if seed % 2 else None
    return Dataset.from_arrays(X, y, task="regression", weights=weights)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", range(60))
def test_search_and_rows_have_the_least_pinball_loss(seed):
    rng = np.random.default_rng(seed)
    tau, alpha = (float(rng.choice(some)) for some in ((0.1, 0.25, 0.8, 0.9), (0.0, 0.02)))
    given = {
        "tau": tau,
        "alpha": alpha,
        "N_min": 1 + seed % 3,
        "variant": ("tight", "valid", "paper")[seed % 3],
    }
    data, depth = drawn(seed), 1 + seed % 2
    found = Quantile(**given).build(data, depth).solve("exact-search", time_limit=60)
    by_rows = Quantile(**given).build(data, depth).solve("highs", start="none", gap=1e-9, time_limit=60)
    assert found.status == by_rows.status == "optimal"
    assert found.verified, found.failed_checks
    assert by_rows.verified, by_rows.failed_checks
    assert found.objective == pytest.approx(by_rows.objective, abs=1e-6)

    def loss(prediction):
        return mean_pinball_loss(data.y, prediction, alpha=tau, sample_weight=data.weights)

    constant = min(loss(np.full(data.n, y)) for y in data.y)
    own = loss(found.tree.predict(data.X_raw)) / constant + alpha * found.tree.n_splits
    assert same(own, found.objective)


def test_quantiles_of_parts_are_within_those_of_the_least_and_the_greatest_targets():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y, N_min = np.round(10 * rng.random(12)), int(rng.integers(1, 6))
        loss = PinballLoss((0.1, 0.3, 0.5, 0.7, 0.95)[seed % 5])
        low, high = range_of_quantiles(loss, y, np.ones(12), N_min)
        rows = rng.permutation(12)[: int(rng.integers(N_min, 13))]
        best = loss.best_constant(y[rows], np.ones(len(rows)))
        assert at_most(low, best)
        assert at_most(best, high)


def test_the_best_constant_loses_least_however_sums_are_rounded():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y, weight = np.round(5 * rng.random(9)), rng.choice([0.1, 0.3, 0.7], 9)
        loss = PinballLoss(float(rng.choice([0.1, 0.3, 0.5, 0.9])))
        least = min(loss.total(value, y, weight) for value in y)
        assert loss.total(loss.best_constant(y, weight), y, weight) == pytest.approx(
            least, rel=1e-12, abs=1e-12
        )
