"""Files in the working directory never run: each command that starts another, with modules and programs planted."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

#: What is planted, besides the whole standard library.
OF_OTHERS = (
    "clarabel", "cyipopt", "distributed", "formulations", "gurobipy", "highspy", "joblib", "llvmlite", "matplotlib",
    "mipforest", "numba", "numpy", "onnx", "pandas", "pyarrow", "pycontree", "pyomo", "pyscipopt", "rich", "scipy",
    "sitecustomize", "sklearn", "threadpoolctl", "typer", "usercustomize", "xgboost",
)  # fmt: skip

SUITE = """
name = "one"
summary = "one solve"
time_limits = [10.0]
solvers = ["exact-search", "scip"]
[data.d]
load = "d.csv"
target = "y"
[models.oct]
model = "oct"
depth = 1
"""

MODEL = "NAME m\nROWS\n N obj\n G c\nCOLUMNS\n x obj 1 c 1\n y obj 1 c 2\nRHS\n RHS c 3\nENDATA\n"

OCT = ("--model", "oct", "--depth", "1", "--data", "d.csv", "--target", "y", "--param", "N_min=1")
MARGOT = ("--model", "margot", "--depth", "1", "--data", "d.csv", "--target", "y")

#: Commands that start a Python; with what they need.
COMMANDS = {
    "scip": ("solve", *OCT, "--solver", "scip", "--isolate", "--time-limit", "20"),
    "scip-quadratic": ("solve", *MARGOT, "--solver", "scip", "--time-limit", "2"),
    "highs": ("solve", *OCT, "--solver", "highs", "--isolate", "--time-limit", "20"),
    "contree": ("solve", *OCT, "--solver", "contree", "--time-limit", "20"),
    "file": ("solve-model", "m.mps", "--isolate"),
    "tune": (
        "tune", *OCT, "--grid", "alpha=0,0.1", "--folds", "2", "--jobs", "2", "--solver", "exact-search",
        "--time-limit", "20",
    ),
    "campaign": ("campaign", "suite.toml", "--results", "results.sqlite", "--data", ".", "--jobs", "2"),
}  # fmt: skip

NEEDS = {"scip": "pyscipopt", "scip-quadratic": "pyscipopt", "contree": "pycontree"}

#: Programs that Pyomo looks for.
PROGRAMS = ("cbc", "cplex", "glpsol", "gurobi_cl", "highs", "ipopt", "scip", "xpress")

#: Starts processes from Python, as a notebook does whose own folder is another one.
ESTIMATOR = """
import pandas as pd
from mipforest import OptimalTreeClassifierCV
if __name__ == "__main__":
    table = pd.read_csv("d.csv")
    OptimalTreeClassifierCV(depth=1, cv=2, n_jobs=2, time_limit=20).fit(table[["a", "b"]], table["y"])
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with data, and with a module of every name."""
    folder = tmp_path / "place"
    folder.mkdir()
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((24, 2)), columns=["a", "b"])
    table.assign(y=np.where(table["a"] > 0.5, "p", "q")).to_csv(folder / "d.csv", index=False)
    (folder / "suite.toml").write_text(SUITE)
    (folder / "m.mps").write_text(MODEL)
    marker = tmp_path / "ran"
    for name in (*OF_OTHERS, *sys.stdlib_module_names):
        words = f"with open({str(marker)!r}, 'a') as file:\n    file.write({name!r} + '\\n')\n"
        (folder / f"{name}.py").write_text(words)
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\necho program:{name} >> {shlex.quote(str(marker))}\n")
        (folder / name).chmod(0o755)
    return folder


def run(place: Path, program: str, *arguments: str) -> tuple[int, str, Sequence[str]]:
    """Run a program whose own folder is another one, as that of the installed command is."""
    script = place.parent / "bin" / "program.py"
    script.parent.mkdir()
    script.write_text(program)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, map(os.path.abspath, filter(None, sys.path))))
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=place, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    marker = place.parent / "ran"
    ran = marker.read_text().split() if marker.exists() else []
    return done.returncode, done.stdout + done.stderr, ran


#: One for each way to start a process; the others take the same ways.
QUICK = ("file", "contree", "tune")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in (*COMMANDS, "doctor")],
)
def test_no_command_runs_files_of_the_working_directory(place: Path, command: str) -> None:
    if command in NEEDS:
        pytest.importorskip(NEEDS[command])
    program = "from mipforest.cli.main import run\nif __name__ == '__main__':\n    run()\n"
    code, said, ran = run(place, program, *COMMANDS.get(command, (command,)))
    assert ran == [], said
    assert code == 0, said
    assert "process of" not in said  # nothing died on the way


@pytest.mark.slow
@pytest.mark.parametrize(
    "interface",
    ["glpk", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cbc", "appsi_cbc", "ipopt"))],
)
def test_pyomo_runs_no_program_of_the_working_directory(place: Path, interface: str) -> None:
    pytest.importorskip("pyomo")
    program = "from mipforest.cli.main import run\nif __name__ == '__main__':\n    run()\n"
    _, said, ran = run(place, program, "solve-model", "m.mps", "--solver", f"pyomo:{interface}")
    assert ran == [], said
    assert "Traceback" not in said


@pytest.mark.slow
def test_no_estimator_runs_files_of_the_working_directory(place: Path) -> None:
    code, said, ran = run(place, ESTIMATOR)
    assert ran == [], said
    assert code == 0, said
