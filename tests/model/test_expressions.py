"""Every operator of linear expressions against numpy, on random values."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

import operator

import numpy as np
import pytest
from expression_strategies import World, assert_same, evaluate, forms, quick, shapes, worlds
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from mipforest.model import ExpressionError, Model

pairs_of_shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=3)
additive = st.sampled_from([operator.add, operator.sub])
sparse_kinds = st.sampled_from(
    [
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
        sparse.csr_matrix,
        sparse.csc_matrix,
        sparse.lil_array,
        sparse.dok_array,
        sparse.bsr_array,
        sparse.dia_array,
    ]
)
sides = st.integers(0, 4)

# ---------------------------------------------------------------------- + - * /


@quick
@given(worlds, pairs_of_shapes, forms, forms, additive)
def test_add_and_subtract_expressions(world, drawn, form_a, form_b, operation):
    a, b = (world.linear(s, f) for s, f in zip(drawn.input_shapes, (form_a, form_b), strict=True))
    assert_same(operation(a.expr, b.expr), operation(a.value, b.value), world)


@quick
@given(worlds, pairs_of_shapes, forms, st.sampled_from([operator.add, operator.sub, operator.mul]))
def test_arithmetic_with_arrays_on_both_sides(world, drawn, form, operation):
    e = world.linear(drawn.input_shapes[0], form)
    numbers = world.numbers(drawn.input_shapes[1])
    assert_same(operation(e.expr, numbers), operation(e.value, numbers), world)
    assert_same(operation(numbers, e.expr), operation(numbers, e.value), world)
    if numbers.size:  # an empty list has lost its shape
        assert_same(operation(e.expr, numbers.tolist()), operation(e.value, numbers), world)
        assert_same(operation(numbers.tolist(), e.expr), operation(numbers, e.value), world)


@quick
@given(
    worlds,
    shapes,
    forms,
    st.sampled_from([operator.add, operator.sub, operator.mul]),
    st.sampled_from([int, float, np.float64, np.int32, np.float32, np.bool_, np.array]),
    st.integers(0, 3),
)
def test_arithmetic_with_scalars_of_every_type(world, shape, form, operation, kind, number):
    e, scalar = world.linear(shape, form), kind(number)
    plain = float(scalar)
    assert_same(operation(e.expr, scalar), operation(e.value, plain), world)
    assert_same(operation(scalar, e.expr), operation(plain, e.value), world)


@quick
@given(worlds, shapes, forms)
def test_signs(world, shape, form):
    e = world.linear(shape, form)
    assert_same(-e.expr, -e.value, world)
    assert_same(+e.expr, e.value, world)


@quick
@given(worlds, pairs_of_shapes, forms)
def test_divide_by_arrays(world, drawn, form):
    e = world.linear(drawn.input_shapes[0], form)
    powers = 2.0 ** world.numbers(drawn.input_shapes[1])  # exact
    assert_same(e.expr / powers, e.value / powers, world)


@quick
@given(worlds, forms, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_division_rounds_once(world, form, a, b):
    e = world.linear((2,), form).expr
    by_scalar, by_array = (e * a) / b, (e * a) / np.array([b, b])
    np.testing.assert_array_equal(by_scalar.matrix.data, (e * a).matrix.data / b)
    np.testing.assert_array_equal(by_array.matrix.data, (e * a).matrix.data / b)
    np.testing.assert_array_equal(by_array.constant, (e * a).constant / b)


@quick
@given(
    hnp.arrays(float, (4, 3), elements=st.floats(-1e6, 1e6)), hnp.arrays(float, 4, elements=st.floats(-9, 9))
)
def test_coefficients_are_numpys_bit_by_bit(X, y):
    w = Model().continuous("w", (2, 3))
    score = y[:, None] * (X @ w.T)
    dense = score.matrix.toarray().reshape(4, 2, 6)
    np.testing.assert_array_equal(dense[:, 0, :3], y[:, None] * X)
    np.testing.assert_array_equal(dense[:, 1, 3:], y[:, None] * X)
    assert not dense[:, 0, 3:].any()
    assert not dense[:, 1, :3].any()


# ---------------------------------------------------------------------- @


@quick
@given(worlds, forms, sides, sides, sides, st.booleans(), st.booleans())
def test_products_with_dense_matrices(world, form, a, k, c, vector, vector_expression):
    X = world.numbers((k,) if vector else (a, k))
    e = world.linear((k,) if vector_expression else (k, c), form)
    assert_same(X @ e.expr, X @ e.value, world)
    if X.size:
        assert_same(X.tolist() @ e.expr, X @ e.value, world)
    assert_same(e.expr.T @ X.T, e.value.T @ X.T, world)


@quick
@given(worlds, forms, sides, sides, sides, sparse_kinds)
def test_products_with_sparse_matrices(world, form, a, k, c, kind):
    a, k = a + 1, k + 1  # some of scipy's formats refuse empty shapes
    X = world.numbers((a, k))
    v, e = world.linear((k,), form), world.linear((k, c), form)
    assert_same(kind(X) @ e.expr, X @ e.value, world)
    assert_same(kind(X) @ v.expr, X @ v.value, world)
    assert_same(e.expr.T @ kind(X.T), e.value.T @ X.T, world)
    assert_same(v.expr @ kind(X.T), v.value @ X.T, world)


def test_product_with_a_one_dimensional_sparse_array():
    world = World(0)
    e, row = world.linear((3,), "affine"), world.numbers((3,))
    assert_same(sparse.coo_array(row) @ e.expr, row @ e.value, world)
    assert_same(e.expr @ sparse.coo_array(row), e.value @ row, world)


@quick
@given(worlds, forms, sparse_kinds)
def test_sparse_arrays_add_and_multiply_by_entry(world, form, kind):
    e, X = world.linear((3, 2), form), world.numbers((3, 2))
    S = kind(X)
    assert_same(S + e.expr, X + e.value, world)
    assert_same(e.expr - S, e.value - X, world)
    if isinstance(S, sparse.spmatrix):
        for product in (lambda: S * e.expr, lambda: e.expr * S):
            with pytest.raises(ExpressionError, match=r"shape \(3, 2\).*write '@'"):
                product()
    else:
        assert_same(S * e.expr, X * e.value, world)
        assert_same(e.expr * S, e.value * X, world)


# ---------------------------------------------------------------------- choosing entries


@quick
@given(worlds, shapes, forms, st.data())
def test_basic_indexing(world, shape, form, data):
    e = world.linear(shape, form)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=5))
    assert_same(e.expr[index], e.value[index], world)


@quick
@given(worlds, hnp.array_shapes(min_dims=1, max_dims=3, max_side=3), forms, st.data())
def test_fancy_indexing_and_masks(world, shape, form, data):
    e = world.linear(shape, form)
    index = data.draw(hnp.integer_array_indices(shape))
    assert_same(e.expr[index], e.value[index], world)
    mask = data.draw(hnp.arrays(bool, shape))
    assert_same(e.expr[mask], e.value[mask], world)
    along = data.draw(hnp.arrays(bool, shape[:1]))
    assert_same(e.expr[along], e.value[along], world)
    assert_same(e.expr[along.tolist(), ...], e.value[along.tolist(), ...], world)


@quick
@given(worlds, shapes, forms)
def test_transpose_and_ravel(world, shape, form):
    e = world.linear(shape, form)
    assert_same(e.expr.T, e.value.T, world)
    assert_same(e.expr.ravel(), e.value.ravel(), world)
    assert_same(e.expr.T.ravel(), e.value.T.ravel(), world)


@quick
@given(worlds, hnp.array_shapes(min_dims=0, max_dims=3, max_side=3), forms, st.data())
def test_reshape(world, shape, form, data):
    e = world.linear(shape, form)
    axes = list(shape)
    data.draw(st.randoms(use_true_random=False)).shuffle(axes)
    assert_same(e.expr.reshape(tuple(axes)), e.value.reshape(tuple(axes)), world)
    assert_same(e.expr.reshape(axes), e.value.reshape(axes), world)
    assert_same(e.expr.reshape(*axes, -1), e.value.reshape(*axes, -1), world)
    assert_same(e.expr.reshape(-1), e.value.reshape(-1), world)


@quick
@given(worlds, hnp.mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 1, 3)), forms)
def test_broadcast_to(world, drawn, form):
    e = world.linear(drawn.input_shapes[0], form)
    wanted = np.broadcast_shapes(drawn.input_shapes[0], (2, 1, 3))
    assert_same(e.expr.broadcast_to(wanted), np.broadcast_to(e.value, wanted), world)


@quick
@given(worlds, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3), forms)
def test_iteration_goes_through_the_first_dimension(world, shape, form):
    e = world.linear(shape, form)
    entries = list(e.expr)
    assert len(entries) == len(e.expr) == len(e.value)
    for entry, value in zip(entries, e.value, strict=True):
        assert_same(entry, value, world)


# ---------------------------------------------------------------------- sum


@quick
@given(worlds, shapes, forms, st.data())
def test_sum(world, shape, form, data):
    e = world.linear(shape, form)
    assert_same(e.expr.sum(), e.value.sum(), world)
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1)) if shape else st.just(set()))
    signed = tuple(a - len(shape) if data.draw(st.booleans()) else a for a in axes)
    assert_same(e.expr.sum(axis=signed), e.value.sum(axis=signed), world)
    for axis in range(-len(shape), len(shape)):
        assert_same(e.expr.sum(axis=axis), e.value.sum(axis=axis), world)


# ---------------------------------------------------------------------- what an expression never does


@quick
@given(worlds, forms)
def test_operations_change_no_operand(world, form):
    e = world.linear((3, 2), form)
    before = evaluate(e.expr, world.x)
    scaled = e.expr * np.array([0.0, 1.0])
    world.model.bounds(scaled)
    world.model.bounds(e.expr)
    (scaled + e.expr).sum(axis=0)
    world.model.add("r", scaled - e.expr <= 1)
    world.model.matrix()
    np.testing.assert_array_equal(evaluate(e.expr, world.x), before)
    assert_same(scaled, e.value * np.array([0.0, 1.0]), world)


def test_data_changed_afterwards_do_not_change_expressions():
    m = Model()
    w = m.continuous("w", 3)
    X, y, side = np.ones((2, 3)), np.ones(2), np.ones(2)
    product, reversed_product, scaled = X @ w, X @ w[::-1], y * w[:2]
    row = product <= side
    X[:], y[:], side[:] = 7, 7, 7
    assert set(product.matrix.data) == set(reversed_product.matrix.data) == set(scaled.matrix.data) == {1.0}
    assert set(row.upper) == {1.0}


def test_products_leave_the_data_in_place():
    m = Model()
    w = m.continuous("w", 3)
    X = np.arange(6.0).reshape(2, 3)
    S = sparse.csr_array(X)
    for operand in (X, S):
        (operand @ w[::-1]).sum()
        (w[::-1] @ operand.T).sum()
    np.testing.assert_array_equal(X, np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(S.toarray(), X)


def test_expressions_outlive_later_variables():
    world = World(3)
    early = world.linear((2,), "affine")
    late = world.linear((2,), "affine")
    assert early.expr.matrix.shape[1] < late.expr.matrix.shape[1]
    assert_same(early.expr + late.expr, early.value + late.value, world)
    assert_same(late.expr - early.expr, late.value - early.value, world)
