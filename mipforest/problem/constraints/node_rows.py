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


class _StatedBlock(NamedTuple):
    """Rows of one name: their (r, size) coefficients of the entries of each block, and their sides."""

    name: str
    terms: Mapping[str, SparseMatrix]
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class StatedRows:
    """Rows by the names of their blocks, and the user's variables: added to a model whose columns have other numbers.

    Attributes
    ----------
    blocks
        The rows, by name.
    own
        The user's blocks, by name.
    """

    blocks: tuple[_StatedBlock, ...]
    own: Mapping[str, VarArray]

    @classmethod
    def of(cls, model: Model, rows: Sequence[Row], own: Sequence[str]) -> StatedRows:
        """Return rows of a model."""
        blocks, n = list[_StatedBlock](), model.matrix().n_columns
        for name in dict.fromkeys(row.name for row in rows):
            some = [row for row in rows if row.name == name]
            A = matrix_of(some, n).tocsc()
            terms = {}
            for block, variables in model.variables.items():
                entries = A[:, variables.columns.ravel()]
                if entries.nnz:
                    terms[block] = entries.tocsr()
            lower, upper = (np.array([getattr(row, side) for row in some]) for side in ("lower", "upper"))
            blocks.append(_StatedBlock(name, terms, lower, upper))
        return cls(tuple(blocks), {name: model[name] for name in own})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rows."""
        return tuple(block.name for block in self.blocks)

    def add_to(self, problem: Built) -> None:
        """Add the rows to another model of the formulation."""
        model = problem.model
        for name, given in self.own.items():
            add_like(model, name, given)
        for name in dict.fromkeys(name for block in self.blocks for name in block.terms):
            if name not in model.variables:
                _write_helper(problem, name)
        for block in self.blocks:
            parts = [A @ model[name].reshape(-1) for name, A in block.terms.items()]
            if not parts:  # rows without a variable
                parts = [
                    sparse.csr_array((len(block.lower), 1))
                    @ next(iter(model.variables.values())).reshape(-1)[:1]
                ]
            total, equal = sum(parts[1:], parts[0]), block.lower == block.upper
            for some, least in (
                (equal, None),
                (~equal & np.isfinite(block.lower), True),
                (~equal & np.isfinite(block.upper), False),
            ):
                if some.any():
                    at = np.flatnonzero(some)
                    name, own = problem.free_name(block.name), total[at]
                    if least is None:
                        model.add(name, own == block.lower[at])
                    else:
                        model.add(name, own >= block.lower[at] if least else own <= block.upper[at])


def matrix_of(rows: Sequence[Row], n: int) -> SparseMatrix:
    """Return the coefficients (r, n) of rows."""
    return sparse.csr_array(
        (
            np.concatenate([row.coefficients for row in rows]),
            np.concatenate([row.columns for row in rows]),
            np.cumsum([0, *(len(row.columns) for row in rows)]),
        ),
        shape=(len(rows), n),
    )


def _write_helper(problem: Built, name: str) -> None:
    """Add a block that helpers and expressions add where a row first reads it."""
    expressions = problem.formulation.expressions(problem.model, problem.instance)
    if name == "feature_used":
        helpers.features_used(problem)
    elif name == "column_used":
        helpers.columns_used(problem)
    elif name == "z":
        expressions.leaves()
    elif name == "uses":
        expressions.features()
    else:
        expressions.predicted(int(name.removeprefix("predicted_")))


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
    stated: StatedRows = field(repr=False, compare=False)

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
        #: Columns of ``a`` or ``u`` that say which features nodes split on, of those with thresholds.
        self.has_thresholds = np.flatnonzero(np.diff(thresholds.first) > 0)
        self.chosen = {
            name: columns[:, thresholds.first[self.has_thresholds] if name == "u" else self.has_thresholds]
            for name, columns in self.columns.items()
            if name != "d"
        }

    def node_of(self, row: Row) -> int | None:
        """Return the node that a row reads alone; ``None`` where it reads others, or other blocks."""
        nodes = np.unique(self.node[row.columns])
        return int(nodes[0]) if len(nodes) == 1 and nodes[0] >= 0 else None

    def means_splits(self, row: Row, own: Sequence[str]) -> bool:
        """Return whether a row reads features of nodes, what is used, and the blocks ``own``, and nothing else."""
        blocks = self.problem.model.variables
        known = [*self.chosen.values(), *(self.columns[name] for name in ("d",) if name in self.columns)]
        known += [blocks[name].columns for name in ("feature_used", "column_used", *own) if name in blocks]
        return bool(np.isin(row.columns, np.concatenate([[], *(columns.ravel() for columns in known)])).all())

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

    def system(self, rows: Sequence[Row], own: Sequence[str]) -> _System:
        """Return rows over features of nodes, used features and the user's blocks ``own``."""
        model, B, width = self.problem.model, self.n_nodes, self.p + 1
        splits = np.append(np.ones(self.p), 0.0)
        of_columns = [tuple(features) for features in features_of_columns(self.problem.data)]
        mine = [model[name] for name in own]
        sizes = [B * width, self.p, len(of_columns), *(block.size for block in mine)]
        a, used, some, *places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        a = a.reshape(B, width)
        # What each column of the model is over the variables of the system.
        means = sparse.lil_array((len(self.node), sum(sizes)))
        for t in range(B) if "d" in self.columns else ():
            means[self.columns["d"][t, 0], a[t]] = splits
        for chosen in self.chosen.values():
            means[chosen.ravel(), a[:, self.has_thresholds].ravel()] = 1.0
        for name, at in (("feature_used", used), ("column_used", some), *zip(own, places, strict=True)):
            if name in model.variables:
                means[model[name].columns.ravel(), at] = 1.0
        means = means.tocsr()
        given = matrix_of(rows, len(self.node))
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


def read_rows(
    problem: Built, rows: Sequence[Row], own: Sequence[str] = ()
) -> tuple[NodeRows | None, list[Row]]:
    """Read rows on the splits of univariate trees.

    Parameters
    ----------
    problem
        What was built, of univariate trees.
    rows
        The rows, without coefficients that are 0.
    own
        Blocks of variables that the user has added.

    Returns
    -------
    NodeRows, list
        What was read, ``None`` without any; and the rows that read anything else, with those of the user's variables
        where some of them are tied to it.
    """
    charged = problem.formulation.structure(problem.instance)
    assert isinstance(charged, UnivariateProblem)
    blocks = _Blocks(problem, charged.thresholds)
    of_node: dict[int, list[Row]] = {}
    of_several, others = list[Row](), list[Row]()
    for row in rows:
        t = blocks.node_of(row) if len(row.columns) else None
        if t is not None:
            of_node.setdefault(t, []).append(row)
        elif blocks.means_splits(row, own):
            of_several.append(row)
        else:
            others.append(row)
    if others:
        mine = np.concatenate([[], *(problem.model[name].columns.ravel() for name in own)])
        others += [row for row in of_several if np.isin(row.columns, mine).any()]
        of_several = [row for row in of_several if not np.isin(row.columns, mine).any()]
        own = ()
    read = [*(row for some in of_node.values() for row in some), *of_several]
    if not read and not own:
        return None, others
    system = blocks.system(of_several, own) if of_several else None
    given = tuple(blocks.given(t, own_rows) for t, own_rows in sorted(of_node.items()))
    if "u" not in blocks.columns and (system is not None or any(split.must for split in given)):
        # Without binaries for thresholds, the root may have to split and part no sample, which searches do not try.
        return None, list(rows)
    stated = StatedRows.of(problem.model, read, own)
    return NodeRows(", ".join(stated.names), charged.thresholds, given, system, stated), others
