"""Comparisons: the rows they mean, whichever side the expression stands on."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from expression_strategies import evaluate, forms, quick, worlds
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mipforest.model import DataValueError, ExpressionError, Model, Relation, ShapeError, between

pairs_of_shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=3)
senses = st.sampled_from([operator.le, operator.ge, operator.eq])


def holds(relation: Relation, x: np.ndarray) -> np.ndarray:
    """Whether each row holds at a point; exact, since all numbers are whole."""
    value = relation.A @ x[: relation.A.shape[1]]
    return ((relation.lower <= value) & (value <= relation.upper)).reshape(relation.shape)


@quick
@given(worlds, pairs_of_shapes, forms, forms, senses)
def test_expressions_compare(world, drawn, form_a, form_b, sense):
    a, b = (world.linear(s, f) for s, f in zip(drawn.input_shapes, (form_a, form_b), strict=True))
    relation = sense(a.expr, b.expr)
    assert relation.shape == drawn.result_shape
    np.testing.assert_array_equal(holds(relation, world.x), sense(a.value, b.value))


@quick
@given(worlds, pairs_of_shapes, forms, senses)
def test_arrays_compare_from_both_sides(world, drawn, form, sense):
    e, numbers = world.linear(drawn.input_shapes[0], form), world.numbers(drawn.input_shapes[1])
    np.testing.assert_array_equal(holds(sense(e.expr, numbers), world.x), sense(e.value, numbers))
    np.testing.assert_array_equal(holds(sense(numbers, e.expr), world.x), sense(numbers, e.value))
    if numbers.size:
        np.testing.assert_array_equal(
            holds(sense(numbers.tolist(), e.expr), world.x), sense(numbers, e.value)
        )


@quick
@given(
    worlds,
    forms,
    senses,
    st.sampled_from([int, float, np.float64, np.int8, np.array]),
    st.integers(-3, 3),
)
def test_scalars_compare_from_both_sides(world, form, sense, kind, number):
    e = world.linear((2, 3), form)
    np.testing.assert_array_equal(holds(sense(e.expr, kind(number)), world.x), sense(e.value, number))
    np.testing.assert_array_equal(holds(sense(kind(number), e.expr), world.x), sense(number, e.value))


@quick
@given(worlds, pairs_of_shapes, forms, st.integers(0, 3))
def test_between_holds_exactly_where_both_sides_hold(world, drawn, form, gap):
    e, low = world.linear(drawn.input_shapes[0], form), world.numbers(drawn.input_shapes[1])
    relation = between(low, e.expr, low + gap)
    np.testing.assert_array_equal(holds(relation, world.x), (low <= e.value) & (e.value <= low + gap))


def test_sides_are_those_written():
    v = Model().continuous("v", 2)
    relation = v + 1 <= [3, 4]
    np.testing.assert_array_equal(relation.upper, [2, 3])
    np.testing.assert_array_equal(relation.lower, -np.inf)
    assert np.signbit((v >= 0).lower).tolist() == [False, False]
    assert repr(relation) == "<Relation of shape (2,), 2 terms>"


def test_infinite_sides_leave_a_row_free():
    world_x = np.zeros(2)
    v = Model().continuous("v", 2)
    assert holds(v <= np.inf, world_x).all()
    assert holds(-np.inf <= v, world_x).all()
    assert holds(between(-np.inf, v, [0, np.inf]), world_x).all()


def test_misuse_of_between():
    v = Model().continuous("v", (2, 2))
    with pytest.raises(DataValueError, match="lower side above its upper side"):
        between([0, 1], v, [1, 0])
    with pytest.raises(DataValueError, match="NaN"):
        between(np.nan, v, 1)
    with pytest.raises(ShapeError, match=r"\(3,\) and \(2, 2\)"):
        between(np.zeros(3), v, 1)
    with pytest.raises(ExpressionError, match="two constraint blocks"):
        between(v, v, 1)
    for middle in (3.0, v**2):
        with pytest.raises(ExpressionError, match=f"linear expression .* not a {type(middle).__name__}"):
            between(0, middle, 1)


def test_a_comparison_is_no_truth_value():
    v = Model().continuous("v", 2)
    with pytest.raises(ExpressionError, match=r"between\(a, expr, b\).*model\.add"):
        assert v <= 1
    assert evaluate(v, np.array([1.0, 2.0])).tolist() == [1, 2]
