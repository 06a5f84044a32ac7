"""The model as a whole: objective, starts, priorities, copies, and the point-wise checks."""

# exact throughout: whole numbers, or the same single operation on both sides

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from expression_strategies import forms, quick, worlds
from hypothesis import given
from hypothesis import strategies as st

from mipforest.model import (
    DataValueError,
    ExpressionError,
    Model,
    ShapeError,
    UnknownNameError,
    VarArray,
    sum_squares,
)


@pytest.fixture
def m():
    m = Model("small")
    w, z = m.continuous("w", (2, 2), lower=-5, upper=5), m.binary("z", 2)
    m.minimize(sum_squares(w) + z.sum() + 1)
    m.add("link", w.sum(axis=1) <= 3 * z)
    m.add_indicator("on", z, 1, w[:, 0] >= 1)
    m.set_start({"z": [1, np.nan]})
    m.set_priority("z", 5)
    return m


def state(m: Model) -> tuple:
    """Everything a model says, as plain values."""
    f = m.matrix()
    rows = f.indicators
    arrays = [f.c, f.A.toarray(), f.row_lower, f.row_upper, f.col_lower, f.col_upper, f.integer]
    arrays += [rows.binary, rows.value, rows.A.toarray(), rows.lower, rows.upper]
    arrays += [f.Q.toarray() if f.Q is not None else np.zeros(0)]
    arrays += [*m.start.values(), *m.priorities.values()]
    return ([a.tolist() for a in map(np.nan_to_num, arrays)], f.offset, f.maximize, f.columns, f.rows, f.name)


def change_everything(m: Model) -> None:
    m["w"].fix(0)
    m["z"].relax()
    m.constraints["link"].relax(0)
    m.constraints["on"].remove()
    m.add("more", m["w"] <= 1)
    m.binary("late")
    m.maximize(m["z"].sum())
    m.set_start({"z": [0, 0]})
    m.start["z"][:] = 7
    m.set_priority("z", 1)
    m.name = "changed"


# ---------------------------------------------------------------------- copies


def test_a_copy_is_equal_and_independent(m):
    before, twin = state(m), m.copy()
    assert state(twin) == before
    change_everything(twin)
    assert state(m) == before
    assert state(twin) != before


def test_changing_the_original_leaves_the_copy(m):
    twin, before = m.copy(), state(m)
    change_everything(m)
    assert state(twin) == before


def test_arrays_of_starts_and_priorities_are_not_shared_with_a_copy(m):
    twin = m.copy()
    twin.start["z"][:] = 7
    twin.priorities["z"][:] = 7
    assert m.start["z"][0] == 1
    assert m.priorities["z"].tolist() == [5, 5]


def test_a_copy_takes_its_own_variables_only(m):
    twin = m.copy()
    assert isinstance(twin["w"], VarArray)
    twin.add("own", twin["w"] <= 1)
    for wrong in (
        lambda: twin.add("r", m["w"] <= 1),
        lambda: twin.minimize(m["w"].sum()),
        lambda: twin.minimize(sum_squares(m["w"])),
        lambda: twin["w"] + m["w"],
        lambda: twin.bounds(m["w"]),
        lambda: twin.add_indicator("i", m["z"], 1, twin["w"][0] <= 1),
    ):
        with pytest.raises(ExpressionError, match="model"):
            wrong()


@pytest.mark.parametrize("objective", [lambda m: 3.5, lambda m: m["z"][0], lambda m: m["z"] @ [1, 2] - 1])
def test_copies_keep_every_kind_of_objective(m, objective):
    m.maximize(objective(m))
    assert state(m.copy()) == state(m)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_models_pickle(m, duplicate):
    twin = duplicate(m)
    assert state(twin) == state(m)
    twin.add("own", twin["w"] + twin["z"] <= 1)
    assert "own" not in m.constraints


# ---------------------------------------------------------------------- objective


@quick
@given(worlds, forms, st.booleans())
def test_objective_against_numpy(world, form, maximize):
    e, d = world.linear((3, 2), form), world.linear((2,), form)
    expression = sum_squares(e.expr) / 2 + np.array([1.0, 2.0]) @ d.expr - 3
    (world.model.maximize if maximize else world.model.minimize)(expression)
    expected = (e.value**2).sum() / 2 + np.array([1.0, 2.0]) @ d.value - 3
    assert world.model.objective(world.point()) == expected
    by_block = {name: world.x[block.columns] for name, block in world.model.variables.items()}
    assert world.model.objective(by_block) == expected
    assert world.model.matrix().maximize is maximize


def test_the_last_objective_counts(m):
    m.maximize(m["w"].sum())
    assert m.matrix().Q is None
    m.minimize(4)
    assert (m.matrix().offset, m.matrix().maximize, m.matrix().c.any()) == (4.0, False, False)


def test_a_model_without_objective_is_worth_nothing():
    v = Model("empty").continuous("v", 2)
    assert v.owner.objective([3.0, 4.0]) == 0.0


@pytest.mark.parametrize(
    ("objective", "error", "message"),
    [
        (lambda m: m["w"], ShapeError, r"shape \(2, 2\), it must have shape \(\); add \.sum\(\)"),
        (lambda m: m["w"] ** 2, ShapeError, r"shape \(2, 2\)"),
        (lambda m: [1, 2], ShapeError, r"shape \(2,\)"),
        (lambda m: m["w"].sum() + np.inf, DataValueError, "infinite"),
        (lambda m: sum_squares(m["w"]) + np.nan, DataValueError, "infinite"),
        (lambda m: m["w"] <= 1, ExpressionError, "Relation is no number"),
        (lambda m: "w", ExpressionError, "str is no number"),
        (lambda m: Model().continuous("w") + 1, ExpressionError, "another model"),
    ],
)
def test_objectives_that_are_refused(m, objective, error, message):
    before = state(m)
    with pytest.raises(error, match=message):
        m.minimize(objective(m))
    assert state(m) == before


# ---------------------------------------------------------------------- starts and priorities


def test_starts_are_checked_copied_and_replaced(m):
    values = np.array([1.0, 0.0])
    m.set_start({"z": values, "w": [[1, 2], [3, np.nan]]})
    values[:] = 5
    assert m.start["z"].tolist() == [1, 0]
    np.testing.assert_array_equal(m.point(m.start), [1, 2, 3, np.nan, 1, 0])
    m.set_start({"w": np.zeros((2, 2))})
    assert list(m.start) == ["w"]
    with pytest.raises(
        ShapeError, match=r"start of block 'w' has shape \(4,\), the block has shape \(2, 2\)"
    ):
        m.set_start({"w": np.zeros(4)})
    with pytest.raises(UnknownNameError, match=r"'zz'.*did you mean 'z'"):
        m.set_start({"zz": 1})
    assert list(m.start) == ["w"]
    with pytest.raises(TypeError):
        m.start["z"] = values


def test_priorities_are_whole_numbers_that_broadcast(m):
    m.set_priority("w", [1, 2])
    assert m.priorities["w"].tolist() == [[1, 2], [1, 2]]
    for wrong in (0.5, np.nan, np.inf):
        with pytest.raises(DataValueError, match="'z' must be whole numbers"):
            m.set_priority("z", wrong)
    with pytest.raises(ShapeError, match=r"\(3,\) do not broadcast to shape \(2,\)"):
        m.set_priority("z", [1, 2, 3])
    with pytest.raises(UnknownNameError):
        m.set_priority("y", 1)


def test_starts_and_priorities_are_no_part_of_the_mathematics(m):
    form = m.matrix()
    m.set_start({})
    m.set_priority("z", 0)
    assert m.matrix() is form


# ---------------------------------------------------------------------- the matrix form of a changing model


def test_an_earlier_form_never_changes(m):
    form = m.matrix()
    snapshot = pickle.loads(pickle.dumps(form))
    change_everything(m)
    now = m.matrix()
    assert now is not form
    for name in ("c", "row_lower", "row_upper", "col_lower", "col_upper", "integer"):
        np.testing.assert_array_equal(getattr(form, name), getattr(snapshot, name))
    np.testing.assert_array_equal(form.A.toarray(), snapshot.A.toarray())
    np.testing.assert_array_equal(form.indicators.lower, snapshot.indicators.lower)
    assert form.columns == snapshot.columns


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "name", "other"),
        lambda m: m["w"].fix(0),
        lambda m: m["z"].relax(),
        lambda m: m["w"].set_bounds(upper=1),
        lambda m: m.constraints["link"].relax(1),
        lambda m: m.constraints["on"].remove(),
        lambda m: m.remove("link"),
        lambda m: m.add("more", m["w"] <= 1),
        lambda m: m.add_indicator("also", m["z"], 0, m["w"][0] <= 1),
        lambda m: m.continuous("late"),
        lambda m: m.maximize(0),
    ],
)
def test_every_change_shows_in_the_next_form(m, change):
    before, form = state(m), m.matrix()
    assert m.matrix() is form
    change(m)
    assert state(m) != before


def test_the_arrays_of_a_form_are_locked(m):
    f = m.matrix()
    arrays = [f.c, f.A.data, f.A.indices, f.A.indptr, f.Q.data, f.row_lower, f.row_upper]
    arrays += [f.col_lower, f.col_upper, f.integer, f.indicators.lower, f.indicators.A.data]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    m["w"].fix(1)  # the model itself stays open to change
    m.constraints["link"].relax()
    m.constraints["on"].relax()


def test_explicit_zeros_are_dropped_and_columns_sorted():
    m = Model()
    v = m.continuous("v", 4)
    X = np.array([[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0]])
    m.add("r", X @ v[::-1] <= 1)
    m.add("s", v[:2] - v[:2] + 0 * v[3] + v[[1, 1]] + v[[1, 0]] <= 1)
    A = m.matrix().A
    assert A.has_canonical_format
    assert A.data.all()
    np.testing.assert_array_equal(A.toarray(), [[2, 0, 1, 0], [0, 0, 0, 0], [0, 2, 0, 0], [1, 1, 0, 0]])
    assert A.nnz == 5


def test_an_empty_model():
    m = Model()
    form = m.matrix()
    assert (form.n_columns, form.n_rows, form.indicators.n_rows) == (0, 0, 0)
    assert m.objective(np.zeros(0)) == 0
    assert m.violations({}).max == 0
    assert "0 columns" in repr(m)


def test_empty_blocks_have_no_rows_or_columns():
    m = Model()
    v = m.continuous("v", (0, 3))
    m.add("r", v <= 1)
    m.add("s", v.sum(axis=0) <= 1)
    m.add_indicator("i", m.binary("z", 0), 1, v.sum(axis=1) <= 1)
    assert m.matrix().A.shape == (3, 0)
    assert m.matrix().indicators.n_rows == 0


def test_variables_are_listed_in_order(m):
    assert list(m.variables) == ["w", "z"]
    assert m.variables["w"] is m["w"]
    with pytest.raises(TypeError):
        m.variables["w"] = None


def test_terms_are_announced_before_an_expression_has_them():
    class TooLarge(Exception):
        pass

    def watch(terms):
        heard.append(terms)
        if terms > 1000:
            raise TooLarge

    heard = []
    m = Model()
    m.watch = watch
    x = m.binary("x", 30)
    with pytest.raises(TooLarge):
        m.binary("many", 2000)
    assert list(m.variables) == ["x"]
    with pytest.raises(TooLarge):
        np.ones((40, 30)) @ x
    assert max(heard) == 2000
    with pytest.raises(TooLarge):
        (x + 1.0)[np.zeros(1500, dtype=int)]
    m.add("one", x.sum() == 1)
    heard.clear()
    m.add("again", x[0] == 1)
    assert max(heard) == 31  # all rows


def test_the_names_of_other_modelling_packages_are_understood():
    own, other = Model("m"), Model("m")
    x, y = own.continuous("x", 2, lower=-1), own.binary("y")
    own.add("cover", x.sum() + y >= 1)
    own.maximize(x.sum() - y)
    u, v = other.add_variables(name="x", over=2, lower=-1), other.add_variables(name="y", binary=True)
    other.add_constraints(u.sum() + v >= 1, "cover")
    other.set_objective(u.sum() - v, "max")
    a, b = own.matrix(), other.matrix()
    assert (a.A != b.A).nnz == 0
    assert (a.maximize, a.columns) == (b.maximize, b.columns)
    for name in ("c", "col_lower", "col_upper", "integer", "row_lower"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    with pytest.raises(ValueError, match="sense is 'maximise'; give 'min' or 'max'"):
        other.set_objective(u.sum(), "maximise")
