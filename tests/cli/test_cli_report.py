"""``mipforest report`` on the command line: where it writes, and what it refuses."""

import shutil

import pytest

pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture
def run(finished_run, tmp_path):
    """A copy of a run."""
    return shutil.copytree(finished_run, tmp_path / "run")


def test_the_page_is_written_where_it_is_wanted(mipforest, run, tmp_path):
    page = tmp_path / "page.html"
    done = mipforest("report", run, "-o", page)
    assert (done.code, done.out, done.err) == (0, f"{page}\n", "")
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_the_page_is_part_of_the_run_folder_if_nothing_is_said(mipforest, run, people_options):
    done = mipforest("report", run, "--json")
    assert done.json == {"written": str(run / "report.html"), "missing": []}
    again = mipforest(*people_options, "--out", run, "--force")
    assert again.code == 0
    assert not (run / "report.html").exists()


def test_no_file_is_overwritten_unasked(mipforest, run, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("precious")
    done = mipforest("report", run, "-o", page)
    assert done.code == 2
    assert "--force" in done.err
    assert page.read_text() == "precious"
    assert mipforest("report", run, "-o", page, "--force").code == 0
    assert page.read_text() != "precious"


def test_a_link_in_the_run_folder_is_not_followed(mipforest, run, tmp_path):
    precious = tmp_path / "precious.html"
    precious.write_text("precious")
    (run / "report.html").symlink_to(precious)
    done = mipforest("report", run, "--force")
    assert done.code == 2
    assert "is a link" in done.err
    assert precious.read_text() == "precious"


@pytest.mark.parametrize(
    ("target", "words"),
    [("page.txt", ".html"), ("nowhere/page.html", "there is no folder"), ("folder.html", "is a folder")],
)
def test_targets_that_cannot_be_are_refused(mipforest, run, tmp_path, target, words):
    (tmp_path / "folder.html").mkdir()
    done = mipforest("report", run, "-o", tmp_path / target)
    assert done.code == 2
    assert words in done.err


def test_a_target_that_cannot_be_written_leaves_nothing(mipforest, run):
    done = mipforest("report", run, "-o", "/proc/page.html")
    assert done.code == 2
    assert "/proc" in done.err


@pytest.mark.parametrize("content", [None, "", "[]", "{", '{"status": "optimal"}', '{"status": ["optimal"]}'])
def test_what_is_no_run_is_refused(mipforest, run, tmp_path, content):
    if content is None:
        (run / "result.json").unlink()
    else:
        (run / "result.json").write_text(content)
    done = mipforest("report", run, "-o", tmp_path / "page.html")
    assert done.code == 2
    assert "result.json" in done.err
    assert not list(tmp_path.glob("*.html"))


def test_no_folder_is_refused(mipforest, tmp_path):
    done = mipforest("report", tmp_path / "rum", "-o", tmp_path / "page.html")
    assert done.code == 2
    assert "does not exist" in done.err


def test_samples_that_are_gone_are_told(mipforest, people, people_options, tmp_path):
    table = tmp_path / "people.csv"
    people.to_csv(table, index=False)
    options = [table if "people.csv" in option else option for option in people_options]
    assert mipforest(*options, "--out", tmp_path / "run", "-q").code == 0
    table.unlink()
    done = mipforest("report", tmp_path / "run", "-o", tmp_path / "page.html")
    assert done.code == 0
    assert "could not be loaded again" in done.err
    page = (tmp_path / "page.html").read_text()
    assert "could not be loaded again" in page
    assert "Confusion matrix" in page


def test_a_run_without_a_tree_has_a_page(mipforest, people_options, tmp_path):
    assert mipforest(*people_options, "--start", "none", "--out", tmp_path / "run", "-q").code == 3
    assert not (tmp_path / "run" / "tree.json").exists()
    assert mipforest("report", tmp_path / "run").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "stopped at the time limit, without a solution" in page
    assert "This run has no tree" in page
