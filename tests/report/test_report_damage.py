"""Damaged and crafted runs: a page or a refusal, never a crash, never an element of the run's own, never endless."""

import json
import shutil
from random import Random

import pytest
from changed_runs import sealed
from fuzz.mutations import mutated
from parsed_page import ParsedPage
from typer.testing import CliRunner

from mipforest.cli.main import app

#: Damaged files that each test makes.
N_DAMAGED = 4


@pytest.fixture
def report(tmp_path):
    """Report a run folder; gives exit code, what was said, and the page."""

    def call(run):
        page = tmp_path / "page.html"
        page.unlink(missing_ok=True)
        done = CliRunner().invoke(app, ["report", str(run), "-o", str(page)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output, page.read_bytes() if page.exists() else None

    return call


@pytest.fixture
def copied(tmp_path):
    """Copy a run, with one file changed."""

    def copy(run, name, change):
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(run, folder)
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))
        return sealed(folder)

    return copy


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["result.json", "tree.json"])
@pytest.mark.parametrize("kind", ["logistic", "values"])
def test_a_damaged_file_gives_a_page_or_a_refusal(request, report, tmp_path, kind, name):
    chance = Random(f"{kind} {name}")
    run = shutil.copytree(request.getfixturevalue(f"{kind}_run"), tmp_path / "run")
    whole = (run / name).read_bytes()
    codes = []
    # A harmless and a fatal change, whatever chance brings: the bytes of a run are never the same.
    damaged = [whole + b"\n", whole[: len(whole) // 2], *(mutated(chance, whole) for _ in range(N_DAMAGED))]
    for content in damaged:
        (run / name).write_bytes(content)
        code, told, page = report(run)
        assert code in (0, 2), told
        assert "Traceback" not in told
        assert (page is None) == (code == 2)
        if page is not None:
            parsed = ParsedPage(page)
            assert len(parsed.all("script")) == 1
            assert not parsed.all("img")
        codes.append(code)
    assert codes[:2] == [0, 2]


HOSTILE = "</script></style></title><script>alert(1)</script><img src=x onerror=alert(2)>"


def hostile(value):
    """Put markup into every text and every name of a JSON value."""
    if isinstance(value, dict):
        return {name: hostile(part) for name, part in value.items()} | {HOSTILE: HOSTILE}
    if isinstance(value, list):
        return [hostile(part) for part in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


def test_markup_in_every_text_stays_text(report, copied, logistic_run):
    def change(result):
        kept = {name: result[name] for name in ("status", "data_source", "options")}
        result |= {name: hostile(value) for name, value in result.items()} | kept
        result |= {"reported": [HOSTILE, "x"], HOSTILE: HOSTILE, "x": {HOSTILE: [{HOSTILE: HOSTILE}]}}
        result |= {"warnings": [HOSTILE], "doubts": [HOSTILE], "verified": False}

    code, told, page = report(copied(logistic_run, "result.json", change))
    assert code == 0, told
    parsed = ParsedPage(page)
    assert len(parsed.all("script")) == 1
    assert not parsed.all("img")
    assert parsed.text.count("alert(2)") > 20


def test_numbers_of_samples_that_do_not_add_up_are_refused(report, copied, classes_run):
    def change(tree):
        tree["training_samples"]["samples"][0] += 1

    code, told, _ = report(copied(classes_run, "tree.json", change))
    assert code == 2
    assert "do not add up" in told


@pytest.mark.slow
def test_a_page_is_bounded_whatever_the_run_says(report, copied, classes_run):
    def change(result):
        event = {"seconds": 1.0, "objective": 1.0, "bound": 0.0, "nodes": 1}
        result["events"] = [event] * 50_000
        result["model"] = "m" * 1_000_000
        result["warnings"] = ["w" * 10_000] * 1_000
        result["parameters"] = {f"p{k}": k for k in range(10_000)}
        result |= {"reported": ["x"], "x": [[k] * 10_000 for k in range(100)]}

    code, told, page = report(copied(classes_run, "result.json", change))
    assert code == 0, told
    assert len(page) < 5_000_000
    assert b"No command is given" in page


def test_long_names_are_shortened_and_told_apart(report, copied, classes_run):
    def change(tree):
        tree["features"] = [f"{'f' * 1_000_000}{j}{'g' * 1000}" for j in range(len(tree["features"]))]

    code, told, page = report(copied(classes_run, "tree.json", change))
    assert code == 0, told
    assert len(page) < 200_000


@pytest.mark.parametrize(
    "events",
    [
        None,
        [1],
        [{"seconds": "x", "objective": 1, "bound": 1, "nodes": 1}],
        [{"seconds": 1.0, "objective": 1e308, "bound": -1e308, "nodes": 1}],
        [{"seconds": 1.0, "objective": [], "bound": 1, "nodes": 1}],
        [{"seconds": 1.0}],
    ],
)
def test_events_that_are_none_are_refused(report, copied, classes_run, events):
    code, told, page = report(copied(classes_run, "result.json", lambda result: result.update(events=events)))
    assert code == 2
    assert "result.json" in told
    assert page is None


@pytest.mark.parametrize(
    "share", [{"predicted": 2}, {"observed": -1}, {"lower": "x"}, {"count": None, "upper": None}]
)
def test_a_reliability_table_that_is_none_is_refused(report, copied, logistic_run, share):
    run = copied(logistic_run, "result.json", lambda result: result["train_reliability"][0].update(share))
    assert report(run)[0] == 2


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "alpha\n1\n",
        "alpha,chosen,validation_mean,validation_std,train_mean,features_mean\nx,True,y\n",
        "\x00\xff",
    ],
)
def test_a_damaged_table_of_a_tuning_gives_a_page(report, levels_run, tmp_path, text):
    run = shutil.copytree(levels_run, tmp_path / "run")
    (run / "tuning.csv").write_text(text, encoding="latin-1")
    code, told, page = report(run)
    assert code == 0, told
    assert page is not None


def test_columns_that_are_not_those_of_the_tree_are_refused(report, levels_run, copied):
    def lose_one(tree):
        del tree["encoding"]["columns"][0]
        del tree["encoding"]["offset"][0], tree["encoding"]["scale"][0]

    code, told, page = report(copied(levels_run, "tree.json", lose_one))
    assert (code, page) == (2, None)
    assert "features of columns" in told
