"""What a randomised tree does off a sample's likeliest path: leaves with probabilities, importance of features."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.formatting import number, percent
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import Chart, Part, element, legend, section, short, span, table, thinned
from mipforest.trees import Curve, FunctionalTree, RandomizedTree
from mipforest.trees.plot import features_shown, lines_of, thread_colours

#: Most leaves, classes and features that the tables list, and most curves that are drawn.
MAX_LEAVES, MAX_CLASSES, MAX_FEATURES, MAX_CURVES = 64, 12, 40, 6

#: Most samples and features of a local explanation, and most levels.
MAX_SAMPLES, MAX_AXES, MAX_PANELS = 40, 15, 4

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
        *_explanation(content, tree),
    ]


def _leaves(content: Content, tree: RandomizedTree) -> Element:
    classes = tree.classes[:MAX_CLASSES]
    heads: list[Part] = ["Leaf"]
    train = None if content.samples is None else content.samples.train
    reached = None
    if train is not None:
        heads.append("Expected share of the training samples")
        reached = np.average(tree.leaf_probabilities(train.X_raw), axis=0, weights=train.weights)
    heads += [short(name) for name in classes] if classes else ["Value without the features"]
    rows: list[list[Part]] = []
    for t in range(min(tree.topology.n_leaves, MAX_LEAVES)):
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
    order = np.argsort(-total, kind="stable")[:MAX_FEATURES]
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
    for curve in curves[:MAX_CURVES]:
        j = tree.curves.index(curve)
        for h, (low, high) in enumerate(tree.intervals_of(curve).tolist()):
            sizes = (float(np.abs(part[:, h, j]).max()) for part in (tree.heights, tree.leaf_heights))
            rows.append([short(curve.name), number(low), number(high), *map(number, sizes)])
    train = None if content.samples is None else content.samples.train
    drawn = [] if train is None else [_curve(tree, curve, train.X_raw) for curve in curves[:MAX_CURVES]]
    heads: list[Part] = ["Curve", "From", "To", "In the splits", "In the leaves"]
    more = len(curves) - MAX_CURVES
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
    intervals = ", ".join(
        f"{number(low)} to {number(high)}" for low, high in tree.intervals_of(curve).tolist()
    )
    entries = legend(("curve middle", "line", "median of the training samples; thin: 10% and 90%"))
    return element(
        "figure",
        chart.drawn(f"The tree looks at {short(curve.name)} from {intervals}.", *bands, *lines),
        element("figcaption", entries, f"Shaded: the intervals that the tree looks at, {intervals}."),
    )


def _explanation(content: Content, tree: RandomizedTree) -> list[Element]:
    """Show what moves the predictions of some samples: lines over the features."""
    if content.samples is None:
        return []
    data = content.samples.train if content.samples.test is None else content.samples.test
    chosen = thinned(data.n, MAX_SAMPLES)
    X_raw = data.X_raw[chosen]
    panels = lines_of(tree, X_raw, content.samples.train.X_raw.mean(axis=0))
    shown = features_shown(tree, panels, MAX_AXES).tolist()
    if not shown:
        return []
    colours = thread_colours(tree, X_raw, None if tree.is_classifier else data.y[chosen])
    ticks = [(float(k), str(k + 1)) for k in range(len(shown))]
    which = "training" if content.samples.test is None else "test"
    if tree.is_classifier:
        meaning = (
            "how much more each feature sends the sample right, at each level of splits, than it does the mean of the "
            "training samples; colours are those of the predicted classes"
        )
        labels = [f"level {level}: sent right" for level in range(tree.depth)]
    else:
        meaning = (
            "the derivatives of the prediction in the features, scaled to [0, 1]; green: its squared error is at most "
            "half of the mean one, orange: at most the mean, red: above"
        )
        labels = ["derivative of the prediction"]
    charts = []
    for label, panel in list(zip(labels, panels, strict=True))[:MAX_PANELS]:
        values = panel[:, shown]
        chart = Chart(
            (-0.4, len(shown) - 0.6), span(values), "feature, by its number below", label, x_ticks=ticks
        )
        lines = [
            chart.line(list(enumerate(line)), "thread", colour)
            for line, colour in zip(values.tolist(), colours, strict=True)
        ]
        summary = (
            f"{label} of {len(values)} samples over {len(shown)} features; the table has mean and range."
        )
        charts.append(element("figure", chart.drawn(summary, *lines)))
    heads: list[Part] = ["Number", "Feature", *(f"{label}, mean (range)" for label in labels[:MAX_PANELS])]
    rows: list[list[Part]] = [
        [
            str(k + 1),
            short(tree.feature_names[j]),
            *(
                f"{number(float(panel[:, j].mean()))} ({number(float(panel[:, j].min()))} to "
                f"{number(float(panel[:, j].max()))})"
                for panel in panels[:MAX_PANELS]
            ),
        ]
        for k, j in enumerate(shown)
    ]
    text = f"One line for each of {len(chosen)} {which} samples: {meaning}."
    parts = [element("p", text), *charts, table(heads, rows, "Features of the local explanation")]
    return [section("Local explanation", *parts, id_="explanation")]
