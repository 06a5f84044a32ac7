"""State of a local search: its samples, the tree at work, and the samples of every node in the order of every feature.

Nodes are numbered as in a heap: root 0, children 2t + 1 and 2t + 2. Every branch node at level d < D owns one slice,
``begin : begin + count``, of level d in **every** feature's order; the slices of its children, one level below, are a
stable partition of it. So no visit of a node sorts anything, and a change at node t costs the partitions below t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, Int32Array, IntArray, Records
from mipforest.searches import glue, kernel
from mipforest.searches.local.leaves import LINEAR

#: In place of a split's feature: a leaf, no node at all, a hyperplane.
LEAF, NONE, OBLIQUE = -1, -2, 2**30


class Samples(NamedTuple):
    """The samples of a search, and what their trees are charged; all threads read the same.

    Attributes
    ----------
    kind
        Which loss (:mod:`mipforest.searches.local.leaves`).
    N_min
        Least number of samples in a leaf.
    rank
        (p, n) rank of each sample among the distinct values of each feature that varies.
    order
        (p, n) samples in the order of each feature; for the absolute loss (p + 1, n), the last row by target.
    first, distinct
        (p + 1,) where each feature's distinct values begin in (q,) those of all.
    X
        (n, p) the same features as values, row by row; (0, p) where no split has more than one feature.
    value
        (n, V) statistics that are summed over leaves, see :data:`~mipforest.searches.leaf_sums.CLASSES`.
    target, place
        (n,) target of a regression, and place of each sample in its order.
    split_cost
        Cost of a split, or of a feature in a split, in units of the loss.
    margin
        Least distance between both sides of a split, by weights of sum 1.
    tie
        Weight of the leaves' impurity in what is minimised: so small that it only decides between equal losses. Of
        linear leaves, half the cost of their coefficients.
    tolerance
        Least improvement that counts.
    pass_tolerance
        Least improvement by a pass over all nodes after which there is another one.
    hyperplanes
        Random hyperplanes that each visit of a node tries, besides the best univariate split; -1 for univariate trees.
    max_features
        Most features of a hyperplane.
    allowed, group
        (|B|, p) whether each node of a univariate tree may split on each feature, without rows where all may; and (p,)
        the number of the group of a feature that comes once on a path, -1 for none.
    level
        Of the quantile that a leaf predicts, of the absolute loss.
    """

    kind: int
    N_min: int
    rank: Int32Array
    order: Int32Array
    first: IntArray
    distinct: FloatArray
    X: FloatArray
    value: FloatArray
    target: FloatArray
    place: Int32Array
    split_cost: float
    margin: float
    tie: float
    tolerance: float
    pass_tolerance: float
    hyperplanes: int
    max_features: int
    allowed: NDArray[np.uint8]
    group: IntArray
    level: float


#: A node: feature of its split, or :data:`LEAF`, :data:`NONE`, :data:`OBLIQUE`; least rank that goes right, or least
#: score; slice of its samples; loss of a leaf; whether the last visit found nothing, and nothing has changed since;
#: where splits have a margin, the greatest score that goes left and the least that goes right.
NODE = np.dtype(
    [
        ("feature", "i8"),
        ("cut", "i8"),
        ("threshold", "f8"),
        ("begin", "i8"),
        ("count", "i8"),
        ("cost", "f8"),
        ("clean", "i8"),
        ("low", "f8"),
        ("high", "f8"),
    ],
    align=True,
)

#: A leaf during a sweep: samples and loss, both also at its beginning; middle of its list by target (for the absolute
#: loss), the list's sums of weight and of weight times target, and those before the middle.
LEAF_STATE = np.dtype(
    [
        ("size", "i8"),
        ("cost", "f8"),
        ("base_size", "i8"),
        ("base_cost", "f8"),
        ("middle", "i8"),
        ("weight", "f8"),
        ("weight_y", "f8"),
        ("below", "f8"),
        ("below_y", "f8"),
    ],
    align=True,
)

#: Trees of a thread: at work, what a trial may have to bring back, and the best one of a chain of kicks.
OWN, SAVED, CHAIN = 0, 1, 2


class LocalWorkspace(NamedTuple):
    """Memory of one thread, in few arrays: every one makes every call longer to compile.

    Attributes
    ----------
    trees
        (3, m) records :data:`NODE`: three trees, over all places of a heap.
    w
        (3, m, p) weights of their hyperplanes; no rows for univariate trees.
    order
        (D - 1, ..., n) orders of levels 1 to D - 1; that of the root is the samples' own.
    queue, visits
        (m,) nodes below one, and those of a pass.
    slot, level
        (m,) number of a leaf below the node at work, and level of a node.
    leaf
        (n, 2) leaf, by number below the node at work, that a sample reaches in the left and in the right subtree.
    side
        (n,) whether a sample goes right, or, of sweeps, in which subtree it stays: 0, 1, or 2 for none.
    sums, base_sums
        (L, V) statistics of leaves during a sweep, and at its beginning.
    leaves
        (L,) records :data:`LEAF_STATE`.
    links
        (2, n) neighbours in the lists by target.
    curve
        (n,) what is charged after each step of a sweep.
    ids, key
        (n,) samples of a sweep over a coefficient, and (n,) where it changes their sides.
    scores
        (n,) scores of samples at a hyperplane.
    weights, best_weights
        (p + 1,) weights and threshold of a hyperplane at work, and of the best one of a visit.
    best_values, best_cuts
        (p,) what the best position of each feature leads to, and its cut; only where splits have a margin.
    features
        (p,) features in the order in which they are drawn.
    random
        (1,) state of the random numbers.
    """

    trees: Records
    w: FloatArray
    order: Int32Array
    queue: IntArray
    visits: IntArray
    slot: IntArray
    level: IntArray
    leaf: Int32Array
    side: Int32Array
    sums: FloatArray
    base_sums: FloatArray
    leaves: Records
    links: Int32Array
    curve: FloatArray
    ids: Int32Array
    key: FloatArray
    scores: FloatArray
    weights: FloatArray
    best_weights: FloatArray
    best_values: FloatArray
    best_cuts: IntArray
    features: IntArray
    random: NDArray[np.uint64]


def workspace_for(samples: Samples, depth: int) -> LocalWorkspace:
    """Return the memory of one thread for trees of a depth: 4 (depth - 1) bytes per sample and feature, and more."""
    m, L = 2 ** (depth + 1) - 1, 2**depth + 1
    (n, V), p, oblique = samples.value.shape, len(samples.rank), samples.hyperplanes >= 0
    links = n if len(samples.order) > p else 0
    trees = np.zeros((3, m), NODE)
    trees["feature"] = NONE
    # Linear leaves keep coefficients and slopes behind their sums.
    V += 2 * p if samples.kind == LINEAR else 0
    return LocalWorkspace(
        trees=trees,
        w=np.zeros((3, m if oblique else 0, p)),
        order=np.empty((depth - 1, *samples.order.shape), np.int32),
        queue=np.zeros(m, np.int64),
        visits=np.zeros(m, np.int64),
        slot=np.zeros(m, np.int64),
        level=np.array([(t + 1).bit_length() - 1 for t in range(m)]),
        leaf=np.zeros((n, 2), np.int32),
        side=np.zeros(n, np.int32),
        sums=np.zeros((L, V)),
        base_sums=np.zeros((L, V)),
        leaves=np.zeros(L, LEAF_STATE),
        links=np.zeros((2, links), np.int32),
        curve=np.zeros(n),
        ids=np.zeros(n if oblique else 0, np.int32),
        key=np.zeros(n if oblique else 0),
        scores=np.zeros(n if oblique else 0),
        weights=np.zeros(p + 1),
        best_weights=np.zeros(p + 1),
        best_values=np.zeros(p),
        best_cuts=np.zeros(p, np.int64),
        features=np.zeros(p, np.int64),
        random=np.zeros(1, np.uint64),
    )


@kernel
def draw(work: LocalWorkspace, k: int) -> int:
    """Draw a number from 0 to k - 1 (SplitMix64; the remainder's bias is below k / 2^53)."""
    work.random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = work.random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int(np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) % k)


class Members(NamedTuple):
    """The samples of a node: ``order[f, begin:end]`` in the order of feature f."""

    order: Int32Array
    begin: int
    end: int


@glue
def order_at(samples: Samples, work: LocalWorkspace, level: int) -> Int32Array:
    """Return the orders of a level above the last one."""
    return samples.order if level == 0 else work.order[level - 1]


@glue
def members_of(samples: Samples, work: LocalWorkspace, t: int) -> Members:
    """Return the samples of a node above the last level."""
    node = work.trees[OWN, t]
    return Members(order_at(samples, work, work.level[t]), node.begin, node.begin + node.count)


@kernel
def goes_right(samples: Samples, work: LocalWorkspace, t: int, i: int) -> bool:
    """Say to which side a split sends a sample."""
    node = work.trees[OWN, t]
    if node.feature != OBLIQUE:
        return bool(samples.rank[node.feature, i] >= node.cut)
    score = 0.0
    for j in range(samples.X.shape[1]):
        score += work.w[OWN, t, j] * samples.X[i, j]
    return bool(score >= node.threshold)


@kernel
def leaf_below(samples: Samples, work: LocalWorkspace, t: int, i: int) -> int:
    """Return the leaf that a sample reaches from a node."""
    while work.trees[OWN, t].feature >= 0:
        t = 2 * t + (2 if goes_right(samples, work, t, i) else 1)
    return t


@kernel
def leaf_with_scores(samples: Samples, work: LocalWorkspace, t: int, i: int) -> int:
    """Return the leaf that a sample reaches from a node; splits on the way keep ``low`` and ``high`` with its score."""
    while work.trees[OWN, t].feature >= 0:
        node, score = work.trees[OWN, t], 0.0
        if node.feature == OBLIQUE:
            for j in range(samples.X.shape[1]):
                score += work.w[OWN, t, j] * samples.X[i, j]
        else:
            score = samples.distinct[samples.first[node.feature] + samples.rank[node.feature, i]]
        if goes_right(samples, work, t, i):
            node.high = min(node.high, score)
            t = 2 * t + 2
        else:
            node.low = max(node.low, score)
            t = 2 * t + 1
    return t


@kernel
def within_margin(samples: Samples, work: LocalWorkspace, t: int) -> bool:
    """Return whether the sides of a split are too near to each other, by :func:`leaf_with_scores` of its samples."""
    node, size = work.trees[OWN, t], 1.0
    if node.feature == OBLIQUE:
        size = 0.0
        for j in range(work.w.shape[2]):
            size += abs(work.w[OWN, t, j])
    return bool(node.high - node.low < samples.margin * size)


@kernel
def charge(samples: Samples, work: LocalWorkspace, t: int) -> float:
    """Return the cost of a branch node's split."""
    number = 1
    if work.trees[OWN, t].feature == OBLIQUE:
        number = 0
        for j in range(work.w.shape[2]):
            number += work.w[OWN, t, j] != 0.0
    return samples.split_cost * number


@kernel
def list_below(work: LocalWorkspace, t: int, queue: IntArray) -> int:
    """Write a node and all below it to a queue (m,), parents first; return how many there are."""
    at, end = 0, 1
    queue[0] = t
    while at < end:
        u = queue[at]
        at += 1
        if work.trees[OWN, u].feature >= 0:
            queue[end], queue[end + 1] = 2 * u + 1, 2 * u + 2
            end += 2
    return end


@kernel
def may_split(samples: Samples, work: LocalWorkspace, t: int, f: int) -> bool:
    """Return whether a node may split on a feature, beside what is above and below it."""
    if len(samples.allowed) == 0:
        return True
    if samples.allowed[t, f] == 0:
        return False
    group, u = samples.group[f], t
    while group >= 0 and u > 0:
        u = (u - 1) // 2
        if samples.group[work.trees[OWN, u].feature] == group:
            return False
    for k in range(1, list_below(work, t, work.queue) if group >= 0 else 0):
        other = work.trees[OWN, work.queue[k]].feature
        if other >= 0 and samples.group[other] == group:
            return False
    return True


@kernel
def is_allowed(samples: Samples, work: LocalWorkspace, t: int) -> bool:
    """Return whether the nodes of a subtree may split on what they do, once some of them have moved up."""
    if len(samples.allowed) == 0:
        return True
    for k in range(list_below(work, t, work.queue)):
        u = work.queue[k]
        f = work.trees[OWN, u].feature
        if f >= 0 and samples.allowed[u, f] == 0:
            return False
    return True


@kernel
def may_move_up(samples: Samples, work: LocalWorkspace, s: int, t: int) -> bool:
    """Return whether the nodes of the subtree of node s may split on what they do in place of that of node t above."""
    if len(samples.allowed) == 0:
        return True
    for k in range(list_below(work, s, work.queue)):
        u = work.queue[k]
        f, width = work.trees[OWN, u].feature, 1 << (work.level[u] - work.level[s])
        # On a level below them, nodes stand from ``width * (node + 1) - 1`` on.
        if f >= 0 and samples.allowed[u - width * (s - t), f] == 0:
            return False
    return True


@kernel
def value_below(samples: Samples, work: LocalWorkspace, t: int) -> float:
    """Return loss and costs of splits of the subtree of a node."""
    total = 0.0
    for k in range(list_below(work, t, work.queue)):
        u = work.queue[k]
        node = work.trees[OWN, u]
        total += node.cost if node.feature == LEAF else charge(samples, work, u)
    return total


@kernel
def copy_subtree(work: LocalWorkspace, source: int, s: int, target: int, t: int) -> None:
    """Copy the subtree of node s of a tree to node t of another, or to one above s; erase what else was there.

    Levels are copied from the top: what is overwritten has been copied before.
    """
    m, width, oblique = work.trees.shape[1], 1, work.w.shape[1] > 0
    while t < m:
        for k in range(width):
            a, b = s + k, t + k
            if a >= m or work.trees[source, a].feature == NONE:
                work.trees[target, b].feature = NONE
                continue
            work.trees[target, b] = work.trees[source, a]
            if oblique:
                for j in range(work.w.shape[2]):
                    work.w[target, b, j] = work.w[source, a, j]
        s, t, width = 2 * s + 1, 2 * t + 1, 2 * width


@kernel
def raise_subtree(work: LocalWorkspace, s: int, t: int) -> None:
    """Put the subtree of node s in place of that of node t above it, whose samples it gets."""
    begin, count = work.trees[OWN, t].begin, work.trees[OWN, t].count
    copy_subtree(work, OWN, s, OWN, t)
    work.trees[OWN, t].begin, work.trees[OWN, t].count = begin, count


@kernel
def make_leaf(work: LocalWorkspace, t: int) -> None:
    """Erase what is below a node."""
    raise_subtree(work, work.trees.shape[1], t)
    work.trees[OWN, t].feature = LEAF


@kernel
def partition(samples: Samples, work: LocalWorkspace, t: int) -> None:
    """Give both children of a branch node their samples, in the order of each feature."""
    level, side = work.level[t], work.side[:]
    begin = work.trees[OWN, t].begin
    end = begin + work.trees[OWN, t].count
    here = order_at(samples, work, level)
    on_left = 0
    for q in range(begin, end):
        i = here[0, q]
        side[i] = goes_right(samples, work, t, i)
        on_left += 1 - side[i]
    for child in range(2):
        node = work.trees[OWN, 2 * t + 1 + child]
        node.begin = begin + on_left if child else begin
        node.count = end - begin - on_left if child else on_left
    if level + 2 > work.level[-1]:
        return  # the children are on the last level, where nothing is split
    for f in range(len(here)):
        left, right, below = begin, begin + on_left, work.order[level, f]
        for q in range(begin, end):
            i = here[f, q]
            if side[i]:
                below[right] = i
                right += 1
            else:
                below[left] = i
                left += 1


@kernel
def partition_below(samples: Samples, work: LocalWorkspace, t: int) -> None:
    """Give all nodes below one their samples."""
    for k in range(list_below(work, t, work.queue)):
        if work.trees[OWN, work.queue[k]].feature >= 0:
            partition(samples, work, work.queue[k])
