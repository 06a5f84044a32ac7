"""``mipforest explore`` as it is used: an address, a page, Ctrl-C; and what it refuses."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest
from tolerance import at_least
from typer.testing import CliRunner

from mipforest.cli.main import app


@contextmanager
def explored(folder, *given):
    """Start the command; a function asks its server, and an address is that of its page."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mipforest", "explore", *given, "--no-browser", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    try:
        found = None
        while not found:
            line = process.stdout.readline()
            assert line, process.wait()
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=(\S+)", line)

        def ask(path, **entries):
            address = found[0].split("?")[0] + path
            request = urllib.request.Request(address, json.dumps(entries).encode(), {"X-Token": found[1]})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        yield ask, found[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stdout.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ended(ask):
    while (state := ask("state"))["busy"]:
        time.sleep(0.05)
    return state


def test_it_serves_a_page_until_it_is_stopped(tmp_path):
    given = ("--model", "oct", "--depth", "2", "--data", "wine", "--forbid", "proline")
    with explored(tmp_path, *given) as (ask, address):
        with urllib.request.urlopen(address, timeout=60) as page:
            assert b"mipforest explore" in page.read()
        state = ended(ask)
        assert state["proven"]
        assert all(node["feature"] != "proline" for node in state["nodes"])


def test_a_run_is_explored_and_its_edits_are_kept(tmp_path, mipforest):
    solve = (
        "solve",
        "--model",
        "oct",
        "--depth",
        "2",
        "--data",
        "wine",
        "--forbid",
        "proline",
        "--out",
        tmp_path / "run",
        "--quiet",
    )
    assert mipforest(*solve).code == 0
    with explored(tmp_path, "run", "--out", "edited") as (ask, _):
        first = ended(ask)
        assert all(node["feature"] != "proline" for node in first["nodes"])
        ask("edit", action="forbid", feature=first["nodes"][0]["column"])
        second = ended(ask)
        assert at_least(second["objective"], first["objective"])
        assert "<html" in ask("written", form="report")["text"]
        assert ask("written", form="run")["text"] == "Written to edited"
    assert (tmp_path / "run" / "edits.json").is_file()
    written = json.loads((tmp_path / "edited" / "result.json").read_text())
    assert written["objective"] == pytest.approx(second["objective"])
    for run in ("run", "edited"):  # both go on with the edits
        with explored(tmp_path, run) as (ask, _):
            again = ended(ask)
            assert [edit["words"] for edit in again["edits"]] == [edit["words"] for edit in second["edits"]]
            assert again["objective"] == pytest.approx(second["objective"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--model", "oct"], "needs a run folder, or --model and --data"),
        (["absent"], "absent does not exist"),
        (["run", "--model", "oct"], "takes a run folder or --model, not both"),
        (["--model", "ors", "--data", "breast_cancer"], "model ors gives no tree that could be edited"),
        (["--model", "oct", "--depth", "2", "--data", "wine", "--port", "{taken}"], "cannot be listened on"),
        (["--model", "oct", "--depth", "2", "--data", "wine", "--forbid", "nope"], "has no feature 'nope'"),
    ],
)
def test_what_cannot_be_explored_is_told(given, told):
    with socket.create_server(("127.0.0.1", 0)) as other:
        given = [word.format(taken=other.getsockname()[1]) for word in given]
        done = CliRunner().invoke(app, ["explore", *given, "--no-browser"], env={"COLUMNS": "300"})
    assert done.exit_code == 2, done.output
    assert told in " ".join(done.output.split())
