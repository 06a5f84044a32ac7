"""Blocks of constraints and the objective of a model, and their rows put together as flat arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.errors import (
    DataValueError,
    ExpressionError,
    ModelError,
    ShapeError,
    UnknownNameError,
    closest,
)
from mipforest.model.expressions import LinearExpr, QuadraticExpr
from mipforest.model.matrix import Block, IndicatorRows, stack_rows, widen
from mipforest.model.operators import Relation, Shape, broadcast_shape, numeric, positions
from mipforest.model.variables import Labels, VarArray, index_sets, numeric_key


class Rows(Protocol):
    """What blocks of constraints read and change of their model."""

    @property
    def constraints(self) -> Mapping[str, ConstraintBlock]:
        """All blocks by name, in order."""

    def remove(self, name: str) -> None:
        """Take a block out."""

    def _changed(self) -> None: ...


class ConstraintBlock:
    """A named block of rows ``lower <= A x <= upper``, one per entry of an array.

    Attributes
    ----------
    name, shape, labels
        Name, shape, and labels per dimension.
    A
        (size, columns so far) CSR matrix.
    lower, upper
        (size,) sides.
    binary, value
        (size,) column and value that switch each row on, for indicator blocks; ``None`` for ordinary rows.
    """

    def __init__(
        self,
        model: Rows,
        name: str,
        shape: Shape,
        labels: tuple[Labels, ...],
        A: SparseMatrix,
        lower: FloatArray,
        upper: FloatArray,
        binary: IntArray | None = None,
        value: IntArray | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.shape = shape
        self.labels = labels
        self.A = A
        self.lower = lower
        self.upper = upper
        self.binary = binary
        self.value = value

    @property
    def is_indicator(self) -> bool:
        """Whether the rows hold only when a binary has a value."""
        return self.binary is not None

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.lower)

    @property
    def rows(self) -> range:
        """Row numbers in the matrix form (of the indicator rows, for an indicator block).

        Raises
        ------
        ModelError
            If the block was removed from its model.
        """
        self._refuse_if_removed()
        blocks = list(self.model.constraints.values())
        earlier = blocks[: blocks.index(self)]
        start = sum(block.size for block in earlier if block.is_indicator == self.is_indicator)
        return range(start, start + self.size)

    def relax(self, entries: Any = ...) -> None:
        """Free rows from both sides; they stay in place, so that row numbers do not move.

        Parameters
        ----------
        entries
            Index into the block's shape (numbers, slices, labels, a boolean mask); all rows when left out.

        Raises
        ------
        ModelError
            If the block was removed from its model.
        """
        self._refuse_if_removed()
        chosen = positions(self.shape)[numeric_key(entries, self.labels)].ravel()
        self.lower[chosen] = -np.inf
        self.upper[chosen] = np.inf
        self.model._changed()

    def remove(self) -> None:
        """Take the whole block out of its model.

        Raises
        ------
        ModelError
            If it was removed before.
        """
        self._refuse_if_removed()
        self.model.remove(self.name)

    def block(self, start: int) -> Block:
        """Return the naming block, for rows that start at a number."""
        return Block(self.name, start, self.shape, self.labels)

    def copied_to(self, model: Rows) -> ConstraintBlock:
        """Return the same block for a copy of the model."""
        lower, upper = self.lower.copy(), self.upper.copy()
        return ConstraintBlock(
            model, self.name, self.shape, self.labels, self.A, lower, upper, self.binary, self.value
        )

    def _refuse_if_removed(self) -> None:
        if self not in self.model.constraints.values():
            raise ModelError(f"constraint block {self.name!r} was removed from its model; add it again")

    def __repr__(self) -> str:
        kind = "indicator rows" if self.is_indicator else "rows"
        size = f"{self.size} {kind}, {self.A.nnz} nonzeros"
        return f"<ConstraintBlock {self.name!r} of shape {self.shape}, {size}>"


class ConstraintBlocks(dict[str, ConstraintBlock]):
    """Constraint blocks by name, with a suggestion for a mistyped one."""

    def __missing__(self, name: str) -> ConstraintBlock:
        raise UnknownNameError(f"no constraint block {name!r} in this model{closest(str(name), self)}")


def constraint_block(model: Rows, name: str, relation: Any, over: Any) -> ConstraintBlock:
    """Check a comparison and make it a block of a model.

    Raises
    ------
    ModelError
        As :meth:`Model.add <mipforest.model.model.Model.add>`.
    """
    if not isinstance(relation, Relation):
        raise ExpressionError(
            f"constraint block {name!r} is a {type(relation).__name__}, not a comparison of expressions; "
            "write e.g. model.add('budget', cost @ x <= 10)"
        )
    if relation.owner is not model:
        raise ExpressionError(
            f"constraint block {name!r} reads variables of another model; take them from this one: "
            "model['name']"
        )
    if not np.isfinite(relation.A.data).all():
        raise DataValueError(
            f"constraint block {name!r} has a coefficient that is NaN or infinite; check the data it is "
            "built from"
        )
    lower, upper = relation.lower.copy(), relation.upper.copy()
    unusable = np.isnan(lower) | np.isnan(upper) | (lower == np.inf) | (upper == -np.inf)
    if unusable.any():
        first = int(np.argmax(unusable))
        raise DataValueError(
            f"constraint block {name!r} has a row that no point satisfies or that is NaN: entry "
            f"{tuple(map(int, np.unravel_index(first, relation.shape)))} has sides {lower[first]} and "
            f"{upper[first]}; check the data it is built from"
        )
    labels = _row_labels(name, relation.shape, over)
    return ConstraintBlock(model, name, relation.shape, labels, relation.A, lower, upper)


def add_switch(block: ConstraintBlock, binary: Any, value: Any) -> ConstraintBlock:
    """Make a block's rows hold only when binary variables have a value.

    Raises
    ------
    ModelError
        As :meth:`Model.add_indicator <mipforest.model.model.Model.add_indicator>`.
    """
    where = f"indicator block {block.name!r}"
    if np.ndim(value) or value not in (0, 1):
        raise DataValueError(f"{where} has value {value!r}; a binary is 0 or 1")
    if not isinstance(binary, VarArray):
        raise ExpressionError(
            f"{where}: the switch is a {type(binary).__name__}; give binary variables themselves "
            "(and value 0 instead of 1 - z)"
        )
    owner: object = binary.owner
    if owner is not block.model:
        raise ExpressionError(
            f"{where}: the switch is of another model; take it from this one: model['name']"
        )
    if not (binary.integer & (binary.lower >= 0) & (binary.upper <= 1)).all():
        raise ExpressionError(
            f"{where}: the switch has variables that are not binary; make them with model.binary"
        )
    if broadcast_shape(binary.shape, block.shape, "add_indicator") != block.shape:
        raise ShapeError(
            f"{where}: binaries of shape {binary.shape} do not broadcast to rows of shape {block.shape}; "
            "broadcast the comparison to the binaries' shape first, expr.broadcast_to(shape)"
        )
    block.binary = np.broadcast_to(binary.columns, block.shape).flatten()
    block.value = np.full(block.size, value, dtype=np.int64)
    return block


def _row_labels(name: str, shape: Shape, over: Any) -> tuple[Labels, ...]:
    if over is None:
        return (None,) * len(shape)
    lengths, labels = index_sets(over)
    if lengths != shape:
        raise ShapeError(
            f"constraint block {name!r} has shape {shape}, its index sets have lengths {lengths}; "
            "give one index set per dimension of the comparison"
        )
    return labels


@dataclass(frozen=True, eq=False)
class Objective:
    """A scalar expression and its sense."""

    expression: LinearExpr | QuadraticExpr
    maximize: bool

    @property
    def linear(self) -> LinearExpr:
        """The linear part and the constant."""
        return self.expression.linear if isinstance(self.expression, QuadraticExpr) else self.expression

    def coefficients(self, n_columns: int) -> tuple[FloatArray, float, SparseMatrix | None]:
        """Return c, the offset, and Q (``None`` for a linear objective) over all columns."""
        c = widen(self.linear.matrix, n_columns).toarray().ravel()
        Q = self.expression.hessian(n_columns) if isinstance(self.expression, QuadraticExpr) else None
        return c, float(self.linear.constant[0]), Q

    def copied_to(self, model: object) -> Objective:
        """Return the same objective for a copy of the model."""
        linear = LinearExpr(self.linear.matrix, self.linear.constant, (), model)
        if isinstance(self.expression, QuadraticExpr):
            return Objective(
                QuadraticExpr(linear, self.expression.weights, self.expression.pairs), self.maximize
            )
        return Objective(linear, self.maximize)


def objective(model: object, expression: Any, *, maximize: bool) -> Objective:
    """Check an expression (or a number) and make it the objective of a model.

    Raises
    ------
    ModelError
        As :meth:`Model.minimize <mipforest.model.model.Model.minimize>`.
    """
    if not isinstance(expression, LinearExpr | QuadraticExpr):
        values = numeric(expression)
        expression = LinearExpr(sparse.csr_array((values.size, 0)), values.flatten(), values.shape, model)
    if expression.shape != ():
        raise ShapeError(
            f"the objective has shape {expression.shape}, it must have shape (); add .sum(), or weigh the "
            "entries with weights @ expr"
        )
    linear = expression.linear if isinstance(expression, QuadraticExpr) else expression
    if linear.owner is not model:
        raise ExpressionError(
            "the objective reads variables of another model; take them from this one: model['name']"
        )
    weights = expression.weights.data if isinstance(expression, QuadraticExpr) else np.zeros(0)
    if not all(np.isfinite(part).all() for part in (linear.matrix.data, linear.constant, weights)):
        raise DataValueError(
            "the objective has a coefficient that is NaN or infinite; check the data it is built from"
        )
    return Objective(expression, maximize)


def stack_blocks(
    blocks: Sequence[ConstraintBlock], n_columns: int
) -> tuple[SparseMatrix, FloatArray, FloatArray, tuple[Block, ...]]:
    """Return the canonical matrix (no explicit zeros), the sides and the naming blocks, in fresh arrays."""
    A = stack_rows([block.A for block in blocks], n_columns)
    A.sum_duplicates()
    if not A.data.all():
        A.eliminate_zeros()
    starts = np.cumsum([0, *(block.size for block in blocks)])
    named = tuple(block.block(int(start)) for block, start in zip(blocks, starts, strict=False))
    lower = np.concatenate([np.zeros(0), *(block.lower for block in blocks)])
    upper = np.concatenate([np.zeros(0), *(block.upper for block in blocks)])
    return A, lower, upper, named


def stack_indicators(blocks: Sequence[ConstraintBlock], n_columns: int) -> IndicatorRows:
    """Return the indicator rows of several blocks, in fresh arrays."""
    if not blocks:
        return IndicatorRows.none(n_columns)
    A, lower, upper, named = stack_blocks(blocks, n_columns)
    binary = np.concatenate([block.binary for block in blocks if block.binary is not None])
    value = np.concatenate([block.value for block in blocks if block.value is not None])
    return IndicatorRows(binary, value, A, lower, upper, named)
