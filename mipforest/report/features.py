"""Which features the tree uses, and on which level."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import IntArray
from mipforest.report.content import FittedTree
from mipforest.report.markup import Part, element, section, short, table

#: Most features that the table lists.
MOST_FEATURES = 60

#: Shades of a cell, the first one none.
SHADES = 10


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
    """Give a cell whose shade grows with a share between 0 and 1."""
    shade = int(np.ceil((SHADES - 1) * share)) if np.isfinite(share) else 0
    return element("td", text, class_=f"shade-{shade}")


def uses_by_level(fitted: FittedTree) -> tuple[IntArray, list[int], list[str]]:
    """(levels, p) uses; number of nodes and name of each level. Only nodes that a sample can reach count."""
    tree = fitted.tree
    counts, nodes, names = [], [], []
    for level in range(tree.depth):
        splits = [
            node.number
            for node in fitted.nodes
            if node.children and 2**level - 1 <= node.number < 2 ** (level + 1) - 1
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
