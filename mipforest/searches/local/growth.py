"""Compiled: how trees of a local search grow at random, and what its kicks need."""

from __future__ import annotations

import numpy as np

from mipforest.searches import kernel
from mipforest.searches.exact.losses import Int32Array
from mipforest.searches.local.state import (
    CHAIN,
    LEAF,
    LEVEL,
    OBLIQUE,
    OWN,
    QUEUE,
    SAVED,
    VISITS,
    Samples,
    Work,
    copy_subtree,
    draw,
    list_below,
    make_leaf,
    order_at,
    partition,
    partition_below,
)
from mipforest.searches.local.sweeps import growth_kind, leaf_cost, refit, sweep

#: Impurity per sample up to which a node is pure: what rounding leaves of it.
PURE = 1e-12


@kernel
def best_cut(samples: Samples, work: Work, f: int, ids: Int32Array, bar: float) -> int:
    """Return the position with the least value of the curve below a bar where a threshold fits; -1 if there is none."""
    at, rank = -1, samples.rank[f]
    for q in range(len(ids) - 1):
        if work.curve[q] < bar:
            low, high = rank[ids[q]], rank[ids[q + 1]]
            if low == high:
                continue
            if samples.margin > 0.0:
                distinct, first = samples.distinct, samples.first[f]
                if distinct[first + high] - distinct[first + low] < samples.margin:
                    continue
            at, bar = q, work.curve[q] - samples.tolerance
    return at


@kernel
def split(work: Work, t: int, feature: int, cut: int) -> None:
    """Give a node another split: univariate, or the best hyperplane of its visit; a leaf gets two."""
    nodes, p = work.trees[OWN], len(work.features)
    if nodes[t].feature == LEAF:
        nodes[2 * t + 1].feature = LEAF
        nodes[2 * t + 2].feature = LEAF
    nodes[t].feature, nodes[t].cut = feature, cut
    if feature == OBLIQUE:
        nodes[t].threshold = work.weights[1, p]
        for j in range(p):
            work.w[OWN, t, j] = work.weights[1, j]


@kernel
def grow(samples: Samples, work: Work, t: int, drawn: int) -> None:
    """Grow a leaf greedily: at every node the best split on a few random features; more where none of them splits."""
    nodes, p, kind, at, end = work.trees[OWN], len(samples.rank), growth_kind(samples), 0, 1
    work.places[VISITS, 0] = t
    while at < end:
        u = work.places[VISITS, at]
        at += 1
        level, begin, m = work.places[LEVEL, u], nodes[u].begin, nodes[u].count
        if level == work.places[LEVEL, -1] or m < 2 * samples.N_min:
            continue
        order = order_at(samples, work, level)
        for v in range(samples.value.shape[1]):
            work.sums[1, 0, v] = work.sums[1, 1, v] = 0.0
        for q in range(begin, begin + m):
            i = order[0, q]
            work.leaf[i, 0], work.leaf[i, 1] = 0, 1
            for v in range(samples.value.shape[1]):
                work.sums[1, 1, v] += samples.value[i, v]
        work.leaves[0].base_size, work.leaves[0].base_cost = 0, 0.0
        work.leaves[1].base_size, work.leaves[1].base_cost = m, leaf_cost(kind, 0.0, 1.0, work.sums[1, 1])
        if work.leaves[1].base_cost <= PURE * m:
            continue
        feature, cut, best = -1, 0, np.inf
        for f in range(p):
            work.features[f] = f
        for k in range(p):
            if k >= drawn and feature >= 0:
                break
            other = k + draw(work, p - k)
            f = work.features[other]
            work.features[other] = work.features[k]
            ids = order[f, begin : begin + m]
            if samples.rank[f, ids[0]] == samples.rank[f, ids[m - 1]]:
                continue
            sweep(samples, work, ids, 1, 2, kind, 0.0, 1.0)
            q = best_cut(samples, work, f, ids, best)
            if q >= 0:
                feature, cut, best = f, samples.rank[f, ids[q + 1]], work.curve[q]
        if feature >= 0:
            split(work, u, feature, cut)
            partition(samples, work, u)
            work.places[VISITS, end], work.places[VISITS, end + 1] = 2 * u + 1, 2 * u + 2
            end += 2


@kernel
def random_branch(work: Work) -> int:
    """Return a random branch node, -1 where there is none."""
    branches = 0
    for k in range(list_below(work, 0, QUEUE)):
        if work.trees[OWN, work.places[QUEUE, k]].feature >= 0:
            work.places[QUEUE, branches] = work.places[QUEUE, k]
            branches += 1
    return work.places[QUEUE, draw(work, branches)] if branches > 0 else -1


@kernel
def bring_back(samples: Samples, work: Work) -> None:
    """Bring back the tree of the chain; only nodes below changed splits get their samples anew."""
    nodes, chain, at, end = work.trees[OWN], work.trees[CHAIN], 0, 1
    work.places[VISITS, 0] = 0
    while at < end:
        t = work.places[VISITS, at]
        at += 1
        same = nodes[t].feature == chain[t].feature
        if nodes[t].feature == OBLIQUE:
            same = same and nodes[t].threshold == chain[t].threshold
            for j in range(work.w.shape[2]):
                same = same and work.w[OWN, t, j] == work.w[CHAIN, t, j]
        elif nodes[t].feature >= 0:
            same = same and nodes[t].cut == chain[t].cut
        nodes[t].clean = chain[t].clean
        if not same:
            copy_subtree(work, CHAIN, t, OWN, t)
            partition_below(samples, work, t)
        elif nodes[t].feature >= 0:
            work.places[VISITS, end], work.places[VISITS, end + 1] = 2 * t + 1, 2 * t + 2
            end += 2


@kernel
def start_tree(samples: Samples, work: Work, drawn: int) -> int:
    """Grow the start's tree, or fit the one that is given; a leaf remains if it is not feasible. Return the root."""
    if drawn > 0:
        make_leaf(work, 0)
        grow(samples, work, 0, drawn)
    if refit(samples, work, 0) == np.inf:
        make_leaf(work, 0)
        refit(samples, work, 0)
    return 0


@kernel
def kick(samples: Samples, work: Work) -> int:
    """Keep the tree as that of the chain and change a random branch node; return it, -1 where there is none."""
    nodes = work.trees[OWN]
    copy_subtree(work, OWN, 0, CHAIN, 0)
    t = random_branch(work)
    if t < 0:
        return t
    copy_subtree(work, OWN, t, SAVED, t)
    if samples.margin > 0.0 or draw(work, 2) > 0:
        make_leaf(work, t)
        grow(samples, work, t, max(1, int(np.sqrt(len(samples.rank)) + 0.5)))
    else:
        order, f = order_at(samples, work, work.places[LEVEL, t]), draw(work, len(samples.rank))
        nodes[t].feature = f
        nodes[t].cut = samples.rank[f, order[f, nodes[t].begin + draw(work, nodes[t].count)]]
    if refit(samples, work, t) == np.inf:
        copy_subtree(work, SAVED, t, OWN, t)
    return t
