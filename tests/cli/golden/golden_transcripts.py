"""Transcripts of the command line: commands, and what they printed and wrote when the transcript was last renewed.

A transcript is a text file: a comment, then commands, each on a line that begins with ``$ ``, each followed by
its output. All commands of a transcript run one after the other in one folder, which begins with the files of
``inputs``. Lines of standard error begin with ``! ``; an exit code other than 0 stands on a line of its own.

Besides ``$ mipforest ...`` there are ``$ ls FOLDER``, ``$ cat FILE`` and ``$ head FILE`` (the first line, as of a
table's columns), to see what a command wrote.

What no two runs share is masked: times, versions, numbers of nodes and the count of progress events. All
other numbers stay, and are compared with the tolerances below.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from mipforest.cli.main import app

HERE = Path(__file__).parent
TRANSCRIPTS = sorted((HERE / "transcripts").glob("*.txt"))

#: Two runs of one model may differ by this much in a printed number: solvers and linear algebra differ with the
#: processor, and most numbers are printed with four to six digits.
RELATIVE, ABSOLUTE = 1e-4, 1e-6

#: Keys of JSON whose values differ from run to run or from machine to machine.
MASKED_KEYS = {"nodes", "available", "max_violation"}

#: Columns of tables of the same kind.
MASKED_COLUMNS = ("seconds", "nodes")

#: What differs so in a text.
MASKED_TEXTS = (
    (re.compile(r"\d+\.\d+\.\d+(\.\w+)?"), "<version>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<checksum>"),
    (
        re.compile(
            r"(?<!at most )\b\d+\.\d+ s\b(?= in | building |  chosen| left| \(\d+ of|[ \t]*$)", re.MULTILINE
        ),
        "<seconds> s",
    ),
    (re.compile(r"\b\d+ nodes\b"), "<count> nodes"),
    (re.compile(r"(max violation  )\S+"), r"\1<tiny>"),
    (re.compile(r"were run on .*"), "were run on <machine>"),
    (re.compile(r"(?<=found here: ).*"), "<programs>"),
    (re.compile(r"not installed.*|(?<=^ipopt: )installed", re.MULTILINE), "<version>"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)")


def read(path: Path) -> tuple[str, list[tuple[str, str]]]:
    """Return the comment of a transcript, and its commands with the output of each."""
    head, *parts = re.split(r"^\$ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return head, [
        (command, output.rstrip("\n")) for command, _, output in (part.partition("\n") for part in parts)
    ]


def replay(path: Path, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Run a transcript's commands in a folder; yield each with the output it had and the output it has."""
    shutil.copytree(HERE / "inputs", folder, dirs_exist_ok=True)
    for command, before in read(path)[1]:
        with chdir(folder):
            yield command, before, run(command, folder)


def run(command: str, folder: Path) -> str:
    """Run one command; return what it printed, masked."""
    program, *arguments = shlex.split(command)
    if program == "ls":
        (listed,) = arguments
        return "".join(f"{path.name}\n" for path in sorted(Path(listed).iterdir())).rstrip("\n")
    if program in ("cat", "head"):
        (shown,) = arguments
        text = Path(shown).read_text(encoding="utf-8")
        return masked(text if program == "cat" else text.partition("\n")[0], folder)
    assert program == "mipforest", command
    # Width of a terminal, and no colour, whatever the tests run in.
    plain = {"COLUMNS": "100", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": None}
    done = CliRunner(env=plain).invoke(app, arguments, prog_name="mipforest")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    errors = "".join(f"! {line}\n" for line in masked(done.stderr, folder).splitlines())
    code = "" if done.exit_code == 0 else f"exit code {done.exit_code}\n"
    return f"{masked(done.stdout, folder)}\n{errors}{code}".strip("\n")


def masked(text: str, folder: Path) -> str:
    """Return a text, or JSON in a compact form, without what differs from run to run."""
    text = text.replace(f"{folder}{os.sep}", "").replace(str(folder), "FOLDER")
    try:
        return _written(_masked_value(json.loads(text)))
    except ValueError:
        return _masked_columns(_masked_text(text)).rstrip("\n")


def _masked_text(text: str) -> str:
    for pattern, mask in MASKED_TEXTS:
        text = pattern.sub(mask, text)
    return text


def _masked_columns(text: str) -> str:
    """Return a text in which the times and nodes of tables, CSV or Markdown, are masked."""
    lines: list[str] = []
    columns: dict[int, str] = {}
    for line in text.splitlines():
        mark = "|" if line.startswith("|") else ","
        cells = line.split(mark)
        names = {
            place: cell.strip() for place, cell in enumerate(cells) if cell.strip().endswith(MASKED_COLUMNS)
        }
        if names:
            columns = names
        elif "---" not in line:
            for place, name in columns.items():
                if place < len(cells) and cells[place].strip():
                    cells[place] = f"<{name}>"
        columns = columns if line else {}
        lines.append(mark.join(cells))
    return "\n".join(lines)


def _masked_value(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        # The checksum of data, beside their numbers of samples, is the same everywhere; that of a file is not.
        kept = {"sha256"} if "n" in value else set()
        timed = key.endswith("seconds")
        return {
            name: item if name in kept else _masked_value(item, key if timed else name)
            for name, item in value.items()
        }
    if key == "events":
        return [f"<events of {', '.join(value[0])}>"] if value else []
    if isinstance(value, list):
        return [_masked_value(item, key) for item in value]
    if value is not None and (key in MASKED_KEYS or key.endswith(("_version", "seconds"))):
        return f"<{key}>"
    return _masked_text(value) if isinstance(value, str) else value


def _written(value: Any, indent: str = "") -> str:
    """Return JSON with the innermost lists and objects on one line each."""
    inner = indent + "  "
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (len(indent + line) <= 100 and "{" not in line[1:]):
        return line
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {_written(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _written(item, inner) for item in value) + f"\n{indent}]"


def with_numbers_of(before: str, now: str) -> str:
    """Return a new output with the old one's numbers where the two are close, so that all that is left differs."""
    old = list(NUMBER.finditer(before))
    found = iter(old) if len(old) == len(NUMBER.findall(now)) else iter(())

    def closest(match: re.Match[str]) -> str:
        known = next(found, match)
        return known[0] if close(known[0], match[0]) else match[0]

    return NUMBER.sub(closest, now)


def close(one: str, other: str) -> bool:
    """Return whether two printed numbers are the same up to the tolerances; whole numbers must be equal."""
    if re.fullmatch(r"[-+]?\d+", one) and re.fullmatch(r"[-+]?\d+", other):
        return one == other
    return math.isclose(float(one), float(other), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
