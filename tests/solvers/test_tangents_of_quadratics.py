from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from miqp_models import miqp
from scipy import sparse

from mipforest.model.check import violations
from mipforest.solvers.outer_approximation import Components, Tangents


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_tangents_lie_below_everywhere_and_meet_where_taken(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    factor = rng.normal(size=(int(rng.integers(1, n + 1)), n)) * (rng.random(n) < 0.7)
    factor[0, 0] = 1.0
    form = miqp(np.zeros(n), factor.T @ factor, -4.0, 4.0, True)
    tangents = Tangents(form)
    tangents.add_ladder([])
    points = rng.uniform(-4, 4, (5, n)) * 10.0 ** rng.integers(-8, 1, (5, 1))
    for point in points:
        tangents.add(point)
        assert not tangents.add(point)
    for x in (*points, *rng.uniform(-4, 4, (20, n))):
        q, theta = tangents.components.values(x), tangents.theta(x)
        assert q.sum() == pytest.approx(form.objective(x), abs=1e-9)
        assert (theta <= q + 1e-9).all()
    np.testing.assert_allclose(tangents.theta(points[0]), tangents.components.values(points[0]), atol=1e-7)
    linear = tangents.linear_form()
    assert np.abs(linear.A.data).min() > 1e-9
    extended = tangents.extended(points[1])
    assert violations(replace(linear, integer=np.zeros_like(linear.integer)), extended).max <= 1e-9
    assert linear.objective(extended) == pytest.approx(form.objective(points[1]), abs=1e-9)


def test_components_leave_out_empty_rows():
    Q = sparse.csr_array([[2.0, 1, 0, 0], [1, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 3]])
    parts = Components.of(Q)
    assert parts.count == 2
    assert parts.columns.tolist() == [0, 1, 3]
    assert parts.alone().tolist() == [3]
    np.testing.assert_allclose(sorted(parts.values(np.array([1.0, 1, 9, 2]))), [3.0, 6.0])
