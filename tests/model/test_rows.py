"""Row operations on matrices, against numpy."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from expression_strategies import quick, worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from mipforest.model import ExpressionError, Model
from mipforest.model.matrix import add_rows, index_type, row_bounds, scale_rows, stack_rows, widen

seeds, sides = st.integers(0, 2**32 - 1), st.integers(0, 4)


@quick
@given(seeds, sides, sides, st.integers(0, 3))
def test_row_operations(seed, height, width, more):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-1, 2, size=(height, w)).astype(float) for w in (width, width + more))
    factors = rng.integers(-3, 4, size=height).astype(float)
    wide = np.pad(a, ((0, 0), (0, more)))
    A, B = sparse.csr_array(a), sparse.csr_array(b)
    np.testing.assert_array_equal(widen(A, width + more).toarray(), wide)
    np.testing.assert_array_equal(add_rows(A, B).toarray(), wide + b)
    np.testing.assert_array_equal(add_rows(B, A).toarray(), wide + b)
    np.testing.assert_array_equal(scale_rows(A, factors).toarray(), a * factors[:, None])
    np.testing.assert_array_equal(scale_rows(A, np.asarray(0.5), np.divide).toarray(), a / 0.5)
    stacked = stack_rows([A, B, A], width + more)
    np.testing.assert_array_equal(stacked.toarray(), np.concatenate([wide, b, wide]))
    assert stacked.indices.dtype == np.int32
    assert not np.shares_memory(stacked.data, A.data) or not A.nnz


def test_stacking_nothing_and_the_width_of_indices():
    assert stack_rows([], 4).shape == (0, 4)
    assert index_type(10, 2**31) is np.int64
    assert index_type(10, 10) is np.int32


whole = st.integers(-4, 4).map(float)
coefficients = hnp.arrays(float, (3, 4), elements=whole)


@settings(deadline=None, max_examples=15)
@given(coefficients, hnp.arrays(float, 4, elements=whole), hnp.arrays(float, 4, elements=st.integers(0, 3)))
def test_finite_boxes_by_their_corners(A, lower, width):
    corners = np.array(list(product(*zip(lower, lower + width, strict=True))))
    least, greatest = row_bounds(sparse.csr_array(A), lower, lower + width)
    np.testing.assert_array_equal(least, (corners @ A.T).min(axis=0))
    np.testing.assert_array_equal(greatest, (corners @ A.T).max(axis=0))


@settings(deadline=None, max_examples=15)
@given(
    coefficients,
    hnp.arrays(float, 4, elements=st.sampled_from([-np.inf, -2.0, 0.0])),
    hnp.arrays(float, 4, elements=st.sampled_from([0.0, 3.0, np.inf])),
)
def test_infinite_sides_give_no_nan(A, lower, upper):
    least, greatest = row_bounds(sparse.csr_array(A), lower, upper)
    for i, row in enumerate(A):
        terms = [
            (a * lo, a * up) if a > 0 else (a * up, a * lo)
            for a, lo, up in zip(row, lower, upper, strict=True)
            if a
        ]
        assert least[i] == sum(low for low, _ in terms)
        assert greatest[i] == sum(high for _, high in terms)


@settings(deadline=None, max_examples=15)
@given(worlds)
def test_expression_bounds_hold_at_points_and_are_attained(world):
    model, rng = world.model, world.rng
    v = model.integer("v", (2, 3), lower=-2, upper=3)
    expr = (world.numbers((4, 2)) @ v + world.numbers((3,))) * world.numbers((4, 1))
    low, high = model.bounds(expr)
    assert low.shape == high.shape == (4, 3)
    points = rng.integers(-2, 4, size=(200, model.n_columns)).astype(float)
    values = np.stack([(expr.matrix @ p + expr.constant).reshape(4, 3) for p in points])
    assert (low <= values).all()
    assert (values <= high).all()
    A = expr.matrix.toarray()
    attained = np.where(A > 0, -2, 3)
    np.testing.assert_array_equal(low.ravel(), (A * attained).sum(axis=1) + expr.constant)


def test_zero_coefficients_of_unbounded_variables_count_as_nothing():
    m = Model()
    v = m.continuous("v", 2)
    low, high = m.bounds(v * np.array([0.0, 1.0]) + 5)
    np.testing.assert_array_equal(low, [5, -np.inf])
    np.testing.assert_array_equal(high, [5, np.inf])


def test_bounds_follow_fixed_variables_and_later_blocks():
    m = Model()
    z = m.binary("z", 2)
    total = z.sum() - 1
    m.nonnegative("later", 4)
    assert [float(side) for side in m.bounds(total)] == [-1.0, 1.0]
    z[0].fix(1)
    assert [float(side) for side in m.bounds(total)] == [0.0, 1.0]
    assert m.bounds(z[:0])[0].shape == (0,)


def test_bounds_of_what_is_no_expression_of_the_model():
    m = Model()
    v = m.binary("v", 2)
    with pytest.raises(ExpressionError, match="another model"):
        Model().bounds(v)
    for wrong in (3.0, v**2):
        with pytest.raises(ExpressionError, match="give a linear expression"):
            m.bounds(wrong)
