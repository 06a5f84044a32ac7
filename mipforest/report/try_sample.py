"""Fields to type a sample into, and at every node what the page's script needs to send the sample on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Encoding
from mipforest.data.encoding import Column
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import LONGEST, Part, element, short
from mipforest.report.node_text import MOST_WEIGHTS
from mipforest.trees import RandomizedTree
from mipforest.trees.reachable import ReachableNode

#: Most columns that a reader is asked for, and most levels to choose from, all columns together.
MOST_FIELDS = 100
MOST_LEVELS = 1000

_HELP = (
    "Type values in original units: the way of the sample is marked in the picture, and its prediction shown here. "
    "Only columns that the tree reads are asked for."
)
_LIKELIER = (
    " The marked way goes to the likelier side of each split; the prediction is the mean over all leaves."
)
_TYPICAL = " To begin with, every field holds the median or the most frequent value of the training samples."


def node_rules(fitted: FittedTree) -> dict[int, str] | None:
    """Return what each node does with a sample, as JSON for an attribute; ``None`` if it is too much for a page.

    A rule has ``terms``, one ``[feature, weight, offset, scale]`` for each weight that is not 0, and the constant
    ``b``: with them the script computes scores as :meth:`Tree.scores <mipforest.trees.tree.Tree.scores>` does,
    scaling included, so that a sample close to a split takes the same side. A split also has the numbers of the nodes
    to the left (``no``) and right (``yes``). A leaf has ``terms`` if it is linear, and ``score`` if the last branch
    node above it has no split but tells the log-odds.
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
            "classes": [short(name) for name in tree.classes],
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
    encoding = content.encoding
    if encoding is None or not fitted.root.children:
        return []
    if len(encoding.features) != fitted.tree.n_features:
        raise ValueError(
            f"{len(encoding.features)} features of columns, {fitted.tree.n_features} of the tree"
        )
    X = None if content.samples is None else content.samples.train.X_raw
    read = [(column, first) for column, first in _columns(encoding) if _is_read(fitted, column, first)]
    levels = sum(len(column.levels or ()) for column, _ in read)
    if not 0 < len(read) <= MOST_FIELDS or levels > MOST_LEVELS or node_rules(fitted) is None:
        return []
    chances = _chances(fitted, X)
    if chances is not None and len(chances) > LONGEST:
        return []
    fields = [_field(column, first, k, X) for k, (column, first) in enumerate(read)]
    answer = element(
        "div",
        id="answer",
        class_="answer-box",
        role="status",
        data_logistic="yes" if fitted.tree.logistic else None,
        data_chances=chances,
    )
    return [
        element(
            "div",
            element("h3", "Try a sample", id="try"),
            element("p", _HELP + (_LIKELIER if chances else "") + ("" if X is None else _TYPICAL)),
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


def _is_read(fitted: FittedTree, column: Column, first: int) -> bool:
    tree, features = fitted.tree, slice(first, first + len(column.features))
    if isinstance(tree, RandomizedTree):  # all of its leaves count, wherever the likelier sides lead
        return bool(tree.w[:, features].any() or (tree.leaf_w is not None and tree.leaf_w[:, features].any()))
    inner = tree.topology.n_branches
    return any(
        tree.w[node.number, features].any()
        if node.children
        else tree.leaf_w is not None and tree.leaf_w[node.number - inner, features].any()
        for node in fitted.nodes
    )


def _field(column: Column, first: int, k: int, X: FloatArray | None) -> Element:
    """Return the field of a column; without samples it begins without a value."""
    values = None if X is None else X[:, first : first + len(column.features)]
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
