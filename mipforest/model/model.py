"""The solver-agnostic model object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Unpack

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.errors import (
    DataValueError,
    ExpressionError,
    ModelError,
    ShapeError,
    UnknownNameError,
    closest,
)
from mipforest.model.algebra import entry_name
from mipforest.model.blocks import (
    ConstraintBlock,
    ConstraintBlocks,
    IndexSets,
    VarArray,
    VariableBlocks,
    add_switch,
    check_bounds,
    check_name,
    constraint_block,
    index_sets,
    objective,
    stack_blocks,
    stack_indicators,
)
from mipforest.model.check import Violations, complete_point, violations
from mipforest.model.expressions import LinearExpr, QuadraticExpr
from mipforest.model.matrix import (
    Block,
    MatrixForm,
    Statistics,
    Values,
    read_only,
    row_bounds,
    statistics,
    widen,
)
from mipforest.model.operators import Relation, fitted, numeric

if TYPE_CHECKING:
    from mipforest.conflicts import Conflict
    from mipforest.settings import SolveKeywords
    from mipforest.solvers.base import Solver
    from mipforest.solvers.solution import PooledSolution


Named = TypeVar("Named")


class SolutionLike(Protocol):
    """What a model keeps of a solution: see :class:`mipforest.solvers.solution.Solution`."""

    @property
    def solver(self) -> str:
        """Who solved it."""

    @property
    def status(self) -> str:
        """Why the solver stopped."""

    @property
    def x(self) -> FloatArray | None:
        """(n,) point."""

    @property
    def row_duals(self) -> FloatArray | None:
        """(m,) duals of the linear rows."""

    @property
    def reduced_costs(self) -> FloatArray | None:
        """(n,) reduced costs."""


class Model:
    """A mixed-integer model with linear constraints and a linear or quadratic objective.

    Variables and constraints come in named n-dimensional blocks; no Python object exists per row or
    column. The model knows no solver: :meth:`matrix` gives the flat arrays that solvers read.

    Parameters
    ----------
    name
        Name of the model, written to files.
    watch
        Called with a number of terms: after each change, of all rows; before variables are added, and for each
        expression before or once it is made, of all rows and of what is made. What it raises ends the declaration of a
        model for which there is no time, or no memory.

    Examples
    --------
    >>> m = Model("knapsack")
    >>> take = m.binary("take", ["lamp", "rope", "tent"])
    >>> m.maximize([3.0, 4.0, 5.0] @ take)
    >>> m.add("weight", [2.0, 3.0, 4.0] @ take <= 5)
    <ConstraintBlock 'weight' of shape (), 1 rows, 3 nonzeros>
    """

    def __init__(self, name: str = "", watch: Callable[[int], None] | None = None) -> None:
        self.name, self.watch = name, watch
        self._blocks: dict[str, tuple[Block, VarArray]] = {}
        self._lower: FloatArray = np.zeros(0)
        self._upper: FloatArray = np.zeros(0)
        self._integer: BoolArray = np.zeros(0, dtype=bool)
        self._constraints = ConstraintBlocks()
        self._objective = objective(self, 0.0, maximize=False)
        self._start: dict[str, FloatArray] = {}
        self._priorities: dict[str, IntArray] = {}
        self._meanings: dict[str, str] = {}
        self._form: MatrixForm | None = None
        self._last: tuple[SolutionLike, tuple[Block, ...], bool] | None = None

    # ------------------------------------------------------------------ variables

    def continuous(
        self,
        name: str,
        over: IndexSets = (),
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        meaning: str = "",
    ) -> VarArray:
        """Add a block of continuous variables, free unless bounds are given.

        Parameters
        ----------
        name
            Name of the block, unique in the model.
        over
            Index sets, one per dimension: lengths, or sequences whose items label the entries; ``()`` for a
            scalar.
        lower, upper
            Bounds: numbers, or arrays that broadcast to the block's shape.
        meaning
            What the variables mean, in a line: ``print(model)`` shows it.

        Raises
        ------
        ModelError
            If the name is taken, or bounds cross or are NaN.
        """
        return self._add_block(name, over, lower, upper, integer=False, meaning=meaning)

    def nonnegative(
        self, name: str, over: IndexSets = (), *, upper: Any = np.inf, meaning: str = ""
    ) -> VarArray:
        """Add a block of continuous variables that are at least 0; see :meth:`continuous`."""
        return self._add_block(name, over, 0.0, upper, integer=False, meaning=meaning)

    def binary(self, name: str, over: IndexSets = (), *, meaning: str = "") -> VarArray:
        """Add a block of variables that are 0 or 1; see :meth:`continuous`."""
        return self._add_block(name, over, 0.0, 1.0, integer=True, meaning=meaning)

    def integer(
        self,
        name: str,
        over: IndexSets = (),
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        meaning: str = "",
    ) -> VarArray:
        """Add a block of integer variables, free unless bounds are given; see :meth:`continuous`."""
        return self._add_block(name, over, lower, upper, integer=True, meaning=meaning)

    def _add_block(
        self, name: str, over: Any, lower: Any, upper: Any, *, integer: bool, meaning: str = ""
    ) -> VarArray:
        check_name(name, self._blocks, "variable block")
        shape, labels = index_sets(over)
        low, high = (fitted(side, shape, f"bounds of block {name!r}") for side in (lower, upper))
        check_bounds(low, high, f"block {name!r}")
        start, size = self.n_columns, prod(shape)
        self.announce(size)
        self._lower = np.concatenate([self._lower, low.ravel()])
        self._upper = np.concatenate([self._upper, high.ravel()])
        self._integer = np.concatenate([self._integer, np.full(size, integer)])
        variables = VarArray(self, np.arange(start, start + size).reshape(shape), labels)
        self._blocks[name] = (Block(name, start, shape, labels), variables)
        if meaning:
            self._meanings[name] = meaning
        self._changed()
        return variables

    @property
    def n_columns(self) -> int:
        """Number of columns so far."""
        return len(self._lower)

    @property
    def column_blocks(self) -> tuple[Block, ...]:
        """The naming blocks of the columns, in order."""
        return tuple(block for block, _ in self._blocks.values())

    def __contains__(self, name: object) -> bool:
        """Return whether there is a variable block of that name; ``model.constraints`` has those of rows."""
        return name in self._blocks

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the variable blocks, in order."""
        return iter(tuple(self._blocks))

    @property
    def variables(self) -> Mapping[str, VarArray]:
        """All variable blocks by name, in order; ``print`` shows what each means."""
        blocks = {name: variables for name, (_, variables) in self._blocks.items()}
        return MappingProxyType(VariableBlocks(blocks, self._meanings))

    def __getitem__(self, name: str) -> VarArray:
        """Return a variable block by name.

        Raises
        ------
        UnknownNameError
            If there is none; the nearest names are suggested.
        """
        if name not in self._blocks:
            raise UnknownNameError(
                f"no variable block {name!r} in this model{closest(str(name), self._blocks)}"
            )
        return self._blocks[name][1]

    # ------------------------------------------------------------------ constraints

    @property
    def constraints(self) -> Mapping[str, ConstraintBlock]:
        """All constraint blocks by name, in order, with ``print`` as algebra; an unknown name: UnknownNameError."""
        return MappingProxyType(self._constraints)

    def add(
        self, name: str, relation: Relation, *, over: IndexSets | None = None, meaning: str = ""
    ) -> ConstraintBlock:
        """Add a block of constraints.

        Parameters
        ----------
        name
            Name of the block, unique among the model's constraints.
        relation
            A comparison of expressions (``x.sum(axis=1) == 1``) or :func:`between`.
        over
            Index sets that label the rows, one per dimension of the comparison; numbers when left out.
        meaning
            What the rows state, in a line: ``print(model)`` shows it.

        Raises
        ------
        ModelError
            If the name is taken, the comparison reads another model's variables, the index sets do not fit,
            a coefficient is NaN or infinite, or a side is NaN or one that no point satisfies (``<= -inf``).
        """
        check_name(name, self._constraints, "constraint block")
        block = constraint_block(self, name, relation, over)
        block.meaning = meaning
        return self._insert(block)

    def add_indicator(
        self,
        name: str,
        binary: VarArray,
        value: int,
        relation: Relation,
        *,
        over: IndexSets | None = None,
        meaning: str = "",
    ) -> ConstraintBlock:
        """Add constraints that hold whenever a binary variable has a value.

        Parameters
        ----------
        name, relation, over, meaning
            As in :meth:`add`.
        binary
            Binary variables whose shape broadcasts to the comparison's.
        value
            0 or 1.

        Raises
        ------
        ModelError
            As :meth:`add`, and if a variable is not binary or the value is neither 0 nor 1.
        """
        check_name(name, self._constraints, "constraint block")
        block = add_switch(constraint_block(self, name, relation, over), binary, value)
        block.meaning = meaning
        return self._insert(block)

    def add_copy(self, block: ConstraintBlock) -> ConstraintBlock:
        """Add a block of another model whose columns this model has too, at the same numbers.

        Raises
        ------
        ModelError
            If the name is taken.
        """
        check_name(block.name, self._constraints, "constraint block")
        return self._insert(block.copied_to(self))

    def _insert(self, block: ConstraintBlock) -> ConstraintBlock:
        self._constraints[block.name] = block
        self._changed()
        return block

    def remove(self, name: str) -> None:
        """Take a constraint block out of the model.

        Raises
        ------
        UnknownNameError
            If there is none of that name.
        """
        block = self._constraints[name]
        del self._constraints[block.name]
        self._changed()

    # ------------------------------------------------------------------ objective

    def minimize(self, expression: LinearExpr | QuadraticExpr | float) -> None:
        """Set the objective, to be minimised; a former objective is replaced.

        Parameters
        ----------
        expression
            A scalar linear or quadratic expression, or a number.

        Raises
        ------
        ModelError
            If it is not scalar, reads another model's variables, or a coefficient is NaN or infinite.
        """
        self._objective = objective(self, expression, maximize=False)
        self._changed()

    @property
    def objective_expression(self) -> LinearExpr | QuadraticExpr:
        """The objective as an expression, to make another one of it: ``m.minimize(m.objective_expression + x)``."""
        return self._objective.expression

    def maximize(self, expression: LinearExpr | QuadraticExpr | float) -> None:
        """Set the objective, to be maximised; see :meth:`minimize`."""
        self._objective = objective(self, expression, maximize=True)
        self._changed()

    def under(self, prefix: str) -> Scope:
        """Return this model with a prefix for names: what is added to it gets ``prefix.name`` here.

        Parameters
        ----------
        prefix
            A non-empty text.

        Examples
        --------
        >>> m = Model()
        >>> left = m.under("left")
        >>> x = left.binary("x", 2)
        >>> list(m), list(left)
        (['left.x'], ['x'])
        """
        return Scope(self, prefix)

    # ------------------------------------------------------------------ the names of other modelling packages

    def add_variables(
        self,
        *,
        name: str,
        over: IndexSets = (),
        lower: Any = -np.inf,
        upper: Any = np.inf,
        integer: bool = False,
        binary: bool = False,
    ) -> VarArray:
        """Add a block of variables, as linopy calls it: :meth:`continuous`, :meth:`integer` or :meth:`binary`."""
        if binary:
            return self.binary(name, over)
        return self._add_block(name, over, lower, upper, integer=integer)

    def add_constraint(
        self, relation: Relation, name: str, *, over: IndexSets | None = None
    ) -> ConstraintBlock:
        """Add rows, as gurobipy and linopy call it: :meth:`add`, with the relation first."""
        return self.add(name, relation, over=over)

    add_constraints = add_constraint

    def set_objective(
        self, expression: LinearExpr | QuadraticExpr | float, sense: Literal["min", "max"] = "min"
    ) -> None:
        """Set the objective, as gurobipy calls it: :meth:`minimize` or :meth:`maximize`."""
        if sense not in ("min", "max"):
            raise DataValueError(f"sense is {sense!r}; give 'min' or 'max'")
        (self.maximize if sense == "max" else self.minimize)(expression)

    # ------------------------------------------------------------------ solve parameters

    @property
    def start(self) -> Mapping[str, FloatArray]:
        """Values from which a solver may start, by block; NaN where open."""
        return MappingProxyType(self._start)

    def set_start(self, values: Values) -> None:
        """Set values to start from; blocks and NaN entries that are left out stay open (a partial start).

        Raises
        ------
        UnknownNameError, ShapeError
            If a block is unknown or a shape is not the block's.
        """
        checked: dict[str, FloatArray] = {}
        for name, value in values.items():
            block = self[name]
            array = numeric(value)
            if array.shape != block.shape:
                raise ShapeError(
                    f"start of block {name!r} has shape {array.shape}, the block has shape {block.shape}; "
                    "give an array of the block's shape, NaN where open"
                )
            checked[name] = array.copy()
        self._start = checked

    @property
    def priorities(self) -> Mapping[str, IntArray]:
        """Branching priorities by block, higher first; 0 where not given."""
        return MappingProxyType(self._priorities)

    def set_priority(self, name: str, priority: Any) -> None:
        """Set branching priorities of a block: one whole number, or an array that broadcasts.

        Raises
        ------
        UnknownNameError, ShapeError, DataValueError
            If the block is unknown, an array does not fit it, or a priority is no whole number.
        """
        block = self[name]
        values = fitted(priority, block.shape, f"priorities of block {name!r}")
        if not np.isfinite(values).all() or (values != np.round(values)).any():
            raise DataValueError(f"priorities of block {name!r} must be whole numbers")
        self._priorities[name] = values.astype(np.int64)

    # ------------------------------------------------------------------ the last solution

    def store_solution(self, solution: SolutionLike) -> None:
        """Take a solution whose values, duals and reduced costs variables and rows give from now on.

        :func:`mipforest.solve` and :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>` call it.
        """
        form = self.matrix()
        self._last = solution, form.rows, form.is_mip

    def last_point(self, n_columns: int) -> FloatArray:
        """Return the flat point of the last solution.

        Parameters
        ----------
        n_columns
            Number of columns that it must have.

        Raises
        ------
        ModelError
            If there is no point, or it has fewer columns.
        """
        solution, _ = self._solved("value")
        x = solution.x
        if x is None:
            raise ModelError(
                f"there is no value: {solution.solver} ended without a point ({solution.status}); "
                "model.explain_infeasibility() names conflicting rows of an infeasible model"
            )
        return self._covering(x, n_columns)

    def last_reduced_costs(self, n_columns: int) -> FloatArray:
        """Return the reduced costs of the last solution; parameters and errors as for :meth:`last_point`."""
        solution, _ = self._solved("reduced cost")
        if solution.reduced_costs is None:
            raise self._without_duals("reduced costs", solution)
        return self._covering(solution.reduced_costs, n_columns)

    def last_duals(self, name: str, size: int) -> FloatArray:
        """Return the duals of a constraint block at the last solution.

        Parameters
        ----------
        name, size
            Name of the block, and its number of rows.

        Raises
        ------
        ModelError
            If there are none.
        """
        solution, rows = self._solved("dual")
        if solution.row_duals is None:
            raise self._without_duals("duals", solution)
        for block in rows:
            if block.name == name and block.size == size:
                return solution.row_duals[block.start : block.stop]
        raise ModelError(f"constraint block {name!r} was added after the last solve; solve the model again")

    def _solved(self, what: str) -> tuple[SolutionLike, tuple[Block, ...]]:
        if self._last is None:
            raise ModelError(
                f"there is no {what} yet: the model was not solved; call mipforest.solve(model) first"
            )
        return self._last[:2]

    def _without_duals(self, what: str, solution: SolutionLike) -> ModelError:
        if self._last is not None and self._last[2]:
            why = "the model has integer variables or indicator rows, of which there are none"
        else:
            why = f"{solution.solver} ended with status {solution.status} and gave none"
        return ModelError(
            f"there are no {what}: {why}; HiGHS, Gurobi and Clarabel give them at optima of continuous models"
        )

    def _covering(self, values: FloatArray, n_columns: int) -> FloatArray:
        if len(values) < n_columns:
            name = entry_name(self.column_blocks, n_columns - 1)
            raise ModelError(f"{name} was added after the last solve; solve the model again")
        return values

    # ------------------------------------------------------------------ views

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Model:
        """Read a model from an ``.mps``, ``.lp`` or ``.mof.json`` file, with ``.gz`` or without.

        :func:`mipforest.files.read_model` says which error is raised where.

        Its variables are one block ``columns`` and its rows one block ``rows`` (those of indicators ``indicators``),
        whose labels are the names in the file: ``m["columns"]["x1"]``, ``m.constraints["rows"]["c1"]``.
        """
        from mipforest.files import read_model

        return Model.from_matrix(read_model(path))

    @staticmethod
    def from_matrix(form: MatrixForm) -> Model:
        """Return a model of flat arrays, to be changed, added to and solved; the arrays are copied.

        Entries of blocks whose names follow no pattern are labelled by these names.

        Raises
        ------
        ModelError
            If bounds cross, or a number is NaN.
        """
        model = Model(form.name)
        n = form.n_columns
        check_bounds(form.col_lower, form.col_upper, f"model {form.name!r}")
        model._lower, model._upper = form.col_lower.copy(), form.col_upper.copy()
        model._integer = form.integer.copy()
        for block in _labelled(form.columns or (Block("columns", 0, (n,)),)):
            columns = np.arange(block.start, block.stop).reshape(block.shape)
            model._blocks[block.name] = (
                block,
                VarArray(model, columns, block.labels or (None,) * len(block.shape)),
            )
        rows = form.rows or ((Block("rows", 0, (form.n_rows,)),) if form.n_rows else ())
        model._take_rows(rows, form.A, form.row_lower, form.row_upper)
        switched = form.indicators
        model._take_rows(
            switched.rows or ((Block("indicators", 0, (switched.n_rows,)),) if switched.n_rows else ()),
            switched.A, switched.lower, switched.upper, switched.binary, switched.value,
        )  # fmt: skip
        model._objective = objective(model, _expression(model, form), maximize=form.maximize)
        return model

    def _take_rows(
        self,
        blocks: Sequence[Block],
        A: SparseMatrix,
        lower: FloatArray,
        upper: FloatArray,
        binary: IntArray | None = None,
        value: IntArray | None = None,
    ) -> None:
        """Add the rows of flat arrays."""
        for block in _labelled(blocks):
            check_name(block.name, self._constraints, "constraint block")
            taken = slice(block.start, block.stop)
            self._constraints[block.name] = ConstraintBlock(
                self,
                block.name,
                block.shape,
                block.labels or (None,) * len(block.shape),
                A[taken],
                lower[taken].copy(),
                upper[taken].copy(),
                None if binary is None else binary[taken].copy(),
                None if value is None else value[taken].copy(),
                block.flat_names,
            )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write ``.mps``, ``.lp`` or ``.mof.json``, or one with ``.gz``: :func:`mipforest.files.write_model`."""
        from mipforest.files import write_model

        write_model(self.matrix(), path)

    def matrix(self) -> MatrixForm:
        """Return the model as flat arrays: the view that solvers, bridges, writers and checks read.

        Explicit zeros are dropped here. The arrays are read-only; calls give the same form until the model changes.
        """
        if self._form is None or self._form.name != self.name:
            self._form = read_only(self._assemble())
        return self._form

    def _assemble(self) -> MatrixForm:
        n = self.n_columns
        blocks = self._constraints.values()
        A, lower, upper, rows = stack_blocks([block for block in blocks if not block.is_indicator], n)
        c, offset, Q = self._objective.coefficients(n)
        return MatrixForm(
            c=c,
            A=A,
            row_lower=lower,
            row_upper=upper,
            col_lower=self._lower.copy(),
            col_upper=self._upper.copy(),
            integer=self._integer.copy(),
            indicators=stack_indicators([block for block in blocks if block.is_indicator], n),
            Q=Q,
            offset=offset,
            columns=tuple(block for block, _ in self._blocks.values()),
            rows=rows,
            maximize=self._objective.maximize,
            name=self.name,
        )

    def bounds(self, expression: LinearExpr) -> tuple[FloatArray, FloatArray]:
        """Return the interval of an expression's values over the variables' bounds, entry by entry.

        Returns
        -------
        lower, upper
            Arrays of the expression's shape, infinite where an unbounded variable decides; constraints are not used.

        Raises
        ------
        ExpressionError
            If it is not linear, or reads another model's variables.
        """
        if not isinstance(expression, LinearExpr):
            raise ExpressionError(f"bounds of a {type(expression).__name__}; give a linear expression")
        if expression.owner is not self:
            raise ExpressionError(
                "bounds of another model's expression; build it from this one: model['name']"
            )
        matrix = widen(expression.matrix, self.n_columns).copy()
        matrix.eliminate_zeros()
        least, greatest = row_bounds(matrix, self._lower, self._upper)
        shape, constant = expression.shape, expression.constant
        return (least + constant).reshape(shape), (greatest + constant).reshape(shape)

    def point(self, values: Values | FloatArray) -> FloatArray:
        """Lay values by block out as one flat point; a flat point is given back as it is."""
        if isinstance(values, Mapping):
            return self.matrix().to_point(values)
        return np.asarray(values, dtype=np.float64)

    def violations(self, values: Values | FloatArray) -> Violations:
        """Measure how far values (by block, or flat) miss bounds, integrality and rows, in plain numpy."""
        return violations(self.matrix(), self.point(values))

    def objective(self, values: Values | FloatArray) -> float:
        """Return the objective at values (by block, or flat), in plain numpy."""
        return self.matrix().objective(complete_point(self.matrix(), self.point(values)))

    def explain_infeasibility(
        self, solver: str | Solver = "highs", *, time_limit: float | None = 30.0
    ) -> Conflict:
        """Find a smallest set of rows and bounds that contradict each other.

        See :func:`mipforest.conflicts.explain_infeasibility`, whose parameters and errors these are.
        """
        from mipforest.conflicts import explain_infeasibility

        return explain_infeasibility(self, solver, time_limit=time_limit)

    def solution_pool(
        self, k: int, solver: str | Solver = "highs", **keywords: Unpack[SolveKeywords]
    ) -> list[PooledSolution]:
        """Find the k best solutions that differ in integers: :func:`mipforest.solving.solution_pool`."""
        from mipforest.solving import solution_pool

        return solution_pool(self, k, solver, **keywords)

    def stats(self) -> Statistics:
        """Return the size and numerical range of the model."""
        return statistics(self.matrix())

    def copy(self) -> Model:
        """Return an independent copy; take its variables from it (``copy["w"]``), not from the original."""
        twin = Model(self.name)
        twin._lower, twin._upper, twin._integer = self._lower.copy(), self._upper.copy(), self._integer.copy()
        twin._blocks = {
            name: (block, VarArray(twin, variables.columns, variables.labels))
            for name, (block, variables) in self._blocks.items()
        }
        for name, block in self._constraints.items():
            twin._constraints[name] = block.copied_to(twin)
        twin._objective = self._objective.copied_to(twin)
        twin._start = {name: values.copy() for name, values in self._start.items()}
        twin._meanings = dict(self._meanings)
        twin._priorities = {name: values.copy() for name, values in self._priorities.items()}
        return twin

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {self.stats()}>"

    def __str__(self) -> str:
        sense = "maximise" if self._objective.maximize and not isinstance(self, Scope) else "minimise"
        return (
            f"{self!r}\n\n{sense}\n  {self.objective_expression}\n\n"
            f"subject to\n{self.constraints}\n\nwith\n{self.variables}"
        )

    def _changed(self) -> None:
        self._form = None
        self.announce(0)

    def announce(self, terms: int) -> None:
        """Tell whoever watches the model of terms that are about to be made in addition to those of its rows."""
        if self.watch is not None:
            self.watch(terms + sum(block.A.nnz for block in self._constraints.values()))


def _labelled(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks, labelled by the names of their entries where these follow no pattern."""
    for block in blocks:
        names = block.flat_names
        yield block if names is None or len(block.shape) != 1 else replace(block, labels=(names,))


def _expression(model: Model, form: MatrixForm) -> LinearExpr | QuadraticExpr:
    """Return the objective of flat arrays as an expression."""
    linear = LinearExpr(sparse.csr_array(form.c[np.newaxis, :]), np.array([form.offset]), (), model)
    if form.Q is None or not form.Q.nnz:
        return linear
    triangle = sparse.coo_array(sparse.triu(form.Q))
    weights = np.where(triangle.row == triangle.col, 0.5, 1.0) * triangle.data
    pairs = np.column_stack([triangle.row, triangle.col]).astype(np.int64)
    return QuadraticExpr(linear, sparse.csr_array(weights[np.newaxis, :]), pairs)


class Scope(Model):
    """A model under a prefix: its blocks stand in another model, with the prefix before their names.

    Made by :meth:`Model.under`. Variables are those of the other model, so that expressions of several scopes can be
    mixed. An objective is not that of the other model: :attr:`objective_expression` has it, to be put together there.

    Parameters
    ----------
    model
        The other model.
    prefix
        The prefix.
    """

    __slots__ = ("_expression", "_within", "prefix")

    def __init__(self, model: Model, prefix: str) -> None:
        check_name(prefix, {}, "prefix")
        self.__dict__ = model.__dict__  # one state, whichever of the two changes it
        self._within = model
        self.prefix = f"{prefix}."
        self._expression: LinearExpr | QuadraticExpr = objective(self._root, 0.0, maximize=False).expression

    @property
    def _root(self) -> Model:
        return self._within._root if isinstance(self._within, Scope) else self._within

    def _add_block(
        self, name: str, over: Any, lower: Any, upper: Any, *, integer: bool, meaning: str = ""
    ) -> VarArray:
        check_name(name, {}, "variable block")
        return self._within._add_block(
            self.prefix + name, over, lower, upper, integer=integer, meaning=meaning
        )

    def __contains__(self, name: object) -> bool:
        """Return whether there is a variable block of that name under the prefix."""
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the variable blocks under the prefix, without it."""
        return iter(self.variables)

    @property
    def variables(self) -> Mapping[str, VarArray]:
        """The variable blocks under the prefix, by their names without it."""
        return MappingProxyType(
            VariableBlocks(self._own(self._within.variables), self._own(self._root._meanings))
        )

    def __getitem__(self, name: str) -> VarArray:
        """Return a variable block by its name without the prefix; :class:`UnknownNameError` if there is none."""
        own = self.variables
        if name not in own:
            raise UnknownNameError(
                f"no variable block {name!r} under {self.prefix!r} in this model{closest(str(name), own)}"
            )
        return own[name]

    @property
    def constraints(self) -> Mapping[str, ConstraintBlock]:
        """The constraint blocks under the prefix, by their names without it."""
        return MappingProxyType(ConstraintBlocks(self._own(self._within.constraints)))

    def add(
        self, name: str, relation: Relation, *, over: IndexSets | None = None, meaning: str = ""
    ) -> ConstraintBlock:
        """Add a block of constraints; see :meth:`Model.add`."""
        check_name(name, {}, "constraint block")
        return self._within.add(self.prefix + name, relation, over=over, meaning=meaning)

    def add_indicator(
        self,
        name: str,
        binary: VarArray,
        value: int,
        relation: Relation,
        *,
        over: IndexSets | None = None,
        meaning: str = "",
    ) -> ConstraintBlock:
        """Add constraints that hold whenever a binary has a value; see :meth:`Model.add_indicator`."""
        check_name(name, {}, "constraint block")
        return self._within.add_indicator(
            self.prefix + name, binary, value, relation, over=over, meaning=meaning
        )

    def remove(self, name: str) -> None:
        """Take a constraint block under the prefix out of the model."""
        self.constraints[name].remove()

    def minimize(self, expression: LinearExpr | QuadraticExpr | float) -> None:
        """Set :attr:`objective_expression`; the objective of the other model stays."""
        self._expression = objective(self._root, expression, maximize=False).expression

    def maximize(self, expression: LinearExpr | QuadraticExpr | float) -> None:
        """Set :attr:`objective_expression`, to be minimised, to the negative of an expression."""
        self._expression = -objective(self._root, expression, maximize=True).expression

    @property
    def objective_expression(self) -> LinearExpr | QuadraticExpr:
        """The objective that was declared under the prefix, to be minimised."""
        return self._expression

    @property
    def start(self) -> Mapping[str, FloatArray]:
        """Start values of the blocks under the prefix."""
        return MappingProxyType(self._own(self._within.start))

    def set_start(self, values: Values) -> None:
        """Set start values of blocks under the prefix; those of others stay."""
        own = {f"{self.prefix}{name}": value for name, value in values.items()}
        self._within.set_start({**self._within.start, **own})

    @property
    def priorities(self) -> Mapping[str, IntArray]:
        """Branching priorities of the blocks under the prefix."""
        return MappingProxyType(self._own(self._within.priorities))

    def set_priority(self, name: str, priority: Any) -> None:
        """Set branching priorities of a block under the prefix; see :meth:`Model.set_priority`."""
        self._within.set_priority(self.prefix + name, priority)

    def copy(self) -> Model:
        """Refuse a copy of a part.

        Raises
        ------
        ModelError
            Always.
        """
        raise ModelError(f"{self.prefix!r} is a part of a model and has no copy; copy the whole model")

    def values_of(self, values: Values) -> dict[str, FloatArray]:
        """Return the values of the blocks under the prefix, by their names without it, of those of the whole model."""
        return self._own(values)

    def __repr__(self) -> str:
        return f"<Scope {self.prefix!r} of {self._root!r}>"

    def _own(self, blocks: Mapping[str, Named]) -> dict[str, Named]:
        return {
            name.removeprefix(self.prefix): block
            for name, block in blocks.items()
            if name.startswith(self.prefix)
        }
