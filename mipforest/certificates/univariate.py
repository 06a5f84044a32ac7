"""Check certificates of univariate trees: intervals of thresholds, and what the rows on both sides lose at least.

The losses of a certificate are rounded to whole numbers once, so that no tree loses more than before
(:mod:`mipforest.certificates.losses`). All that follows is addition and comparison of whole numbers: the check sorts
the samples, and for every interval of thresholds it computes what the rows left of its first and right of its last
threshold lose at least.
``docs/certificates.md`` has the statement, the proof and the format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.certificates.constraints import MAX_LEVELS, Box, Constraints, Reader
from mipforest.certificates.losses import (
    ABSOLUTE,
    DEVIANCE,
    ERRORS,
    LEAST_EXPONENT,
    LOSSES,
    MAX_CLASSES,
    MAX_TARGETS,
    MEDIAN,
    MOST,
    MOST_EXPONENT,
    SQUARED,
    Grid,
    Losses,
    Problem,
    leaf_value,
    objective_bound,
    raised,
    require_size,
    rounded,
)
from mipforest.certificates.nodes import (
    CertificateError,
    double_above,
    number_of,
    require,
    whole,
    written,
)

if TYPE_CHECKING:
    from mipforest.certificates import Words

#: The format.
UNIVARIATE = 3

#: Loss of a tree that does not exist, as its leaves would be too small.
NEVER = 1 << 60

#: Most entries of a sum over rows and intervals that is held at a time: half a megabyte.
BLOCK = 1 << 16

#: Values of a feature, and entries of a matrix, up to which sums are products of matrices: faster than counting.
DENSE, MAX_DENSE = 30, 1 << 22

#: Share by which a claimed objective, a sum of doubles, may miss the value of the tree.
ROUNDING = Fraction(1, 10**9)

_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_HEX = re.compile(r"-?0x[01]\.?[0-9a-f]{0,13}p[+-]\d{1,4}")


@dataclass(frozen=True, eq=False)
class CertifiedUnivariate:
    """What a certificate of univariate trees proves.

    Attributes
    ----------
    words
        What the file calls the model, its parameters and the data.
    problem
        The samples, and what trees are charged: the numbers that the proof was checked with.
    sha256
        Digest of the samples (:meth:`Problem.digest`).
    constraints
        What trees have to keep.
    objective
        Value of the claimed tree by the definition, rounded up.
    bound
        Proven lower bound on the value of every tree of that depth within the constraints.
    claims, intervals
        Claims of subsets that were checked, and intervals of thresholds that close them.
    """

    words: Words
    problem: Problem
    sha256: str
    constraints: Constraints
    objective: float
    bound: float
    claims: int
    intervals: int

    @property
    def X(self) -> FloatArray:  # noqa: N802
        """(n, p) samples, as the model has them."""
        return self.problem.X

    @property
    def depth(self) -> int:
        """Most levels of splits."""
        return self.problem.depth

    @property
    def data(self) -> str:
        """Name of the data, as the file has it."""
        return self.words.data

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound; 0 where the objective is."""
        return max(0.0, self.objective - self.bound) / self.objective if self.objective > 0 else 0.0


class Lines:
    """Lines of a certificate, with the number of the last one."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines, self.number = lines, 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        line = next(self._lines)
        self.number += 1
        return line

    def words(self, key: str = "") -> list[str]:
        """Return the words of the next line, which begins with one; without it."""
        text = next(self, None)
        require(text is not None, "the file ends before the proof does: it was cut off")
        with suppress(UnicodeDecodeError):
            words = (text or b"").decode("ascii").split(" ")
            if not key or words[0] == key:
                return words[1:] if key else words
        raise CertificateError(f"no line {key!r} in its place; is the file a certificate, and complete?")

    def whole_numbers(self) -> list[int]:
        """Return the next line, of whole numbers."""
        words = self.words()
        if all(map(_WHOLE.fullmatch, words)):
            return list(map(int, words))
        raise CertificateError("no whole numbers in a line of the proof")


def _double(word: str, what: str, *, least: float = -math.inf) -> float:
    """Return a double that is written as ``float.hex`` writes it, or refuse it."""
    if not _HEX.fullmatch(word):
        raise CertificateError(f"{what} is {word[:40]!r}, and no double as C writes it with %a")
    value = number_of(float.fromhex(word), what)
    require(value >= least, f"{what} is {value:g}, less than {least:g}")
    return value


def _integer(word: str, what: str, low: int, high: int) -> int:
    require(_WHOLE.fullmatch(word), f"{what} is {word[:40]!r}, no whole number")
    return whole(int(word), what, low, high)


def check(words: Words, stated: object, lines: Lines, *, exact: bool = False) -> CertifiedUnivariate:
    """Check a certificate of univariate trees.

    Parameters
    ----------
    words, stated
        What the first line calls the problem, and the digest of the samples that it states.
    lines
        All lines but the first one.
    exact
        Compute quotients and logarithms in whole numbers too, instead of doubles that are raised.

    Raises
    ------
    CertificateError
        If it does not prove what it claims.
    """
    problem = read_problem(lines)
    digest = problem.digest()
    require(stated == digest, "the samples are not those of the digest in the first line")
    words.require_unused(problem.X)
    constraints, following = _constraints(problem, lines)
    limits = constraints.labels
    require(not limits or problem.n_targets == 1, "limits on labels are for one target")
    require(
        following[:1] == ["grid"], "no line 'grid' in its place; is the file a certificate, and complete?"
    )
    grid = _grid(following[1:], problem.loss, problem.n_targets)
    losses = rounded(problem, grid, limits, exact=exact)
    enough = grid.error >= losses.error
    require(enough, f"rounded targets may raise a loss by {losses.error} units of the grid, not {grid.error}")
    objective, tree = _tree(lines.words("tree"), problem)
    leaves = _leaves(lines.words("leaves"), problem) if limits else None
    value = value_of(problem, tree, constraints, leaves)
    agrees = abs(value - Fraction(objective)) <= ROUNDING * value
    require(agrees, f"the claimed tree has the value {written(value)}, not {written(objective)}")
    said = lines.words("bound")
    require(len(said) == 2, "the bound is no whole number and a double")
    b, bound = _integer(said[0], "the bound", 0, MOST), _double(said[1], "the bound", least=0.0)
    units = raised(problem, b + losses.moved, grid) if limits else b
    proven = objective_bound(units, grid, problem.unit)
    require(Fraction(bound) <= proven, f"the losses prove {written(proven)}, claimed {written(bound)}")
    proof = _Proof(problem, losses, constraints, lines)
    proof.check_all(b)
    require(next(lines, None) is None, "a line after the end of the proof")
    nearest = float(value)
    above = nearest if Fraction(nearest) >= value else double_above(value)
    return CertifiedUnivariate(
        words, problem, digest, constraints, above, bound, proof.claims, proof.intervals
    )


def values_of(X: FloatArray) -> IntArray:
    """Return the number of values of each feature (p,)."""
    return np.array([len(np.unique(column)) for column in X.T], dtype=np.int64)


def _constraints(problem: Problem, lines: Lines) -> tuple[Constraints, list[str]]:
    """Read the constraints, and the words of the line behind them."""
    n, K = len(problem.y), problem.n_classes
    reader = Reader(problem.depth, values_of(problem.X), n, K, _integer, _double)
    following = reader.read(lines.words(), lines.words)
    return reader.found, following


def read_problem(lines: Lines) -> Problem:
    """Read what trees are charged, and the samples."""
    head = lines.words("problem")
    require(len(head) == 10, "the line 'problem' has no ten entries")
    loss = head[0]
    require(loss in LOSSES, f"loss {loss[:40]!r} is none of {', '.join(LOSSES)}")
    depth = _integer(head[1], "depth", 1, MAX_LEVELS + 1)
    n, p = _integer(head[2], "samples", 1, 1 << 31), _integer(head[3], "features", 1, 1 << 31)
    T = _integer(head[4], "targets", 1, MAX_TARGETS + 1 if loss in (ERRORS, SQUARED) else 2)
    K = _integer(head[5], "classes", 1 if loss == ERRORS else 0, MAX_CLASSES + 1 if loss == ERRORS else 1)
    require_size(n, p, T, K)
    N_min = _integer(head[6], "N_min", 1, 1 << 31)
    split_cost = _double(head[7], "the cost of a split", least=0.0)
    unit = _double(head[8], "the unit", least=0.0)
    require(unit > 0, "the unit is 0")
    level = _double(head[9], "the level", least=0.0)
    require(0 < level < 1, f"the level of a quantile is {level:g}, and not between 0 and 1")
    require(loss == ABSOLUTE or level == MEDIAN, f"the {loss} loss has no quantile of level {level:g}")
    costs = np.zeros((T * K, K))
    for k in range(T * K):
        row = lines.words("cost")
        require(len(row) == K, f"a line of costs has {len(row)} entries for {K} classes")
        costs[k] = [_double(word, "a cost", least=0.0) for word in row]
    table = np.empty((n, T + 1 + p))
    for i in range(n):
        row = lines.words("sample")
        require(
            len(row) == T + 1 + p,
            f"a sample has {len(row)} numbers, and not {T} of targets, weight and {p} features",
        )
        table[i] = [_double(word, "a number of a sample") for word in row]
    y, weight, X = table[:, :T], table[:, T], table[:, T + 1 :]
    require(bool((weight > 0).all()), "a weight is not above 0")
    if loss == ERRORS:
        classes = (y == np.floor(y)) & (y >= 0) & (y < K)
        require(bool(classes.all()), f"the class of a sample is none of 0 to {K - 1}")
    return Problem(
        loss,
        depth,
        N_min,
        split_cost,
        unit,
        costs.reshape(T, K, K),
        np.ascontiguousarray(X),
        y,
        weight,
        level,
    )


def _grid(words: list[str], loss: str, T: int) -> Grid:
    require(len(words) == 4 + T, f"the line 'grid' has no {4 + T} entries")
    names = ("the grid of losses", "the grid of weights", "the grid of targets")
    exponents = [
        _integer(word, name, LEAST_EXPONENT, MOST_EXPONENT + 1)
        for word, name in zip(words, names, strict=False)
    ]
    centre = tuple(_double(word, "the centre") for word in words[3:-1])
    centred = loss in (SQUARED, DEVIANCE)
    require(centred or not any(centre), f"targets of the {loss} loss have no centre, and it is {centre[0]:g}")
    loss_exponent, weight, target = exponents
    return Grid(loss_exponent, weight, target, centre, _integer(words[-1], "the error of the grid", 0, MOST))


def _tree(words: list[str], problem: Problem) -> tuple[float, list[tuple[int, float]]]:
    """Return the claimed objective, and feature and threshold of every node in heap order, -1 where it is a leaf."""
    nodes, p = 2**problem.depth - 1, problem.X.shape[1]
    require(len(words) == 1 + 2 * nodes, f"the tree has no objective and {nodes} features with thresholds")
    splits = [
        (_integer(f, "a feature of the tree", -1, p), _double(t, "a threshold of the tree"))
        for f, t in zip(words[1::2], words[2::2], strict=True)
    ]
    return _double(words[0], "the objective", least=0.0), splits


def _leaves(words: list[str], problem: Problem) -> list[int]:
    """Return the label of every node in heap order, of those at the last level too; -1 where it is no leaf."""
    nodes = 2 ** (problem.depth + 1) - 1
    require(len(words) == nodes, f"the line 'leaves' has {len(words)} labels for {nodes} nodes")
    return [_integer(word, "the label of a leaf", -1, problem.n_classes) for word in words]


def value_of(
    problem: Problem,
    tree: list[tuple[int, float]],
    constraints: Constraints,
    leaves: Sequence[int] | None = None,
) -> Fraction:
    """Return the objective of a tree by the definition, in rational numbers.

    Parameters
    ----------
    problem
        The samples, and what trees are charged.
    tree
        Feature and threshold of each node in heap order; a feature of -1 is a leaf. Samples below go left.
    constraints
        What the tree has to keep.
    leaves
        Under limits on labels, the label of each node, of those at the last level too; otherwise leaves have the best.

    Raises
    ------
    CertificateError
        If a leaf has fewer samples than it may have, or the tree is outside the constraints.
    """
    total, here = Fraction(0), {0: np.arange(len(problem.y))}
    labels = np.zeros(len(problem.y), np.int64)
    splits = [(-1, 0)] * len(tree)
    while here:
        node, rows = here.popitem()
        f, threshold = tree[node] if node < len(tree) else (-1, 0.0)
        if f < 0:
            enough = len(rows) >= problem.N_min or (constraints.empties and not len(rows))
            require(
                enough, f"a leaf of the claimed tree has {len(rows)} samples, and N_min is {problem.N_min}"
            )
            if leaves is not None:
                require(leaves[node] >= 0, "a leaf of the claimed tree has no label")
                labels[rows] = leaves[node]
            own = None if leaves is None else leaves[node]
            total += leaf_value(problem, rows, own) if len(rows) else Fraction(0)
            continue
        total += Fraction(problem.split_cost)
        right = problem.X[rows, f] >= threshold
        here[2 * node + 1], here[2 * node + 2] = rows[~right], rows[right]
        splits[node] = f, int((np.unique(problem.X[:, f]) < threshold).sum())
    constraints.require_tree(splits)
    for limit in constraints.labels:
        require(limit.excess(labels) <= 0, "the labels of the claimed tree use more than a limit")
    return total / Fraction(problem.unit)


class _Ordered(NamedTuple):
    """Rows in the order of the features that a node may split on.

    Attributes
    ----------
    rows
        (m,) the rows.
    place
        (q, m) where they stand among the values of all these features, one feature after the other.
    widths
        (q,) how many values each feature has.
    upto
        (m, W) 1 where a row stands at a value of a feature or before it; ``None`` where there are many values.
    closed
        (W,) whether the node may split at no threshold between a value and the next; ``None`` where it may at all.
    must
        Whether the node has to split.
    parts_none
        Whether it may split at a threshold with all of the rows on its right.
    """

    rows: IntArray
    place: IntArray
    widths: IntArray
    upto: FloatArray | None
    closed: BoolArray | None
    must: bool
    parts_none: bool


class Place(NamedTuple):
    """A node at which a claim is made, and the groups that came on the path to it, of features that come once."""

    node: int = 0
    above: frozenset[int] = frozenset()


class _Proof:
    """Follows the claims of a proof: each says what trees of some levels lose at least on some rows."""

    def __init__(self, problem: Problem, losses: Losses, constraints: Constraints, lines: Lines) -> None:
        self.problem, self.losses, self.constraints, self.lines = problem, losses, constraints, lines
        self.claims = self.intervals = 0
        rank = np.empty((problem.X.shape[1], len(losses.size)), np.int64)
        for f, column in enumerate(problem.X.T):
            rank[f, losses.group] = np.unique(column, return_inverse=True)[1]
        self.rank = rank
        #: Number of values of each feature.
        self.values = (rank.max(axis=1) + 1).tolist()
        self.empties = constraints.empties
        self._adopt_box(constraints.box())

    def _adopt_box(self, box: Box) -> None:
        self.box = box
        #: (|B|,) what the splits below each node cost at least that have to be there, its own one included.
        self.floor = [int(count) * self.losses.split_cost for count in subtree_sums(box.must)]
        #: (|B|,) the same number for nodes that may split at the same thresholds, and have to or not.
        first = np.where(box.allowed, self.constraints.first, -1)
        said = np.hstack([first, self.constraints.last, box.must[:, None]])
        self.alike = np.unique(said, axis=0, return_inverse=True)[1].ravel()

    def check_all(self, b: int) -> None:
        """Check that every tree within the constraints loses at least b, box by box."""
        rows, depth, least = np.arange(len(self.losses.size)), self.problem.depth, self.problem.N_min
        least = least if least > 1 else 0
        if not self.constraints.has_limits:
            self.check(rows, depth, least, b, Place())
            return
        boxes = [self.box]
        while boxes:
            box, (step, *words) = boxes.pop(), self.lines.words()
            if step == "branch":
                require(len(words) > 1, "a line 'branch' has no node and features")
                node = _integer(words[0], "a node", -1, len(box.must))
                own = [_integer(word, "a feature of a branching", 0, len(self.rank)) for word in words[1:]]
                without, among = box.divided(node, own)
                boxes += [among, without]
                continue
            require(
                step in ("none", "claim") and not words,
                f"no line 'branch', 'none' or 'claim' but {step[:40]!r}",
            )
            if step == "none":
                require(
                    self.constraints.excludes(box), "a box is said to have no tree, and keeps every limit"
                )
                continue
            self._adopt_box(box)
            self.check(rows, depth, least, b, Place())

    def check(self, rows: IntArray, levels: int, least: int, b: int, place: Place) -> None:
        """Check that every tree of some levels, with leaves of a least size, loses at least b on some rows.

        A bound of what its splits cost at least, and one on rows that are too few for a leaf, needs no proof.
        """
        size, node = int(self.losses.size[rows].sum()), place.node
        if b <= self.floor[node] or (size < least and (size > 0 or not self.empties)):
            return
        self.claims += 1
        require(size > 0, f"{b} is claimed of no samples, and the splits cost {self.floor[node]}")
        if not self.box.must[node]:
            leaf = int(self.losses.leaf(self.losses.table[rows].sum(axis=0)[None])[0])
            require(leaf >= b, f"one leaf loses {leaf}, and {b} is claimed of {size} samples")
        if levels == 1:
            everywhere, below = np.zeros(len(rows), np.int64), np.ones(1, np.int64)
            values = self._least(self._in_order(rows, place), everywhere, below, np.array([least]))
            require(values[0] >= b, f"one split loses {values[0]}, and {b} is claimed of {size} samples")
            return
        orders = dict[tuple[int, frozenset[int]], _Ordered]()
        for f in np.flatnonzero(self._usable(place)).tolist():
            first, last = int(self.constraints.first[node, f]), int(self.constraints.last[node, f])
            group = int(self.constraints.group[f])
            above = place.above | {group} if group >= 0 else place.above
            sides = Place(2 * node + 1, above), Place(2 * node + 2, above)
            if levels == 2:
                kinds = [(int(self.alike[side.node]), side.above) for side in sides]
                for kind, side in zip(kinds, sides, strict=True):
                    if kind not in orders:
                        orders[kind] = self._in_order(rows, side)
                self._close((orders[kinds[0]], orders[kinds[1]]), f, (first, last), least, b)
                continue
            low = first
            (number,) = self._numbers(1)
            for _ in range(number):
                high, left = self._numbers(2)
                require(low <= high <= last, f"an interval of feature {f} is from {low} to {high} of {last}")
                at = self.rank[f, rows]
                between = int(self.losses.size[rows[(at >= low) & (at < high)]].sum())
                fewer = max(0, least - between) if least - between > 1 else 0
                right = b - self.losses.split_cost - left
                require(max(abs(left), abs(right)) <= NEVER, "a claim is beyond the grid")
                self.intervals += 1
                self.check(rows[at < low], levels - 1, fewer, left, sides[0])
                self.check(rows[at >= high], levels - 1, fewer, right, sides[1])
                low = high + 1
            require(low == last + 1, f"the thresholds of feature {f} from {low} on are not closed")

    def _usable(self, place: Place) -> BoolArray:
        """Return (p,) which features a node may split on, below groups of those that come once on a path."""
        allowed: BoolArray = self.box.allowed[place.node]
        if place.above:
            allowed = allowed & ~np.isin(self.constraints.group, list(place.above))
        return allowed

    def _numbers(self, count: int) -> list[int]:
        numbers = self.lines.whole_numbers()
        require(len(numbers) == count, f"a line of the proof has {len(numbers)} numbers, and not {count}")
        return numbers

    def _close(
        self, orders: tuple[_Ordered, _Ordered], f: int, within: tuple[int, int], least: int, b: int
    ) -> None:
        """Check the intervals of a feature at which both sides have at most one split each."""
        ends, (first, last) = self.lines.whole_numbers(), within
        high = np.array([min(max(end, 0), 1 << 40) for end in ends])
        low = np.concatenate([[first], high[:-1] + 1])
        require(
            bool((low <= high).all()) and int(high[-1]) == last,
            f"the intervals of feature {f} are not those of all {last - first + 1} thresholds in their order",
        )
        self.intervals += len(high)
        rows, most = orders[0].rows, self.values[f]
        at = self.rank[f, rows]
        fewer = np.zeros(len(high), np.int64)
        if least:
            before = np.concatenate([[0], np.bincount(at, self.losses.size[rows], most)]).cumsum()
            fewer = least - (before[high] - before[low]).astype(np.int64)
            fewer[fewer <= 1] = 0
        left = self._least(orders[0], at, low, fewer)
        # Rows from the end of an interval on are those below a rank when ranks are counted from above.
        right = self._least(orders[1], most - 1 - at, (most - high)[::-1], fewer[::-1])[::-1]
        value = left + right + self.losses.split_cost
        worst = int(value.argmin())
        require(
            int(value[worst]) >= b,
            f"thresholds {low[worst]} to {high[worst]} of feature {f}: proven is {value[worst]}, claimed {b}",
        )

    def _in_order(self, rows: IntArray, place: Place) -> _Ordered:
        """Return where rows stand among the values of each feature that a node may split on."""
        node, features = place.node, np.flatnonzero(self._usable(place))
        at, widths, closed = np.empty((len(features), len(rows)), np.int64), list[int](), list[BoolArray]()
        must, parts_none = bool(self.box.must[node]), False
        everywhere = not must
        for k, g in enumerate(features.tolist()):
            own, there = self.rank[g], np.zeros(self.values[g], np.bool_)
            there[own[rows]] = True
            number = there.cumsum()
            at[k] = number[own[rows]] - 1 + sum(widths)
            widths.append(int(number[-1]))
            first, last = self.constraints.first[node, g], self.constraints.last[node, g]
            # Between a value and the next there are the thresholds from one rank more on, up to the rank of the next.
            values = np.append(np.flatnonzero(there), self.values[g] - 1)
            closed.append(np.maximum(values[:-1] + 1, first) > np.minimum(values[1:], last))
            parts_none |= bool(first <= values[0])
            everywhere &= bool(first == 1 and last == self.values[g] - 1)
        # A split behind the last value is one leaf, which only a node that has to split may not be.
        shut = None if everywhere else np.concatenate([np.zeros(0, np.bool_), *closed])
        upto = None
        if len(widths) and sum(widths) <= DENSE * len(widths) and len(rows) * sum(widths) <= MAX_DENSE:
            ends = np.repeat(np.cumsum(widths), widths)
            begins = ends - np.repeat(widths, widths)
            feature = np.repeat(np.arange(len(widths)), widths)
            column = np.arange(len(ends))
            upto = ((at[feature] <= column[:, None]) & (at[feature] >= begins[:, None])).T.astype(np.float64)
        return _Ordered(rows, at, np.array(widths, dtype=np.int64), upto, shut, must, parts_none)

    def _least(self, ordered: _Ordered, key: IntArray, below: IntArray, least: IntArray) -> IntArray:
        """Return the least losses (k,) of at most one split on subsets of rows.

        Parameters
        ----------
        ordered, key
            The rows, and where they stand: (m,).
        below
            (k,) ascending: subset j has the rows whose key is less than ``below[j]``.
        least
            (k,) least number of samples in a leaf, 0 for any.
        """
        k, losses, W = len(below), self.losses, int(ordered.widths.sum())
        first, rows, place = np.searchsorted(below, key, side="right"), ordered.rows, ordered.place
        dense = ordered.upto is not None and k * W <= DENSE * len(self.rank)
        if not dense:
            inside = first < k
            rows, first, place = rows[inside], first[inside], place[:, inside]
        columns = losses.table[rows].T.astype(np.float64)
        totals = np.array([np.bincount(first, column, k + 1)[:k].cumsum() for column in columns]).T
        size = np.bincount(first, losses.size[rows], k + 1)[:k].cumsum()
        best = losses.leaf(totals.astype(np.int64))
        best[(size < least) & ((size > 0) | (not self.empties))] = NEVER
        if ordered.must:
            # A split that parts none of the rows is one leaf with its cost.
            alone = np.minimum(best + losses.split_cost, NEVER)
            best = alone if ordered.parts_none else np.full(k, NEVER)
        if W == 0:
            return best
        if losses.has_sums:
            columns = columns[:-1]
        elif self._are_two(totals) and not ordered.must:
            columns = columns[:1] - columns[1:]
        limited = bool(least.any())
        if limited:
            columns = np.vstack([losses.size[rows], columns])
        if dense and ordered.upto is not None:
            # Whole numbers below 2**53 have exact sums in any order, those of a product of matrices as well.
            members = first <= np.arange(k)[:, None]
            sums = ((members * column) @ ordered.upto for column in columns)
            found = self._best_split(ordered, sums, totals, size, least if limited else None)
            return np.asarray(np.minimum(best, losses.split_cost + found))
        step = max(1, BLOCK // W)
        # The last subsets, which have all rows, come first: rows only leave.
        for j in range((k - 1) // step * step, -1, -step):
            part = slice(j, min(k, j + step))
            some = first < part.stop
            if not some.all():
                place, first, columns = place[:, some], first[some], columns[:, some]
            cell = (place + (np.maximum(first, j) - j) * W).ravel()
            # One after the other: of many predictions, all sums at once may be beyond memory.
            sums = (self._sums(cell, column, part.stop - j, ordered.widths) for column in columns)
            found = self._best_split(
                ordered, sums, totals[part], size[part], least[part] if limited else None
            )
            best[part] = np.minimum(best[part], losses.split_cost + found)
        return best

    def _sums(self, cell: IntArray, column: FloatArray, k: int, widths: IntArray) -> FloatArray:
        """Return the sums (k, W) of the rows of each subset up to each value, feature by feature."""
        weights = np.broadcast_to(column, (len(widths), len(column))).ravel()
        sums = np.bincount(cell, weights, k * int(widths.sum())).reshape(k, -1)
        for before, after in pairwise(sums):
            np.add(before, after, out=after)
        # All rows of a subset stand in the order of every feature: what is summed begins anew at each.
        begin = widths.cumsum()[:-1]
        sums[:, begin] -= sums[:, : widths[0]].sum(axis=1)[:, None]
        return sums.cumsum(axis=1)

    def _best_split(
        self,
        ordered: _Ordered,
        sums: Iterator[FloatArray],
        totals: FloatArray,
        size: FloatArray,
        least: IntArray | None,
    ) -> IntArray:
        """Return the least losses (k,) of two leaves, from the sums (k, U) of the rows up to each value.

        With least sizes of leaves, the first sums are the numbers of samples. A leaf may hold none: a split with such a
        leaf is no better than one leaf with all rows.
        """
        forbidden = ordered.closed
        if least is not None:
            below = next(sums)
            above = size[:, None] - below
            few = ((below > 0) & (below < least[:, None])) | ((above > 0) & (above < least[:, None]))
            if not self.empties:
                few |= ((size == 0) & (least > 0))[:, None]
            forbidden = few if forbidden is None else few | forbidden
        if self.losses.has_sums:
            w, *u = sums
            others = [totals[:, 1 + t : 2 + t] - one for t, one in enumerate(u)]
            saved = self.losses.saved((w, u), (totals[:, :1] - w, others))
            if forbidden is not None:
                saved[np.broadcast_to(forbidden, saved.shape)] = -NEVER
            return np.asarray(np.maximum(0, totals[:, -1].astype(np.int64) - saved.max(axis=1)))
        if self._are_two(totals) and not ordered.must:
            # The left leaf predicts one of the two, the right leaf the other one: two equal ones are one leaf.
            (less,) = sums
            highest = less if forbidden is None else np.where(forbidden, -float(NEVER), less)
            lowest = less if forbidden is None else np.where(forbidden, float(NEVER), less)
            found = np.minimum(totals[:, 0] - highest.max(axis=1), totals[:, 1] + lowest.min(axis=1))
            return np.asarray(found, dtype=np.int64)
        both: FloatArray | float = 0.0
        for own in np.split(totals, self.losses.n_targets, axis=1):
            left: FloatArray | float = math.inf
            right = left
            for k in range(own.shape[1]):
                below = next(sums)
                left, right = np.minimum(left, below), np.minimum(right, own[:, k : k + 1] - below)
            both = both + left + right
        found = np.asarray(both)
        if forbidden is not None:
            found[np.broadcast_to(forbidden, found.shape)] = float(NEVER)
        return np.asarray(found.min(axis=1), dtype=np.int64)

    def _are_two(self, totals: FloatArray) -> bool:
        """Return whether leaves have one of two predictions, by the sums (k, M) of what each one costs."""
        return not self.losses.has_sums and self.losses.n_targets == 1 and totals.shape[1] == 2


def subtree_sums(must: BoolArray) -> IntArray:
    """Return (|B|,) how many of some nodes are in the subtree of each node."""
    sums = must.astype(np.int64)
    for t in range(len(must) - 1, 0, -1):
        sums[(t - 1) // 2] += sums[t]
    return sums
