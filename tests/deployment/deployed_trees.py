"""Random trees of every kind, with samples on and beside their thresholds."""

from dataclasses import replace

import numpy as np

from mipforest.cards import PointRule, ScoreCard
from mipforest.trees import NodeStatistics, RandomizedTree, Tree, node_statistics

#: Kinds of trees that every form but scikit-learn's takes.
KINDS = ("classes", "logistic", "values", "linear", "prescriptive", "randomized", "random values")


def random_tree(rng: np.random.Generator, *, oblique: bool, kind: str = "classes") -> Tree:
    """Return a tree of depth 1 to 4 with trivial nodes; half of them are scaled."""
    depth, p = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    n_branches, n_leaves = 2**depth - 1, 2**depth
    w = rng.normal(size=(n_branches, p))
    if not oblique:
        w *= np.eye(p)[rng.integers(p, size=n_branches)]
    w[rng.random(n_branches) < 0.15] = 0.0
    scaled = rng.random() < 0.5
    parts = {
        "depth": depth,
        "w": w,
        "b": 0.5 * rng.normal(size=n_branches),
        "features": tuple(f"größe {j}" for j in range(p)),
        "offset": rng.normal(size=p) if scaled else None,
        "scale": rng.uniform(0.1, 10, size=p) if scaled else None,
    }
    labels, values = rng.integers(3, size=n_leaves), rng.normal(size=n_leaves)
    classes = ("l'un", "two", "drei")
    if kind == "classes":
        return Tree(**parts, leaf_value=labels, classes=classes)
    if kind == "logistic":
        return Tree(**parts, leaf_value=np.arange(n_leaves) % 2, classes=("no", "yes"), logistic=True)
    if kind in ("targets", "labels of targets"):
        several = np.column_stack([values, labels, np.arange(n_leaves) % 2])
        known = (("1.5", "2", "l'un"), ("a", "b", "c"), ("no", "yes"))
        if kind == "targets":
            return Tree(**parts, leaf_value=several, targets=("größe", "b", "c"))
        several[:, 0] = rng.integers(3, size=n_leaves)
        return Tree(**parts, leaf_value=several, targets=("größe", "b", "c"), target_classes=known)
    if kind in ("values", "linear"):
        slopes = rng.normal(size=(n_leaves, p)) if kind == "linear" else None
        return Tree(**parts, leaf_value=values, leaf_w=slopes)
    if kind == "prescriptive":
        slopes = rng.normal(size=(n_leaves, 3, p)) if rng.random() < 0.5 else None
        outcomes = rng.normal(size=(n_leaves, 3))
        return Tree(**parts, leaf_value=labels, classes=classes, outcomes=outcomes, outcome_w=slopes)
    if kind == "random values":
        return RandomizedTree(**parts, leaf_value=values, leaf_w=rng.normal(size=(n_leaves, p)), gamma=8.0)
    proba = rng.dirichlet(np.ones(3), size=n_leaves)
    return RandomizedTree(
        **parts, leaf_value=proba.argmax(axis=1), classes=classes, leaf_proba=proba, gamma=8.0
    )


def random_card(rng: np.random.Generator) -> ScoreCard:
    """Return a card of up to four rules, some turned round."""
    p = int(rng.integers(1, 4))
    rules = [
        PointRule(int(rng.integers(p)), float(rng.normal()), int(points), bool(rng.random() < 0.4))
        for points in rng.choice([-3, -1, 1, 2, 5], size=int(rng.integers(0, 5)))
    ]
    return ScoreCard(tuple(rules), float(rng.normal()), ("no", "yes"), p, tuple(f"f{j}" for j in range(p)))


def labelled_by_majority(tree: Tree, rng: np.random.Generator) -> tuple[Tree, NodeStatistics]:
    """Return a classifier whose leaves predict the most frequent class of some samples, and these by node."""
    X, y = rng.normal(size=(200, tree.n_features)), rng.integers(len(tree.classes), size=200)
    counts = node_statistics(tree, X, y).class_counts[tree.topology.n_branches :]
    labels = np.where(counts.any(axis=1), counts.argmax(axis=1), tree.leaf_value)
    tree = replace(tree, leaf_value=labels)
    return tree, node_statistics(tree, X, y)


def samples_for(tree, rng: np.random.Generator, n: int = 60) -> np.ndarray:
    """Return samples; some values are the thresholds of splits of one feature, or their neighbours."""
    X = 2 * rng.normal(size=(n, tree.n_features))
    if isinstance(tree, ScoreCard):
        thresholds = [(rule.feature, rule.threshold) for rule in tree.rules]
    else:
        w, b = tree.original_units()
        single = [
            (int(np.flatnonzero(row)[0]), c / -row.sum())
            for row, c in zip(w, b, strict=True)
            if np.count_nonzero(row) == 1
        ]
        thresholds = single
    for row, (j, threshold) in enumerate(thresholds):
        for step, towards in enumerate((-np.inf, threshold, np.inf)):
            X[(3 * row + step) % n, j] = np.nextafter(threshold, towards)
    return X
