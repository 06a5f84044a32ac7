"""Row operations on matrices, against numpy."""

from __future__ import annotations

import numpy as np
from expression_strategies import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mipforest.model.rows import add_rows, index_type, scale_rows, stack_rows, widen

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
