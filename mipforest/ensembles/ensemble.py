"""A fitted tree ensemble for two classes, whichever library grew it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles.member import MemberTree


class Voters(Protocol):
    """What an ensemble answers for samples: (n, p) features in original units."""

    def leaves(self, X: FloatArray) -> IntArray:
        """(n, T) number of the leaf that each sample reaches in each member."""
        ...

    def predict(self, X: FloatArray) -> IntArray:
        """(n,) predicted class, 0 or 1."""
        ...

    def probability(self, X: FloatArray) -> FloatArray:
        """(n,) probability of the predicted class, by the ensemble's own reckoning."""
        ...


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A tree ensemble, given by its trees and by what it answers.

    Made by :func:`~mipforest.ensembles.ensemble_for`.

    Attributes
    ----------
    kind
        ``"random-forest"``, ``"extra-trees"``, ``"gradient-boosting"`` or ``"xgboost"``.
    description
        One line on what it is and where it comes from.
    members
        Its T trees.
    n_features
        Number of features, p.
    voters
        The fitted estimator behind it: leaves, classes and probabilities are the library's own.
    """

    kind: str
    description: str
    members: tuple[MemberTree, ...]
    n_features: int
    voters: Voters = field(repr=False)

    @cached_property
    def depth(self) -> int:
        """Depth of the deepest member."""
        return max((member.depth for member in self.members), default=0)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the members' weights."""
        return sum(member.weight for member in self.members)

    def leaves(self, X: FloatArray) -> IntArray:
        """(n, T) node number of the leaf that each sample reaches in each member; X in original units."""
        return self.voters.leaves(X)

    def predict(self, X: FloatArray) -> IntArray:
        """(n,) class that the ensemble predicts, 0 or 1 in the data set's order; X in original units."""
        return self.voters.predict(X)

    def probability(self, X: FloatArray) -> FloatArray:
        """(n,) ensemble's probability of the class it predicts; X in original units."""
        return self.voters.probability(X)
