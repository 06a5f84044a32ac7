"""Index sets of the complete binary tree: branch nodes, leaves, levels, and which nodes lie below which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from scipy import sparse

from mipforest.arrays import IntArray, SparseMatrix

#: Deepest tree that is accepted; it has 2047 nodes.
MAX_DEPTH = 10


@dataclass(frozen=True, repr=False)
class Nodes(Sequence[int]):
    """An ordered set of node numbers, usable as an index set of a model and as a numpy index.

    Parameters
    ----------
    numbers
        Node numbers in heap order.
    """

    numbers: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each node in models and files, ``("n0", "n1", ...)``."""
        return tuple(f"n{t}" for t in self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Nodes: ...

    def __getitem__(self, index: int | slice) -> int | Nodes:
        if isinstance(index, slice):
            return Nodes(self.numbers[index])
        return self.numbers[index]

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> IntArray:
        if copy is False:
            raise ValueError("the numbers of Nodes are a tuple; an array of them is always a copy")
        return np.array(self.numbers, dtype=np.int64 if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"Nodes({', '.join(self.labels)})"


@dataclass(frozen=True)
class Topology:
    """The complete binary tree of a given depth.

    Nodes are numbered in heap order: root 0, children ``2t + 1`` (left) and ``2t + 2`` (right). There are
    ``2^depth - 1`` branch nodes and ``2^depth`` leaves; level h holds ``2^h`` nodes.

    Parameters
    ----------
    depth
        Number of levels of branch nodes, 1 to 10.

    Raises
    ------
    TypeError
        If the depth is not an integer.
    ValueError
        If the depth is out of range.

    Examples
    --------
    >>> topology = Topology(2)
    >>> topology.branches, topology.last_branches, topology.leaves
    (Nodes(n0, n1, n2), Nodes(n1, n2), Nodes(n3, n4, n5, n6))
    >>> topology.left(0), topology.right(0), topology.parent(5)
    (1, 2, 2)
    """

    depth: int

    def __post_init__(self) -> None:
        if isinstance(self.depth, bool) or not isinstance(self.depth, int | np.integer):
            raise TypeError(f"depth must be an integer, got {self.depth!r}")
        if not 1 <= self.depth <= MAX_DEPTH:
            reason = (
                "a tree without a branch node splits nothing"
                if self.depth < 1
                else f"it would have 2^{self.depth} leaves, and models grow with that number"
            )
            raise ValueError(f"depth must be 1 to {MAX_DEPTH}, got {self.depth}: {reason}")
        object.__setattr__(self, "depth", int(self.depth))

    @property
    def n_branches(self) -> int:
        """Number of branch nodes, ``2^depth - 1``."""
        return int(2**self.depth - 1)

    @property
    def n_leaves(self) -> int:
        """Number of leaves, ``2^depth``."""
        return int(2**self.depth)

    @property
    def n_nodes(self) -> int:
        """Number of branch nodes and leaves, ``2^(depth + 1) - 1``."""
        return int(2 ** (self.depth + 1) - 1)

    @cached_property
    def branches(self) -> Nodes:
        """All branch nodes (B)."""
        return Nodes(tuple(range(self.n_branches)))

    @cached_property
    def upper_branches(self) -> Nodes:
        """Branch nodes above the last branching level (B'); empty at depth 1."""
        return Nodes(tuple(range(self.n_leaves // 2 - 1)))

    @cached_property
    def last_branches(self) -> Nodes:
        """Branch nodes of the last branching level (B''), whose children are leaves."""
        return self.at_level(self.depth - 1)

    @cached_property
    def leaves(self) -> Nodes:
        """All leaves (L)."""
        return self.at_level(self.depth)

    def at_level(self, level: int) -> Nodes:
        """Return the nodes of one level, left to right; level 0 is the root, level ``depth`` the leaves.

        Raises
        ------
        ValueError
            If the tree has no such level.
        """
        if not 0 <= level <= self.depth:
            raise ValueError(f"a tree of depth {self.depth} has levels 0 to {self.depth}, not {level}")
        return Nodes(tuple(range(2**level - 1, 2 ** (level + 1) - 1)))

    def level(self, t: int) -> int:
        """Return the number of edges from the root to node t."""
        return (self._node(t) + 1).bit_length() - 1

    @cached_property
    def levels(self) -> IntArray:
        """(|B|,) level of each branch node."""
        return np.array([self.level(t) for t in self.branches], dtype=np.int64)

    def parent(self, t: int) -> int:
        """Return the parent of node t; the root has none (ValueError)."""
        if self._node(t) == 0:
            raise ValueError("the root, node 0, has no parent")
        return (t - 1) // 2

    def left(self, t: int) -> int:
        """Return the left child of branch node t; a leaf has none (ValueError)."""
        return 2 * self._branch(t) + 1

    def right(self, t: int) -> int:
        """Return the right child of branch node t; a leaf has none (ValueError)."""
        return 2 * self._branch(t) + 2

    @cached_property
    def parents(self) -> IntArray:
        """(n_nodes,) parent of each node; -1 for the root."""
        return (np.arange(self.n_nodes) - 1) // 2

    @cached_property
    def reach(self) -> SparseMatrix:
        """(|B''|, |B|) 0/1 CSR matrix: 1 where last branch s lies in the subtree of t (s itself included).

        For an assignment z of shape (n, |B''|), ``z @ reach`` is 1 where the sample passes branch node t.
        """
        itself = sparse.eye_array(len(self.last_branches))
        return sparse.csr_array(sparse.hstack([self.reach_left + self.reach_right, itself]))

    @cached_property
    def reach_left(self) -> SparseMatrix:
        """(|B''|, |B'|) 0/1 CSR matrix: 1 where last branch s lies in the subtree of t's left child."""
        return self._below(self.last_branches, self.upper_branches, left=True)

    @cached_property
    def reach_right(self) -> SparseMatrix:
        """(|B''|, |B'|) 0/1 CSR matrix: 1 where last branch s lies in the subtree of t's right child."""
        return self._below(self.last_branches, self.upper_branches, left=False)

    @cached_property
    def leaf_reach_left(self) -> SparseMatrix:
        """(|L|, |B|) 0/1 CSR matrix: 1 where leaf l lies below t's left child."""
        return self._below(self.leaves, self.branches, left=True)

    @cached_property
    def leaf_reach_right(self) -> SparseMatrix:
        """(|L|, |B|) 0/1 CSR matrix: 1 where leaf l lies below t's right child."""
        return self._below(self.leaves, self.branches, left=False)

    def _below(self, rows: Nodes, columns: Nodes, *, left: bool) -> SparseMatrix:
        """Climb from all ``rows`` (one level) to the root at once and mark the steps to the left (right)."""
        below = np.zeros((len(rows), len(columns)))
        node = np.asarray(rows)
        while node[0] > 0:
            parent = self.parents[node]
            here = (node % 2 == 1) == left  # left children have odd numbers
            below[here, parent[here]] = 1.0
            node = parent
        return sparse.csr_array(below)

    def _node(self, t: int) -> int:
        if not 0 <= t < self.n_nodes:
            raise ValueError(
                f"{t} is not a node of a tree of depth {self.depth}, whose nodes are 0 to {self.n_nodes - 1}"
            )
        return int(t)

    def _branch(self, t: int) -> int:
        if self._node(t) >= self.n_branches:
            raise ValueError(
                f"node {t} is a leaf of a tree of depth {self.depth} and has no child; "
                f"the branch nodes are 0 to {self.n_branches - 1}"
            )
        return int(t)


def subtree(t: int, n_nodes: int) -> list[int]:
    """Return a node and those below it, level by level, among the first nodes of a tree; empty if it is none."""
    found = [t] if t < n_nodes else []
    for node in found:
        found += [child for child in (2 * node + 1, 2 * node + 2) if child < n_nodes]
    return found
