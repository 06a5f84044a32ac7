"""``mipforest models``, ``solvers``, ``data``, ``--version`` and the help texts."""

import subprocess
import sys

import numpy as np
import pytest

import mipforest as package
from mipforest.data import catalogue
from mipforest.problem.parameters import plain_parameters_of
from mipforest.problem.registry import formulation_classes
from mipforest.solvers.base import solver_classes


def test_models_tells_every_parameter_with_type_range_and_default(mipforest):
    told = mipforest("models", "--json").json["models"]
    assert [model["name"] for model in told] == list(formulation_classes())
    for model, cls in zip(told, formulation_classes().values(), strict=True):
        assert model["variants"] == list(cls.variants)
        assert model["starts"] == list(cls.starts)
        known = plain_parameters_of(cls)
        assert {p["name"]: (p["range"], p["default"], p["help"]) for p in model["parameters"]} == {
            name: (p.range, p.default, p.help) for name, p in known.items()
        }
        assert all(parameter["type"] for parameter in model["parameters"])


def test_models_in_words(mipforest):
    every, one = mipforest("models").out, mipforest("models", "hfs-margot").out
    for word in (
        "hfs-margot",
        "variants: valid, paper",
        "svm-path",
        "epsilon",
        "whole number per node",
        ">= 1",
    ):
        assert word in one
    assert "sfs-margot" not in one
    assert all(every.count(f"\n  {name} ") == 1 for name in formulation_classes())
    assert every.index("\n  ort ") < every.index("Score cards") < every.index("\n  ogrs ")
    assert len(every.splitlines()) < len(formulation_classes()) + 15


def test_the_help_of_solve_shows_the_everyday_options_and_help_all_the_rest(mipforest):
    brief, whole = mipforest("solve", "--help").out, mipforest("solve", "--help-all").out
    for option in ("--model", "--depth", "--data", "--balanced", "--out", "--help-all"):
        assert option in brief
        assert option in whole
    for option in ("--solver-option", "--thousands", "--dask"):
        assert option not in brief
        assert option in whole
    assert "--thousands" not in mipforest("solve", "--help").out


def test_a_narrow_terminal_cuts_nothing_off_a_table(mipforest, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    words = mipforest("models", "loss-optimal").out.split()
    for parameter in plain_parameters_of(formulation_classes()["loss-optimal"]).values():
        assert {parameter.name, *parameter.range.split(), *parameter.help.split()} <= set(words)


def test_solvers_are_listed_without_loading_them(mipforest):
    told = {solver["name"]: solver for solver in mipforest("solvers", "--json").json["solvers"]}
    assert told.keys() == solver_classes().keys()
    assert told["highs"]["available"]
    assert told["highs"]["version"]
    for name in told:
        assert name in mipforest("solvers").out


def test_a_solver_that_is_not_installed_says_how_to_get_it(mipforest, monkeypatch):
    monkeypatch.setattr("mipforest.solvers.highs.Highs.available", classmethod(lambda cls: False))
    assert "highs: not installed; run: pip install" in mipforest("solvers").out
    asked = ("solve", "--model", "margot", "--depth", 1, "--data", "iris")
    assert mipforest(*asked, "--solver", "highs").code == 4


def test_data_lists_the_catalogue(mipforest):
    told = mipforest("data", "--json").json["data"]
    assert told == [entry._asdict() for entry in catalogue()]
    assert all(entry.name in mipforest("data").out for entry in catalogue())


def test_version(mipforest):
    first, *others = mipforest("--version").out.splitlines()
    assert first == f"mipforest {package.__version__}"
    found = dict(line.split(maxsplit=1) for line in others)
    assert found["numpy"] == np.__version__
    assert {"highspy", "gurobipy", "pyscipopt"} <= found.keys()
    assert "pytest" not in found


def test_what_takes_long_to_import_is_imported_by_what_needs_it():
    """Lists need no tables, and who takes a problem is known without the compiler of the searches."""
    program = (
        "import sys\n"
        "from mipforest.cli.main import app\n"
        "for command in ('models', 'solvers'):\n"
        "    app([command], standalone_mode=False)\n"
        "heavy = {'matplotlib', 'numba', 'pandas', 'sklearn'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "from mipforest import Dataset, SolveSettings, get_formulation\n"
        "from mipforest.problem.tree_search import Auto, search_classes\n"
        "data = Dataset.from_arrays([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0])\n"
        "problem = get_formulation('hfs-margot')(B=1).build(data, 1)\n"
        "taking = {name for name, search in search_classes().items() if search().takes(problem)}\n"
        "assert taking == {'routing', 'local-search'}, taking\n"
        "assert Auto().choose(problem, SolveSettings())[0].name == 'routing'\n"
        "assert 'numba' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command", ["solve", "export", "check", "show", "plot", "predict", "models", "solvers", "data", "doctor"]
)
def test_every_command_has_help(mipforest, command):
    done = mipforest(command, "--help")
    assert done.code == 0
    assert "Usage: mipforest " + command in done.out
    assert command in mipforest().out


@pytest.mark.parametrize("model", ["loss-optimal", "ort-l", "miret"])
def test_a_model_fits_a_terminal_of_80_columns(mipforest, monkeypatch, model):
    monkeypatch.setenv("COLUMNS", "80")
    rows = mipforest("models", model).out.partition("  parameter")[2].splitlines()[1:]
    assert max(map(len, rows)) <= 80
    stated = {parameter["name"] for parameter in mipforest("models", model, "--json").json["parameters"]}
    assert {row.split()[0] for row in rows if row[2:3].strip()} == stated
