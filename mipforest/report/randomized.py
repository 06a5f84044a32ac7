"""What a randomised tree does beside a sample's likeliest way: leaves with probabilities, importance of features."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from mipforest.formatting import number, percent
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import Part, element, section, short, table
from mipforest.trees import RandomizedTree

#: Most leaves, classes and features that the tables list.
MOST_LEAVES, MOST_CLASSES, MOST_FEATURES = 64, 12, 40


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
        )
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
