"""The page of ``mipforest explore`` in a browser: edits by mouse and keys, several tabs, narrow and dark."""

import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from explored import PATIENCE, built, ended
from tolerance import same

from mipforest.explore.server import ExploreServer

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from headless_browser import Browser, browser_path

pytestmark = pytest.mark.skipif(browser_path() is None, reason="there is no browser")

HOSTILE = ("<b>a</b>", "'\"><script>alert(1)</script>", "c" * 300)


@pytest.fixture
def opened(explorers, tmp_path):
    """Opens a page on a problem; returns browser, explorer and server."""
    running = []

    def make(problem, **features):
        explorer = explorers(problem)
        server = ExploreServer(explorer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = Browser(tmp_path)
        running.append((server, browser))
        browser.open(server.address, **features)
        until(browser, "document.querySelectorAll('a.node').length > 0")
        return browser, explorer, server

    yield make
    for server, browser in running:
        browser.close()
        server.shutdown()
        server.server_close()


def until(browser, condition):
    """Wait for a condition on the page."""
    end = time.monotonic() + PATIENCE
    while not browser.evaluate(condition):
        assert time.monotonic() < end, (condition, browser.text("body"))
        time.sleep(0.05)


def press(browser, words):
    """Press the button with some words."""
    found = f"[...document.querySelectorAll('button')].find((one) => one.textContent.includes({words!r}))"
    assert browser.evaluate(f"!!{found}"), (words, browser.text("body"))
    browser.evaluate(f"{found}.click()")


def choose(browser, k):
    click = "dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
    browser.evaluate(f"document.querySelectorAll('a.node')[{k}].{click}")


def proven(browser, edits):
    """Wait until the page shows a proven tree for a number of edits."""
    until(
        browser,
        f"document.querySelectorAll('#edits li').length === {edits} && "
        "document.getElementById('proof').textContent.startsWith('Proven')",
    )


def test_a_split_is_forbidden_pinned_and_taken_back(opened):
    browser, explorer, server = opened(built())
    choose(browser, 0)
    feature = ended(explorer)["nodes"][0]["feature"]
    press(browser, f"Not {feature} here")
    proven(browser, 1)
    state = ended(explorer)
    assert state["edits"][0]["words"] == f"node 0 does not use {feature}"
    assert state["nodes"][0]["feature"] != feature
    choose(browser, 0)
    press(browser, "Which other splits?")
    until(browser, "document.querySelectorAll('#answer td button').length > 0")
    press(browser, "Pin")
    proven(browser, 2)
    choose(browser, 0)
    press(browser, "Which other thresholds?")
    until(browser, "document.querySelectorAll('#answer circle').length > 1")
    pinned = ended(explorer)["edits"][1]["words"]
    circles = "[...document.querySelectorAll('#answer circle')]"
    labels = browser.evaluate(f"{circles}.map((one) => one.getAttribute('aria-label')).join('|')").split("|")
    k = next(k for k, one in enumerate(labels) if one.split(":")[0].split()[-1] not in pinned)
    browser.evaluate(f"{circles}[{k}].dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    second = "document.querySelectorAll('#edits li')[1].textContent"
    until(browser, f"{second} !== {pinned!r}")
    proven(browser, 2)  # it replaces the pin before
    press(browser, "Undo")
    until(browser, f"{second} === {pinned!r}")
    press(browser, "Redo")
    until(browser, f"{second} !== {pinned!r}")
    assert browser.complaints == []
    assert {one.split("/")[2] for one in browser.requests if one.startswith("http")} == {server.host}


def test_the_tree_is_written(opened):
    browser, explorer, _ = opened(built())
    ended(explorer)
    for form, words in (
        ("SQL", "CASE"),
        ("Python", "def predict"),
        ("Edits as options", "There are no edits"),
    ):
        press(browser, form)
        until(browser, f"document.getElementById('text').textContent.includes({words!r})")
    assert browser.complaints == []


@pytest.mark.slow
def test_it_is_used_by_keys_alone(opened):
    browser, explorer, _ = opened(built())
    for _ in range(12):
        browser.press("Tab")
        if browser.evaluate("document.activeElement.classList.contains('node')"):
            break
    browser.press("Enter")
    assert browser.evaluate("document.activeElement.id") == "panel"
    assert "Node 0" in browser.text("#node-title")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.textContent") == "Keep this split"
    browser.evaluate("document.activeElement.click()")
    proven(browser, 1)
    assert ended(explorer)["edits"][0]["words"].startswith("node 0 splits on")
    assert browser.accessibility_violations() == []


@pytest.mark.parametrize("features", [{"width": 390}, {"prefers_color_scheme": "dark"}])
def test_it_is_read_on_a_small_screen_and_in_the_dark(opened, features):
    browser, _, _ = opened(built(depth=3), **features)
    choose(browser, 0)
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.bad_boxes() == []
    assert browser.accessibility_violations() == []


def test_names_are_texts(opened):
    browser, explorer, _ = opened(built(names=HOSTILE))
    state = ended(explorer)
    k = next(k for k, one in enumerate(state["nodes"]) if one["feature"])
    choose(browser, k)
    press(browser, "nowhere")
    proven(browser, 1)
    assert (
        browser.evaluate("document.querySelectorAll('#tree script, #tree b, #panel b, #edits b').length") == 0
    )
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.complaints == []


@pytest.mark.slow
def test_two_tabs_show_the_same_edits(opened):
    browser, explorer, _ = opened(built())
    explorer.act("leaf", {"node": 1})  # as another tab does
    proven(browser, 1)
    assert "node 1 does not split" in browser.text("#edits")


@pytest.mark.slow
def test_a_server_that_is_stopped_is_told(opened):
    browser, _, server = opened(built())
    server.shutdown()
    server.server_close()
    until(browser, "document.getElementById('error').textContent.includes('does not answer')")


def test_a_leaf_gets_a_label_and_a_constraint_is_written(opened):
    browser, explorer, _ = opened(built())
    k = next(k for k, node in enumerate(ended(explorer)["nodes"]) if node["leaf"])
    choose(browser, k)
    press(browser, "Predicts 0")
    proven(browser, 1)
    assert "predicts 0" in browser.text("#edits")
    press(browser, "Undo")
    proven(browser, 0)
    for text, told in (("recall 1=95%", "recall 1=95%"), ("recall 7", "is not NAME=SHARE")):
        browser.evaluate(f"document.getElementById('limit-text').value = {text!r}")
        press(browser, "Add")
        until(browser, f"document.body.textContent.includes({told!r})")
    proven(browser, 1)
    assert ["422" in str(one) for one in browser.complaints] == [True]  # what was refused


@pytest.mark.slow
def test_near_trees_are_listed_and_loaded_and_predictions_shown(opened):
    browser, explorer, _ = opened(built())
    ended(explorer)
    browser.evaluate("document.getElementById('within').value = '20'")
    press(browser, "List")
    until(browser, "document.querySelectorAll('#trees tbody tr').length > 1")
    rows = "[...document.querySelectorAll('#trees tbody tr button')]"
    browser.evaluate(f"{rows}[{rows}.length - 1].click()")
    proven(browser, 1)
    assert "the splits are those of a tree on" in browser.text("#edits")
    assert browser.evaluate("document.querySelectorAll('#confusion tbody tr').length") == 2
    until(browser, "document.querySelectorAll('#groups tbody tr').length === 8")
    browser.evaluate(
        "const s = document.getElementById('column'); s.value = 'b'; s.dispatchEvent(new Event('change'))"
    )
    until(browser, "document.querySelector('#groups caption').textContent.endsWith('by b')")
    until(browser, "!document.getElementById('beside').hidden")
    browser.evaluate("document.getElementById('beside').open = true")
    assert browser.evaluate("document.querySelectorAll('#free svg').length") == 1
    assert browser.bad_boxes() == []
    assert browser.accessibility_violations() == []
    assert browser.complaints == []


@pytest.mark.slow
def test_a_threshold_is_dragged_along_its_curve(opened):
    browser, explorer, _ = opened(built())
    root = ended(explorer)["nodes"][0]
    choose(browser, 0)
    press(browser, "Which other thresholds?")
    until(browser, "document.querySelectorAll('#answer circle').length > 1")
    browser.evaluate("document.querySelector('svg.curve').scrollIntoView({block: 'center'})")
    x, y, width = (
        browser.evaluate(f"document.querySelector('svg.curve').getBoundingClientRect().{side}")
        for side in ("left", "top", "width")
    )
    for kind, share in (
        ("mousePressed", 0.5),
        ("mouseMoved", 0.3),
        ("mouseMoved", 0.16),
        ("mouseReleased", 0.16),
    ):
        browser.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x + share * width,
            y=y + 5,
            button="left",
            buttons=1,
            clickCount=1,
        )
    proven(browser, 1)
    words = ended(explorer)["edits"][0]["words"]
    assert words.startswith(f"node 0 splits on {root['feature']} >= ")
    least = min(one["threshold"] for one in explorer.curve({"node": 0, "feature": root["feature"]}))
    assert float(words.split()[-1]) == pytest.approx(least)


@pytest.mark.slow
def test_many_samples_are_edited(opened):
    browser, explorer, _ = opened(built(depth=3, n=20_000))
    ended(explorer)
    choose(browser, 0)
    press(browser, "No split here")
    proven(browser, 1)
    assert browser.complaints == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_a_scripted_session_shows_what_a_fresh_solve_finds(opened, seed):
    """Buttons pressed at random; the page shows the optimum of a solve with the same constraints."""
    rng = np.random.default_rng(seed)
    given = {"model": ["oct", "ort"][seed % 2], "depth": 2 + seed % 2}
    browser, explorer, _ = opened(built(**given))
    for _ in range(5):
        count = len(ended(explorer)["nodes"])
        choose(browser, int(rng.integers(count)))
        of_node = "#node .actions:first-of-type button, #undo, #redo"
        buttons = f"[...document.querySelectorAll('{of_node}')].filter((one) => !one.disabled)"
        if number := browser.evaluate(f"{buttons}.length"):
            answered = (
                "performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/edit')).length"
            )
            before = browser.evaluate(answered)
            browser.evaluate(f"{buttons}[{int(rng.integers(number))}].click()")
            until(browser, f"{answered} > {before}")
        if not ended(explorer)["nodes"]:
            explorer.act("undo", {})
        proven(browser, len(ended(explorer)["edits"]))
    state = ended(explorer)
    fresh = built(**given).with_only(explorer._session.constraints).solve("exact-search", gap=0.0)
    assert same(state["objective"], fresh.objective)
    until(browser, f"document.querySelectorAll('#edits li').length === {len(state['edits'])}")
    assert browser.complaints == []
