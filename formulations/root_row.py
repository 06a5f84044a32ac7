"""The valid row that bounds the objective by the cut at the root: shared by the `tight` variants."""

from __future__ import annotations

import numpy as np

from formulations.cuts import Cuts
from formulations.depth_two import RootValues
from mipforest.model import LinearExpr, VarArray

#: Resolution of the values in the row, in the units of the objective they bound.
RESOLUTION = 2.0**-24


def value_of_root(u: VarArray, d: VarArray, cuts: Cuts, roots: RootValues) -> LinearExpr:
    """Least objective of a tree with the chosen root: the sum over cuts of the value times the cut's binary.

    Parameters
    ----------
    u, d
        (q,) cut variables of the root (:mod:`formulations.cuts`), and whether it splits.
    cuts, roots
        The cuts, and the least objective for each.
    """
    # A cut that leaves too few samples on a side is infeasible; any value bounds it.
    values = np.where(np.isfinite(roots.by_cut), roots.by_cut, roots.none)
    # Rounded down to multiples of a power of two, so that their differences are exact: no coefficient of 1e-17.
    values = np.floor(values / RESOLUTION) * RESOLUTION
    rises = np.diff(values, prepend=0.0)
    rises[cuts.lowest] = values[cuts.lowest]
    value: LinearExpr = rises @ u + roots.none * (1 - d)
    return value
