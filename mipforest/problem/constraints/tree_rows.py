r"""Rows by hand on anything that a model says of univariate trees: labels of leaves, where samples go, thresholds.

Splits leave little of a model open: the labels of leaves, thresholds within a gap between the samples of a node, and a
user's own variables. So a search keeps any rows by *completing* trees. It lists them by rising objective, each with its
best leaves, and asks for the best point of the model among those whose nodes split on the same features and part the
samples alike. The value that is listed bounds all that are still to come, and the best point of those before is the
optimum once it is no greater.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.heuristics.thresholds import Thresholds, tree_of_thresholds
from mipforest.model import Model
from mipforest.model.matrix import Values
from mipforest.problem.constraints.constraint import Built, Holding, Named
from mipforest.problem.constraints.node_rows import Row, StatedRows
from mipforest.problem.restrictions import Completed, Restrictions
from mipforest.problem.structure import UnivariateProblem
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.solution import Status
from mipforest.solving import solve
from mipforest.trees import Predictor, Tree

#: Seconds for the point of one tree, whose splits are given.
COMPLETION_SECONDS = 10.0


@dataclass(frozen=True)
class TreeRows(Named):
    """Rows on any variables of a model of univariate trees.

    Attributes
    ----------
    name
        Names of the rows.
    built
        The problem that they were written on.
    stated
        The rows, and the user's variables.
    """

    name: str
    built: Built = field(repr=False, compare=False)
    stated: StatedRows = field(repr=False, compare=False)

    kind: ClassVar[str] = "rows"
    by_completion: ClassVar[bool] = True

    def rows(self, problem: Built) -> None:
        """Add the rows, and the user's variables."""
        self.stated.add_to(problem)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Return 1 where the model with these rows alone has a point of the tree, else 0."""
        assert isinstance(tree, Tree)
        own, scaled = self._alone, tree.rescaled(data.encoding.offset, data.encoding.scale).unscaled()
        met = _has_point(own, scaled)
        return Holding(float(met), 1.0, None, met)

    @cached_property
    def _alone(self) -> Any:
        """The problem with these rows and no others."""
        built: Any = self.built
        model = Model(built.formulation.name)
        built.formulation.declare(model, built.instance)
        own = replace(built, model=model, constraints=())
        self.rows(own)
        return own

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:  # noqa: ARG002
        """Let the search complete trees to points of the model, with all rows that are in it."""
        if own.completion is not None:
            return own
        return replace(own, completion=_Completing(problem, self.stated.names))


def _is_point(problem: Any, values: Values) -> bool:
    """Return whether values of a tree are those of all blocks, and feasible."""
    return values.keys() >= problem.model.variables.keys() and not problem.worst_violation(values)


def _has_point(problem: Any, tree: Tree) -> bool:
    """Return whether the model of a problem has a point of a tree (for scaled features)."""
    values: Values = problem.encoded(tree)
    if values.keys() >= problem.model.variables.keys():
        return _is_point(problem, values)
    rest = problem.model.copy()
    for name, value in values.items():
        if rest[name].integer.all():
            rest[name].fix(value)
    return solve(rest, "highs", time_limit=COMPLETION_SECONDS).x is not None


class _Completing:
    """Completes trees to points of a model.

    Parameters
    ----------
    problem
        With all rows that were added.
    names
        Of the rows for which trees are completed.
    """

    def __init__(self, problem: Any, names: Sequence[str]) -> None:
        self._problem, self._model = problem, problem.model
        self._expressions = problem.formulation.expressions(problem.model, problem.instance)
        n = problem.model.matrix().n_columns
        blocks = [block for name, block in problem.model.constraints.items() if name in names]
        rows = [sparse.csr_array((b.A.data, b.A.indices, b.A.indptr), (b.A.shape[0], n)) for b in blocks]
        A = sparse.vstack([sparse.csr_array((0, n)), *rows], format="csr")
        self._positive, self._negative = A.maximum(0.0), A.minimum(0.0)
        self._lower, self._upper = (
            np.concatenate([np.zeros(0), *(getattr(block, side) for block in blocks)])
            for side in ("lower", "upper")
        )
        sides = np.where(np.isfinite(self._lower), self._lower, self._upper)
        #: (r,) what a row may be missed by.
        self._missed = FEASIBILITY_TOLERANCE * np.maximum(1.0, np.abs(sides))

    def __call__(self, tree: Tree, *, labels: bool) -> Completed:
        """Return the best tree among those whose nodes split on the features of a tree and part the samples as it does.

        With ``labels``, leaves that hold samples keep theirs.
        """
        bounds = self._expressions.alike(tree, labels=labels)
        assert bounds is not None  # :func:`read_tree_rows` has asked
        model, form = self._model, self._model.matrix()
        lower, upper = form.col_lower.copy(), form.col_upper.copy()
        for name, (least, most) in bounds.items():
            columns = model[name].columns
            lower[columns], upper[columns] = (
                np.maximum(least, lower[columns]),
                np.minimum(most, upper[columns]),
            )
        if (lower > upper).any() or not self._may_hold(lower, upper):
            return Completed(None, proven=True)
        if _is_point(self._problem, self._problem.encoded(tree)):  # its leaves are the best ones
            return Completed(tree, proven=True)
        rest = model.copy()
        for name in bounds:
            columns = model[name].columns
            rest[name].set_bounds(lower[columns], upper[columns])
        found = solve(rest, "highs", time_limit=COMPLETION_SECONDS)
        best: Tree | None = None
        if found.x is not None:
            decoded = self._problem.formulation.decode(found.values, self._problem.instance)
            assert isinstance(decoded, Tree)
            best = decoded
        return Completed(best, found.status in (Status.OPTIMAL, Status.INFEASIBLE))

    def _may_hold(self, lower: FloatArray, upper: FloatArray) -> bool:
        """Return whether each row for itself has a point within bounds."""
        least = self._positive @ lower + self._negative @ upper
        most = self._positive @ upper + self._negative @ lower
        return bool(
            (least <= self._upper + self._missed).all() and (most >= self._lower - self._missed).all()
        )


def read_tree_rows(problem: Built, rows: Sequence[Row], own: Sequence[str] = ()) -> TreeRows | None:
    """Read any rows of a model of univariate trees; ``None`` where trees are not completed.

    They are not in models without binaries for thresholds, whose root may split and part no sample, and in those of
    quadratic objective with variables of the user's.

    Parameters
    ----------
    problem
        What was built.
    rows
        The rows, without coefficients that are 0.
    own
        Blocks of variables that the user has added.
    """
    model, (formulation, instance) = problem.model, (problem.formulation, problem.instance)
    charged, alone = formulation.structure(instance), np.full(problem.topology.n_branches, -1)
    assert isinstance(charged, UnivariateProblem)
    leaf = tree_of_thresholds(problem.data, problem.topology, charged.thresholds, alone)
    completes = formulation.expressions(model, instance).alike(leaf, labels=False) is not None
    if not completes or (own and model.matrix().Q is not None):
        return None
    stated = StatedRows.of(model, rows, own)
    return TreeRows(", ".join(stated.names), problem, stated)
