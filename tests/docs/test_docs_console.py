"""The commands of README, landing page and tutorial run, in an empty folder too, with the installed wheel.

Those of the tutorial print lines of the kind that the page shows.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from mipforest.cli.main import app

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "tools"))
TUTORIAL = ROOT / "docs" / "tutorial.md"
README = ROOT / "README.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

from console import BLOCK, WIDTH, Run, commands, printed, run  # noqa: E402


def kinds(lines):
    """First words of lines: numbers, times and trees may differ, what is reported may not."""
    return [line.split()[0] for line in lines if line.strip()]


def check(runs, blocks):
    shown = {command: lines for block in blocks for command, lines in printed(block).items()}
    assert [one.command for one in runs] == [command for block in blocks for command in commands(block)]
    for one in runs:
        assert one.code == 0, f"{one.command}: exit code {one.code}\n{one.output}"
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
    """A slow test below runs the same commands in a shell, each in a process of its own."""
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))[1:]
    check(list(run_here(blocks)), blocks)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Build the wheel of what git knows, install it into an environment of its own; return its folder of programs.

    Without PYTHONPATH: pip would find what it leads to, and install nothing.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(files, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, checkout], check=True
    )
    shutil.rmtree(checkout)
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    (wheel,) = folder.glob("*.whl")
    programs = folder / "venv" / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", wheel], env=environment, check=True)
    return programs


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Return an empty folder; Python finds nothing but what is installed."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


@pytest.mark.slow
def test_the_tutorial_runs_with_the_installed_wheel(programs, elsewhere):
    blocks = BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))[1:]
    check(run(blocks, elsewhere, timeout=1800, programs=programs), blocks)
    run_python(TUTORIAL, programs, elsewhere)


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, ROOT / "docs" / "index.md"], ids=lambda page: page.stem)
def test_the_first_pages_run_with_the_installed_wheel(page, programs, elsewhere):
    """The files that the pages name are the reader's own; here they are flowers."""
    frame = load_iris(as_frame=True)
    flowers = frame.data.assign(species=frame.target_names[frame.target])
    flowers.to_csv(elsewhere / "flowers.csv", index=False)
    frame.data[:5].to_csv(elsewhere / "new.csv", index=False)
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    for one in run(blocks, elsewhere, timeout=1800, programs=programs):
        assert one.code == 0, f"{one.command}: exit code {one.code}\n{one.output}"
    run_python(page, programs, elsewhere)


def test_codes_of_commands_are_seen(tmp_path):
    """Else the tests here would hold for commands that fail."""
    assert [one.code for one in run(["$ true\n$ exit_with_no_such_program\n"], tmp_path)] == [0, 127]


@pytest.mark.slow
def test_all_is_in_the_wheel(programs, elsewhere):
    """The library of instances, all public names, and a self-test of every search."""
    block = "$ mipforest instances list\n$ python -c 'from mipforest import *'\n$ mipforest doctor\n"
    for one in run([block], elsewhere, timeout=1800, programs=programs):
        assert one.code == 0, f"{one.command}: exit code {one.code}\n{one.output}"


def run_python(page, programs, folder):
    """Run the Python blocks of a page in one process."""
    script = "\n".join(PYTHON.findall(page.read_text(encoding="utf-8")))
    done = subprocess.run(
        [programs / "python", "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
