"""HiGHS, Gurobi and SCIP read from our files the model that plain numpy sees."""

import string
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies_forms import forms, small_integer_forms

from mipforest.files import write_mps
from mipforest.files.names import safe_names
from mipforest.model.check import violations
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm


def best_by_enumeration(form):
    """Optimal value over all integer points of the box; every column is integer."""
    boxes = [range(int(low), int(high) + 1) for low, high in zip(form.col_lower, form.col_upper, strict=True)]
    points = (np.array(point, dtype=float) for point in product(*boxes))
    values = [form.objective(point) for point in points if violations(form, point).max == 0]
    return max(values) if form.maximize else min(values)


def highs_value(path):
    highspy = pytest.importorskip("highspy")
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getObjectiveValue()


@pytest.fixture(scope="module")
def gurobi():
    gurobipy = pytest.importorskip("gurobipy")
    with gurobipy.Env(params={"OutputFlag": 0}) as environment:

        def value(path):
            with gurobipy.read(str(path), environment) as model:
                model.Params.MIPGap = 0
                model.Params.Threads = 1
                model.optimize()
                assert model.Status == gurobipy.GRB.OPTIMAL
                return model.ObjVal

        yield value


def scip_value(path):
    pyscipopt = pytest.importorskip("pyscipopt")
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    assert model.getStatus() == "optimal"
    return model.getObjVal()


@settings(max_examples=40, deadline=None)
@given(small_integer_forms(quadratic=False, indicators=False))
def test_highs_finds_the_optimum(tmp_path_factory, form):
    path = tmp_path_factory.getbasetemp() / "highs.mps"
    write_mps(form, path)
    assert highs_value(path) == pytest.approx(best_by_enumeration(form), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(small_integer_forms(quadratic=True, indicators=True))
def test_gurobi_finds_the_optimum(tmp_path_factory, gurobi, form):
    path = tmp_path_factory.getbasetemp() / "gurobi.mps.gz"
    write_mps(form, path)
    assert gurobi(path) == pytest.approx(best_by_enumeration(form), abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(small_integer_forms(quadratic=True, indicators=True))
def test_scip_finds_the_optimum(tmp_path_factory, form):
    path = tmp_path_factory.getbasetemp() / "scip.mps"
    write_mps(form, path)
    assert scip_value(path) == pytest.approx(best_by_enumeration(form), abs=1e-5)


#: Numbers that HiGHS takes as they are: not taken for infinite, nor dropped as tiny.
ordinary = st.one_of(st.integers(-5, 5).map(float), st.floats(0.01, 100), st.floats(-100, -0.01))


@settings(max_examples=60, deadline=None)
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
        assert list(lp.a_matrix_.value_) == form.A[np.flatnonzero(~free)].tocsc().data.tolist()


def test_every_punctuation_mark_in_names_is_read(tmp_path, gurobi):
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
    assert gurobi(path) == n
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
