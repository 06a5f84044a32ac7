"""What a reader wants to know first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element

from mipforest.formatting import duration, number, percent
from mipforest.report.content import Content
from mipforest.report.markup import element, short
from mipforest.report.values import plain
from mipforest.runs import status_in_words


def heading(result: Mapping[str, Any]) -> str:
    """Give the title of the page."""
    return f"{short(plain(result['model']))} on {short(plain(result['data']['name']))}"


def overview(content: Content) -> Element:
    """Give title, outcome and the most important numbers."""
    result = content.result
    data = result["data"]
    line = (
        f"Optimal decision tree of depth {plain(result['depth'])}, model {short(plain(result['model']))} (variant "
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
    if result["gap"] is not None:
        found.append(("Gap", percent(result["gap"])))
    for part, words in (("train", "training"), ("test", "test")):
        if result.get(f"{part}_accuracy") is not None:
            found.append((f"Accuracy, {words}", percent(result[f"{part}_accuracy"])))
        if result.get(f"{part}_r2") is not None:
            found.append((f"R², {words}", number(result[f"{part}_r2"])))
    if result["objective"] is not None:
        found.append(("Features used", f"{len(result['features_used'])} of {plain(result['data']['p'])}"))
    return [*found, ("Time to solve", duration(result["seconds"]))]


def _without_tree(content: Content) -> list[Element]:
    if content.fitted is not None:
        return []
    text = (
        "This run has no tree: its solver ended without a solution. The sections below tell what was asked and "
        "what the solver found out."
    )
    return [element("p", text, class_="notice", role="note")]
