"""Series and data frames as operands: the numbers they hold, by position, or an error at once."""

from __future__ import annotations

import operator

import numpy as np
import pandas as pd
import pytest
from expression_strategies import assert_same, forms, quick, worlds
from hypothesis import given
from hypothesis import strategies as st

from mipforest.model import DataValueError, ExpressionError, Model, Relation


@quick
@given(worlds, forms, st.sampled_from([operator.add, operator.sub, operator.mul]), st.booleans())
def test_by_entry(world, form, operation, swapped):
    e = world.linear((3, 2), form)
    for numbers in (world.numbers((3, 2)), world.numbers((2,))):
        columns = ["q", "p"]
        data = (
            pd.DataFrame(numbers, columns=columns) if numbers.ndim == 2 else pd.Series(numbers, index=columns)
        )
        if swapped:
            assert_same(operation(data, e.expr), operation(numbers, e.value), world)
        else:
            assert_same(operation(e.expr, data), operation(e.value, numbers), world)


@quick
@given(worlds, forms)
def test_products_from_the_left_and_comparisons(world, form):
    e, numbers = world.linear((3, 2), form), world.numbers((2,))
    frame = pd.DataFrame(world.numbers((2, 4)))
    assert_same(e.expr @ pd.Series(numbers), e.value @ numbers, world)
    assert_same(e.expr @ frame, e.value @ frame.to_numpy(), world)
    for relation in (pd.Series(numbers) >= e.expr, e.expr <= pd.Series(numbers)):
        assert isinstance(relation, Relation)
        np.testing.assert_array_equal(relation.lower, -np.inf)
        np.testing.assert_array_equal(
            relation.upper.reshape(3, 2), np.broadcast_to(numbers, (3, 2)) - e.expr.constant.reshape(3, 2)
        )


def test_pandas_cannot_start_a_product_and_says_so_at_once():
    w = Model().continuous("w", (3, 2))
    for data in (pd.DataFrame(np.ones((4, 2))), pd.Series(np.ones(2))):
        with pytest.raises((IndexError, ValueError)):
            data @ w.T
        assert (data.to_numpy() @ w.T).shape == (*data.shape[:-1], 3)


def test_columns_that_are_no_numbers_are_refused():
    w = Model().continuous("w", 2)
    for data in (pd.Series(["a", "b"]), pd.Series([1, "b"])):
        with pytest.raises(ExpressionError, match=r"Series is no number.*\.astype\(float\)"):
            data * w


def test_missing_numbers_are_refused():
    w = Model().continuous("w", 2)
    for data in (pd.Series([1.0, None]), pd.Series([1.0, np.nan])):
        with pytest.raises(DataValueError, match=r"entry \(1,\) = nan first.*fill missing data"):
            data * w


def test_label_arrays_of_pandas_index_variables():
    w = Model().continuous("w", (3, ["age", "sex", "bmi"]))
    for wanted in (pd.Index(["bmi", "age"]), pd.Series(["bmi", "age"]), np.array(["bmi", "age"])):
        np.testing.assert_array_equal(w[:, wanted].columns, w.columns[:, [2, 0]])
