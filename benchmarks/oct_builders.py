"""The OCT model (variant ``paper``) built in two ways: with mipforest, and by hand.

Each way starts from numpy arrays, ``X`` (n, p) within (0, 1] and ``y`` (n,) of class numbers, gives the flat
arrays of the model (``arrays_*``) and hands them to HiGHS (``load_*``). Packages are imported by the function
that needs them: no way is charged with the memory of another's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mipforest.model.matrix import MatrixForm

ALPHA, N_MIN = 0.01, 10


# ---------------------------------------------------------------------- mipforest


def arrays_with_mipforest(X: np.ndarray, y: np.ndarray, depth: int) -> MatrixForm:
    from formulations.oct import Oct
    from mipforest.data import Dataset
    from mipforest.model import Model
    from mipforest.trees import Topology

    data = Dataset.from_arrays(X, y, scaling="none")
    oct_ = Oct(variant="paper", alpha=ALPHA, N_min=N_MIN)
    model = Model("oct")
    oct_.declare(model, oct_.bind(data, Topology(depth)))
    return model.matrix()


def load_with_mipforest(form: MatrixForm) -> Any:
    from mipforest.solvers.highs import HighsSession
    from mipforest.solvers.worker import Worker

    session = HighsSession(Worker(maximize=False))
    session.load(form)
    return session.highs


# ---------------------------------------------------------------------- by hand


@dataclass
class Arrays:
    """A linear model as HiGHS takes it: CSR arrays, sides, bounds, costs, integrality (0 and 1)."""

    start: np.ndarray
    index: np.ndarray
    value: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray
    col_lower: np.ndarray
    col_upper: np.ndarray
    cost: np.ndarray
    integrality: np.ndarray


def arrays_by_hand(X: np.ndarray, y: np.ndarray, depth: int) -> Arrays:
    """Fill CSR arrays with numpy; columns a, b, d, z, l, c, L."""
    n, p = X.shape
    K = int(y.max()) + 1
    n_branches, n_leaves = 2**depth - 1, 2**depth
    first_b = n_branches * p
    first_d = first_b + n_branches
    first_z = first_d + n_branches
    first_l = first_z + n * n_leaves
    first_c = first_l + n_leaves
    first_L = first_c + K * n_leaves
    n_columns = first_L + n_leaves

    a = np.arange(first_b).reshape(n_branches, p)
    b = np.arange(first_b, first_d)
    d = np.arange(first_d, first_z)
    z = np.arange(first_z, first_l).reshape(n, n_leaves)
    used = np.arange(first_l, first_c)
    c = np.arange(first_c, first_L).reshape(K, n_leaves)
    L = np.arange(first_L, n_columns)

    left, right = sides_of_leaves(depth)
    gap = smallest_gaps(X)
    M = 1 + gap.max()
    others = [np.flatnonzero(y != k) for k in range(K)]

    # Families of rows: how many, entries of each row, sides. Those of a loss depend on the class.
    loss_lengths = np.repeat([len(other) + 2 for other in others], n_leaves)
    families = [
        (n_branches, p + 1, 0.0, 0.0),  # one feature
        (n_branches, 2, -np.inf, 0.0),  # threshold
        (n_branches - 1, 2, -np.inf, 0.0),  # hierarchy
        (n * n_leaves, 2, -np.inf, 0.0),  # in use
        (n_leaves, n + 1, 0.0, np.inf),  # leaf size
        (len(left), 2, -np.inf, 0.0),  # left needs split
        (n, n_leaves, 1.0, 1.0),  # assign
        (n * len(left), p + 2, -np.inf, M),  # left
        (n * len(right), p + 2, -1.0, np.inf),  # right
        (n_leaves, K + 1, 0.0, 0.0),  # one class
        (K * n_leaves, loss_lengths, float(-n), np.inf),  # loss
        (K * n_leaves, loss_lengths, -np.inf, 0.0),  # loss above
    ]
    counts = [rows for rows, *_ in families]
    lengths = np.concatenate([np.broadcast_to(length, rows) for rows, length, *_ in families])
    start = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=start[1:])
    row_lower = np.repeat([low for *_, low, _ in families], counts)
    row_upper = np.repeat([high for *_, high in families], counts)
    index, value = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])

    ends = start[np.cumsum(counts)[:-1]]
    entries = list(zip(np.split(index, ends), np.split(value, ends), strict=True))
    fill_pairs(*entries[1], b, 1.0, d, -1.0)
    children = np.arange(1, n_branches)
    fill_pairs(*entries[2], d[(children - 1) // 2], -1.0, d[children], 1.0)
    fill_pairs(*entries[3], z.ravel(), 1.0, np.tile(used, n), -1.0)
    fill_pairs(*entries[5], d[left[:, 1]], -1.0, used[left[:, 0]], 1.0)
    fill_sums(*entries[0], a, -1.0, d, 1.0)
    fill_sums(*entries[4], z.T, 1.0, used, -float(N_MIN))
    entries[6][0][:] = z.ravel()
    entries[6][1][:] = 1.0
    fill_splits(*entries[7], X + gap, left, a, b, z, M)
    fill_splits(*entries[8], X, right, a, b, z, -1.0)
    fill_one_class(*entries[9], used, c)
    for family in (10, 11):
        fill_losses(*entries[family], others, z, c, L)

    cost = np.zeros(n_columns)
    cost[first_d:first_z] = ALPHA
    cost[first_L:] = 1.0 / min(len(other) for other in others)
    col_upper = np.ones(n_columns)
    col_upper[first_b:first_d] = np.inf
    col_upper[first_L:] = np.inf
    integrality = np.ones(n_columns, dtype=np.int32)
    integrality[first_b:first_d] = 0
    integrality[first_L:] = 0
    return Arrays(
        start, index, value, row_lower, row_upper, np.zeros(n_columns), col_upper, cost, integrality
    )


def fill_pairs(
    index: np.ndarray, value: np.ndarray, first: np.ndarray, f: float, second: np.ndarray, s: float
) -> None:
    """``f * first + s * second``, a row per pair of columns."""
    index[0::2], index[1::2] = first, second
    value[0::2], value[1::2] = f, s


def fill_sums(
    index: np.ndarray, value: np.ndarray, summands: np.ndarray, f: float, last: np.ndarray, s: float
) -> None:
    """``f * (sum of a row of summands) + s * last``."""
    columns, coefficients = index.reshape(len(last), -1), value.reshape(len(last), -1)
    columns[:, :-1], columns[:, -1] = summands, last
    coefficients[:, :-1], coefficients[:, -1] = f, s


def fill_splits(
    index: np.ndarray,
    value: np.ndarray,
    X: np.ndarray,
    pairs: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    z: np.ndarray,
    M: float,
) -> None:
    """``a_m.x_i - b_m + M z_it``, a row per sample and pair (t, m) of a leaf and its ancestor."""
    n, p = X.shape
    leaf, ancestor = pairs.T
    columns, coefficients = index.reshape(n, len(pairs), p + 2), value.reshape(n, len(pairs), p + 2)
    columns[:, :, :p] = a[ancestor]
    columns[:, :, p] = b[ancestor]
    columns[:, :, p + 1] = z[:, leaf]
    coefficients[:, :, :p] = X[:, None, :]
    coefficients[:, :, p] = -1.0
    coefficients[:, :, p + 1] = M


def fill_one_class(index: np.ndarray, value: np.ndarray, used: np.ndarray, c: np.ndarray) -> None:
    """``l_t - sum_k c_kt``."""
    columns, coefficients = index.reshape(len(used), -1), value.reshape(len(used), -1)
    columns[:, 0], columns[:, 1:] = used, c.T
    coefficients[:, 0], coefficients[:, 1:] = 1.0, -1.0


def fill_losses(
    index: np.ndarray,
    value: np.ndarray,
    others: list[np.ndarray],
    z: np.ndarray,
    c: np.ndarray,
    L: np.ndarray,
) -> None:
    """``L_t - (N_t - N_kt) - n c_kt``, a row per class and leaf."""
    n, n_leaves = z.shape
    done = 0
    for k, other in enumerate(others):
        size = n_leaves * (len(other) + 2)
        columns = index[done : done + size].reshape(n_leaves, -1)
        coefficients = value[done : done + size].reshape(n_leaves, -1)
        columns[:, :-2], columns[:, -2], columns[:, -1] = z[other].T, c[k], L
        coefficients[:, :-2], coefficients[:, -2], coefficients[:, -1] = -1.0, -n, 1.0
        done += size


def sides_of_leaves(depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (leaf, ancestor) with the leaf on the ancestor's left, and on its right, ancestors ascending."""
    left, right = [], []
    for leaf in range(2**depth):
        node = 0
        for level in reversed(range(depth)):
            goes_right = leaf >> level & 1
            (right if goes_right else left).append((leaf, node))
            node = 2 * node + 1 + goes_right
    return np.array(left), np.array(right)


def smallest_gaps(X: np.ndarray) -> np.ndarray:
    """(p,) smallest gap between distinct values of each feature; 1 for a constant one."""
    gaps = np.diff(np.sort(X, axis=0), axis=0)
    least = np.where(gaps > 0, gaps, np.inf).min(axis=0)
    return np.where(np.isfinite(least), least, 1.0)


def load_by_hand(model: Arrays) -> Any:
    """Hand the arrays to HiGHS' positional ``passModel``."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    status = highs.passModel(
        len(model.cost),
        len(model.row_lower),
        len(model.value),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        model.cost,
        model.col_lower,
        model.col_upper,
        model.row_lower,
        model.row_upper,
        model.start,
        model.index,
        model.value,
        model.integrality,
    )
    assert status == highspy.HighsStatus.kOk
    return highs
