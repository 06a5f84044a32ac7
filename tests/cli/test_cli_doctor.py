import os
import subprocess
import sys

import pytest

from mipforest.cli import doctor
from mipforest.problem import tree_search
from mipforest.problem.registry import models_of
from mipforest.searches import kernel_cache
from mipforest.searches.univariate.plugin import ExactSearch
from mipforest.solvers import base
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Solution, Status


@pytest.fixture
def no_searches(monkeypatch):
    """Leave out what takes seconds and is tested on its own."""
    monkeypatch.setattr(tree_search, "search_classes", dict)


def test_a_search_that_fails_is_found_out(mipforest, monkeypatch):
    class Broken(ExactSearch):
        def search(self, problem, settings, **_):
            raise ImportError("numba needs NumPy 2.4 or less")

    monkeypatch.setattr(base, "solver_classes", lambda: {"highs": Highs})
    monkeypatch.setattr(tree_search, "search_classes", lambda: {"exact-search": Broken})
    result = mipforest("doctor")
    assert result.code == 4
    assert "ImportError: numba needs NumPy 2.4 or less" in " ".join(result.out.split())
    assert "--solver highs" in result.out


def test_machine_code_that_cannot_be_kept_is_told(mipforest, monkeypatch):
    monkeypatch.setattr(base, "solver_classes", lambda: {"highs": Highs})
    monkeypatch.setattr(tree_search, "search_classes", lambda: {"exact-search": ExactSearch})
    monkeypatch.setattr(doctor, "_search_test", lambda *_: ("", 5.0))
    monkeypatch.setattr(kernel_cache.kernel_folder(), "obstacle", "")
    seconds = 5 * len(models_of(ExactSearch))
    assert f"compiled in {seconds} s, once on this machine" in " ".join(mipforest("doctor").out.split())
    monkeypatch.setattr(kernel_cache.kernel_folder(), "obstacle", "/nowhere: Read-only file system")
    told = " ".join(mipforest("doctor").out.split())
    assert f"compiled in {seconds} s, as each run has to" in told
    assert "/nowhere: Read-only" in told


@pytest.mark.slow
def test_every_installed_solver_and_search_passes_its_self_test(mipforest, monkeypatch):
    monkeypatch.setattr(doctor, "SEARCH_TEST_SECONDS", 0.2)
    result = mipforest("doctor", "--json")
    assert result.code == 0, result.json
    searches = {entry["solver"]: entry["state"] for entry in result.json["searches"]}
    assert {"exact-search", "local-search", "routing"} <= searches.keys()
    assert set(searches.values()) <= {"works", "not installed"}
    states = {entry["solver"]: entry["state"] for entry in result.json["solvers"]}
    assert states["highs"] == states["clarabel"] == "works"
    assert "fails" not in states.values(), result.json
    assert result.json["versions"]["numpy"]


@pytest.mark.usefixtures("no_searches")
def test_a_solver_that_gives_wrong_answers_is_found_out(mipforest, monkeypatch):
    class Wrong(Highs):
        def solve(self, form, *args, **kwargs):
            x = form.col_lower.copy()
            return Solution(Status.OPTIMAL, x, form.to_values(x), 0.0, 0.0, 0, 0.0, "highs", "1")

    monkeypatch.setattr(base, "solver_classes", lambda: {"highs": Wrong})
    result = mipforest("doctor")
    assert result.code == 4
    assert "highs   fails" in result.out
    assert "pip install --force-reinstall highspy" in result.out


@pytest.mark.usefixtures("no_searches")
def test_a_broken_installation_is_told_and_not_a_traceback(mipforest, monkeypatch):
    class Broken(Highs):
        def version(self):
            raise ImportError("libhighs.so: cannot open shared object file")

    monkeypatch.setattr(base, "solver_classes", lambda: {"highs": Broken})
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
