"""The part of a tree that samples can reach: what a reader needs to see."""

from __future__ import annotations

from dataclasses import dataclass

from mipforest.trees.tree import Tree


@dataclass(frozen=True)
class ReachableNode:
    """A split or a leaf that a sample may reach.

    Attributes
    ----------
    number
        Number of the node in the tree.
    passed
        Numbers of the trivial nodes just above it, top-down: they send every sample on towards it.
    left, right
        Its children; ``None`` at a leaf.
    """

    number: int
    passed: tuple[int, ...] = ()
    left: ReachableNode | None = None
    right: ReachableNode | None = None

    @property
    def children(self) -> tuple[ReachableNode, ...]:
        """Left and right child; empty at a leaf."""
        return tuple(child for child in (self.left, self.right) if child is not None)

    @property
    def is_last_split(self) -> bool:
        """Whether it is a split with no split below."""
        return bool(self.children) and not any(child.children for child in self.children)


def reachable_tree(tree: Tree, node: int = 0) -> ReachableNode:
    """Return the subtree of ``node`` without its trivial nodes and the dead branches below them."""
    topology = tree.topology
    passed: list[int] = []
    while node < topology.n_branches and tree.is_trivial(node):
        passed.append(node)
        node = topology.right(node) if tree.b[node] >= 0 else topology.left(node)
    if node >= topology.n_branches:
        return ReachableNode(node, tuple(passed))
    left, right = (reachable_tree(tree, child) for child in (topology.left(node), topology.right(node)))
    return ReachableNode(node, tuple(passed), left, right)
