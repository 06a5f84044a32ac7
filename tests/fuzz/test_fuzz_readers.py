"""Damaged files of every format: read, or refused with a documented error, and nothing else happens."""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_readers import fuzz


def test_damaged_files_are_read_or_refused(tmp_path):
    figures = fuzz(60, 0, tmp_path)
    assert sum(figures.refused.values()) > 20
    assert sum(figures.read.values()) > 5
    assert len(figures.read | figures.refused) == 15


@pytest.mark.slow
def test_ten_thousand_damaged_files():
    """With the memory of the process limited."""
    program = Path(__file__).with_name("fuzz_readers.py")
    done = subprocess.run(
        [sys.executable, str(program), "--files", "10000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "10000 files" in done.stdout
