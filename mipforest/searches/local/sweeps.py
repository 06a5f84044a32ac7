r"""What a tree costs while samples move, one by one, from the leaves of one subtree to those of another.

The search for a split of node t keeps both its subtrees and asks where to cut an order of its samples (Dunn 2018,
algorithm 2.3). At first all samples are in one subtree. One after the other moves to the leaf that it reaches in the
other; the sums of the two leaves change by the sample's statistics, and so does the loss by a term that takes O(1)
(O(K) for K classes). A leaf that gets empty is dropped with the split above it, so that it saves the cost of a split; a
leaf with some samples, but less than ``N_min``, forbids the position.

**Absolute loss.** Leaves of the first subtree only lose samples on the way, and those of the other one only gain them;
gaining forward is losing backward. So two sweeps take samples out of lists by target that keep their weighted median
(:func:`mipforest.searches.medians.take_out`), and their losses are added.

**Impurity.** With :math:`n_{lk}` the weight of class k in leaf l, Gini's is
:math:`n_l - \sum_k n_{lk}^2 / n_l`. Starts grow by it. Beside the number of errors, with a
weight below the least difference of two losses, it leads the search over plateaus.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, Int32Array
from mipforest.searches import glue, kernel
from mipforest.searches.local.leaves import (
    ABSOLUTE,
    CLASSES,
    LINEAR,
    PRESCRIPTION,
    SQUARED,
    TWO_CLASSES,
    lasso_cost,
    prescription_cost,
)
from mipforest.searches.local.state import (
    LEAF,
    LEVEL,
    OWN,
    QUEUE,
    SIDE,
    SLOT,
    Samples,
    Work,
    copy_subtree,
    leaf_apart,
    leaf_below,
    list_below,
    order_at,
    value_below,
    within_margin,
)
from mipforest.searches.medians import settle, take_out

#: The median of a leaf is reached where twice the weight so far is this share of all: sums are rounded.
HALF = 1.0 - 1e-15


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
    if kind > PRESCRIPTION:
        return prescription_cost(kind - PRESCRIPTION, loss > 0.0, total)
    if total[0] <= 0.0:
        return 0.0
    return float(max(0.0, total[2] - total[1] * total[1] / total[0]))


@kernel
def fit_leaves(
    samples: Samples, work: Work, order: Int32Array, begin: int, m: int, column: int, leaves: int
) -> None:
    """Sum up leaves: samples are in that of a column of ``work.leaf``, or of their side if they stay there."""
    V = samples.value.shape[1]
    for leaf in range(leaves):
        work.leaves[leaf].size = 0
        for v in range(V):
            work.sums[0, leaf, v] = 0.0
    for q in range(begin, begin + m):
        i = order[0, q]
        leaf = work.leaf[i, column if work.leaf[i, SIDE] == 2 else work.leaf[i, SIDE]]
        work.leaves[leaf].size += 1
        for v in range(V):
            work.sums[0, leaf, v] += samples.value[i, v]
    if samples.kind != ABSOLUTE:
        for leaf in range(leaves):
            work.leaves[leaf].cost = leaf_cost(samples.kind, 1.0, samples.tie, work.sums[0, leaf])
        return
    below, below_y = work.leaves.below, work.leaves.below_y
    for leaf in range(leaves):
        work.leaves[leaf].cost = -1.0 if work.leaves[leaf].size > 0 else 0.0
        below[leaf] = below_y[leaf] = 0.0
    for q in range(begin, begin + m):
        i = order[-1, q]
        leaf = work.leaf[i, column if work.leaf[i, SIDE] == 2 else work.leaf[i, SIDE]]
        if work.leaves[leaf].cost >= 0.0:
            continue
        y, w, total, total_y = (
            samples.target[i],
            samples.value[i, 0],
            work.sums[0, leaf, 0],
            work.sums[0, leaf, 1],
        )
        below[leaf] += w
        below_y[leaf] += w * y
        if 2.0 * below[leaf] >= total * HALF:
            work.leaves[leaf].cost = max(0.0, y * (2.0 * below[leaf] - total) + total_y - 2.0 * below_y[leaf])


@kernel
def value_of_leaves(samples: Samples, work: Work, leaves: int) -> float:
    """Return the loss of leaves less the splits that empty ones save; infinite where one is too small."""
    total, empty = 0.0, 0
    for k in range(leaves):
        if 0 < work.leaves[k].size < samples.N_min:
            return np.inf
        total += work.leaves[k].cost
        empty += work.leaves[k].size == 0
    return float(total - samples.split_cost * empty)


@glue
def keep_base(work: Work, leaves: int) -> None:
    """Keep the leaves as they are, for the beginning of every sweep."""
    for leaf in range(leaves):
        work.leaves[leaf].base_size, work.leaves[leaf].base_cost = (
            work.leaves[leaf].size,
            work.leaves[leaf].cost,
        )
        for v in range(work.sums.shape[2]):
            work.sums[1, leaf, v] = work.sums[0, leaf, v]


@kernel
def sweep(
    samples: Samples,
    work: Work,
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
        The leaves stand in ``work`` at the beginning, as kept by :func:`keep_base`.
    ids
        (m,) samples in the order in which they move.
    source
        Column of ``work.leaf`` from which they move to the other one.
    leaves
        Number of leaves.
    kind, loss, impurity
        Which loss, and the weights of loss and impurity.
    """
    stat, curve = work.sums[0], work.curve
    N_min, V, total, bad, empty = samples.N_min, samples.value.shape[1], 0.0, 0, 0
    for k in range(leaves):
        leaf = work.leaves[k]
        leaf.size, leaf.cost = leaf.base_size, leaf.base_cost
        total += leaf.cost
        bad += 0 < leaf.size < N_min
        empty += leaf.size == 0
        for v in range(V):
            stat[k, v] = work.sums[1, k, v]
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
def add_medians(
    samples: Samples,
    work: Work,
    order: Int32Array,
    begin: int,
    m: int,
    ids: Int32Array,
    source: int,
    leaves: int,
) -> None:
    """Add the absolute losses to the curve of a sweep.

    Samples ``order[-1, begin : begin + m]``, by target, are in the sweep's leaves; those that do not move (their side
    is 0 or 1) are in the leaf of that column throughout.
    """
    for backward in range(2):
        column = 1 - source if backward else source
        total = _fill_lists(samples, work, order, begin, m, column, leaves)
        for step in range(len(ids)):
            q = len(ids) - 1 - step if backward else step
            if backward:
                work.curve[q] += total
            leaf = work.leaf[ids[q], column]
            total -= work.leaves[leaf].cost
            work.leaves[leaf].cost = take_out(
                samples, ids[q], leaf, work.leaves.middle, work.leaves.weight, work.leaves.weight_y, work.leaves.below,
                work.leaves.below_y, Links(work.links[0], work.links[1]),
            )  # fmt: skip
            total += work.leaves[leaf].cost
            if not backward:
                work.curve[q] += total


@glue
def _fill_lists(
    samples: Samples, work: Work, order: Int32Array, begin: int, m: int, column: int, leaves: int
) -> float:
    """Make one list by target for each leaf, of all samples that are in a column's leaves; return their loss."""
    lists = work.leaves
    weight, weight_y, below, below_y = lists.weight, lists.weight_y, lists.below, lists.below_y
    for leaf in range(leaves):
        work.leaves[leaf].middle = work.leaves[leaf].size = -1
        weight[leaf] = weight_y[leaf] = below[leaf] = below_y[leaf] = 0.0
    for q in range(begin, begin + m):
        i = order[-1, q]
        if work.leaf[i, SIDE] == 1 - column:
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
        work.leaves[leaf].cost = settle(
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
    return SQUARED if samples.kind == ABSOLUTE or samples.kind == LINEAR else samples.kind


@kernel
def refit(samples: Samples, work: Work, t: int) -> float:
    """Route the samples of a node through its subtree, fit its leaves and drop empty ones; return what it costs.

    Infinite where a leaf has too few samples, or the sides of a split are within the margin: samples that come to a
    node when a split above it changes may lie between them. Leaves have numbers of samples and losses then; their
    slices are made by :func:`~mipforest.searches.local.state.partition_below`.
    """
    nodes, leaves = work.trees[OWN], 0
    end = list_below(work, t, QUEUE)
    for k in range(end):
        u = work.places[QUEUE, k]
        nodes[u].low, nodes[u].high = -np.inf, np.inf
        if nodes[u].feature == LEAF:
            work.places[SLOT, u] = leaves
            leaves += 1
    begin, m = nodes[t].begin, nodes[t].count
    order = order_at(samples, work, work.places[LEVEL, t])
    for q in range(begin, begin + m):
        i = order[0, q]
        leaf = leaf_apart(samples, work, t, i) if samples.margin > 0.0 else leaf_below(samples, work, t, i)
        work.leaf[i, 0] = work.places[SLOT, leaf]
        work.leaf[i, SIDE] = 2
    fit_leaves(samples, work, order, begin, m, 0, leaves)
    bad = False
    for k in range(end - 1, -1, -1):
        u = work.places[QUEUE, k]
        a, b = 2 * u + 1, 2 * u + 2
        if nodes[u].feature == LEAF:
            nodes[u].count, nodes[u].cost = (
                work.leaves[work.places[SLOT, u]].size,
                work.leaves[work.places[SLOT, u]].cost,
            )
            bad |= 0 < nodes[u].count < samples.N_min
        elif nodes[a].count == 0 or nodes[b].count == 0:
            kept = nodes[a].count + nodes[b].count
            copy_subtree(work, OWN, a if nodes[b].count == 0 else b, OWN, u)
            nodes[u].count = kept
        else:
            nodes[u].count = nodes[a].count + nodes[b].count
            bad |= samples.margin > 0.0 and within_margin(samples, work, u)
    nodes[t].begin = begin
    return np.inf if bad else value_below(samples, work, t)
