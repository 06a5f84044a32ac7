"""Trees near the optimum on the command line: their file, the summary, and the report page."""

import json

import pytest


@pytest.fixture(scope="module")
def run(mipforest, tmp_path_factory):
    out = tmp_path_factory.mktemp("near") / "run"
    done = mipforest(
        "solve", "--model", "oct", "--depth", 2, "--data", "breast_cancer", "--within", "5%", "--out", out
    )
    assert done.code == 0
    assert "all 419 trees within 5% of the optimum" in done.out
    return out


def test_the_run_holds_the_trees(mipforest, run):
    trees = json.loads((run / "trees.json").read_text())
    assert len(trees["objectives"]) == len(trees["feature"]) == 419
    result = json.loads((run / "result.json").read_text())
    assert result["trees"]["complete"]
    assert result["options"]["within"] == 0.05  # exact: a copy
    assert "all 419 trees" in mipforest("show", run).out


def test_the_report_shows_the_trees(mipforest, run):
    assert mipforest("report", run).code == 0
    page = (run / "report.html").read_text()
    assert "All 419 trees within 5% of the optimum." in page
    assert "Where the trees disagree most" in page
    assert "worst smoothness" in page
    assert "--within 0.05" in page
    (run / "trees.json").write_text('{"objectives": [1]}')
    assert mipforest("report", run, "--force").code == 0
    assert "trees.json could not be read" in (run / "report.html").read_text()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--within", "two"), "--within is 'two'; give a share, such as 2% or 0.02"),
        (("--keep-trees", 0), "keep_trees is 0; give 1 or more trees"),
        (("--within", "-2%"), "within is -0.02; give a relative distance"),
        (("--within", "2%", "--time-limit", 0), "without time no trees are listed"),
    ],
)
def test_what_is_not_allowed(mipforest, asked, said):
    done = mipforest("solve", "--model", "oct", "--depth", 1, "--data", "iris", *asked)
    assert done.code == 2
    assert said in done.err
