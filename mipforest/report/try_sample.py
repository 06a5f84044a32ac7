"""Fields to type a sample into, and what the page's script needs to answer: nodes, chances of leaves, points."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.data import Encoding
from mipforest.data.encoding import Column
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import LONGEST, Part, element, short, visible
from mipforest.report.node_text import MOST_WEIGHTS
from mipforest.runs import SavedCard
from mipforest.trees import RandomizedTree
from mipforest.trees.reachable import ReachableNode

#: Most columns that a reader is asked for, and most levels to choose from, all columns together.
MOST_FIELDS = 100
MOST_LEVELS = 1000

_WAY = "Type values in original units: the way of the sample is marked in the picture, and its prediction shown here."
_LIKELIER = (
    " The marked way goes to the likelier side of each split; the prediction is the mean over all leaves."
)
_POINTS = (
    "Type values in original units: the points that apply, their total and its risk are shown here, and the total is "
    "marked in the table above."
)
_ASKED = " Only columns that are read are asked for."
_TYPICAL = " To begin with, every field holds the median or the most frequent value of the training samples."


def node_rules(fitted: FittedTree) -> dict[int, str] | None:
    """Return what each node does with a sample, as JSON for an attribute; ``None`` if it is too much for a page.

    A rule has ``terms``, one ``[feature, weight, offset, scale]`` for each weight that is not 0, and the constant
    ``b``: with them the script computes scores as :meth:`Tree.scores <mipforest.trees.tree.Tree.scores>` does,
    scaling included, so that a sample close to a split takes the same side. A split also has the numbers of the nodes
    to the left (``no``) and right (``yes``). A leaf has ``terms`` if it is linear, ``score`` if the last branch
    node above it has no split but tells the log-odds, and ``outcomes`` if it prescribes: per treatment its name,
    terms and constant.
    """
    rules = {node.number: json.dumps(_rule(fitted, node)) for node in fitted.nodes}
    terms = sum(np.count_nonzero(fitted.tree.w[node.number]) for node in fitted.nodes if node.children)
    too_long = terms > MOST_WEIGHTS or any(len(rule) > LONGEST for rule in rules.values())
    return None if too_long else rules


def _rule(fitted: FittedTree, node: ReachableNode) -> dict[str, object]:
    tree = fitted.tree
    if node.left is not None and node.right is not None:
        t = node.number
        ways = {"no": node.left.number, "yes": node.right.number}
        return {"terms": _terms(fitted, tree.w[t]), "b": float(tree.b[t]), **ways}
    leaf = node.number - tree.topology.n_branches
    if tree.leaf_w is not None:
        return {"terms": _terms(fitted, tree.leaf_w[leaf]), "b": float(tree.leaf_value[leaf])}
    if tree.outcomes is not None:
        slopes = (
            [[]] * len(tree.classes)
            if tree.outcome_w is None
            else map(partial(_terms, fitted), tree.outcome_w[leaf])
        )
        names = (visible(short(name)) for name in tree.classes)
        return {"outcomes": list(zip(names, slopes, tree.outcomes[leaf].tolist(), strict=True))}
    return {"score": float(tree.b[node.passed[-1]])} if tree.logistic and node.passed else {}


def _terms(fitted: FittedTree, w: FloatArray) -> list[list[float]]:
    offset, scale = fitted.tree.offset, fitted.tree.scale
    return [
        [int(j), float(w[j])]
        + ([0.0, 1.0] if offset is None or scale is None else [float(offset[j]), float(scale[j])])
        for j in np.flatnonzero(w)
    ]


def _chances(fitted: FittedTree, X: FloatArray | None) -> str | None:
    """Return all splits and leaves of a randomised tree, as JSON for an attribute; ``None`` for other trees.

    A leaf has the probabilities of its classes, or ``terms`` and ``b`` of its value. ``means`` of the training samples
    are what contributions are compared with.
    """
    tree = fitted.tree
    if not isinstance(tree, RandomizedTree):
        return None
    leaves: list[dict[str, object]] = []
    for k in range(tree.topology.n_leaves):
        if tree.leaf_proba is not None:
            leaves.append({"classes": tree.leaf_proba[k].tolist()})
        else:
            terms = [] if tree.leaf_w is None else _terms(fitted, tree.leaf_w[k])
            leaves.append({"terms": terms, "b": float(tree.leaf_value[k])})
    return json.dumps(
        {
            "gamma": tree.gamma,
            "splits": [
                {"terms": _terms(fitted, w), "b": float(b)} for w, b in zip(tree.w, tree.b, strict=True)
            ],
            "leaves": leaves,
            "classes": [visible(short(name)) for name in tree.classes],
            "means": None if X is None else X.mean(axis=0).tolist(),
        }
    )


def try_sample(content: Content, fitted: FittedTree) -> list[Element]:
    """Return the fields, and the place of the answer; nothing where no sample can be typed.

    Raises
    ------
    ValueError
        If the columns are not those of the tree.
    """
    encoding, tree = content.encoding, fitted.tree
    if encoding is None or not fitted.root.children:
        return []
    if len(encoding.features) != tree.n_features:
        raise ValueError(f"{len(encoding.features)} features of columns, {tree.n_features} of the tree")
    chances = _chances(fitted, None if content.samples is None else content.samples.train.X_raw)
    if node_rules(fitted) is None or (chances is not None and len(chances) > LONGEST):
        return []
    help_ = _WAY + (_LIKELIER if chances else "")
    logistic = "yes" if tree.logistic else None
    return _asked(content, encoding, _reads(fitted), help_, logistic=logistic, chances=chances)


def try_card(content: Content, saved: SavedCard) -> list[Element]:
    """Return the fields for a score card, and the place of the answer; nothing where no sample can be typed.

    Raises
    ------
    ValueError
        If the columns are not those of the card.
    """
    card, encoding = saved.card, content.encoding
    if encoding is None:
        return []
    if len(encoding.features) != card.p:
        raise ValueError(f"{len(encoding.features)} features of columns, {card.p} of the card")
    rules = [
        [rule.feature, rule.threshold, rule.below, int(rule.points), visible(card.rule_text(k))]
        for k, rule in enumerate(card.rules)
    ]
    points = json.dumps(
        {"rules": rules, "intercept": card.intercept, "outcome": visible(short(card.outcome))}
    )
    reads = np.zeros(card.p, dtype=np.bool_)
    reads[[rule.feature for rule in card.rules]] = True
    return [] if len(points) > LONGEST else _asked(content, encoding, reads, _POINTS, points=points)


def _asked(
    content: Content, encoding: Encoding, reads: BoolArray, help_: str, **told: str | None
) -> list[Element]:
    """Return the fields of the features that are read, and the place of the answer with what the script is told."""
    X = None if content.samples is None else content.samples.train.X_raw
    asked = [(column, first) for column, first in _columns(encoding) if reads[_features(column, first)].any()]
    levels = sum(len(column.levels or ()) for column, _ in asked)
    if not 0 < len(asked) <= MOST_FIELDS or levels > MOST_LEVELS:
        return []
    fields = [_field(column, first, k, X) for k, (column, first) in enumerate(asked)]
    data = {f"data_{name}": value for name, value in told.items()}
    answer = element("div", id="answer", class_="answer-box", role="status", **data)
    return [
        element(
            "div",
            element("h3", "Try a sample", id="try"),
            element("p", help_ + _ASKED + ("" if X is None else _TYPICAL)),
            element("div", *fields, class_="fields", role="group", aria_labelledby="try"),
            answer,
            class_="try scripted-only",
        )
    ]


def _columns(encoding: Encoding) -> Iterator[tuple[Column, int]]:
    """Iterate over the columns, each with the number of its first feature."""
    first = 0
    for column in encoding.columns:
        yield column, first
        first += len(column.features)


def _features(column: Column, first: int) -> slice:
    return slice(first, first + len(column.features))


def _reads(fitted: FittedTree) -> BoolArray:
    """Return (p,) which features the splits and leaves that samples reach read."""
    tree, inner = fitted.tree, fitted.tree.topology.n_branches
    everywhere = isinstance(tree, RandomizedTree)
    splits = [node.number for node in fitted.nodes if node.children]
    leaves = [node.number - inner for node in fitted.nodes if not node.children]
    reads = np.asarray((tree.w if everywhere else tree.w[splits]).any(axis=0), dtype=np.bool_)
    if tree.leaf_w is not None:
        reads |= (tree.leaf_w if everywhere else tree.leaf_w[leaves]).any(axis=0)
    if tree.outcome_w is not None:
        reads |= tree.outcome_w[leaves].any(axis=(0, 1))
    return reads


def _field(column: Column, first: int, k: int, X: FloatArray | None) -> Element:
    """Return the field of a column; without samples it begins without a value."""
    values = None if X is None else X[:, _features(column, first)]
    name = {"id": f"try-{k}", "data_feature": str(first)}
    if column.levels is None:
        typical = None if values is None else _written(np.sort(values[:, 0])[(len(values) - 1) // 2])
        # What fills gaps is a value of the column, a field one of its feature.
        fill = None if column.fill is None else _written(float(column.fill) - column.base)
        field = element(
            "input",
            **name,
            type="number",
            step="any",
            value=typical,
            data_fill=fill,
            placeholder="missing" if fill is None else f"missing, counts as {fill}",
        )
        label = column.features[0]
    else:
        field = element("select", *_options(column, values), **name, data_count=str(len(column.features)))
        label = column.name
    return element("div", element("label", short(label), for_=f"try-{k}"), field, class_="field")


def _options(column: Column, values: FloatArray | None) -> list[Element]:
    """Return the levels of a column to choose from; each names the feature that it switches on, if any."""
    levels = column.levels or ()
    skipped = len(levels) - len(column.told)
    chosen = None
    if values is not None:
        counts = values.sum(axis=0)
        chosen = int(np.argmax(np.append([len(values) - counts.sum()], counts) if skipped else counts))

    def option(text: Part, level: int | None, **attributes: str | None) -> Element:
        on = "" if level is None or level < skipped else str(level - skipped)
        return element("option", text, data_on=on, **attributes)

    fill = levels.index(str(column.fill)) if column.fill is not None else None
    missing = (
        element("option", "missing", data_missing="yes")
        if fill is None
        else option(f"missing, counts as {short(levels[fill])}", fill)
    )
    named = [
        option(short(level), k, selected="selected" if k == chosen else None)
        for k, level in enumerate(levels)
    ]
    return [missing, *named, option("none of these (as with --unseen none)", None)]


def _written(value: float) -> str:
    """Write a number so that a browser reads the same one."""
    return repr(float(value)).removesuffix(".0")
