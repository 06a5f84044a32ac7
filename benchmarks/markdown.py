"""Tables in Markdown, and the note that says what they were measured with."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from mipforest.campaigns.report import markdown_table as table

__all__ = ["add_output", "measured_with", "publish", "table", "version_in"]


def measured_with(packages: Sequence[str]) -> str:
    """Say which versions, and how many cores."""
    known = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"Measured with Python {platform.python_version()}, {known}, on {os.cpu_count()} cores."


def version_in(python: str, package: str) -> str:
    """Return the version of a package in the environment of another interpreter."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def publish(text: str, output: Path | None) -> None:
    """Print a page, and write it if asked to."""
    print(text, end="")
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, help="Markdown file to write as well")
