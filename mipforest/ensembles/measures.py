"""What the MIRET paper reads off an ensemble: where features are used, and which samples go together."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.ensembles.ensemble import Ensemble
from mipforest.errors import EnsembleError
from mipforest.trees import Topology

#: Most bytes of a proximity matrix: enough for 16 000 samples, and still less than small machines have.
LARGEST_PROXIMITY = 2 * 1024**3

#: Rows of the proximity matrix that are filled together, so that what is compared stays in the cache.
BLOCK = 256


def node_uses(ensemble: Ensemble, depth: int) -> FloatArray:
    """Return the (|B|, p) weight of the members that split on each feature, at each branch node of a tree.

    Parameters
    ----------
    ensemble
        T members; those that have a leaf at a node, or above it, count for no feature there.
    depth
        Depth of the tree, 1 to 10; splits below it are left out.
    """
    uses = np.zeros((Topology(depth).n_branches, ensemble.n_features))
    for member in ensemble.members:
        position = member.heap_positions(depth - 1)
        splits = np.flatnonzero((position >= 0) & (member.left >= 0))
        uses[position[splits], member.feature[splits]] += member.weight
    return uses


def level_frequencies(ensemble: Ensemble, depth: int) -> FloatArray:
    """Return the (depth, p) frequency of each feature at each level, 0 to 1: MIRET's f_dj.

    f_dj is the weight of all splits at level d on feature j, over ``2^d`` times the weight of all members:
    a row sums to 1 if every member splits at every node of the level, and to less otherwise (Di Teodoro,
    Monaci and Palagi, equation 10; all weights are 1 for forests).

    Parameters
    ----------
    ensemble
        Members of any depth; splits below ``depth`` are left out.
    depth
        Number of levels, 1 to 10.
    """
    levels = Topology(depth).levels
    uses = np.zeros((depth, ensemble.n_features))
    np.add.at(uses, levels, node_uses(ensemble, depth))
    nodes = 2.0 ** np.arange(depth)
    return uses / (nodes * ensemble.total_weight)[:, None]


def proximity(ensemble: Ensemble, X: FloatArray) -> FloatArray:
    """Return the (n, n) share of members (by weight) in which two samples reach the same leaf.

    Symmetric, between 0 and 1, with ones on the diagonal. Samples that share all leaves have exactly 1.

    Parameters
    ----------
    ensemble
        T members.
    X
        (n, p) features in original units.

    Raises
    ------
    EnsembleError
        If the matrix would take more than :data:`LARGEST_PROXIMITY` bytes.
    """
    n = len(X)
    if 8 * n * n > LARGEST_PROXIMITY:
        most = int((LARGEST_PROXIMITY / 8) ** 0.5)
        raise EnsembleError(
            f"the proximities of {n} samples take {8 * n * n / 1024**3:.1f} GiB; take at most {most} samples"
        )
    leaves = ensemble.leaves(X).T.copy()
    shared = np.zeros((n, n))
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        for member, leaf in zip(ensemble.members, leaves, strict=True):
            shared[rows] += member.weight * (leaf[rows, None] == leaf)
    # The diagonal was summed in the same order as all else, hence with the same rounding.
    shared /= shared.diagonal().copy()
    return shared
