"""Ensembles written down by hand, or drawn by hypothesis, with a routing of their own."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from mipforest.ensembles import Ensemble, MemberTree

#: A tree is ("leaf",) or (feature, threshold, left, right).
LEAF = ("leaf",)


@dataclass(frozen=True)
class Votes:
    """Routes samples by the trees themselves; predicts by a function."""

    members: tuple[MemberTree, ...]

    def leaves(self, X):
        return np.array([[leaf_of(member, x) for member in self.members] for x in X])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(np.int64)

    def probability(self, X):
        return 0.5 + np.abs(X[:, 0] - 0.5)


def leaf_of(member, x):
    node = 0
    while member.left[node] >= 0:
        goes_left = x[member.feature[node]] <= member.threshold[node]
        node = member.left[node] if goes_left else member.right[node]
    return int(node)


def member_of(tree, weight=1.0):
    """Give nested tuples as a member; nodes are numbered depth first, as scikit-learn does."""
    nodes = []

    def add(node):
        number = len(nodes)
        nodes.append([-1, -1, -1, 0.0])
        if node != LEAF:
            feature, threshold, left, right = node
            nodes[number] = [add(left), add(right), feature, threshold]
        return number

    add(tree)
    left, right, feature, threshold = zip(*nodes, strict=True)
    integers = (np.array(column, dtype=np.int64) for column in (left, right, feature))
    return MemberTree(*integers, np.array(threshold, dtype=float), weight)


def forest_of(trees, n_features, weights=None):
    weights = [1.0] * len(trees) if weights is None else weights
    members = tuple(member_of(tree, weight) for tree, weight in zip(trees, weights, strict=True))
    return Ensemble("random-forest", "written by hand", members, n_features, Votes(members))


#: Three trees over four features; the second ends at its left child, the third splits nowhere below the root.
TREES = (
    (0, 0.5, (1, 0.2, LEAF, LEAF), (1, 0.7, LEAF, LEAF)),
    (0, 0.4, LEAF, (2, 0.6, LEAF, LEAF)),
    (3, 0.9, LEAF, LEAF),
)


def trees(n_features=3, depth=4):
    """Draw nested tuples."""
    thresholds = st.sampled_from([0.25, 0.5, 0.75])

    def deeper(children):
        return st.tuples(st.integers(0, n_features - 1), thresholds, children, children)

    tree = st.just(LEAF)
    for _ in range(depth):
        tree = st.one_of(st.just(LEAF), deeper(tree))
    return tree


@st.composite
def forests(draw, n_features=3, depth=4):
    members = draw(st.lists(trees(n_features, depth), min_size=1, max_size=5))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(members), max_size=len(members)))
    return members, weights
