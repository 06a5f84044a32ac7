"""What commands import: nothing slow where they only answer, and less than all where they work."""

import subprocess
import sys

import pytest

from mipforest.cli import early
from mipforest.data import loading
from mipforest.problem import registry

SLOW = ("numpy", "pandas", "scipy", "numba", "sklearn", "matplotlib", "highspy")

PROGRAM = """
import atexit
import sys
from mipforest.cli.main import run
atexit.register(lambda: print("slow:", *(name for name in {slow!r} if name in sys.modules), file=sys.stderr))
run()
"""


def imported(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(slow=SLOW), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    return set(done.stderr.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("solve", "--help"),
        ("solve", "--modle", "oct"),
        ("solve", "--model", "oct", "--depth", 2, "--data", "absent.csv"),
        ("solve", "--model", "octt", "--depth", 2, "--data", "iris"),
        ("tune", "--model", "octt", "--depth", 2, "--data", "iris"),
    ],
)
def test_answers_import_nothing_slow(tmp_path, arguments):
    assert imported(tmp_path, *arguments) == set()


def test_a_solve_of_bundled_data_loads_no_solver_and_no_pictures(tmp_path):
    asked = ("solve", "--model", "oct", "--depth", 2, "--data", "breast_cancer", "-q")
    # scikit-learn, and pandas with it, is there for CART, beside which the tree is put.
    assert imported(tmp_path, *asked) == {"numpy", "scipy", "numba", "pandas", "sklearn"}


def test_building_a_problem_loads_no_optimizer():
    program = "import sys, mipforest.problem.problem; print('scipy.optimize' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == ["False"]


def test_what_is_refused_early_is_what_is_refused_late():
    assert sorted(early.SUFFIXES) == sorted(loading.SUFFIXES)
    assert early.FORMULATIONS == registry.FORMULATIONS
