r"""Compiled: which few features are the best at a node.

In the dual of a machine on features F,

.. math::

    \max_{0 \le a \le U}\; \sum_i r_i a_i - \tfrac12 \sum_{j \in F} u_j^2, \quad u_j = \sum_i a_i d_i x_{ij},
    \quad \text{subject to} \quad \sum_i d_i a_i = 0,

only the second sum knows F. **So each dual point, found for some features, bounds the node's value with any others,**
for a subtraction each (:func:`raise_least`), and most choices of features are never solved. With a cost of
:math:`\alpha` per feature, those that a choice may have or not count :math:`\max(0, \tfrac12 u_j^2 - \alpha)`. The
least bound of all choices bounds the node, and is its value once it is that of one choice which is solved. More samples
never lower the value of a choice, so its bound holds for all that extends a partial routing.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, glue, kernel
from mipforest.searches.routing.few_features import (
    CAPACITY,
    REWARD,
    SUM,
    A,
    Room,
    Samples,
    machine,
)


@kernel
def _charge(
    samples: Samples, room: Room, weight: FloatArray, C: float, features: IntArray
) -> tuple[int, int]:
    """Write the margins of samples on some features, equal ones as one; return how many, and the number of features."""
    X, Z, v, cell, cells, kinks = samples.X, room.Z, room.v, room.cell, room.cells, samples.kinks
    G, different, m = len(X), 1, 0
    for feature in features:
        if different <= G:
            different *= samples.sizes[feature]
    q = len(features)
    if 2 * different > G:
        different = G
    for c in range(different):
        cells[c, 0], cells[c, 1] = 0.0, 0.0
    for g in range(G):
        code = g
        if different < G:
            code = 0
            for j in range(q):
                code = code * samples.sizes[features[j]] + samples.codes[features[j], g]
        cell[g] = code
        cells[code, 0] += weight[g, 0]
        cells[code, 1] += weight[g, 1]
        cells[code, 2] = g
    for c in range(different):
        for side in range(2):
            if cells[c, side] > 0.0:
                g, d = int(cells[c, 2]), 2.0 * side - 1.0
                for k in range(len(kinks)):
                    for j in range(q):
                        Z[j, m] = d * X[g, features[j]]
                    Z[q, m] = d
                    v[REWARD, m], v[CAPACITY, m] = kinks[k, 0], C * cells[c, side] * kinks[k, 1]
                    m += 1
    return m, q


@glue
def _sum_over_all(samples: Samples, room: Room, weight: FloatArray, m: int, q: int) -> float:
    """Write half the squares of u of all features for the point in row :data:`A`; return its rewards."""
    X, v, cells, charge, K = samples.X, room.v, room.cells, room.charge, len(samples.kinks)
    rewards, at = -room.f[SUM, q], 0
    for i in range(m):
        rewards += v[A, i] * v[REWARD, i]
    for j in range(len(charge)):
        charge[j] = 0.0
    c = 0
    while at < m:
        for side in range(2):
            if cells[c, side] > 0.0:
                total = 0.0
                for _ in range(K):
                    total += v[A, at]
                    at += 1
                cells[c, side] = total / cells[c, side]
        c += 1
    for g in range(len(X)):
        c = room.cell[g]
        share = weight[g, 1] * cells[c, 1] - weight[g, 0] * cells[c, 0]
        if share != 0.0:
            for j in range(len(charge)):
                charge[j] += share * X[g, j]
    for j in range(len(charge)):
        charge[j] *= 0.5 * charge[j]
    return float(rewards)


class Choices(NamedTuple):
    """Sets of choices of features that cover all, each with a lower bound of a node's value; ``size[0]`` of N rows.

    A row stands for the choices of its first ``given`` features with any of those that follow.

    Attributes
    ----------
    features
        (N, q) features.
    given, listed
        (N,) how many features a choice has for certain, and how many it may have.
    bound, solved
        (N,) lower bounds, and whether no solution of the row itself raises them any more.
    next
        (N,) which of the features that it may have is given to one half of a row when it is split.
    size
        (1,) number of rows.
    """

    features: IntArray
    given: IntArray
    listed: IntArray
    bound: FloatArray
    solved: BoolArray
    next: IntArray
    size: IntArray

    @property
    def least(self) -> int:
        """The row of the least bound."""
        return int(self.bound[: self.size[0]].argmin())

    @property
    def least_bound(self) -> float:
        """The least bound."""
        return float(self.bound[: self.size[0]].min())

    @property
    def is_decided(self) -> bool:
        """Whether the least bound is the value of one choice of features."""
        k = self.least
        return bool(self.solved[k] and self.given[k] == self.listed[k])


def all_choices(p: int, budget: int, *, soft: bool) -> Choices:
    """Return all choices among p features: of ``budget`` of them, or of any number if the budget is soft."""
    if soft:  # those whose first feature is j, for all j
        rows = [[*range(j, p), *[0] * j] for j in range(p)]
        given, listed = np.ones(p, np.int64), np.arange(p, 0, -1)
    else:
        rows = [list(features) for features in combinations(range(p), budget)]
        given = listed = np.full(len(rows), budget)
    N = len(rows)
    return Choices(
        np.array(rows, np.int64), given, listed, np.zeros(N), np.zeros(N, np.bool_), np.zeros(N, np.int64),
        np.array([N]),
    )  # fmt: skip


@entry
def raise_least(
    samples: Samples, room: Room, weight: FloatArray, C: float, bias_limit: float, choices: Choices, free: float,
    alpha: float, stop: float, halt: IntArray,
) -> int:  # fmt: skip
    """Raise the least bounds of choices of features until the least is that of one choice, or up to a value.

    Parameters
    ----------
    samples, room
        The samples, and room.
    weight
        (G, 2) weights of the samples that are charged, by class.
    C, bias_limit
        Penalty of the node, and bound on its bias.
    choices
        The choices, changed: rows are solved, and split while there is room for more.
    free, alpha
        How many features are free of cost, and the cost of every further one; 0 where no choice has further ones.
    stop
        Bounds from there on are not raised.
    halt
        (1,) ends it early once it is not 0.

    Returns
    -------
    The row of the least bound.
    """
    given, listed, bound, solved = choices.given, choices.listed, choices.bound, choices.solved
    while True:
        least = 0
        for k in range(1, choices.size[0]):
            if bound[k] < bound[least]:
                least = k
        if bound[least] >= stop or halt[0] != 0:
            return least
        if not solved[least]:
            # Once with all features that there may be, then with those that are worth their cost at that point.
            used = listed[least]
            for _ in range(2):
                m, q = _charge(samples, room, weight, C, choices.features[least, :used])
                value = machine(room, m, q, bias_limit, stop - _price(choices, least, free, alpha))
                _raise_all(choices, room, _sum_over_all(samples, room, weight, m, q), free, alpha)
                if given[least] == listed[least]:
                    bound[least] = max(bound[least], value + _price(choices, least, free, alpha))
                before, used = used, _worth(choices, least, room.charge, alpha)
                if used == before or bound[least] >= stop:
                    break
            solved[least] = True  # also where the bound is NaN: it is not solved again
            if bound[least] >= stop:
                solved[least] = False
        elif given[least] < listed[least] and choices.size[0] < len(bound):
            _split(choices, least)
        else:
            return least


@glue
def _raise_all(choices: Choices, room: Room, rewards: float, free: float, alpha: float) -> None:
    """Raise the bounds of all rows by a dual point, for which features count that may be there and are worth it."""
    for k in range(choices.size[0]):
        value = rewards + _price(choices, k, free, alpha)
        for j in range(choices.listed[k]):
            worth = room.charge[choices.features[k, j]]
            value -= worth if j < choices.given[k] else max(0.0, worth - alpha)
        if value > choices.bound[k]:
            choices.bound[k] = value
            room.counts[2] += 1


@glue
def _worth(choices: Choices, k: int, charge: FloatArray, alpha: float) -> int:
    """Put features of a row that are worth their cost first; return how many are used then."""
    features, used, most = choices.features[k], int(choices.given[k]), -1.0
    choices.next[k] = used
    for j in range(choices.given[k], choices.listed[k]):
        feature = features[j]
        if charge[feature] > alpha:
            features[j] = features[used]
            features[used] = feature
            if charge[feature] > most:
                most = charge[feature]
                choices.next[k] = used
            used += 1
    return used


@glue
def _price(choices: Choices, k: int, free: float, alpha: float) -> float:
    """Return what a row's given features cost at least; below 0 where more may come that are free."""
    further = choices.given[k] - free
    price: float = alpha * (max(0.0, further) if choices.given[k] == choices.listed[k] else further)
    return price


@glue
def _split(choices: Choices, k: int) -> None:
    """Split a row into the choices with and without its next feature."""
    new, given, listed = choices.size[0], choices.given[k], choices.listed[k]
    feature = choices.features[k, choices.next[k]]
    choices.features[k, choices.next[k]] = choices.features[k, given]
    choices.features[k, given] = feature
    for j in range(listed):
        choices.features[new, j] = choices.features[k, j]
    choices.features[new, given] = choices.features[k, listed - 1]
    choices.given[new], choices.listed[new] = given, listed - 1
    choices.given[k] = given + 1
    choices.bound[new] = choices.bound[k]
    choices.solved[k], choices.solved[new] = False, False
    choices.size[0] = new + 1


@entry
def solve_choice(
    samples: Samples, room: Room, weight: FloatArray, C: float, bias_limit: float, features: IntArray
) -> float:
    """Return the value of the machine of some samples on features (q,); weights and bias are in ``room.f``."""
    m, q = _charge(samples, room, weight, C, features)
    value: float = machine(room, m, q, bias_limit, np.inf)
    return value
