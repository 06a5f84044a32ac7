r"""Given splits: nodes that part samples by one feature at a threshold, and choose nothing but the weight.

The rows of :func:`mipforest.constraints.fix_split` leave a node t the feature j alone, a bias
:math:`b = -\theta w_j` and a weight :math:`w_j \ge \omega`, the least one that keeps the next training sample
:math:`\varepsilon` away. So all sides are known, and the node's charge is a convex function of one number:

.. math::

    \min_{w \ge \omega}\; \Omega(w) + \sum_k u_k \max(0, r_k - a_k w) , \quad a_k = d_k (x_k - \theta)

with a term for each class of a group and kink of the loss. Its slope jumps at :math:`r_k / a_k`, so its minimum is
found by sorting these. A further term raises the minimum by at least what it costs where the slopes there, and the
curvature of the norm, are all that holds the weight back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.objectives.losses import L1
from mipforest.problem.constraints import Split
from mipforest.problem.constraints.rows import scaled_split
from mipforest.problem.problem_data import ProblemData
from mipforest.trees import Tree
from mipforest.trees.sides import keep_sides


@dataclass(frozen=True)
class GivenSplit:
    """A split of one feature whose weight is free.

    Attributes
    ----------
    feature, threshold
        Samples whose (scaled) feature is at least the threshold go right.
    least
        Least weight.
    """

    feature: int
    threshold: float
    least: float

    def above(self, X: FloatArray) -> FloatArray:
        """Return (n,) by how much samples are above the threshold."""
        distance: FloatArray = X[:, self.feature] - self.threshold
        return distance

    def right(self, X: FloatArray) -> BoolArray:
        """Return (n,) which samples go right."""
        goes_right: BoolArray = X[:, self.feature] >= self.threshold
        return goes_right


#: By branch node.
GivenSplits = Mapping[int, GivenSplit]


@dataclass(frozen=True)
class BestWeight:
    """The best weight of a given split.

    Attributes
    ----------
    weight, value
        The weight, and what the node is charged with it.
    falls, rises
        By how much the charge rises per unit of a smaller and of a larger weight, the norm's curvature left out;
        infinite where the weight may not be smaller.
    """

    weight: float
    value: float
    falls: float
    rises: float


def best_weight(a: FloatArray, r: FloatArray, u: FloatArray, *, least: float, l1: bool) -> BestWeight:
    """Return the weight that is charged least; see the module's text.

    Parameters
    ----------
    a, r, u
        (m,) slopes of the scores, kinks, and costs of a unit.
    least
        Least weight, above 0.
    l1
        Whether the norm is the weight itself; else half its square.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kink = np.where(a != 0.0, r / a, np.inf)
    active = np.where(a > 0.0, kink > least, (a < 0.0) & (kink <= least))
    later = (a != 0.0) & (kink > least)
    order = np.argsort(kink[later], kind="stable")
    begin = np.concatenate([[least], kink[later][order]])
    jumps = (u * np.abs(a))[later][order]
    slope = np.concatenate([[0.0], np.cumsum(jumps)]) - float((u * a)[active].sum()) + (1.0 if l1 else 0.0)
    end = np.append(begin[1:], np.inf)
    # The slope is that of the losses, and of the l1 norm; half the square adds the weight.
    k = int(np.argmax(slope >= 0.0 if l1 else end + slope >= 0.0))
    weight = float(begin[k]) if l1 else max(float(begin[k]), -float(slope[k]))
    curved = 0.0 if l1 else weight
    falls, rises = 0.0, 0.0
    if weight == begin[k]:
        rises = max(0.0, curved + float(slope[k]))
        falls = np.inf if k == 0 else max(0.0, -curved - float(slope[k - 1]))
    norm = weight if l1 else 0.5 * weight * weight
    return BestWeight(weight, norm + float(u @ np.maximum(0.0, r - a * weight)), falls, rises)


def least_gains(best: BestWeight, a: FloatArray, r: FloatArray, u: FloatArray, *, l1: bool) -> FloatArray:
    """Return (m,) what further terms, one at a time, raise the least charge by at least."""
    missing, size = np.maximum(0.0, r - a * best.weight), np.abs(a)
    rate = np.where(a > 0.0, best.rises, best.falls)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = np.where(size > 0.0, missing / size, 0.0)
    spare = np.maximum(0.0, u * size - rate)
    move = np.where(spare > 0.0, whole if l1 else np.minimum(whole, spare), 0.0)
    held = np.where(move > 0.0, rate, 0.0) * move + (0.0 if l1 else 0.5) * move * move
    gains: FloatArray = held + u * np.maximum(0.0, missing - size * move)
    return gains


def given_splits(problem: ProblemData) -> dict[int, GivenSplit]:
    """Return the splits that constraints of a problem give."""
    nodes, found = problem.structure, {}
    assert isinstance(nodes, NodeProblems)
    for constraint in problem.constraints:
        # Models with hyperplanes express no range of thresholds.
        if isinstance(constraint, Split) and isinstance(constraint.threshold, float):
            own, at = scaled_split(problem, constraint.feature, constraint.threshold)
            found[constraint.node] = _given(
                problem.data.X[:, own[0]], int(own[0]), float(at[0]), nodes.epsilon
            )
    return found


def _given(x: FloatArray, feature: int, threshold: float, epsilon: float) -> GivenSplit:
    below = x[x < threshold]
    return GivenSplit(
        feature, threshold, epsilon / (threshold - float(below.max())) if len(below) else np.inf
    )


def why_not_given(problem: ProblemData, allowed: BoolArray) -> str:
    """Say why given splits cannot be beside the features (|B|, p) that nodes may use; empty where they can."""
    for t, split in given_splits(problem).items():
        if not allowed[t, split.feature]:
            name = problem.data.features.labels[split.feature]
            return f"the split of node {t} is given on {name}, which is forbidden there"
    return ""


def passed_on(reached: IntArray, right: Mapping[int, BoolArray]) -> IntArray:
    """Return where groups (G,) are once none stands at a node whose sides (G,) are given."""
    found = np.array(reached)
    for t in sorted(right):
        here = found == t
        found[here] = 2 * t + 1 + right[t][here]
    return found


def with_given(tree: Tree, problem: ProblemData, given: GivenSplits) -> Tree:
    """Return a tree like another with given splits, each with the best weight for the samples that reach it."""
    nodes, data = problem.structure, problem.data
    assert isinstance(nodes, NodeProblems)
    w, b, at = tree.w.copy(), tree.b.copy(), np.zeros(data.n, dtype=np.int64)
    kinks = nodes.loss.convex.kinks()
    for t in problem.topology.branches:
        here = at == t
        if t in given:
            split, X = given[t], data.X
            a = np.repeat(data.sign[here] * split.above(X[here]), len(kinks))
            r, slopes = np.tile(kinks.T, int(here.sum()))
            u = float(np.asarray(nodes.C)[t]) * np.repeat(data.weights[here], len(kinks)) * slopes
            best = best_weight(a, r, u, least=split.least, l1=nodes.norm is L1)
            w[t] = 0.0
            w[t, split.feature] = best.weight
            b[t] = keep_sides(X, w[t], split.right(X), -split.threshold * best.weight, sizes=data.sizes)
        goes_right = data.X[here] @ w[t] + b[t] >= 0.0
        at[here] = 2 * t + 1 + goes_right
    return replace(tree, w=w, b=b)
