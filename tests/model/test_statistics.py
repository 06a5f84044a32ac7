"""Counts that describe a model."""

from __future__ import annotations

import numpy as np

from mipforest.model import Model, between, sum_squares


def test_counts_of_every_kind():
    m = Model()
    z, k, v = m.binary("z", 3), m.integer("k", 2, lower=0, upper=7), m.continuous("v", 4)
    m.integer("unit", lower=0, upper=1)
    m.add("equal", z.sum() == 1)
    m.add("below", v <= 100)
    m.add("above", 0.25 * k >= 1)
    m.add("range", between(0, v[:2] + z[:2], 1))
    m.add("free", v[:3] >= -np.inf)
    m.add_indicator("i", z[0], 1, v[:2] <= 1)
    m.minimize(sum_squares(v[0] - v[1]) + sum_squares(z))
    s = m.stats()
    assert (s.columns, s.continuous, s.binary, s.integer) == (10, 4, 4, 2)
    assert (s.rows, s.equalities, s.inequalities, s.ranges, s.free_rows) == (12, 1, 6, 2, 3)
    assert (s.indicators, s.nonzeros, s.quadratic_terms) == (2, 3 + 4 + 2 + 4 + 3 + 2, 3 + 3)
    assert (s.smallest, s.largest) == (0.25, 1.0)
    assert "12 rows, 2 indicator rows, 18 nonzeros, 6 quadratic terms, coefficients 0.25 to 1" in str(s)


def test_an_empty_model_has_no_coefficients():
    s = Model().stats()
    assert (s.smallest, s.largest, s.columns, s.rows, s.quadratic_terms) == (0, 0, 0, 0, 0)
