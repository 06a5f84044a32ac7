from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from small_models import model

from mipforest.solvers.convexity import is_convex, require_convex
from mipforest.solvers.errors import NotAllowed


@given(st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=200)
def test_agrees_with_the_eigenvalues(seed: int, maximize: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    half = rng.integers(-3, 4, (n, n)) * (rng.random((n, n)) < 0.5)
    Q = (half + half.T).astype(float) + np.diag(rng.integers(0, 8, n))
    least = np.linalg.eigvalsh(Q).min()
    form = model(np.zeros(n), Q=-Q if maximize else Q, maximize=maximize)
    assert is_convex(form) == (least > -1e-9)


@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
@settings(deadline=None, max_examples=100)
def test_singular_gram_matrices_are_convex_at_any_scale(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(int(rng.integers(1, 4)), 6)) * scale
    assert is_convex(model(np.zeros(6), Q=factor.T @ factor))


def test_no_quadratic_part_is_convex() -> None:
    assert is_convex(model([1.0]))
    assert is_convex(model([1.0], Q=[[0.0]]))


def test_a_zero_on_the_diagonal_with_a_product_is_not_convex() -> None:
    assert not is_convex(model([0.0, 0.0], Q=[[0.0, 1.0], [1.0, 0.0]]))


def test_a_long_diagonal_and_many_small_blocks_are_quick() -> None:
    n = 100_000
    diagonal = model(np.zeros(n))
    block = sparse.csr_array([[1.0, 0.9], [0.9, 0.81]])
    pairs = sparse.csr_array(sparse.block_diag([block] * 1000))
    assert is_convex(replace(diagonal, Q=sparse.csr_array(sparse.eye_array(n))))
    assert is_convex(replace(model(np.zeros(2000)), Q=pairs))


@pytest.mark.parametrize(("maximize", "word"), [(False, "positive"), (True, "negative")])
def test_refusal_names_solver_and_sign(maximize: bool, word: str) -> None:
    Q = [[1.0 if maximize else -1.0]]
    with pytest.raises(NotAllowed, match=f"solver highs.*not {word} semidefinite"):
        require_convex(model([0.0], Q=Q, maximize=maximize), "highs")
