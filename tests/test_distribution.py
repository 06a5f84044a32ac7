"""What is handed out: the whole project, and metadata that say what it needs."""

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_source_distribution_has_every_file_of_the_project(monkeypatch):
    egg_info = pytest.importorskip("setuptools.command.egg_info")
    listed = subprocess.run(
        ["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("needs a working copy of git")
    known = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    monkeypatch.chdir(ROOT)
    files = egg_info.FileList()
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        if line and not line.startswith("#"):
            files.process_template_line(line)
    found = {Path(name).as_posix() for name in files.files}
    assert known - found == {"MANIFEST.in", "pyproject.toml"}  # setuptools adds them itself
    assert not [name for name in found if "__pycache__" in name or name.endswith(".pyc")]


def test_all_has_every_extra_that_a_user_has_use_for():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(everything.removeprefix("mipforest[").removesuffix("]").split(",")) == extras.keys() - {
        "all",
        "test",
    }


def test_the_metadata_say_which_pythons():
    versions = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line}
    assert min(versions, key=lambda version: int(version[2:])) == PROJECT["requires-python"].removeprefix(
        ">="
    )
