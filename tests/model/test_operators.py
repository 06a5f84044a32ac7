"""Operands that are taken and refused; the sparse matrices behind the array operations, against numpy on numbers."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

import numpy as np
import pytest
from expression_strategies import quick, shapes
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mipforest.model import DataValueError, ExpressionError, ShapeError
from mipforest.model.operators import (
    broadcast_shape,
    fitted,
    left_product,
    numeric,
    numeric_factors,
    positions,
    right_product,
    summation,
)

sides = st.integers(0, 4)
seeds = st.integers(0, 2**32 - 1)


@quick
@given(seeds, shapes, st.data())
def test_summation(seed, shape, data):
    values = np.random.default_rng(seed).integers(-5, 6, size=shape).astype(float)
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    operator, remaining = summation(shape, axis)
    np.testing.assert_array_equal((operator @ values.ravel()).reshape(remaining), values.sum(axis=axis))


@quick
@given(seeds, sides, sides, sides, st.booleans())
def test_products(seed, a, k, c, as_sparse):
    rng = np.random.default_rng(seed)
    X, values = rng.integers(-3, 4, size=(a, k)).astype(float), rng.integers(-3, 4, size=(k, c)).astype(float)
    operand = sparse.csr_array(X) if as_sparse else X
    operator, shape = left_product(operand, (k, c))
    np.testing.assert_array_equal((operator @ values.ravel()).reshape(shape), X @ values)
    operator, shape = right_product((c, k), operand.T)
    np.testing.assert_array_equal((operator @ values.T.ravel()).reshape(shape), values.T @ X.T)
    assert operator.indices.dtype == operator.indptr.dtype == np.int32


def test_an_operator_holds_no_view_of_the_data():
    X = np.ones((2, 3))
    operator, _ = left_product(X, (3,))
    assert not np.shares_memory(operator.data, X)


def test_positions_number_in_c_order():
    np.testing.assert_array_equal(positions((2, 3)), [[0, 1, 2], [3, 4, 5]])
    assert positions(()).shape == ()
    assert positions((0, 4)).shape == (0, 4)


def test_shapes_that_do_not_broadcast():
    assert broadcast_shape((3, 1), (2,), "+") == (3, 2)
    with pytest.raises(ShapeError, match=r"\(3,\) and \(2,\)"):
        broadcast_shape((3,), (2,), "+")


@pytest.mark.parametrize(
    "value", [2, 2.5, True, np.float32(1), np.array(3), [1, 2], ((1, 2), (3, 4)), range(3)]
)
def test_numbers_are_taken_as_floats(value):
    array = numeric(value)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, np.asarray(value))


def test_numbers_of_masked_and_sparse_arrays():
    np.testing.assert_array_equal(numeric(sparse.eye_array(2)), np.eye(2))
    np.testing.assert_array_equal(numeric(np.ma.array([1.0, 2.0])), [1, 2])
    with pytest.raises(DataValueError, match=r"\.filled\(value\)"):
        numeric(np.ma.array([1.0, 2.0], mask=[True, False]))


@pytest.mark.parametrize("value", ["1", None, [1, "a"], {"a": 1}, object(), 1j, np.array([1], dtype=object)])
def test_what_is_no_number(value):
    with pytest.raises(ExpressionError, match=rf"{type(value).__name__} is no number.*\.astype\(float\)"):
        numeric(value)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrices_whose_star_is_a_matrix_product_are_refused():
    for value in (np.matrix(np.eye(2)), sparse.csc_matrix(np.eye(2))):
        with pytest.raises(ExpressionError, match=r"shape \(2, 2\).*'@' for the product"):
            numeric_factors(value)
    np.testing.assert_array_equal(numeric_factors(sparse.csc_array(np.eye(2))), np.eye(2))


def test_values_that_do_not_fit_a_shape():
    np.testing.assert_array_equal(fitted([1, 2], (3, 2), "start"), [[1, 2]] * 3)
    with pytest.raises(ShapeError, match=r"start: values of shape \(3, 2\) .* shape \(2,\)"):
        fitted(np.ones((3, 2)), (2,), "start")
