"""Run the ``console`` blocks of a page: all commands, in order, in one shell and one folder."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: Between the outputs of two commands; nothing prints a line like it.
MARK = "=====command====="

#: Width of the printed output, in characters.
WIDTH = 100


@dataclass(frozen=True)
class Run:
    """One command of a page, what it printed (both streams, in order), and its exit code."""

    command: str
    output: str
    code: int


def commands(block):
    """Give the commands of a block: its lines that begin with ``$``."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def run(blocks, folder, timeout=600, programs=Path(sys.executable).parent):
    """Run all commands of the blocks in one shell, with a folder of programs first on the path: this Python's."""
    every = [command for block in blocks for command in commands(block)]
    script = "\n".join(f"{command}\ncode=$?\necho\necho '{MARK}' $code" for command in every)
    environment = {
        **os.environ,
        "COLUMNS": str(WIDTH),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=timeout,
        check=False,
    )
    parts = re.split(rf"\n{MARK} (\d+)\n", done.stdout)
    return [
        Run(command, output.rstrip("\n"), int(code))
        for command, output, code in zip(every, parts[::2], parts[1::2], strict=False)
    ]


def printed(block):
    """Give what a page shows as the output of its block, by command."""
    shown = {}
    for line in block.splitlines():
        if line.startswith("$ "):
            command = line[2:]
            shown[command] = []
        else:
            shown[command].append(line)
    return shown
