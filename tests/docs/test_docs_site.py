"""The documentation site: it builds without a warning, and its hooks do what they say."""

import json
import re
import subprocess
import sys
import time
from html import escape
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "hooks"))
sys.path.insert(0, str(ROOT / "tests" / "report"))

from headless_browser import Browser, browser_path  # noqa: E402

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


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if browser_path() is None:
        pytest.skip("no Chromium here")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


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
def test_the_search_works_from_the_disk(site, browser):
    browser.call("Emulation.setFocusEmulationEnabled", enabled=True)
    browser.open(site / "models" / "oct.html", width=1400)
    x, y = browser.middle("[data-md-component=search-query]")
    for kind in ("mousePressed", "mouseReleased"):
        browser.mouse(kind, x, y, button="left", clickCount=1)
    browser.call("Input.insertText", text="warm start")
    deadline = time.monotonic() + 30
    first = None
    while first is None and time.monotonic() < deadline:
        browser.press("ArrowRight")  # the page reads what was typed when a key goes up
        time.sleep(0.2)
        first = browser.evaluate("document.querySelector('.md-search-result__link')?.href")
    assert first is not None
    assert "starts.html" in first
    assert browser.complaints == []


@on_the_site
def test_no_table_is_wider_than_820_pixels(site, browser):
    wide = {}
    for page in sorted(site.rglob("*.html")):
        browser.open(page, width=1400)
        widths = browser.evaluate(
            "[...document.querySelectorAll('.md-typeset__scrollwrap table')].map((e) => e.scrollWidth)"
        )
        if max(widths, default=0) > 820:
            wide[page.name] = max(widths)
    assert not wide


@on_the_site
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_axe_finds_nothing_on_the_landing_page(site, browser, width, scheme):
    page = site / "index.html"
    browser.open(page)
    browser.evaluate("localStorage.clear(); 1")  # the site keeps the scheme of the first visit
    browser.open(page, width=width, prefers_color_scheme=scheme)
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.accessibility_violations() == []


@on_the_site
@pytest.mark.parametrize("width", [390, 700, 1000, 1400])
def test_no_text_is_squeezed_on_the_landing_page_and_that_of_models(site, browser, width):
    for page in ("index.html", "models/index.html"):
        browser.open(site / page, width=width)
        assert browser.bad_boxes() == [], page


def test_pictures_are_small():
    assert sum(file.stat().st_size for file in (ROOT / "docs" / "pictures").iterdir()) < 1_750_000


def test_the_navigation_has_at_most_35_entries():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    entries = text[text.index("\nnav:") : text.index("\nnot_in_nav:")]
    assert 20 <= entries.count(".md\n") <= 35


@pytest.mark.parametrize("folder", ["models", "benchmarks", "api"])
def test_an_index_links_every_page_of_its_folder(folder):
    text = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
    missing = [
        page.name
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
        if page.name != "index.md" and f"({page.name}" not in text
    ]
    assert not missing


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
