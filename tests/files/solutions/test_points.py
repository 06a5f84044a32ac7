"""Points as text: exact round trips, files of solvers, and files that must be refused."""

import gzip

import highspy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mipforest.files import write_mps
from mipforest.files.solutions import PointError, point_of, read_point, read_solution, write_point
from mipforest.model import Block, IndicatorRows, MatrixForm


def model_of(names: list[str]) -> MatrixForm:
    """Maximise x1 + 2 x2 + ..., sum of x at most 1.5, binary."""
    n = len(names)
    return MatrixForm(
        c=np.arange(1.0, n + 1),
        A=sparse.csr_array(np.ones((1, n))),
        row_lower=np.array([-np.inf]),
        row_upper=np.array([1.5]),
        col_lower=np.zeros(n),
        col_upper=np.ones(n),
        integer=np.ones(n, dtype=bool),
        indicators=IndicatorRows.none(n),
        columns=(Block("columns", 0, (n,), flat_names=tuple(names)),),
        rows=(Block("weight", 0, ()),),
        maximize=True,
        name="small",
    )


@given(
    st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=6, unique=True),
    st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=6, max_size=6),
)
def test_what_is_written_reads_back_to_the_last_bit(tmp_path_factory, names, numbers):
    path = tmp_path_factory.getbasetemp() / "point.sol"
    form = model_of(names)
    x = np.array(numbers[: len(names)])
    write_point(form, x, path, comments=("a point",))
    values = read_point(path)
    assert len(values) == np.count_nonzero(~np.isnan(x))
    point = point_of(form, values, path)
    np.testing.assert_array_equal(point.x, np.nan_to_num(x, nan=0.0))
    assert len(point.absent) == np.count_nonzero(np.isnan(x))


def test_infinite_values_and_wrong_lengths_are_not_written(tmp_path):
    form = model_of(["a", "b"])
    for x, word in ((np.array([0.0, np.inf]), "value of b is infinite"), (np.zeros(3), "shape")):
        with pytest.raises(ValueError, match=word):
            write_point(form, x, tmp_path / "x.sol")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def instance(tmp_path):
    form = model_of(["z[1,n0]", "z[2,n0]", "a,b"])
    write_mps(form, tmp_path / "small.mps")
    return form, tmp_path


def expect_optimum(form, path):
    np.testing.assert_allclose(point_of(form, read_point(path), path).x, [0, 0, 1], atol=1e-9)


def test_the_solution_file_of_highs_is_read(instance):
    form, folder = instance
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(folder / "small.mps"))
    highs.writeSolution(str(folder / "none.sol"), 0)
    with pytest.raises(PointError, match="no solution"):
        read_point(folder / "none.sol")
    highs.run()
    highs.writeSolution(str(folder / "small.sol"), 0)
    expect_optimum(form, folder / "small.sol")


def test_the_solution_file_of_scip_is_read(instance):
    pyscipopt = pytest.importorskip("pyscipopt")
    form, folder = instance
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(str(folder / "small.mps"))
    scip.optimize()
    scip.writeBestSol(str(folder / "small.sol"))
    expect_optimum(form, folder / "small.sol")


def test_gurobi_reads_what_we_write_and_we_what_it_writes(instance):
    gurobipy = pytest.importorskip("gurobipy")
    form, folder = instance
    with gurobipy.Env(params={"OutputFlag": 0}) as environment:
        model = gurobipy.read(str(folder / "small.mps"), environment)
        write_point(form, np.array([1.0, 0.0, np.nan]), folder / "start.mst", comments=("a start",))
        model.read(str(folder / "start.mst"))
        model.update()
        assert [v.Start for v in model.getVars()[:2]] == [1.0, 0.0]
        assert model.getVars()[2].Start == gurobipy.GRB.UNDEFINED
        model.optimize()
        model.write(str(folder / "small.sol"))
        model.dispose()
    expect_optimum(form, folder / "small.sol")


def test_solutions_as_miplib_writes_them_are_read(tmp_path):
    path = tmp_path / "a.sol"
    path.write_text("=obj= 12.5\nx 1\ny[2] 0.5\n")
    found = read_solution(path)
    # exact: as written
    assert (found.objective, found.values, found.writer) == (12.5, {"x": 1.0, "y[2]": 0.5}, "MIPLIB")
    path.write_text("=infeas=\n")
    with pytest.raises(PointError, match="no solution"):
        read_solution(path)


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "x.sol.gz").write_bytes(gzip.compress(b"a 1\n"))
    assert read_point(tmp_path / "x.sol.gz") == {"a": 1.0}


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a 1\nb\n", 2, "name value"),
        ("a 1 2\n", 1, "name value"),
        ("# head\n\na one\n", 3, "no number"),
        ("a nan\n", 1, "finite"),
        ("a 1e999\n", 1, "finite"),
        ("a 1\na 1\n", 2, "second time"),
    ],
)
def test_malformed_files_are_refused_with_their_line(tmp_path, text, line, word):
    path = tmp_path / "x.sol"
    path.write_text(text)
    with pytest.raises(PointError, match=word) as caught:
        read_point(path)
    assert (caught.value.path, caught.value.line) == (path, line)  # exact: as written
    assert str(caught.value).startswith(f"{path}:{line}: ")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    for name in ("any.sol", "any.sol.gz"):
        path = tmp_path_factory.getbasetemp() / name
        path.write_bytes(content)
        try:
            values = read_point(path)
        except PointError:
            continue
        assert all(np.isfinite(value) for value in values.values())


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path):
    form = model_of(["z[1,n0]", "z[2,n0]"])
    with pytest.raises(PointError, match=r"1 of its 2 names .*'z\[2,n1\]'.*did you mean 'z\[2,n0\]'"):
        point_of(form, {"z[1,n0]": 1.0, "z[2,n1]": 0.0}, tmp_path / "x.sol")
