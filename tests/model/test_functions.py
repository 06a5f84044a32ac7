"""Joining expressions, against numpy.concatenate."""

from __future__ import annotations

import numpy as np
import pytest
from expression_strategies import assert_same, forms, quick, worlds
from hypothesis import given
from hypothesis import strategies as st

from mipforest.model import ExpressionError, Model, ShapeError, concatenate


@quick
@given(worlds, forms, forms, st.sampled_from([0, 1, -1, -2]), st.integers(0, 3))
def test_expressions_and_numbers_join(world, form_a, form_b, axis, length):
    shape = (length, 2) if axis in (0, -2) else (3, length)
    a, b = world.linear((3, 2), form_a), world.linear(shape, form_b)
    numbers = world.numbers((3, 2))
    assert_same(concatenate([a.expr, b.expr], axis), np.concatenate([a.value, b.value], axis), world)
    joined = np.concatenate([numbers, a.value, b.value, numbers], axis)
    assert_same(concatenate([numbers, a.expr, b.expr, numbers.tolist()], axis=axis), joined, world)


@quick
@given(worlds, forms, st.sampled_from([0, 1]))
def test_quadratics_join(world, form, axis):
    a, b, numbers = world.linear((3, 2), form), world.linear((3, 2), form), world.numbers((3, 2))
    joined = concatenate([a.expr**2, numbers, b.expr, 2 * b.expr**2], axis=axis)
    assert_same(joined, np.concatenate([a.value**2, numbers, b.value, 2 * b.value**2], axis=axis), world)


def test_joined_arrays_do_not_follow_later_changes_of_the_numbers():
    v, numbers = Model().continuous("v", 2), np.ones(2)
    joined = concatenate([v, numbers])
    numbers[:] = 9
    np.testing.assert_array_equal(joined.constant, [0, 0, 1, 1])


def test_wrong_parts():
    v = Model().continuous("v", (2, 3))
    with pytest.raises(ShapeError, match=r"\(2, 3\), \(2,\) do not join along axis 0"):
        concatenate([v, np.ones(2)])
    with pytest.raises(ShapeError, match="along axis 2"):
        concatenate([v, v], axis=2)
    with pytest.raises(ExpressionError, match=r"numpy\.concatenate for numbers"):
        concatenate([np.ones(2), np.ones(2)])
    with pytest.raises(ExpressionError, match=r"write \[a, b\]"):
        concatenate(v)
    with pytest.raises(ExpressionError, match="two models"):
        concatenate([v, Model().continuous("v", (2, 3))])
    with pytest.raises(ExpressionError, match="str is no number"):
        concatenate([v, "text"])
