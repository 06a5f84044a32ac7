"""The prediction of a leaf in words: a class, a value, or ``y = 3.2 + 0.41 rooms - 1.2 age``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.trees.split_text import format_number, signed_term
from mipforest.trees.tree import Tree


@dataclass(frozen=True)
class LinearText:
    """A linear prediction, in original units.

    Attributes
    ----------
    constant
        ``"y = 3.2"``.
    terms
        Signed terms, the most influential first: ``("+ 0.41 rooms", "- 1.2 age")``.
    n_hidden
        Number of further terms that are left out.
    """

    constant: str
    terms: tuple[str, ...]
    n_hidden: int

    def __str__(self) -> str:
        more = [f"+ {self.n_hidden} more"] if self.n_hidden else []
        return " ".join([self.constant, *self.terms, *more])


def describe_linear_leaf(tree: Tree, leaf: int, *, digits: int = 4, max_terms: int = 6) -> LinearText:
    """Describe the function that a leaf of a regression tree predicts, in original units.

    Terms are ordered by the size of their coefficient over scaled features, so the feature that moves the
    prediction most over its range comes first; zero coefficients are left out.

    Parameters
    ----------
    tree
        A regression tree.
    leaf
        Number of the leaf.
    digits
        Significant digits; integer parts are written out in full.
    max_terms
        Most terms to show; at least 1.
    """
    position = leaf - tree.topology.n_branches
    coefficients, constants = (part[position] for part in tree.leaves_in_original_units())
    influence = np.zeros(tree.n_features) if tree.leaf_w is None else np.abs(tree.leaf_w[position])
    order = np.argsort(-influence, kind="stable")
    order = order[influence[order] != 0]
    terms = tuple(signed_term(coefficients[j], tree.feature_names[j], digits) for j in order[:max_terms])
    constant = f"y = {format_number(float(constants), digits)}"
    return LinearText(constant, terms, len(order) - len(terms))


def leaf_text(tree: Tree, leaf: int, max_terms: int = 6) -> str:
    """Prediction of a leaf: the name of its class, its value or its linear function, with four digits."""
    if tree.has_linear_leaves:
        return str(describe_linear_leaf(tree, leaf, max_terms=max_terms))
    value = tree.leaf_value[leaf - tree.topology.n_branches]
    return tree.classes[value] if tree.is_classifier else format_number(float(value))
