"""Rows that a user has written by hand on known blocks, read by their coefficients into constraints as objects.

A row is one of these where it limits a sum of binaries with coefficients of one sign from above:

- binaries of :func:`mipforest.constraints.features_used` or ``columns_used``: a budget of features;
- ``a`` or ``uses`` of single nodes, or weights that are 0: features forbidden at nodes;
- ``d``: a limit on splits (:class:`~mipforest.problem.constraints.AtMostSplits`);
- binaries of the user's, each at least as large as whether some features are used: a budget of groups
  (:class:`~mipforest.problem.constraints.GroupBudget`).

What else reads the splits of univariate trees, features that are used, and variables of the user's, are
:class:`~mipforest.problem.constraints.NodeRows`. Rows on anything else of univariate trees are
:class:`~mipforest.problem.constraints.TreeRows`.

Rows on predictions, with any coefficients and sides, are limits on sums over labels where the formulation reads them
(:meth:`~mipforest.problem.operations.ModelOperations.label_sums`).

All rows are read, or none: what is left would be rows that a search does not see.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipforest.arrays import IntArray
from mipforest.data.columns import counted_as_one, features_of_columns
from mipforest.problem.constraints.constraint import Built, Constraint
from mipforest.problem.constraints.features import (
    AtMostFeatures,
    AtMostSplits,
    FeatureBudget,
    Forbid,
    GroupBudget,
)
from mipforest.problem.constraints.labels import LabelRows
from mipforest.problem.constraints.node_rows import Row, read_rows
from mipforest.problem.constraints.tree_rows import read_tree_rows
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.structure import LabelSums, UnivariateProblem

#: What a bound that was set on a variable is called.
BOUND = "bound"

#: Blocks that helpers and expressions add where a row reads them, with the rows that say what they are.
_ADDED = {
    "feature_used": ("feature_used_somewhere", "feature_used_in_leaves", "feature_used_nowhere"),
    "column_used": ("column_used_somewhere", "column_used_nowhere"),
    "uses": ("uses_above", "uses_below"),
    "z": ("assign", "assign_left", "assign_right"),
}
#: The same for the predictions of a class.
_PREDICTED = ("in_leaf", "labelled", "prescribed", "both")


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
    bounded = np.flatnonzero(np.isfinite(changes.lower[:n]) | np.isfinite(changes.upper[:n]))
    if changes.loosened or stated.added_terms().any:
        return []
    predicted = {f"predicted_{k}" for k in range(len(problem.data.label_names))}
    written = {**_ADDED, **{name: tuple(f"{name}_{row}" for row in _PREDICTED) for name in predicted}}
    own = [name for name in problem.model.variables if name not in stated.blocks and name not in written]
    known = {
        row
        for name, rows in written.items()
        if name in problem.model.variables and name not in stated.blocks
        for row in rows
    }
    added = [block for block in changes.added if block.name not in known]
    if any(block.binary is not None for block in added):
        return []
    rows = [
        Row(
            block.name, block.A.indices[at], block.A.data[at], float(block.lower[i]), float(block.upper[i])
        ).without_zeros()
        for block in added
        for i in range(block.A.shape[0])
        for at in (slice(block.A.indptr[i], block.A.indptr[i + 1]),)
    ]
    rows += [
        Row(BOUND, np.array([c]), np.ones(1), float(changes.lower[c]), float(changes.upper[c]))
        for c in bounded
    ]
    counted = _counted(problem, own, rows) if own else (rows, list[Constraint]())
    left, found = ([], []) if counted is None else counted
    others = rows if counted is None else list[Row]()
    for row in left:
        read = _read(problem, row)
        found += read or ()
        others += [row] if read is None else []
    if others:
        if not isinstance(problem.formulation.structure(problem.instance), UnivariateProblem):
            return []
        mine = own if counted is None else ()
        of_nodes, left = read_rows(problem, others, mine)
        of_trees = read_tree_rows(problem, left, mine) if left else None
        if left and of_trees is None:
            return []
        found += [one for one in (of_nodes, of_trees) if one is not None]
    return found


def _counted(
    problem: Built, own: Sequence[str], rows: Sequence[Row]
) -> tuple[list[Row], list[Constraint]] | None:
    r"""Read binaries of the user's that count features, with the rows that limit their sums.

    A binary u with rows :math:`u \ge x` for binaries x that tell whether features are used is at least whether some of
    them is. Where else it is limited from above alone, it may as well be just that.

    Returns
    -------
    tuple
        The rows without one of these binaries, and budgets; ``None`` where they are something else.
    """
    blocks = [problem.model.variables[name] for name in own]
    columns = np.concatenate([block.columns.ravel() for block in blocks])
    if not all(
        (block.lower == 0.0).all() and (block.upper == 1.0).all() and block.integer.all() for block in blocks
    ):
        return None
    above: dict[int, set[int]] = {int(u): set() for u in columns}
    below: list[tuple[int, set[int]]] = []
    limits, others = list[Row](), list[Row]()
    for given in rows:
        is_own = np.isin(given.columns, columns)
        row = given.from_above() if is_own.any() else given
        if not is_own.any():
            others.append(given)
        elif row is None:
            return None
        elif is_own.all():
            if (row.coefficients < 0).any() or row.upper < 0.0:
                return None
            limits.append(row)
        elif is_own.sum() == 1 and row.upper == 0.0:
            u, coefficient = int(row.columns[is_own][0]), float(row.coefficients[is_own][0])
            rest, amounts = row.columns[~is_own].tolist(), row.coefficients[~is_own]
            if coefficient < 0 and (amounts > 0).all() and (len(rest) == 1 or amounts.sum() <= -coefficient):
                if len(rest) == 1 and amounts[0] > -coefficient:
                    return None
                above[u] |= set(rest)
            elif coefficient > 0 and (amounts <= -coefficient).all():
                below.append((u, set(rest)))
            else:
                return None
        else:
            return None
    groups = {u: _features_of(problem, reads) for u, reads in above.items()}
    if any(not above[u] <= reads or not _are_at_least_0(problem, reads) for u, reads in below):
        return None
    budgets: list[Constraint] = []
    for row in limits:
        paid = [groups[u] for u in row.columns.tolist()]
        if None in paid:
            return None
        budgets.append(
            GroupBudget(row.upper, tuple(map(tuple, filter(None, paid))), tuple(row.coefficients.tolist()))
        )
    return others, budgets


def _are_at_least_0(problem: Built, columns: set[int]) -> bool:
    """Return whether variables cannot be negative."""
    blocks = problem.model.variables.values()
    low = {int(c) for block in blocks for c in block.columns[block.lower >= 0.0].ravel()}
    return columns <= low


def _features_of(problem: Built, columns: set[int]) -> list[str] | None:
    """Return the features of which one is used where one of some columns is 1; ``None`` where it is something else."""
    data, found, read = problem.data, set[int](), set[int]()
    of_columns = features_of_columns(data)
    for name, block in problem.model.variables.items():
        for j in range(data.p) if block.size and block.integer.all() else ():
            if name == "feature_used":
                own = [int(block.columns[j])]
            elif name in ("a", "uses") and block.shape == (problem.topology.n_branches, data.p):
                own = block.columns[:, j].tolist()  # at all nodes
            elif name == "column_used":
                own = [int(c) for c, features in zip(block.columns, of_columns, strict=True) if j in features]
            else:
                break
            if columns.issuperset(own):
                found.add(j)
                read |= set(own)
    labels = [data.features.labels[j] for j in sorted(found)]
    # The name of a feature stands for those that differ from it in missing values alone, too.
    counted = {int(j) for label in labels for j in counted_as_one(data, label)}
    return labels if found and read == columns and counted == found else None


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


def _read(problem: Built, row: Row) -> Sequence[Constraint] | None:
    """Read one row; ``None`` where it is none of these."""
    columns, coefficients, lower, upper = row.columns, row.coefficients, row.lower, row.upper
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
    is_weight = block.shape == by_node and not block.integer.all()
    if name in ("w", "a") and is_weight:  # it may be negative: it is 0 from both sides
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
