r"""Compiled loops over polytopes of hyperplanes, kept by their vertices (double description).

A polytope holds the hyperplanes :math:`(a, b)` of a box that send some points to given sides. Its vertices (M, d) stand
beside the facets through each, as bits of two words. Over a polytope the scores :math:`a^\top x + b` of a point fill
the interval between the least and the greatest score of a vertex, so that where a point may go is known exactly, and
not only up to a relaxation as over a box. A half-space cuts it: the vertices beyond go, and each edge between a vertex
that stays and one that goes has a new vertex. Two vertices share an edge where no third one lies on all facets that
they share; where one of them lies on d facets only, it has an edge along any d - 1 of these. Facets without a vertex
free their bit. Where there are too many facets or vertices at a time, a cut is refused.

Source: T. S. Motzkin, H. Raiffa, G. L. Thompson, R. M. Thrall, *The double description method*, 1953.
"""

from __future__ import annotations

from typing import NamedTuple

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import kernel

#: Distance up to which a vertex lies on a hyperplane: far below the tolerance of rows, which polytopes hold anyway.
ON = 1e-10

#: Bits of a word, and words of facets.
BITS, FACET_WORDS = 62, 2

#: What :func:`cut` returns where there are too many vertices or facets.
TOO_MANY = -1


class Polytope(NamedTuple):
    """A polytope in d dimensions.

    Attributes
    ----------
    V
        (M, d or more) vertices.
    facets
        (M, 2) facets through each, as bits.
    """

    V: FloatArray
    facets: IntArray


class CutSpace(NamedTuple):
    """Room for cuts.

    Attributes
    ----------
    V, facets
        A polytope between two cuts.
    score
        (M,) by how much vertices are inside a half-space.
    inside, outside
        (M,) vertices that are, and those that are not.
    """

    V: FloatArray
    facets: IntArray
    score: FloatArray
    inside: IntArray
    outside: IntArray


def most_vertices(d: int) -> int:
    """Return the number of vertices that a polytope in d dimensions has room for."""
    return {2: 140, 3: 260, 4: 400, 5: 600}.get(d, max(1_000, 3 << d))


@kernel
def write_box(to: Polytope, d: int, low: float) -> int:
    """Write the box of weights in [-1, 1] and an intercept in [low, 1]; return the number of its vertices."""
    n = 1 << d
    for i in range(n):
        to.facets[i, 0], to.facets[i, 1] = 0, 0
        for q in range(d):
            up = (i >> q) & 1
            to.V[i, q] = 1.0 if up else (low if q == d - 1 else -1.0)
            to.facets[i, 0] |= 1 << (2 * q + up)
    return n


@kernel
def write_cross(to: Polytope, d: int, low: float) -> int:
    """Write weights of absolute sum at most 1 and an intercept in [low, 1]; return the number of vertices.

    Each vertex has one weight, of 1 or -1. It lies on the facets of all signs that agree with it.
    """
    k, n = d - 1, 0
    for j in range(k):
        for up in range(2):
            for top in range(2):
                for q in range(d):
                    to.V[n, q] = 0.0
                to.V[n, j], to.V[n, k] = 2.0 * up - 1.0, 1.0 if top else low
                to.facets[n, 0], to.facets[n, 1] = 1 << top, 0
                for signs in range(1 << k):
                    if (signs >> j) & 1 == up:
                        bit = 2 + signs
                        to.facets[n, bit // BITS] |= 1 << (bit % BITS)
                n += 1
    return n


@kernel
def copy(one: Polytope, n: int, d: int, to: Polytope) -> None:
    """Copy the n vertices of a polytope."""
    for i in range(n):
        for q in range(d):
            to.V[i, q] = one.V[i, q]
        to.facets[i, 0], to.facets[i, 1] = one.facets[i, 0], one.facets[i, 1]


@kernel
def write_middle(one: Polytope, n: int, d: int, point: FloatArray) -> None:
    """Write the mean (d,) of the vertices of a polytope."""
    for q in range(d):
        total = 0.0
        for i in range(n):
            total += one.V[i, q]
        point[q] = total / n


@kernel
def score_of(point: FloatArray, x: FloatArray, d: int) -> float:
    """Return the score of a point (d - 1,) at a hyperplane (d,)."""
    score: float = point[d - 1]
    for q in range(d - 1):
        score += point[q] * x[q]
    return score


@kernel
def least_and_greatest(one: Polytope, n: int, x: FloatArray, d: int) -> tuple[float, float]:
    """Return the least and the greatest score of a point (d - 1,) over a polytope."""
    least, greatest = float("inf"), -float("inf")
    for i in range(n):
        score = one.V[i, d - 1]
        for q in range(d - 1):
            score += one.V[i, q] * x[q]
        least, greatest = min(least, score), max(greatest, score)
    return least, greatest


@kernel
def may_go(one: Polytope, n: int, x: FloatArray, d: int, least_right: float, greatest_left: float) -> int:
    """Return where a point (d - 1,) may go over a polytope: bits 1 (left), 2 (right).

    It may go right where some score is at least ``least_right``, left where one is at most ``greatest_left``. Few
    vertices are looked at where both are so.
    """
    may = 0
    for i in range(n):
        score = one.V[i, d - 1]
        for q in range(d - 1):
            score += one.V[i, q] * x[q]
        if score >= least_right:
            may |= 2
        if score <= greatest_left:
            may |= 1
        if may == 3:
            break
    return may


@kernel
def free_bit(used: int) -> int:
    """Return the first bit that is not used, as a power of two; 0 where all are."""
    for q in range(BITS):
        if not used & (1 << q):
            return 1 << q
    return 0


@kernel
def count_bits(word: int) -> int:
    """Return the number of bits of a word that are set."""
    # Sums of 1, 2, 4 and 8 bits side by side; the product adds the bytes.
    word -= (word >> 1) & 0x5555555555555555
    word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (word * 0x0101010101010101) >> 56


@kernel
def third_on(one: Polytope, n: int, i: int, j: int, both0: int, both1: int, guess: int) -> int:
    """Return a third vertex on all facets that two vertices share, with a guess that is looked at first; -1 for none.

    Two vertices without a third one share an edge.
    """
    r = guess
    if (one.facets[r, 0] & both0) == both0 and (one.facets[r, 1] & both1) == both1 and r != i and r != j:
        return r
    for r in range(n):
        if (one.facets[r, 0] & both0) == both0 and (one.facets[r, 1] & both1) == both1 and r != i and r != j:
            return r
    return -1


@kernel
def cut(one: Polytope, n: int, d: int, room: CutSpace, to: Polytope) -> int:
    """Write the part of a polytope in a half-space; ``room.score`` says by how much each vertex is inside it.

    Returns
    -------
    The number of its vertices, 0 where it is empty, or :data:`TOO_MANY`.
    """
    score = room.score
    used0, used1, m = 0, 0, 0
    for i in range(n):
        if score[i] >= -ON:
            used0 |= one.facets[i, 0]
            used1 |= one.facets[i, 1]
    bit0 = free_bit(used0)
    bit1 = 0 if bit0 else free_bit(used1)
    if bit0 == 0 and bit1 == 0:
        return TOO_MANY
    for i in range(n):
        if score[i] >= -ON:
            on = score[i] <= ON
            for q in range(d):
                to.V[m, q] = one.V[i, q]
            to.facets[m, 0] = one.facets[i, 0] | (bit0 if on else 0)
            to.facets[m, 1] = one.facets[i, 1] | (bit1 if on else 0)
            m += 1
    n_inside, n_outside = 0, 0
    for i in range(n):
        if score[i] > ON:
            room.inside[n_inside] = i
            n_inside += 1
        elif score[i] < -ON:
            room.outside[n_outside] = i
            n_outside += 1
    for a in range(n_inside):
        i = room.inside[a]
        own0, own1 = one.facets[i, 0], one.facets[i, 1]
        is_simple, guess = count_bits(own0) + count_bits(own1) == d, 0
        for b in range(n_outside):
            j = room.outside[b]
            both0, both1 = own0 & one.facets[j, 0], own1 & one.facets[j, 1]
            if count_bits(both0) + count_bits(both1) < d - 1:
                continue
            if not is_simple and count_bits(one.facets[j, 0]) + count_bits(one.facets[j, 1]) != d:
                third = third_on(one, n, i, j, both0, both1, guess)
                if third >= 0:
                    guess = third
                    continue
            if m >= len(to.V):
                return TOO_MANY
            share = score[i] / (score[i] - score[j])
            for q in range(d):
                to.V[m, q] = one.V[i, q] + share * (one.V[j, q] - one.V[i, q])
            to.facets[m, 0], to.facets[m, 1] = both0 | bit0, both1 | bit1
            m += 1
    return m


@kernel
def send(
    one: Polytope,
    n: int,
    d: int,
    X: FloatArray,
    begin: int,
    end: int,
    right: int,
    gap: float,
    tolerance: float,
    room: CutSpace,
    to: Polytope,
) -> int:
    """Write the part of a polytope that sends some points to a side, each with a tolerance.

    Parameters
    ----------
    one, n, d
        The polytope, its vertices, and its dimensions.
    X, begin, end
        (N, d - 1) points; those from ``begin`` to ``end`` are sent.
    right
        1 for the right side, scores of at least 0; 0 for the left one, scores of at most -gap.
    gap, tolerance
        The gap, and what a score may miss its side by.
    room
        Room.
    to
        The part.

    Returns
    -------
    The number of its vertices, 0 where it is empty, or :data:`TOO_MANY`.
    """
    side = 1.0 if right else -1.0
    offset = -tolerance if right else gap - tolerance
    m, written = n, False
    for i in range(begin, end):
        now = to if written else one
        beyond = False
        for v in range(m):
            score = now.V[v, d - 1]
            for q in range(d - 1):
                score += now.V[v, q] * X[i, q]
            room.score[v] = side * score - offset
            beyond |= room.score[v] < -ON
        if not beyond:
            continue
        if written:
            spare = Polytope(room.V, room.facets)
            copy(to, m, d, spare)
            m = cut(spare, m, d, room, to)
        else:
            m = cut(one, m, d, room, to)
            written = True
        if m <= 0:
            return m
    if not written:
        copy(one, n, d, to)
    return m
