"""Compiled: one start of a local search, node by node until no node can be improved, then kicks (Dunn 2018, ch. 2, 3).

A visit of node t, with its samples and its subtrees A (left) and B (right; two new leaves if t is one), tries

1. the best split over all features and thresholds, with the splits of A and B kept and all leaves below fitted anew;
2. A, B or a leaf in place of t;
3. hyperplanes (:mod:`mipforest.searches.local.sweeps`), where splits may have several features,

and keeps the best one if that lowers the objective, once all samples below t were routed anew; where that brings
samples into the margin of a split below, the best position of another feature. Passes visit all nodes that something
has changed for, in random order, until a pass finds nothing.

A **kick** grows the subtree of a random node anew or gives it a random split; what the descent makes of it is kept if
it is no worse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipforest.arrays import Int32Array, IntArray
from mipforest.searches import entry, glue, kernel
from mipforest.searches.leaf_sums import ABSOLUTE
from mipforest.searches.local.state import (
    CHAIN,
    LEAF,
    NONE,
    OBLIQUE,
    OWN,
    SAVED,
    LocalWorkspace,
    Members,
    Samples,
    charge,
    copy_subtree,
    draw,
    is_allowed,
    leaf_below,
    list_below,
    make_leaf,
    may_move_up,
    may_split,
    members_of,
    partition,
    partition_below,
    raise_subtree,
    value_below,
)
from mipforest.searches.local.sweeps import (
    NEARLY,
    add_absolute_losses,
    find_hyperplane,
    find_no_hyperplane,
    fit_leaves,
    growth_kind,
    leaf_cost,
    refit,
    save_leaves,
    sweep,
    value_of_leaves,
)
from mipforest.searches.medians import loss_around

#: What a visit may do with a node.
NOTHING, LEFT, RIGHT, PRUNE, CUT, HYPERPLANE = range(6)

#: What finds hyperplanes for a visit, or :func:`~mipforest.searches.local.sweeps.find_no_hyperplane`. All it passes
#: through is inserted before compilation: a kernel that takes it as an argument could not be kept on disk.
Improve = Callable[..., bool]


@entry
def search_from(
    samples: Samples,
    work: LocalWorkspace,
    drawn: int,
    kicks: int,
    seed: int,
    stop: IntArray,
    report: IntArray,
) -> float:
    """Search with univariate splits; see :func:`_search`."""
    return _search(samples, work, drawn, kicks, seed, stop, report, find_no_hyperplane)


@entry
def search_hyperplanes_from(
    samples: Samples,
    work: LocalWorkspace,
    drawn: int,
    kicks: int,
    seed: int,
    stop: IntArray,
    report: IntArray,
) -> float:
    """Search with hyperplanes; see :func:`_search`. Apart, as they take as long to compile as all the rest."""
    return _search(samples, work, drawn, kicks, seed, stop, report, find_hyperplane)


@glue
def _search(
    samples: Samples,
    work: LocalWorkspace,
    drawn: int,
    kicks: int,
    seed: int,
    stop: IntArray,
    report: IntArray,
    improve: Improve,
) -> float:
    """Descend from one start and kick; return the objective of ``work.trees[OWN]``, by losses and impurity.

    Parameters
    ----------
    samples, work
        What is searched, and memory, with the start's tree where it is given.
    drawn
        Random features among which every split of the start is chosen; 0 if the tree is given.
    kicks
        Number of kicks.
    seed
        Seed of all random numbers.
    stop
        (1,) ends the search as soon as it is not 0; the tree is one at any time.
    report
        (2,) counts visits and improvements.
    improve
        Finds hyperplanes, or none.
    """
    work.random[0] = np.uint64(seed)
    nodes, value = work.trees[OWN], np.inf
    nodes[0].begin, nodes[0].count = 0, samples.rank.shape[1]
    for k in range(kicks + 1):
        if stop[0] and k > 0:
            break
        t = start_tree(samples, work, drawn) if k == 0 else kick(samples, work)
        if t < 0:
            break
        if not stop[0]:  # with many samples, what follows takes long
            partition_below(samples, work, t)
            _mark_changed(work, t)
            _descend(samples, work, stop, report, improve)
        found = value_below(samples, work, 0)
        if found <= value + samples.tolerance:
            value = found
        else:
            restore_chain(samples, work)
        if value <= samples.tolerance:
            break
    return value


@glue
def _descend(
    samples: Samples, work: LocalWorkspace, stop: IntArray, report: IntArray, improve: Improve
) -> None:
    """Visit nodes until a pass over all of them finds nothing, or so little that another one is not worth its time."""
    nodes, improved = work.trees[OWN], True
    while improved:
        improved, before = False, value_below(samples, work, 0)
        m = list_below(work, 0, work.visits)
        for k in range(m):
            other = k + draw(work, m - k)
            t = work.visits[other]
            work.visits[other] = work.visits[k]
            if nodes[t].feature == NONE or nodes[t].clean:
                continue
            if stop[0]:
                return
            report[0] += 1
            nodes[t].clean = True
            if visit(samples, work, t, improve):
                report[1] += 1
                improved = True
                _mark_changed(work, t)
        if before - value_below(samples, work, 0) < samples.pass_tolerance:
            return


@kernel
def _mark_changed(work: LocalWorkspace, t: int) -> None:
    """Note that nodes below t have other samples, and t and those above it another subtree."""
    for k in range(list_below(work, t, work.queue)):
        work.trees[OWN, work.queue[k]].clean = False
    while t > 0:
        t = (t - 1) // 2
        work.trees[OWN, t].clean = False


@glue
def visit(samples: Samples, work: LocalWorkspace, t: int, improve: Improve) -> bool:
    """Improve one node; return whether that was possible."""
    node = work.trees[OWN, t]
    if work.level[t] == work.level[-1] or (node.feature == LEAF and node.count < 2 * samples.N_min):
        return False
    value = value_below(samples, work, t)
    if value <= samples.tolerance:
        return False
    move, best, feature, cut, parallel, charges, leaves = _best_move(samples, work, t, value)
    if samples.hyperplanes >= 0:
        members = members_of(samples, work, t)
        if improve(samples, work, members, leaves, charges, feature, cut, parallel, best):
            move = HYPERPLANE
    return move != NOTHING and _make_move(samples, work, t, move, feature, cut, value)


@kernel
def _best_move(
    samples: Samples, work: LocalWorkspace, t: int, value: float
) -> tuple[int, float, int, int, float, float, int]:
    """Find the best move at a node with a value, hyperplanes left out.

    Return the move and its value; of the best univariate split its feature (-1 for none), cut and value; the costs of
    the splits of both subtrees, and their leaves, in which the node's samples stand.
    """
    tolerance, is_leaf = samples.tolerance, work.trees[OWN, t].feature == LEAF
    members = members_of(samples, work, t)
    order, begin, m = members.order, members.begin, members.end - members.begin
    charges, charges_right, on_left, leaves = _enter(samples, work, t, members)
    move, best, feature, cut = NOTHING, value - tolerance, -1, 0
    if not is_leaf:
        # All leaves of the other subtree are empty then; the splits there are not charged anyway.
        fit_leaves(samples, work, members, 0, leaves)
        only = value_of_leaves(samples, work, leaves) + charges + samples.split_cost * (leaves - on_left)
        if only < best and may_move_up(samples, work, 2 * t + 1, t):
            move, best = LEFT, only
    fit_leaves(samples, work, members, 1, leaves)
    save_leaves(work, leaves)
    if not is_leaf:
        only = value_of_leaves(samples, work, leaves) + charges_right + samples.split_cost * on_left
        if only < best and may_move_up(samples, work, 2 * t + 2, t):
            move, best = RIGHT, only
        if samples.split_cost > 0.0:
            alone = _loss_as_leaf(samples, work, members, leaves)
            if alone < best:
                move, best = PRUNE, alone
    charges += charges_right
    constant = charges + samples.split_cost
    parallel = best if samples.hyperplanes < 0 else np.inf
    for f in range(len(samples.rank)):
        ids = order[f, begin : begin + m]
        work.best_values[f] = np.inf
        if samples.rank[f, ids[0]] == samples.rank[f, ids[m - 1]] or not may_split(samples, work, t, f):
            continue
        sweep(samples, work, ids, 1, leaves, samples.kind, 1.0, samples.tie)
        if samples.kind == ABSOLUTE:
            add_absolute_losses(samples, work, members, ids, 1, leaves)
        if samples.margin > 0.0:
            at = best_position(samples, work, f, ids, np.inf)
            work.best_values[f] = work.curve[at] + constant if at >= 0 else np.inf
            work.best_cuts[f] = samples.rank[f, ids[at + 1]] if at >= 0 else 0
        at = best_position(samples, work, f, ids, parallel - constant)
        if at >= 0:
            parallel = work.curve[at] + constant - tolerance
            feature, cut = f, samples.rank[f, ids[at + 1]]
    if parallel < best:
        move, best = CUT, parallel
    return move, best, feature, cut, parallel, charges, leaves


@kernel
def _make_move(
    samples: Samples, work: LocalWorkspace, t: int, move: int, feature: int, cut: int, value: float
) -> bool:
    """Make a move at a node; return whether it stays, as it is better than a value."""
    copy_subtree(work, OWN, t, SAVED, t)
    if move == LEFT:
        raise_subtree(work, 2 * t + 1, t)
    elif move == RIGHT:
        raise_subtree(work, 2 * t + 2, t)
    elif move == PRUNE:
        make_leaf(work, t)
    else:
        split(work, t, feature if move == CUT else OBLIQUE, cut)
    if accept_if_better(samples, work, t, value):
        return True
    if move == CUT:
        work.best_values[feature] = np.inf
    return samples.margin > 0.0 and _next_best(samples, work, t, value)


@kernel
def _next_best(samples: Samples, work: LocalWorkspace, t: int, value: float) -> bool:
    """Try the best position of each feature, best first, after a better one brought samples into a margin below."""
    for _ in range(len(samples.rank)):
        feature = 0
        for f in range(1, len(samples.rank)):
            if work.best_values[f] < work.best_values[feature]:
                feature = f
        if work.best_values[feature] >= value - samples.tolerance:
            break
        work.best_values[feature] = np.inf
        split(work, t, feature, work.best_cuts[feature])
        if accept_if_better(samples, work, t, value):
            return True
    return False


@kernel
def accept_if_better(samples: Samples, work: LocalWorkspace, t: int, value: float) -> bool:
    """Keep the subtree of a node if it is better than a value once its samples are routed; bring back the saved one."""
    if refit(samples, work, t) < value - samples.tolerance and is_allowed(samples, work, t):
        partition_below(samples, work, t)
        return True
    copy_subtree(work, SAVED, t, OWN, t)
    return False


@kernel
def _enter(samples: Samples, work: LocalWorkspace, t: int, members: Members) -> tuple[float, float, int, int]:
    """Find the leaves of a node's samples in both of its subtrees.

    Return the costs of the splits in the left and in the right one, and the leaves in the left one and in both.
    """
    nodes, leaves, on_left = work.trees[OWN], 0, 1
    charges = charges_right = 0.0
    is_leaf = nodes[t].feature == LEAF
    for child in range(2 * t + 1, 2 * t + (1 if is_leaf else 3)):
        costs, on_left = 0.0, leaves
        for k in range(list_below(work, child, work.queue)):
            u = work.queue[k]
            if nodes[u].feature == LEAF:
                work.slot[u] = leaves
                leaves += 1
            else:
                costs += charge(samples, work, u)
        charges, charges_right = charges_right, costs
    for q in range(members.begin, members.end):
        i = members.order[0, q]
        for column in range(2):
            child = 2 * t + 1 + column
            work.leaf[i, column] = column if is_leaf else work.slot[leaf_below(samples, work, child, i)]
        work.side[i] = 2
    return charges, charges_right, on_left, 2 if is_leaf else leaves


@kernel
def _loss_as_leaf(samples: Samples, work: LocalWorkspace, members: Members, leaves: int) -> float:
    """Return the loss of a node as a leaf, by the sums of its leaves."""
    V = samples.value.shape[1]
    for v in range(V):
        work.sums[leaves, v] = 0.0
        for leaf in range(leaves):
            work.sums[leaves, v] += work.base_sums[leaf, v]
    total, total_y = work.sums[leaves, 0], work.sums[leaves, 1]
    if samples.kind != ABSOLUTE:
        return leaf_cost(samples.kind, 1.0, samples.tie, work.sums[leaves])
    below, below_y = 0.0, 0.0
    for q in range(members.begin, members.end):
        i = members.order[-1, q]
        y, w = samples.target[i], samples.value[i, 0]
        below += w
        below_y += w * y
        if below >= samples.level * total * NEARLY:
            return loss_around(samples.level, y, below, below_y, total, total_y)
    return np.inf


#: Impurity per sample up to which a node is pure: what rounding leaves of it.
PURE = 1e-12


@kernel
def best_position(samples: Samples, work: LocalWorkspace, f: int, ids: Int32Array, cutoff: float) -> int:
    """Return the position with the least value of the curve below a cutoff where a threshold fits; -1 for none."""
    at, rank = -1, samples.rank[f]
    for q in range(len(ids) - 1):
        if work.curve[q] < cutoff:
            low, high = rank[ids[q]], rank[ids[q + 1]]
            if low == high:
                continue
            if samples.margin > 0.0:
                distinct, first = samples.distinct, samples.first[f]
                if distinct[first + high] - distinct[first + low] < samples.margin:
                    continue
            at, cutoff = q, work.curve[q] - samples.tolerance
    return at


@kernel
def split(work: LocalWorkspace, t: int, feature: int, cut: int) -> None:
    """Give a node another split: univariate, or the best hyperplane of its visit; a leaf gets two."""
    nodes, p = work.trees[OWN], len(work.features)
    if nodes[t].feature == LEAF:
        nodes[2 * t + 1].feature = LEAF
        nodes[2 * t + 2].feature = LEAF
    nodes[t].feature, nodes[t].cut = feature, cut
    if feature == OBLIQUE:
        nodes[t].threshold = work.best_weights[p]
        for j in range(p):
            work.w[OWN, t, j] = work.best_weights[j]


@kernel
def grow(samples: Samples, work: LocalWorkspace, t: int, drawn: int) -> None:
    """Grow a leaf greedily: at every node the best split on a few random features; more where none of them splits."""
    nodes, p, kind, at, end = work.trees[OWN], len(samples.rank), growth_kind(samples), 0, 1
    work.visits[0] = t
    while at < end:
        u = work.visits[at]
        at += 1
        if work.level[u] == work.level[-1] or nodes[u].count < 2 * samples.N_min:
            continue
        members, m = members_of(samples, work, u), nodes[u].count
        order, begin = members.order, members.begin
        for v in range(samples.value.shape[1]):
            work.base_sums[0, v] = work.base_sums[1, v] = 0.0
        for q in range(begin, begin + m):
            i = order[0, q]
            work.leaf[i, 0], work.leaf[i, 1] = 0, 1
            for v in range(samples.value.shape[1]):
                work.base_sums[1, v] += samples.value[i, v]
        work.leaves[0].base_size, work.leaves[0].base_cost = 0, 0.0
        work.leaves[1].base_size, work.leaves[1].base_cost = m, leaf_cost(kind, 0.0, 1.0, work.base_sums[1])
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
            if samples.rank[f, ids[0]] == samples.rank[f, ids[m - 1]] or not may_split(samples, work, u, f):
                continue
            sweep(samples, work, ids, 1, 2, kind, 0.0, 1.0)
            q = best_position(samples, work, f, ids, best)
            if q >= 0:
                feature, cut, best = f, samples.rank[f, ids[q + 1]], work.curve[q]
        if feature >= 0:
            split(work, u, feature, cut)
            partition(samples, work, u)
            work.visits[end], work.visits[end + 1] = 2 * u + 1, 2 * u + 2
            end += 2


@kernel
def random_branch(work: LocalWorkspace) -> int:
    """Return a random branch node, -1 where there is none."""
    branches = 0
    for k in range(list_below(work, 0, work.queue)):
        if work.trees[OWN, work.queue[k]].feature >= 0:
            work.queue[branches] = work.queue[k]
            branches += 1
    return work.queue[draw(work, branches)] if branches > 0 else -1


@kernel
def restore_chain(samples: Samples, work: LocalWorkspace) -> None:
    """Bring back the tree of the chain; only nodes below changed splits get their samples anew."""
    nodes, chain, at, end = work.trees[OWN], work.trees[CHAIN], 0, 1
    work.visits[0] = 0
    while at < end:
        t = work.visits[at]
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
            work.visits[end], work.visits[end + 1] = 2 * t + 1, 2 * t + 2
            end += 2


@kernel
def start_tree(samples: Samples, work: LocalWorkspace, drawn: int) -> int:
    """Grow the start's tree, or fit the one that is given; a leaf remains if it is not feasible. Return the root."""
    if drawn > 0:
        make_leaf(work, 0)
        grow(samples, work, 0, drawn)
    if refit(samples, work, 0) == np.inf or not is_allowed(samples, work, 0):
        make_leaf(work, 0)
        refit(samples, work, 0)
    return 0


@kernel
def kick(samples: Samples, work: LocalWorkspace) -> int:
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
        members, f = members_of(samples, work, t), draw(work, len(samples.rank))
        if may_split(samples, work, t, f):
            nodes[t].feature = f
            nodes[t].cut = samples.rank[
                f, members.order[f, members.begin + draw(work, members.end - members.begin)]
            ]
    if refit(samples, work, t) == np.inf or not is_allowed(samples, work, t):
        copy_subtree(work, SAVED, t, OWN, t)
    return t
