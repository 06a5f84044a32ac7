"""The command that repeats a run does repeat it."""

import json
import shlex
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from mipforest.cli.main import app
from mipforest.report import command_of


def result_of(run):
    return json.loads((run / "result.json").read_text())


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_the_command_repeats_the_run(request, tmp_path, kind):
    first = result_of(request.getfixturevalue(f"{kind}_run"))
    program, *words = shlex.split(command_of(first))
    assert program == "mipforest"
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    again = result_of(tmp_path / "run")
    for name in (
        "model",
        "variant",
        "depth",
        "parameters",
        "data",
        "test_data",
        "data_source",
        "options",
        "solver",
    ):
        assert again[name] == first[name], name


def test_every_option_is_written(classes_run):
    result = result_of(classes_run) | {"model": "miret"}
    result["parameters"] = {"C": [1.0, 10.0], "refinement": True, "none": None, "ensemble": "xgboost:trees=3"}
    result["data_source"] |= {"positive": ["yes; rm -rf ~", "-maybe"], "missing": "drop", "test_size": None}
    result["options"] |= {"time_limit": None, "threads": 2, "solver_options": {"presolve": True}}
    result["options"]["bridges"] = ["quadratic"]
    words = shlex.split(command_of(result))
    pairs = set(pairwise(words))
    assert pairs >= {
        ("--param", "C=1.0,10.0"),
        ("--param", "refinement=true"),
        ("--ensemble", "xgboost:trees=3"),
        ("--positive", "yes; rm -rf ~"),
        ("--missing", "drop"),
        ("--time-limit", "inf"),
        ("--threads", "2"),
        ("--solver-option", "presolve=true"),
        ("--bridge", "quadratic"),
    }
    assert "--positive=-maybe" in words
    assert "--test-size" not in words
    assert not [word for word in words if "none" in word]


def test_columns_with_a_part_of_their_own_are_named(classes_run):
    result = result_of(classes_run)
    columns = {
        "target": "days",
        "treatment": "drug",
        "weight": "times",
        "drop": ["id", "name"],
        "keep": ["zip"],
    }
    result["data_source"] |= columns
    words = shlex.split(command_of(result))
    assert set(pairwise(words)) >= {
        ("--outcome", "days"),
        ("--treatment", "drug"),
        ("--weight", "times"),
        ("--drop", "id"),
        ("--drop", "name"),
        ("--keep", "zip"),
    }
    assert "--target" not in words


def test_rewards_and_how_a_file_is_written_are_named(classes_run):
    result = result_of(classes_run)
    written = {"sep": "\t", "decimal": ",", "encoding": "latin-1", "dates": "days", "categorical": ["town"]}
    result["data_source"] |= {"target": None, "rewards": ["none", "drug"], **written}
    assert set(pairwise(shlex.split(command_of(result)))) >= {
        ("--rewards", "none,drug"),
        ("--sep", "tab"),
        ("--decimal", ","),
        ("--encoding", "latin-1"),
        ("--dates", "days"),
        ("--categorical", "town"),
    }
    text = {"thousands": ".", "date_order": "dmy", "skip_lines": 2, "header": False}
    words = {"missing_values": [".", "-999"], "keep_words": ["NA", "None"], "names": ["none", "drug"]}
    result["data_source"] |= text | words
    said = shlex.split(command_of(result))
    assert "--no-header" in said
    assert set(pairwise(said)) >= {
        ("--thousands", "."),
        ("--date-order", "dmy"),
        ("--skip-lines", "2"),
        ("--missing-values", ".,-999"),
        ("--keep-words", "NA,None"),
        ("--names", "none,drug"),
    }
    columns = {"target": "days", "treatment": "had", "scores": "dr", "better": "higher", "rewards": []}
    result["data_source"] |= columns
    words = shlex.split(command_of(result))
    assert set(pairwise(words)) >= {("--scores", "dr"), ("--better", "higher"), ("--outcome", "days")}
    assert "--rewards" not in words


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\u202eb", "a\ud800"])
def test_no_command_that_reads_otherwise_than_it_runs(classes_run, name):
    result = result_of(classes_run)
    result["data_source"]["data"] = name
    assert command_of(result) is None


def test_an_imported_solution_is_imported_again(classes_run):
    result = result_of(classes_run) | {"status": "imported"}
    result["options"] = {"solution": "-x.sol", "instance": "my model.mps"}
    words = shlex.split(command_of(result))
    assert words[:2] == ["mipforest", "import"]
    assert words[-2:] == ["--", "-x.sol"]
    assert words[words.index("--instance") + 1] == "my model.mps"
