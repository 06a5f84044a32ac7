"""Local search for trees of any depth (Dunn 2018): node after node is optimised, from many starts."""

from __future__ import annotations

from dataclasses import dataclass

from mipforest.arrays import FloatArray, IntArray

#: Starts, and kicks of each, unless told otherwise. In as much time they beat 300 starts without kicks on 8 of the 9
#: deeper trees of ``docs/benchmarks/local_search.md``; on the other one they are better, and take a third longer.
STARTS, KICKS = 10, 100

#: Random hyperplanes of each visit: few, as every kick visits nodes again.
HYPERPLANES = 1


@dataclass(frozen=True, eq=False)
class LocalProblem:
    """What trees are charged.

    Attributes
    ----------
    X
        (n, p) features, scaled as the trees are wanted.
    y
        (n,) class numbers, or values.
    loss
        Of a leaf with its best prediction: ``"classes"``, ``"squared"`` or ``"absolute"``.
    split_cost
        Cost of a split (of a feature in a split, for hyperplanes), in units of the loss.
    N_min
        Least number of samples in a leaf.
    unit
        What all this is divided by in the objective.
    weight, costs
        As in :class:`~mipforest.heuristics.thresholds.UnivariateProblem`.
    oblique
        Whether splits are hyperplanes; features are in [0, 1] then.
    margin
        Least distance between both sides of a split, for weights of sum 1.
    coefficient_cost
        Of leaves that predict a linear function (squared loss): the cost of its coefficients, by the sum of their
        sizes, in units of the loss; ``None`` for constant leaves.
    """

    X: FloatArray
    y: FloatArray | IntArray
    loss: str
    split_cost: float = 0.0
    N_min: int = 1
    unit: float = 1.0
    weight: FloatArray | None = None
    costs: FloatArray | None = None
    oblique: bool = False
    margin: float = 0.0
    coefficient_cost: float | None = None


@dataclass(frozen=True, eq=False)
class LocalTree:
    """A tree without its predictions: a sample goes right at node t where ``w_t . x + b_t >= 0``.

    Attributes
    ----------
    w, b
        (|B|, p) and (|B|,), heap order; 0 where a node does not split, which sends all to the right.
    """

    w: FloatArray
    b: FloatArray
