"""``mipforest export`` and ``check``."""

import hashlib
import json
import subprocess
import sys

import highspy
import numpy as np
import pytest
from tolerance import same

from mipforest import get_formulation, load
from mipforest.files import read_mps
from mipforest.files.solutions import point_of, read_point
from mipforest.testing import assert_same_form

pytestmark = pytest.mark.usefixtures("few_penalties")

EXPORT = (
    "export",
    "--model",
    "margot",
    "--depth",
    "2",
    "--data",
    "synthetic:4-partitions",
    "--param",
    "C=10",
)


@pytest.mark.parametrize("name", ["margot.mps", pytest.param("margot.mps.gz", marks=pytest.mark.slow)])
def test_export_writes_the_model_a_start_and_metadata(mipforest, tmp_path, name):
    done = mipforest(*EXPORT, "-o", tmp_path / name)
    assert done.code == 0
    assert {entry.name for entry in tmp_path.iterdir()} == {name, "margot.mst", "margot.json"}
    data = load("synthetic:4-partitions")
    problem = get_formulation("margot")(C=10).build(data, 2)
    assert_same_form(read_mps(tmp_path / name), problem.model.matrix(), names=False)
    metadata = json.loads((tmp_path / "margot.json").read_text())
    assert metadata["sha256"] == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert metadata["data"] == {"name": data.name, "n": 108, "p": 2, "sha256": data.sha256}
    assert metadata["parameters"] == {"C": 10.0, "epsilon": 0.001}
    assert f"{name}: {problem.model.stats()}" in done.out
    assert metadata["statistics"]["columns"] == problem.model.n_columns
    values, _ = problem.start_values(problem.start_tree())
    point = point_of(problem.model.matrix(), read_point(tmp_path / "margot.mst"), "margot.mst")
    np.testing.assert_array_equal(point.x, problem.model.matrix().to_point(values))
    assert same(metadata["start_objective"], problem.model.matrix().objective(point.x))


def test_the_exported_start_is_feasible(mipforest, tmp_path):
    """Of a compressed file: so it stands for the slow case above."""
    told = mipforest(*EXPORT, "-o", tmp_path / "m.mps.gz", "--json").json
    done = mipforest("check", tmp_path / "m.mps.gz", tmp_path / "m.mst", "--json")
    assert done.code == 0
    assert done.json["feasible"]
    assert same(done.json["objective"], told["start_objective"])
    assert done.json["columns_not_given"] == 0
    assert "feasible" in mipforest("check", tmp_path / "m.mps.gz", tmp_path / "m.mst").out


def test_export_without_a_start(mipforest, tmp_path):
    assert mipforest(*EXPORT, "--start", "none", "-o", tmp_path / "m.mps").code == 0
    assert {entry.name for entry in tmp_path.iterdir()} == {"m.mps", "m.json"}
    assert json.loads((tmp_path / "m.json").read_text())["start"] is None


@pytest.fixture
def knapsack(tmp_path):
    """Maximise 3a + 2b, a + b <= 1.5, binary: optimum 3."""
    path = tmp_path / "knapsack.mps"
    path.write_text(
        "NAME knapsack\nOBJSENSE\n    MAX\nROWS\n N OBJ\n L weight\nCOLUMNS\n MARKER 'MARKER' 'INTORG'\n"
        " a OBJ 3\n a weight 1\n b OBJ 2\n b weight 1\n MARKER 'MARKER' 'INTEND'\nRHS\n RHS weight 1.5\n"
        "BOUNDS\n BV BND a\n BV BND b\nENDATA\n"
    )
    return path


def check(mipforest, knapsack, text):
    solution = knapsack.with_suffix(".sol")
    solution.write_text(text)
    return mipforest("check", knapsack, solution, "--json"), mipforest("check", knapsack, solution)


def test_check_a_feasible_point(mipforest, knapsack):
    as_json, told = check(mipforest, knapsack, "# Objective value = 3\na 1\nb 0\n")
    assert (as_json.code, as_json.json["objective"], as_json.json["max_violation"]) == (0, 3.0, 0.0)
    assert "to be maximised" in told.out


@pytest.mark.parametrize(
    ("text", "violation", "what"),
    [
        ("a 1\nb 1\n", 0.5, "row weight"),
        ("a 0.25\n", 0.25, "integrality of a"),
        ("a -2\n", 2.0, "bound of a"),
    ],
)
def test_check_an_infeasible_point(mipforest, knapsack, text, violation, what):
    as_json, told = check(mipforest, knapsack, text)
    assert as_json.code == told.code == 3
    assert as_json.json["max_violation"] == pytest.approx(violation)
    assert as_json.json["worst"][0] == {"what": what, "violation": pytest.approx(violation)}
    assert "INFEASIBLE" in told.out
    assert what in told.out


def test_columns_that_are_not_given_are_zero(mipforest, knapsack):
    as_json, told = check(mipforest, knapsack, "a 1\n")
    assert (as_json.code, as_json.json["objective"], as_json.json["columns_not_given"]) == (0, 3.0, 1)
    assert "count as 0: b" in told.err


@pytest.mark.parametrize(
    ("text", "word"), [("c 1\n", "'c'"), ("a\n", ":1:"), ("a 1\na 0\n", ":2:"), ("a x\n", "'x'")]
)
def test_a_solution_that_does_not_fit_is_refused(mipforest, knapsack, text, word):
    as_json, told = check(mipforest, knapsack, text)
    assert as_json.code == told.code == 2
    assert word in told.err
    assert "knapsack.sol" in told.err


def test_check_agrees_with_highs(mipforest, tmp_path):
    """Solve an exported instance with HiGHS alone, write its solution file, and check it."""
    mipforest(*EXPORT, "--variant", "paper", "-o", tmp_path / "m.mps")
    text = (tmp_path / "m.mps").read_text()
    (tmp_path / "linear.mps").write_text(text[: text.index("QUADOBJ")] + "ENDATA\n")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(tmp_path / "linear.mps"))
    highs.setOptionValue("time_limit", 1.0)
    highs.run()
    highs.writeSolution(str(tmp_path / "highs.sol"), 0)
    done = mipforest("check", tmp_path / "linear.mps", tmp_path / "highs.sol", "--json", "--tolerance", 1e-5)
    assert done.code == 0
    assert done.json["objective"] == pytest.approx(highs.getInfo().objective_function_value, abs=1e-6)


def test_check_needs_no_solver(mipforest, tmp_path):
    """With the packages of all solvers out of reach."""
    mipforest(*EXPORT, "-o", tmp_path / "m.mps.gz")
    program = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('highspy', 'gurobipy', 'pyscipopt', 'clarabel'):\n"
        "            raise ImportError(f'{name} is out of reach')\n"
        "sys.meta_path.insert(0, Without())\n"
        "from mipforest.cli.main import run\n"
        "sys.argv = ['mipforest', 'check', 'm.mps.gz', 'm.mst']\n"
        "run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "feasible" in done.stdout


@pytest.mark.parametrize(
    "name", ["m.lp", pytest.param("m.lp.gz", marks=pytest.mark.slow)]
)  # zipped as MPS is
def test_export_as_lp(mipforest, tmp_path, name):
    done = mipforest(*EXPORT, "-o", tmp_path / name)
    assert done.code == 0
    assert {entry.name for entry in tmp_path.iterdir()} == {name, "m.mst", "m.json"}
    assert "(" in (tmp_path / "m.mst").read_text()
    assert mipforest("import", tmp_path / "m.mst", "--instance", tmp_path / name).code == 0
    refused = mipforest("check", tmp_path / name, tmp_path / "m.mst")
    assert refused.code == 2
    assert ".mps" in refused.err
