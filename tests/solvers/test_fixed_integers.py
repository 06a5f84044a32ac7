from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from small_models import INF, model

from mipforest.model.check import violations
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.solvers.fixed_integers import continuous_rest, with_best_rest


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
@settings(deadline=None, max_examples=40)
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
    assert sign * form.objective(best) <= sign * form.objective(inside)


def test_integers_that_are_not_exact_are_left_alone() -> None:
    x = np.array([1e-7, 0.0])
    assert with_best_rest(switched(1), x) is x
