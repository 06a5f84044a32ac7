"""Five solvers read from our LP files, as far as each takes its parts, the model that plain numpy sees."""

import string
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_solvers import (
    best_by_enumeration,
    cbc_value,
    glpsol_value,
    gurobi_value,
    highs_value,
    scip_value,
)
from scipy import sparse
from strategies_forms import forms, small_integer_forms

from mipforest.files import write_lp
from mipforest.files.layout import CONSTANT, lp_names
from mipforest.files.lp import lp_column_names
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm


@pytest.mark.parametrize(  # that CBC reads every name: below
    "value_of", [highs_value, glpsol_value, pytest.param(cbc_value, marks=pytest.mark.slow)]
)
def test_solvers_of_linear_models_find_the_optimum(tmp_path_factory, value_of):
    @settings(max_examples=15)
    @given(small_integer_forms(quadratic=False, indicators=False).filter(has_rows))
    def finds_the_optimum(form):
        path = tmp_path_factory.getbasetemp() / f"{value_of.__name__}.lp"
        write_lp(form, path)
        assert value_of(path) == pytest.approx(best_by_enumeration(form), abs=1e-6)

    finds_the_optimum()


def has_rows(form):
    """GLPK refuses an LP file without rows."""
    return np.isfinite(form.row_lower).any() or np.isfinite(form.row_upper).any()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("value_of", [gurobi_value, scip_value])
def test_solvers_of_quadratic_models_find_the_optimum(tmp_path_factory, value_of):
    @settings(max_examples=15)
    @given(small_integer_forms(quadratic=True, indicators=True))
    def finds_the_optimum(form):
        path = tmp_path_factory.getbasetemp() / f"{value_of.__name__}.lp"
        write_lp(form, path)
        assert value_of(path) == pytest.approx(best_by_enumeration(form), abs=1e-5)

    finds_the_optimum()


#: Numbers that HiGHS takes as they are: not taken for infinite, nor dropped as tiny.
ordinary = st.one_of(st.integers(-5, 5).map(float), st.floats(0.01, 100), st.floats(-100, -0.01))


@settings(max_examples=20)
@given(forms(ordinary).filter(lambda form: form.n_columns > 0))
def test_highs_reads_the_same_numbers(tmp_path_factory, form):
    """Costs, bounds, integrality, sides and coefficients come back to the last bit, columns in order."""
    highspy = pytest.importorskip("highspy")
    form = replace(form, Q=None, indicators=IndicatorRows.none(form.n_columns))
    path = tmp_path_factory.getbasetemp() / "numbers.lp"
    write_lp(form, path)
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) != highspy.HighsStatus.kError
    lp = solver.getLp()
    n = form.n_columns
    assert list(lp.col_names_) == lp_column_names(form) + [CONSTANT] * (form.offset != 0)
    assert list(lp.col_cost_) == [*form.c.tolist(), *([form.offset] if form.offset else [])]
    assert list(lp.col_lower_)[:n] == form.col_lower.tolist()
    assert list(lp.col_upper_)[:n] == form.col_upper.tolist()
    assert (lp.sense_ == highspy.ObjSense.kMaximize) == form.maximize
    integer = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_][:n] or [False] * n
    assert integer == form.integer.tolist()
    sides = [
        side
        for low, high in zip(form.row_lower, form.row_upper, strict=True)
        for side in ([(low, high)] if low == high else [(low, np.inf), (-np.inf, high)])
        if np.isfinite(side).any()
    ]
    assert list(zip(lp.row_lower_, lp.row_upper_, strict=True)) == sides
    told = np.repeat(
        np.arange(form.n_rows),
        [
            1 if low == high else int(np.isfinite(low)) + int(np.isfinite(high))
            for low, high in zip(form.row_lower, form.row_upper, strict=True)
        ],
    )
    expected = sparse.csr_array(form.A[told]) if len(told) else sparse.csr_array((0, n))
    assert list(lp.a_matrix_.value_) == expected.tocsc().data.tolist()  # exact: written to the last digit


def awkward_names():
    raw = [f"a{mark}b" for mark in string.punctuation] + [f"{mark}b" for mark in string.punctuation]
    raw += [
        "free",
        "inf",
        "infinity",
        "INFx",
        "st",
        "s.t.",
        "End",
        "bound",
        "bin",
        "gen",
        "int",
        "semi",
        "sos",
    ]
    raw += ["obj", "max", "Minimize", "12", "1e5", "e5", "b", "g"]
    return [*raw, "", "a b", "é", "x" * 300, "x" * 301, CONSTANT, "z[1,n0]", "z(1,n0)", "a_b"]


@pytest.mark.parametrize("value_of", [highs_value, gurobi_value, scip_value, glpsol_value, cbc_value])
@pytest.mark.parametrize("offset", [0.0, -2.5])
def test_every_name_is_read(tmp_path, value_of, offset):
    """Names with every mark, and words that mean something to a solver, name columns and rows."""
    raw = awkward_names()
    n = len(raw)
    form = MatrixForm(
        c=np.ones(n),
        A=sparse.csr_array(np.eye(n)),
        row_lower=np.arange(n) / 4,
        row_upper=np.full(n, np.inf),
        col_lower=np.full(n, -1.0),
        col_upper=np.full(n, 100.0),
        integer=np.arange(n) % 2 == 0,
        indicators=IndicatorRows.none(n),
        offset=offset,
        columns=(Block("x", 0, (n,), flat_names=tuple(raw)),),
        rows=(Block("r", 0, (n,), flat_names=tuple(raw)),),
    )
    write_lp(form, tmp_path / "names.lp")
    sides = np.arange(n) / 4
    best = np.where(form.integer, np.ceil(sides), sides).sum() + offset
    assert value_of(tmp_path / "names.lp") == pytest.approx(best)


def test_lp_names_are_unique_and_short():
    names = lp_names(awkward_names(), reserved=["a"])
    assert len(set(names)) == len(names)
    assert max(map(len, names)) == 100
    assert lp_names(names) == names
    assert lp_names(["z[1,n0]", "w"]) == ["z(1,n0)", "w"]
