"""Variable blocks: bounds, integrality, indexing by number and by label."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

import numpy as np
import pytest
from expression_strategies import quick, shapes, worlds
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mipforest.model import DataValueError, Model, ShapeError, UnknownNameError, VarArray


@pytest.fixture
def m():
    return Model("m")


def test_kinds_and_default_bounds(m):
    kinds = {
        "c": m.continuous("c", 2),
        "n": m.nonnegative("n", 2),
        "b": m.binary("b", 2),
        "i": m.integer("i", 2),
    }
    bounds = {name: (set(v.lower), set(v.upper), set(v.integer)) for name, v in kinds.items()}
    inf = np.inf
    assert bounds == {
        "c": ({-inf}, {inf}, {False}),
        "n": ({0.0}, {inf}, {False}),
        "b": ({0.0}, {1.0}, {True}),
        "i": ({-inf}, {inf}, {True}),
    }


def test_bounds_broadcast_over_the_block(m):
    v = m.continuous("v", (2, 3), lower=[1, 2, 3], upper=[[7], [8]])
    np.testing.assert_array_equal(v.lower, [[1, 2, 3], [1, 2, 3]])
    np.testing.assert_array_equal(v.upper, [[7, 7, 7], [8, 8, 8]])
    assert m.nonnegative("s", upper=4).upper == 4
    assert m.integer("k", 1, lower=-2, upper=2).lower[0] == -2


@quick
@given(worlds, shapes, shapes)
def test_blocks_take_consecutive_columns_in_c_order(world, first, second):
    a, b = world.model.binary("a", first), world.model.continuous("b", second)
    assert a.columns.shape == first
    np.testing.assert_array_equal(
        np.concatenate([a.columns.ravel(), b.columns.ravel()]), np.arange(world.model.n_columns)
    )
    np.testing.assert_array_equal(a.matrix.toarray(), np.eye(world.model.n_columns)[: a.size])


@quick
@given(worlds, hnp.array_shapes(min_dims=1, max_dims=3, max_side=3), st.data())
def test_an_indexed_block_is_a_block_of_variables(world, shape, data):
    v = world.model.continuous("v", shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    part = v[index]
    assert isinstance(part, VarArray)
    assert isinstance(part.T.reshape(-1), VarArray)
    np.testing.assert_array_equal(part.columns, v.columns[index])
    assert len(part.labels) == part.ndim


def test_fix_and_set_bounds_change_only_these_variables(m):
    v = m.nonnegative("v", (2, 3), upper=9)
    v[0].fix([1, 2, 3])
    v[1, 1].fix(5)
    np.testing.assert_array_equal(v.lower, [[1, 2, 3], [0, 5, 0]])
    np.testing.assert_array_equal(v.upper, [[1, 2, 3], [9, 5, 9]])
    v[0].set_bounds(upper=np.inf)
    v[:, 2].set_bounds(lower=-1)
    np.testing.assert_array_equal(v.lower, [[1, 2, -1], [0, 5, -1]])
    np.testing.assert_array_equal(v.upper[0], [np.inf] * 3)


def test_bounds_are_given_as_copies_that_cannot_be_written_to(m):
    v, s = m.binary("v", 2), m.binary("s")
    for bounds in (v.lower, v.upper, s.lower):
        with pytest.raises(ValueError, match="read-only"):  # it would change nothing of the model
            bounds[...] = 9
    v.integer[:] = False
    np.testing.assert_array_equal(m.matrix().col_lower, 0)
    assert m.matrix().integer.all()


def test_relax_drops_integrality_and_keeps_bounds(m):
    z = m.binary("z", (2, 2))
    z[0].relax()
    np.testing.assert_array_equal(z.integer, [[False, False], [True, True]])
    assert set(z.upper.ravel()) == {1.0}


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (2, 1, r"block 'v'.*2.0 and upper bound 1.0 at entry \(0, 0\)"),
        ([0, 0, 5], 1, r"5.0 and upper bound 1.0 at entry \(0, 2\)"),
        (np.nan, 1, r"nan"),
        (np.inf, np.inf, r"inf"),
        (-np.inf, -np.inf, r"-inf"),
    ],
)
def test_bounds_without_a_value_are_refused(m, lower, upper, message):
    with pytest.raises(DataValueError, match=message):
        m.continuous("v", (2, 3), lower=lower, upper=upper)
    v = m.continuous("w", (2, 3))
    with pytest.raises(DataValueError, match=r"set_bounds.*give lower <= upper"):
        v.set_bounds(lower, upper)
    assert set(v.lower.ravel()) == {-np.inf}
    assert "v" not in m.variables


def test_bounds_of_a_wrong_shape_name_both_shapes(m):
    with pytest.raises(
        ShapeError, match=r"block 'v': values of shape \(3,\) do not broadcast to shape \(2,\)"
    ):
        m.continuous("v", 2, lower=np.zeros(3))
    v = m.continuous("w", 2)
    for wrong in (lambda: v.fix(np.zeros(3)), lambda: v.set_bounds(upper=np.zeros((1, 2)))):
        with pytest.raises(ShapeError, match=r"to shape \(2,\).*give one number"):
            wrong()


# ---------------------------------------------------------------------- labels


@pytest.fixture
def w(m):
    return m.continuous("w", (["n0", "n1", "n2"], 2, ["age", "sex", "bmi", "bp"]))


@pytest.mark.parametrize(
    ("by_label", "by_number"),
    [
        ("n1", 1),
        (("n1", 0, "bmi"), (1, 0, 2)),
        ((slice(None), slice(None), "age"), (slice(None), slice(None), 0)),
        ((..., "age"), (..., 0)),
        (("n2", ...), (2, ...)),
        ((None, "n2"), (None, 2)),
        ((["n0", "n2"],), ([0, 2],)),
        ((..., ["bp", "age"]), (..., [3, 0])),
        ((["n0", "n2"], 1, ["bp", "age"]), ([0, 2], 1, [3, 0])),
        ((np.array([True, False, True]), 0, "sex"), (np.array([True, False, True]), 0, 1)),
        ((np.eye(3, 2, dtype=bool), "sex"), (np.eye(3, 2, dtype=bool), 1)),
    ],
)
def test_labels_stand_for_numbers(w, by_label, by_number):
    np.testing.assert_array_equal(w[by_label].columns, w.columns[by_number])


@pytest.mark.parametrize(
    ("index", "labels"),
    [
        ((slice(None, None, -1),), (("n2", "n1", "n0"), None, ("age", "sex", "bmi", "bp"))),
        (("n1",), (None, ("age", "sex", "bmi", "bp"))),
        ((..., slice(1, 3)), (("n0", "n1", "n2"), None, ("sex", "bmi"))),
        ((["n2", "n0"],), (("n2", "n0"), None, ("age", "sex", "bmi", "bp"))),
        ((np.array([True, False, True]),), (("n0", "n2"), None, ("age", "sex", "bmi", "bp"))),
        ((None, "n0", slice(None), "age"), (None, None)),
        (([0, 1], 0, slice(None)), (None, None)),
        (([[0, 1]],), (None, None, None, None)),
        ((True,), (None, None, None, None)),
    ],
)
def test_labels_follow_an_index(w, index, labels):
    assert w[index].labels == labels


def test_labels_follow_a_transpose(w):
    assert w.T.labels == w.labels[::-1]
    np.testing.assert_array_equal(w.T["bmi"].columns, w.columns.T[2])
    np.testing.assert_array_equal(w[1:]["n2"].columns, w.columns[2])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("n9", r"no label 'n9' in dimension 0; known: n0, n1, n2"),
        ((..., "agee"), r"no label 'agee' in dimension 2; did you mean 'age'"),
        ((..., "weight"), r"no label 'weight' in dimension 2; known: age, sex, bmi, bp"),
        ((0, "age"), r"dimension 1 of these 3 has no labels; use numbers instead of 'age'"),
        ((0, 0, 0, "age"), r"dimension 3 of these 3"),
        ((["n0", "n7"],), r"'n7'"),
    ],
)
def test_unknown_labels(w, index, message):
    with pytest.raises(UnknownNameError, match=message):
        w[index]


def test_repr(m):
    m.binary("first", 5)
    assert repr(m.binary("z", (2, 3))) == "<VarArray of shape (2, 3), columns 5..10>"
    assert repr(m["z"][:0]) == "<VarArray of shape (0, 3), no columns>"
