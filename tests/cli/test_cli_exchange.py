"""``mipforest export``, ``check`` and ``import``."""

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
from lp_reader import READS_LP
from tolerance import same
from typer.testing import CliRunner

from formulations.oct import Oct
from mipforest import get_formulation, load
from mipforest.cli.main import app
from mipforest.files import read_mps, write_mps
from mipforest.files.solutions import point_of, read_point, write_point
from mipforest.model import Model
from mipforest.problem.parameters import TreeEnsemble, parameter
from mipforest.runs import DataSource, RunError, import_solution
from mipforest.settings import SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solving import solve_form
from mipforest.testing import assert_same_form

pytestmark = pytest.mark.usefixtures("few_penalties")

#: A source of data as metadata have it.
USUAL = DataSource(data="iris").to_dict()

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
    if READS_LP:
        checked = mipforest("check", tmp_path / name, tmp_path / "m.mst")
        assert checked.code == 0
        assert "definition" in checked.out
    assert f"Next: mipforest check {tmp_path / name}" in done.out


UNSAFE = Path(__file__).parents[2] / "instances/small/univariate-olct-iris-virginica-d2-thesis.mps.gz"


@pytest.fixture
def cancelling(tmp_path):
    """An instance that a point of ones violates by 1, which float64 does not see, and the point."""
    m = Model("cancelling")
    a, b, c = (m.continuous(name) for name in "abc")
    m.add("row", 1e16 * a + b - 1e16 * c <= 0)
    m.minimize(1e16 * a + b - 1e16 * c)
    instance, point = tmp_path / "cancelling.mps", tmp_path / "ones.sol"
    write_mps(m.matrix(), instance)
    write_point(m.matrix(), np.ones(3), point, comments=(), model=instance)
    return str(instance), str(point)


def test_rows_are_evaluated_exactly(mipforest, cancelling):
    found = mipforest("check", *cancelling)
    assert found.code == 3
    assert "max violation  1 " in found.out
    assert "objective      1\n" in found.out


def test_exactness_can_be_switched_off(mipforest, cancelling):
    found = mipforest("check", *cancelling, "--no-exact", "--json")
    assert found.code == 0
    assert json.loads(found.out)["exact"] is False


def test_large_instances_are_exact_on_request_only(mipforest, cancelling, monkeypatch):
    monkeypatch.setattr("mipforest.cli.exchange.EXACT_ENTRIES", 2)
    assert mipforest("check", *cancelling).code == 0
    assert mipforest("check", *cancelling, "--exact").code == 3


def test_a_point_whose_tree_is_worse_is_not_accepted(mipforest, tmp_path):
    form = read_mps(UNSAFE)
    found = solve_form(form, get_solver("highs"), SolveSettings(time_limit=60))
    assert found.x is not None
    point = tmp_path / "highs.sol"
    write_point(form, found.x, point, comments=(), model=UNSAFE)
    told = mipforest("check", str(UNSAFE), str(point), "--json")
    content = json.loads(told.out)
    assert content["feasible"] is True
    assert content["objective"] == pytest.approx(6.979, abs=1e-2)
    assert content["definition"] > 8
    assert (content["tree_agrees"], told.code) == (False, 3)
    words = mipforest("check", str(UNSAFE), str(point))
    assert "NOT BY THE DEFINITION" in words.out
    assert mipforest("check", str(UNSAFE), str(point), "--no-tree").code == 0


def test_a_point_whose_tree_has_its_value_is_accepted(mipforest):
    told = mipforest(
        "check", str(UNSAFE), str(UNSAFE.with_name(UNSAFE.name.replace(".mps.gz", ".mst"))), "--json"
    )
    content = json.loads(told.out)
    assert content["definition"] == pytest.approx(content["objective"])
    assert (content["tree_agrees"], told.code) == (True, 0)


def test_changed_metadata_leave_a_note_and_no_tree(mipforest, tmp_path):
    instance = tmp_path / UNSAFE.name
    instance.write_bytes(UNSAFE.read_bytes())
    start = UNSAFE.with_name(UNSAFE.name.replace(".mps.gz", ".mst"))
    (tmp_path / "univariate-olct-iris-virginica-d2-thesis.json").write_text("{}")
    told = mipforest("check", str(instance), str(start))
    assert told.code == 0
    assert "definition     not compared" in told.out


@pytest.fixture(scope="module")
def exported(people_csv, tmp_path_factory):
    """OCT of depth 1 as ``.mps`` and ``.lp``, and HiGHS' solution of each; read only."""
    folder = tmp_path_factory.mktemp("exported")
    for name in ("oct.mps", "oct-lp.lp"):
        options = ("--model", "oct", "--depth", "1", "--variant", "paper", "--data", people_csv)
        done = CliRunner().invoke(
            app, ["export", *map(str, options), "--target", "answer", "-o", str(folder / name)]
        )
        assert done.exit_code == 0, done.output
        solver = highspy.Highs()
        solver.silent()
        assert solver.readModel(str(folder / name)) == highspy.HighsStatus.kOk
        solver.run()
        solver.writeSolution(str(folder / name) + ".sol", 0)
    return folder


@pytest.fixture
def folder(exported, tmp_path):
    """A copy to change."""
    return shutil.copytree(exported, tmp_path / "instance")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["oct.mps", "oct-lp.lp"])
def test_a_solution_becomes_a_run(mipforest, exported, tmp_path, people_csv, name):
    solution, out = exported / f"{name}.sol", tmp_path / "run"
    done = mipforest("import", solution, "--instance", exported / name, "--out", out, "--json")
    assert done.code == 0
    assert (done.json["status"], done.json["solver"], done.json["verified"]) == ("imported", "HiGHS", True)
    assert done.json["bound"] is None
    solved = mipforest(
        *("solve", "--model", "oct", "--depth", 1, "--data", people_csv, "--target", "answer", "--json")
    )
    assert done.json["objective"] == pytest.approx(solved.json["objective"], abs=1e-6)
    assert same(done.json["train_accuracy"], solved.json["train_accuracy"])
    assert "read from a file" in mipforest("show", out).out
    assert mipforest("predict", out, people_csv).code == 0
    told = mipforest("import", solution, "--instance", exported / name)
    assert told.code == 0
    assert "the solution is from HiGHS" in told.out
    assert "Accuracy" in told.out


@pytest.mark.slow
def test_scip_and_gurobi(mipforest, exported, tmp_path):
    pyscipopt = pytest.importorskip("pyscipopt")
    gurobipy = pytest.importorskip("gurobipy")
    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem(str(exported / "oct.mps"))
    solver.optimize()
    solver.writeBestSol(str(tmp_path / "scip.sol"))
    with gurobipy.Env(params={"OutputFlag": 0}) as environment:
        found = gurobipy.read(str(exported / "oct-lp.lp"), environment)
        found.optimize()
        found.write(str(tmp_path / "gurobi.json"))
        found.dispose()
    for name, instance in (("scip.sol", "oct.mps"), ("gurobi.json", "oct-lp.lp")):
        done = mipforest("import", tmp_path / name, "--instance", exported / instance, "--json")
        assert (done.code, done.json["verified"]) == (0, True)
        assert done.json["warnings"] == []


def changed_solution(folder, change):
    path = folder / "changed.sol"
    path.write_text(change((folder / "oct.mps.sol").read_text()))
    return path


def imported(mipforest, folder, solution, *more):
    return mipforest("import", solution, "--instance", folder / "oct.mps", *more)


def test_an_infeasible_solution_is_named_as_such(mipforest, folder):
    lines = (folder / "oct.mst").read_text().splitlines()
    solution = folder / "all-one.sol"
    solution.write_text("".join(f"{line.split()[0]} 1\n" for line in lines if not line.startswith("#")))
    done = imported(mipforest, folder, solution, "--json")
    assert done.code == 3
    assert not done.json["verified"]
    assert "violates the model" in done.json["doubts"][0]
    assert any("infeasible; it violates" in warning for warning in done.json["warnings"])
    told = imported(mipforest, folder, solution)
    assert told.code == 3
    assert "NO: the solution violates" in told.out


def test_an_incomplete_solution_is_named_as_such(mipforest, folder):
    solution = folder / "one.sol"
    solution.write_text((folder / "oct.mst").read_text().splitlines()[-1] + "\n")
    done = imported(mipforest, folder, solution, "--json")
    assert done.code == 3
    assert any("count as 0" in warning for warning in done.json["warnings"])


def test_another_objective_in_the_file_is_reported(mipforest, folder):
    solution = changed_solution(folder, lambda text: text.replace("Objective ", "Objective 99"))
    done = imported(mipforest, folder, solution, "--json")
    assert done.code == 0
    assert "states the objective 99" in done.json["warnings"][0]
    checked = mipforest("check", folder / "oct.mps", solution)
    assert "states the objective 99" in checked.err


def test_solutions_of_other_instances_are_refused(mipforest, folder):
    solution = folder / "other.sol"
    solution.write_text("w[1,n0] 1\nq 2\n")
    done = imported(mipforest, folder, solution)
    assert done.code == 2
    assert "another instance" in done.err
    (folder / "empty.sol").write_text("Model status\nInfeasible\n\n# Primal solution values\nNone\n")
    done = imported(mipforest, folder, folder / "empty.sol")
    assert done.code == 2
    assert "no solution in it, only its status 'Infeasible'" in done.err


def edit_metadata(folder, **changes):
    path = folder / "oct.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_changed_instance_is_refused(mipforest, folder):
    with (folder / "oct.mps").open("a") as file:
        file.write("* a comment\n")
    done = imported(mipforest, folder, folder / "oct.mps.sol")
    assert done.code == 2
    assert "other checksum" in done.err


def test_changed_data_are_refused_and_moved_ones_are_found(mipforest, folder, people_csv, people):
    solution = folder / "oct.mps.sol"
    moved, other = folder / "moved.csv", folder / "other.csv"
    shutil.copy(people_csv, moved)
    people.assign(age=people["age"] + 1).to_csv(other, index=False)
    metadata = json.loads((folder / "oct.json").read_text())
    edit_metadata(folder, data_source=metadata["data_source"] | {"data": str(folder / "gone.csv")})
    assert imported(mipforest, folder, solution).code == 2
    done = imported(mipforest, folder, solution, "--data", other)
    assert done.code == 2
    assert "--data" in done.err
    done = imported(mipforest, folder, solution, "--data", moved, "--json")
    assert (done.code, done.json["verified"]) == (0, True)


def test_a_model_that_is_built_otherwise_is_reported(mipforest, folder):
    edit_metadata(folder, model_sha256="0" * 64)
    done = imported(mipforest, folder, folder / "oct.mps.sol", "--json")
    assert done.code == 0
    assert "not exactly that of oct.mps" in done.json["warnings"][0]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"format": "other"}, "no metadata of an instance"),
        ({"version": 99}, "version"),
        ({"depth": "1"}, "'depth'"),
        ({"depth": True}, "'depth'"),
        ({"depth": 99}, "depth must be 1 to 10"),
        ({"model": "none"}, "no model named"),
        ({"variant": "none"}, "variant"),
        ({"parameters": {"none": 1}}, "no parameter 'none'"),
        ({"parameters": {"alpha": -1}}, "alpha"),
        ({"parameters": {"alpha": {"a": 1}}}, "alpha"),
        ({"data": {}}, "checksum of the data"),
        ({"data_source": {"data": "iris"}}, "the entry 'target' is absent"),
        ({"model_sha256": None}, "'model_sha256'"),
        ({"data_source": USUAL | {"data": 3}}, "malformed"),
        ({"data_source": USUAL | {"data": "iris", "positive": 3}}, "malformed"),
        ({"data_source": USUAL | {"data": "iris", "seed": -1}}, "seed"),
        ({"data_source": USUAL | {"data": "iris", "scaling": "odd"}}, "scaling"),
        ({"data_source": USUAL | {"data": "iris", "test_size": 7.0}}, "test samples"),
        ({"data_source": USUAL | {"data": "../../etc/passwd"}}, "passwd"),
        ({"data_source": USUAL | {"data": "iris\0"}}, "zero byte"),
        ({"instance": "other.mps"}, "describes other.mps"),
    ],
)
def test_damaged_metadata_are_refused(mipforest, folder, changes, word):
    edit_metadata(folder, **changes)
    done = imported(mipforest, folder, folder / "oct.mps.sol")
    assert done.code == 2
    assert word in done.err


def test_absent_metadata_are_named(mipforest, folder):
    (folder / "oct.json").unlink()
    done = imported(mipforest, folder, folder / "oct.mps.sol")
    assert done.code == 2
    assert "oct.json" in done.err


def test_an_earlier_run_is_kept(mipforest, folder, finished_run):
    done = imported(mipforest, folder, folder / "oct.mps.sol", "--out", finished_run)
    assert done.code == 2
    assert "--force" in done.err


@dataclass(frozen=True, kw_only=True)
class OctOfEnsemble(Oct):
    """OCT with a field that may name a file which runs code."""

    name = "oct"
    ensemble: Any = parameter("random-forest:trees=3", "what to mimic", kind=TreeEnsemble())


class Trap:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_no_file_is_loaded_because_metadata_name_it(folder, monkeypatch):
    for module in ("runs.instance", "problem.registry"):
        monkeypatch.setattr(f"mipforest.{module}.get_formulation", lambda name: OctOfEnsemble)
    solution, instance = folder / "oct.mps.sol", folder / "oct.mps"
    trap, trace = folder / "trap.joblib", folder / "trace"
    trap.write_bytes(pickle.dumps(Trap(trace)))
    for named in (str(trap), "trap.joblib", None, "random-forest:trees=3 ", "a/b"):
        edit_metadata(folder, ensemble=named)
        with pytest.raises(RunError, match="--ensemble"):
            import_solution(solution, instance)
    edit_metadata(folder, ensemble="random-forest:trees=3")
    assert import_solution(solution, instance).result.verified
    edit_metadata(folder, ensemble=str(trap))
    assert import_solution(solution, instance, ensemble="extra-trees").result.verified
    assert not trace.exists()


def test_a_model_without_an_ensemble_takes_none(mipforest, folder):
    done = imported(mipforest, folder, folder / "oct.mps.sol", "--ensemble", "random-forest")
    assert done.code == 2
    assert "mimics no ensemble" in done.err


def test_a_quadratic_model_reaches_linear_solvers_as_a_file(mipforest, tmp_path):
    """The tangents' model is solved by HiGHS from its file; the tree is that of the model itself."""
    instance = tmp_path / "margot.mps"
    chosen = ("--model", "margot", "--depth", "1", "--data", "synthetic:4-partitions")
    assert mipforest("export", *chosen, "--bridge", "quadratic", "-o", instance).code == 0
    form = read_mps(instance)
    assert form.Q is None
    assert mipforest("check", instance, tmp_path / "margot.mst").code == 0
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(instance))
    highs.run()
    highs.writeSolution(str(tmp_path / "margot.sol"), 0)
    found = mipforest("import", tmp_path / "margot.sol", "--instance", instance, "--json").json
    solved = mipforest("solve", *chosen, "--json").json
    assert found["verified"]
    assert highs.getObjectiveValue() <= solved["objective"] * (1 + 1e-6)
    assert found["objective"] == pytest.approx(solved["objective"], rel=1e-4)
    refused = mipforest("export", "--model", "oct", "--depth", "1", "--data", "iris", "--bridge", "quadratic",
                        "-o", tmp_path / "oct.mps")  # fmt: skip
    assert refused.code == 2
    assert "no convex quadratic objective" in refused.err
