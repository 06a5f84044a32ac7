"""Many different univariate classification trees, to search for one that satisfies an added constraint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from formulations.class_leaves import with_majority_labels
from mipforest.data import Dataset
from mipforest.heuristics.cart import cart
from mipforest.trees import Topology, Tree

#: Labellings per tree: all of them at depth 2 and two classes.
LABELLINGS = 16


def candidate_trees(data: Dataset, topology: Topology, min_leaf: int) -> Iterator[Tree]:
    """Yield randomly split trees without end, each with its majority labels, then with other ones.

    Parameters
    ----------
    data
        Scaled features, classes.
    topology
        The tree.
    min_leaf
        Least number of samples per leaf.
    """
    rng = np.random.default_rng(0)
    K, n_leaves = len(data.classes), topology.n_leaves
    seed = 0
    while True:
        tree = with_majority_labels(
            cart(data, topology, min_leaf=min_leaf, seed=seed, random_splits=True), data
        )
        seed += 1
        yield tree
        if K**n_leaves <= LABELLINGS:
            labellings = np.array(list(product(range(K), repeat=n_leaves)))
        else:
            labellings = rng.integers(0, K, (LABELLINGS, n_leaves))
        for labels in labellings:
            yield replace(tree, leaf_value=labels)
