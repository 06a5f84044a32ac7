"""Rows and expressions print as algebra, and sides can be set or are refused at once."""

import numpy as np
import pytest

from mipforest.model import Model, between
from mipforest.model.expressions import LinearExpr


@pytest.fixture
def m():
    model = Model()
    model.nonnegative("x", ["a", "b", "c"])
    model.continuous("y")
    model.binary("z", (2, ["p", "q"]))
    return model


def test_one_row(m):
    x, y = m["x"], m["y"]
    assert str(m.add("r", 2 * x["b"] + y <= 3)) == "r: 2 x[b] + y <= 3"
    assert str(m.add("s", -x["a"] - 0.5 * y >= -1)) == "s: -x[a] - 0.5 y >= -1"
    assert str(m.add("e", x["a"] - x["a"] + y == 1)) == "e: y = 1"
    assert str(m.add("t", between(-1, y + 1, 2))) == "t: -2 <= y <= 1"
    assert str(m.add("never", 0 * y <= 1)) == "never: 0 <= 1"


def test_rows_of_a_block_by_name_and_an_indicator(m):
    block = m.add("one", m["z"].sum(axis=1) == 1, over=["left", "right"])
    assert str(block) == "one[left]: z[0,p] + z[0,q] = 1\none[right]: z[1,p] + z[1,q] = 1"
    assert str(block["right"]) == "one[right]: z[1,p] + z[1,q] = 1"
    switched = m.add_indicator("on", m["z"][0, "p"], 1, m["x"] <= 2)
    assert str(switched[1]) == "on[1]: z[0,p] = 1 => x[b] <= 2"
    switched.relax(1)
    assert str(switched[1]) == "on[1]: z[0,p] = 1 => x[b] is free"


def test_long_rows_and_blocks_are_cut_off():
    m = Model()
    x = m.binary("x", 30)
    row = str(m.add("sum", x.sum() <= 3))
    assert row.endswith("x[7] + ... (22 more terms) <= 3")
    assert str(m.add("each", x <= 1)).splitlines()[-1] == "... (20 more)"


def test_expressions_and_relations(m):
    x, y = m["x"], m["y"]
    assert str(2 * y - x["a"] + 1) == "-x[a] + 2 y + 1"
    assert str(x["a":"b"] + 1) == "[0]: x[a] + 1\n[1]: x[b] + 1"
    assert str(x["a"] + y <= 3) == "x[a] + y <= 3"
    assert str(x[:2] >= 0) == "[0]: x[a] >= 0\n[1]: x[b] >= 0"
    assert str(0 * y - 2) == "-2"
    assert str(LinearExpr(y.matrix, y.constant, (), None)).startswith("<LinearExpr")


def test_names_behind_an_empty_block():
    m = Model()
    m.binary("none", 0)
    assert str(m.binary("x", 2)) == "[0]: x[0]\n[1]: x[1]"


def test_sides_are_set_and_the_matrix_hears_of_it(m):
    block = m.add("r", m["x"] <= [1.0, 2.0, 3.0], over=["u", "v", "w"])
    before = m.matrix()
    block.upper = 5
    block["v":"w"].upper = [6, 7]
    block[0].lower = -1
    assert m.matrix() is not before
    np.testing.assert_array_equal(m.matrix().row_upper, [5, 6, 7])  # exact: copies
    np.testing.assert_array_equal(m.matrix().row_lower, [-1, -np.inf, -np.inf])  # exact: copies
    block.set_sides(2, 2)
    block[1:].relax()
    np.testing.assert_array_equal(block.upper, [2, np.inf, np.inf])  # exact: copies
    assert block[1:].shape == (2,)
    assert [rows.shape for rows in block] == [(), (), ()]


def test_sides_that_cannot_be_set_are_refused_at_once(m):
    block = m.add("r", m["x"] <= 1)
    with pytest.raises(AttributeError, match="rows have no 'rhs' to set; set lower or upper"):
        block.rhs = 3
    with pytest.raises(AttributeError, match="rows have no 'rhs'"):
        block[0].rhs = 3
    with pytest.raises(ValueError, match="read-only"):
        block.upper[0] = 3
    with pytest.raises(ValueError, match="read-only"):
        block[0:2].upper[0] = 3
    block.lower = 0
    with pytest.raises(
        ValueError, match=r"sides of constraint block 'r': lower bound 0.0 and upper bound -1.0"
    ):
        block.upper = -1
    with pytest.raises(ValueError, match="do not broadcast"):
        block.upper = [1, 2]
    with pytest.raises(IndexError, match="rows of shape"):
        block[3]
    with pytest.raises(KeyError, match="has no labels"):
        block["a"]
    with pytest.raises(TypeError, match="is one row"):
        iter(m.add("single", m["y"] <= 1))
    m.remove("r")
    with pytest.raises(Exception, match="was removed"):
        block.upper = 3


def test_bounds_are_set_as_attributes(m):
    x = m["x"]
    x.upper = 3
    x["b"].lower = 1
    np.testing.assert_array_equal(x.upper, [3, 3, 3])  # exact: copies
    np.testing.assert_array_equal(m.matrix().col_lower[:3], [0, 1, 0])  # exact: copies
    with pytest.raises(AttributeError, match="variables have no 'ub' to set; set lower or upper"):
        x.ub = 3
    with pytest.raises(AttributeError, match=r"fix\(value\) fixes variables"):
        x.value = 3
    with pytest.raises(ValueError, match="read-only"):
        x.upper[0] = 1


def test_names_in_a_model_and_slices_by_label(m):
    assert "x" in m
    assert "w" not in m
    assert list(m) == ["x", "y", "z"]
    assert list(m.constraints) == []
    np.testing.assert_array_equal(m["x"]["b":].columns, [1, 2])
    np.testing.assert_array_equal(m["x"][:"b"].columns, [0, 1])
    np.testing.assert_array_equal(m["z"][0, "p":"q"].columns, [4, 5])
    assert m["x"]["b":"c"].labels == (("b", "c"),)
    with pytest.raises(KeyError, match="no label 'd'"):
        m["x"]["a":"d"]
