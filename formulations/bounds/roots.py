r"""Lower bounds on the objective by the root's threshold, from an exact search: what closes the `tight` variants.

The exact search (:mod:`mipforest.searches.exact.branching`) proves for every threshold c at the root a value
:math:`V_c` that no tree with this root is below. So the objective of the model, for binary variables of the root, is at
least :math:`\sum_c V_c [\text{threshold } c] + V_0 [\text{no split}]`: :func:`root_bound`.

At depth one and two, and on data of moderate size, all :math:`V_c` are the exact values: that also helps where
constraints forbid the best roots. Otherwise the search leaves out thresholds that cannot be best, with a bound that is
no less than the best value; where it ends within its limit, the bound of the linear relaxation is the optimum. The
limit is a number of steps: the model depends on the data alone (and on a time limit, where building has one).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.model import LinearExpr, VarArray
from mipforest.time_budget import TimeBudget

if TYPE_CHECKING:
    from mipforest.heuristics.thresholds import Thresholds
    from mipforest.problem.structure import UnivariateProblem

#: Resolution of the values in the row on the root, in the units of the objective they bound.
RESOLUTION = 2.0**-24

#: Most samples to scan for the exact values of all thresholds at depth one or two: some tenths of a second.
MOST_COMPLETE = 3e8

#: Most samples to scan otherwise: about a second; at depth two the search nearly always ends long before its limit.
MOST_SCANNED = {1: 1e10, 2: 1e10}
MOST_SCANNED_DEEPER = 5e8

#: Scans for medians take this many times longer.
MEDIANS = 10


@dataclass(frozen=True, eq=False)
class RootValues:
    """What an exact search proves of trees by their root, and its best tree; in the units of the search.

    Attributes
    ----------
    by_threshold
        (q,) least value of a tree with each threshold at the root, or a lower bound on it; infinite where a side would
        be too small.
    no_split
        Value of the tree without a split.
    least
        Lower bound on the value of all trees.
    chosen
        (|B|,) thresholds of the best tree, -1 where a node does not split; ``None`` if it is the one that was given.
    ended
        Whether the search came to its end: its best tree is the best of all.
    """

    by_threshold: FloatArray
    no_split: float
    least: float
    chosen: IntArray | None
    ended: bool


def root_values(
    problem: UnivariateProblem,
    depth: int,
    no_split: float,
    *,
    best: float = np.inf,
    budget: TimeBudget | None = None,
) -> RootValues:
    """Search for the best tree within a limit, and return what is proven by the root's threshold.

    Parameters
    ----------
    problem
        What trees are charged.
    depth
        Most splits on a path.
    no_split
        Value of the tree without a split.
    best
        Value of a tree that is known.
    budget
        Half of what is left of it ends the search as well: the solver has the rest.
    """
    # Not above: numba takes half a second to import, and most formulations need none of this.
    from mipforest.searches.exact.search import compile_kernels, exact_search

    compile_kernels(budget or TimeBudget())
    part = None if budget is None else budget.part(share=0.5)
    scan = problem.thresholds.X.size * (MEDIANS if problem.loss == "absolute" else 1)
    outcome = exact_search(
        problem,
        depth,
        best=best,
        most_nodes=1 + int(MOST_SCANNED.get(depth, MOST_SCANNED_DEEPER) / scan),
        on_progress=None if part is None else lambda *_: part.expired,
        complete=depth <= 2 and len(problem.thresholds) * scan <= MOST_COMPLETE,
    )
    return RootValues(outcome.by_threshold, no_split, outcome.bound, outcome.chosen, outcome.ended)


def root_bound(u: VarArray, d: VarArray, thresholds: Thresholds, roots: RootValues) -> LinearExpr:
    """Return the least objective of a tree by its root: the sum over thresholds of value times binary.

    Parameters
    ----------
    u, d
        (q,) variables of the root's threshold (:class:`~formulations.routing.univariate.ThresholdRouting`), and
        whether it splits.
    thresholds, roots
        The thresholds, and the least objective for each.
    """
    # A threshold that leaves too few samples on a side is infeasible; any value bounds it.
    values = np.where(np.isfinite(roots.by_threshold), roots.by_threshold, roots.no_split)
    # Rounded down to multiples of a power of two, so that their differences are exact: no coefficient of 1e-17.
    values = np.floor(values / RESOLUTION) * RESOLUTION
    rises = np.diff(values, prepend=0.0)
    rises[thresholds.lowest] = values[thresholds.lowest]
    bound: LinearExpr = rises @ u + roots.no_split * (1 - d)
    return bound
