"""Damaged data files, suites, results and runs: used, or refused by an error of this package, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_data_files import fuzz

pytest.importorskip("pyarrow")


@pytest.mark.slow
def test_damaged_files_are_used_or_refused(tmp_path):
    figures = fuzz(20, 0, tmp_path)
    assert sum(figures.refused.values()) > 7
    assert sum(figures.read.values()) > 2
    assert len(figures.read | figures.refused) > 5


@pytest.mark.slow
def test_ten_thousand_damaged_files():
    """With the memory of the process counted."""
    program = Path(__file__).with_name("fuzz_data_files.py")
    done = subprocess.run(
        [sys.executable, str(program), "--files", "10000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "10000 files" in done.stdout
