import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
)

from mipforest.trees import class_measures, regression_measures

values = st.integers(-100, 100).map(lambda k: k / 8)


@settings(deadline=None, max_examples=200)
@given(st.data(), st.integers(2, 12))
def test_measures_are_those_of_scikit_learn(data, n):
    y, predicted = (data.draw(hnp.arrays(float, n, elements=values)) for _ in range(2))
    measures = regression_measures(y, predicted)
    assert measures.r2 == pytest.approx(r2_score(y, predicted))
    assert measures.mse == pytest.approx(mean_squared_error(y, predicted))
    assert measures.mae == pytest.approx(mean_absolute_error(y, predicted))


@pytest.mark.parametrize("n", [1, 3, 10])
def test_constant_targets_are_predicted_or_not(n):
    y = np.full(n, 0.1)  # sums of 0.1 are rounded
    assert regression_measures(y, y) == (1.0, 0.0, 0.0)
    assert regression_measures(y, y + 0.5) == pytest.approx((0.0, 0.25, 0.5))


def test_without_samples_nothing_is_known():
    assert np.isnan(regression_measures(np.zeros(0), np.zeros(0))).all()


def test_class_measures_against_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, predicted = rng.integers(0, 3, 30), rng.integers(0, 3, 30)
        found = class_measures(y, predicted)
        assert found.accuracy == pytest.approx(accuracy_score(y, predicted))
        assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, predicted))
    # A class that is predicted and never occurs does not count.
    assert class_measures(np.array([0, 0, 1]), np.array([0, 2, 1])) == (pytest.approx(2 / 3), 0.75)
    assert np.isnan(class_measures(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).accuracy)
