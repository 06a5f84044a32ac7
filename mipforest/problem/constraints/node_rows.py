r"""Rows by hand on the splits of univariate trees: any that read what nodes split on, and a user's own variables.

Let :math:`a_{tj}` say whether node t splits on feature j, and :math:`d_t = \sum_j a_{tj}` whether it splits. Such rows
are one of two kinds.

- Those of **one node** say which thresholds it may have, and whether it may be without a split: each of its choices is
  tried. A search keeps them as thresholds that are given to the node.
- Those of **several nodes** are a system over :math:`a`, the features that the tree uses, and the user's variables. A
  tree satisfies them where the system with its :math:`a` has a solution. A search asks for a *conflict* of a tree:
  nodes whose choices alone make the system infeasible. Another tree differs from it at one of these, which is what the
  search branches on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.data import Dataset
from mipforest.data.columns import features_of_columns
from mipforest.heuristics.thresholds import Thresholds
from mipforest.model import Model, VarArray
from mipforest.problem.constraints import rows as helpers
from mipforest.problem.constraints.constraint import Built, Holding, Named
from mipforest.problem.model_changes import add_like
from mipforest.problem.restrictions import ANY, FixedSplit, Restrictions
from mipforest.problem.structure import UnivariateProblem
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.trees import Predictor, Tree


class Row(NamedTuple):
    """A row: the block it is of, its columns, their coefficients, and its sides."""

    name: str
    columns: IntArray
    coefficients: FloatArray
    lower: float
    upper: float

    def without_zeros(self) -> Row:
        """Return the row without coefficients that are 0."""
        used = self.coefficients != 0.0
        return self._replace(columns=self.columns[used], coefficients=self.coefficients[used])

    def with_tolerance(self) -> tuple[float, float]:
        """Return its sides with what a row of a model may be missed by."""
        lower, upper = (FEASIBILITY_TOLERANCE * max(1.0, abs(side)) for side in (self.lower, self.upper))
        return self.lower - lower, self.upper + upper

    def from_above(self) -> Row | None:
        """Return the row with one side, which limits it from above; ``None`` if it has two or none."""
        if np.isfinite(self.lower) == np.isfinite(self.upper):
            return None
        if np.isfinite(self.upper):
            return self
        return self._replace(coefficients=-self.coefficients, lower=-np.inf, upper=-self.lower)


@dataclass(frozen=True, eq=False)
class _System:
    """Rows of several nodes: a linear system over what nodes split on, what is used, and the user's variables.

    The first |B| (p + 1) variables are a, with a further feature for a node without a split.

    Attributes
    ----------
    shape
        |B| and p + 1.
    A, lower, upper
        The rows, with those that tie variables to each other.
    least, most, integer
        (v,) bounds of the variables, and whether they are integer.
    """

    shape: tuple[int, int]
    A: SparseMatrix
    lower: FloatArray
    upper: FloatArray
    least: FloatArray
    most: FloatArray
    integer: BoolArray
    _known: dict[bytes, IntArray | None] = field(default_factory=dict)

    def conflict(self, features: IntArray) -> IntArray | None:
        """Return nodes that no solution lets have what they split on; ``None`` where there is a solution.

        Parameters
        ----------
        features
            (|B|,) feature of each node, -1 for one without a split,
            :data:`~mipforest.problem.restrictions.ANY` for any.
        """
        key = features.astype(np.int64).tobytes()
        if key not in self._known:
            nodes = np.flatnonzero(features != ANY)
            if self._is_feasible(features, nodes):
                self._known[key] = None
            else:
                for t in nodes[::-1].tolist():  # the upper ones are kept: to change them changes most
                    others = nodes[nodes != t]
                    nodes = nodes if self._is_feasible(features, others) else others
                self._known[key] = nodes
        return self._known[key]

    def _is_feasible(self, features: IntArray, nodes: IntArray) -> bool:
        """Return whether there is a solution with the features of some nodes."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # half a second, for few problems

        least, width = self.least.copy(), self.shape[1]
        chosen = features[nodes]
        least[nodes * width + np.where(chosen >= 0, chosen, width - 1)] = 1.0
        solved = milp(
            np.zeros(len(least)),
            integrality=self.integer.astype(int),
            bounds=Bounds(least, self.most),
            constraints=LinearConstraint(self.A, self.lower, self.upper),
        )
        return solved.x is not None


@dataclass(frozen=True, eq=False)
class _Stated:
    """Rows by the names of their blocks, to be added to a model whose columns have other numbers.

    Attributes
    ----------
    names
        Of the rows.
    terms
        Of each row: a block, (k,) entries of it, and their coefficients.
    sides
        Lower and upper sides of each row.
    own
        The user's blocks, by name.
    """

    names: tuple[str, ...]
    terms: tuple[tuple[tuple[str, IntArray, FloatArray], ...], ...]
    sides: tuple[tuple[float, float], ...]
    own: Mapping[str, VarArray]

    @classmethod
    def of(cls, model: Model, rows: Sequence[Row], own: Sequence[str]) -> _Stated:
        """Return rows of a model."""
        terms = []
        for row in rows:
            parts = []
            for name, block in model.variables.items():
                columns = block.columns.ravel()
                mine = np.flatnonzero(np.isin(row.columns, columns))
                if len(mine):
                    order = np.argsort(columns, kind="stable")
                    at = order[np.searchsorted(columns[order], row.columns[mine])]
                    parts.append((name, at, row.coefficients[mine]))
            terms.append(tuple(parts))
        sides = tuple((row.lower, row.upper) for row in rows)
        return cls(tuple(row.name for row in rows), tuple(terms), sides, {name: model[name] for name in own})

    def add_to(self, problem: Built) -> None:
        """Add the rows to another model of the formulation."""
        model = problem.model
        for name, block in self.own.items():
            add_like(model, name, block)
        read = {name for terms in self.terms for name, _, _ in terms}
        for name, helper in (
            ("feature_used", helpers.features_used),
            ("column_used", helpers.columns_used),
        ):
            if name in read:
                helper(problem)
        for name, terms, (lower, upper) in zip(self.names, self.terms, self.sides, strict=True):
            parts = [
                coefficients @ model[block].reshape(-1)[entries] for block, entries, coefficients in terms
            ]
            total, free = sum(parts[1:], parts[0]), problem.free_name(name)
            if lower == upper:
                model.add(free, total == lower)
                continue
            if np.isfinite(upper):
                model.add(free, total <= upper)
            if np.isfinite(lower):
                model.add(problem.free_name(name), total >= lower)


@dataclass(frozen=True)
class NodeRows(Named):
    """Rows on the splits of a univariate tree.

    Attributes
    ----------
    name
        Names of the rows.
    thresholds
        All thresholds of the training samples.
    given
        By node that rows of its own restrict, the thresholds it may have, and whether it has to split.
    system
        Rows of several nodes; ``None`` without any.
    stated
        The rows, and the user's variables.
    """

    name: str
    thresholds: Thresholds = field(repr=False, compare=False)
    given: tuple[FixedSplit, ...] = field(repr=False, compare=False)
    system: _System | None = field(repr=False, compare=False)
    stated: _Stated = field(repr=False, compare=False)

    kind: ClassVar[str] = "rows"

    def rows(self, problem: Built) -> None:
        """Add the rows, and the user's variables."""
        self.stated.add_to(problem)

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Return 1 where the rows have a solution with the splits of the tree, else 0."""
        assert isinstance(tree, Tree)
        chosen = self.thresholds.of_tree(tree.rescaled(data.encoding.offset, data.encoding.scale))
        met = all(
            np.isin(chosen[split.node], split.thresholds) or (chosen[split.node] < 0 and not split.must)
            for split in self.given
        )
        if met and self.system is not None:
            features = np.where(chosen >= 0, self.thresholds.feature[chosen], -1)
            met = self.system.conflict(features) is None
        return Holding(float(met), 1.0, None, bool(met))

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:  # noqa: ARG002
        """Give nodes their thresholds, and let the search ask for conflicts."""
        conflicts = () if self.system is None else (self.system.conflict,)
        return replace(own, fixed=(*own.fixed, *self.given), conflicts=(*own.conflicts, *conflicts))


class _Blocks:
    """Blocks of a model that say what nodes split on.

    Attributes
    ----------
    columns
        By name: ``a`` and ``uses`` (|B|, p), ``u`` (|B|, q), ``d`` (|B|, 1).
    node
        (columns of the model,) the node that each is of, -1 for none.
    """

    def __init__(self, problem: Built, thresholds: Thresholds) -> None:
        self.problem, self.thresholds = problem, thresholds
        self.n_nodes, self.p = problem.topology.n_branches, thresholds.n_features
        lengths = {"a": self.p, "uses": self.p, "u": len(thresholds), "d": 1}
        blocks = problem.model.variables
        self.columns = {
            name: blocks[name].columns.reshape(self.n_nodes, length)
            for name, length in lengths.items()
            if name in blocks and blocks[name].size == self.n_nodes * length
        }
        self.node = np.full(problem.model.matrix().n_columns, -1)
        for columns in self.columns.values():
            self.node[columns] = np.arange(self.n_nodes)[:, None]

    def node_of(self, row: Row) -> int | None:
        """Return the node that a row reads alone; ``None`` where it reads others, or other blocks."""
        nodes = np.unique(self.node[row.columns])
        return int(nodes[0]) if len(nodes) == 1 and nodes[0] >= 0 else None

    def given(self, t: int, rows: Sequence[Row]) -> FixedSplit:
        """Return what rows of a node leave it: each of its thresholds is tried, and no split."""
        of, first = self.thresholds.feature, self.thresholds.first
        left, may_be_leaf = np.ones(len(self.thresholds), dtype=bool), True
        for row in rows:
            x = np.zeros(len(self.node))
            x[row.columns] = row.coefficients
            value = np.zeros(len(self.thresholds))
            for name, columns in self.columns.items():
                own = x[columns[t]]
                if name == "u":  # 1 up to the threshold, of those of its feature
                    below = np.append(0.0, own.cumsum())
                    value += below[1:] - below[first[of]]
                else:
                    value += own if name == "d" else own[of]
            lower, upper = row.with_tolerance()
            left &= (lower <= value) & (value <= upper)
            may_be_leaf &= lower <= 0.0 <= upper
        return FixedSplit(t, np.flatnonzero(left), must=not may_be_leaf)

    def system(self, rows: Sequence[Row], own: Sequence[str]) -> _System | None:
        """Return rows over features of nodes, used features and the user's blocks ``own``; ``None`` of any others."""
        model, B, width = self.problem.model, self.n_nodes, self.p + 1
        splits = np.append(np.ones(self.p), 0.0)
        of_columns = [tuple(features) for features in features_of_columns(self.problem.data)]
        mine = [model[name] for name in own]
        sizes = [B * width, self.p, len(of_columns), *(block.size for block in mine)]
        a, used, some, *places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        a = a.reshape(B, width)
        # What each column of the model is over the variables of the system.
        means = sparse.lil_array((len(self.node), sum(sizes)))
        for name, columns in self.columns.items():
            if name == "d":
                for t in range(B):
                    means[columns[t, 0], a[t]] = splits
                continue
            has = np.flatnonzero(np.diff(self.thresholds.first) > 0)
            chosen = columns[:, self.thresholds.first[has]] if name == "u" else columns[:, has]
            means[chosen.ravel(), a[:, has].ravel()] = 1.0
        for name, at in (("feature_used", used), ("column_used", some), *zip(own, places, strict=True)):
            if name in model.variables:
                means[model[name].columns.ravel(), at] = 1.0
        means = means.tocsr()
        if any((np.diff(means.indptr)[row.columns] == 0).any() for row in rows):
            return None
        lengths = [len(row.columns) for row in rows]
        given = sparse.csr_array(
            (
                np.concatenate([row.coefficients for row in rows]),
                np.concatenate([row.columns for row in rows]),
                np.cumsum([0, *lengths]),
            ),
            shape=(len(rows), len(self.node)),
        )
        lower, upper = (list(side) for side in zip(*(row.with_tolerance() for row in rows), strict=True))
        parts = [given @ means]

        def add(entries: Sequence[tuple[IntArray | int, float]], least: float, most: float) -> None:
            row = sparse.lil_array((1, sum(sizes)))
            for columns, value in entries:
                row[0, columns] = value
            parts.append(row.tocsr())
            lower.append(least)
            upper.append(most)

        for t in range(B):
            add([(a[t], 1.0)], 1.0, 1.0)
            if t > 0:
                add([(a[t, -1], 1.0), (a[(t - 1) // 2, -1], -1.0)], 0.0, np.inf)
        # A feature is used where a node splits on it, and a column where one of its features is.
        for whole, part in (
            *((used[j], a[:, j]) for j in range(self.p)),
            *((some[k], used[list(features)]) for k, features in enumerate(of_columns)),
        ):
            add([(whole, 1.0), (part, -1.0)], -np.inf, 0.0)
            for one in part.tolist():
                add([(whole, 1.0), (one, -1.0)], 0.0, np.inf)
        of_user = [(block.lower.ravel(), block.upper.ravel(), block.integer.ravel()) for block in mine]
        n_binary = B * width + self.p + len(of_columns)
        least, most, integer = (
            np.concatenate([np.full(n_binary, first), *(sides[k] for sides in of_user)])
            for k, first in enumerate((0.0, 1.0, True))
        )
        A = sparse.vstack(parts, format="csr")
        return _System((B, width), A, np.array(lower), np.array(upper), least, most, integer.astype(bool))


def read_node_rows(problem: Built, rows: Sequence[Row], own: Sequence[str] = ()) -> NodeRows | None:
    """Read rows on the splits of univariate trees; ``None`` where some read anything else.

    Parameters
    ----------
    problem
        What was built.
    rows
        The rows, without coefficients that are 0.
    own
        Blocks of variables that the user has added.
    """
    charged = problem.formulation.structure(problem.instance)
    if not isinstance(charged, UnivariateProblem):
        return None
    blocks = _Blocks(problem, charged.thresholds)
    of_node: dict[int, list[Row]] = {}
    of_several = []
    for row in rows:
        t = blocks.node_of(row) if len(row.columns) else None
        if t is None:
            of_several.append(row)
        else:
            of_node.setdefault(t, []).append(row)
    system = blocks.system(of_several, own) if of_several else None
    if of_several and system is None:
        return None
    given = tuple(blocks.given(t, own_rows) for t, own_rows in sorted(of_node.items()))
    stated = _Stated.of(problem.model, rows, own)
    return NodeRows(", ".join(dict.fromkeys(stated.names)), charged.thresholds, given, system, stated)
