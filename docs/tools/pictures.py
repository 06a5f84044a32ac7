"""Draw the pictures of the model pages: ``python docs/tools/pictures.py [docs/models/oct.md ...]``.

The Python blocks of a page run as they stand. They leave ``result`` and ``train``, which are drawn: how the
tree cuts the plane where there are two features, else the tree.
"""

import os
import sys
import tempfile
from pathlib import Path

from mipforest.trees import plot_partition, save_figure, save_plot

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from test_docs import blocks


def draw(page):
    """Draw the picture of one page."""
    namespace = {"__name__": "__docs__"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for code in blocks(page):
            exec(compile(code, str(page), "exec"), namespace)
        os.chdir(ROOT)
    result, train = namespace["result"], namespace["train"]
    path = ROOT / "docs" / "pictures" / f"{page.stem}.svg"
    if train.p == 2:
        save_figure(plot_partition(result.tree, train.X_raw, train.y), path)
    else:
        save_plot(result.tree, path, train.X_raw, train.y)
    print(path.name, result.status, result.objective, f"{result.solution.seconds:.1f} s")


pages = [Path(name).resolve() for name in sys.argv[1:]] or sorted((ROOT / "docs" / "models").glob("*.md"))
for one in pages:
    if blocks(one):
        draw(one)
