"""A matrix form as a Pyomo model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.environ import (
    Binary,
    ConcreteModel,
    Constraint,
    Integers,
    Objective,
    Reals,
    Var,
    maximize,
    minimize,
)
from scipy import sparse

from mipforest.arrays import FloatArray
from mipforest.model.matrix import Block, MatrixForm


def concrete_model(form: MatrixForm) -> tuple[Any, list[Any]]:
    """Return a Pyomo ``ConcreteModel`` of a form, and its variables in the order of the columns.

    A block of columns becomes one ``Var`` of its name, indexed by its labels (numbers where it has none);
    a block of rows one ``Constraint`` in the same way. The objective is the component ``objective``. Where
    a name is taken, a ``_`` is added.

    Parameters
    ----------
    form
        A model without indicator rows.
    """
    model = ConcreteModel(name=form.name) if form.name else ConcreteModel()
    variables = [entry for block in form.columns for entry in _add_variables(model, form, block)]
    expressions = _linear_expressions(form.A, variables)
    for block in form.rows:
        _add_constraints(model, form, block, expressions)
    model.add_component(
        _free_name(model, "objective"),
        Objective(expr=_objective(form, variables), sense=maximize if form.maximize else minimize),
    )
    return model, variables


def _add_variables(model: Any, form: MatrixForm, block: Block) -> list[Any]:
    variables = Var(*_index_sets(block))
    model.add_component(_free_name(model, block.name), variables)
    entries = list(variables.values())
    for column, entry in zip(range(block.start, block.stop), entries, strict=True):
        low, high = float(form.col_lower[column]), float(form.col_upper[column])
        if form.integer[column]:
            entry.domain = Binary if (low, high) == (0.0, 1.0) else Integers
        else:
            entry.domain = Reals
        if entry.domain is not Binary:
            entry.setlb(low)
            entry.setub(high)
    return entries


def _add_constraints(model: Any, form: MatrixForm, block: Block, expressions: Iterator[Any]) -> None:
    constraints = Constraint(*_index_sets(block))
    model.add_component(_free_name(model, block.name), constraints)
    for row, index in zip(range(block.start, block.stop), _indices(block), strict=True):
        low, high, body = float(form.row_lower[row]), float(form.row_upper[row]), next(expressions)
        constraints.add(index, _relation(low, body, high))


def _relation(low: float, body: Any, high: float) -> Any:
    """Write a row as a modeller writes it."""
    if low == high:
        return body == low
    if high == np.inf and low > -np.inf:
        return body >= low
    if low == -np.inf and high < np.inf:
        return body <= high
    return low, body, high


def _linear_expressions(A: sparse.csr_array, variables: list[Any]) -> Iterator[Any]:
    """Return one expression per row of ``A``."""
    columns, coefficients = A.indices.tolist(), A.data.tolist()
    for begin, end in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        yield _linear(coefficients[begin:end], [variables[column] for column in columns[begin:end]])


def _linear(coefficients: Iterable[float], variables: Iterable[Any], constant: float = 0.0) -> Any:
    return LinearExpression(constant=constant, linear_coefs=list(coefficients), linear_vars=list(variables))


def _objective(form: MatrixForm, variables: list[Any]) -> Any:
    used = np.flatnonzero(form.c)
    expression = _linear(form.c[used].tolist(), [variables[k] for k in used], form.offset)
    if not form.is_quadratic:
        return expression
    upper = sparse.coo_array(sparse.triu(form.Q))
    rows, columns = upper.coords
    factors: FloatArray = np.where(rows == columns, 0.5 * upper.data, upper.data)
    for row, column, factor in zip(rows.tolist(), columns.tolist(), factors.tolist(), strict=True):
        expression += factor * variables[row] * variables[column]
    return expression


def _index_sets(block: Block) -> tuple[Any, ...]:
    """Return the index sets of a block's component; none for a scalar."""
    if block.flat_names is not None:
        short = [_inside_brackets(block.name, name) for name in block.flat_names]
        return (short if len(set(short)) == len(short) else list(block.flat_names),)
    labels = block.labels or (None,) * len(block.shape)
    return tuple(
        list(range(length)) if given is None else list(given)
        for length, given in zip(block.shape, labels, strict=True)
    )


def _inside_brackets(block: str, name: str) -> str:
    """Return ``3,age`` for the entry ``w[3,age]`` of a block ``w``, and other names whole."""
    if not name.startswith(f"{block}["):
        return name
    inside, _, behind = name.removeprefix(f"{block}[").rpartition("]")
    return inside + behind


def _indices(block: Block) -> Iterator[Any]:
    """Return the indices of a block's entries, in order."""
    sets = _index_sets(block)
    if not sets:
        yield None
    elif len(sets) == 1:
        yield from sets[0]
    else:
        yield from product(*sets)


def _free_name(model: Any, name: str) -> str:
    """Return the name, with ``_`` behind it as long as the model has such a component or attribute."""
    while hasattr(model, name):
        name += "_"
    return name
