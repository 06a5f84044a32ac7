"""How clearly the splits of a logistic tree decide, on average over the samples that pass them."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from mipforest.arrays import FloatArray
from mipforest.trees import Tree


def node_confidence(tree: Tree, X: FloatArray) -> FloatArray:
    """(n_nodes,) mean confidence at each node of a logistic tree; NaN where no sample passes.

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
