"""A tree as indented text."""

from __future__ import annotations

import numpy as np

from mipforest.trees.influence import strongest
from mipforest.trees.leaf_text import leaf_text
from mipforest.trees.live import LiveNode, live_view
from mipforest.trees.split_text import describe_split, format_number
from mipforest.trees.statistics import NodeStatistics
from mipforest.trees.tree import Tree


def to_text(tree: Tree, counts: NodeStatistics | None = None, *, max_terms: int = 6) -> str:
    """Write a tree as text, one line per node, splits and linear leaves in original units.

    ``yes`` is the right branch (score >= 0), ``no`` the left one. A trivial node (no weight) is shown as
    passing all samples to one side; the branch that no sample can enter is left out. Numbers have four
    significant digits, so read routes off :meth:`Tree.apply`, not off the text. Below a split of several
    features stands how much each of them moves its score over the samples that pass it, if known (see
    :func:`~mipforest.trees.influence.feature_influence`).

    Parameters
    ----------
    tree
        The tree.
    counts
        Samples per node, from :func:`node_statistics`, to be written behind each node.
    max_terms
        Most terms of an oblique split, its influences or a linear leaf to show; the rest is counted,
        ``+ 12 more``.

    Examples
    --------
    >>> tree = Tree(1, [[1.0]], [-2.5], [0, 1], classes=("low", "high"), features=("age",))
    >>> print(to_text(tree))
    n0: age >= 2.5
      no:  n1: low
      yes: n2: high
    """
    lines: list[str] = []
    _write(tree, live_view(tree), "", "", counts, max_terms, lines)
    return "\n".join(lines)


def _write(
    tree: Tree,
    node: LiveNode,
    indent: str,
    answer: str,
    counts: NodeStatistics | None,
    max_terms: int,
    lines: list[str],
) -> None:
    for t in node.passed:
        side = "right" if tree.b[t] >= 0 else "left"
        lines.append(f"{indent}{answer}n{t}: no split, all go {side}{_counted(tree, t, counts)}")
        indent, answer = indent + "  ", "all: "
    content = (
        str(describe_split(tree, node.number, max_terms=max_terms))
        if node.children
        else leaf_text(tree, node.number, max_terms)
    )
    lines.append(f"{indent}{answer}n{node.number}: {content}{_counted(tree, node.number, counts)}")
    if node.children:
        lines += _influences(tree, node.number, indent, counts, max_terms)
    for child, reply in zip(node.children, ("no:  ", "yes: "), strict=False):
        _write(tree, child, indent + "  ", reply, counts, max_terms, lines)


def _influences(tree: Tree, t: int, indent: str, counts: NodeStatistics | None, max_terms: int) -> list[str]:
    """Give the line of influences of a split of several features; none where nothing is known."""
    if counts is None or counts.influence is None or np.count_nonzero(tree.w[t]) < 2:
        return []
    terms, n_hidden = strongest(tree, counts.influence[t], max_terms)
    parts = [f"{name} {value}" for name, value in terms] + ([f"{n_hidden} more"] if n_hidden else [])
    return [f"{indent}    influence: {', '.join(parts)}"] if parts else []


def _counted(tree: Tree, node: int, counts: NodeStatistics | None) -> str:
    """Give the samples at a node in brackets: by class without the absent ones, or with their mean."""
    if counts is None:
        return ""
    samples = int(counts.samples[node])
    if samples == 0:
        return "  [no samples]"
    if counts.class_counts is not None:
        present = zip(tree.classes, counts.class_counts[node], strict=True)
        return f"  [{', '.join(f'{name} {count}' for name, count in present if count)}]"
    if counts.mean is not None:
        return f"  [{samples}, mean {format_number(float(counts.mean[node]))}]"
    return f"  [{samples}]"
