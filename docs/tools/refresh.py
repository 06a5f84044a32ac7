"""Renew the printed output and the picture of pages: ``python docs/tools/refresh.py docs/models/oct.md ...``.

The commands of a page's ``console`` blocks run in one temporary folder, the first block (the installation)
aside. A ``text`` block that follows a ``python`` block at once is what this block prints. A page of a model
leaves ``result`` and ``train``, which are drawn: how the tree cuts the plane where there are two features,
else the tree.
"""

import contextlib
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path

from mipforest.trees import plot_partition, save_figure, save_plot

sys.path.insert(0, str(Path(__file__).parent))
from console import BLOCK, run

DOCS = Path(__file__).parents[1]
PYTHON = re.compile(r"^(```python\n(.*?)^```\n)(\n```text\n.*?^```$)?", re.MULTILINE | re.DOTALL)

#: Pictures that a command of a page draws.
DRAWN = {"tutorial.md": "first.svg"}


def refresh(page):
    """Renew one page."""
    text = page.read_text(encoding="utf-8")
    picture = DOCS / "pictures" / f"{page.stem}.svg"
    namespace = {"__name__": "__docs__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = _with_console_output(text, folder)
        text = PYTHON.sub(lambda found: _with_output(found, namespace), text)
        if page.name in DRAWN:
            shutil.copy(DRAWN[page.name], picture)
    if page.parent.name == "models" and {"result", "train"} <= namespace.keys():
        _draw(namespace["result"].tree, namespace["train"], picture)
    page.write_text(text, encoding="utf-8")


def _with_console_output(text, folder):
    """Run the commands of a page and put in what they print."""
    blocks = BLOCK.findall(text)[1:]
    runs = iter(run(blocks, folder))
    for block in blocks:
        lines = []
        for line in block.splitlines():
            if line.startswith("$ "):
                done = next(runs)
                print(done.code, done.command)
                lines += [line, *([done.output] if done.output else [])]
        text = text.replace(block, "\n".join(lines) + "\n")
    return text


def _with_output(found, namespace):
    """Run a Python block; renew its output where the page shows it."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(found[2], "page", "exec"), namespace)
    return found[1] + (f"\n```text\n{output.getvalue()}```" if found[3] else "")


def _draw(tree, train, path):
    if train.p == 2:
        save_figure(plot_partition(tree, train.X_raw, train.y), path)
    else:
        save_plot(tree, path, train.X_raw, train.y, training=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name).resolve())
