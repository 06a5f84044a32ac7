"""Renew the printed output of a page: ``python docs/tools/refresh.py docs/tutorial.md``.

The commands of its ``console`` blocks run in one temporary folder, the first block (the installation) aside.
A ``text`` block that follows a ``python`` block at once is what this block prints.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from console import BLOCK, run

PYTHON = re.compile(r"^(```python\n(.*?)^```\n)(\n```text\n.*?^```$)?", re.MULTILINE | re.DOTALL)


def refresh(page):
    """Give the text of a page with fresh output."""
    text = page.read_text(encoding="utf-8")
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        namespace = {"__name__": "__docs__"}
        blocks = BLOCK.findall(text)[1:]
        runs = iter(run(blocks, folder))
        for block in blocks:
            lines = []
            for line in block.splitlines():
                if line.startswith("$ "):
                    done = next(runs)
                    print(f"{done.code}  {done.command}", file=sys.stderr)
                    lines += [line, *([done.output] if done.output else [])]
            text = text.replace(block, "\n".join(lines) + "\n")
        text = PYTHON.sub(lambda found: _with_output(found, namespace), text)
        os.chdir(home)
    return text


def _with_output(found, namespace):
    """Run a Python block; renew its output where the page shows it."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(found[2], "page", "exec"), namespace)
    return found[1] + (f"\n```text\n{output.getvalue()}```" if found[3] else "")


for name in sys.argv[1:]:
    path = Path(name)
    path.write_text(refresh(path), encoding="utf-8")
