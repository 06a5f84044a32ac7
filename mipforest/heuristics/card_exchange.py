"""Iterated local search of score cards: rules exchanged, points chosen anew together, each card at its best intercept.

A local optimum is a card that neither another rule in the place of any of its rules improves, over all cuts and points
(:meth:`CardProblem.polished <mipforest.heuristics.score_cards.CardProblem.polished>`), nor other points of all its
rules together. From there some rules are taken out at random, others are added, mostly the best ones, and the search
begins again; a card that is no worse is the next one to be disturbed.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from mipforest.heuristics.intercepts import best_intercepts
from mipforest.heuristics.score_cards import CardProblem, Chosen
from mipforest.time_budget import TimeBudget

#: Rules whose points change together, each by at most 1: 3 to this power are tried at once.
TOGETHER = 5

#: Most rules that are taken out at a time.
TAKEN_OUT = 3

#: The rule that is added is one of this many best ones, as often as the best one.
ADDED_FROM = 8

#: Losses that differ by less than this share are the same, however sums were rounded.
SAME = 1e-10


def exchange_rules(
    cards: CardProblem, chosen: Chosen, *, rounds: int, seed: int, budget: TimeBudget
) -> tuple[Chosen, float]:
    """Improve a card by exchanging rules and points.

    Parameters
    ----------
    cards
        The rules that there are.
    chosen
        The card to begin with.
    rounds
        How often rules are taken out.
    seed
        Seed of what is taken out and added.
    budget
        The search ends when it has run out.

    Returns
    -------
    chosen, loss
        The best card found, no worse than the first, and its log-loss.
    """
    rng = np.random.default_rng(seed)
    best = here = _local_optimum(cards, chosen, budget)
    wanted = min(cards.rules, cards.n_features)
    for _ in range(rounds):
        if budget.expired or not here[0]:
            break
        size = len(here[0])
        gone = rng.choice(size, min(size, int(rng.integers(1, TAKEN_OUT + 1))), replace=False)
        other = tuple(part for k, part in enumerate(here[0]) if k not in gone)
        while len(other) < wanted and (found := cards.additions(other, ADDED_FROM)):
            take = int(rng.integers(len(found))) if rng.random() < 0.5 else 0
            other = (*other, found[take][1:])
        if cards.exact and len(other) < wanted:
            continue
        reached = _local_optimum(cards, other, budget)
        if reached[1] <= here[1] * (1 + SAME):
            here = reached
        if here[1] < best[1] * (1 - SAME):
            best = here
    return best


def _local_optimum(cards: CardProblem, chosen: Chosen, budget: TimeBudget) -> tuple[Chosen, float]:
    """Choose points and single rules anew until neither is better."""
    chosen, loss = points_anew(cards, chosen)
    while not budget.expired:
        chosen, improved = points_anew(cards, cards.polished(chosen)[0])
        if improved >= loss * (1 - SAME):
            break
        loss = improved
    return chosen, cards.refit(cards.totals(chosen))[1]


def points_anew(cards: CardProblem, chosen: Chosen) -> tuple[Chosen, float]:
    """Change the points of a card's rules together, each by at most 1, until no such change is better.

    Returns
    -------
    chosen, loss
        The card, rules with 0 points left out, and its log-loss.
    """
    loss = cards.refit(cards.totals(chosen))[1]
    improved = True
    while improved and chosen:
        improved = False
        for first in range(0, len(chosen), TOGETHER):
            other, value = _points_of_some(cards, chosen, range(first, min(first + TOGETHER, len(chosen))))
            if value < loss * (1 - SAME):
                chosen, loss, improved = other, value, True
    return tuple(part for part in chosen if part[1]), loss


def _points_of_some(cards: CardProblem, chosen: Chosen, some: range) -> tuple[Chosen, float]:
    """Return the card with the best points of some rules, each within 1 of what they are, and its loss."""
    fixed = cards.totals(part for k, part in enumerate(chosen) if k not in some)
    holds = np.array([cards.holds(chosen[k][0]) for k in some])
    # Samples with the same total of the other rules, for which the same rules hold, are one cell.
    cells, at = np.unique(np.vstack([fixed, holds]), axis=1, return_inverse=True)
    P, Q = (np.bincount(at.ravel(), weights) for weights in (cards.positive, cards.negative))
    ranges = []
    for k in some:
        rule, points = chosen[k]
        allowed = cards.points_of(rule)
        near = allowed[np.abs(allowed - points) <= 1].tolist()
        ranges.append(near if cards.exact or abs(points) > 1 else [0, *near])
    tried = np.array(list(product(*ranges)))
    totals = (cells[0] + tried @ cells[1:]).astype(np.float64)
    shape = (len(tried), len(P))
    _, losses = best_intercepts(totals, np.broadcast_to(P, shape), np.broadcast_to(Q, shape))
    least = int(losses.argmin())
    points_of = dict(zip(some, tried[least].tolist(), strict=True))
    return tuple((rule, points_of.get(k, points)) for k, (rule, points) in enumerate(chosen)), float(
        losses[least]
    )
