"""Local search for trees of any depth (Dunn 2018): node after node is optimised, from many starts."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.problem.structure import TreeCharges

#: Starts, and kicks of each, unless set. In as much time they beat 300 starts without kicks on 8 of the 9
#: deeper trees of ``docs/benchmarks/local_search.md``; on the other one they are better, and take a third longer.
STARTS, KICKS = 10, 100

#: Random hyperplanes of each visit: few, as every kick visits nodes again.
HYPERPLANES = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalProblem(TreeCharges):
    """What trees are charged, and the samples; splits are hyperplanes where there is a margin.

    Attributes
    ----------
    X
        (n, p) features, scaled as the trees are wanted; in [0, 1] for hyperplanes.
    allowed
        Of univariate trees, (|B|, p) features that each node may split on; ``None`` for all.
    group
        With ``allowed``, (p,) number of the group of each feature that comes once on a path, -1 for one that may come
        again.
    """

    X: FloatArray
    allowed: BoolArray | None = None
    group: IntArray | None = None

    @classmethod
    def of(cls, charges: TreeCharges, X: FloatArray) -> LocalProblem:
        """Return the problem of some charges, which may know more than the search needs, and samples."""
        return cls(X=X, **{field.name: getattr(charges, field.name) for field in fields(TreeCharges)})


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
