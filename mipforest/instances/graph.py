"""The bipartite graph of a model's variables and constraints, as learners of mixed-integer programming read it.

The layout is that of the observation ``MilpBipartite`` of ecole (Prouvost and others, *Ecole: a gym-like library for
machine learning in combinatorial optimization solvers*, 2020), after Gasse, Chételat, Ferroni, Charlin and Lodi, *Exact
combinatorial optimization with graph convolutional neural networks*, NeurIPS 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipforest.atomic import atomic_write
from mipforest.model import MatrixForm

#: Columns of ``variable_features``.
VARIABLE_FEATURES = (
    "objective",
    "is_type_binary",
    "is_type_integer",
    "is_type_implicit_integer",
    "is_type_continuous",
    "has_lower_bound",
    "has_upper_bound",
    "lower_bound",
    "upper_bound",
)

#: Columns of ``constraint_features``.
CONSTRAINT_FEATURES = ("bias",)


def graph_of(form: MatrixForm) -> dict[str, npt.NDArray[Any]]:
    """Return the graph of a model.

    A constraint is ``a.x <= bias``: a row with two sides is two of them, the lower side first, with the sign of its
    coefficients changed. Rows behind indicators come last.

    Parameters
    ----------
    form
        The model, with n columns.

    Returns
    -------
    dict
        - ``variable_features`` (n, 9): :data:`VARIABLE_FEATURES`; a bound that is not there is 0.
        - ``constraint_features`` (m, 1): :data:`CONSTRAINT_FEATURES`.
        - ``edge_indices`` (2, e) constraint and variable of each coefficient, ``edge_values`` (e,) the coefficients.
        - ``constraint_row`` (m,) row of the model, indicator rows numbered after the others; ``constraint_sign`` (m,)
          -1 where it is its lower side, 1 where it is its upper one.
        - ``constraint_indicator`` (m,) variable that switches the constraint on, -1 where it always holds;
          ``constraint_indicator_value`` (m,) the value that does.
        - ``quadratic_indices`` (2, q), ``quadratic_values`` (q,): entries of the symmetric matrix Q of the objective
          ``c.x + x'Qx / 2``.
        - ``objective_offset`` (), ``maximize`` (): constant and sense of the objective.
    """
    own = form.indicators
    always = np.full(form.n_rows, -1, dtype=np.int64)
    A = sparse.vstack([form.A, own.A], format="csr") if own.n_rows else form.A
    lower, upper = np.concatenate([form.row_lower, own.lower]), np.concatenate([form.row_upper, own.upper])
    switch = np.concatenate([always, own.binary])
    value = np.concatenate([np.zeros(form.n_rows, dtype=np.int64), own.value])
    # The lower side of a row stands before its upper one.
    row, is_upper = np.nonzero(np.isfinite(np.column_stack([lower, upper])))
    sign = np.where(is_upper == 1, 1, -1)
    edges = A[row].tocoo()
    quadratic = sparse.coo_array((form.n_columns, form.n_columns)) if form.Q is None else form.Q.tocoo()
    return {
        "variable_features": _variable_features(form),
        "constraint_features": np.where(is_upper == 1, upper[row], -lower[row])[:, None],
        "edge_indices": np.stack([edges.row, edges.col]).astype(np.int64),
        "edge_values": edges.data * sign[edges.row],
        "constraint_row": row.astype(np.int64),
        "constraint_sign": sign.astype(np.int64),
        "constraint_indicator": switch[row].astype(np.int64),
        "constraint_indicator_value": value[row].astype(np.int64),
        "quadratic_indices": np.stack([quadratic.row, quadratic.col]).astype(np.int64),
        "quadratic_values": quadratic.data.astype(float),
        "objective_offset": np.array(form.offset),
        "maximize": np.array(form.maximize),
    }


def _variable_features(form: MatrixForm) -> npt.NDArray[np.float64]:
    has_lower, has_upper = np.isfinite(form.col_lower), np.isfinite(form.col_upper)
    binary = form.integer & (form.col_lower >= 0) & (form.col_upper <= 1)
    return np.column_stack(
        [
            form.c,
            binary,
            form.integer & ~binary,
            np.zeros(form.n_columns),
            ~form.integer,
            has_lower,
            has_upper,
            np.where(has_lower, form.col_lower, 0.0),
            np.where(has_upper, form.col_upper, 0.0),
        ]
    ).astype(float)


def write_graph(graph: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """Write a graph as ``*.npz``, which ``numpy.load`` reads; the file appears complete or not at all."""
    with atomic_write(path) as file:
        np.savez_compressed(file, **graph)  # type: ignore[arg-type] # arrays by name
