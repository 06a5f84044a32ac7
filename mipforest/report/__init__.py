"""A run as one HTML page that needs nothing else: no network, no other files, and no scripts to be read.

The page has what a reader wants to know first, a navigation, and all sections.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.formatting import duration, number, percent
from mipforest.problem.result import status_in_words
from mipforest.report.card_section import card_sections
from mipforest.report.chart import progress_section
from mipforest.report.content import Content, content_of
from mipforest.report.markup import document, element, plain, short, verbatim
from mipforest.report.provenance import (
    reported_section,
    reproduction_section,
    solve_section,
    verification_section,
)
from mipforest.report.quality import quality_section, tuning_section
from mipforest.report.randomized import randomized_section
from mipforest.report.tree_section import features_section, tree_section
from mipforest.solvers.solution import gap_in_words

__all__ = ["Content", "content_of", "report_page"]

_TITLES = {
    "tree": "Tree",
    "probabilities": "Probabilities",
    "intervals": "Intervals",
    "explanation": "Local explanation",
    "card": "Score card",
    "features": "Features",
    "quality": "Quality",
    "tuning": "Tuning",
    "progress": "Progress",
    "verification": "Verification",
    "reported": "Reported",
    "solve": "Model and solver",
    "reproduce": "Reproduce",
}


def report_page(content: Content) -> bytes:
    """Write the page of a run; the same run and samples give the same bytes.

    The page forbids itself every connection; of styles and scripts it allows the two that it brings. Without
    scripts, the tree can be read as a list, and its picture scrolled.

    Parameters
    ----------
    content
        What to show.

    Raises
    ------
    LookupError, TypeError, ValueError, AttributeError, OverflowError
        If ``result.json`` is not as ``mipforest solve`` writes it.
    """
    # Numbers in a changed file may be too large for sums of them; they are shown as they come out.
    with np.errstate(over="ignore", invalid="ignore"):
        sections = _sections(content)
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        overview(content),
        _navigation(sections),
        element("main", *sections, id="content"),
    )
    style, script = _asset("page.css"), _asset("page.js")
    body.append(verbatim("script", script))
    return document(element("html", _head(content, style, script), body, lang="en"))


def _sections(content: Content) -> list[Element]:
    result, fitted = content.result, content.fitted
    of_tree = (
        []
        if fitted is None
        else [
            tree_section(content, fitted),
            *randomized_section(content, fitted),
            features_section(fitted),
            quality_section(content, fitted),
        ]
    )
    of_card = [] if content.card is None else card_sections(content, content.card)
    return [
        *of_tree,
        *of_card,
        *tuning_section(content),
        progress_section(result),
        verification_section(result),
        *reported_section(result),
        solve_section(result),
        reproduction_section(result),
    ]


def _navigation(sections: list[Element]) -> Element:
    names = [section.get("aria-labelledby", "") for section in sections]
    links = [element("li", element("a", _TITLES[name], href=f"#{name}")) for name in names]
    return element("nav", element("ul", *links), aria_label="Sections")


def _head(content: Content, style: str, script: str) -> Element:
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{heading(content.result)} – mipforest report"),
        verbatim("style", style),
    )


def _asset(name: str) -> str:
    return files("mipforest.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def heading(result: Mapping[str, Any]) -> str:
    """Return the title of the page."""
    return f"{short(plain(result['model']))} on {short(plain(result['data']['name']))}"


def overview(content: Content) -> Element:
    """Return title, outcome and the most important numbers."""
    result = content.result
    data = result["data"]
    what = f"Decision tree of depth {plain(result['depth'])}"
    if result.get("finds"):
        what = short(plain(result["finds"])).capitalize()
    line = (
        f"{what}, model {short(plain(result['model']))} (variant "
        f"{short(plain(result['variant']))}), {plain(data['n'])} training samples, {plain(data['p'])} features."
    )
    tiles = [
        element("div", element("dt", name), element("dd", value), class_="tile")
        for name, value in _numbers(result)
    ]
    return element(
        "header",
        element("p", "mipforest report", class_="faint"),
        element("h1", heading(result)),
        element("p", line),
        element("p", *_verdict(result), class_="verdict"),
        element("dl", *tiles, class_="tiles"),
        *(element("p", gap, class_="notice", role="note") for gap in content.gaps),
        *_without_tree(content),
    )


def _verdict(result: Mapping[str, Any]) -> list[Element]:
    status = element("span", status_in_words(result), class_="badge")
    if result["objective"] is None:
        return [status]
    if result["verified"] is True:
        return [status, element("span", "✓ verified", class_="badge good")]
    return [status, element("span", "✗ not verified", class_="badge bad")]


def _numbers(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [
        (name, number(result[key]))
        for name, key in (("Objective", "objective"), ("Bound", "bound"))
        if result[key] is not None
    ]
    if None not in (result["gap"], result["objective"], result["bound"]):
        found.append(("Gap", gap_in_words(result["objective"], result["bound"])))
    for part, words in (("train", "training"), ("test", "test")):
        if result.get(f"{part}_accuracy") is not None:
            found.append((f"Accuracy, {words}", percent(result[f"{part}_accuracy"])))
        if result.get("finds") and result.get(f"{part}_auc") is not None:
            found.append((f"AUC, {words}", number(result[f"{part}_auc"])))
        if result.get(f"{part}_prescribed_outcome") is not None:
            found.append((f"Outcome prescribed, {words}", number(result[f"{part}_prescribed_outcome"])))
        if result.get(f"{part}_r2") is not None:
            found.append((f"R², {words}", number(result[f"{part}_r2"])))
    if result["objective"] is not None:
        found.append(("Features used", f"{len(result['features_used'])} of {plain(result['data']['p'])}"))
    return [*found, ("Time to solve", duration(result["seconds"]))]


def _without_tree(content: Content) -> list[Element]:
    if content.fitted is not None or content.card is not None:
        return []
    text = (
        "This run has no tree: its solver ended without a solution. The sections below say what was asked and "
        "what the solver found out."
    )
    return [element("p", text, class_="notice", role="note")]
