"""The page in a real browser: what moves, what is shown, and that nothing breaks or leaves the page."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from tolerance import at_most

from mipforest.runs import read_run

VIEW = "document.querySelector('svg.tree').getAttribute('viewBox').split(' ').map(Number)"
SHOWN = "document.querySelector('.node.shown').dataset.node"


@pytest.fixture
def opened(browser, page_of, tmp_path):
    """Open the page of a run."""

    def open_page(run, **options):
        path = tmp_path / "page.html"
        path.write_bytes(page_of(run))
        browser.open(path, **options)
        return browser

    return open_page


def width(browser):
    return browser.evaluate(VIEW)[2]


def wait_for(browser, expression):
    """Wait for what an event handler does; the protocol answers when the event is sent."""
    deadline = time.monotonic() + 5
    while not browser.evaluate(expression):
        assert time.monotonic() < deadline, expression
        time.sleep(0.02)


@pytest.mark.first_cases(6)
def test_nothing_complains_and_nothing_is_fetched(opened, any_run):
    browser = opened(any_run)
    assert browser.complaints == []
    assert len(browser.requests) == 1
    assert browser.evaluate("document.title").endswith("mipforest report")
    assert not browser.evaluate("document.querySelectorAll('script, img, iframe, object').length > 1")


def test_the_policy_of_the_page_forbids_connections(opened, classes_run):
    browser = opened(classes_run)
    browser.evaluate("fetch('data:text/plain,x').catch(() => { window.refused = true; }); 1")
    wait_for(browser, "window.refused === true")
    browser.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<b onclick=\"window.ran = true\" id=b>b</b>')"
    )
    browser.evaluate("document.getElementById('b').click()")
    assert browser.evaluate("window.ran") is None


def test_pointing_at_a_node_shows_all_about_it(opened, classes_run):
    browser = opened(classes_run)
    assert "n0, split" in browser.text("#panel")
    x, y = browser.middle(".node[data-node='1']")
    browser.mouse("mouseMoved", x, y)
    wait_for(browser, f"{SHOWN} === '1'")
    shown = browser.text("#panel")
    assert "n1, " in shown
    assert "Training samples" in shown
    assert "Share" in shown


def test_nodes_take_the_focus_and_show_themselves(opened, deep_run):
    browser = opened(deep_run)
    browser.evaluate("document.getElementById('view').focus()")
    for _ in range(6):
        browser.press("Tab")
    focused = browser.evaluate("document.activeElement.dataset.node")
    wait_for(browser, f"{SHOWN} === '{focused}'")
    assert f"n{focused}, " in browser.text("#panel")
    frame, node = (
        browser.evaluate(
            f"(() => {{ const b = {what}.getBoundingClientRect(); return [b.left, b.right]; }})()"
        )
        for what in ("document.getElementById('view')", "document.activeElement")
    )
    assert at_most(frame[0], node[0])
    assert at_most(node[1], frame[1])


def test_keys_zoom_and_move(opened, deep_run):
    browser = opened(deep_run)
    browser.evaluate("document.getElementById('view').focus()")
    before = browser.evaluate(VIEW)
    browser.press("+")
    wait_for(browser, f"{VIEW}[2] < {before[2]} * 0.9")
    browser.press("ArrowRight")
    wait_for(browser, f"{VIEW}[0] > {before[0]}")
    browser.press("-")
    wait_for(browser, f"Math.abs({VIEW}[2] - {before[2]}) < 0.01 * {before[2]}")
    browser.press("0")
    wait_for(browser, f"{VIEW}[2] > 2 * {before[2]}")


def test_buttons_and_wheel_zoom(opened, classes_run):
    browser = opened(classes_run)
    start = width(browser)
    x, y = browser.middle("[data-zoom='in']")
    for kind in ("mousePressed", "mouseReleased"):
        browser.mouse(kind, x, y, button="left", clickCount=1)
    wait_for(browser, f"{VIEW}[2] < {start} * 0.9")
    nearer = width(browser)
    x, y = browser.middle("#view")
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
    time.sleep(0.2)
    assert width(browser) == nearer, "without Ctrl, the wheel scrolls the page"
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
    wait_for(browser, f"{VIEW}[2] < {nearer} * 0.99")


def test_the_picture_can_be_dragged(opened, classes_run):
    browser = opened(classes_run)
    left = browser.evaluate(VIEW)[0]
    x, y = browser.middle("#view")
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    for step in (20, 60):
        browser.mouse("mouseMoved", x - step, y, button="left")
    browser.mouse("mouseReleased", x - 60, y, button="left", clickCount=1)
    wait_for(browser, f"{VIEW}[0] > {left} + 20")


def test_all_can_be_read_without_scripts(opened, classes_run):
    browser = opened(classes_run, scripts=False)
    assert browser.complaints == []
    assert not browser.evaluate("document.documentElement.classList.contains('scripted')")
    assert browser.evaluate("getComputedStyle(document.querySelector('.toolbar')).display") == "none"
    words = browser.text("#words + ul")
    assert "n0" in words
    assert "predicts" in words
    x, y = browser.middle("#node-0 > details > summary")
    for kind in ("mousePressed", "mouseReleased"):
        browser.mouse(kind, x, y, button="left", clickCount=1)
    wait_for(browser, "document.querySelector('#node-0 > details').open")
    assert "Goes right (yes) where" in browser.text("#node-0 > details")


@pytest.mark.parametrize("kind", ["classes", "deep", "values", "infeasible"])
@pytest.mark.parametrize("scripts", [True, False])
def test_no_page_is_wider_than_a_telephone(opened, request, kind, scripts):
    browser = opened(request.getfixturevalue(f"{kind}_run"), scripts=scripts, width=360, height=640)
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


#: Contrast of every text with what lies behind it, by the formula of WCAG 2; shades are laid over one another.
_CONTRAST = """(() => {
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return [...n.slice(0, 3), n[3] ?? 1]; };
  const over = (top, low) => low.map((c, k) => top[k] * top[3] + c * (1 - top[3]));
  const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const share = [0.2126, 0.7152, 0.0722];
  const light = (c) => share.reduce((sum, part, k) => sum + part * linear(c[k] / 255), 0);
  const contrast = (c, d) => (Math.max(light(c), light(d)) + 0.05) / (Math.min(light(c), light(d)) + 0.05);
  let worst = 99;
  for (const node of document.querySelectorAll(".node")) {
    const fill = (e) => [...parse(getComputedStyle(e).fill).slice(0, 3), Number(getComputedStyle(e).fillOpacity)];
    const boxes = [...node.querySelectorAll(".ground, .leaf")].map(fill);
    const ground = boxes.reduce((low, top) => over(top, low), [255, 255, 255]);
    for (const text of node.querySelectorAll("text")) worst = Math.min(worst, contrast(fill(text), ground));
  }
  for (const e of document.querySelectorAll("body *:not(script):not(svg *)")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
    const chain = [];
    for (let p = e; p; p = p.parentElement) chain.unshift(parse(getComputedStyle(p).backgroundColor));
    const ground = chain.reduce((low, top) => over(top, low), [255, 255, 255]);
    worst = Math.min(worst, contrast(parse(getComputedStyle(e).color), ground));
  }
  return worst;
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_texts_stand_out_from_what_is_behind_them(opened, request, kind, scheme):
    browser = opened(request.getfixturevalue(f"{kind}_run"), prefers_color_scheme=scheme)
    dark = browser.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    assert browser.evaluate(_CONTRAST) >= 4.5


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["classes", "values", "levels", "card", "treatment"])
def test_axe_finds_nothing(opened, request, kind, scheme):
    browser = opened(request.getfixturevalue(f"{kind}_run"), prefers_color_scheme=scheme)
    assert browser.accessibility_violations() == []


def test_the_page_can_be_printed(opened, classes_run):
    browser = opened(classes_run)
    browser.press("+")
    assert browser.printed().startswith(b"%PDF")
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("getComputedStyle(document.querySelector('.toolbar')).display") == "none"
    assert browser.evaluate("document.querySelector('#all-0').getClientRects().length") > 0
    browser.call("Emulation.setEmulatedMedia", media="")


def test_a_score_card_is_printed_on_one_page(opened, card_run):
    browser = opened(card_run)
    pages = browser.printed().split(b"/Type /Page")
    assert sum(not page.startswith(b"s") for page in pages[1:]) == 1
    browser.call("Emulation.setEmulatedMedia", media="print")
    tried = "getComputedStyle(document.querySelector('tr.tried')).outlineStyle"
    assert browser.evaluate(tried) == "none"
    assert browser.evaluate("document.querySelector('#try').getClientRects().length") == 0
    browser.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("kind", ["card", "classes"])
def test_what_is_predicted_comes_before_the_numbers_of_the_solver(opened, request, kind):
    browser = opened(request.getfixturevalue(f"{kind}_run"), width=390, height=844)
    order = browser.evaluate("[...document.querySelectorAll('main > section > h2')].map((e) => e.id)")
    assert order[0] == {"card": "card", "classes": "tree"}[kind]  # exact: names
    assert order.index("quality") < order.index("numbers") < order.index("progress")
    assert browser.evaluate("document.querySelector('main').getBoundingClientRect().top") < 844
    if kind == "card":
        assert browser.text("h1").startswith("Risk of ")


def test_the_way_to_a_node_stands_out(opened, classes_run):
    browser = opened(classes_run)
    browser.evaluate("document.querySelector(\".node[data-node='5'], .node[data-node='2']\").focus()")
    wait_for(browser, f"{SHOWN} !== '0'")
    shown = browser.evaluate(SHOWN)
    way = {"5": ["0", "2", "5"], "2": ["0", "2"]}[shown]
    passed = "[...document.querySelectorAll('{}.passed')].map((part) => part.dataset.node).sort()"
    assert browser.evaluate(passed.format(".node")) == way  # exact: a text
    assert browser.evaluate(passed.format(".edges path")) == way[1:]  # exact: a text


#: Type a sample, and read off leaf and answer, many times in one call.
_TRY = """((samples) => samples.map((sample) => {
  for (const [name, value] of Object.entries(sample)) {
    const fields = [...document.querySelectorAll(".field")].filter((f) => f.innerText.startsWith(name));
    const field = fields[0]?.querySelector("input, select");
    if (!field) continue;
    if (field.options) field.selectedIndex = [...field.options].findIndex((o) => o.text.startsWith(value || "missing"));
    else field.value = value;
    field.dispatchEvent(new Event("input"));
  }
  const way = [...document.querySelectorAll(".node.tried")].map((node) => Number(node.dataset.node));
  const shown = document.querySelector(".node.shown")?.dataset.node;
  return [Math.max(...way), document.getElementById("answer").innerText, shown];
}))"""


def tried(browser, frame):
    """Leaf, answer and node shown of each row, typed into the page."""
    rows = [
        {name: "" if pd.isna(value) else str(value) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    return browser.evaluate(f"{_TRY}({json.dumps(rows)})")


@pytest.mark.parametrize("kind", ["levels", "parts", "logistic", "values"])
def test_a_sample_that_is_typed_goes_where_the_tree_sends_it(opened, request, kind):
    run = request.getfixturevalue(f"{kind}_run")
    saved = read_run(run).saved
    frame = pd.read_csv(next(run.parent.glob("*.csv"))).drop(columns=saved.target).head(40)
    found = tried(opened(run), frame)
    X = saved.encoding.encode(frame)
    assert [leaf for leaf, _, _ in found] == saved.tree.apply(X).tolist()
    assert [int(shown) for _, _, shown in found] == saved.tree.apply(X).tolist()
    answers = [answer for _, answer, _ in found]
    if kind == "values":
        said = [float(answer.rsplit(" ", 1)[1]) for answer in answers]
        np.testing.assert_allclose(said, saved.predict(frame), rtol=1e-5)
    else:
        assert all(name in text for name, text in zip(saved.tree.predict_labels(X), answers, strict=True))
    if kind == "logistic":
        shares = saved.predict_proba(frame).max(axis=1)
        assert all(f"{100 * share:.1f}%" in text for share, text in zip(shares, answers, strict=True))


@pytest.mark.parametrize("kind", ["chances", "means"])
def test_a_sample_that_is_typed_is_predicted_by_all_leaves_of_a_randomised_tree(opened, request, kind):
    run = request.getfixturevalue(f"{kind}_run")
    saved = read_run(run).saved
    frame = pd.read_csv(next(run.parent.glob("*.csv"))).drop(columns=saved.target).head(20)
    answers = [answer for _, answer, _ in tried(opened(run), frame)]
    X = saved.encoding.encode(frame)
    reached = saved.tree.leaf_probabilities(X)
    for text, shares in zip(answers, reached, strict=True):
        assert f"Leaves: n{3 + shares.argmax()} {100 * shares.max():.1f}%" in text
    right = saved.tree.leaf_probabilities(X)[:, 2:].sum(axis=1)
    assert all(f"{100 * share:.1f}% to the right" in text for share, text in zip(right, answers, strict=True))
    if kind == "chances":
        for text, name in zip(answers, saved.tree.predict_labels(X), strict=True):
            assert f"Predicted class: {name}" in text
        for text, share in zip(answers, saved.predict_proba(frame).max(axis=1), strict=True):
            assert f" {100 * share:.1f}%" in text.partition("Probabilities: ")[2].partition("\n")[0]
    else:
        said = [float(text.partition("Predicted value: ")[2].partition("\n")[0]) for text in answers]
        np.testing.assert_allclose(said, saved.predict(frame), rtol=1e-5)


def _typed_into(opened, run):
    """What was found of some samples of a run, by the page; the table and its features."""
    saved = read_run(run).saved
    frame = pd.read_csv(next(run.parent.glob("*.csv"))).drop(columns=saved.target).head(12)
    return [answer for _, answer, _ in tried(opened(run), frame)], frame, saved


def test_a_sample_that_is_typed_gets_its_points_and_its_risk(opened, card_run):
    answers, frame, saved = _typed_into(opened, card_run)
    totals = saved.card.totals(saved.encoding.encode(frame))
    risks = saved.predict_proba(frame)[:, 1]
    for answer, total, risk in zip(answers, totals, risks, strict=True):
        assert f"Total: {total}" in answer
        assert answer.endswith(f": {100 * risk:.1f}%")
    marked = opened(card_run).text(".risks tr.tried th")
    assert f"Total: {marked}" in opened(card_run).text("#answer")


def test_a_sample_that_is_typed_has_an_outcome_under_each_treatment(opened, treatment_run):
    answers, frame, saved = _typed_into(opened, treatment_run)
    said = [
        [float(line.rsplit(" ", 1)[1]) for line in a.splitlines() if line.startswith("Est")] for a in answers
    ]
    np.testing.assert_allclose(said, saved.predict_outcomes(frame), rtol=1e-5)


def test_a_sample_without_a_value_ends_where_the_tree_needs_it(opened, classes_run):
    browser = opened(classes_run)
    assert browser.complaints == []
    assert browser.evaluate("document.querySelectorAll('.tried').length") == 0
    browser.evaluate(
        "for (const field of document.querySelectorAll('.field input')) {"
        " field.value = ''; field.dispatchEvent(new Event('input')); } 1"
    )
    assert "The way ends at n0" in browser.text("#answer")
    assert browser.evaluate("document.querySelectorAll('.node.tried').length") == 1


def test_a_level_that_training_did_not_have_is_none_of_its_levels(opened, levels_run):
    saved = read_run(levels_run).saved
    frame = pd.DataFrame(
        {saved.encoding.columns[0].name: [30.0], "city": ["none of these"], "smoker": ["yes"]}
    )
    (found,) = tried(opened(levels_run), frame)
    assert found[0] == saved.tree.apply(saved.encoding.encode(frame, unseen="none"))[0]
