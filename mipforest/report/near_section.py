"""The trees near the optimum: which there are, what they use, where they disagree, and the first of them drawn."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.formatting import number, percent
from mipforest.report.content import Content
from mipforest.report.markup import Part, description_list, element, section, short, table
from mipforest.trees import TreeSet
from mipforest.trees.plot import class_colours
from mipforest.trees.text import describe_split, format_number, leaf_text

#: Most trees that are drawn, features that are listed, and trees that are compared on samples.
MAX_DRAWN, MAX_FEATURES, MAX_COMPARED = 12, 20, 5_000

#: Samples on which the trees disagree most that are listed.
MAX_SAMPLES = 10

#: Width and height of a small picture, and the height of a level, in pixels.
_WIDTH, _LEVEL, _EDGE = 260, 46, 20

#: Longest name in a small picture.
_LONGEST = 16


def near_section(content: Content) -> list[Element]:
    """Show the trees near the optimum, where a run lists any."""
    trees = content.trees
    if trees is None or not len(trees):
        return []
    parts: list[Part] = [element("p", f"{trees.in_words()[0].upper()}{trees.in_words()[1:]}.")]
    fewest = trees.fewest_features()
    used = int(trees.uses()[fewest].sum())
    pairs: list[tuple[str, Part]] = [
        ("Objectives", f"{number(float(trees.objectives[0]))} to {number(float(trees.objectives[-1]))}"),
        ("Fewest features", f"tree {fewest + 1}, with {used} feature{'' if used == 1 else 's'}"),
    ]
    parts += [description_list(pairs), *_features(content, trees), *_disagreement(content, trees)]
    _, first, same = np.unique(trees.feature, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)[:MAX_DRAWN]
    drawn = [_figure(trees, int(first[k]), int(same[k])) for k in order]
    hidden = len(first) - len(drawn)
    text = "The best tree for each choice of features at the nodes; others of a choice differ in thresholds and labels."
    text += f" {hidden:,} more choices are not drawn." if hidden else ""
    parts += [element("h3", "Trees with different features"), element("p", text)]
    parts += [element("div", *drawn, class_="small")]
    return [section("Trees near the optimum", *parts, id_="near")]


def _compared(trees: TreeSet) -> tuple[TreeSet, str]:
    """Return the first trees, which are compared on samples, and how many these are where not all."""
    if len(trees) <= MAX_COMPARED:
        return trees, ""
    return trees.best(MAX_COMPARED), f" (of the first {MAX_COMPARED:,} trees)"


def _features(content: Content, trees: TreeSet) -> list[Part]:
    if content.samples is None:
        return []
    compared, which = _compared(trees)
    rows: list[list[Part]] = [
        [short(use.feature), percent(use.share), percent(use.least), percent(use.mean), percent(use.most)]
        for use in compared.feature_use(content.samples.train.X_raw)[:MAX_FEATURES]
    ]
    caption = (
        f"Features in most trees{which}: the share of trees that split on one, and the share of the training samples "
        "whose path has such a split"
    )
    return [table(["Feature", "Trees", "Samples: least", "mean", "most"], rows, caption)]


def _disagreement(content: Content, trees: TreeSet) -> list[Part]:
    if content.samples is None:
        return []
    compared, which = _compared(trees)
    apart = compared.disagreement(content.samples.train.X_raw)
    agree = float((apart == 0).reshape(len(apart), -1).all(axis=1).mean())
    said = f"On {percent(agree)} of the training samples all trees predict the same{which}."
    if trees.like.targets:  # of several units
        return [element("p", said)]
    worst = np.argsort(-apart, kind="stable")[:MAX_SAMPLES]
    worst = worst[apart[worst] > 0]
    is_class = trees.like.is_classifier
    rows: list[list[Part]] = [
        [f"{i + 1}", percent(float(apart[i])) if is_class else number(float(apart[i]))]
        for i in worst.tolist()
    ]
    measured = (
        "Trees against the most common prediction" if is_class else "Greatest prediction less the least"
    )
    shown = [table(["Sample (from 1)", measured], rows, "Where the trees disagree most")] if rows else []
    return [element("p", said), *shown]


# ---------------------------------------------------------------------- small pictures


def _figure(trees: TreeSet, i: int, same: int) -> Element:
    depth = trees.like.depth
    edges, nodes = list[Element](), list[Element]()
    _draw(trees, i, 0, edges, nodes)
    picture = element(
        "svg", *edges, *nodes, class_="tree", viewBox=f"0 0 {_WIDTH} {2 * _EDGE + depth * _LEVEL}", role="img",
        aria_label=_in_words(trees, i, 0),
    )  # fmt: skip
    caption = f"Tree {i + 1}, objective {number(float(trees.objectives[i]))}; {same:,} with these features"
    return element("figure", picture, element("figcaption", caption, class_="faint"))


def _draw(trees: TreeSet, i: int, node: int, edges: list[Element], nodes: list[Element]) -> None:
    x, y = _place(node)
    text, title, colour = _text(trees, i, node)
    lines = [element("text", text, x=x, y=y, font_size="11")]
    if colour is not None:
        lines.append(element("rect", x=x - 22, y=y + 9, width="44", height="4", fill=colour))
    nodes.append(element("g", element("title", title), *lines))
    for child in _children(trees, i, node):
        a, b = _place(child)
        path = f"M{x:.6g} {y + 8:.6g}L{a:.6g} {b - 10:.6g}"
        edges.append(element("path", d=path, stroke="currentColor", stroke_opacity="0.4", fill="none"))
        _draw(trees, i, child, edges, nodes)


def _place(node: int) -> tuple[float, float]:
    level = (node + 1).bit_length() - 1
    place = node + 1 - 2**level
    return _WIDTH * (place + 0.5) / 2**level, _EDGE + level * _LEVEL


def _children(trees: TreeSet, i: int, node: int) -> list[int]:
    branches = trees.feature.shape[1]
    return [2 * node + 1, 2 * node + 2] if node < branches and trees.feature[i, node] >= 0 else []


def _text(trees: TreeSet, i: int, node: int) -> tuple[str, str, str | None]:
    """Return the short text of a node, all of it, and its colour."""
    like, branches = trees.like, trees.feature.shape[1]
    if _children(trees, i, node):
        split = describe_split(trees[i], node)
        return _shortened(split.terms[0]), short(str(split)), None
    while node < branches:
        node = 2 * node + 2  # where a node does not split, all samples go right
    if like.targets:
        text = leaf_text(trees[i], node)
        return _shortened(text), text, None
    value: Any = trees.leaf_value[i, node - branches]
    if not like.is_classifier:
        return format_number(float(value)), format_number(float(value)), None
    name = like.classes[int(value)]
    return _shortened(name), short(name), class_colours(len(like.classes))[int(value)]


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _in_words(trees: TreeSet, i: int, node: int) -> str:
    """Describe a tree to whoever does not see it."""
    title = _text(trees, i, node)[1]
    children = _children(trees, i, node)
    if not children:
        return title
    no, yes = (_in_words(trees, i, child) for child in children)
    return f"{title}: if so ({yes}), else ({no})"
