"""Quadratic expressions against numpy, on random values."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

import operator

import numpy as np
import pytest
from expression_strategies import World, assert_same, forms, quick, shapes, worlds
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from mipforest.model import ExpressionError, Model, ShapeError, sum_squares

pairs_of_shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=3)


@quick
@given(worlds, shapes, forms)
def test_squares(world, shape, form):
    e = world.linear(shape, form)
    assert_same(e.expr**2, e.value**2, world)
    assert_same(e.expr * e.expr, e.value**2, world)
    assert_same(e.expr ** np.float64(2), e.value**2, world)


@quick
@given(worlds, shapes, forms, st.data())
def test_sum_squares(world, shape, form, data):
    e = world.linear(shape, form)
    assert_same(sum_squares(e.expr), (e.value**2).sum(), world)
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1)))) if shape else ()
    assert_same(sum_squares(e.expr, axis=axes), (e.value**2).sum(axis=axes), world)
    assert_same((e.expr**2).sum(), (e.value**2).sum(), world)
    for axis in range(-len(shape), len(shape)):
        assert_same(sum_squares(e.expr, axis), (e.value**2).sum(axis=axis), world)


@quick
@given(worlds, pairs_of_shapes, forms, forms, st.sampled_from([operator.add, operator.sub]))
def test_add_and_subtract(world, drawn, form_a, form_b, operation):
    a, b = (world.linear(s, f) for s, f in zip(drawn.input_shapes, (form_a, form_b), strict=True))
    numbers = world.numbers(drawn.input_shapes[1])
    assert_same(operation(a.expr**2, b.expr**2), operation(a.value**2, b.value**2), world)
    assert_same(operation(a.expr**2, b.expr), operation(a.value**2, b.value), world)
    assert_same(operation(a.expr, b.expr**2), operation(a.value, b.value**2), world)
    assert_same(operation(a.expr**2, numbers), operation(a.value**2, numbers), world)
    assert_same(operation(numbers, a.expr**2), operation(numbers, a.value**2), world)


@quick
@given(worlds, pairs_of_shapes, forms)
def test_multiply_and_divide(world, drawn, form):
    e, numbers = world.linear(drawn.input_shapes[0], form), world.numbers(drawn.input_shapes[1])
    powers = 2.0**numbers
    assert_same(e.expr**2 * numbers, e.value**2 * numbers, world)
    assert_same(numbers * e.expr**2, e.value**2 * numbers, world)
    assert_same(e.expr**2 / powers, e.value**2 / powers, world)
    assert_same(-(e.expr**2) / 4, -(e.value**2) / 4, world)
    assert_same(+(e.expr**2), e.value**2, world)
    assert_same(np.float64(3) * e.expr**2, 3 * e.value**2, world)


@quick
@given(worlds, forms, st.sampled_from([np.asarray, sparse.csr_array, sparse.csc_matrix]))
def test_products(world, form, kind):
    e, X = world.linear((2, 3), form), world.numbers((4, 2))
    assert_same(kind(X) @ e.expr**2, X @ e.value**2, world)
    assert_same((e.expr**2).T @ kind(X.T), (e.value**2).T @ X.T, world)
    assert_same(np.ones(2) @ e.expr**2, np.ones(2) @ e.value**2, world)


@quick
@given(worlds, shapes, forms, st.data())
def test_choosing_entries(world, shape, form, data):
    e = world.linear(shape, form)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    assert_same((e.expr**2)[index], (e.value**2)[index], world)
    assert_same((e.expr**2).T, (e.value**2).T, world)
    assert_same((e.expr**2).ravel(), (e.value**2).ravel(), world)
    assert_same((e.expr**2)[None].broadcast_to((2, *shape)), np.broadcast_to(e.value**2, (2, *shape)), world)
    if shape:
        for entry, value in zip(e.expr**2, e.value**2, strict=True):
            assert_same(entry, value, world)


@quick
@given(worlds, forms)
def test_hessian_is_symmetric_and_gives_the_value(world, form):
    e = world.linear((3, 2), form)
    model, x = world.model, world.point()
    model.minimize(3 * sum_squares(e.expr - 1) - sum_squares(e.expr[0]) + e.expr.sum() + 2)
    expected = 3 * ((e.value - 1) ** 2).sum() - (e.value[0] ** 2).sum() + e.value.sum() + 2
    Q = model.matrix().Q
    assert model.objective(world.point()) == expected
    np.testing.assert_array_equal(Q.toarray(), Q.toarray().T)
    assert Q.has_sorted_indices
    assert Q.data.all()
    assert 0.5 * x @ (Q.toarray() @ x) + model.matrix().c @ x + model.matrix().offset == expected


def test_sum_of_all_squares_holds_one_term_per_pair_of_columns():
    w = Model().continuous("w", 3)
    assert sum_squares(np.ones((1000, 3)) @ w).weights.nnz == 9


def test_squares_that_cancel_leave_a_linear_model():
    m = Model()
    w = m.continuous("w", 3)
    m.minimize(sum_squares(w) - sum_squares(w) + w.sum())
    assert not m.matrix().is_quadratic
    assert m.stats().quadratic_terms == 0


m = Model()
q = m.continuous("x", (3, 2)) ** 2
v = m.continuous("v", 2)
other = Model().continuous("v", 2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: q * v, r"\(shape \(3, 2\)\) times an expression \(shape \(2,\)\)"),
        (lambda: v * q, r"shapes \(2,\) and \(3, 2\)"),
        (lambda: q * q, r"times an expression"),
        (lambda: q / v, r"shape \(3, 2\) by an expression of shape \(2,\)"),
        (lambda: v / q, r"by an expression of shape \(3, 2\)"),
        (lambda: 1 / q, r"shape \(3, 2\)"),
        (lambda: q**2, r"only a linear expression can be squared"),
        (lambda: q @ v, r"shapes \(3, 2\) and \(2,\)"),
        (lambda: v @ q.T, r"shapes \(2,\) and \(2, 3\)"),
        (lambda: q * sparse.csr_matrix(np.ones((3, 2))), r"write '@'"),
        (lambda: q <= 1, r"objective only"),
        (lambda: q >= v, r"objective only"),
        (lambda: v >= q[0], r"objective only"),
        (lambda: 1 == q, r"objective only"),  # noqa: SIM300
        (lambda: q < 1, r"objective only"),
        (lambda: q != 1, r"'!='"),
        (lambda: bool(q), r"no truth value"),
        (lambda: q + "1", r"str is no number"),
        (lambda: q + other, r"two models"),
        (lambda: q + other**2, r"two models"),
        (lambda: sum_squares(q), r"QuadraticExpr: only linear"),
        (lambda: sum_squares(np.ones(3)), r"ndarray.*\(values \*\* 2\)\.sum\(\)"),
        (lambda: m.add("q", q <= 1), r"objective only"),
    ],
)
def test_what_no_quadratic_objective_holds(wrong, message):
    with pytest.raises(ExpressionError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: q + np.ones(3), r"\(3, 2\) and \(3,\)"),
        (lambda: q * np.ones(3), r"\(3, 2\) and \(3,\)"),
        (lambda: q.sum(axis=5), r"axis 5"),
        (lambda: q.reshape(5), r"does not reshape to 5"),
        (lambda: np.ones(2) @ q, r"\(2,\) and \(3, 2\)"),
    ],
)
def test_shapes_that_do_not_fit_quadratics(wrong, message):
    with pytest.raises(ShapeError, match=message):
        wrong()


def test_quadratic_division_by_zero_and_repr():
    with pytest.raises(ZeroDivisionError):
        q / 0
    assert repr(World(0).variables((2,)).expr ** 2) == "<QuadraticExpr of shape (2,), 2 quadratic terms>"
