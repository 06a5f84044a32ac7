"""What a person needs to see of a tree: the nodes that a sample can reach."""

from __future__ import annotations

from dataclasses import dataclass

from mipforest.trees.tree import Tree


@dataclass(frozen=True)
class LiveNode:
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
    left: LiveNode | None = None
    right: LiveNode | None = None

    @property
    def children(self) -> tuple[LiveNode, ...]:
        """Left and right child, or none."""
        return tuple(child for child in (self.left, self.right) if child is not None)

    @property
    def is_last_split(self) -> bool:
        """Whether it is a split with no split below."""
        return bool(self.children) and not any(child.children for child in self.children)


def live_view(tree: Tree, node: int = 0) -> LiveNode:
    """Give the subtree of ``node`` without its trivial nodes and the dead branches below them."""
    passed: list[int] = []
    while node < tree.topology.n_branches and tree.is_trivial(node):
        passed.append(node)
        node = 2 * node + (2 if tree.b[node] >= 0 else 1)
    if node >= tree.topology.n_branches:
        return LiveNode(node, tuple(passed))
    return LiveNode(node, tuple(passed), live_view(tree, 2 * node + 1), live_view(tree, 2 * node + 2))
