import os
import subprocess
import sys

import pytest

from mipforest.solvers import registry
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Solution, Status


def test_every_installed_solver_passes_its_self_test(mipforest):
    result = mipforest("doctor", "--json")
    assert result.code == 0
    states = {entry["solver"]: entry["state"] for entry in result.json["solvers"]}
    assert states["highs"] == states["clarabel"] == "works"
    assert "fails" not in states.values(), result.json
    assert result.json["versions"]["numpy"]


def test_a_solver_that_gives_wrong_answers_is_found_out(mipforest, monkeypatch):
    class Wrong(Highs):
        def solve(self, form, *args, **kwargs):
            x = form.col_lower.copy()
            return Solution(Status.OPTIMAL, x, form.to_values(x), 0.0, 0.0, 0, 0.0, "highs", "1")

    monkeypatch.setattr(registry, "solver_classes", lambda: {"highs": Wrong})
    result = mipforest("doctor")
    assert result.code == 4
    assert "highs   fails" in result.out
    assert "pip install --force-reinstall highspy" in result.out


def test_a_broken_installation_is_told_and_not_a_traceback(mipforest, monkeypatch):
    class Broken(Highs):
        def version(self):
            raise ImportError("libhighs.so: cannot open shared object file")

    monkeypatch.setattr(registry, "solver_classes", lambda: {"highs": Broken})
    result = mipforest("doctor")
    assert result.code == 4
    assert "ImportError: libhighs.so" in result.out
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("words", "offered"),
    [("mipforest solve --model oct", {"oct", "oct-h"}), ("mipforest solve --solver hi", {"highs"})],
)
def test_the_shell_completes_names(words, offered, tmp_path):
    environment = os.environ | {
        "_MIPFOREST_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    command = [sys.executable, "-c", "from mipforest.cli.main import run; run()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert set(done.stdout.split()) == offered, done.stderr
