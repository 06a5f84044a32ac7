import sqlite3

import pytest

pytestmark = pytest.mark.usefixtures("few_penalties")

SUITE = """
name = "small"
time_limits = [60.0]
threads = 1

[split]
test_size = 0.25

[data.points]
load = "synthetic:tree,depth=1,n=24,p=2"

[models.oct]
model = "oct"
depth = 1
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SUITE)
    return path


def test_a_suite_is_run_and_reported(mipforest, suite, tmp_path):
    results = tmp_path / "r.sqlite"
    ran = mipforest("campaign", suite, "--results", results)
    assert ran.code == 0
    assert "oct, points, seed 0: optimal" in ran.out
    assert "1 of 1 cells are done" in ran.out
    again = mipforest("campaign", "run", suite, "--results", results, "--json")
    assert again.json == {"results": str(results), "done": 1, "failed": 0, "waiting": 0}
    told = mipforest("campaign", "report", results, "-o", tmp_path / "report")
    assert told.code == 0
    assert "report.md" in told.out
    assert "| points |" in (tmp_path / "report/report.md").read_text()


def test_several_suites_are_one_command_that_goes_on_and_reports(mipforest, suite, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(SUITE.replace('"small"', '"other"'))
    command = ("campaign", suite, other, "--results", tmp_path / "results")
    ran = mipforest(*command, "--report", tmp_path / "report")
    assert ran.code == 0
    assert ran.out.count("1 of 1 cells are done") == 2
    for name in ("small", "other"):
        assert (tmp_path / "report" / name / "report.md").is_file()
        assert (tmp_path / "report" / name / "gaps.svg").is_file()
    again = mipforest(*command, "--json")
    assert [entry["done"] for entry in again.json["suites"]] == [1, 1]
    assert again.json["suites"][1]["results"] == str(tmp_path / "results" / "other.sqlite")
    twice = mipforest("campaign", suite, suite)
    assert twice.code == 2
    assert "same results file" in twice.err


@pytest.mark.slow
def test_a_suite_that_includes_others_is_run_looked_at_and_reported(mipforest, suite, tmp_path):
    both = tmp_path / "both.toml"
    both.write_text('name = "both"\ninclude = ["small.toml", { suite = "other.toml", time_limit = 7.0 }]\n')
    (tmp_path / "other.toml").write_text(SUITE.replace('"small"', '"other"'))
    results = tmp_path / "results"
    looked = mipforest("campaign", both, "--results", results, "--dry-run")
    assert looked.code == 0
    assert "small: 1 of 1 cells are left; 1 with limits of 60.0 s in all" in looked.out
    assert "all: 2 of 2 cells are left; 2 with limits of 67.0 s in all" in looked.out
    assert not results.exists()
    assert mipforest("campaign", both, "--results", results, "--quiet", "--only", "small").code == 0
    left = mipforest("campaign", both, "--results", results, "--dry-run", "--json").json["suites"]
    assert [entry["waiting"] for entry in left] == [0, 1]
    told = mipforest("campaign", "report", results, "-o", tmp_path / "report")
    assert told.code == 0
    assert (tmp_path / "report/small/report.md").is_file()
    (tmp_path / "empty").mkdir()
    assert mipforest("campaign", "report", tmp_path / "empty", "-o", tmp_path / "report").code == 2


def test_results_stand_beside_nothing_in_the_current_folder(mipforest, suite, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert mipforest("campaign", suite, "--quiet").out == ""
    assert (elsewhere / "small.sqlite").is_file()


def test_a_failed_cell_is_told_and_gives_exit_code_3(mipforest, suite, tmp_path):
    suite.write_text(SUITE.replace("synthetic:tree,depth=1,n=24,p=2", "synthetic:absent"))
    ran = mipforest("campaign", suite, "--results", tmp_path / "r.sqlite")
    assert ran.code == 3
    assert "failed: DataError" in ran.out
    assert "--retry-failed" in ran.out


@pytest.mark.parametrize(
    ("old", "new", "options", "code", "told"),
    [
        ('model = "oct"', 'model = "octt"', (), 2, "did you mean 'oct'"),
        ("depth = 1\n", "", (), 2, "lacks the key 'depth'"),
        ("threads = 1", "threds = 1", (), 2, "did you mean 'threads'"),
        ("threads = 1", "threads = ", (), 2, "no TOML"),
        ("threads = 1", 'solvers = "cplex"', (), 2, "no solver named 'cplex'"),
        ("synthetic:tree,depth=1,n=24,p=2", "points.csv", (), 2, "--data DIR"),
        ("synthetic:tree,depth=1,n=24,p=2", "points.csv", ("--data", "absent"), 2, "no data folder"),
        ("threads = 1", "", ("--only", "octt"), 2, "did you mean 'oct'"),
        ("threads = 1", "", ("--results", "absent/r.sqlite"), 2, "no folder"),
        ("threads = 1", "", ("--jobs", "0"), 2, "--jobs"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    mipforest, suite, tmp_path, monkeypatch, old, new, options, code, told
):
    monkeypatch.chdir(tmp_path)
    assert old in SUITE
    suite.write_text(SUITE.replace(old, new))
    ran = mipforest("campaign", suite, *options)
    assert ran.code == code, ran.err
    assert told in ran.err
    assert "Traceback" not in ran.err
    assert not list(tmp_path.glob("*.sqlite"))


def test_results_files_that_are_none(mipforest, suite, tmp_path):
    text, other = tmp_path / "text.sqlite", tmp_path / "other.sqlite"
    text.write_text("mine, and no database" * 10)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    for path in (text, other):
        before = path.read_bytes()
        for command in (
            ("campaign", suite, "--results", path),
            ("campaign", "report", path, "-o", tmp_path / "o"),
        ):
            ran = mipforest(*command)
            assert ran.code == 2
            assert str(path) in ran.err
        assert path.read_bytes() == before
    ran = mipforest("campaign", "report", tmp_path / "absent.sqlite", "-o", tmp_path / "o")
    assert ran.code == 2
    assert "no results file" in ran.err
    assert not (tmp_path / "o").exists()
    assert mipforest("campaign", tmp_path / "absent.toml").code == 2


def test_results_of_another_suite(mipforest, suite, tmp_path):
    results = tmp_path / "r.sqlite"
    mipforest("campaign", suite, "--results", results)
    suite.write_text(SUITE.replace('"small"', '"other"'))
    ran = mipforest("campaign", suite, "--results", results)
    assert ran.code == 2
    assert "results of the suite 'small', not of 'other'" in ran.err
