"""The commands of the tutorial run as printed, end well, and print lines of the kind that the page shows."""

import contextlib
import io
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mipforest.cli.main import app

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "tools"))
TUTORIAL = ROOT / "docs" / "tutorial.md"

from console import BLOCK, WIDTH, Run, commands, printed, run  # noqa: E402


def kinds(lines):
    """First words of lines: numbers, times and trees may differ, what is reported may not."""
    return [line.split()[0] for line in lines if line.strip()]


def check(runs, blocks, unread=()):
    shown = {command: lines for block in blocks for command, lines in printed(block).items()}
    assert [one.command for one in runs] == [command for block in blocks for command in commands(block)]
    for one in runs:
        assert one.code == 0, f"{one.command}: exit code {one.code}\n{one.output}"
        if one.command in unread:
            continue
        assert kinds(one.output.splitlines()) == kinds(shown[one.command]), one.output


def run_here(blocks):
    """Run all commands of the blocks in this process and folder, which saves a dozen starts of Python."""
    for command in (command for block in blocks for command in commands(block)):
        program, *arguments = shlex.split(command)
        if program == "mipforest":
            done = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(app, arguments, prog_name="mipforest")
            yield Run(command, done.output.rstrip("\n"), done.exit_code)
        else:
            assert (program, arguments[0]) == ("python", "-c"), command
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(arguments[1], command, "exec"), {"__name__": "__main__"})
            yield Run(command, output.getvalue().rstrip("\n"), 0)


def test_the_tutorial_runs(tmp_path, monkeypatch, few_penalties):
    """The slow test below runs the same commands in a shell, each in a process of its own."""
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))[1:]
    check(list(run_here(blocks)), blocks)


@pytest.mark.slow
def test_the_tutorial_runs_in_a_fresh_environment(tmp_path):
    checkout = tmp_path / "checkout"
    files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(files, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
    blocks = BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))
    # What pip has to say depends on where it fetches from.
    check(run(blocks, checkout, timeout=1800), blocks, unread=commands(blocks[0]))
