"""Models to Pyomo, to be extended and solved there, and from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mipforest.bridges import indicator_to_big_m
from mipforest.model.matrix import MatrixForm
from mipforest.model.model import Model

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
    try:
        from mipforest.solvers.pyomo.model import concrete_model
    except ImportError as error:
        raise ImportError("to_pyomo needs Pyomo; run: pip install pyomo") from error
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
    try:
        from mipforest.pyomo.reading import matrix_form
    except ImportError as error:
        raise ImportError("from_pyomo needs Pyomo; run: pip install pyomo") from error
    return matrix_form(model)


def _set_values(variables: list[Any], values: list[float]) -> None:
    """Set the values that are not left open; Pyomo is not to judge them."""
    for variable, value in zip(variables, values, strict=False):
        if value == value:  # NaN is open
            variable.set_value(value, skip_validation=True)
