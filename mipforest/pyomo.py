"""Models to Pyomo, to be extended and solved there, and from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mipforest.arrays import SparseMatrix
from mipforest.bridges import indicator_to_big_m
from mipforest.errors import PyomoModelError
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.model.model import Model

try:
    from pyomo.common.collections import ComponentMap
    from pyomo.common.log import LoggingIntercept
    from pyomo.environ import Block as PyomoBlock
    from pyomo.environ import (
        Constraint,
        Expression,
        Objective,
        Param,
        RangeSet,
        Set,
        Suffix,
        Var,
        maximize,
    )
    from pyomo.repn import generate_standard_repn
    from pyomo.repn.util import categorize_valid_components

    from mipforest.solvers.pyomo.session import concrete_model
except ImportError as error:  # the names are there all the same: ``from mipforest import *`` needs no extra
    _ABSENT: ImportError | None = error
else:
    _ABSENT = None

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


def to_pyomo(model: Model | MatrixForm) -> ConcreteModel:
    """Return a model as a Pyomo ``ConcreteModel``.

    A variable block becomes one ``Var`` of its name, indexed by its labels (numbers where it has none), a
    constraint block one ``Constraint``; the objective is the component ``objective``. Pyomo has one
    namespace: a name that is taken gets a ``_`` behind it. Start values become values of the variables;
    branching priorities are left out, as Pyomo has none.

    Indicator rows become big-M rows, which every solver of Pyomo takes, with the smallest M that the
    columns' bounds prove. (Disjuncts of ``pyomo.gdp`` would have to be transformed before any solver takes
    them, and need the same bounds.)

    Parameters
    ----------
    model
        The model, or its matrix form.

    Raises
    ------
    Unsupported
        If an indicator row has no finite big-M; the row and the column are named.
    ImportError
        If Pyomo is not installed.

    Examples
    --------
    >>> from mipforest import Model, to_pyomo
    >>> m = Model("knapsack")
    >>> take = m.binary("take", ["lamp", "rope", "tent"])
    >>> m.maximize([3.0, 4.0, 5.0] @ take)
    >>> m.add("weight", [2.0, 3.0, 4.0] @ take <= 5)
    <ConstraintBlock 'weight' of shape (), 1 rows, 3 nonzeros>
    >>> p = to_pyomo(m)
    >>> p.weight.body.to_string()
    '2.0*take[lamp] + 3.0*take[rope] + 4.0*take[tent]'
    """
    _require_pyomo()
    form = model.matrix() if isinstance(model, Model) else model
    bridged = indicator_to_big_m.apply(form) if form.indicators.n_rows else None
    pyomo_model, variables = concrete_model(form if bridged is None else bridged.form)
    if isinstance(model, Model) and model.start:
        _set_values(variables, form.to_point(model.start).tolist())
    return pyomo_model


def from_pyomo(model: ConcreteModel) -> MatrixForm:
    """Read a Pyomo model as a matrix form, which every solver, file and check of this package reads.

    - Variables come in the order of their declaration, also those that no row reads; their bounds are
      those of the variable within its domain. A fixed variable keeps its column, with both bounds at its
      value; its terms become constants.
    - Deactivated constraints, objectives and blocks are left out, also nested ones. A variable of a
      deactivated block that an active row reads has its column behind all others.
    - Names and indices become those of the blocks: ``b[1].w[3,age]`` is a column of the block ``b[1].w``.
    - Whether a quadratic objective is convex is for the solver to check.

    Parameters
    ----------
    model
        A concrete model with linear constraints and at most one active objective, linear or quadratic. It
        is not changed.

    Raises
    ------
    PyomoModelError
        Naming the component that such a form cannot hold: a constraint that is not linear, an objective
        that is not quadratic, a second objective, special ordered sets, disjunctions, complementarities, a
        domain with gaps, a fixed variable or a parameter without a value.
    ImportError
        If Pyomo is not installed.
    """
    return matrix_form(model)


def _require_pyomo() -> None:
    if _ABSENT is not None:
        raise ImportError("models to and from Pyomo need Pyomo; run: pip install pyomo") from _ABSENT


def _set_values(variables: list[Any], values: list[float]) -> None:
    """Set the values that are not left open; Pyomo is not to judge them."""
    for variable, value in zip(variables, values, strict=False):
        if value == value:  # NaN is open
            variable.set_value(value, skip_validation=True)


#: The name that Pyomo gives to a model without one.
_NAMELESS = "unknown"


def matrix_form(model: Any) -> MatrixForm:
    """Read a model; see :func:`mipforest.pyomo.from_pyomo`."""
    _require_pyomo()
    # Pyomo logs what it also raises.
    with LoggingIntercept(module="pyomo"):
        _require_known_components(model)
        columns = _Columns(list(model.component_data_objects(Var, active=True)))
        constraints = list(model.component_data_objects(Constraint, active=True))
        rows = [_Row.of(constraint, columns) for constraint in constraints]
        goal = _Goal.of(_single_objective(model), columns)
        bounds = np.array([_bounds(variable) for variable in columns.variables], dtype=float).reshape(-1, 2)
        integer = np.array([_is_integer(variable) for variable in columns.variables], dtype=bool)
    n, starts = len(integer), np.cumsum([0, *(len(row.columns) for row in rows)])
    A = sparse.csr_array(
        (
            np.array([factor for row in rows for factor in row.factors], dtype=float),
            np.array([column for row in rows for column in row.columns], dtype=np.int64),
            starts,
        ),
        shape=(len(rows), n),
    )
    c = np.zeros(n)
    c[goal.columns] = goal.factors
    return MatrixForm(
        c=c,
        A=_canonical(A),
        row_lower=np.array([row.lower for row in rows], dtype=float),
        row_upper=np.array([row.upper for row in rows], dtype=float),
        col_lower=bounds[:, 0],
        col_upper=bounds[:, 1],
        integer=integer,
        indicators=IndicatorRows.none(n),
        Q=goal.quadratic(n),
        offset=goal.constant,
        columns=named_blocks(columns.variables),
        rows=named_blocks(constraints),
        maximize=goal.maximize,
        name="" if model.name == _NAMELESS else model.name,
    )


class _Columns:
    """Numbers of the variables: the declared ones first, others as they are met."""

    def __init__(self, variables: Sequence[Any]) -> None:
        self.variables: list[Any] = []
        self._numbers = ComponentMap()
        for variable in variables:
            self.number(variable)

    def number(self, variable: Any) -> int:
        if variable not in self._numbers:
            self._numbers[variable] = len(self.variables)
            self.variables.append(variable)
        return int(self._numbers[variable])


@dataclass(frozen=True)
class _Row:
    """One row: ``lower <= sum of factors times columns <= upper``."""

    columns: list[int]
    factors: list[float]
    lower: float
    upper: float

    @staticmethod
    def of(constraint: Any, columns: _Columns) -> _Row:
        try:
            low, body, high = constraint.to_bounded_expression(evaluate_bounds=True)
            terms = generate_standard_repn(body, compute_values=True, quadratic=False)
        except ValueError as error:
            raise _unreadable("constraint", constraint, error) from error
        if terms.nonlinear_expr is not None:
            raise PyomoModelError(
                f"constraint {constraint.name!r} is not linear ({terms.nonlinear_expr}); a matrix form holds "
                "linear rows only: linearise or deactivate it"
            )
        constant = float(terms.constant)
        return _Row(
            [columns.number(variable) for variable in terms.linear_vars],
            [float(factor) for factor in terms.linear_coefs],
            -inf if low is None else float(low) - constant,
            inf if high is None else float(high) - constant,
        )


@dataclass(frozen=True)
class _Goal:
    """The objective: constant, linear terms, and terms ``factor * column * column``."""

    constant: float
    columns: list[int]
    factors: list[float]
    pairs: list[tuple[int, int]]
    pair_factors: list[float]
    maximize: bool

    @staticmethod
    def of(objective: Any, columns: _Columns) -> _Goal:
        if objective is None:
            return _Goal(0.0, [], [], [], [], maximize=False)
        try:
            terms = generate_standard_repn(objective.expr, compute_values=True, quadratic=True)
        except ValueError as error:
            raise _unreadable("objective", objective, error) from error
        if terms.nonlinear_expr is not None:
            raise PyomoModelError(
                f"objective {objective.name!r} is neither linear nor quadratic ({terms.nonlinear_expr}); a "
                "matrix form holds no more: reformulate it"
            )
        return _Goal(
            float(terms.constant),
            [columns.number(variable) for variable in terms.linear_vars],
            [float(factor) for factor in terms.linear_coefs],
            [(columns.number(first), columns.number(second)) for first, second in terms.quadratic_vars],
            [float(factor) for factor in terms.quadratic_coefs],
            maximize=objective.sense == maximize,
        )

    def quadratic(self, n: int) -> SparseMatrix | None:
        """Return the (n, n) matrix Q with ``1/2 x'Qx`` equal to the quadratic terms, or ``None``."""
        if not self.pairs:
            return None
        first, second = np.array(self.pairs).T
        # Entered both ways, a product gives Q_ij = Q_ji = factor, and a square Q_ii = 2 factor.
        entries = np.tile(np.array(self.pair_factors), 2), (np.r_[first, second], np.r_[second, first])
        return _canonical(sparse.csr_array(sparse.coo_array(entries, shape=(n, n))))


def _require_known_components(model: Any) -> None:
    """Refuse active components of a kind that a matrix form cannot hold, naming the first."""
    # Those that are read, or that have no meaning of their own.
    known = {PyomoBlock, Constraint, Expression, Objective, Param, RangeSet, Set, Suffix, Var}
    _, unknown = categorize_valid_components(model, active=True, valid=known, targets=set())
    for kind, components in unknown.items():
        if components:
            raise PyomoModelError(
                f"component {components[0].name!r} is a {kind.__name__}, which a matrix form cannot hold; "
                "transform the model in Pyomo first (pyomo.gdp and pyomo.mpec have transformations), or "
                "deactivate it"
            )


def _single_objective(model: Any) -> Any:
    """Return the active objective, ``None`` if there is none."""
    objectives = list(model.component_data_objects(Objective, active=True))
    if len(objectives) > 1:
        raise PyomoModelError(
            f"the model has {len(objectives)} active objectives, {objectives[0].name!r} and "
            f"{objectives[1].name!r} first; deactivate all but one"
        )
    return objectives[0] if objectives else None


def _bounds(variable: Any) -> tuple[float, float]:
    if variable.fixed:
        if variable.value is None:
            raise PyomoModelError(f"variable {variable.name!r} is fixed without a value; give it one")
        return float(variable.value), float(variable.value)
    try:
        low, high = variable.bounds
    except ValueError as error:
        raise _unreadable("variable", variable, error) from error
    return -inf if low is None else float(low), inf if high is None else float(high)


def _is_integer(variable: Any) -> bool:
    if variable.is_integer() or variable.is_continuous():
        return bool(variable.is_integer())
    raise PyomoModelError(
        f"the domain {variable.domain} of variable {variable.name!r} has gaps; a matrix form knows "
        "continuous and integer intervals: write the domain with binary variables"
    )


def _unreadable(kind: str, component: Any, error: Exception) -> PyomoModelError:
    reason = " ".join(str(error).split())
    return PyomoModelError(f"{kind} {component.name!r} cannot be read: {reason}")


def _canonical(matrix: SparseMatrix) -> SparseMatrix:
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def named_blocks(entries: Sequence[Any]) -> tuple[Block, ...]:
    """Return one block per run of entries of the same component, with its indices as labels.

    Parameters
    ----------
    entries
        Variables or constraints, in the order of their columns or rows.
    """
    blocks: list[Block] = []
    for _, run in groupby(entries, key=lambda entry: id(entry.parent_component())):
        members = list(run)
        blocks.append(_block(members, blocks[-1].stop if blocks else 0))
    return tuple(blocks)


def _block(members: Sequence[Any], start: int) -> Block:
    component = members[0].parent_component()
    name = component.name
    if not component.is_indexed():
        return Block(name, start, ())
    indices = [_as_tuple(member.index()) for member in members]
    axes = [tuple(dict.fromkeys(axis)) for axis in zip(*indices, strict=False)]
    if len({len(index) for index in indices}) == 1 and list(product(*axes)) == indices:
        labels = tuple(tuple(map(str, axis)) for axis in axes)
        return Block(name, start, tuple(map(len, axes)), labels)
    flat = tuple(f"{name}[{','.join(map(str, index))}]" for index in indices)
    return Block(name, start, (len(members),), None, flat)


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)
