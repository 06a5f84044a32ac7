"""``mipforest explore`` as it is used: an address, a page, Ctrl-C; and what it refuses."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from typer.testing import CliRunner

from mipforest.cli.main import app


def test_it_serves_a_page_until_it_is_stopped(tmp_path):
    command = [
        sys.executable,
        "-m",
        "mipforest",
        "explore",
        "--model",
        "oct",
        "--depth",
        "2",
        "--data",
        "wine",
    ]
    process = subprocess.Popen(
        [*command, "--forbid", "proline", "--no-browser", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    try:
        found = None
        while not found:
            line = process.stdout.readline()
            assert line, process.wait()
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=(\S+)", line)
        with urllib.request.urlopen(found[0], timeout=60) as page:
            assert b"mipforest explore" in page.read()
        request = urllib.request.Request(found[0].split("?")[0] + "state", b"{}", {"X-Token": found[1]})
        busy = True
        while busy:
            with urllib.request.urlopen(request, timeout=60) as answer:
                state = json.load(answer)
            busy = state["busy"]
        assert state["proven"]
        assert all(node["feature"] != "proline" for node in state["nodes"])
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stdout.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize(
    ("given", "told"),
    [
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
