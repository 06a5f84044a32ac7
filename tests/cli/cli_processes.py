"""Runs of the command line in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def start_process(
    *args: object, cwd: Path, program: tuple[str, str] = ("-m", "mipforest")
) -> subprocess.Popen[str]:
    """Start ``python -m mipforest``, or another program; its Ctrl-C works, as it does in the tests."""
    return subprocess.Popen(
        [sys.executable, *program, *map(str, args)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
