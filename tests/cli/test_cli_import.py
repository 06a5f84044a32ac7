"""``mipforest import``: solutions of other solvers become checked trees; what does not fit is refused."""

import json
import pickle
import shutil
from dataclasses import dataclass
from typing import Any

import highspy
import pytest
from tolerance import same
from typer.testing import CliRunner

from formulations.oct import Oct
from mipforest.cli.main import app
from mipforest.files import read_mps
from mipforest.problem.parameters import TreeEnsemble, parameter
from mipforest.runs import RunError, import_solution

pytestmark = pytest.mark.usefixtures("few_penalties")


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
        ({"data_source": {"data": 3}}, "malformed"),
        ({"data_source": {"data": "iris", "positive": 3}}, "malformed"),
        ({"data_source": {"data": "iris", "seed": -1}}, "seed"),
        ({"data_source": {"data": "iris", "scaling": "odd"}}, "scaling"),
        ({"data_source": {"data": "iris", "test_size": 7.0}}, "test samples"),
        ({"data_source": {"data": "../../etc/passwd"}}, "passwd"),
        ({"data_source": {"data": "iris\0"}}, "zero byte"),
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
