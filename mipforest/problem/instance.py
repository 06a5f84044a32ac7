"""What a formulation knows of one data set: the object that all its operations receive."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mipforest.data import Dataset
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False, kw_only=True)
class Instance:
    """A data set and a topology, with everything a formulation computes from them, once.

    A formulation subclasses it for what its rows need beyond data and topology: hyperparameters spread over the
    nodes, thresholds of the features, proven big-Ms.

    Attributes
    ----------
    data
        Training samples, scaled.
    topology
        Index sets of the tree.
    known
        A feasible tree (for scaled features) found on the way, or ``None``. It is the default start, and takes the
        place of a start that cannot be made feasible.
    least_objective
        Proven lower bound on the objective of every tree, found on the way.
    notes
        What the user should know before all else, in sentences: warnings of every result.
    budget
        The time that all operations on it share.
    """

    data: Dataset
    topology: Topology
    known: Tree | None = None
    least_objective: float = -math.inf
    notes: tuple[str, ...] = ()
    budget: TimeBudget = field(default_factory=TimeBudget)
