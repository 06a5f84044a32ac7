"""The documentation site: it builds without a warning, and its hooks do what they say."""

import json
import re
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "hooks"))

pytest.importorskip("mkdocs")

#: Commands of LaTeX that a formula would leave on a page where it was not recognised.
LATEX = re.compile(r"\\(?:sum|quad|le|ge|min|max|xi|alpha|text|frac|tfrac)\b")


#: The checks before a release build the same site, also with ``--strict``; what its pages show is looked at less often.
on_the_site = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def text_of(site, page):
    return (site / page).read_text(encoding="utf-8")


@on_the_site
def test_every_registered_model_has_its_table_on_its_page(site):
    from model_tables import PAGES

    from mipforest.problem.parameters import parameters_of
    from mipforest.problem.registry import formulation_classes

    ours = {name for name, cls in formulation_classes().items() if cls.__module__.startswith("formulations")}
    assert ours == PAGES.keys()
    for name, page in PAGES.items():
        shown = text_of(site, f"models/{page}.html")
        for parameter in parameters_of(formulation_classes()[name]).values():
            assert f"<code>{parameter.name}</code>" in shown
            assert escape(parameter.help.split(",")[0], quote=False) in shown


@on_the_site
def test_the_command_reference_has_every_command_and_option(site):
    from typer.main import get_command

    from mipforest.cli.main import app

    shown = text_of(site, "command_reference.html")

    def check(command, path):
        assert " ".join(path) in shown
        for name, inner in getattr(command, "commands", {}).items():
            if not inner.hidden:
                check(inner, [*path, name])
        if not hasattr(command, "commands"):
            for parameter in command.params:
                if parameter.param_type_name == "option":
                    assert parameter.opts[0] in shown

    check(get_command(app), ["mipforest"])


@on_the_site
def test_formulas_are_mathml_and_nothing_comes_from_the_network(site):
    assert "<math" in text_of(site, "models/margot.html")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "arithmatex" not in text, page
        assert not LATEX.search(text), (page, LATEX.search(text))
        assert 'src="http' not in text, page
        assert '<link rel="stylesheet" href="http' not in text, page


@on_the_site
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("warm start", "starts.html"),
        ("categorical", "estimators.html"),
        ("Jupyter", "estimators.html"),
        ("GridSearchCV", "estimators.html"),
    ],
)
def test_a_search_for_a_topic_finds_its_page(site, words, page):
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].split("#")[0] for entry in index["docs"] if words in entry["text"]}
    assert page in found


@on_the_site
def test_no_markup_of_docstrings_is_left(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for mark in (":class:", ":func:", ":meth:", ":mod:", ":attr:", ":math:", ".. math"):
            assert mark not in text, (page, mark)


def test_docstrings_become_markdown():
    from docstrings import to_markdown

    roles = "See :func:`~mipforest.solving.solve` and :meth:`build`::\n\n    code\n\n"
    text = f"{roles}.. math::\n\n    a & b \\\\\n    & c\n\nEnd."
    assert to_markdown(text) == (
        'See <autoref identifier="mipforest.solving.solve" optional><code>solve</code></autoref> and `build`:\n\n'
        "    code\n\n\\[\\begin{align*} a & b \\\\ & c \\end{align*}\\]\n\nEnd."
    )
    items = to_markdown("- one\n  more\n\n  .. math:: a\n\n- two\n\nEnd.")
    assert items == "- one\n    more\n\n    \\[a\\]\n\n- two\n\nEnd."
    table = "===  =====\na    b\n===  =====\n1    2\n     and 3\n===  ====="
    assert to_markdown(table) == "| a | b |\n| --- | --- |\n| 1 | 2 and 3 |"
