"""Compiled: which sample a dive of the routing search decides next, and what deciding it does to the bound."""

from __future__ import annotations

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import glue, kernel
from mipforest.searches.routing.node_dual import (
    BETA,
    BIAS,
    KEPT,
    KEPT_MISSING,
    MISSING,
    UNLIMITED,
    VALUE,
    Duals,
    Groups,
    add_margins,
    add_side,
    pair_steps,
    rise_if_added,
)

#: Candidates that are tried on both sides, the pair steps each gets, and their tolerance.
_CANDIDATES, _TRIAL_STEPS, _TRIAL_TOLERANCE = 4, 30.0, 1e-3

#: In the rank of a candidate a rise counts as at least this, and the larger one by this power of it.
_LEAST_RISE, _LARGER = 1e-9, 0.3

#: Weight of candidates below the root: a side there is decided for fewer samples.
_BELOW_ROOT = 0.5

#: What a rise of the duals counts in the rank of a side in a subtree whose cost is known.
_HIDDEN = 0.02


@kernel
def subtree_of(t: int) -> int:
    """Return below which side of the root node t > 0 is: 0 for left, 1 for right."""
    while t > 2:
        t = (t - 1) // 2
    return t - 1


@kernel
def rise_of_bound(excess: FloatArray, t: int, child: int, here: float, below: float) -> float:
    """Return the rise of the bound where the duals of node t and its child rise.

    What the bound of a subtree is above its duals, its excess (2,), is there already.
    """
    covered: float = excess[subtree_of(child)]
    if t == 0:
        return here + max(below - covered, 0.0)
    return max(here + below - covered, 0.0)


@kernel
def shown(known: BoolArray, t: int, rise: float, of_duals: float) -> float:
    """Return what a rise of the bound by a side at node t counts in a rank, with that of the duals.

    A group that is sent below the root raises what a subtree costs about as it raises the duals. A side below the root
    does not, where that cost is known (2,).
    """
    if t == 0 or not known[subtree_of(t)]:
        return of_duals
    return max(rise, _HIDDEN * of_duals)


@kernel
def promise(left: float, right: float, t: int) -> float:
    """Rank a candidate at node t by the rises of the bound on its sides: the smaller counts most."""
    low, high = min(left, right), max(left, right)
    rank: float = max(low, _LEAST_RISE) * max(high, _LEAST_RISE) ** _LARGER
    return rank if t == 0 else _BELOW_ROOT * rank


@kernel
def most_promising(n_upper: int, reached: IntArray, rise_if: FloatArray, tried: BoolArray) -> int:
    """Return the best undecided group that was not tried yet, by the rises (2, G) of the bound; -1 if there is none."""
    candidate, candidate_promise = -1, -1.0
    for g in range(len(reached)):
        if reached[g] < n_upper and not tried[g]:
            rank = promise(rise_if[0, g], rise_if[1, g], reached[g])
            if rank > candidate_promise:
                candidate, candidate_promise = g, rank
    return candidate


@glue
def measure_rises(
    groups: Groups, duals: Duals, t: int, n_upper: int, reached: IntArray, rises: FloatArray
) -> None:
    """Measure what one pair step at node t proves for every group that may be decided there or sent there.

    Parameters
    ----------
    groups, duals, t
        The groups, the duals, and the node.
    n_upper
        Number of nodes above the last level.
    reached
        (G,) nodes that the groups have reached.
    rises
        (3, |B|, G) rises of the value of node t for a group kept left, kept right, or charged there, written.
    """
    weight, C, epsilon = groups.weight, groups.C, groups.epsilon
    parent = (t - 1) // 2 if t > 0 else -1
    for g in range(len(reached)):
        if t < n_upper and reached[g] == t:
            rises[0, t, g] = rise_if_added(groups, duals, t, g, -epsilon, UNLIMITED)
            rises[1, t, g] = rise_if_added(groups, duals, t, g, 0.0, UNLIMITED)
        elif reached[g] == parent:
            # Two steps with the margins of both classes do not add up: the better one counts.
            best = 0.0
            for c in range(2):
                capacity = C[t] * weight[g, c]
                if capacity > 0.0:
                    rate = 1.0 if c == 1 else -1.0
                    best = max(best, rise_if_added(groups, duals, t, g, rate, capacity))
            rises[2, t, g] = best


@glue
def try_side(groups: Groups, duals: Duals, t: int, g: int, side: int, slack: float) -> float:
    """Return the rise of the bound by some pair steps with group g charged at node t (side 0) or kept on a side."""
    of = duals.of
    n, value, bias = duals.size[t], duals.node[VALUE, t], duals.node[BIAS, t]
    for q in range(n):
        of[KEPT, t, q] = of[BETA, t, q]
        of[KEPT_MISSING, t, q] = of[MISSING, t, q]
    if side == 0:
        add_margins(groups, duals, t, g)
    else:
        add_side(groups, duals, t, g, side)
    pair_steps(groups, duals, t, _TRIAL_TOLERANCE, _TRIAL_STEPS, value + slack)
    rise: float = duals.node[VALUE, t] - value
    for q in range(n):
        of[BETA, t, q] = of[KEPT, t, q]
        of[MISSING, t, q] = of[KEPT_MISSING, t, q]
    duals.size[t] = n
    duals.node[VALUE, t] = value
    duals.node[BIAS, t] = bias
    return rise


@glue
def best_by_trial(
    groups: Groups,
    duals: Duals,
    n_upper: int,
    reached: IntArray,
    rise_if: FloatArray,
    tried: BoolArray,
    slack: float,
    excess: FloatArray,
    known: BoolArray,
    proven: FloatArray,
) -> int:
    """Try the most promising groups on both sides for some pair steps; return the best.

    What its sides count in ranks is written into ``rise_if`` (2, G), what they prove into ``proven`` (2, 2), in row 0.
    """
    best_promise, branch = -1.0, -1
    for g in range(len(reached)):
        tried[g] = False
    for _ in range(_CANDIDATES):
        candidate = most_promising(n_upper, reached, rise_if, tried)
        if candidate < 0:
            break
        tried[candidate] = True
        t = reached[candidate]
        for side in (-1, 1):
            child = 2 * t + 1 if side < 0 else 2 * t + 2
            here, below = try_side(groups, duals, t, candidate, side, slack), 0.0
            if here < slack:
                below = try_side(groups, duals, child, candidate, 0, slack)
            k = 0 if side < 0 else 1
            rise = rise_of_bound(excess, t, child, here, below)
            proven[1, k] = rise
            rise_if[k, candidate] = min(shown(known, t, rise, here + below), 2.0 * slack)
        rank = promise(rise_if[0, candidate], rise_if[1, candidate], t)
        if rank > best_promise:
            best_promise, branch = rank, candidate
            proven[0, 0], proven[0, 1] = proven[1, 0], proven[1, 1]
    return branch
