"""Rows that a user has written by hand on known blocks, read by their coefficients into constraints as objects.

A row is one of these where it limits a sum of binaries with coefficients of one sign from above:

- binaries of :func:`mipforest.constraints.features_used` or ``columns_used``: a budget of features;
- ``a`` or ``uses`` of single nodes, or weights that are 0: features forbidden at nodes;
- ``d``: a limit on splits (:class:`~mipforest.problem.constraints.AtMostSplits`).

Rows on predictions, with any coefficients and sides, are limits on sums over labels where the formulation reads them
(:meth:`~mipforest.problem.operations.ModelOperations.label_sums`).

All rows are read, or none: what is left would be rows that a search does not see.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data.columns import counted_as_one
from mipforest.problem.constraints.constraint import Built, Constraint
from mipforest.problem.constraints.features import AtMostFeatures, AtMostSplits, FeatureBudget, Forbid
from mipforest.problem.constraints.labels import LabelRows
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.structure import LabelSums

#: Blocks of binaries that constraints add, with the rows that say what they are.
_ADDED = {
    "feature_used": ("feature_used_somewhere", "feature_used_in_leaves", "feature_used_nowhere"),
    "column_used": ("column_used_somewhere", "column_used_nowhere"),
    "uses": ("uses_above", "uses_below"),
}


def read_by_hand(problem: Built, stated: BuiltModel) -> list[Constraint]:
    """Return constraints that say what was added to a model by hand; none where some of it cannot be read.

    Parameters
    ----------
    problem
        What was built.
    stated
        Its model as constraints and the formulation have stated it.
    """
    sums = problem.formulation.label_sums(problem.model, problem.instance, stated)
    if sums is not None and sums.names and not sums.rest and not stated.added_terms().any:
        return [LabelRows(", ".join(sums.names), lambda built: _add_sums(built, sums), problem)]
    neutral = problem.formulation.expressions(problem.model, problem.instance).neutral_rows()
    changes, n = stated.changes(neutral), stated.n_columns
    bounded = np.isfinite(changes.lower[:n]).any() or np.isfinite(changes.upper[:n]).any()
    new = [name for name in problem.model.variables if name not in stated.blocks]
    if changes.loosened or bounded or stated.added_terms().any or not set(new) <= _ADDED.keys():
        return []
    known = {row for name in _ADDED if name in problem.model.variables for row in _ADDED[name]}
    found: list[Constraint] = []
    for block in changes.added:
        if block.name in known:
            continue
        if block.binary is not None:
            return []
        for i in range(block.A.shape[0]):
            entries = slice(block.A.indptr[i], block.A.indptr[i + 1])
            used = block.A.data[entries] != 0.0
            where, coefficients = block.A.indices[entries][used], block.A.data[entries][used]
            read = _read(problem, where, coefficients, block.lower[i], block.upper[i])
            if read is None:
                return []
            found += read
    return found


def _add_sums(problem: Built, sums: LabelSums) -> None:
    """Add limits on sums over labels to a model."""
    expressions = problem.formulation.expressions(problem.model, problem.instance)
    predicted = [expressions.predicted(k) for k in range(sums.use.shape[2])]
    for name, use, least, most in zip(sums.names, sums.use, sums.least, sums.most, strict=True):
        parts = [use[:, k] @ chosen for k, chosen in enumerate(predicted)]
        total = sum(parts[1:], parts[0])
        free, both = problem.free_name(name), np.isfinite(least) and np.isfinite(most)
        if np.isfinite(most):
            problem.model.add(f"{free}_most" if both else free, total <= most)
        if np.isfinite(least):
            problem.model.add(f"{free}_least" if both else free, total >= least)


def _read(
    problem: Built, columns: IntArray, coefficients: FloatArray, lower: float, upper: float
) -> Sequence[Constraint] | None:
    """Read one row; ``None`` where it is none of these."""
    of = next(
        (
            (name, columns - block.columns.min(), block)
            for name, block in problem.model.variables.items()
            if len(columns) and np.isin(columns, block.columns).all()
        ),
        None,
    )
    if of is None:
        return None
    name, entries, block = of
    by_node = problem.topology.n_branches, problem.data.p
    if name == "w" and block.shape == by_node:  # a weight may be negative: it is 0 from both sides
        return _forbidden(problem, entries) if len(entries) == 1 and lower == upper == 0.0 else None
    if (coefficients < 0).all():
        coefficients, lower, upper = -coefficients, -upper, -lower
    if not (coefficients > 0).all() or not np.isfinite(upper) or lower > 0.0:
        return None  # a range from below is none of what lists of trees or budgets keep
    if name in ("a", "uses") and block.shape == by_node:
        return _forbidden(problem, entries) if upper == 0.0 else None
    if upper < 0.0:
        return None
    if name == "d" and block.shape == (problem.topology.n_branches,):
        weights = np.zeros(problem.topology.n_branches)
        weights[entries] = coefficients
        return [AtMostSplits(float(upper), None if (weights == 1.0).all() else tuple(weights.tolist()))]
    if name not in ("feature_used", "column_used"):
        return None
    labels = (
        problem.data.features.labels
        if name == "feature_used"
        else [column.name for column in problem.data.encoding.columns]
    )
    names = [labels[int(j)] for j in entries]
    if name == "feature_used" and any(len(counted_as_one(problem.data, one)) > 1 for one in names):
        return None
    if (
        len(names) == len(problem.data.encoding.columns)
        and (coefficients == 1.0).all()
        and upper == int(upper)
    ):
        return [AtMostFeatures(int(upper))]
    return [FeatureBudget(float(upper), dict(zip(names, coefficients.tolist(), strict=True)))]


def _forbidden(problem: Built, entries: IntArray) -> list[Constraint]:
    labels, p = problem.data.features.labels, problem.data.p
    return [Forbid((labels[int(k) % p],), (int(k) // p,)) for k in entries]
