from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from small_models import INF, model
from tolerance import at_most

from mipforest.errors import NotAllowed
from mipforest.model.check import violations
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.solvers.convexity import continuous_rest, is_convex, require_convex, with_best_rest


@given(st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=15)
def test_agrees_with_the_eigenvalues(seed: int, maximize: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    half = rng.integers(-3, 4, (n, n)) * (rng.random((n, n)) < 0.5)
    Q = (half + half.T).astype(float) + np.diag(rng.integers(0, 8, n))
    least = np.linalg.eigvalsh(Q).min()
    form = model(np.zeros(n), Q=-Q if maximize else Q, maximize=maximize)
    assert is_convex(form) == (least > -1e-9)


@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
@settings(deadline=None, max_examples=15)
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


def switched(value: int) -> MatrixForm:
    """Minimise (w - 3)^2 with a binary column that, at ``value``, switches on w <= 1."""
    row = IndicatorRows(
        np.zeros(1, int), np.array([value]), sparse.csr_array([[0.0, 1.0]]), np.array([-INF]), np.ones(1)
    )
    form = model(
        [0.0, -6.0], lower=[0, -9], upper=[1, 9], integer=[True, False], Q=np.diag([0.0, 2.0]), offset=9.0
    )
    return replace(form, indicators=row)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("binary", [0.0, 1.0])
def test_indicator_rows_hold_where_they_are_switched_on(value: int, binary: float) -> None:
    best = with_best_rest(switched(value), np.array([binary, 0.0]))
    np.testing.assert_allclose(best, [binary, 1.0 if binary == value else 3.0], atol=1e-6)


def test_the_rest_has_neither_integers_nor_indicators() -> None:
    rest = continuous_rest(switched(1), np.array([1.0, 0.0]))
    assert not rest.is_mip
    assert rest.n_rows == 1
    assert rest.col_lower[0] == rest.col_upper[0] == 1.0


@given(st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=15)
def test_the_best_rest_is_feasible_keeps_the_integers_and_is_never_worse(seed: int, maximize: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    factor, A = rng.normal(size=(n, n)), rng.normal(size=(3, n))
    integer = rng.random(n) < 0.5
    inside = np.where(integer, rng.integers(-2, 3, n), rng.normal(size=n))
    sign = -1.0 if maximize else 1.0
    form = model(
        rng.normal(size=n),
        A,
        A @ inside - rng.random(3),
        A @ inside + rng.random(3),
        lower=-5,
        upper=5,
        integer=integer,
        Q=sign * factor.T @ factor,
        maximize=maximize,
    )
    best = with_best_rest(form, inside)
    assert violations(form, best).max <= 1e-6
    np.testing.assert_array_equal(best[integer], inside[integer])
    assert at_most(sign * form.objective(best), sign * form.objective(inside))


def test_integers_that_are_not_exact_are_left_alone() -> None:
    x = np.array([1e-7, 0.0])
    assert with_best_rest(switched(1), x) is x
