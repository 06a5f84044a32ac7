r"""Trees of the greatest F1 score: a ratio of sums over leaves, by a sequence of cost matrices.

Of a class, with TP the weight of its samples that are predicted it, FN that of its other samples, FP that of samples of
other classes that are predicted it, and P = TP + FN:

.. math::

    F_1 = \frac{2 TP}{P + TP + FP}.

Dinkelbach's method (*On Nonlinear Fractional Programming*, Management Science 13, 1967) maximises :math:`2 TP -
q (P + TP + FP)` for a number q, which is at least 0 for some tree exactly if one has :math:`F_1 \ge q`. In errors this
is

.. math::

    F(q) = 2 P (1 - q) - \min_T \left[ (2 - q) FN + q FP \right],

the optimum of OCT with the costs 2 - q and q of both errors. The next q is the F1 of its tree. When it stays, it is the
optimum. At any step no tree has more than :math:`q + F(q) / P`, as :math:`P + TP + FP \ge P`; a lower bound on the
costs, of a search that stopped, bounds F(q) from above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.errors import did_you_mean
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import Problem
from mipforest.problem.result import Result
from mipforest.problem.structure import TreeCharges
from mipforest.settings import SolveKeywords
from mipforest.trees import Tree

#: Steps of q at most: each is of another F1, and five are many.
MAX_STEPS = 50

#: What q rises by at least, far above the rounding of F1.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class BestF1:
    """The best tree by F1.

    Attributes
    ----------
    value
        Its F1 on the training samples, by weight.
    bound
        Proven upper bound on the F1 of every tree.
    result
        The last solve whose tree is the best one; its objective is that of the costs of its step.
    steps
        Number of solves.
    """

    value: float
    bound: float
    result: Result
    steps: int

    @property
    def tree(self) -> Tree:
        """The tree, for samples in original units."""
        assert isinstance(self.result.tree, Tree)
        return self.result.tree


def f1_score(data: Dataset, predicted: IntArray | FloatArray, k: int) -> float:
    """Return the F1 of class number k for (n,) predicted class numbers, by the samples' weights."""
    true, chosen = data.y == k, np.asarray(predicted) == k
    both = float(data.weights[true].sum() + data.weights[chosen].sum())
    return 2.0 * float(data.weights[true & chosen].sum()) / both if both else 0.0


def best_f1(
    formulation: Formulation,
    data: Dataset,
    depth: int,
    *,
    positive: str | None = None,
    solver: str = "auto",
    **keywords: Unpack[SolveKeywords],
) -> BestF1:
    """Find the tree of the greatest F1 score of one of two classes.

    Parameters
    ----------
    formulation
        One with a parameter ``costs`` and no cost of splits, as ``oct``; its least leaf size holds.
    data
        Training samples of two classes.
    depth
        Of the tree.
    positive
        Name of the class; the last one when left out.
    solver, keywords
        As for :meth:`mipforest.problem.problem.Problem.solve`, for every step. The relative gap is 0 unless given.

    Raises
    ------
    ParameterError
        If the formulation has no parameter ``costs``, or its splits cost something.
    DataError
        If there are not two classes, or the class is unknown or has no sample.
    """
    parameters = formulation.parameters()
    if "costs" not in parameters or parameters.get("alpha", 0) != 0:
        raise ParameterError(
            f"{formulation.name} with {parameters} has no cost matrix, or its splits cost something beside the rate: "
            "take oct with alpha=0"
        )
    classes = list(data.classes)
    if len(classes) != 2:
        raise DataError(f"{data.name} has {len(classes)} classes, and F1 is of one of two: binarise it")
    if positive is not None and positive not in classes:
        raise DataError(
            f"{data.name} has no class {positive!r}{did_you_mean(positive, classes)}; it has {', '.join(classes)}"
        )
    k = 1 if positive is None else classes.index(positive)
    P = float(data.weights[data.y == k].sum())
    if P == 0:
        raise DataError(f"{data.name} has no sample of class {classes[k]}")
    keywords.setdefault("gap", 0.0)
    q, bound, steps = f1_score(data, np.full(data.n, k), k), 1.0, 0
    best: tuple[float, Result] | None = None
    while steps < MAX_STEPS:
        costs = np.zeros((2, 2))
        costs[k, 1 - k], costs[1 - k, k] = 2.0 - q, q
        problem: Problem = replace(formulation, costs=costs.tolist()).build(data, depth)  # type: ignore[call-arg]
        result = problem.solve(solver, **keywords)
        steps += 1
        assert isinstance(problem.structure, TreeCharges)
        bound = min(bound, q + max(0.0, 2.0 * P * (1.0 - q) - result.bound * problem.structure.unit) / P)
        value = 0.0 if result.tree is None else f1_score(data, result.tree.predict(data.X_raw), k)
        if best is None or value > best[0]:
            best = value, result
        if value <= q + SAME:
            break
        q = value
    assert best is not None
    return BestF1(best[0], max(best[0], bound), best[1], steps)
