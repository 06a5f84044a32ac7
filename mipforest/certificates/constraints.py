"""What a certificate of univariate trees says of constraints, and the division of the trees that keep them into boxes.

A *box* is a set of trees that is fixed without looking at samples: which thresholds of which features each node may
split at, which nodes have to split, and which features come once on a path. Limits on the whole tree divide it: by
whether any node splits on some features, or one node does. A box whose trees all break a limit is empty; of every other
one a claim is checked (:mod:`mipforest.certificates.univariate`). ``docs/certificates.md`` has the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.certificates.nodes import require

#: Most levels of splits, cells of the table of what nodes may split on, and limits on labels.
MAX_LEVELS, MAX_CELLS, MAX_LABEL_LIMITS = 10, 1 << 27, 1000


class UsedLimit(NamedTuple):
    """A limit on features that a tree uses: the costs of the groups with a used feature are at most ``most`` together.

    Attributes
    ----------
    groups, costs
        Features of each group, and its cost, at least 0.
    most
        The limit.
    """

    groups: tuple[frozenset[int], ...]
    costs: tuple[float, ...]
    most: float

    def excess(self, used: Sequence[bool]) -> Fraction:
        """Return by how much the groups that are used cost more than the limit."""
        return _excess(self.costs, used, self.most)


class SplitLimit(NamedTuple):
    """A limit on splits: the weights (|B|,) of the nodes that split, at least 0, are at most ``most`` together."""

    weights: tuple[float, ...]
    most: float

    def excess(self, splits: Sequence[bool]) -> Fraction:
        """Return by how much the nodes that split weigh more than the limit."""
        return _excess(self.weights, splits, self.most)


def _excess(costs: Sequence[float], counts: Sequence[bool], most: float) -> Fraction:
    """Return by how much the costs that count are more than a limit together."""
    paid = (Fraction(cost) for cost, does in zip(costs, counts, strict=True) if does)
    return sum(paid, Fraction(0)) - Fraction(most)


class Box(NamedTuple):
    """Trees that keep what is said of nodes, and some decisions on limits.

    Attributes
    ----------
    allowed
        (|B|, p) features that each node may split on.
    must
        (|B|,) nodes that have to split.
    used
        Sets of features; the splits of a tree use one of each.
    """

    allowed: BoolArray
    must: BoolArray
    used: tuple[frozenset[int], ...] = ()

    @property
    def uses(self) -> list[frozenset[int]]:
        """Sets of features of which every tree uses one each: also those of nodes that have to split."""
        own = [frozenset(np.flatnonzero(self.allowed[t]).tolist()) for t in np.flatnonzero(self.must)]
        return [*own, *self.used]

    def settled(self) -> Box:
        """Return the same trees: above a node that has to split all have to, below one that cannot split none can."""
        allowed, must = self.allowed.copy(), self.must.copy()
        for t in range(len(must) - 1, 0, -1):
            must[(t - 1) // 2] |= must[t]
        for t in range(1, len(must)):
            if not allowed[(t - 1) // 2].any():
                allowed[t] = False
        return Box(allowed, must, self.used)

    def divided(self, node: int, features: Sequence[int]) -> tuple[Box, Box]:
        """Return the trees in which a node splits on none of some features, and those in which it splits on one.

        A node of -1 stands for all nodes.
        """
        own = list(features)
        without, others = self.allowed.copy(), np.ones(self.allowed.shape[1], dtype=bool)
        others[own] = False
        if node < 0:
            without[:, own] = False
            return Box(without, self.must, self.used).settled(), self._replace(
                used=(*self.used, frozenset(own))
            )
        without[node, own] = False
        allowed, must = self.allowed.copy(), self.must.copy()
        allowed[node, others], must[node] = False, True
        return Box(without, self.must, self.used).settled(), Box(allowed, must, self.used).settled()


@dataclass(frozen=True, eq=False)
class LabelLimit:
    """A limit on the sum over all samples of what their labels use.

    Attributes
    ----------
    use
        (n, K) what each label of each sample uses.
    most
        The limit.
    price
        What the proof charges for a unit, at least 0.
    """

    use: FloatArray
    most: float
    price: float

    def excess(self, labels: IntArray) -> Fraction:
        """Return by how much labels (n,) exceed the limit, exactly."""
        used, counts = np.unique(self.use[np.arange(len(labels)), labels], return_counts=True)
        terms = (Fraction(u) * c for u, c in zip(used.tolist(), counts.tolist(), strict=True))
        return sum(terms, Fraction(0)) - Fraction(self.most)


@dataclass(frozen=True, eq=False)
class Constraints:
    """What is said of trees beside their levels and the sizes of their leaves.

    Attributes
    ----------
    first, last
        (|B|, p) first and last threshold of each feature at which each node may split; none where the first is larger.
    must
        (|B|,) nodes that have to split.
    group
        (p,) number of the group of each feature that comes once on a path; -1 for one that may come again.
    used, required, splits
        Limits on the features that a tree uses; features of which some node has to use one; limits on splits.
    labels
        Limits on what labels use.
    """

    first: IntArray
    last: IntArray
    must: BoolArray
    group: IntArray
    used: tuple[UsedLimit, ...] = ()
    required: tuple[frozenset[int], ...] = ()
    splits: tuple[SplitLimit, ...] = ()
    labels: tuple[LabelLimit, ...] = ()

    @classmethod
    def none(cls, depth: int, values: IntArray) -> Constraints:
        """Return those that allow every tree, of features with numbers of values (p,)."""
        require(depth <= MAX_LEVELS, f"a depth of {depth} is more than the check's {MAX_LEVELS}")
        B, p = 2**depth - 1, len(values)
        require(B * p <= MAX_CELLS, f"{B} nodes and {p} features are too many for the check")
        last = np.broadcast_to(np.asarray(values, dtype=np.int64) - 1, (B, p))
        return cls(np.ones((B, p), np.int64), last.copy(), np.zeros(B, bool), np.full(p, -1))

    @property
    def has_limits(self) -> bool:
        """Whether anything is said of what the whole tree splits on: what divides boxes."""
        return bool(self.used or self.required or self.splits)

    @property
    def empties(self) -> bool:
        """Whether leaves may be empty: a split may part none of its samples.

        A node may have to split, or stand above one that may split where it may not itself.
        """
        above = (np.arange(1, len(self.must)) - 1) // 2
        first, last = self.first[1:], self.last[1:]
        beyond = (first <= last) & ((first < self.first[above]) | (last > self.last[above]))
        return bool(self.must.any() or self.required or self.splits or beyond.any())

    def box(self) -> Box:
        """Return the trees that keep what is said of nodes."""
        return Box(self.first <= self.last, self.must).settled()

    def excludes(self, box: Box) -> bool:
        """Return whether the decisions of a box leave no tree that keeps all limits."""
        known = box.uses
        return (
            bool((box.must & ~box.allowed.any(axis=1)).any())
            or any(
                limit.excess([any(some <= group for some in known) for group in limit.groups]) > 0
                for limit in self.used
            )
            or any(not box.allowed[:, sorted(group)].any() for group in self.required)
            or any(split.excess(box.must.tolist()) > 0 for split in self.splits)
        )

    def require_tree(self, splits: Sequence[tuple[int, int]]) -> None:
        """Refuse a tree outside the constraints.

        Parameters
        ----------
        splits
            Feature and threshold of each node in heap order; -1 for one that does not split, or stands below one.

        Raises
        ------
        CertificateError
            Naming the node, or the limit.
        """
        used = frozenset(f for f, _ in splits if f >= 0)
        for t, (f, k) in enumerate(splits):
            require(f >= 0 or not self.must[t], f"node {t} of the claimed tree does not split, and has to")
            if f < 0:
                continue
            inside = self.first[t, f] <= k <= self.last[t, f]
            require(inside, f"node {t} of the claimed tree splits feature {f} at {k}, where it may not")
            above = [int(self.group[splits[s][0]]) for s in _above(t)]
            once = self.group[f] < 0 or int(self.group[f]) not in above
            require(
                once, f"node {t} of the claimed tree splits feature {f} again, which comes once on a path"
            )
        for limit in self.used:
            require(
                limit.excess([bool(group & used) for group in limit.groups]) <= 0,
                "what the claimed tree uses costs more than a limit",
            )
        for group in self.required:
            require(group & used, "the claimed tree does not use what is required")
        for split in self.splits:
            require(
                split.excess([f >= 0 for f, _ in splits]) <= 0,
                "the claimed tree has more splits than a limit",
            )

    def lines(self, values: IntArray) -> Iterator[str]:
        """Yield the lines that say them in a file, of features with numbers of values (p,); none of what is free."""
        for t, must in enumerate(self.must.tolist()):
            first, last = self.first[t], self.last[t]
            if must or (first > 1).any() or (last < values - 1).any():
                ranges = (f"{f} {first[f]} {last[f]}" for f in np.flatnonzero(first <= last))
                yield " ".join(["node", str(t), str(int(must)), *ranges])
        if (self.group >= 0).any():
            yield " ".join(["once", *map(str, self.group.tolist())])
        for limit in self.used:
            yield f"used {limit.most.hex()} {len(limit.groups)}"
            for group, cost in zip(limit.groups, limit.costs, strict=True):
                yield " ".join(["group", cost.hex(), *map(str, sorted(group))])
        for some in self.required:
            yield " ".join(["require", *map(str, sorted(some))])
        for split in self.splits:
            yield " ".join(["splits", split.most.hex(), *map(float.hex, split.weights)])
        for of_labels in self.labels:
            yield f"labels {of_labels.most.hex()} {of_labels.price.hex()}"
            for row in of_labels.use.tolist():
                yield " ".join(["use", *map(float.hex, row)])


class Reader:
    """Reads the lines of constraints, up to the first line that is none.

    Parameters
    ----------
    depth, values, samples, classes
        Levels of splits, the number of values of each feature (p,), and numbers of samples and of classes.
    integer, double
        Read a whole number within bounds, and a double of a least value, from a word.
    """

    def __init__(
        self,
        depth: int,
        values: IntArray,
        samples: int,
        classes: int,
        integer: Callable[[str, str, int, int], int],
        double: Callable[..., float],
    ) -> None:
        self.found, self.values = Constraints.none(depth, values), values
        self._samples, self._classes = samples, classes
        self._integer, self._double, self._next_node = integer, double, 0

    def read(self, words: list[str], following: Callable[[], list[str]]) -> list[str]:
        """Read all lines of constraints, the first of which has some words; return the words of the next line."""
        kinds = {"node": self._node, "once": self._once, "require": self._require, "splits": self._splits}
        long = {"used": self._used, "labels": self._labels}
        while words and (words[0] in kinds or words[0] in long):
            if words[0] in long:
                long[words[0]](words[1:], following)
            else:
                kinds[words[0]](words[1:])
            words = following()
        return words

    def _features(self, words: list[str]) -> frozenset[int]:
        own = frozenset(self._integer(word, "a feature", 0, len(self.values)) for word in words)
        require(words and len(own) == len(words), "a set of features is empty, or has one twice")
        return own

    def _node(self, words: list[str]) -> None:
        require(len(words) >= 2 and len(words) % 3 == 2, "a line 'node' has no node, mark and ranges")
        found = self.found
        t = self._integer(words[0], "a node", self._next_node, len(found.must))
        self._next_node = t + 1
        found.must[t] = self._integer(words[1], "whether a node has to split", 0, 2) == 1
        found.first[t], found.last[t], least = 1, 0, 0
        for f, low, high in zip(words[2::3], words[3::3], words[4::3], strict=True):
            j = self._integer(f, "a feature of a node", least, len(self.values))
            beyond, least = int(self.values[j]), j + 1
            found.first[t, j] = self._integer(low, "a threshold of a node", 1, beyond)
            found.last[t, j] = self._integer(high, "a threshold of a node", int(found.first[t, j]), beyond)

    def _once(self, words: list[str]) -> None:
        p = len(self.values)
        require(len(words) == p, f"the line 'once' has {len(words)} numbers for {p} features")
        self.found.group[:] = [self._integer(word, "a group", -1, p) for word in words]

    def _require(self, words: list[str]) -> None:
        self.found = replace(self.found, required=(*self.found.required, self._features(words)))

    def _splits(self, words: list[str]) -> None:
        B = len(self.found.must)
        require(len(words) == B + 1, f"the line 'splits' has no limit and {B} weights")
        most, *weights = (self._double(word, "a number of a limit on splits", least=0.0) for word in words)
        self.found = replace(self.found, splits=(*self.found.splits, SplitLimit(tuple(weights), most)))

    def _labels(self, words: list[str], following: Callable[[], list[str]]) -> None:
        n, K, known = self._samples, self._classes, self.found.labels
        require(K > 0, "the line 'labels' is for errors of classes")
        require(len(words) == 2, "the line 'labels' has no limit and price")
        many = len(known) < MAX_LABEL_LIMITS and (len(known) + 1) * n * K <= MAX_CELLS
        require(many, f"{len(known) + 1} limits on labels are too many for the check")
        most = self._double(words[0], "a limit on labels")
        price, use = self._double(words[1], "the price of a limit", least=0.0), np.zeros((n, K))
        for i in range(n):
            own = following()
            require(len(own) == K + 1 and own[0] == "use", f"no line 'use' with {K} numbers in its place")
            use[i] = [self._double(word, "what a label uses") for word in own[1:]]
        self.found = replace(self.found, labels=(*known, LabelLimit(use, most, price)))

    def _used(self, words: list[str], following: Callable[[], list[str]]) -> None:
        require(len(words) == 2, "the line 'used' has no limit and number of groups")
        most = self._double(words[0], "a limit on features", least=0.0)
        groups, costs = list[frozenset[int]](), list[float]()
        for _ in range(self._integer(words[1], "the groups of a limit", 1, MAX_CELLS)):
            own = following()
            require(len(own) > 2 and own[0] == "group", "no line 'group' in its place")
            costs.append(self._double(own[1], "the cost of a group", least=0.0))
            groups.append(self._features(own[2:]))
        limit = UsedLimit(tuple(groups), tuple(costs), most)
        self.found = replace(self.found, used=(*self.found.used, limit))


def _above(t: int) -> Iterator[int]:
    """Yield the nodes above one."""
    while t > 0:
        t = (t - 1) // 2
        yield t
