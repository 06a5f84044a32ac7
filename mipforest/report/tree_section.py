"""The tree: as a picture, and in words."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from mipforest.report.confidence import node_confidence
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import Part, element, more, section, short
from mipforest.report.node_text import NodeTexts
from mipforest.report.tree_picture import tree_picture
from mipforest.trees.figure import class_colours
from mipforest.trees.live import LiveNode

_HELP = (
    "Drag or use the arrow keys to move, + and − to zoom, 0 to see all; the wheel zooms with Ctrl, or once the "
    "picture has been clicked. Tab goes from node to node."
)

#: Most classes that the legend names.
MOST_CLASSES = 40

_BUTTONS = (("in", "+", "Zoom in"), ("out", "−", "Zoom out"), ("fit", "Fit", "Show the whole tree"))


def tree_section(content: Content, fitted: FittedTree) -> Element:
    """Show the tree."""
    logistic = fitted.tree.logistic and content.samples is not None
    train = content.samples.train if logistic and content.samples is not None else None
    texts = NodeTexts(fitted, None if train is None else node_confidence(fitted.tree, train.X_raw))
    return section(
        "Tree",
        _introduction(fitted),
        *_legend(fitted),
        _viewer(fitted, texts),
        element("h3", "The tree in words", id="words"),
        element("ul", _entry(fitted.root, texts, ""), class_="words"),
        id_="tree",
    )


def _introduction(fitted: FittedTree) -> Element:
    tree = fitted.tree
    splits = sum(bool(node.children) for node in fitted.nodes)
    leaves = len(fitted.nodes) - splits
    counted = f"{splits} split{'' if splits == 1 else 's'}, {leaves} lea{'f' if leaves == 1 else 'ves'}"
    parts = [f"{counted}; all numbers are in original units."]
    parts.append("Samples that meet the condition of a split go right (yes), all others left (no).")
    if tree.is_oblique or tree.logistic:
        parts.append(
            "The influence of a feature on a split is its weight times its standard deviation over the training "
            "samples there: how far it moves the score, to the right if positive."
        )
    if tree.logistic:
        parts.append(
            "The score at the last split is the log-odds of the class on the right; the confidence of a split "
            "is the sigmoid of the score's size."
        )
    return element("p", " ".join(parts))


def _legend(fitted: FittedTree) -> list[Element]:
    classes = fitted.tree.classes
    items = [
        element(
            "li",
            element("svg", element("rect", width="14", height="14", fill=colour), viewBox="0 0 14 14"),
            f" {short(name)}",
        )
        for name, colour in list(zip(classes, class_colours(len(classes)), strict=True))[:MOST_CLASSES]
    ]
    hidden = len(classes) - len(items)
    rest = [element("li", f"and {hidden} more")] if hidden else []
    return [element("ul", *items, *rest, class_="legend", aria_label="Classes")] if items else []


def _viewer(fitted: FittedTree, texts: NodeTexts) -> Element:
    buttons = [
        element("button", sign, type="button", data_zoom=action, aria_label=label, title=label)
        for action, sign, label in _BUTTONS
    ]
    toolbar = element(
        "div", *buttons, class_="toolbar", role="toolbar", aria_label="Zoom", aria_controls="view"
    )
    frame = element(
        "div",
        tree_picture(fitted, texts),
        id="view",
        class_="frame",
        tabindex="0",
        role="region",
        aria_label="Picture of the tree",
        aria_describedby="help",
    )
    panel = element(
        "div", id="panel", class_="panel", tabindex="0", role="region", aria_live="polite", aria_label="Node"
    )
    return element(
        "div",
        element("div", toolbar, frame, element("p", _HELP, id="help", class_="faint scripted-only")),
        panel,
        class_="viewer",
    )


def _entry(node: LiveNode, texts: NodeTexts, answer: str) -> Element:
    """Write a node and all below it."""
    line: list[Part] = [element("span", f"{answer} ", class_="answer")] if answer else []
    line += [
        element("strong", f"n{node.number}"),
        f" {texts.headline(node)} ",
        element("span", f"[{texts.samples(node)}]", class_="faint"),
    ]
    parts: list[Part] = [element("p", *line), more(f"All about n{node.number}", texts.everything(node))]
    if node.children:
        below = [
            _entry(child, texts, f"{reply}:")
            for child, reply in zip(node.children, ("no", "yes"), strict=True)
        ]
        parts.append(element("ul", *below))
    return element("li", *parts, id=f"node-{node.number}", tabindex="-1")
