"""Elements of a page. All text and all attributes are escaped when the page is written; there is no other way in."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

#: Longest text or attribute of one element. What stands in a changed file cannot blow the page up.
LONGEST = 20_000

#: Longest name, of a feature, a class or a file, that is written out.
LONGEST_NAME = 160

#: A part of an element: text, or an element of its own.
Part = str | Element


def element(tag: str, *parts: Part, **attributes: str | float | None) -> Element:
    """Make an element.

    Parameters
    ----------
    tag
        Its name.
    parts
        Text and elements inside, in order.
    attributes
        By name, with ``_`` for ``-``, and a ``_`` at the end of names that Python reserves (``class_``);
        ``None`` leaves one out.
    """
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            made.set(name.rstrip("_").replace("_", "-"), _written(value))
    for part in parts:
        if isinstance(part, Element):
            made.append(part)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + visible(part)
        else:
            made.text = (made.text or "") + visible(part)
    return made


def verbatim(tag: str, text: str) -> Element:
    """Make a ``script`` or ``style`` element, whose text a browser takes as it is: never a text of a run."""
    made = Element(tag)
    made.text = text
    return made


def document(root: Element) -> bytes:
    """Write a page."""
    return ("<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n").encode()


def visible(text: str) -> str:
    r"""Show characters that do not print as ``\u202e``: they could turn, hide or cut the text behind them."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in cut)


def short(name: str) -> str:
    """Shorten a very long name by leaving out its middle."""
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def table(head: list[Part], rows: list[list[Part]], caption: str = "", class_: str | None = None) -> Element:
    """Make a table, the first cell of each row its header, in a frame that scrolls if it is too wide."""
    made = element("table", class_=class_)
    if caption:
        made.append(element("caption", caption))
    made.append(element("thead", element("tr", *(element("th", part, scope="col") for part in head))))
    body = element("tbody")
    for first, *rest in rows:
        body.append(element("tr", element("th", first, scope="row"), *(_cell(part) for part in rest)))
    made.append(body)
    return element("div", made, class_="wide", tabindex="0", role="group", aria_label=caption or "table")


def description_list(pairs: list[tuple[str, Part]]) -> Element:
    """Make a description list: names, each with its description."""
    rows = [element("div", element("dt", name), element("dd", part)) for name, part in pairs]
    return element("dl", *rows)


def section(title: str, *parts: Part, id_: str) -> Element:
    """Make a section with a heading."""
    return element("section", element("h2", title, id=id_), *parts, aria_labelledby=id_)


def details(summary: str, *parts: Part, class_: str | None = None) -> Element:
    """Put parts behind a summary that opens them."""
    return element("details", element("summary", summary), *parts, class_=class_)


def _cell(part: Part) -> Element:
    return part if isinstance(part, Element) and part.tag == "td" else element("td", part)


def _written(value: str | float) -> str:
    return visible(value) if isinstance(value, str) else f"{value:.6g}"
