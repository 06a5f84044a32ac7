"""Runs of the command line in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def start_process(
    *args: object, cwd: Path, preexec: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    """Start ``python -m mipforest``; its Ctrl-C works, as it does in the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", "mipforest", *map(str, args)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=preexec,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
