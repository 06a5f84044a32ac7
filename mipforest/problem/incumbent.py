"""The incumbent of a search: a tree with its value, which gets in through one gate.

A search hands over trees; what comes back is a number that may prune. So a value counts only where a tree of the model
has it: :meth:`Incumbent.offer` evaluates the tree by the definition, and asks
:meth:`~mipforest.problem.problem_data.ProblemData.outside` whether the definition holds, with its gap, its least leaf
sizes and its limits, whether or not rows were declared.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from mipforest.problem.problem_data import ProblemData


class Incumbent:
    """The best tree of a search so far.

    Parameters
    ----------
    problem
        What is solved.
    known
        Trees to begin with, for scaled features; ``None`` for none.

    Attributes
    ----------
    tree
        The best tree, ``None`` while there is none.
    value
        Its objective by the definition, infinite while there is none.
    """

    def __init__(self, problem: ProblemData, *known: Any) -> None:
        self._problem, self._lock = problem, Lock()
        self.tree: Any = None
        self.value = np.inf
        for tree in known:
            if tree is not None:
                self.offer(tree)

    def offer(self, tree: Any) -> float:
        """Keep a tree (for scaled features) if it is the best one; return a value that may prune.

        Returns
        -------
        float
            The objective of the tree by the definition; infinite where it would be the best one and is none of the
            model. A tree that is no better than the incumbent is not looked at further.
        """
        formulation, instance = self._problem.formulation, self._problem.instance
        value = float(formulation.evaluate(tree, instance))
        if not value < self.value:
            return value
        if self._problem.outside(tree):
            return float("inf")
        with self._lock:  # threads of a search share it
            if value < self.value:
                self.tree, self.value = tree, value
        return value
