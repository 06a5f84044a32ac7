"""Type checkers see the parameters of estimators: five mistakes are found, and nothing else."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = Path(__file__).with_name("mistyped_estimators.py")


def mistaken_lines() -> list[int]:
    lines = EXAMPLE.read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if "# mistake:" in line]


def lines_found(command: list[str], pattern: str) -> list[int]:
    ended = subprocess.run(
        [*command, str(EXAMPLE)], capture_output=True, text=True, cwd=ROOT, timeout=600, check=False
    )
    found = re.findall(pattern, ended.stdout, re.MULTILINE)
    assert found, ended.stdout + ended.stderr
    return sorted({int(number) for number in found})


@pytest.mark.slow
def test_mypy_finds_five_mistakes(tmp_path):
    settings = tmp_path / "mypy.ini"
    # What a user has: no settings of the project's own.
    settings.write_text(
        f"[mypy]\ncache_dir = {tmp_path / 'cache'}\nfollow_imports = silent\nignore_missing_imports = true\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings)]
    assert len(mistaken_lines()) == 5
    assert lines_found(command, rf"{EXAMPLE.name}:(\d+): error") == mistaken_lines()


def test_pyright_finds_five_mistakes():
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    command = ["pyright", "--pythonpath", sys.executable]
    assert lines_found(command, rf"{EXAMPLE.name}:(\d+):\d+ - error") == mistaken_lines()
