"""What a randomised tree does beside a sample's likeliest way: leaves with probabilities, importance of features."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.formatting import number, percent
from mipforest.report.chart import Chart, legend, span
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import Part, element, section, short, table
from mipforest.trees import Curve, FunctionalTree, RandomizedTree

#: Most leaves, classes and features that the tables list, and most curves that are drawn.
MOST_LEAVES, MOST_CLASSES, MOST_FEATURES, MOST_CURVES = 64, 12, 40, 6

#: Quantiles of the training samples that show a curve; the middle one is drawn strongest.
QUANTILES = (0.1, 0.5, 0.9)


def randomized_section(content: Content, fitted: FittedTree) -> list[Element]:
    """Show the leaves and the importance of features of a randomised tree; nothing for other trees."""
    tree = fitted.tree
    if not isinstance(tree, RandomizedTree):
        return []
    text = (
        "Every split sends a sample to both sides: right with the probability 1 / (1 + exp(−γ s)), where s is its "
        f"score for scaled features and γ = {tree.gamma:g}. A prediction is the mean over all leaves, by the "
        "probability of reaching each. The picture, and all numbers of samples at its nodes, show the likelier side of "
        "each split."
    )
    return [
        section(
            "Probabilities",
            element("p", text),
            _leaves(content, tree),
            element("h3", "Importance of the features"),
            _importance(tree),
            id_="probabilities",
        ),
        *(_intervals(content, tree) if isinstance(tree, FunctionalTree) else []),
    ]


def _leaves(content: Content, tree: RandomizedTree) -> Element:
    classes = tree.classes[:MOST_CLASSES]
    heads: list[Part] = ["Leaf"]
    train = None if content.samples is None else content.samples.train
    reached = None
    if train is not None:
        heads.append("Expected share of the training samples")
        reached = np.average(tree.leaf_probabilities(train.X_raw), axis=0, weights=train.weights)
    heads += [short(name) for name in classes] if classes else ["Value without the features"]
    rows: list[list[Part]] = []
    for t in range(min(tree.topology.n_leaves, MOST_LEAVES)):
        cells: list[Part] = [f"n{tree.topology.n_branches + t}"]
        if reached is not None:
            cells.append(percent(float(reached[t])))
        if tree.leaf_proba is not None:
            cells += [percent(float(share)) for share in tree.leaf_proba[t, : len(classes)]]
        else:
            cells.append(number(float(tree.leaf_value[t])))
        rows.append(cells)
    what = "probability of each class" if classes else "intercept over scaled features"
    return table(heads, rows, f"Leaves: who comes there, and the {what}")


def _importance(tree: RandomizedTree) -> Element:
    total, largest = tree.importances("sum"), tree.importances("max")
    order = np.argsort(-total, kind="stable")[:MOST_FEATURES]
    rows: list[list[Part]] = [
        [short(tree.feature_names[j]), number(float(total[j])), number(float(largest[j]))] for j in order
    ]
    heads: list[Part] = ["Feature", "Sum over the splits (SIM)", "Largest (MIM)"]
    hidden = tree.n_features - len(rows)
    rest = f"; {hidden} more have less" if hidden else ""
    return table(heads, rows, f"Sizes of the coefficients of features scaled to [0, 1]{rest}")


def _intervals(content: Content, tree: FunctionalTree) -> list[Element]:
    """Show which intervals of its curves a tree looks at."""
    curves = [curve for curve in tree.curves if curve.at]
    text = (
        f"Splits and leaves see the means of each curve over {len(tree.intervals)} intervals; "
        f"{percent(tree.length_sparsity)} of the domain lies outside of all. Sizes are those of the coefficients of "
        "the means, of curves scaled to [0, 1], largest over the nodes."
    )
    rows: list[list[Part]] = []
    for curve in curves[:MOST_CURVES]:
        j = tree.curves.index(curve)
        for h, (low, high) in enumerate(tree.intervals_of(curve).tolist()):
            sizes = (float(np.abs(part[:, h, j]).max()) for part in (tree.heights, tree.leaf_heights))
            rows.append([short(curve.name), number(low), number(high), *map(number, sizes)])
    train = None if content.samples is None else content.samples.train
    drawn = [] if train is None else [_curve(tree, curve, train.X_raw) for curve in curves[:MOST_CURVES]]
    heads: list[Part] = ["Curve", "From", "To", "In the splits", "In the leaves"]
    more = len(curves) - MOST_CURVES
    rest = [element("p", f"{more} more curves are not shown.", class_="faint")] if more > 0 else []
    parts = [element("p", text), *drawn, table(heads, rows, "Intervals of the curves"), *rest]
    return [section("Intervals", *parts, id_="intervals")]


def _curve(tree: FunctionalTree, curve: Curve, X_raw: FloatArray) -> Element:
    levels = np.quantile(X_raw[:, curve.columns], QUANTILES, axis=0)
    chart = Chart((curve.at[0], curve.at[-1]), span(levels), short(curve.name), "value")
    bands = [chart.band(low, high, "interval") for low, high in tree.intervals_of(curve).tolist()]
    lines = [
        chart.line(
            list(zip(curve.at, level.tolist(), strict=True)), "curve middle" if share == 0.5 else "curve"
        )
        for share, level in zip(QUANTILES, levels, strict=True)
    ]
    told = ", ".join(f"{number(low)} to {number(high)}" for low, high in tree.intervals_of(curve).tolist())
    entries = legend(("curve middle", "line", "median of the training samples; thin: 10% and 90%"))
    return element(
        "figure",
        chart.drawn(f"The tree looks at {short(curve.name)} from {told}.", *bands, *lines),
        element("figcaption", entries, f"Shaded: the intervals that the tree looks at, {told}."),
    )
