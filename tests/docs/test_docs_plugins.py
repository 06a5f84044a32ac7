"""The worked formulation and solver of the documentation, installed as packages of their own."""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mipforest.cli.main import app
from mipforest.problem.registry import formulation_classes
from mipforest.problem.tree_search import search_classes, search_names
from mipforest.solvers.base import solver_classes

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from test_docs import blocks  # noqa: E402

REGISTERED = re.compile(r'\[project\.entry-points\."(.+)"\]\n(.+)\n')

#: Longest formulation that the guide may show, in lines.
LINES = 80


@pytest.fixture
def installed(tmp_path):
    """Install the module of a page by hand: the module, and its entry point as pip would write it."""

    def install(page):
        group, entry = REGISTERED.search(page.read_text(encoding="utf-8")).groups()
        name, module, _ = re.match(r'(.+) = "(\w+):(\w+)"', entry).groups()
        (tmp_path / f"{module}.py").write_text(blocks(page)[0], encoding="utf-8")
        meta = tmp_path / f"{module}-1.0.dist-info"
        meta.mkdir()
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (meta / "entry_points.txt").write_text(f"[{group}]\n{entry.replace(chr(34), '')}\n")
        return name

    return install


@pytest.fixture
def mipforest(tmp_path, monkeypatch):
    """Run the command line in this process, with what is installed in the folder: no start of Python for each."""
    monkeypatch.syspath_prepend(tmp_path)
    formulation_classes.cache_clear()
    solver_classes.cache_clear()
    search_classes.cache_clear()
    search_names.cache_clear()
    yield lambda *arguments: CliRunner().invoke(app, arguments)
    formulation_classes.cache_clear()
    solver_classes.cache_clear()
    search_classes.cache_clear()
    search_names.cache_clear()


def test_the_formulation_is_found_and_solved(installed, mipforest):
    page = ROOT / "docs" / "write_a_formulation.md"
    assert len(blocks(page)[0].splitlines()) < LINES
    name = installed(page)
    listed = mipforest("models", name)
    assert "price of a unit of weight" in listed.stdout, listed.output
    options = ("--depth", "1", "--data", "iris", "--positive", "virginica", "--param", "lam=0.1", "--json")
    solved = mipforest("solve", "--model", name, *options)
    assert solved.exit_code == 0, solved.output
    refused = mipforest("solve", "--model", name, "--depth", "2", *options[2:])
    assert refused.exit_code == 2
    assert "give depth 1" in refused.stdout


def test_the_search_is_found_and_searches(installed, mipforest):
    name = installed(ROOT / "docs" / "write_a_search.md")
    solved = mipforest("solve", "--model", "ort", "--depth", "1", "--data", "diabetes", "--solver", name)
    assert solved.exit_code == 0, solved.output
    listed = mipforest("solvers")
    assert "the best of many random trees, without a bound; takes trees of univariate splits" in " ".join(
        listed.stdout.split()
    )


def test_the_solver_is_found_and_solves(installed, mipforest):
    name = installed(ROOT / "docs" / "write_a_solver.md")
    solved = mipforest("solve", "--model", "oct", "--depth", "1", "--data", "iris", "--solver", name)
    assert solved.exit_code == 0, solved.output
    assert "optimal, proven" in solved.stdout
