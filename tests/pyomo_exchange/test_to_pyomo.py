"""Models given to Pyomo: idiomatic there, and the same model when they come back."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_forms import forms, small_integer_forms

import mipforest
from mipforest import Model, between, from_pyomo, sum_squares, to_pyomo
from mipforest.bridges import indicator_to_big_m
from mipforest.errors import Unsupported
from mipforest.model.matrix import IndicatorRows
from mipforest.settings import SolveSettings
from mipforest.solvers.highs import Highs
from mipforest.solving import solve_form
from mipforest.testing import assert_same_form

pyo = pytest.importorskip("pyomo.environ")

#: Numbers that stay themselves when halved and doubled, as quadratic coefficients are.
numbers = st.one_of(
    st.integers(-5, 5).map(float),
    st.sampled_from([0.1, -0.3, 1 / 3, 1e20, -1e30, 1e300]),
    st.floats(-1, 1).filter(lambda value: value == 0 or abs(value) > 1e-300),
)


def margin_model() -> Model:
    m = Model("margin")
    w = m.continuous("w", (["n0", "n2"], ["age", "sex"]))
    z = m.binary("z", 3)
    b = m.integer("b", lower=-2, upper=7)
    m.minimize(0.5 * sum_squares(w) + (w[0].sum() + b) ** 2 + z.sum() + 3)
    m.add("margin", w.sum(axis=1) + b >= 1, over=["n0", "n2"])
    m.add("count", between(1, z.sum(), 2))
    return m


@given(forms(numbers))
@settings(max_examples=25)
def test_a_model_comes_back_the_same(form) -> None:
    form = replace(form, indicators=IndicatorRows.none(form.n_columns))
    assert_same_form(form, from_pyomo(to_pyomo(form)))


@given(small_integer_forms(quadratic=False, indicators=True))
@settings(max_examples=15)
def test_indicator_rows_come_back_as_big_m_rows(form) -> None:
    assert_same_form(indicator_to_big_m.apply(form).form, from_pyomo(to_pyomo(form)), names=False)


def test_indicator_rows_keep_their_names() -> None:
    m = Model()
    x, z = m.nonnegative("x", 2, upper=9.0), m.binary("z")
    m.add_indicator("low", z, 1, 1.0 * x <= 3, over=["a", "b"])
    m.add_indicator("both", z, 1, between(1, x, 2))
    p = to_pyomo(m)
    assert set(p.low) == {"a", "b"}
    assert set(p.both) == {"0", "0_upper", "1", "1_upper"}


def test_blocks_keep_their_shape_and_labels() -> None:
    form = margin_model().matrix()
    back = from_pyomo(to_pyomo(margin_model()))
    assert_same_form(form, back)
    x = np.arange(form.n_columns, dtype=float)
    for name, values in form.to_values(x).items():
        np.testing.assert_array_equal(back.to_values(x)[name], values)  # exact: whole numbers


def test_the_model_is_idiomatic() -> None:
    p = to_pyomo(margin_model())
    assert isinstance(p, pyo.ConcreteModel)
    assert p.name == "margin"
    assert p.w["n2", "age"].domain is pyo.Reals
    assert p.z[1].domain is pyo.Binary
    assert (p.b.domain, p.b.bounds) == (pyo.Integers, (-2, 7))
    assert str(p.margin["n0"].expr) == "1.0  <=  w[n0,age] + w[n0,sex] + b"
    assert p.objective.sense == pyo.minimize
    assert set(p.component_map(pyo.Var)) == {"w", "z", "b"}


def test_it_can_be_extended_and_solved_there() -> None:
    m = Model()
    take = m.binary("take", ["lamp", "rope", "tent"])
    m.maximize([3.0, 4.0, 5.0] @ take)
    m.add("weight", [2.0, 3.0, 4.0] @ take <= 5)
    p = to_pyomo(m)
    p.no_rope = pyo.Constraint(expr=p.take["rope"] == 0)
    pyo.SolverFactory("appsi_highs").solve(p)
    assert pyo.value(p.objective) == 5.0
    assert solve_form(from_pyomo(p), Highs(), SolveSettings()).objective == 5.0


def test_a_taken_name_gets_an_underscore() -> None:
    m = Model()
    x = m.nonnegative("x", 2)
    other = m.nonnegative("objective")
    m.nonnegative("component_map")
    m.minimize(x.sum() + other)
    m.add("x", x.sum() >= 1)
    p = to_pyomo(m)
    assert p.x.ctype is pyo.Var
    assert p.x_.ctype is pyo.Constraint
    assert p.objective_.ctype is pyo.Objective
    assert p.component_map_.ctype is pyo.Var
    assert_same_form(m.matrix(), from_pyomo(p), names=False)


def test_a_start_becomes_values_and_open_entries_have_none() -> None:
    m = margin_model()
    m.set_start({"z": np.array([1.0, np.nan, 0.0])})
    p = to_pyomo(m)
    assert [p.z[k].value for k in range(3)] == [1.0, None, 0.0]
    assert p.b.value is None


def test_an_indicator_row_without_a_big_m_is_refused() -> None:
    m = Model()
    x, z = m.continuous("x"), m.binary("z")
    m.add_indicator("far", z, 1, 1.0 * x >= 5)
    with pytest.raises(Unsupported, match="far has no finite big-M, because column x lacks"):
        to_pyomo(m)


def test_the_functions_are_public() -> None:
    assert {"to_pyomo", "from_pyomo"} <= set(mipforest.__all__)


@pytest.mark.parametrize("function", ["to_pyomo", "from_pyomo"])
def test_without_pyomo_the_message_says_how_to_install_it(function, monkeypatch) -> None:
    import sys

    for module in ("mipforest.solvers.pyomo.session", "mipforest.pyomo"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "pyomo.environ", None)
    with pytest.raises(ImportError, match="pip install pyomo"):
        getattr(mipforest, function)(mipforest.Model("any"))
