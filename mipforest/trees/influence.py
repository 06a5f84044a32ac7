"""How much each feature moves the score of each split, over the samples that pass it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.trees.samples import as_samples
from mipforest.trees.split_text import format_number
from mipforest.trees.tree import Tree


def feature_influence(tree: Tree, X: Any) -> FloatArray:
    """(|B|, p) influence of each feature on the score of each branch node: weight times standard deviation.

    Weights and standard deviations (of the population, over the samples that pass the node) are both of scaled
    features; their product does not depend on the units or the scaling of a feature. A positive influence
    pushes samples with large values to the right, a negative one to the left. In a logistic tree it is the
    change of log-odds per standard deviation. It is 0 where no sample passes (Aldinucci, ch. 3, "Evaluation
    of feature influence").

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units, as a rule those it was trained on.

    Raises
    ------
    ValueError
        If X does not fit the tree.
    """
    passed = tree.decision_path(X)
    samples = as_samples(X, tree.features, tree.n_features)
    if tree.offset is not None and tree.scale is not None:
        samples = (samples - tree.offset) / tree.scale
    spread = np.zeros_like(tree.w)
    for t in np.flatnonzero(passed[:, : len(spread)].any(axis=0)):
        here = samples[passed[:, t]]
        # The rounded mean of equal numbers may differ from them: their deviation is set to 0, not computed.
        spread[t] = np.where(here.min(axis=0) == here.max(axis=0), 0.0, here.std(axis=0))
    influence: FloatArray = tree.w * spread
    return influence


def strongest(
    tree: Tree, influence: FloatArray, most: int, digits: int = 2
) -> tuple[list[tuple[str, str]], int]:
    """Write the strongest influences at one node: ``[("age", "+0.81"), ("chol", "-0.5")]``.

    Parameters
    ----------
    tree
        The tree.
    influence
        (p,) influences at the node.
    most
        Most features to name.
    digits
        Significant digits.

    Returns
    -------
    terms
        Name and signed influence; features of influence 0 are left out.
    n_hidden
        Number of further features.
    """
    order = np.argsort(-np.abs(influence), kind="stable")[: np.count_nonzero(influence)]
    terms = [(tree.feature_names[j], _signed(float(influence[j]), digits)) for j in order[:most]]
    return terms, len(order) - len(terms)


def _signed(value: float, digits: int) -> str:
    return ("+" if value > 0 else "") + format_number(value, digits)
