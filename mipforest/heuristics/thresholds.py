"""The thresholds of a data set, all splits of its samples on one feature, and the trees of such splits.

Thresholds between the same two neighbouring values of a feature route all samples alike, so one per gap is enough.
Samples with equal features go to the same leaf, and are merged into groups first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, Int32Array, IntArray, SparseMatrix
from mipforest.data import Dataset
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import midpoints

#: Parts of the thresholds of a data set that are kept: as many as a few edits of a tree ask for.
KEPT = 8
#: Rows of ranks have numbers up to this, of 64 bits.
MOST_NUMBERS = 2**62


@dataclass(frozen=True, eq=False)
class Thresholds:
    """All thresholds of a data set, feature by feature.

    Attributes
    ----------
    X
        (g, p) distinct rows of the data.
    group
        (n,) the group of each sample: its row of ``X``.
    distinct
        The distinct values of each feature, ascending.
    rank
        (p, g) rank of each group among the distinct values of each feature.
    feature, value
        (q,) feature and value of each threshold, ascending within a feature.
    first
        (p + 1,) where each feature's thresholds begin.
    names
        (p,) names of the features.
    whole, of_whole
        The thresholds that these are some of, and (q,) what each one is there; ``None`` where these are all.
    """

    X: FloatArray
    group: IntArray
    distinct: tuple[FloatArray, ...]
    rank: Int32Array
    feature: IntArray
    value: FloatArray
    first: IntArray
    names: tuple[str, ...]
    whole: Thresholds | None = None
    of_whole: IntArray | None = None

    def __len__(self) -> int:
        return len(self.feature)

    def subset(self, features: IntArray) -> tuple[Thresholds, IntArray]:
        """Return the thresholds of some features, ascending, with new numbers, and (q,) what each is among these.

        The last few answers are kept, and what searches keep of them: problems that differ in constraints ask again.
        """
        if len(features) == self.n_features:  # ascending: all
            return self, np.arange(len(self))
        return self._cached_among(tuple(features.tolist()))

    @property
    def in_whole(self) -> tuple[Thresholds, IntArray]:
        """All thresholds of the data, and (q,) the number of each of these there."""
        if self.whole is None or self.of_whole is None:
            return self, np.arange(len(self))
        return self.whole, self.of_whole

    @cached_property
    def _cached_among(self) -> Callable[[tuple[int, ...]], tuple[Thresholds, IntArray]]:
        return lru_cache(KEPT)(lambda features: self._among(np.array(features, dtype=np.int64)))

    def _among(self, features: IntArray) -> tuple[Thresholds, IntArray]:
        every = np.arange(len(self))
        numbers = np.concatenate([every[:0], *(every[self.of(j)] for j in features)])
        some, group = _distinct_rows(len(self.X), [(self.distinct[j], self.rank[j]) for j in features])
        sizes = np.diff(self.first)[features]
        whole, of_whole = self.in_whole
        few = Thresholds(
            X=self.X[some][:, features],
            group=group[self.group],
            distinct=tuple(self.distinct[j] for j in features),
            rank=self.rank[features][:, some],
            feature=np.repeat(np.arange(len(features)), sizes),
            value=self.value[numbers],
            first=np.concatenate([[0], np.cumsum(sizes)]),
            names=tuple(self.names[j] for j in features),
            whole=whole,
            of_whole=of_whole[numbers],
        )
        return few, numbers

    def with_copies(self, chosen: Sequence[IntArray]) -> Thresholds:
        """Return these thresholds, and some of them once more: each set of one feature's, as those of a further one.

        The last few answers are kept, as those of :meth:`subset` are.
        """
        return self._cached_copies(tuple(own.tobytes() for own in chosen))

    @cached_property
    def _cached_copies(self) -> Callable[[tuple[bytes, ...]], Thresholds]:
        def copies(chosen: tuple[bytes, ...]) -> Thresholds:
            return self._with_copies([np.frombuffer(own, dtype=np.int64) for own in chosen])

        return lru_cache(KEPT)(copies)

    def _with_copies(self, chosen: Sequence[IntArray]) -> Thresholds:
        p, columns, ranks = self.n_features, [self.X], [self.rank]
        for own in chosen:
            # The new feature counts the thresholds that a group is not below.
            x = np.searchsorted(self.value[own], self.X[:, self.feature[own[0]]], side="right")
            columns.append(x[:, None].astype(float))
            ranks.append(x[None].astype(np.int32))
        sizes = [len(own) for own in chosen]
        whole, of_whole = self.in_whole
        return Thresholds(
            X=np.hstack(columns),
            group=self.group,
            distinct=self.distinct + tuple(np.unique(column) for (column,) in (new.T for new in columns[1:])),
            rank=np.vstack(ranks),
            feature=np.concatenate([self.feature, np.repeat(np.arange(p, p + len(chosen)), sizes)]),
            value=np.concatenate([self.value, *(np.arange(size) + 0.5 for size in sizes)]),
            first=np.concatenate([self.first, len(self) + np.cumsum(sizes, dtype=np.int64)]),
            names=self.names + tuple(self.names[self.feature[own[0]]] for own in chosen),
            whole=whole,
            of_whole=np.concatenate([of_whole, *(of_whole[own] for own in chosen)]),
        )

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.first) - 1

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the thresholds; to write a million of them takes a second."""
        values = self.value.tolist()
        return tuple(
            f"{name}<{v:.6g}#{k}"
            for j, name in enumerate(self.names)
            for k, v in enumerate(values[self.of(j)])
        )

    @cached_property
    def left(self) -> SparseMatrix:
        """(g, q) CSR matrix with a 1 at the lowest threshold that sends a group left, feature by feature.

        The lowest threshold that sends a value of rank r left is number r + 1; the greatest value is sent left by none.
        """
        row, feature = np.nonzero(np.diff(self.first) > self.rank.T)
        column = self.first[feature] + self.rank[feature, row]
        shape = len(self.X), len(self)
        return sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape)

    @property
    def lowest(self) -> IntArray:
        """The lowest threshold of each feature that has any."""
        return self.first[:-1][np.diff(self.first) > 0]

    @property
    def above_lowest(self) -> IntArray:
        """Thresholds that have a lower one of the same feature."""
        above = np.ones(len(self), dtype=bool)
        above[self.lowest] = False
        return np.flatnonzero(above)

    def of_tree(self, tree: Tree) -> IntArray:
        """Return the (|B|,) threshold of each node of a univariate tree (scaled features), -1 where it has none."""
        chosen, used = chosen_features(tree), np.full(len(tree.w), -1)
        for t in np.flatnonzero(chosen >= 0).tolist():
            own = self.of(int(chosen[t]))
            below = int(np.searchsorted(self.distinct[chosen[t]], -tree.b[t] / tree.w[t, chosen[t]]))
            used[t] = min(max(own.start + below - 1, own.start), own.stop - 1)
        return used

    def of(self, j: int) -> slice:
        """Return where the thresholds of feature j stand among all."""
        return slice(int(self.first[j]), int(self.first[j + 1]))

    def encode(self, feature: IntArray, threshold: FloatArray) -> FloatArray:
        """Return the (|B|, q) values of the variables u for splits ``x_j < threshold``; feature -1 does not split."""
        u = np.zeros((len(feature), len(self)))
        for t in np.flatnonzero(feature >= 0):
            values = self.distinct[feature[t]]
            # Threshold k is chosen when k values lie below; it and all lower ones are on.
            u[t, self.of(feature[t])] = np.arange(1, len(values)) <= (values < threshold[t]).sum()
        return u

    def decode(self, u: FloatArray) -> IntArray:
        """Return the (|B|,) chosen threshold of each node by the values of u, -1 where a node does not split."""
        chosen = np.full(len(u), -1)
        for t, row in enumerate(u):
            on = np.flatnonzero(row > 0.5)
            if len(on):
                chosen[t] = on[-1]  # the highest that is on
        return chosen


def find_thresholds(data: Dataset) -> Thresholds:
    """List the thresholds of a data set."""
    found = [_ranked(column) for column in data.X.T]
    some, group = _distinct_rows(data.n, found)
    values = [midpoints(distinct) for distinct, _ in found]
    sizes = np.array([len(v) for v in values])
    rank = np.zeros((data.p, len(some)), np.int32)
    for j, (_, ranks) in enumerate(found):
        rank[j] = ranks[some]
    return Thresholds(
        X=data.X[some],
        group=group,
        distinct=tuple(distinct for distinct, _ in found),
        rank=rank,
        feature=np.repeat(np.arange(data.p), sizes),
        value=np.concatenate([np.zeros(0), *values]),
        first=np.concatenate([[0], np.cumsum(sizes)]),
        names=tuple(data.features.labels),
    )


def _ranked(column: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct values of a column, ascending, and the (n,) rank of each entry among them."""
    ends = np.unique([column.min(), column.max()])
    is_last = column == ends[-1]
    if (is_last | (column == ends[0])).all():  # most columns of indicators: nothing is sorted
        return ends, is_last.astype(np.int64) * (len(ends) - 1)
    order = column.argsort()  # numpy's ranks take twice as long
    ordered = column[order]
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    rank = np.empty(len(column), np.int64)
    rank[order] = is_new.cumsum() - 1
    return ordered[is_new], rank


def _distinct_rows(n: int, ranked: list[tuple[FloatArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Return a sample of each of the distinct rows, in their lexicographic order, and the (n,) row of each sample.

    Ranks of many columns make one number, and rows that differ in some columns are not compared in others.
    """
    number, span = np.zeros(n, dtype=np.int64), 1
    for distinct, rank in ranked:
        if span * len(distinct) > MOST_NUMBERS:
            found, number = np.unique(number, return_inverse=True)
            span = len(found)
            if span == n:
                break
        number, span = number * len(distinct) + rank, span * len(distinct)
    _, first, group = np.unique(number, return_index=True, return_inverse=True)
    return first, group


# ------------------------------------------------------------------ trees


def tree_of_splits(data: Dataset, topology: Topology, w: FloatArray, b: FloatArray) -> Tree:
    """Return the tree of splits (|B|, p) and (|B|,), for scaled features; its leaves are still to be fitted."""
    return Tree(
        topology.depth,
        w,
        b,
        np.zeros((topology.n_leaves, *data.y.shape[1:])),
        tuple(data.classes),
        tuple(data.features.labels),
        targets=data.targets,
        target_classes=data.target_classes,
    )


def univariate_tree(
    data: Dataset,
    topology: Topology,
    feature: IntArray,
    threshold: FloatArray,
    leaf_value: FloatArray | IntArray | None = None,
) -> Tree:
    """Return the tree of the splits ``x_j >= threshold`` (|B|,) to the right; feature -1 sends everything right.

    Leaves predict ``leaf_value`` (|L|,), class indices or values, and 0 where it is not given.
    """
    w = np.zeros((topology.n_branches, data.p))
    splits = np.flatnonzero(feature >= 0)
    w[splits, feature[splits]] = 1.0
    b = np.where(feature >= 0, -threshold, 0.0)
    tree = tree_of_splits(data, topology, w, b)
    return tree if leaf_value is None else replace(tree, leaf_value=leaf_value)


def chosen_features(tree: Tree) -> IntArray:
    """Return the (|B|,) feature of each split of a univariate tree, -1 where a node does not split."""
    feature: IntArray = np.where(tree.w.any(axis=1), np.abs(tree.w).argmax(axis=1), -1)
    return feature


def without_splits(tree: Tree, nodes: Sequence[int]) -> Tree:
    """Return a tree without the splits of some branch nodes and of those below: all samples go right there."""
    dropped = np.isin(np.arange(len(tree.b)), nodes)
    for t in range(1, len(dropped)):
        dropped[t] |= dropped[(t - 1) // 2]
    return replace(tree, w=np.where(dropped[:, None], 0.0, tree.w), b=np.where(dropped, 0.0, tree.b))


def tree_of_thresholds(data: Dataset, topology: Topology, thresholds: Thresholds, chosen: IntArray) -> Tree:
    """Return the tree (leaves still 0) of one threshold per branch node (|B|,), -1 where a node does not split."""
    feature, value = np.full(len(chosen), -1), np.zeros(len(chosen))
    splits = np.flatnonzero(chosen >= 0)
    feature[splits], value[splits] = thresholds.feature[chosen[splits]], thresholds.value[chosen[splits]]
    return univariate_tree(data, topology, feature, value)
