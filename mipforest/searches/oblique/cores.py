"""Compiled loops over cores: sets of groups that alone prove what a split costs at least.

What a core is, and why it holds for every set that contains it, says
:mod:`~mipforest.searches.oblique.version_spaces`. Sets of groups are bits of words.
"""

from __future__ import annotations

from typing import NamedTuple

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.oblique.polytopes import BITS

#: Most cores of a support, and those that it has places for at first.
MOST_CORES, FIRST_SPACE = 3_000, 8


class Cores(NamedTuple):
    """Cores: those of a support one after the other by rising value, with places left for more.

    Attributes
    ----------
    words
        (C, W) groups, as bits.
    value
        (C,) least loss of a split.
    born
        (C,) 1 for those that were not there when the search began.
    begin, size, space
        (I,) place of the first core of each support, how many these are, and how many there are places for.
    hint
        (I, 2) the cores of each support that were of use last, counted from its first one; -1 for none.
    n
        (1,) places that supports have.
    """

    words: IntArray
    value: FloatArray
    born: IntArray
    begin: IntArray
    size: IntArray
    space: IntArray
    hint: IntArray
    n: IntArray


@kernel
def add_group(words: IntArray, g: int) -> None:
    """Add a group to a set."""
    words[g // BITS] |= 1 << (g % BITS)


@kernel
def has(words: IntArray, g: int) -> bool:
    """Return whether a group is in a set."""
    return bool((words[g // BITS] >> (g % BITS)) & 1)


@kernel
def join(words: IntArray, other: IntArray) -> None:
    """Add the groups of another set."""
    for w in range(len(words)):
        words[w] |= other[w]


@kernel
def is_within(words: IntArray, other: IntArray) -> bool:
    """Return whether all groups of a set are in another one."""
    for w in range(len(words)):  # noqa: SIM110  # compiled, it allocates nothing
        if words[w] & ~other[w]:
            return False
    return True


@kernel
def move(cores: Cores, source: int, to: int) -> None:
    """Copy a core to another place."""
    cores.value[to], cores.born[to] = cores.value[source], cores.born[source]
    for w in range(cores.words.shape[1]):
        cores.words[to, w] = cores.words[source, w]


@kernel
def write(cores: Cores, at: int, value: float, words: IntArray) -> None:
    """Write a core to a place."""
    cores.value[at], cores.born[at] = value, 1
    for w in range(len(words)):
        cores.words[at, w] = words[w]


@kernel
def first_from(cores: Cores, i: int, value: float) -> int:
    """Return the place of the first core of a support that is worth at least a value, or the place behind them all."""
    low, high = cores.begin[i], cores.begin[i] + cores.size[i]
    while low < high:
        middle = (low + high) // 2
        if cores.value[middle] < value:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def find(cores: Cores, i: int, words: IntArray, value: float) -> int:
    """Return the place of a core of a support that is within a set and worth at least a value; -1 for none.

    As sets grow from node to node, what was of use last often is so again. Otherwise it is the weakest such core.
    """
    begin = cores.begin[i]
    end = begin + cores.size[i]
    for h in range(2):
        at = begin + cores.hint[i, h]
        if begin <= at < end and cores.value[at] >= value and is_within(cores.words[at], words):
            return int(at)
    for at in range(first_from(cores, i, value), end):
        if is_within(cores.words[at], words):
            cores.hint[i, 1], cores.hint[i, 0] = cores.hint[i, 0], at - begin
            return int(at)
    return -1


@kernel
def insert(cores: Cores, i: int, value: float, words: IntArray) -> None:
    """Add a core of a support, unless one within it is as good, and remove those that it makes useless."""
    begin, end = cores.begin[i], cores.begin[i] + cores.size[i]
    place = first_from(cores, i, value)
    for at in range(place, end):
        if is_within(cores.words[at], words):
            return
    kept = begin
    for at in range(begin, end):
        if (at < place or cores.value[at] <= value) and is_within(words, cores.words[at]):
            continue
        if kept < at:
            move(cores, at, kept)
        kept += 1
    cores.size[i] = kept - begin
    place = first_from(cores, i, value)
    if kept - begin >= MOST_CORES:  # the weakest one goes
        if place > begin:
            for at in range(begin + 1, place):
                move(cores, at, at - 1)
            write(cores, place - 1, value, words)
        return
    if kept - begin >= cores.space[i]:
        begin, space = cores.n[0], max(FIRST_SPACE, 2 * cores.space[i])
        for at in range(cores.begin[i], kept):
            move(cores, at, begin + at - cores.begin[i])
        kept += begin - cores.begin[i]
        place += begin - cores.begin[i]
        cores.begin[i], cores.space[i] = begin, space
        cores.n[0] += space
    for at in range(kept, place, -1):
        move(cores, at - 1, at)
    write(cores, place, value, words)
    cores.size[i] += 1


@kernel
def is_full(cores: Cores, i: int) -> bool:
    """Return whether there may be no place for one more core of a support."""
    more = max(FIRST_SPACE, 2 * cores.space[i])
    return bool(cores.size[i] >= cores.space[i] and cores.n[0] + more > len(cores.value))


@entry
def merge(cores: Cores, other: Cores) -> bool:
    """Add the cores that another search has found; return whether there was place for all."""
    for i in range(len(other.begin)):
        for at in range(other.begin[i], other.begin[i] + other.size[i]):
            if other.born[at]:
                if is_full(cores, i):
                    return False
                insert(cores, i, other.value[at], other.words[at])
    return True
