r"""Logistic regressions at the nodes of a tree: one node, the greedy tree, and the refinement of a logistic tree.

**One node**, exactly:

.. math::  \min_{w, b}\; \Omega(w) + C \sum_i n_i \log\bigl(1 + e^{-y_i (w^\top x_i + b)}\bigr)

with sample weights n and the norms of :mod:`mipforest.objectives.branches`; the intercept is free of charge. Weights
are the difference of two nonnegative parts, so that the l1 norm is linear, and the smooth problem with bounds goes to
L-BFGS-B (R. Byrd, P. Lu, J. Nocedal, C. Zhu, SIAM J. Sci. Comput. 16, 1995), which stops at exact zeros. scikit-learn's
solvers for the l1 norm either charge the intercept (liblinear) or approach the optimum too slowly to be called exact
(saga).

**The greedy tree** (T. Aldinucci's thesis, chapter 3): a regression per node, from the root down.

**Refinement** (the thesis, section 3.2, remark 1): exact regressions at the last branching level. The model charges a
piecewise-linear underestimator of the log-loss. For the routing of its tree, every node of the last branching level is
fitted anew to the log-loss itself. Nodes above are left as they are: other splits there would send samples elsewhere.

The remark says that the exact objective decreases. It does where a node's regression has an optimum and the fit finds
it; here a node keeps its split where the new one is no better. At a node that one class alone reaches the log-loss
falls towards 0 as the intercept grows, and has no minimum: such a node gets the log-odds of Laplace's rule of
succession, n + 1 to 1 for samples of total weight n. Against the weights of the surrogate, which is 0 from a finite
margin on, such intercepts often gain more than all regressions together; :func:`gain_at_pure_nodes` tells how much.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.node_problems import (
    NodeProblems,
    Split,
    bias_if_empty,
    passed,
    search_features,
    top_down,
    weighted_sum,
)
from mipforest.objectives.branches import Norm
from mipforest.trees import Topology, Tree

#: L-BFGS-B stops when no component of the projected gradient, relative to C times the number of samples, is larger.
GRADIENT_TOLERANCE = 1e-8

#: Most iterations. Problems of hundreds of samples take tens to hundreds; only one without an optimum,
#: as that of separable classes without a norm, runs on.
MOST_ITERATIONS = 5000


def logistic_value(
    w: FloatArray,
    b: float,
    X: FloatArray,
    sign: FloatArray,
    C: float,
    norm: Norm,
    weight: FloatArray | None = None,
) -> float:
    """Return the objective of a split: the norm plus C times the log-loss of the samples that reach it."""
    return norm.value(w) + C * weighted_sum(np.logaddexp(0.0, -sign * (X @ w + b)), weight)


def logistic_split(
    X: FloatArray, sign: FloatArray, C: float, norm: Norm, weight: FloatArray | None = None
) -> Split:
    """Fit a logistic regression.

    Parameters
    ----------
    X, sign
        (n, p) samples of both classes, and their labels, -1 or +1.
    C
        Penalty of the log-loss, above 0.
    norm
        What is charged for weights. Without a norm, separable classes have no optimum: the split where the
        iterations end is given back.
    weight
        (n,) weights of the samples' losses; 1 unless given.

    Returns
    -------
    Split
        With the objective as its value.
    """
    p = X.shape[1]
    n = np.ones(len(sign)) if weight is None else weight
    total = C * float(n.sum())

    def objective(parts: FloatArray) -> tuple[float, FloatArray]:
        w, b = parts[:p] - parts[p : 2 * p], parts[-1]
        margin = sign * (X @ w + b)
        value = C * weighted_sum(np.logaddexp(0.0, -margin), n)
        pull = -C * n * sign * expit(-margin)
        slope = X.T @ pull
        charge, charge_slopes = norm.of_parts(parts[:-1])
        gradient = np.concatenate([slope, -slope, [pull.sum()]])
        gradient[:-1] += charge_slopes
        return (value + charge) / total, gradient / total

    from scipy.optimize import minimize  # late: slow to import, and most runs do without

    found = minimize(
        objective,
        np.zeros(2 * p + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * (2 * p) + [(None, None)],
        options={
            "gtol": GRADIENT_TOLERANCE,
            "ftol": 0.0,
            "maxiter": MOST_ITERATIONS,
            "maxfun": 2 * MOST_ITERATIONS,
        },
    )
    w, b = found.x[:p] - found.x[p : 2 * p], float(found.x[-1])
    return Split(w, b, logistic_value(w, b, X, sign, C, norm, weight))


def greedy_logistic(data: Dataset, topology: Topology, nodes: NodeProblems) -> Tree:
    """Fit each node's logistic regression to the samples that its ancestors send it, level by level.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        Penalties, norm and feature budgets of the nodes, and the gap between their sides.

    Returns
    -------
    Tree
        For scaled features; it routes by the sign of the log-odds. A node that one class alone reaches has no
        weights, and sends its samples that way.
    """
    return top_down(
        data, topology, nodes, lambda t, X, sign, weight: _node_regression(t, X, sign, weight, nodes)
    )


def _node_regression(
    t: int, X: FloatArray, sign: FloatArray, weight: FloatArray, nodes: NodeProblems
) -> Split:
    p = X.shape[1]
    if len(sign) == 0 or (sign == sign[0]).all():
        side = sign[0] if len(sign) else bias_if_empty(t)
        return Split(np.zeros(p), nodes.loss.convex.flat_from * float(side), 0.0)

    def fit(features: IntArray) -> Split:
        split = logistic_split(X[:, features], sign, float(nodes.C[t]), nodes.norm, weight)
        w = np.zeros(p)
        w[features] = split.w
        return replace(split, w=w)

    if nodes.budget is None or nodes.budget[t] >= p:
        return fit(np.arange(p))
    found = search_features(fit, p, int(nodes.budget[t]), nodes.alpha)
    assert found is not None  # every set of features has a regression
    return found


def refined(tree: Tree, data: Dataset, nodes: NodeProblems) -> Tree:
    """Refit the last branching level of a tree by exact logistic regressions.

    Parameters
    ----------
    tree
        For scaled features.
    data
        Two classes.
    nodes
        Penalties and norm. Where they have feature budgets, a node may only use the features that it uses already.

    Returns
    -------
    Tree
        It sends every sample of the data to the same node of the last branching level, and its exact objective
        is no larger.
    """
    here = passed(tree, data)
    w, b = tree.w.copy(), tree.b.copy()
    for t in tree.topology.last_branches:
        X, sign, weight = data.X[here[:, t]], data.sign[here[:, t]], data.weights[here[:, t]]
        C = float(nodes.C[t])
        features = np.arange(data.p) if nodes.budget is None else np.flatnonzero(w[t])
        split = _regression(X[:, features], sign, weight, C, nodes.norm)
        if split.value < logistic_value(w[t], float(b[t]), X, sign, C, nodes.norm, weight):
            w[t] = 0.0
            w[t, features] = split.w
            b[t] = split.b
    return replace(tree, w=w, b=b)


def _regression(X: FloatArray, sign: FloatArray, weight: FloatArray, C: float, norm: Norm) -> Split:
    if len(np.unique(sign)) == 2:
        return logistic_split(X, sign, C, norm, weight)
    w, b = np.zeros(X.shape[1]), float(np.sign(sign.sum()) * np.log1p(weight.sum()))
    return Split(w, b, logistic_value(w, b, X, sign, C, norm, weight))


def gain_at_pure_nodes(before: Tree, after: Tree, data: Dataset, nodes: NodeProblems) -> float:
    """Return how much less the last branching level's nodes that one class alone reaches cost after a refinement.

    Parameters
    ----------
    before, after
        A tree for scaled features, and its refinement.
    data
        Two classes.
    nodes
        Penalties and norm.
    """
    here, gain = passed(before, data), 0.0
    for t in before.topology.last_branches:
        X, sign, weight = data.X[here[:, t]], data.sign[here[:, t]], data.weights[here[:, t]]
        if len(np.unique(sign)) == 1:
            old, new = (
                logistic_value(tree.w[t], float(tree.b[t]), X, sign, float(nodes.C[t]), nodes.norm, weight)
                for tree in (before, after)
            )
            gain += old - new
    return gain


def margins_at(nodes: IntArray, tree: Tree, data: Dataset) -> FloatArray:
    """Return the margins ``y (w.x + b)`` of all samples at those of some nodes that they pass, one after the other."""
    margins: FloatArray = (data.sign[:, None] * tree.scores(data.X))[:, nodes]
    return margins[passed(tree, data)[:, nodes]]
