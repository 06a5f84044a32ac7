"""What expressions refuse, and what the error tells to write instead."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipforest.model import DataValueError, ExpressionError, LinearExpr, Model, ShapeError

m = Model()
x, v, other = m.continuous("x", (3, 2)), m.continuous("v", 2), Model().continuous("x", (3, 2))
e = x + 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: x + np.ones(3), r"\(3, 2\) and \(3,\) do not broadcast in '\+'.*expr\[:, None\].*\.T"),
        (lambda: np.ones(3) * e, r"\(3, 2\) and \(3,\) do not broadcast in '\*'"),
        (lambda: e / np.ones(3), r"\(3, 2\) and \(3,\) do not broadcast in '/'"),
        (lambda: x - m.continuous("three", 3), r"\(3, 2\) and \(3,\)"),
        (lambda: x <= np.ones(3), r"\(3, 2\) and \(3,\)"),
        (lambda: np.ones((2, 2)) @ x, r"\(2, 2\) and \(3, 2\) do not fit in '@': 2 and 3.*\.T"),
        (lambda: x @ np.ones(3), r"\(3, 2\) and \(3,\) do not fit in '@'"),
        (lambda: sparse.eye_array(2) @ x, r"\(2, 2\) and \(3, 2\)"),
        (lambda: 2 * x @ 2, r"not shapes \(3, 2\) and \(\).*'\*'"),
        (lambda: x @ np.ones((2, 2, 2)), r"\(3, 2\) and \(2, 2, 2\).*\.sum\(axis\)"),
        (lambda: x.sum(axis=2), r"axis 2 of an expression of shape \(3, 2\)"),
        (lambda: x.sum(axis=(0, 0)), r"axis \(0, 0\).*twice"),
        (lambda: x.sum(axis=0.5), r"axis 0.5"),
        (lambda: x.reshape(4), r"\(3, 2\) has 6 entries; it does not reshape to 4"),
        (lambda: x.reshape(4, -1), r"\(3, 2\) has 6 entries; it does not reshape to \(4, -1\)"),
        (lambda: x.broadcast_to((3,)), r"\(3, 2\) .* \(3,\)"),
        (lambda: x[:, :1].broadcast_to((1, 2)), r"\(3, 1\) does not broadcast to \(1, 2\)"),
        (lambda: len(v[0]), r"shape \(\)"),
        (lambda: list(e.sum()), r"shape \(\)"),
    ],
)
def test_shapes_that_do_not_fit(wrong, message):
    with pytest.raises(ShapeError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: x * v, r"shapes \(3, 2\) and \(2,\).*\*\* 2.*add_indicator"),
        (lambda: x[0] * x[0], r"shapes \(2,\) and \(2,\).*\*\* 2"),
        (lambda: x * x**2, r"shapes \(3, 2\) and \(3, 2\)"),
        (lambda: x @ v, r"\(3, 2\) and \(2,\).*sum_squares"),
        (lambda: x / v, r"\(3, 2\) by an expression of shape \(2,\).*multiply both sides"),
        (lambda: 1 / x, r"shape \(3, 2\).*multiply both sides"),
        (lambda: np.ones(2) / x, r"shape \(3, 2\).*multiply both sides"),
        (lambda: 2**x, r"shape \(3, 2\) as an exponent"),
        (lambda: x**3, r"\*\* 3: only squares"),
        (lambda: x ** np.array([2, 2]), r"only squares"),
        (lambda: x**v, r"only squares"),
        (lambda: abs(x), r"shape \(3, 2\).*t >= expr and t >= -expr"),
        (lambda: x < 1, r"'<='.*epsilon"),
        (lambda: x > 1, r"'>='.*epsilon"),
        (lambda: np.ones(2) < x, r"'>='"),
        (lambda: x != 1, r"'!='.*binary"),
        (lambda: bool(x), r"no truth value.*model\.add"),
        (lambda: 0 <= x <= 1, r"between\(a, expr, b\)"),
        (lambda: x in [v], r"between|truth value"),
        (lambda: x == None, r"NoneType is no number"),  # noqa: E711
        (lambda: x + "1", r"str is no number"),
        (lambda: [v, 1] * x, r"list is no .*number"),
        (lambda: x + np.array([v, 1], dtype=object), r"object.*concatenate"),
        (lambda: x * 1j, r"complex"),
        (lambda: x @ sparse.csr_array(np.eye(2) * 1j), r"complex"),
        (lambda: x * [[1, 2], [3]], r"no array of numbers"),
        (lambda: x + other, r"two models.*copy"),
        (lambda: np.sum(x), r"numpy\.sum .*\.sum\(axis\)"),
        (lambda: np.dot(np.eye(3), x), r"numpy\.dot .*@"),
        (lambda: np.concatenate([x, x]), r"numpy\.concatenate .*concatenate"),
        (lambda: np.stack([x, x]), r"numpy\.stack"),
        (lambda: np.reshape(x, 6), r"numpy\.reshape .*\.reshape"),
        (lambda: np.where([True, False], x, 0), r"numpy\.where"),
    ],
)
def test_what_no_linear_model_holds(wrong, message):
    with pytest.raises(ExpressionError, match=message):
        wrong()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_coefficients_are_finite(bad):
    X = np.ones((4, 3))
    X[2, 1] = bad
    for wrong in (
        lambda: X @ x,
        lambda: x.T @ X.T,
        lambda: X[:3, :2] * x,
        lambda: x / X[:3, :2],
        lambda: x**2 * X[:3, :2],
        lambda: (x**2).T @ X.T,
    ):
        with pytest.raises(
            DataValueError, match=rf"1 numbers.* entry \(\d, \d\) = {bad} first.*fill missing"
        ):
            wrong()
    for wrong in (lambda: bad * x, lambda: sparse.csr_array(X) @ x, lambda: x.T @ sparse.csc_matrix(X.T)):
        with pytest.raises(DataValueError, match=f"= {bad} first"):
            wrong()


def test_division_by_zero_counts_the_zeros():
    with pytest.raises(ZeroDivisionError, match=r"1 zeros of an array of shape \(2,\)"):
        x / np.array([1.0, 0.0])
    with pytest.raises(ZeroDivisionError):
        x / 0


@pytest.mark.parametrize("index", [3, (0, 2), (0, 0, 0), np.array([5]), (slice(None), [0, 9])])
@pytest.mark.parametrize("array", [x, e])
def test_an_index_out_of_range_names_the_shape(index, array):
    with pytest.raises(IndexError, match=r"of shape \(3, 2\)"):
        array[index]


def test_only_variables_take_labels():
    labelled = Model().continuous("w", (["a", "b"],))
    with pytest.raises(IndexError, match="only variables take labels"):
        (labelled + 1)["a"]


def test_universal_functions_are_refused():
    for function in (np.abs, np.exp, np.negative):
        with pytest.raises(TypeError):
            function(x)
    with pytest.raises(TypeError):
        np.ones(2).__iadd__(x)


def test_repr_names_shape_and_terms():
    assert repr(e) == "<LinearExpr of shape (3, 2), 6 terms>"
    assert isinstance(e, LinearExpr)
    assert len({e, x, e}) == 2
