"""Hypothesis strategies for small random models that use every feature of a MatrixForm."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from mipforest.model.matrix import Block, IndicatorRows, MatrixForm

INFINITY = float("inf")

#: Plain numbers, numbers of 17 digits, huge and tiny ones; never NaN or infinite.
finite = st.one_of(
    st.integers(-5, 5).map(float),
    st.sampled_from(
        [0.1, -0.3, 1e-3, 1 / 3, 50.0, 1e20, -1e30, 5e-324, 1.7976931348623157e308, 1e15, 1e16, -0.0]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1, 1),
)


@st.composite
def intervals(draw: st.DrawFn, numbers: st.SearchStrategy[float] = finite) -> tuple[float, float]:
    """Sides of a row or bounds of a column: two-sided, one-sided, equal or free."""
    a, b = sorted((draw(numbers), draw(numbers)))
    return draw(st.sampled_from([(a, b), (a, a), (-INFINITY, b), (a, INFINITY), (-INFINITY, INFINITY)]))


@st.composite
def matrices(
    draw: st.DrawFn, rows: int, columns: int, numbers: st.SearchStrategy[float] = finite
) -> sparse.csr_array:
    """Canonical CSR matrices with empty rows and columns."""
    entries = st.one_of(st.just(0.0), numbers)
    dense = draw(st.lists(entries, min_size=rows * columns, max_size=rows * columns))
    return sparse.csr_array(np.array(dense, dtype=float).reshape(rows, columns))


@st.composite
def forms(draw: st.DrawFn, numbers: st.SearchStrategy[float] = finite) -> MatrixForm:
    """Any model that an MPS file can tell, feasible or not, with safe names."""
    n, m = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    integer = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    boxes = [
        draw(st.one_of(intervals(numbers), st.just((0.0, 1.0)), st.just((0.0, INFINITY)))) for _ in range(n)
    ]
    bounds = np.array(boxes, dtype=float).reshape(n, 2)
    sides = np.array([draw(intervals(numbers)) for _ in range(m)], dtype=float).reshape(m, 2)
    half = draw(matrices(n, n, numbers)).toarray()
    Q = sparse.csr_array(np.triu(half) + np.triu(half, 1).T)
    return MatrixForm(
        c=np.array(draw(st.lists(numbers, min_size=n, max_size=n)), dtype=float),
        A=draw(matrices(m, n, numbers)),
        row_lower=sides[:, 0],
        row_upper=sides[:, 1],
        col_lower=bounds[:, 0],
        col_upper=bounds[:, 1],
        integer=integer,
        indicators=draw(indicator_rows(integer, bounds, numbers)),
        Q=draw(st.sampled_from([None, Q])),
        offset=draw(numbers),
        columns=draw(blocks("x", n)),
        rows=draw(blocks("row", m)),
        maximize=draw(st.booleans()),
        name=draw(st.sampled_from(["", "margot", "oct-iris-d2"])),
    )


@st.composite
def blocks(draw: st.DrawFn, name: str, size: int) -> tuple[Block, ...]:
    """One block of numbered or labelled entries, or a scalar and the rest."""
    labels = tuple(f"n{k}" for k in range(size))
    if size and draw(st.booleans()):
        return (Block(f"{name}0", 0, ()), Block(name, 1, (size - 1,)))
    return (Block(name, 0, (size,), draw(st.sampled_from([None, (labels,)]))),)


@st.composite
def indicator_rows(
    draw: st.DrawFn, integer: np.ndarray, bounds: np.ndarray, numbers: st.SearchStrategy[float]
) -> IndicatorRows:
    """Up to three indicator rows on the binary columns, if there are any; none is free."""
    n = len(integer)
    binary = np.flatnonzero(integer & (bounds[:, 0] >= 0) & (bounds[:, 1] <= 1))
    count = draw(st.integers(0, 3)) if len(binary) else 0
    if not count:
        return IndicatorRows.none(n)
    one_sided = intervals(numbers).filter(lambda side: side != (-INFINITY, INFINITY))
    sides = np.array([draw(one_sided) for _ in range(count)])
    return IndicatorRows(
        binary=np.array([draw(st.sampled_from(binary.tolist())) for _ in range(count)]),
        value=np.array([draw(st.integers(0, 1)) for _ in range(count)]),
        A=draw(matrices(count, n, numbers)),
        lower=sides[:, 0],
        upper=sides[:, 1],
        rows=(Block("if", 0, (count,)),),
    )


@st.composite
def small_integer_forms(draw: st.DrawFn, *, quadratic: bool, indicators: bool) -> MatrixForm:
    """Feasible integer models over a few columns within [-2, 2]: few enough points to try them all.

    Every coefficient is a small multiple of a quarter, so that sums are exact. A point drawn first meets all
    rows.
    """
    n, m = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    quarters = st.integers(-12, 12).map(lambda k: k / 4)
    boxes = draw(
        st.lists(st.sampled_from([(0, 1), (-2, 2), (0, 2), (-2, -1), (1, 1)]), min_size=n, max_size=n)
    )
    bounds = np.array(boxes, dtype=float)
    point = np.array([draw(st.integers(low, high)) for low, high in boxes], dtype=float)
    A = draw(matrices(m, n, quarters))
    lower, upper = _around(draw, A @ point)
    switched = IndicatorRows.none(n)
    if indicators:
        switched = draw(indicator_rows(np.ones(n, dtype=bool), bounds, quarters))
        low, high = _around(draw, switched.A @ point)
        free = np.isinf(low) & np.isinf(high)
        switched = IndicatorRows(
            switched.binary, switched.value, switched.A, np.where(free, -100.0, low), high, switched.rows
        )
    factor = draw(matrices(n, n, st.integers(-2, 2).map(float))).toarray()
    maximize = draw(st.booleans())
    convex = sparse.csr_array(factor @ factor.T) * (-1.0 if maximize else 1.0)
    convex.eliminate_zeros()
    return MatrixForm(
        c=np.array(draw(st.lists(quarters, min_size=n, max_size=n))),
        A=A,
        row_lower=lower,
        row_upper=upper,
        col_lower=bounds[:, 0],
        col_upper=bounds[:, 1],
        integer=np.ones(n, dtype=bool),
        indicators=switched,
        Q=convex if quadratic else None,
        offset=draw(quarters),
        columns=(Block("x", 0, (n,)),),
        rows=(Block("row", 0, (m,)),),
        maximize=maximize,
    )


def _around(draw: st.DrawFn, activity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sides that the activities meet: some equal, some with slack, some infinite."""
    slack = st.sampled_from([0.0, 0.25, 1.5, INFINITY])
    below, above = (np.array([draw(slack) for _ in activity]) for _ in range(2))
    return activity - below, activity + above
