"""A matrix form as a Pyomo model, and one run of a solver on it through Pyomo."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from io import StringIO
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from pyomo.common.fileutils import Executable, Library
from pyomo.common.log import LoggingIntercept
from pyomo.common.tee import capture_output
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.environ import (
    Binary,
    ConcreteModel,
    Constraint,
    Integers,
    Objective,
    Reals,
    SolverFactory,
    Var,
    maximize,
    minimize,
)
from pyomo.opt import SolverResults
from pyomo.solvers.plugins.solvers.persistent_solver import PersistentSolver
from scipy import sparse

from mipforest.arrays import FloatArray
from mipforest.errors import LicenseLimit, NotAllowed, SolverError
from mipforest.model.matrix import Block, MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.bound_check import NO_OPTIMUM, no_bound
from mipforest.solvers.checks import whole_bounds, writable
from mipforest.solvers.solution import Status


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


#: Our status for each of Pyomo's termination conditions that is not an error.
STATUS = {
    "optimal": Status.OPTIMAL,
    "globallyOptimal": Status.OPTIMAL,
    "infeasible": Status.INFEASIBLE,
    # Several interfaces say so when the dual is infeasible, which leaves open whether there is a point.
    "unbounded": Status.INFEASIBLE_OR_UNBOUNDED,
    "infeasibleOrUnbounded": Status.INFEASIBLE_OR_UNBOUNDED,
    "feasible": Status.LIMIT,
    "maxTimeLimit": Status.TIME_LIMIT,
    "maxIterations": Status.LIMIT,
    "maxEvaluations": Status.LIMIT,
    "userInterrupt": Status.INTERRUPTED,
}


class Answer(NamedTuple):
    """What came back from Pyomo.

    Attributes
    ----------
    status
        How the run ended.
    x
        (n,) point, or ``None``.
    dual_bound
        Bound on the optimal value, infinite where Pyomo does not tell.
    message
        Pyomo's termination condition.
    """

    status: Status
    x: FloatArray | None
    dual_bound: float
    message: str


@contextmanager
def _programs_of_the_path() -> Iterator[None]:
    """Let Pyomo find programs on the PATH alone: it looks into the working directory first, and runs what is there."""
    managers = [
        getattr(registry, "_manager", registry) for registry in (Executable, Library)
    ]  # itself in Pyomo 6.8
    before = [(manager, manager._find) for manager in managers]
    for manager, find in before:
        manager._find = partial(find, cwd=False)
    try:
        yield
    finally:
        for manager, find in before:
            manager._find = find


@cache
def usable(interface: str) -> bool:
    """Return whether Pyomo has an interface of that name and finds the solver behind it."""
    if interface not in SolverFactory:
        return False
    with LoggingIntercept(module="pyomo"), _programs_of_the_path():
        try:
            return bool(SolverFactory(interface).available(exception_flag=False))
        except Exception:  # what cannot even be asked is of no use
            return False


def run(
    interface: str,
    form: MatrixForm,
    settings: SolveSettings,
    native: dict[str, Any],
    time_limit: float | None,
) -> Answer:
    """Solve a model through an interface.

    Parameters
    ----------
    interface
        Pyomo's name of it.
    form
        A model with columns and without indicator rows.
    settings
        For the log, and the options to name in an error.
    native
        Options under the solver's own names.
    time_limit
        Seconds for Pyomo's own ``timelimit``, or ``None``.

    Raises
    ------
    SolverError
        If the interface fails, with what it said; :class:`NotAllowed` if it was given options of the user,
        :class:`LicenseLimit` if it speaks of a licence.
    """
    if not _read_columns(form):
        # Pyomo passes no variable on, and interfaces differ on a model without any.
        return Answer(Status.OPTIMAL, _nearest_to_zero(form), form.offset, "no expression reads a variable")
    model, variables = concrete_model(_plain(form))
    limit = {} if time_limit is None else {"timelimit": time_limit}
    _end_threads_of_highs()
    with _output_to(settings), _programs_of_the_path():
        try:
            solver = SolverFactory(interface)
            if isinstance(solver, PersistentSolver):
                solver.set_instance(model)
            results = solver.solve(
                model, load_solutions=False, tee=settings.log is not None, options=native, **limit
            )
        except Exception as error:  # every interface raises its own
            raise _failure(interface, error, settings) from error
        condition = results.solver.termination_condition.name
        status = STATUS.get(condition, Status.ERROR)
        x = None if status in NO_OPTIMUM else _point(form, model, variables, results)
    if status is Status.OPTIMAL and x is None:
        raise SolverError(f"Pyomo's interface {interface} says {condition} and gives no point")
    return Answer(status, x, _dual_bound(form, status, x, results), condition)


def _end_threads_of_highs() -> None:
    """End the pool of threads that HiGHS keeps from an earlier run: it refuses another number of threads."""
    highspy = sys.modules.get("highspy")
    if highspy is not None:
        highspy.Highs.resetGlobalScheduler(True)


@contextmanager
def _output_to(settings: SolveSettings) -> Iterator[None]:
    """Send what Pyomo and the solver print to the log, or nowhere."""
    if settings.log is None:
        with capture_output(StringIO(), capture_fd=True):
            yield
    else:
        with writable(settings.log).open("a") as log, capture_output(log, capture_fd=True):
            yield


def _failure(interface: str, error: Exception, settings: SolveSettings) -> SolverError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    if "license" in reason.lower():
        return LicenseLimit(
            f"Pyomo's interface {interface}: {reason}; use a licence for models of this size, or another "
            "solver, such as highs"
        )
    if settings.solver_options:
        given = ", ".join(f"{name} = {value!r}" for name, value in settings.solver_options.items())
        return NotAllowed(f"Pyomo's interface {interface} fails with the options {given}: {reason}")
    return SolverError(f"Pyomo's interface {interface} fails: {reason}")


def _plain(form: MatrixForm) -> MatrixForm:
    """Leave out what some interface stumbles over: idle rows, and integers with fractional bounds."""
    sided = np.isfinite(form.row_lower) | np.isfinite(form.row_upper)
    kept = np.flatnonzero(sided & (np.diff(form.A.indptr) > 0))
    lower, upper = whole_bounds(form)
    return replace(
        form,
        A=form.A[kept],
        row_lower=form.row_lower[kept],
        row_upper=form.row_upper[kept],
        col_lower=lower,
        col_upper=upper,
        rows=(Block("row", 0, (len(kept),)),),
    )


def _point(form: MatrixForm, model: Any, variables: list[Any], results: SolverResults) -> FloatArray | None:
    """Return the point of the results, ``None`` without one."""
    if not len(results.solution):
        return None
    try:
        model.solutions.load_from(results)
    except ValueError:  # Pyomo's word for a status that comes without a point
        return None
    # A variable that no expression reads is not passed on; any value within its bounds will do.
    x = _nearest_to_zero(form)
    for column in _read_columns(form):
        if variables[column].value is None:
            return None
        x[column] = variables[column].value
    return x


def _nearest_to_zero(form: MatrixForm) -> FloatArray:
    x: FloatArray = np.clip(0.0, *whole_bounds(form))
    return x


def _read_columns(form: MatrixForm) -> list[int]:
    """Return the columns with an entry in the objective or in a row."""
    parts = [np.flatnonzero(form.c), form.A.indices]
    if form.Q is not None:
        parts.append(form.Q.indices)
    return [int(column) for column in np.unique(np.concatenate(parts))]


def _dual_bound(form: MatrixForm, status: Status, x: FloatArray | None, results: SolverResults) -> float:
    if not form.is_mip:
        return form.objective(x) if status is Status.OPTIMAL and x is not None else no_bound(form)
    bound = results.problem.upper_bound if form.maximize else results.problem.lower_bound
    return float(bound) if isinstance(bound, int | float) and np.isfinite(bound) else no_bound(form)
