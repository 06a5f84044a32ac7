r"""Compiled: what a tree costs while samples move, one by one, from the leaves of one subtree to those of another.

The search for a split of node t keeps both its subtrees and asks where to cut an order of its samples (Dunn 2018,
algorithm 2.3). At first all samples are in one subtree. One after the other moves to the leaf that it reaches in the
other; the sums of the two leaves change by the sample's statistics, and so does the loss by a term that takes O(1)
(O(K) for K classes). A leaf that gets empty is dropped with the split above it, so that it saves the cost of a split; a
leaf with some samples, but less than ``N_min``, forbids the position.

**Absolute loss.** Leaves of the first subtree only lose samples on the way, and those of the other one only gain them;
gaining forward is losing backward. So two sweeps take samples out of lists by target that keep their weighted median
(:func:`mipforest.searches.medians.remove`), and their losses are added.

**Impurity.** With :math:`n_{lk}` the weight of class k in leaf l, Gini's is
:math:`n_l - \sum_k n_{lk}^2 / n_l`. Starts grow by it. Added to the number of errors, with a
weight below the least difference of two losses, it leads the search over plateaus.

**Hyperplanes** are found one coefficient at a time (Dunn 2018, algorithm 3.1), with a margin. A sample's score is
:math:`V_i = a^\top x_i - b`; it goes left where that is negative. Features are in [0, 1]. Changing the coefficient
:math:`a_k` alone sends a sample left iff :math:`a_k < U_i` with

.. math::  U_i = a_k - V_i / x_{ik} \quad (x_{ik} > 0),

and samples with :math:`x_{ik} = 0` stay. So all values of the coefficient are one sweep in the order of U. Without the
coefficient, or with it, all thresholds are one sweep in the order of the other scores. What a sweep finds counts only
where both sides keep the model's margin: their scores are at least ``margin`` apart, for weights of sum 1. That is
looked at for positions that are better than the best so far, neighbours first.

Printed, the algorithm takes every trial for the incumbent and never returns it; here the incumbent only gets better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, Int32Array
from mipforest.searches import glue, kernel
from mipforest.searches.leaf_sums import (
    ABSOLUTE,
    CLASSES,
    LABELS,
    SQUARED,
    TWO_CLASSES,
    loss_of_sums,
    loss_of_vector,
)
from mipforest.searches.local.leaves import GROWN, LINEAR, PRESCRIPTION, lasso_cost, prescription_cost
from mipforest.searches.local.state import (
    LEAF,
    OWN,
    LocalWorkspace,
    Members,
    Samples,
    copy_subtree,
    draw,
    leaf_below,
    leaf_with_scores,
    list_below,
    members_of,
    value_below,
    within_margin,
)
from mipforest.searches.medians import loss_around, move_to_quantile, remove

#: The quantile of a leaf is reached where the weight so far is this share of its part of all: sums are rounded.
NEARLY = 1.0 - 1e-15


class Links(NamedTuple):
    """Neighbours of samples in the lists by target, (n,) each; -1 at the ends."""

    before: Int32Array
    after: Int32Array


@kernel
def leaf_cost(kind: int, loss: float, impurity: float, total: FloatArray) -> float:
    """Return the loss and the impurity of a leaf by its sums (V,), with their weights; not for the absolute loss.

    For linear leaves, the weight of the impurity is half the cost of their coefficients.
    """
    if kind == TWO_CLASSES:
        difference, both = total[0], total[1]
        value = 0.5 * loss * (both - abs(difference))
        if impurity > 0.0 and both > 0.0:
            value += 0.5 * impurity * (both - difference * difference / both)
        return float(value)
    if kind == CLASSES:
        least, all_classes = total[0], 0.0
        for k in range(len(total)):
            least = min(least, total[k])
            all_classes += total[k]
        if impurity == 0.0:
            return float(loss * least)
        # A sample adds its weight to the losses of all classes but its own.
        weight, squares = all_classes / (len(total) - 1), 0.0
        if weight <= 0.0:
            return 0.0
        for k in range(len(total)):
            squares += (weight - total[k]) ** 2
        return float(loss * least + impurity * (weight - squares / weight))
    if kind == LINEAR:
        return lasso_cost(impurity, total)
    if kind > LABELS:
        return _cost_of_labels(kind - LABELS, loss, impurity, total)
    if kind > PRESCRIPTION:
        return prescription_cost(kind - PRESCRIPTION, loss > 0.0, total)
    if kind == GROWN:
        return loss_of_sums(SQUARED, total[0], total[1], total[2])
    if len(total) > 3:
        return loss_of_vector(kind, total, total, 0.0)
    return loss_of_sums(kind, total[0], total[1], total[2])


@kernel
def _cost_of_labels(labels: int, loss: float, impurity: float, total: FloatArray) -> float:
    """Return the loss and the impurity of several labels of a leaf, each by the costs of its classes."""
    value = loss * loss_of_vector(LABELS + labels, total, total, 0.0)
    K = len(total) // labels
    for first in range(0, len(total) if impurity > 0.0 else 0, K):
        weight, squares = 0.0, 0.0
        for k in range(first, first + K):
            weight += total[k] / (K - 1)
        if weight <= 0.0:
            continue
        for k in range(first, first + K):
            squares += (weight - total[k]) ** 2
        value += impurity * (weight - squares / weight)
    return float(value)


@kernel
def fit_leaves(samples: Samples, work: LocalWorkspace, members: Members, column: int, leaves: int) -> None:
    """Sum up leaves: samples are in that of a column of ``work.leaf``, or of their side if they stay there."""
    V = samples.value.shape[1]
    for leaf in range(leaves):
        work.leaves[leaf].size = 0
        for v in range(V):
            work.sums[leaf, v] = 0.0
    for q in range(members.begin, members.end):
        i = members.order[0, q]
        leaf = work.leaf[i, column if work.side[i] == 2 else work.side[i]]
        work.leaves[leaf].size += 1
        for v in range(V):
            work.sums[leaf, v] += samples.value[i, v]
    if samples.kind != ABSOLUTE:
        for leaf in range(leaves):
            work.leaves[leaf].cost = leaf_cost(samples.kind, 1.0, samples.tie, work.sums[leaf])
        return
    below, below_y = work.leaves.below, work.leaves.below_y
    for leaf in range(leaves):
        work.leaves[leaf].cost = -1.0 if work.leaves[leaf].size > 0 else 0.0
        below[leaf] = below_y[leaf] = 0.0
    for q in range(members.begin, members.end):
        i = members.order[-1, q]
        leaf = work.leaf[i, column if work.side[i] == 2 else work.side[i]]
        if work.leaves[leaf].cost >= 0.0:
            continue
        y, w, total, total_y = (
            samples.target[i],
            samples.value[i, 0],
            work.sums[leaf, 0],
            work.sums[leaf, 1],
        )
        below[leaf] += w
        below_y[leaf] += w * y
        if below[leaf] >= samples.level * total * NEARLY:
            work.leaves[leaf].cost = loss_around(samples.level, y, below[leaf], below_y[leaf], total, total_y)


@kernel
def value_of_leaves(samples: Samples, work: LocalWorkspace, leaves: int) -> float:
    """Return the loss of leaves less the splits that empty ones save; infinite where one is too small."""
    total, empty = 0.0, 0
    for k in range(leaves):
        if 0 < work.leaves[k].size < samples.N_min:
            return np.inf
        total += work.leaves[k].cost
        empty += work.leaves[k].size == 0
    return float(total - samples.split_cost * empty)


@glue
def save_leaves(work: LocalWorkspace, leaves: int) -> None:
    """Keep the leaves as they are, for the beginning of every sweep."""
    for leaf in range(leaves):
        work.leaves[leaf].base_size, work.leaves[leaf].base_cost = (
            work.leaves[leaf].size,
            work.leaves[leaf].cost,
        )
        for v in range(work.sums.shape[1]):
            work.base_sums[leaf, v] = work.sums[leaf, v]


@kernel
def sweep(
    samples: Samples,
    work: LocalWorkspace,
    ids: Int32Array,
    source: int,
    leaves: int,
    kind: int,
    loss: float,
    impurity: float,
) -> None:
    """Move samples (m,) one by one; write what all leaves cost, with the splits saved, to the curve after each.

    Parameters
    ----------
    samples, work
        The leaves stand in ``work`` at the beginning, as kept by :func:`save_leaves`.
    ids
        (m,) samples in the order in which they move.
    source
        Column of ``work.leaf`` from which they move to the other one.
    leaves
        Number of leaves.
    kind, loss, impurity
        Which loss, and the weights of loss and impurity.
    """
    stat, curve = work.sums, work.curve
    N_min, V, total, bad, empty = samples.N_min, samples.value.shape[1], 0.0, 0, 0
    for k in range(leaves):
        leaf = work.leaves[k]
        leaf.size, leaf.cost = leaf.base_size, leaf.base_cost
        total += leaf.cost
        bad += 0 < leaf.size < N_min
        empty += leaf.size == 0
        for v in range(V):
            stat[k, v] = work.base_sums[k, v]
    for q in range(len(ids)):
        i = ids[q]
        a, b = work.leaf[i, source], work.leaf[i, 1 - source]
        old, new = work.leaves[a], work.leaves[b]
        bad -= (old.size < N_min) + (0 < new.size < N_min)
        empty -= new.size == 0
        old.size -= 1
        new.size += 1
        bad += (0 < old.size < N_min) + (new.size < N_min)
        empty += old.size == 0
        if kind != ABSOLUTE:
            for v in range(V):
                x = samples.value[i, v]
                stat[a, v] -= x
                stat[b, v] += x
            cost = leaf_cost(kind, loss, impurity, stat[a])
            total += cost - old.cost
            old.cost = cost
            cost = leaf_cost(kind, loss, impurity, stat[b])
            total += cost - new.cost
            new.cost = cost
        curve[q] = (total if kind != ABSOLUTE else 0.0) - samples.split_cost * empty if bad == 0 else np.inf


@kernel
def add_absolute_losses(
    samples: Samples,
    work: LocalWorkspace,
    members: Members,
    ids: Int32Array,
    source: int,
    leaves: int,
) -> None:
    """Add the absolute losses to the curve of a sweep.

    The members, by target, are in the sweep's leaves; those that do not move (their side
    is 0 or 1) are in the leaf of that column throughout.
    """
    for backward in range(2):
        column = 1 - source if backward else source
        total = _fill_lists(samples, work, members, column, leaves)
        for step in range(len(ids)):
            q = len(ids) - 1 - step if backward else step
            if backward:
                work.curve[q] += total
            leaf = work.leaf[ids[q], column]
            total -= work.leaves[leaf].cost
            work.leaves[leaf].cost = remove(
                samples, ids[q], leaf, work.leaves.middle, work.leaves.weight, work.leaves.weight_y, work.leaves.below,
                work.leaves.below_y, Links(work.links[0], work.links[1]),
            )  # fmt: skip
            total += work.leaves[leaf].cost
            if not backward:
                work.curve[q] += total


@glue
def _fill_lists(samples: Samples, work: LocalWorkspace, members: Members, column: int, leaves: int) -> float:
    """Make one list by target for each leaf, of all samples that are in a column's leaves; return their loss."""
    lists = work.leaves
    weight, weight_y, below, below_y = lists.weight, lists.weight_y, lists.below, lists.below_y
    for leaf in range(leaves):
        work.leaves[leaf].middle = work.leaves[leaf].size = -1
        weight[leaf] = weight_y[leaf] = below[leaf] = below_y[leaf] = 0.0
    for q in range(members.begin, members.end):
        i = members.order[-1, q]
        if work.side[i] == 1 - column:
            continue
        leaf = work.leaf[i, column]
        last = work.leaves[leaf].size
        work.links[0, i], work.links[1, i] = last, -1
        if last >= 0:
            work.links[1, last] = i
        else:
            work.leaves[leaf].middle = i
        work.leaves[leaf].size = i
        weight[leaf] += samples.value[i, 0]
        weight_y[leaf] += samples.value[i, 1]
    total = 0.0
    for leaf in range(leaves):
        work.leaves[leaf].cost = move_to_quantile(
            samples,
            work.leaves.middle,
            leaf,
            weight,
            weight_y,
            below,
            below_y,
            Links(work.links[0], work.links[1]),
        )
        total += work.leaves[leaf].cost
    return total


@glue
def growth_kind(samples: Samples) -> int:
    """Return the loss by which starts grow."""
    if samples.kind == LINEAR:
        return GROWN
    return SQUARED if samples.kind == ABSOLUTE else samples.kind


@kernel
def refit(samples: Samples, work: LocalWorkspace, t: int) -> float:
    """Route the samples of a node through its subtree, fit its leaves and drop empty ones; return what it costs.

    Infinite where a leaf has too few samples, or the sides of a split are within the margin: samples that come to a
    node when a split above it changes may lie between them. Leaves have numbers of samples and losses then; their
    slices are made by :func:`~mipforest.searches.local.state.partition_below`.
    """
    nodes, leaves = work.trees[OWN], 0
    end = list_below(work, t, work.queue)
    for k in range(end):
        u = work.queue[k]
        nodes[u].low, nodes[u].high = -np.inf, np.inf
        if nodes[u].feature == LEAF:
            work.slot[u] = leaves
            leaves += 1
    members = members_of(samples, work, t)
    for q in range(members.begin, members.end):
        i = members.order[0, q]
        leaf = (
            leaf_with_scores(samples, work, t, i) if samples.margin > 0.0 else leaf_below(samples, work, t, i)
        )
        work.leaf[i, 0] = work.slot[leaf]
        work.side[i] = 2
    fit_leaves(samples, work, members, 0, leaves)
    bad = False
    for k in range(end - 1, -1, -1):
        u = work.queue[k]
        a, b = 2 * u + 1, 2 * u + 2
        if nodes[u].feature == LEAF:
            nodes[u].count, nodes[u].cost = (
                work.leaves[work.slot[u]].size,
                work.leaves[work.slot[u]].cost,
            )
            bad |= 0 < nodes[u].count < samples.N_min
        elif nodes[a].count == 0 or nodes[b].count == 0:
            kept = nodes[a].count + nodes[b].count
            copy_subtree(work, OWN, a if nodes[b].count == 0 else b, OWN, u)
            nodes[u].count = kept
        else:
            nodes[u].count = nodes[a].count + nodes[b].count
            bad |= samples.margin > 0.0 and within_margin(samples, work, u)
    nodes[t].begin = members.begin
    return np.inf if bad else value_below(samples, work, t)


#: Most rounds over all coefficients of one hyperplane; two to four are usual.
ROUNDS = 20

#: Features of a random hyperplane, at most.
MAX_FEATURES = 10

#: Sizes of the largest weight between which a hyperplane is not scaled anew: scores stay far from overflow.
SMALL, LARGE = 1e-6, 1e6

#: The margin is asked for with this share more, so that rounding in another order leaves it.
MARGIN_ROOM = 1e-6


@kernel
def find_hyperplane(
    samples: Samples,
    work: LocalWorkspace,
    members: Members,
    leaves: int,
    charges: float,
    feature: int,
    cut: int,
    parallel: float,
    best: float,
) -> bool:
    """Find a hyperplane for a node whose value is below the best one; return whether there is one.

    It starts with the best univariate split (``feature``, -1 for none; ``cut``; its value), then with random ones. The
    other parameters are those of :func:`improve_hyperplane`. The weights are in ``work.best_weights``.
    """
    p, a, found = len(samples.rank), work.weights, False
    for h in range(samples.hyperplanes + 1):
        value = np.inf
        if h > 0:
            draw_hyperplane(samples, work, members)
        elif feature < 0:
            continue
        else:
            low, high, value = -np.inf, np.inf, parallel
            for j in range(p):
                a[j] = 1.0 if j == feature else 0.0
            for q in range(members.begin, members.end):
                i = members.order[0, q]
                if samples.rank[feature, i] < cut:
                    low = max(low, samples.X[i, feature])
                else:
                    high = min(high, samples.X[i, feature])
            a[p] = low + 0.5 * (high - low)
        value = improve_hyperplane(samples, work, members, leaves, charges, value)
        if value < best:
            found, best = True, value
            for j in range(p + 1):
                work.best_weights[j] = a[j]
    return found


@kernel
def find_no_hyperplane(*_: object) -> bool:
    """Find none: in place of :func:`find_hyperplane` where splits are univariate."""
    return False


@glue
def draw_hyperplane(samples: Samples, work: LocalWorkspace, members: Members) -> None:
    """Draw weights, and a threshold between the scores of two samples of the node."""
    p, a = len(samples.rank), work.weights
    number = min(samples.max_features, p if p <= MAX_FEATURES else 1 + draw(work, MAX_FEATURES))
    for j in range(p):
        a[j], work.features[j] = 0.0, j
    for k in range(number):
        other = k + draw(work, p - k)
        j = work.features[other]
        work.features[other] = work.features[k]
        a[j] = 2.0 * draw(work, 2**30) / 2**30 - 1.0
    a[p] = 0.0
    for _ in range(2):
        i = members.order[0, members.begin + draw(work, members.end - members.begin)]
        for j in range(p):
            a[p] += 0.5 * a[j] * samples.X[i, j]


@glue
def improve_hyperplane(
    samples: Samples,
    work: LocalWorkspace,
    members: Members,
    leaves: int,
    charges: float,
    value: float,
) -> float:
    """Improve the hyperplane at work of the node whose samples' leaves are in ``work``; return its value.

    Parameters
    ----------
    samples, work, members, leaves
        As for :func:`~mipforest.searches.local.sweeps.add_absolute_losses`.
    charges
        Costs of the splits of both subtrees.
    value
        Value of the hyperplane; infinite where it is unknown, or keeps no margin.
    """
    p, a = len(samples.rank), work.weights
    _score(samples, work, members)
    for _ in range(ROUNDS):
        changed = False
        for j in range(p):
            work.features[j] = j
        # First the threshold alone.
        for step in range(p + 1):
            k = -1
            if step > 0:
                other = step - 1 + draw(work, p - step + 1)
                k = work.features[other]
                work.features[other] = work.features[step - 1]
            used, size = 0, 0.0
            for j in range(p):
                if j != k:
                    used += a[j] != 0.0
                    size += abs(a[j])
            best, new, shift = value - samples.tolerance, 0.0, 0.0
            if k < 0 or (a[k] != 0.0 and used > 0):
                constant = charges + samples.split_cost * used
                found, b = _best_threshold(samples, work, members, leaves, k, size, best - constant)
                if found < np.inf:
                    best, shift = found + constant, b - a[p]
            if k >= 0 and used < samples.max_features:
                constant = charges + samples.split_cost * (used + 1)
                found, c, moved = _best_coefficient(samples, work, members, leaves, k, size, best - constant)
                if found < np.inf:
                    best, new, shift = found + constant, c, moved
            if best < value - samples.tolerance:
                changed, value = True, best
                if k >= 0:
                    a[k] = new
                a[p] += shift
                _score(samples, work, members)
        if not changed:
            break
    return value


@kernel
def _score(samples: Samples, work: LocalWorkspace, members: Members) -> None:
    """Write the scores of a node's samples, less the threshold; keep the weights' sizes in bounds."""
    p, a = len(samples.rank), work.weights
    largest = abs(a[p])
    for j in range(p):
        largest = max(largest, abs(a[j]))
    if largest > LARGE or 0.0 < largest < SMALL:
        for j in range(p + 1):
            a[j] /= largest
    for q in range(members.begin, members.end):
        i = members.order[0, q]
        score = 0.0
        for j in range(p):
            score += a[j] * samples.X[i, j]
        work.scores[i] = score - a[p]


@kernel
def _sweep(
    samples: Samples,
    work: LocalWorkspace,
    members: Members,
    leaves: int,
    moving: int,
    source: int,
) -> float:
    """Sort the moving samples by key and sweep them; return what the leaves cost before."""
    _sort(work.key, work.ids, moving)
    fit_leaves(samples, work, members, source, leaves)
    save_leaves(work, leaves)
    before = value_of_leaves(samples, work, leaves)
    ids = work.ids[:moving]
    sweep(samples, work, ids, source, leaves, samples.kind, 1.0, samples.tie)
    if samples.kind == ABSOLUTE:
        add_absolute_losses(samples, work, members, ids, source, leaves)
    return before


@glue
def _best_threshold(
    samples: Samples,
    work: LocalWorkspace,
    members: Members,
    leaves: int,
    k: int,
    size: float,
    cutoff: float,
) -> tuple[float, float]:
    """Return the least value below a cutoff, of thresholds without coefficient k (-1: with all), and the threshold."""
    p, a, best, threshold = len(samples.rank), work.weights, np.inf, 0.0
    m = members.end - members.begin
    for q in range(m):
        i = members.order[0, members.begin + q]
        work.ids[q], work.side[i] = i, 2
        work.key[q] = work.scores[i] + a[p] - (a[k] * samples.X[i, k] if k >= 0 else 0.0)
    _sweep(samples, work, members, leaves, m, 1)
    least = samples.margin * (1.0 + MARGIN_ROOM) * size
    for q in range(m - 1):
        if work.curve[q] < cutoff and work.key[q + 1] - work.key[q] > least:
            best = cutoff = work.curve[q]
            threshold = work.key[q] + 0.5 * (work.key[q + 1] - work.key[q])
    return best, threshold


@glue
def _best_coefficient(
    samples: Samples,
    work: LocalWorkspace,
    members: Members,
    leaves: int,
    k: int,
    size: float,
    cutoff: float,
) -> tuple[float, float, float]:
    """Return the least value below a cutoff of all coefficients k, that coefficient, and a move of the threshold."""
    a, best, coefficient, shift, moving = work.weights, np.inf, 0.0, 0.0, 0
    for q in range(members.begin, members.end):
        i = members.order[0, q]
        x, score = samples.X[i, k], work.scores[i]
        if x > 0.0:
            work.ids[moving], work.key[moving], work.side[i] = i, a[k] - score / x, 2
            moving += 1
        else:
            work.side[i] = score >= 0.0
    if moving == 0:
        return best, coefficient, shift
    before = _sweep(samples, work, members, leaves, moving, 0)
    for q in range(-1, moving):
        found = before if q < 0 else work.curve[q]
        if not found < cutoff:
            continue
        if q < 0:
            c = work.key[0] - max(1.0, abs(work.key[0]))
        elif q == moving - 1:
            c = work.key[q] + max(1.0, abs(work.key[q]))
        else:
            c = work.key[q] + 0.5 * (work.key[q + 1] - work.key[q])
            if not work.key[q] < c < work.key[q + 1]:
                continue
        if c == 0.0:
            continue
        low, high = _sides(
            samples, work, members, k, c - a[k], q, samples.margin * (1.0 + MARGIN_ROOM) * (size + abs(c))
        )
        if low < high:
            best = cutoff = found
            coefficient, shift = c, low + 0.5 * (high - low)
    return best, coefficient, shift


@glue
def _sides(
    samples: Samples,
    work: LocalWorkspace,
    members: Members,
    k: int,
    change: float,
    at: int,
    least: float,
) -> tuple[float, float]:
    """Return the greatest score left and the least right once a coefficient has changed; (0, 0) within the margin.

    Samples near position ``at`` of the sweep come first: where there is no margin, they mostly show it.
    """
    low, high = -np.inf, np.inf
    for q in range(max(0, at - 2), min(len(work.ids), at + 4)):
        if q >= members.end - members.begin:
            break
        i = work.ids[q]
        if work.side[i] != 2:
            break
        score = work.scores[i] + change * samples.X[i, k]
        if score < 0.0:
            low = max(low, score)
        else:
            high = min(high, score)
    if high - low <= least:
        return 0.0, 0.0
    for q in range(members.begin, members.end):
        i = members.order[0, q]
        score = work.scores[i] + change * samples.X[i, k]
        if score < 0.0:
            low = max(low, score)
        else:
            high = min(high, score)
        if high - low <= least:
            return 0.0, 0.0
    if low == -np.inf or high == np.inf:
        return 0.0, 0.0
    return low, high


@glue
def _sort(key: FloatArray, ids: Int32Array, m: int) -> None:
    """Sort keys, and samples with them, in place (a heap sort)."""
    for step in range(m // 2 - 1 + m):
        root, end = m // 2 - 1 - step, m
        if root < 0:
            end, root = m + root, 0
            key[0], key[end] = key[end], key[0]
            ids[0], ids[end] = ids[end], ids[0]
        top, sample = key[root], ids[root]
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and key[child + 1] > key[child]:
                child += 1
            if key[child] <= top:
                break
            key[root], ids[root] = key[child], ids[child]
            root = child
        key[root], ids[root] = top, sample
