"""The Python code of the documentation runs as it stands, block after block."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__docs__"}
    for number, code in enumerate(blocks(page), 1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)


def test_pages_with_code_are_found():
    """Else the test above would hold for a pattern that matches nothing."""
    found = {page.stem for page in PAGES if blocks(page)}
    assert {"README", "index", "custom_constraints", "estimators", "tuning"} <= found
    assert sum(len(blocks(page)) for page in PAGES) >= 20
