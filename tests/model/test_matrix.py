"""The matrix form: names, points, values."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mipforest.model import Block, IndicatorRows, Model, ShapeError, UnknownNameError, between, sum_squares


@pytest.mark.parametrize(
    ("block", "names"),
    [
        (Block("b", 0, ()), ["b"]),
        (Block("b", 0, (3,)), ["b[0]", "b[1]", "b[2]"]),
        (
            Block("z", 4, (2, 2), (("12", "13"), ("n3", "n4"))),
            ["z[12,n3]", "z[12,n4]", "z[13,n3]", "z[13,n4]"],
        ),
        (Block("w", 0, (1, 2), (None, ("age", "sex"))), ["w[0,age]", "w[0,sex]"]),
        (Block("", 0, (2,), None, ("R1", "R7")), ["R1", "R7"]),
        (Block("e", 0, (0, 2)), []),
    ],
)
def test_names_of_entries(block, names):
    assert block.names() == names
    assert block.size == len(names)
    assert block.stop == block.start + len(names)


def test_names_follow_the_index_sets():
    m = Model()
    z = m.binary("z", (range(2), ["n3", "n4"]))
    m.continuous("b")
    m.add("pick", z.sum(axis=1) == 1, over=["i", "j"])
    m.add_indicator("on", z[0], 1, z[1] <= 0)
    form = m.matrix()
    assert form.column_names == ["z[0,n3]", "z[0,n4]", "z[1,n3]", "z[1,n4]", "b"]
    assert form.row_names == ["pick[i]", "pick[j]"]
    assert [name for block in form.indicators.rows for name in block.names()] == ["on[0]", "on[1]"]


@settings(deadline=None, max_examples=15)
@given(st.lists(hnp.array_shapes(min_dims=0, min_side=0, max_side=3), max_size=4), st.integers(0, 99))
def test_points_and_values_are_each_others_inverse(shapes, seed):
    m = Model()
    for k, shape in enumerate(shapes):
        m.continuous(f"v{k}", shape)
    form, x = m.matrix(), np.random.default_rng(seed).random(m.n_columns)
    values = form.to_values(x)
    assert [value.shape for value in values.values()] == list(shapes)
    np.testing.assert_array_equal(form.to_point(values), x)
    for name, value in values.items():
        np.testing.assert_array_equal(value, x[m[name].columns])


def test_values_left_out_are_open():
    m = Model()
    m.continuous("a", 2)
    m.continuous("b")
    np.testing.assert_array_equal(m.matrix().to_point({"b": 3}), [np.nan, np.nan, 3])
    with pytest.raises(UnknownNameError, match=r"no variable block 'c'.*known: a, b"):
        m.matrix().to_point({"c": 3})
    with pytest.raises(ShapeError, match=r"'a' have shape \(3,\), the block has shape \(2,\)"):
        m.matrix().to_point({"a": [1, 2, 3]})


def test_kind_of_programme():
    m = Model()
    v = m.continuous("v", 2)
    m.minimize(v.sum())
    assert (m.matrix().is_mip, m.matrix().is_quadratic) == (False, False)
    m.minimize((v**2).sum())
    z = m.binary("z")
    assert (m.matrix().is_mip, m.matrix().is_quadratic) == (True, True)
    z.relax()
    assert not m.matrix().is_mip
    z.owner._integer[2] = True
    m.add_indicator("i", z, 1, v <= 1)
    z.relax()
    assert m.matrix().is_mip
    assert IndicatorRows.none(3).A.shape == (0, 3)


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
    assert (s.smallest, s.largest, s.dynamism) == (0.25, 1.0, 1.0)
    assert "12 rows, 2 indicator rows, 18 nonzeros, 6 quadratic terms, coefficients 0.25 to 1" in str(s)


def test_an_empty_model_has_no_coefficients():
    s = Model().stats()
    assert (s.smallest, s.largest, s.columns, s.rows, s.quadratic_terms) == (0, 0, 0, 0, 0)
    assert s.dynamism == 1


def test_dynamism_is_of_one_row_and_of_indicator_rows_too():
    m = Model()
    z, v = m.binary("z"), m.continuous("v", 2)
    m.add("small", 1e-3 * v >= -1)
    m.add("large", 64 * v[0] - 2 * v[1] <= 1)
    assert m.stats().dynamism == 32
    m.add_indicator("i", z, 1, 512 * v[0] + v[1] <= 1)
    assert m.stats().dynamism == 512
