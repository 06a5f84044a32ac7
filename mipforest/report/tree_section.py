"""The tree of a run on its page: its picture, whose boxes are links, every node in words, and the features it uses.

Fields to type a sample into, with what the page's script needs to answer, serve trees and score cards.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Encoding
from mipforest.data.encoding import Column
from mipforest.formatting import number, percent
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import (
    LONGEST,
    Part,
    description_list,
    details,
    element,
    section,
    short,
    table,
    visible,
)
from mipforest.runs import SavedCard
from mipforest.special import expit
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
from mipforest.trees.text import SplitText, describe_split, format_number, leaf_text, vector_text

#: Most rows of weights on a page, all nodes together, and on the page of a deep tree, of one node.
MAX_WEIGHTS = 20_000
FEWEST_WEIGHTS = 12

#: Significant digits of weights and thresholds.
DIGITS = 6

#: Most classes that a node lists, those of most samples first, and that the legend names.
MAX_CLASSES = 40


@dataclass(frozen=True, eq=False)
class NodeTexts:
    """Writes nodes.

    Attributes
    ----------
    fitted
        The tree.
    confidence
        (n_nodes,) mean confidence at each node of a logistic tree, or ``None``.
    """

    fitted: FittedTree
    confidence: FloatArray | None

    def headline(self, node: ReachableNode) -> str:
        """Return one line on a node: its split, or what it predicts."""
        tree = self.fitted.tree
        if node.children:
            return self._split(node.number, digits=4, max_terms=3)
        return (
            f"{'prescribes' if tree.prescribes else 'predicts'} {leaf_text(tree, node.number, max_terms=3)}"
        )

    def samples(self, node: ReachableNode) -> str:
        """Return the number of samples, their classes or their mean."""
        statistics, t = self.fitted.statistics, node.number
        n = int(statistics.samples[t])
        count = f"{n} sample{'' if n == 1 else 's'}"
        if n and statistics.class_counts is not None:
            present = [f"{short(self._class(k))} {statistics.class_counts[t, k]}" for k in self._classes(t)]
            return f"{count}: {', '.join(present)}"
        if n and statistics.mean is not None:
            return f"{count}, mean {number(float(statistics.mean[t]))}"
        return count

    def everything(self, node: ReachableNode) -> Element:
        """Return everything known of a node."""
        parts: list[Part] = [description_list(self._descriptions(node))]
        if self.fitted.tree.targets and not node.children:
            said = vector_text(self.fitted.tree, node.number, DIGITS)
            rows: list[list[Part]] = [[short(name), value] for name, value in said]
            parts.append(table(["Target", "Prediction"], rows, f"Predictions of the leaf n{node.number}"))
        if self.fitted.statistics.class_counts is not None and self.fitted.statistics.samples[node.number]:
            parts.append(self._class_table(node.number))
        parts += self._weights(node)
        return element("div", *parts, id=f"all-{node.number}", class_="all")

    def _descriptions(self, node: ReachableNode) -> list[tuple[str, Part]]:
        t = node.number
        found: list[tuple[str, Part]] = [("Node", f"n{t}, {'split' if node.children else 'leaf'}")]
        found += [("Before it", f"n{above} has no split: all pass") for above in node.passed]
        if node.children:
            full = self._split(t, digits=DIGITS, max_terms=self._max_weights)
            found.append(("Goes right (yes) where", element("code", full)))
        else:
            found.append(
                ("Prescribes" if self.fitted.tree.prescribes else "Predicts", self._prediction(node))
            )
        n, whole = int(self.fitted.statistics.samples[t]), int(self.fitted.statistics.samples[0])
        found.append(("Training samples", f"{n} ({percent(n / whole)} of all)" if whole else "0"))
        return [*found, *self._target_descriptions(t), *self._confidence_descriptions(node)]

    def _split(self, t: int, *, digits: int, max_terms: int) -> str:
        """Return a split, its terms in the order of the picture: by influence, where it is known."""
        known = self.fitted.statistics.influence
        influence = known[t] if known is not None and known[t].any() else None
        tree = self.fitted.tree
        return _condition(describe_split(tree, t, digits=digits, max_terms=max_terms, influence=influence))

    def _prediction(self, node: ReachableNode) -> Part:
        text = leaf_text(self.fitted.tree, node.number, max_terms=self._max_weights)
        return element("code" if self.fitted.tree.has_linear_leaves else "strong", text)

    def _target_descriptions(self, t: int) -> list[tuple[str, Part]]:
        """Return mean and errors of a regression."""
        statistics = self.fitted.statistics
        named = (
            ("Mean target", statistics.mean),
            ("MSE", statistics.mse),
            ("MAE", statistics.mae),
            ("R²", statistics.r2),
        )
        return [(name, number(float(values[t]))) for name, values in named if values is not None]

    def _confidence_descriptions(self, node: ReachableNode) -> list[tuple[str, Part]]:
        if self.confidence is None:
            return []
        name = "Mean confidence" if node.children else "Mean probability of that class"
        return [(name, percent(float(self.confidence[node.number])))]

    def _class_table(self, t: int) -> Element:
        counts = self.fitted.statistics.class_counts
        assert counts is not None
        rows: list[list[Part]] = [
            [self._class(k), str(counts[t, k]), percent(float(counts[t, k] / counts[t].sum()))]
            for k in self._classes(t)
        ]
        kind = ("Treatment", "Treatments") if self.fitted.tree.prescribes else ("Class", "Classes")
        return table([kind[0], "Samples", "Share"], rows, f"{kind[1]} of the training samples at n{t}")

    def _weights(self, node: ReachableNode) -> list[Part]:
        """Return the table of weights or coefficients; no table if the line above says it all."""
        tree, statistics = self.fitted.tree, self.fitted.statistics
        if node.children:
            t = node.number
            influence = None if statistics.influence is None else statistics.influence[t]
            if influence is None and np.count_nonzero(tree.w[t]) < 2:
                return []
            return self._table(
                f"Weights of the split n{t}", tree.w[t], tree.original_units()[0][t], influence
            )
        if tree.leaf_w is None:
            return []
        leaf = node.number - tree.topology.n_branches
        original = tree.leaves_in_original_units()[0][leaf]
        return self._table(f"Coefficients of the leaf n{node.number}", tree.leaf_w[leaf], original)

    def _table(
        self, caption: str, scaled: FloatArray, original: FloatArray, influence: FloatArray | None = None
    ) -> list[Part]:
        """Return a table of (p,) weights, the largest of scaled features first."""
        columns = [original, scaled, *([] if influence is None else [influence])]
        head: list[Part] = [
            "Feature",
            "Weight in original units",
            "Weight of the scaled feature",
            "Influence",
        ]
        order = np.argsort(-np.abs(scaled), kind="stable")[: np.count_nonzero(scaled)]
        rows: list[list[Part]] = [
            [
                self.fitted.tree.feature_names[j],
                *(format_number(float(column[j]), DIGITS) for column in columns),
            ]
            for j in order[: self._max_weights]
        ]
        hidden = len(order) - len(rows)
        rest = [element("p", f"{hidden} smaller ones are left out.", class_="faint")] if hidden else []
        return [table(head[: len(columns) + 1], rows, caption), *rest]

    @property
    def _max_weights(self) -> int:
        return max(FEWEST_WEIGHTS, MAX_WEIGHTS // len(self.fitted.statistics.samples))

    def _classes(self, t: int) -> list[int]:
        """Return the numbers of the classes at a node; if there are very many, of the most frequent ones."""
        counts = self.fitted.statistics.class_counts
        assert counts is not None
        present = np.flatnonzero(counts[t])
        if len(present) > MAX_CLASSES:
            present = present[np.argsort(-counts[t][present], kind="stable")[:MAX_CLASSES]]
        return [int(k) for k in present]

    def _class(self, k: int) -> str:
        return self.fitted.tree.classes[k]


def _condition(split: SplitText) -> str:
    hidden = [f"+ {split.n_hidden} more"] if split.n_hidden else []
    relation = {">=": "≥", "<=": "≤"}.get(split.relation, split.relation)
    return " ".join([*split.terms, *hidden, relation, split.threshold])


#: Most columns that a reader is asked for, and most levels to choose from, all columns together.
MAX_FIELDS = 100
MAX_LEVELS = 1000

_WAY = (
    "Type values in original units: the path of the sample is highlighted in the picture; its prediction is shown "
    "here."
)
_LIKELIER = " The highlighted path goes to the likelier side of each split; the prediction is the mean over all leaves."
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
    node above it has no split but the log-odds, and ``outcomes`` if it prescribes: per treatment its name,
    terms and constant.
    """
    rules = {node.number: json.dumps(_rule(fitted, node)) for node in fitted.nodes}
    terms = sum(np.count_nonzero(fitted.tree.w[node.number]) for node in fitted.nodes if node.children)
    too_long = terms > MAX_WEIGHTS or any(len(rule) > LONGEST for rule in rules.values())
    return None if too_long else rules


def _rule(fitted: FittedTree, node: ReachableNode) -> dict[str, object]:
    tree = fitted.tree
    if node.left is not None and node.right is not None:
        t = node.number
        children = {"no": node.left.number, "yes": node.right.number}
        return {"terms": _terms(fitted, tree.w[t]), "b": float(tree.b[t]), **children}
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
    content: Content, encoding: Encoding, reads: BoolArray, help_: str, **given: str | None
) -> list[Element]:
    """Return the fields of the features that are read, and the place of the answer with what the script is given."""
    X = None if content.samples is None else content.samples.train.X_raw
    asked = [(column, first) for column, first in _columns(encoding) if reads[_features(column, first)].any()]
    levels = sum(len(column.levels or ()) for column, _ in asked)
    if not 0 < len(asked) <= MAX_FIELDS or levels > MAX_LEVELS:
        return []
    fields = [_field(column, first, k, X) for k, (column, first) in enumerate(asked)]
    data = {f"data_{name}": value for name, value in given.items()}
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
        known = None if values is None else values[:, 0]
        if known is not None and column.ends is not None:
            known = known[known >= column.ends[1]]
        some = known is not None and len(known)
        typical = _written(np.sort(known)[(len(known) - 1) // 2]) if some and known is not None else None
        # What fills gaps is a value of the column, a field one of its feature.
        fill = None if column.fill is None else _written(float(column.fill) - column.base)
        field = element(
            "input",
            **name,
            type="number",
            step="any",
            value=typical,
            data_fill=fill,
            data_count=None if column.ends is None else "2",
            data_ends=None if column.ends is None else json.dumps(column.ends),
            placeholder="missing" if fill is None else f"missing, counts as {fill}",
        )
        label = column.shifted
    else:
        field = element("select", *_options(column, values), **name, data_count=str(len(column.features)))
        label = column.name
    return element("div", element("label", short(label), for_=f"try-{k}"), field, class_="field")


def _options(column: Column, values: FloatArray | None) -> list[Element]:
    """Return the levels of a column to choose from; each names the features that it switches on."""
    levels = column.levels or ()
    chosen = None
    if values is not None:
        chosen = int(np.argmax([(values == row).all(axis=1).sum() for row in column.table[: len(levels)]]))

    def option(text: Part, level: int | None, **attributes: str | None) -> Element:
        on = "" if level is None else " ".join(map(str, np.flatnonzero(column.table[level])))
        return element("option", text, data_on=on, **attributes)

    fill = levels.index(str(column.fill)) if column.fill is not None else None
    if column.branch:
        missing = option("missing", len(levels))
    elif fill is None:
        missing = element("option", "missing", data_missing="yes")
    else:
        missing = option(f"missing, counts as {short(levels[fill])}", fill)
    named = [
        option(short(level), k, selected="selected" if k == chosen else None)
        for k, level in enumerate(levels)
    ]
    return [missing, *named, option("none of these (as with --unseen none)", None)]


def _written(value: float) -> str:
    """Write a number so that a browser reads the same one."""
    return repr(float(value)).removesuffix(".0")


_HELP = (
    "Drag or use the arrow keys to move, + and − to zoom, 0 to see all; the wheel zooms with Ctrl, or once the "
    "picture has been clicked. Tab goes from node to node."
)

_BUTTONS = (("in", "+", "Zoom in"), ("out", "−", "Zoom out"), ("fit", "Fit", "Fit the whole tree"))

#: Most features that the table lists.
MAX_FEATURES = 60

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
        for name, colour in list(zip(classes, class_colours(len(classes)), strict=True))[:MAX_CLASSES]
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
        for j in order[:MAX_FEATURES]
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
