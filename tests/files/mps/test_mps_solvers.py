"""Five solvers read from our files the model that plain numpy sees."""

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

from mipforest.files import write_mps
from mipforest.files.layout import safe_names
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm


@settings(max_examples=20, deadline=None)
@given(small_integer_forms(quadratic=False, indicators=False))
def test_highs_finds_the_optimum(tmp_path_factory, form):
    path = tmp_path_factory.getbasetemp() / "highs.mps"
    write_mps(form, path)
    assert highs_value(path) == pytest.approx(best_by_enumeration(form), abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(small_integer_forms(quadratic=True, indicators=True))
def test_gurobi_finds_the_optimum(tmp_path_factory, form):
    path = tmp_path_factory.getbasetemp() / "gurobi.mps.gz"
    write_mps(form, path)
    assert gurobi_value(path) == pytest.approx(best_by_enumeration(form), abs=1e-6)


@pytest.mark.parametrize("value_of", [glpsol_value, pytest.param(cbc_value, marks=pytest.mark.slow)])
def test_glpk_and_cbc_find_the_optimum_of_a_minimum(tmp_path_factory, value_of):
    """Both have no OBJSENSE, and GLPK takes the constant with the opposite sign."""

    @settings(max_examples=15, deadline=None)
    @given(small_integer_forms(quadratic=False, indicators=False))
    def finds_the_optimum(form):
        form = replace(form, maximize=False, offset=0.0, name="small")
        path = tmp_path_factory.getbasetemp() / f"{value_of.__name__}.mps"
        write_mps(form, path)
        assert value_of(path) == pytest.approx(best_by_enumeration(form), abs=1e-6)

    finds_the_optimum()


@settings(max_examples=15, deadline=None)
@given(small_integer_forms(quadratic=True, indicators=True))
def test_scip_finds_the_optimum(tmp_path_factory, form):
    path = tmp_path_factory.getbasetemp() / "scip.mps"
    write_mps(form, path)
    assert scip_value(path) == pytest.approx(best_by_enumeration(form), abs=1e-5)


#: Numbers that HiGHS takes as they are: not taken for infinite, nor dropped as tiny.
ordinary = st.one_of(st.integers(-5, 5).map(float), st.floats(0.01, 100), st.floats(-100, -0.01))


@settings(max_examples=20, deadline=None)
@given(forms(ordinary))
def test_highs_reads_the_same_arrays(tmp_path_factory, form):
    """All but free rows, which HiGHS drops, and indicators and indefinite objectives, which it knows not."""
    highspy = pytest.importorskip("highspy")
    form = replace(form, Q=None, indicators=IndicatorRows.none(form.n_columns))
    path = tmp_path_factory.getbasetemp() / "arrays.mps"
    write_mps(form, path)
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) != highspy.HighsStatus.kError
    lp = solver.getLp()
    free = np.isinf(form.row_lower) & np.isinf(form.row_upper)
    assert list(lp.col_cost_) == form.c.tolist()
    assert list(lp.col_lower_) == form.col_lower.tolist()
    assert list(lp.col_upper_) == form.col_upper.tolist()
    assert list(lp.col_names_) == form.column_names
    assert (lp.sense_ == highspy.ObjSense.kMaximize) == form.maximize
    assert lp.offset_ == form.offset
    integer = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_] or [False] * form.n_columns
    assert integer == form.integer.tolist()
    if lp.num_row_ == np.count_nonzero(~free):  # no row had to be told as two
        assert list(lp.row_lower_) == form.row_lower[~free].tolist()
        assert list(lp.row_upper_) == form.row_upper[~free].tolist()
        # exact: written to the last digit
        assert list(lp.a_matrix_.value_) == form.A[np.flatnonzero(~free)].tocsc().data.tolist()


def test_every_punctuation_mark_in_names_is_read(tmp_path):
    """Each name comes back from each reader as it was written."""
    raw = [f"a{mark}b" for mark in string.punctuation] + [f"{mark}b" for mark in string.punctuation]
    raw += ["RHS", "BND", "QSECTION", "'MARKER'", "ENDATA", "12", "1e5", "", "a b", "é", "x" * 300]
    names = safe_names(raw)
    n = len(names)
    form = MatrixForm(
        c=np.ones(n),
        A=sparse.csr_array(np.eye(n)),
        row_lower=np.ones(n),
        row_upper=np.full(n, np.inf),
        col_lower=np.zeros(n),
        col_upper=np.full(n, 3.0),
        integer=np.zeros(n, dtype=bool),
        indicators=IndicatorRows.none(n),
        columns=(Block("x", 0, (n,), flat_names=tuple(raw)),),
        rows=(Block("r", 0, (n,), flat_names=tuple(raw)),),
    )
    path = tmp_path / "names.mps"
    write_mps(form, path)
    highspy = pytest.importorskip("highspy")
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    assert list(solver.getLp().col_names_) == names
    assert list(solver.getLp().row_names_) == names
    assert gurobi_value(path) == n  # exact: a count
    gurobipy = pytest.importorskip("gurobipy")
    with (
        gurobipy.Env(params={"OutputFlag": 0}) as environment,
        gurobipy.read(str(path), environment) as model,
    ):
        assert [column.VarName for column in model.getVars()] == names
        assert [row.ConstrName for row in model.getConstrs()] == names
    pyscipopt = pytest.importorskip("pyscipopt")
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(str(path))
    assert sorted(column.name for column in scip.getVars()) == sorted(names)
    assert sorted(row.name for row in scip.getConss()) == sorted(names)
