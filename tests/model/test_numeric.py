"""Numbers as operands: what is taken, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipforest.model import DataValueError, ExpressionError, ShapeError
from mipforest.model.numeric import fitted, numeric, numeric_factors


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
