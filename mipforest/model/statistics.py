"""Size and numerical range of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.model.matrix import MatrixForm


@dataclass(frozen=True)
class Statistics:
    """Counts that describe a model.

    Attributes
    ----------
    columns, continuous, binary, integer
        Columns in all, and by kind (``integer`` counts those that are not binary).
    rows, equalities, inequalities, ranges, free_rows
        Linear rows in all, and by kind.
    indicators
        Indicator rows.
    nonzeros
        Entries of the constraint matrix, indicator rows included.
    quadratic_terms
        Entries in one triangle of the quadratic objective, diagonal included.
    smallest, largest
        Least and greatest absolute coefficient of the constraint matrix (0 when it is empty).
    """

    columns: int
    continuous: int
    binary: int
    integer: int
    rows: int
    equalities: int
    inequalities: int
    ranges: int
    free_rows: int
    indicators: int
    nonzeros: int
    quadratic_terms: int
    smallest: float
    largest: float

    def __str__(self) -> str:
        return (
            f"{self.columns} columns ({self.continuous} continuous, {self.binary} binary, "
            f"{self.integer} integer), "
            f"{self.rows} rows, {self.indicators} indicator rows, {self.nonzeros} nonzeros, "
            f"{self.quadratic_terms} quadratic terms, coefficients {self.smallest:.3g} to {self.largest:.3g}"
        )


def statistics(form: MatrixForm) -> Statistics:
    """Count what a model consists of."""
    binary = form.integer & (form.col_lower >= 0) & (form.col_upper <= 1)
    equal = form.row_lower == form.row_upper
    has_lower, has_upper = np.isfinite(form.row_lower), np.isfinite(form.row_upper)
    magnitudes = np.abs(np.concatenate([form.A.data, form.indicators.A.data]))
    return Statistics(
        columns=form.n_columns,
        continuous=int((~form.integer).sum()),
        binary=int(binary.sum()),
        integer=int((form.integer & ~binary).sum()),
        rows=form.n_rows,
        equalities=int(equal.sum()),
        inequalities=int((has_lower ^ has_upper).sum()),
        ranges=int((has_lower & has_upper & ~equal).sum()),
        free_rows=int((~has_lower & ~has_upper).sum()),
        indicators=form.indicators.n_rows,
        nonzeros=form.A.nnz + form.indicators.A.nnz,
        quadratic_terms=0 if form.Q is None else (form.Q.nnz + int((form.Q.diagonal() != 0).sum())) // 2,
        smallest=float(magnitudes.min()) if len(magnitudes) else 0.0,
        largest=float(magnitudes.max(initial=0.0)),
    )
