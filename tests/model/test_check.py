"""Violations of points, against their definition entry by entry."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mipforest.model import DataValueError, Model, ShapeError, between
from mipforest.model.check import exact_objective, violations
from mipforest.model.expressions import sum_squares
from mipforest.model.matrix import MatrixForm


def small_model() -> Model:
    m = Model()
    z, v = m.binary("z", 2), m.continuous("v", 3, lower=-1, upper=2)
    m.add("equal", v.sum() == 1)
    m.add("range", between(-1, v[:2], [0, 1]))
    m.add_indicator("on", z[0], 1, v >= 1)
    m.add_indicator("off", z[1], 0, v[2] <= 0)
    return m


def distance(value: float, lower: float, upper: float) -> float:
    return max(lower - value, value - upper, 0.0)


@settings(deadline=None, max_examples=15)
@given(hnp.arrays(float, 5, elements=st.integers(-12, 12).map(lambda k: k / 4)))
def test_violations_by_definition(x):
    found = small_model().violations(x)
    z, v = x[:2], x[2:]
    np.testing.assert_array_equal(found.bounds[:2], [distance(a, 0, 1) for a in z])
    np.testing.assert_array_equal(found.bounds[2:], [distance(a, -1, 2) for a in v])
    np.testing.assert_array_equal(found.integrality, [*(abs(a - round(a)) for a in z), 0, 0, 0])
    rows = [distance(v.sum(), 1, 1), distance(v[0], -1, 0), distance(v[1], -1, 1)]
    np.testing.assert_array_equal(found.rows, rows)
    on = [distance(a, 1, np.inf) if 0.5 < z[0] < 1.5 else 0 for a in v]
    off = [distance(v[2], -np.inf, 0) if -0.5 < z[1] < 0.5 else 0]
    np.testing.assert_array_equal(found.indicators, on + off)
    assert found.max == max(0, *found.bounds, *found.integrality, *found.rows, *found.indicators)


def test_worst_names_what_is_missed_most():
    found = small_model().violations({"z": [1, 0.25], "v": [0.5, -3, 2.5]})
    assert found.worst(3) == [
        ("indicator row on[1]", 4.0),
        ("indicator row off", 2.5),
        ("bound of v[1]", 2.0),
    ]
    assert ("row range[0]", 0.5) in found.worst(20)
    assert ("integrality of z[1]", 0.25) in found.worst(20)
    amounts = [amount for _, amount in found.worst(20)]
    assert amounts == sorted(amounts, reverse=True)
    assert min(amounts) > 0


def test_a_feasible_point_misses_nothing():
    found = small_model().violations({"z": [0, 1], "v": [0, 1, 0]})
    assert found.max == 0
    assert found.worst() == []


@pytest.mark.parametrize(
    "check", [Model.violations, Model.objective, lambda m, x: violations(m.matrix(), m.point(x))]
)
def test_points_that_cannot_be_checked(check):
    m = small_model()
    with pytest.raises(ShapeError, match=r"shape \(4,\), the model has 5 columns"):
        check(m, np.zeros(4))
    with pytest.raises(DataValueError, match=r"3 columns, v\[0\] = nan first; complete it"):
        check(m, {"z": [0, 0]})
    with pytest.raises(DataValueError, match=r"1 columns, z\[1\] = inf first"):
        check(m, [0, np.inf, 0, 0, 0])


def test_a_flat_list_is_a_point():
    assert small_model().violations([0, 1, 0, 1, 0]).max == 0


def _cancelling() -> MatrixForm:
    m = Model("cancelling")
    a, b, c = (m.continuous(name) for name in "abc")
    m.add("row", 1e16 * a + b - 1e16 * c <= 0)
    z = m.binary("z")
    m.add_indicator("on", z, 1, 1e16 * a + b - 1e16 * c <= 0)
    m.minimize(1e16 * a + b - 1e16 * c)
    return m.matrix()


def test_exact_rows_do_not_lose_what_cancels() -> None:
    form = _cancelling()
    ones = np.ones(4)
    assert violations(form, ones).max == 0
    exact = violations(form, ones, exact=True)
    assert exact.rows.tolist() == [1.0]
    assert exact.indicators.tolist() == [1.0]
    assert exact_objective(form, ones) == 1.0


def test_exact_and_float_agree_on_ordinary_numbers() -> None:
    rng = np.random.default_rng(0)
    m = Model("ordinary")
    x = m.continuous("x", 5)
    m.add("rows", rng.normal(size=(4, 5)) @ x == rng.normal(size=4))
    m.minimize(sum_squares(x) + 3 * x.sum() + 1)
    form, point = m.matrix(), rng.normal(size=5)
    found, exact = violations(form, point), violations(form, point, exact=True)
    np.testing.assert_allclose(found.rows, exact.rows, rtol=1e-12)
    assert exact_objective(form, point) == pytest.approx(form.objective(point), rel=1e-12)
