import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from mipforest.trees import regression_measures

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
