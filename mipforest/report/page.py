"""The page."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.report.content import Content
from mipforest.report.features import features_section
from mipforest.report.markup import document, element, verbatim
from mipforest.report.overview import heading, overview
from mipforest.report.progress import progress_section
from mipforest.report.provenance import (
    reported_section,
    reproduction_section,
    solve_section,
    verification_section,
)
from mipforest.report.quality import quality_section
from mipforest.report.tree_section import tree_section

_TITLES = {
    "tree": "Tree",
    "features": "Features",
    "quality": "Quality",
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
        else [tree_section(content, fitted), features_section(fitted), quality_section(content, fitted)]
    )
    return [
        *of_tree,
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
