"""The shipped comparison of models notices every difference."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.testing import assert_same_form

INDICATORS = IndicatorRows(
    np.array([1]),
    np.array([1]),
    sparse.csr_array(np.array([[1.0, 0.0]])),
    np.array([0.0]),
    np.array([2.0]),
    (Block("if", 0, ()),),
)
FORM = MatrixForm(
    c=np.array([1.0, 2.0]),
    A=sparse.csr_array(np.array([[1.0, 0.5]])),
    row_lower=np.array([0.0]),
    row_upper=np.array([1.0]),
    col_lower=np.zeros(2),
    col_upper=np.ones(2),
    integer=np.array([False, True]),
    indicators=INDICATORS,
    Q=sparse.csr_array(np.eye(2)),
    columns=(Block("x", 0, (2,)),),
    rows=(Block("r", 0, ()),),
)


def test_same():
    assert_same_form(FORM, FORM)
    assert_same_form(FORM, replace(FORM, col_lower=-FORM.col_lower))  # -0.0
    scalars = (Block("x[0]", 0, ()), Block("x[1]", 1, ()))
    assert_same_form(FORM, replace(FORM, columns=scalars))
    assert_same_form(replace(FORM, Q=None), replace(FORM, Q=sparse.csr_array((2, 2))))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"c": np.array([1.0, np.nextafter(2.0, 3)])}, "c differs at 1 places, first at 1"),
        ({"A": sparse.csr_array(np.array([[1.0, 0.0]]))}, "A.indptr"),
        ({"A": sparse.csr_array(np.array([[1.0, 0.25]]))}, "A.data"),
        ({"Q": None}, "is_quadratic"),
        ({"Q": sparse.csr_array(2 * np.eye(2))}, "Q.data"),
        ({"integer": np.array([True, True])}, "integer"),
        ({"row_lower": np.array([0.5])}, "row_lower"),
        ({"col_upper": np.array([1.0, np.inf])}, "col_upper"),
        ({"offset": 1.0}, "offset"),
        ({"maximize": True}, "maximize"),
        ({"indicators": replace(INDICATORS, value=np.array([0]))}, "indicators.value"),
        ({"indicators": IndicatorRows.none(2)}, "indicators.n_rows"),
    ],
)
def test_differences_in_the_mathematics(changes, message):
    with pytest.raises(AssertionError, match=message):
        assert_same_form(FORM, replace(FORM, **changes), names=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": (Block("y", 0, (2,)),)}, "column_names"),
        ({"rows": (Block("s", 0, ()),)}, "row_names"),
        ({"name": "other"}, "name"),
        ({"indicators": replace(INDICATORS, rows=(Block("then", 0, ()),))}, "indicator names"),
    ],
)
def test_differences_in_names(changes, message):
    other = replace(FORM, **changes)
    assert_same_form(FORM, other, names=False)
    with pytest.raises(AssertionError, match=message):
        assert_same_form(FORM, other)
