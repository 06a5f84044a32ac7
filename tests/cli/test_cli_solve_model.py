"""``mipforest solve-model``: files of models, solved and checked."""

import json

import pytest
from lp_reader import needs_lp_reader

from mipforest.files import read_mps, write_lp
from mipforest.files.solutions import read_point

KNAPSACK = """NAME knapsack
OBJSENSE MAX
ROWS
 N value
 L weight
COLUMNS
 M1 'MARKER' 'INTORG'
 lamp value 3 weight 2
 rope value 4 weight 3
 tent value 5 weight 4
 M2 'MARKER' 'INTEND'
RHS
 RHS weight 5
ENDATA
"""


FREE = """NAME free
ROWS
 N obj
 L c
COLUMNS
 x obj -1 c 1
 y c -1
RHS
 RHS c 1
ENDATA
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "knapsack.mps"
    path.write_text(KNAPSACK)
    return path


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
@pytest.mark.parametrize(
    "suffix", [".mps", ".mps.gz", *(pytest.param(name, marks=needs_lp_reader) for name in (".lp", ".lp.gz"))]
)
def test_a_file_is_solved_and_its_solution_written_and_checked(mipforest, model, tmp_path, solver, suffix):
    if solver != "highs":
        pytest.importorskip({"scip": "pyscipopt", "gurobi": "gurobipy"}[solver])
    path, solution = tmp_path / f"other{suffix}", tmp_path / "x.sol"
    if ".lp" in suffix:
        write_lp(read_mps(model), path)
    elif suffix == ".mps":
        path.write_text(KNAPSACK)
    else:
        import gzip

        path.write_bytes(gzip.compress(KNAPSACK.encode()))
    done = mipforest("solve-model", path, "--solver", solver, "-o", solution, "--json")
    assert done.code == 0
    found = done.json
    assert (found["status"], found["verified"], found["exact"], found["sense"]) == (
        "optimal",
        True,
        True,
        "maximize",
    )
    assert (found["objective"], found["bound"]) == (pytest.approx(7.0), pytest.approx(7.0))
    assert found["statistics"]["columns"] == 3
    assert read_point(solution) == {"lamp": 1.0, "rope": 1.0, "tent": 0.0}
    checked = mipforest("check", path, solution)
    assert checked.code == 0
    assert "objective      7 (to be maximised)" in checked.out


def test_the_words(mipforest, model, tmp_path):
    done = mipforest("solve-model", model, "-o", tmp_path / "x.sol")
    assert done.code == 0
    assert "optimal" in done.out
    assert "verified       yes: largest violation 0" in done.out
    assert f"Next: mipforest check {model} {tmp_path / 'x.sol'}" in done.out
    assert mipforest("solve-model", model, "--quiet").out == ""


def test_a_start_is_taken_and_what_it_leaves_out_is_open(mipforest, model, tmp_path):
    start = tmp_path / "start.mst"
    start.write_text("tent 1\nlamp 0\nrope 0\n")
    found = mipforest("solve-model", model, "--start", start, "--json").json
    assert found["start_objective"] == pytest.approx(5.0)
    alone = mipforest("solve-model", model, "--start", start, "--time-limit", "0", "--json")
    assert (alone.code, alone.json["objective"], alone.json["bound"]) == (0, pytest.approx(5.0), None)
    start.write_text("lamp 1\n")
    assert mipforest("solve-model", model, "--start", start, "--json").json["objective"] == pytest.approx(7.0)
    start.write_text("lampe 1\n")
    refused = mipforest("solve-model", model, "--start", start)
    assert refused.code == 2
    assert "did you mean 'lamp'" in refused.err


def test_no_solution_is_exit_code_3(mipforest, model, tmp_path):
    model.write_text(KNAPSACK.replace("RHS weight 5", "RHS weight -5"))
    done = mipforest("solve-model", model, "-o", tmp_path / "x.sol", "--json")
    found = done.json
    assert (done.code, found["status"], found["objective"], found["written"]) == (3, "infeasible", None, None)
    assert not (tmp_path / "x.sol").exists()
    said = mipforest("solve-model", model)
    assert "explain_infeasibility" in said.err
    free = model.with_name("free.mps")
    free.write_text(FREE)
    assert mipforest("solve-model", free, "--json").json["status"] in ("unbounded", "infeasible_or_unbounded")


def test_options_of_a_solve(mipforest, model):
    options = (
        "--time-limit",
        "5",
        "--gap",
        "0.01",
        "--threads",
        "1",
        "--seed",
        "3",
        "--solver-option",
        "presolve=off",
    )
    assert mipforest("solve-model", model, *options).code == 0
    assert mipforest("solve-model", model, "--solver-option", "presolf=off").code == 2
    alone = mipforest("solve-model", model, "--isolate", "--json")
    assert (alone.code, alone.json["objective"]) == (0, pytest.approx(7.0))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("absent.mps",), 2, "No such file"),
        (("model.txt",), 2, "end the name in .mps or .lp"),
        (("FILE", "--solver", "auto"), 2, "auto is for trees"),
        (("FILE", "--solver", "exact-search"), 2, "exact-search is for trees"),
        (("FILE", "--solver", "higs"), 2, "did you mean highs"),
        (("FILE", "-o", "x.json"), 2, "end the name in .sol"),
        (("FILE", "-o", "absent/x.sol"), 2, "no folder"),
        (("FILE", "--start", "absent.sol"), 2, "No such file"),
    ],
)
def test_what_cannot_be_done_is_said(mipforest, model, monkeypatch, arguments, code, says):
    monkeypatch.chdir(model.parent)
    done = mipforest("solve-model", *(model if word == "FILE" else word for word in arguments))
    assert done.code == code
    assert says in done.err
    assert "Traceback" not in done.err


@needs_lp_reader
def test_a_quadratic_model_is_solved_through_a_bridge(mipforest, tmp_path):
    path = tmp_path / "q.lp"
    path.write_text(
        "Minimize\n obj: - x + [ 2 x ^2 + 2 y ^2 ] / 2\nSubject To\n c: x + y >= 1\nGeneral\n y\nEnd\n"
    )
    done = mipforest("solve-model", path, "--solver", "highs", "--json")
    assert done.code == 0
    assert done.json["objective"] == pytest.approx(0.0, abs=1e-4)


def test_names_of_others_give_no_orders_to_the_terminal(mipforest, model):
    other = model.with_name("a\x1b[2J\u202e.mps")
    other.write_text(KNAPSACK)
    done = mipforest("solve-model", other)
    assert done.code == 0
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err
    assert json.loads(mipforest("solve-model", other, "--json").out)["model"] == str(other)
