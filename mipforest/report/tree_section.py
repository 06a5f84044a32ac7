"""The tree as a picture, whose boxes are links, and in words, and the features that each of its levels uses."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from xml.etree.ElementTree import Element

import numpy as np
from scipy.special import expit

from mipforest.arrays import FloatArray, IntArray
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import Part, details, element, section, short, table
from mipforest.report.node_text import NodeTexts
from mipforest.report.try_sample import node_rules, try_sample
from mipforest.trees import RandomizedTree, Tree
from mipforest.trees.plot import (
    BAR_GAP,
    BAR_HEIGHT,
    FAINT,
    PADDING,
    PALE,
    Line,
    NodeBox,
    Sizes,
    class_colours,
    line_height,
    node_box,
    place,
)
from mipforest.trees.reachable import ReachableNode

_HELP = (
    "Drag or use the arrow keys to move, + and − to zoom, 0 to see all; the wheel zooms with Ctrl, or once the "
    "picture has been clicked. Tab goes from node to node."
)

#: Most classes that the legend names.
MOST_CLASSES = 40

_BUTTONS = (("in", "+", "Zoom in"), ("out", "−", "Zoom out"), ("fit", "Fit", "Fit the whole tree"))

#: Most features that the table lists.
MOST_FEATURES = 60

#: Shades of a cell, the first one none.
SHADES = 10


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
        *try_sample(content, fitted),
        element("h3", "The tree in words", id="words"),
        element("ul", _entry(fitted.root, texts, "", node_rules(fitted) or {}), class_="words"),
        id_="tree",
    )


def _introduction(fitted: FittedTree) -> Element:
    tree = fitted.tree
    splits = sum(bool(node.children) for node in fitted.nodes)
    leaves = len(fitted.nodes) - splits
    counted = f"{splits} split{'' if splits == 1 else 's'}, {leaves} lea{'f' if leaves == 1 else 'ves'}"
    parts = [f"{counted}; all numbers are in original units."]
    likelier = "most likely " if isinstance(tree, RandomizedTree) else ""
    parts.append(
        f"Samples that meet the condition of a split {likelier}go right (yes), all others left (no)."
    )
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


def _entry(node: ReachableNode, texts: NodeTexts, answer: str, rules: Mapping[int, str]) -> Element:
    """Write a node and all below it."""
    line: list[Part] = [element("span", f"{answer} ", class_="answer")] if answer else []
    line += [
        element("strong", f"n{node.number}"),
        " ",
        element("span", texts.headline(node), class_="says"),
        " ",
        element("span", f"[{texts.samples(node)}]", class_="faint"),
    ]
    parts: list[Part] = [element("p", *line), details(f"All about n{node.number}", texts.everything(node))]
    if node.children:
        below = [
            _entry(child, texts, f"{reply}:", rules)
            for child, reply in zip(node.children, ("no", "yes"), strict=True)
        ]
        parts.append(element("ul", *below))
    return element("li", *parts, id=f"node-{node.number}", tabindex="-1", data_rule=rules.get(node.number))


def node_confidence(tree: Tree, X: FloatArray) -> FloatArray:
    """Return the (n_nodes,) mean confidence at each node of a logistic tree; NaN where no sample passes.

    At a branch node, the sigmoid of the score's size, as in :meth:`Tree.path_confidences
    <mipforest.trees.tree.Tree.path_confidences>`; at a leaf, the probability of the class that it predicts.

    Parameters
    ----------
    tree
        A logistic tree.
    X
        (n, p) samples in original units.
    """
    passed, inner = tree.decision_path(X), tree.topology.n_branches
    of_split, of_class = expit(np.abs(tree.scores(X))), tree.predict_proba(X).max(axis=1)
    found = np.full(passed.shape[1], np.nan)
    for node in np.flatnonzero(passed.any(axis=0)):
        here = passed[:, node]
        found[node] = (of_split[here, node] if node < inner else of_class[here]).mean()
    return found


def features_section(fitted: FittedTree) -> Element:
    """Count the splits of each level, and the linear leaves, that use each feature."""
    counts, nodes, names = uses_by_level(fitted)
    used = np.flatnonzero(counts.sum(axis=0))
    order = used[np.argsort(-counts[:, used].sum(axis=0), kind="stable")]
    if len(order) == 0:
        return section("Features by level", element("p", "The tree uses no feature."), id_="features")
    rows: list[list[Part]] = [
        [
            short(fitted.tree.feature_names[j]),
            *(
                shaded(str(count) if count else "·", count / n)
                for count, n in zip(counts[:, j], nodes, strict=True)
            ),
        ]
        for j in order[:MOST_FEATURES]
    ]
    heads: list[Part] = ["Feature", *(f"{name} ({n})" for name, n in zip(names, nodes, strict=True))]
    hidden = len(order) - len(rows)
    rest = [element("p", f"{hidden} more features are used less.", class_="faint")] if hidden else []
    text = (
        f"{len(order)} of {fitted.tree.n_features} features are used. A number says how many splits of the level "
        "use the feature; in brackets, how many splits there are."
    )
    caption = "Splits that use each feature, by level"
    return section(
        "Features by level", element("p", text), table(heads, rows, caption, "shaded"), *rest, id_="features"
    )


def shaded(text: str, share: float) -> Element:
    """Return a cell whose shade grows with a share between 0 and 1."""
    shade = int(np.ceil((SHADES - 1) * share)) if np.isfinite(share) else 0
    return element("td", text, class_=f"shade-{shade}")


def uses_by_level(fitted: FittedTree) -> tuple[IntArray, list[int], list[str]]:
    """Return (levels, p) uses, and nodes and name of each level; only nodes that a sample can reach count."""
    tree = fitted.tree
    counts, nodes, names = [], [], []
    for level in range(tree.depth):
        splits = [
            node.number
            for node in fitted.nodes
            if node.children and tree.topology.level(node.number) == level
        ]
        if splits:
            counts.append(np.count_nonzero(tree.w[splits], axis=0))
            nodes.append(len(splits))
            names.append(f"Level {level}")
    if tree.leaf_w is not None:
        leaves = [node.number - tree.topology.n_branches for node in fitted.nodes if not node.children]
        counts.append(np.count_nonzero(tree.leaf_w[leaves], axis=0))
        nodes.append(len(leaves))
        names.append("Linear leaves")
    return np.array(counts, dtype=np.int64).reshape(-1, tree.n_features), nodes, names


#: Pixels per inch, the unit of boxes and layout, and per point, the unit of letters.
INCH = 96
POINT = 96 / 72

#: Free space around the tree, in pixels.
MARGIN = 16

#: Terms of an oblique split or a linear leaf that a box shows.
SHOWN_TERMS = 3


def tree_picture(fitted: FittedTree, texts: NodeTexts) -> Element:
    """Draw the tree."""
    with warnings.catch_warnings():
        # Letters that the font for measuring lacks get a usual width; the browser has fonts of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        boxes = {
            node.number: node_box(fitted.tree, node, fitted.statistics, SHOWN_TERMS) for node in fitted.nodes
        }
        sizes = {number: (box.width, box.height) for number, box in boxes.items()}
    return _Picture(fitted, texts, boxes, sizes).drawn()


class _Picture:
    """Draws boxes and the edges between them."""

    def __init__(self, fitted: FittedTree, texts: NodeTexts, boxes: dict[int, NodeBox], sizes: Sizes) -> None:
        self.fitted, self.texts, self.boxes, self.sizes = fitted, texts, boxes, sizes
        self.layout = place(fitted.root, sizes)
        self.colours = class_colours(len(fitted.tree.classes))

    def drawn(self) -> Element:
        width, height = (2 * MARGIN + INCH * size for size in (self.layout.width, self.layout.height))
        edges = [
            part
            for node in self.fitted.nodes
            for child, answer in zip(node.children, ("no", "yes"), strict=False)
            for part in self._edge(node, child, answer)
        ]
        return element(
            "svg",
            element("g", *edges, class_="edges", aria_hidden="true"),
            *(self._box(node) for node in self.fitted.nodes),
            viewBox=f"0 0 {width:.0f} {height:.0f}",
            width=f"{width:.0f}",
            height=f"{height:.0f}",
            class_="tree",
            role="group",
            aria_label=f"Decision tree, {len(self.fitted.nodes)} nodes",
        )

    def _x(self, node: int) -> float:
        return MARGIN + INCH * self.layout.centre[node]

    def _y(self, node: int) -> float:
        return MARGIN + INCH * (self.layout.height - self.layout.top[node])

    def _edge(self, parent: ReachableNode, child: ReachableNode, answer: str) -> list[Element]:
        x, y = self._x(parent.number), self._y(parent.number) + INCH * self.sizes[parent.number][1]
        to_x, to_y = self._x(child.number), self._y(child.number)
        # The answer stands just above the child's level, where edges to different children are well apart.
        share = 1 - 20 / (to_y - y)
        at_x, at_y = x + share * (to_x - x), to_y - 20
        return [
            element("path", d=f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}", data_node=str(child.number)),
            element("rect", x=f"{at_x - 14:.1f}", y=f"{at_y - 8:.1f}", width="28", height="16", class_="gap"),
            element("text", answer, x=f"{at_x:.1f}", y=f"{at_y:.1f}"),
        ]

    def _box(self, node: ReachableNode) -> Element:
        box = self.boxes[node.number]
        width, height = (INCH * length for length in self.sizes[node.number])
        left, top = self._x(node.number) - width / 2, self._y(node.number)
        outline = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
        shapes = [element("rect", **outline, rx="6", class_="ground")]
        if not node.children:
            shapes.append(element("rect", **outline, rx="6", class_="leaf", fill=box.edge, stroke=box.edge))
        y = top + INCH * PADDING
        shapes += self._lines(box.lines, y, node.number)
        y += INCH * sum(line_height(line.points) for line in box.lines)
        if box.bar:
            shapes += self._bar(box, left + INCH * PADDING, y + INCH * BAR_GAP, width - 2 * INCH * PADDING)
            y += INCH * (BAR_HEIGHT + 2 * BAR_GAP)
        shapes += self._lines(box.footer, y, node.number)
        kind = "split" if node.children else "leaf"
        label = f"n{node.number}, {kind}: {self.texts.headline(node)}; {self.texts.samples(node)}"
        return element(
            "a",
            element("g", *shapes, role="img", aria_label=label),
            href=f"#node-{node.number}",
            class_="node",
            data_node=str(node.number),
        )

    def _lines(self, lines: tuple[Line, ...], y: float, node: int) -> list[Element]:
        parts = []
        for line in lines:
            height = INCH * line_height(line.points)
            parts.append(
                element(
                    "text",
                    line.text,
                    x=f"{self._x(node):.1f}",
                    y=f"{y + height / 2:.1f}",
                    font_size=f"{line.points * POINT:.2f}",
                    font_weight=None if line.weight == "normal" else line.weight,
                    class_="faint" if line.colour in (FAINT, PALE) else None,
                )
            )
            y += height
        return parts

    def _bar(self, box: NodeBox, left: float, top: float, width: float) -> list[Element]:
        parts = []
        for share, colour in zip(box.bar, self.colours, strict=True):
            if share > 0:
                size = {"width": f"{share * width:.2f}", "height": f"{INCH * BAR_HEIGHT:.2f}"}
                parts.append(
                    element("rect", x=f"{left:.2f}", y=f"{top:.2f}", **size, fill=colour, class_="bar")
                )
            left += share * width
        return parts
