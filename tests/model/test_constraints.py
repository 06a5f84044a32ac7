"""Constraint blocks of a model: rows, labels, relaxing, removing, indicators, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mipforest.model import (
    DataValueError,
    ExpressionError,
    Model,
    ModelError,
    ShapeError,
    UnknownNameError,
)


@pytest.fixture
def m():
    m = Model("m")
    m.binary("z", (3, ["a", "b"]))
    m.continuous("v", (3, 2), lower=-1, upper=1)
    return m


def test_rows_number_the_matrix_in_the_order_of_adding(m):
    z, v = m["z"], m["v"]
    first, switched = m.add("first", z.sum(axis=1) == 1), m.add_indicator("on", z, 1, v >= 0)
    second = m.add("second", v <= z)
    off = m.add_indicator("off", z[0, 0], 0, v[0] <= 0)
    assert (first.rows, second.rows) == (range(3), range(3, 9))
    assert (switched.rows, off.rows) == (range(6), range(6, 8))
    form = m.matrix()
    np.testing.assert_array_equal(form.A[list(second.rows)].toarray(), second.A.toarray())
    np.testing.assert_array_equal(form.indicators.A[list(off.rows)].toarray(), off.A.toarray())
    first.remove()
    assert second.rows == range(6)
    assert off.rows == range(6, 8)


def test_indicator_rows_read_their_binaries(m):
    z, v = m["z"], m["v"]
    m.add_indicator("on", z, 1, v >= 0)
    m.add_indicator("off", z[2, "b"], False, v[:, 0] == 0.5)
    rows = m.matrix().indicators
    np.testing.assert_array_equal(rows.binary, [0, 1, 2, 3, 4, 5, 5, 5, 5])
    np.testing.assert_array_equal(rows.value, [1] * 6 + [0] * 3)
    np.testing.assert_array_equal(rows.lower, [0] * 6 + [0.5] * 3)
    assert m["z"].shape == (3, 2)
    assert m.constraints["on"].is_indicator
    assert [block.name for block in rows.rows] == ["on", "off"]


def test_relaxed_rows_stay_and_bind_no_more(m):
    block = m.add("r", m["v"] >= 0.5, over=(["i", "j", "k"], 2))
    block.relax((slice(None), 1))
    block.relax("k")
    np.testing.assert_array_equal(m.matrix().row_lower, [0.5, -np.inf, 0.5, -np.inf, -np.inf, -np.inf])
    block.relax(np.array([True, False, False]))
    assert m.stats().free_rows == 5
    assert m.violations(np.zeros(m.n_columns)).rows.tolist() == [0, 0, 0.5, 0, 0, 0]
    block.relax()
    assert m.stats().free_rows == 6
    assert block.rows == range(6)


def test_a_removed_block_is_gone_and_says_so(m):
    block = m.add("r", m["v"] >= 0.5)
    block.remove()
    assert dict(m.constraints) == {}
    for use in (lambda: block.rows, block.relax, block.remove):
        with pytest.raises(ModelError, match="'r' was removed"):
            use()
    again = m.add("r", m["v"] >= 0.25)
    assert again.rows == range(6)
    with pytest.raises(ModelError, match="'r' was removed"):
        block.relax()
    assert set(m.matrix().row_lower) == {0.25}


def test_unknown_names_get_a_suggestion(m):
    m.add("margin", m["v"] >= 0)
    with pytest.raises(UnknownNameError, match=r"'margins'.*did you mean 'margin'"):
        m.constraints["margins"]
    with pytest.raises(UnknownNameError, match="did you mean 'margin'"):
        m.remove("magin")
    with pytest.raises(UnknownNameError, match="known: z, v"):
        m["weights"]
    with pytest.raises(UnknownNameError, match="there is none yet"):
        Model()["w"]


def test_the_view_of_the_constraints_is_read_only(m):
    m.add("r", m["v"] >= 0)
    with pytest.raises(TypeError):
        del m.constraints["r"]
    assert list(m.constraints) == ["r"]
    assert "r" in m.constraints
    assert "q" not in m.constraints


def test_row_labels(m):
    assert m.add("r", m["v"] >= 0, over=(range(3), ["l", "r"])).labels == (("0", "1", "2"), ("l", "r"))
    assert m.add("s", m["v"].sum() >= 0).labels == ()
    assert m.matrix().row_names[-2:] == ["r[2,r]", "s"]
    with pytest.raises(ShapeError, match=r"'t' has shape \(3, 2\), its index sets have lengths \(2, 3\)"):
        m.add("t", m["v"] >= 0, over=(2, 3))


@pytest.mark.parametrize(
    ("relation", "error", "message"),
    [
        (lambda z, v: True, ExpressionError, r"is a bool, not a comparison.*cost @ x <= 10"),
        (lambda z, v: v, ExpressionError, r"is a VarArray, not a comparison"),
        (lambda z, v: v <= np.nan, DataValueError, r"NaN: entry \(0, 0\)"),
        (lambda z, v: v + np.nan <= 1, DataValueError, r"NaN: entry \(0, 0\)"),
        (
            lambda z, v: v <= [[1, 1], [1, -np.inf], [1, 1]],
            DataValueError,
            r"no point satisfies.*entry \(1, 1\)",
        ),
        (lambda z, v: v >= np.inf, DataValueError, r"no point satisfies"),
        (lambda z, v: v == np.inf, DataValueError, r"no point satisfies"),
        (lambda z, v: Model().binary("z", 2) <= 1, ExpressionError, r"another model.*model\['name'\]"),
    ],
)
def test_rows_that_are_refused(m, relation, error, message):
    for add in (lambda row: m.add("r", row), lambda row: m.add_indicator("r", m["z"], 1, row)):
        with pytest.raises(error, match=f"constraint block 'r'.*{message}"):
            add(relation(m["z"], m["v"]))
    assert not m.constraints


def test_coefficients_that_overflow_are_refused(m):
    with np.errstate(over="ignore"):
        huge = m["v"] * 1e200 * 1e200
    with pytest.raises(DataValueError, match="'r' has a coefficient that is NaN or infinite"):
        m.add("r", huge <= 1)


@pytest.mark.parametrize(
    ("binary", "value", "error", "message"),
    [
        (lambda m: m["z"], 2, DataValueError, r"value 2; a binary is 0 or 1"),
        (lambda m: m["z"], np.ones(2), DataValueError, r"a binary is 0 or 1"),
        (lambda m: 1 - m["z"], 1, ExpressionError, r"switch is a LinearExpr.*value 0 instead of 1 - z"),
        (lambda m: m["v"], 1, ExpressionError, r"not binary; make them with model\.binary"),
        (lambda m: Model().binary("z", (3, 2)), 1, ExpressionError, r"switch is of another model"),
        (lambda m: m["z"][:2], 1, ShapeError, r"\(2, 2\) and \(3, 2\)"),
        (lambda m: m.binary("y", (4, 3, 2)), 1, ShapeError, r"\(4, 3, 2\).*rows of shape \(3, 2\)"),
    ],
)
def test_switches_that_are_refused(m, binary, value, error, message):
    with pytest.raises(error, match=message):
        m.add_indicator("i", binary(m), value, m["v"] >= 0)
    assert not m.constraints


def test_block_names_are_unique_and_not_empty(m):
    m.add("r", m["v"] >= 0)
    for wrong in (
        lambda: m.add("r", m["v"] <= 0),
        lambda: m.add_indicator("r", m["z"], 1, m["v"] <= 0),
        lambda: m.binary("z"),
    ):
        with pytest.raises(ModelError, match=r"already has a .* '[rz]'; give another name"):
            wrong()
    for name in ("", None, 3):
        with pytest.raises(ModelError, match="give a non-empty string"):
            m.add(name, m["v"] <= 0)


def test_repr(m):
    assert repr(m.add("r", m["v"] <= m["z"])) == (
        "<ConstraintBlock 'r' of shape (3, 2), 6 rows, 12 nonzeros>"
    )
    assert "indicator rows" in repr(m.add_indicator("i", m["z"], 1, m["v"] <= 0))
