r"""Refinement of logistic trees: exact regressions at the last branching level, and what they gain.

Source: T. Aldinucci's thesis, section 3.2, remark 1. The model charges a piecewise-linear underestimator of the
log-loss. For the routing of its tree, every node of the last branching level is fitted anew to the log-loss itself.
Nodes above are left as they are: other splits there would send samples elsewhere.

The remark says that the exact objective decreases. It does where a node's regression has an optimum and the fit finds
it; here a node keeps its split where the new one is no better. At a node that one class alone reaches the log-loss
falls towards 0 as the intercept grows, and has no minimum: such a node gets the log-odds of Laplace's rule of
succession, n + 1 to 1 for n samples. Against the weights of the surrogate, which is 0 from a finite margin on, such
intercepts often gain more than all regressions together; :func:`gain_at_pure_nodes` tells how much.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.routed_splits import passed
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.logistic_split import logistic_split, logistic_value
from mipforest.heuristics.margin_split import Split
from mipforest.heuristics.norms import Norm
from mipforest.trees import Tree


def refined(fitted: Tree, data: Dataset, C: FloatArray, norm: Norm, *, own_features: bool) -> Tree:
    """Refit the last branching level of a tree by exact logistic regressions.

    Parameters
    ----------
    fitted
        A tree for scaled features.
    data
        Two classes.
    C
        (|B|,) penalties of the log-loss.
    norm
        What the objective charges for weights.
    own_features
        Whether a node may only use the features that it uses already.

    Returns
    -------
    Tree
        It sends every sample of the data to the same node of the last branching level, and its exact objective
        is no larger.
    """
    here = passed(fitted, data)
    w, b = fitted.w.copy(), fitted.b.copy()
    for t in fitted.topology.last_branches:
        X, sign = data.X[here[:, t]], data.sign[here[:, t]]
        features = np.flatnonzero(w[t]) if own_features else np.arange(data.p)
        split = _regression(X[:, features], sign, float(C[t]), norm)
        if split.value < logistic_value(w[t], float(b[t]), X, sign, float(C[t]), norm):
            w[t] = 0.0
            w[t, features] = split.w
            b[t] = split.b
    return replace(fitted, w=w, b=b)


def _regression(X: FloatArray, sign: FloatArray, C: float, norm: Norm) -> Split:
    if len(np.unique(sign)) == 2:
        return logistic_split(X, sign, C, norm)
    w, b = np.zeros(X.shape[1]), float(np.sign(sign.sum()) * np.log1p(len(sign)))
    return Split(w, b, logistic_value(w, b, X, sign, C, norm))


def gain_at_pure_nodes(before: Tree, after: Tree, data: Dataset, C: FloatArray, norm: Norm) -> float:
    """How much less the nodes of the last branching level that one class alone reaches cost after a refinement.

    Parameters
    ----------
    before, after
        A tree for scaled features, and its refinement.
    data
        Two classes.
    C
        (|B|,) penalties of the log-loss.
    norm
        What the objective charges for weights.
    """
    here, gain = passed(before, data), 0.0
    for t in before.topology.last_branches:
        X, sign = data.X[here[:, t]], data.sign[here[:, t]]
        if len(np.unique(sign)) == 1:
            old, new = (
                logistic_value(tree.w[t], float(tree.b[t]), X, sign, float(C[t]), norm)
                for tree in (before, after)
            )
            gain += old - new
    return gain


def charged_margins(fitted: Tree, data: Dataset, nodes: IntArray) -> FloatArray:
    """Margins ``y (w.x + b)`` of all samples at those of some nodes that they pass, one after the other."""
    margins: FloatArray = (data.sign[:, None] * fitted.scores(data.X))[:, nodes]
    return margins[passed(fitted, data)[:, nodes]]
