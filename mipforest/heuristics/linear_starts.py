r"""Starts of trees with a linear classifier at every node: support vector machines, and logistic regressions.

**Local SVM** (D'Onofrio et al. 2024, algorithm 1) goes node by node from the root down; with a budget of features a
node is a mixed-integer model (:func:`exact_sparse_split`).

**The path**, the default. For a fixed routing the MARGOT model falls apart into one convex problem per node. The
routing of a node is taken from support vector machines at a path of penalties, not only at the node's own; each routing
is priced with the node's exact problem at its true penalty, plus the best subtrees on both sides. At depth 2 all
routings of the path are priced to the end; deeper, the node's own and the most promising ones by a lower
bound are. With feature budgets, features are searched quickly first, and once more for the best trees.
For models with another loss or norm, the node problems of these take the place of the support vector machines.

**Many samples.** The path is searched on a seeded sample of them, with penalties that weigh each sample as many times
as it stands for, and the splits of the best tree are scaled, and fitted at the last level, for all samples. The node
problems of both are smoothed (:func:`~mipforest.heuristics.node_problems.smoothed_split`).

Four penalties per decade: on the data sets of the MARGOT paper this finds better trees than one per decade on
five of nine, and eight per decade hardly any better (see ``docs/starts.md``).

**Logistic regression of one node**, exactly:

.. math::  \min_{w, b}\; \Omega(w) + C \sum_i n_i \log\bigl(1 + e^{-y_i (w^\top x_i + b)}\bigr)

with sample weights n and the norms of :mod:`mipforest.objectives.losses`; the intercept is free of charge. Weights
are the difference of two nonnegative parts, so that the l1 norm is linear, and the smooth problem with bounds goes to
L-BFGS-B (R. Byrd, P. Lu, J. Nocedal, C. Zhu, SIAM J. Sci. Comput. 16, 1995), which stops at exact zeros. scikit-learn's
solvers for the l1 norm either charge the intercept (liblinear) or approach the optimum too slowly to be called exact
(saga).

**The greedy logistic tree** (T. Aldinucci's thesis, chapter 3): a regression per node, from the root down.

**Refinement of a logistic tree** (the thesis, section 3.2, remark 1): exact regressions at the last branching level.
The model charges a
piecewise-linear underestimator of the log-loss. For the routing of its tree, every node of the last branching level is
fitted anew to the log-loss itself. Nodes above are left as they are: other splits there would send samples elsewhere.

The remark says that the exact objective decreases. It does where a node's regression has an optimum and the fit finds
it; here a node keeps its split where the new one is no better. At a node that one class alone reaches the log-loss
falls towards 0 as the intercept grows, and has no minimum: such a node gets the log-odds of Laplace's rule of
succession, n + 1 to 1 for samples of total weight n. Against the weights of the surrogate, which is 0 from a finite
margin on, such intercepts often gain more than all regressions together; :func:`gain_at_pure_nodes` tells how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.node_problems import (
    NodeProblems,
    Split,
    bias_if_empty,
    passed,
    search_features,
    smooth_minimum,
    top_down,
    weighted_sum,
    with_penalty,
)
from mipforest.model import Model, sum_squares
from mipforest.objectives.losses import Norm
from mipforest.solving import solve
from mipforest.special import expit
from mipforest.trees import Topology, Tree

#: Penalties of the support vector machines that propose routings, where the next level is the last.
PENALTIES = tuple(10.0 ** (k / 4) for k in range(-16, 21))

#: Penalties where a routing costs more: further up, the search of two subtrees; with feature budgets,
#: the search of features.
COARSE_PENALTIES = PENALTIES[::4]

#: Routings that are followed to the end, by the number of levels below that route again.
WIDTHS = {0: len(PENALTIES) + 1, 1: 3}

#: Trees whose features are searched once more, where there are budgets.
FINALISTS = 2

#: Seconds of the local SVM heuristic for all nodes together where a feature budget makes each a mixed-integer model,
#: as in the paper.
LOCAL_TIME_LIMIT = 30.0

#: Seconds after which no further routing is tried: a safeguard for large data, out of reach on the papers'.
TIME_LIMIT = 60.0

#: Most samples on which the path is searched: some seconds, and more change its best value by less than their draw.
MAX_SAMPLES = 5000


def local_svm(
    data: Dataset, topology: Topology, nodes: NodeProblems, *, time_limit: float = LOCAL_TIME_LIMIT
) -> Tree:
    """Fit each node to the samples that its ancestors send it, level by level.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        What each node's split costs.
    time_limit
        Seconds for all nodes together; matters with a feature budget only.

    Returns
    -------
    Tree
        For scaled features, feasible for the model.
    """
    share = nodes.time.part(time_limit).remaining / len(topology.branches)
    return top_down(
        data, topology, nodes, lambda t, X, sign, weight: _node_svm(t, X, sign, weight, nodes, share)
    )


def _node_svm(
    t: int, X: FloatArray, sign: FloatArray, weight: FloatArray, nodes: NodeProblems, time_limit: float
) -> Split:
    few = len(sign) <= nodes.exact_up_to and not nodes.time.expired
    if nodes.budget is not None and nodes.budget[t] < X.shape[1] and few:
        return exact_sparse_split(t, X, sign, weight, nodes, time_limit)
    split = nodes.split(t, X, sign, weight)
    assert split is not None  # a plain support vector machine always has a solution
    return split


def exact_sparse_split(
    t: int, X: FloatArray, sign: FloatArray, weight: FloatArray, nodes: NodeProblems, time_limit: float
) -> Split:
    """Solve the mixed-integer model of a node with few features (WS-SVM of D'Onofrio et al. 2024, section 5).

    Parameters
    ----------
    t
        The node, whose sides are free.
    X, sign, weight
        (n_t, p) samples that reach it, their labels, -1 or +1, and weights.
    nodes
        Support vector machines with a budget of features.
    time_limit
        Seconds; the best split known then is given back.
    """
    known = nodes.split(t, X, sign, weight)
    assert known is not None  # with free sides every support has a split
    assert nodes.budget is not None
    C, budget, alpha = float(nodes.C[t]), int(nodes.budget[t]), nodes.alpha
    if known.value == 0 or X.shape[1] <= budget:
        return known
    n, p = X.shape
    M_w = np.sqrt(2 * known.value)  # 1/2 |w|^2 is at most the value of any known split
    m = Model("sparse node")
    w = m.continuous("w", p, lower=-M_w, upper=M_w)
    b = m.continuous("b")
    xi = m.nonnegative("xi", n)
    s = m.binary("s", p)
    excess = m.nonnegative("u", upper=0.0 if alpha is None else np.inf)
    m.minimize(0.5 * sum_squares(w) + C * (weight @ xi) + (alpha or 0.0) * excess)
    m.add("margin", sign * (X @ w + b) >= 1 - xi)
    m.add("above", w <= M_w * s)
    m.add("below", w >= -M_w * s)
    m.add("budget", s.sum() - excess <= budget)
    slack = np.maximum(0.0, 1 - sign * known.scores(X))
    used = (known.w != 0).astype(float)
    m.set_start(
        {
            "w": known.w,
            "b": np.array(known.b),
            "xi": slack,
            "s": used,
            "u": np.array(max(0.0, used.sum() - budget)),
        }
    )
    solution = solve(m, "highs", time_limit=time_limit)
    if not solution.found:
        return known
    weights = np.where(solution["s"] > 0.5, solution["w"], 0.0)
    bias = float(solution["b"])
    value = replace(nodes, budget=None).value(t, weights, bias, X, sign, weight)
    found = with_penalty(Split(weights, bias, value), budget, alpha)
    return min(known, found, key=lambda split: split.value)


# ------------------------------------------------------------------ the path


@dataclass(frozen=True, eq=False)
class _Subtree:
    splits: dict[int, Split]
    value: float


@dataclass(frozen=True, eq=False)
class _RoutedSplit:
    """Sides of a node's samples, its exact split for them, and a lower bound on what the subtrees add."""

    right: BoolArray
    split: Split
    below: float

    @property
    def bound(self) -> float:
        return self.split.value + self.below


def svm_path(
    data: Dataset, topology: Topology, nodes: NodeProblems, *, time_limit: float = TIME_LIMIT
) -> Tree:
    """Search routings from a path of penalties for the best exact objective.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        What each node's split costs.
    time_limit
        Seconds after which no further routing is tried; the best tree so far is completed and given back. So it is
        once the nodes' time has run out.

    Returns
    -------
    Tree
        For scaled features. Without feature budgets, and where node problems are solved exactly, never worse than the
        local SVM heuristic, whose routing of the root is on the path.
    """
    if data.n > nodes.exact_up_to:
        sample = _sample(data)
        share = float(data.weights.sum() / sample.weights.sum())
        weighing = replace(nodes, C=nodes.C * share, exact_up_to=0)
        return nodes.fitted_to_all(_searched(sample, topology, weighing, time_limit), data, topology)
    return _searched(data, topology, nodes, time_limit)


def _sample(data: Dataset) -> Dataset:
    """Draw samples, of each class its share and at least one."""
    rng, share = np.random.default_rng(0), min(1.0, MAX_SAMPLES / data.n)
    rows = [np.flatnonzero(data.sign == side) for side in (-1, 1)]
    drawn = [rng.choice(own, math.ceil(share * len(own)), replace=False) for own in rows]
    return data.take(np.sort(np.concatenate(drawn)))


def _searched(data: Dataset, topology: Topology, nodes: NodeProblems, time_limit: float) -> Tree:
    """Search the path on these very samples."""
    nodes = replace(nodes, time=nodes.time.part(time_limit))
    search = _Search(data, topology, nodes)
    best = search.subtree(0, np.arange(len(data.X)))
    if nodes.budget is not None:
        finalists = sorted(search.whole_trees, key=lambda tree: tree.value)[:FINALISTS]
        best = min([best, *map(search.refined, finalists)], key=lambda tree: tree.value)
    return nodes.tree(best.splits, data, topology)


class _Search:
    def __init__(self, data: Dataset, topology: Topology, nodes: NodeProblems) -> None:
        self.X, self.sign, self.weight = data.X, data.sign, data.weights
        self.topology, self.nodes = topology, nodes
        # The same object where there are no budgets: a bound below a routing is then the fit of the last level.
        self.without_budget = nodes if nodes.budget is None else replace(nodes, budget=None, alpha=None)
        self.whole_trees: list[_Subtree] = []
        self.fits: dict[tuple[object, ...], Split] = {}

    def subtree(self, t: int, members: IntArray) -> _Subtree:
        """Return the best subtree found for the samples that reach node t."""
        plain = self._plain(self.nodes, t, members)
        if t in self.topology.last_branches:
            return _Subtree({t: plain}, plain.value)
        routing_levels_below = self.topology.depth - self.topology.level(t) - 2
        all_penalties = routing_levels_below == 0 and self.nodes.budget is None
        own, *others = self._routings(t, members, plain, PENALTIES if all_penalties else COARSE_PENALTIES)
        width = WIDTHS.get(routing_levels_below, 1)
        best: _Subtree | None = None
        # The node's own routing is the local SVM's: with it, the tree is never worse.
        for routing in (own, *sorted(others, key=lambda routing: routing.bound)[:width]):
            if best is not None and (routing.bound >= best.value or self.nodes.time.expired):
                break
            left = self.subtree(self.topology.left(t), members[~routing.right])
            right = self.subtree(self.topology.right(t), members[routing.right])
            value = routing.split.value + left.value + right.value
            found = _Subtree({t: routing.split, **left.splits, **right.splits}, value)
            if t == 0:
                self.whole_trees.append(found)
            if best is None or value < best.value:
                best = found
        assert best is not None  # the node's own routing is always followed
        return best

    def refined(self, tree: _Subtree) -> _Subtree:
        """Search each node's features once more, without haste, for the same routing."""
        splits = dict(tree.splits)
        members = {0: np.arange(len(self.X))}
        for t in self.topology.branches:
            X, sign, weight = self.X[members[t]], self.sign[members[t]], self.weight[members[t]]
            is_last = t in self.topology.last_branches
            right = splits[t].scores(X) >= 0
            if self.nodes.time.expired:
                break
            better = self.nodes.split(t, X, sign, weight, right=None if is_last else right)
            if better is not None and better.value < splits[t].value:
                splits[t] = better
            if not is_last:
                left, right_child = self.topology.left(t), self.topology.right(t)
                members[left], members[right_child] = members[t][~right], members[t][right]
        return _Subtree(splits, sum(split.value for split in splits.values()))

    def _plain(self, nodes: NodeProblems, t: int, members: IntArray, C: float | None = None) -> Split:
        """Fit node t, sides free, once: exact for the last level; without budget, a lower bound for any subtree."""
        key = (nodes is self.nodes, t, C, members.tobytes())
        if key not in self.fits:
            X, sign, weight = self.X[members], self.sign[members], self.weight[members]
            split = nodes.split(t, X, sign, weight, C=C, quick=True)
            assert split is not None
            self.fits[key] = split
        return self.fits[key]

    def _routings(
        self, t: int, members: IntArray, plain: Split, penalties: tuple[float, ...]
    ) -> list[_RoutedSplit]:
        """Return the distinct routings of node t along the path, the one at its own penalty first."""
        X, sign, weight = self.X[members], self.sign[members], self.weight[members]
        found: dict[bytes, _RoutedSplit] = {}
        for C in (None, *penalties):
            if found and self.nodes.time.expired:
                break
            fitted = plain if C is None else self._plain(self.nodes, t, members, C)
            proposal, right = self.nodes.route(fitted, X)
            key = right.tobytes()
            if key in found:
                continue
            # The proposal as it is, at the node's own penalty.
            own = replace(proposal, value=self.nodes.value(t, proposal.w, proposal.b, X, sign, weight))
            split = self.nodes.split(t, X, sign, weight, right=right, quick=True) or own
            left_least = self._plain(self.without_budget, self.topology.left(t), members[~right]).value
            right_least = self._plain(self.without_budget, self.topology.right(t), members[right]).value
            best = min(split, own, key=lambda split: split.value)
            found[key] = _RoutedSplit(right, best, left_least + right_least)
        return list(found.values())


#: L-BFGS-B stops when no component of the projected gradient, relative to C times the number of samples, is larger.
GRADIENT_TOLERANCE = 1e-8

#: Most iterations. Problems of hundreds of samples take tens to hundreds; only one without an optimum,
#: as that of separable classes without a norm, runs on.
MAX_ITERATIONS = 5000


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
    w, b = smooth_minimum(
        X, sign, C, weight, norm,
        lambda margins: (np.logaddexp(0.0, -margins), -expit(-margins)),
        {"maxiter": MAX_ITERATIONS, "gtol": GRADIENT_TOLERANCE},
    )  # fmt: skip
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
