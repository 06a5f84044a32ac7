"""The Python code of the documentation runs as it stands, block after block."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mipforest.problem.problem import Problem

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


#: Solves of a page end after so many seconds: what is shown and asserted holds of every verified tree, and the first
#: is there at once.
SECONDS = 0.2

#: Where it is not, on a machine under load, the solve is repeated and ends with its first tree, or after so many
#: seconds.
PATIENCE = 60.0

#: Pages that assert an optimum: their solves have the time that the page gives them, and need little of it.
SOLVED_TO_THE_END = {"near_optimum", "write_a_leaf_loss", "write_a_loss"}


#: Pages of many solves: what they show has tests of its own (test_certificates, test_custom_constraints, and the
#: folders estimators and tuning).
HEAVY = {"certificates", "custom_constraints", "estimators", "tuning"}


@pytest.fixture
def short_solves(page, monkeypatch):
    if page.stem in SOLVED_TO_THE_END:
        return
    solve = Problem.solve

    def solve_briefly(self, *args, time_limit=SECONDS, settings=None, **options):
        def within(seconds, **others):
            if settings is None:
                return solve(self, *args, time_limit=seconds, **options | others)
            return solve(self, *args, settings=replace(settings, time_limit=seconds), **options | others)

        result = within(SECONDS if settings is not None else min(SECONDS, time_limit))
        if result.tree is None:
            result = within(PATIENCE, on_progress=lambda event: math.isfinite(event.objective))
        return result

    monkeypatch.setattr(Problem, "solve", solve_briefly)


@pytest.mark.usefixtures("short_solves", "few_penalties")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.stem in HEAVY else [], id=page.stem)
        for page in PAGES
        if blocks(page)
    ],
)
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
