"""Solution files as solvers write them: read whole, also where zeros are left out, and refused where empty."""

import gzip
import json
import shutil
import string
import subprocess
from dataclasses import replace

import highspy
import numpy as np
import pytest
from scipy import sparse

from mipforest.files import write_lp, write_mps
from mipforest.files.solutions import PointError, point_in, read_solution
from mipforest.model import Block, IndicatorRows, MatrixForm

MARKS = [f"a{mark}b" for mark in string.punctuation]


def model(*, integer: bool, names: list[str] | None = None) -> MatrixForm:
    """Minimise the sum of x_j + 10 with j/4 <= x_j for every third j; the others are 0 at the optimum."""
    names = names or ["z[1,n0]", "z[2,n0]", "a,b", "RHS", "Constant", "free", *MARKS, "x" * 300]
    n = len(names)
    return MatrixForm(
        c=np.ones(n),
        A=sparse.csr_array(np.eye(n)),
        row_lower=np.where(np.arange(n) % 3 == 2, np.arange(n) / 4, 0.0),
        row_upper=np.full(n, np.inf),
        col_lower=np.zeros(n),
        col_upper=np.full(n, 100.0),
        integer=np.full(n, integer),
        indicators=IndicatorRows.none(n),
        columns=(Block("columns", 0, (n,), flat_names=tuple(names)),),
        rows=(Block("r", 0, (n,)),),
        offset=10.0,
        name="small",
    )


def optimum(form):
    return np.ceil(form.row_lower) if form.integer.all() else form.row_lower


def infeasible(form):
    return replace(form, row_lower=form.row_lower + 1000.0)


@pytest.fixture(params=[(".mps", True), (".mps", False), (".lp", True), (".lp", False)], ids=str)
def instance(request, tmp_path):
    suffix, integer = request.param
    form = model(integer=integer)
    write = {".mps": write_mps, ".lp": write_lp}[suffix]
    write(form, tmp_path / f"small{suffix}")
    write(infeasible(form), tmp_path / f"none{suffix}")
    return form, tmp_path / f"small{suffix}", tmp_path / f"none{suffix}"


def expect_optimum(form, path, *, objective=True, writer):
    solution = read_solution(path)
    x = optimum(form)
    np.testing.assert_allclose(point_in(form, solution).x, x, atol=1e-9)
    assert solution.writer == writer
    if objective:
        assert solution.objective == pytest.approx(form.objective(x))
        assert solution.agrees_with(form.objective(x))
        assert not solution.agrees_with(form.objective(x) + 1)
    return solution


def expect_nothing(path, word="no solution"):
    with pytest.raises(PointError, match=word):
        read_solution(path)


def solved_by_highs(path):
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    return solver


@pytest.mark.parametrize("style", [0, 1, 2, 4])
def test_highs(instance, tmp_path, style):
    form, path, none = instance
    solver = solved_by_highs(path)
    solver.writeSolution(str(tmp_path / "highs.sol"), style)
    solution = expect_optimum(form, tmp_path / "highs.sol", writer="GLPK" if style == 2 else "HiGHS")
    assert solution.sparse == (style == 4)
    assert "optimal" in solution.status.lower()
    solver = solved_by_highs(none)
    solver.writeSolution(str(tmp_path / "none.sol"), style)
    expect_nothing(tmp_path / "none.sol")


def test_the_printed_reports_are_refused_with_advice(instance, tmp_path):
    solver = solved_by_highs(instance[1])
    solver.writeSolution(str(tmp_path / "report.sol"), 3)
    expect_nothing(tmp_path / "report.sol", "instead of -o")


@pytest.mark.parametrize("suffix", ["sol", "mst", "json", "sol.gz"])
def test_gurobi(instance, tmp_path, suffix):
    gurobipy = pytest.importorskip("gurobipy")
    form, path, _ = instance
    if suffix == "mst" and not form.integer.any():
        pytest.skip("Gurobi's starts are of integer models")
    with gurobipy.Env(params={"OutputFlag": 0}) as environment:
        found = gurobipy.read(str(path), environment)
        found.optimize()
        found.write(str(tmp_path / f"gurobi.{suffix}"))
        found.dispose()
    stated = suffix != "mst"
    solution = expect_optimum(
        form, tmp_path / f"gurobi.{suffix}", objective=stated, writer="Gurobi" if stated else ""
    )
    assert solution.sparse == (suffix == "json")


def test_gurobis_json_without_a_solution(tmp_path):
    path = tmp_path / "none.json"
    path.write_text(json.dumps({"SolutionInfo": {"Status": 3}, "Vars": []}))
    expect_nothing(path)
    path.write_text("{}")
    expect_nothing(path, "JSONSolDetail")


@pytest.mark.parametrize("zeros", [False, True])
def test_scip(instance, tmp_path, zeros):
    pyscipopt = pytest.importorskip("pyscipopt")
    form, path, none = instance
    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem(str(path))
    solver.optimize()
    solver.writeBestSol(str(tmp_path / "scip.sol"), write_zeros=zeros)
    solution = expect_optimum(form, tmp_path / "scip.sol", writer="SCIP")
    assert (len(solution.values) >= form.n_columns) == zeros
    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem(str(none))
    solver.optimize()
    solver.writeBestSol(str(tmp_path / "none.sol"))
    expect_nothing(tmp_path / "none.sol")


def run(program, *arguments):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    subprocess.run([program, *map(str, arguments)], capture_output=True, timeout=60, check=False)


def test_cbc(instance, tmp_path):
    form, path, none = instance
    run("cbc", path, "solve", "solution", tmp_path / "cbc.sol")
    solution = expect_optimum(form, tmp_path / "cbc.sol", writer="Cbc")
    assert solution.status == "Optimal"
    run("cbc", none, "solve", "solution", tmp_path / "none.sol")
    assert read_solution(tmp_path / "none.sol").status.endswith("nfeasible")


def test_glpk(instance, tmp_path):
    form, path, none = instance
    syntax = "--lp" if path.suffix == ".lp" else "--freemps"
    run("glpsol", syntax, path, "-w", tmp_path / "glpk.sol")
    # GLPK takes the constant of an MPS file with the opposite sign.
    expect_optimum(form, tmp_path / "glpk.sol", objective=syntax == "--lp", writer="GLPK")
    run("glpsol", syntax, none, "-w", tmp_path / "none.sol")
    expect_nothing(tmp_path / "none.sol")


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("objective value: 3\na 1\n", 2, "obj:cost"),
        ("objective value: 3\na +inf (obj:1)\n", 2, "finite"),
        ("Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n# Columns 2\na 1\n", 0, "cut off"),
        ("Model status\nOptimal\n# Columns many\n", 0, "how many"),
        ("Model status\nOptimal\n# Columns 1\na 1 2\n", 4, "2 fields"),
        ("Columns\nnothing\n", 2, "header"),
        ("Columns\n Index Lower Primal Name\n 0 1\n", 3, "table"),
        ("Optimal - objective value 3\n0 a 1\n", 2, "index name value cost"),
        ("s mip 1 2 o 3\nj 1 1\ne o f\n", 0, "announces 2"),
        ("s mip 1 1 o 3\nj 1\n", 2, "GLPK"),
        ("s mip 1 1 o 3\nq 1\n", 2, "GLPK"),
        ("<?xml version='1.0'?>\n", 1, "XML"),
        ('{"SolutionInfo": {', 1, "ends in .json"),
        ("[" * 3 + "\n", 1, "name value"),
        ("a 1_0\n", 1, "finite"),
        ("a 1\n" + "b" * 100_000 + " 1\n", 2, "longer"),
    ],
)  # fmt: skip
def test_malformed_files_are_refused_with_their_line(tmp_path, text, line, word):
    path = tmp_path / "x.sol"
    path.write_text(text)
    with pytest.raises(PointError, match=word) as caught:
        read_solution(path)
    assert caught.value.line == line


def test_columns_by_number_must_be_those_of_the_model(tmp_path):
    (tmp_path / "x.sol").write_text("s mip 1 2 o 3\nj 1 1\nj 2 0\ne o f\n")
    solution = read_solution(tmp_path / "x.sol")
    with pytest.raises(PointError, match="another instance"):
        point_in(model(integer=True), solution)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "not JSON"),
        ('{"a":' + "[" * 100_000, "nested"),
        ("[1]", "no solution in Gurobi's JSON"),
        ('{"SolutionInfo": {"Status": 2, "ObjVal": 1}, "Vars": [{"VarName": "a", "X": "inf"}]}', "finite"),
        ('{"SolutionInfo": {"Status": 2, "ObjVal": 1}, "Vars": [{"VarName": "a"}]}', "KeyError"),
        ('{"SolutionInfo": {"Status": ' + "9" * 9999 + "}}", "digits"),
    ],
)
def test_malformed_json_is_refused(tmp_path, text, word):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(PointError, match=word):
        read_solution(path)


@pytest.mark.parametrize("line", [b"\n", b"# nothing\n", b"0" * 60_000 + b" "])
def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, line):
    """Twenty megabytes from twenty kilobytes: refused after four."""
    path = tmp_path / "x.sol.gz"
    path.write_bytes(gzip.compress(line * (20_000_000 // len(line))))
    with pytest.raises(PointError, match=r"times their size|longer"):
        read_solution(path)
