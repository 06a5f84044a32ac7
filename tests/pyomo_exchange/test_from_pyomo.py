"""Pyomo models read as matrix forms."""

import numpy as np
import pytest

from mipforest import from_pyomo
from mipforest.pyomo import PyomoModelError
from mipforest.settings import SolveSettings
from mipforest.solvers.clarabel import Clarabel
from mipforest.solvers.highs import Highs
from mipforest.solving import solve_form

pyo = pytest.importorskip("pyomo.environ")
INF = float("inf")


def solved(model):
    return solve_form(from_pyomo(model), Highs(), SolveSettings())


def test_variables_with_domains_bounds_and_fixed_values() -> None:
    p = pyo.ConcreteModel()
    p.free = pyo.Var()
    p.share = pyo.Var(domain=pyo.PercentFraction)
    p.count = pyo.Var([1, 2], domain=pyo.NonNegativeIntegers, bounds=(-3, 7))
    p.on = pyo.Var(domain=pyo.Binary)
    p.known = pyo.Var(bounds=(0, 1))
    p.known.fix(0.25)
    form = from_pyomo(p)
    assert form.column_names == ["free", "share", "count[1]", "count[2]", "on", "known"]
    np.testing.assert_array_equal(form.col_lower, [-INF, 0, 0, 0, 0, 0.25])
    np.testing.assert_array_equal(form.col_upper, [INF, 1, 7, 7, 1, 0.25])
    np.testing.assert_array_equal(form.integer, [False, False, True, True, True, False])
    assert form.name == ""


def test_rows_of_every_kind() -> None:
    p = pyo.ConcreteModel("rows")
    p.x, p.y = pyo.Var(), pyo.Var()
    p.factor = pyo.Param(initialize=2, mutable=True)
    p.twice = pyo.Expression(expr=p.factor * p.x)
    p.below = pyo.Constraint(expr=p.twice + 1 <= p.y)
    p.equal = pyo.Constraint(expr=p.x + p.y == 4 + p.y)
    p.within = pyo.Constraint(expr=pyo.inequality(-1, p.x - p.y + 2, 5))
    p.listed = pyo.ConstraintList()
    p.listed.add(p.y >= 3)
    form = from_pyomo(p)
    assert form.row_names == ["below", "equal", "within", "listed[1]"]
    np.testing.assert_array_equal(form.A.toarray(), [[2, -1], [1, 0], [1, -1], [0, 1]])
    np.testing.assert_array_equal(form.row_lower, [-INF, 4, -3, 3])
    np.testing.assert_array_equal(form.row_upper, [-1, 4, 3, INF])
    assert form.A.nnz == 6
    assert not form.maximize
    assert form.name == "rows"


def test_fixed_variables_are_constants_even_in_products() -> None:
    p = pyo.ConcreteModel()
    p.x, p.rate = pyo.Var(), pyo.Var()
    p.rate.fix(3)
    p.row = pyo.Constraint(expr=p.rate * p.x + p.rate <= 9)
    p.goal = pyo.Objective(expr=p.rate**2 + p.x)
    form = from_pyomo(p)
    np.testing.assert_array_equal(form.A.toarray(), [[3, 0]])
    assert form.row_upper[0] == 6
    assert form.offset == 9
    assert form.objective(np.array([1.0, 3.0])) == 10
    assert p.rate.fixed


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_a_quadratic_objective_has_the_value_that_pyomo_computes(sense) -> None:
    rng = np.random.default_rng(0)
    p = pyo.ConcreteModel()
    p.x = pyo.Var(range(4))
    factors = rng.normal(size=(4, 4))
    p.goal = pyo.Objective(
        expr=sum(factors[i, j] * p.x[i] * p.x[j] for i in range(4) for j in range(4))
        + sum((i - 1) * p.x[i] for i in range(4))
        + 7,
        sense=sense,
    )
    form = from_pyomo(p)
    assert form.maximize == (sense == pyo.maximize)
    np.testing.assert_array_equal(form.Q.toarray(), form.Q.toarray().T)
    for point in rng.normal(size=(5, 4)):
        for index, value in enumerate(point):
            p.x[index].value = value
        assert form.objective(point) == pytest.approx(pyo.value(p.goal), rel=1e-12)


def test_a_convex_programme_is_solved() -> None:
    p = pyo.ConcreteModel()
    p.x = pyo.Var([0, 1], bounds=(0, 10))
    p.sum = pyo.Constraint(expr=p.x[0] + p.x[1] >= 3)
    p.goal = pyo.Objective(expr=(p.x[0] - 1) ** 2 + 2 * p.x[1] ** 2)
    solution = Clarabel().solve(from_pyomo(p), SolveSettings())
    np.testing.assert_allclose(solution["x"], [7 / 3, 2 / 3], atol=1e-6)


def test_deactivated_parts_are_left_out_and_nested_blocks_read() -> None:
    p = pyo.ConcreteModel()
    p.x = pyo.Var(bounds=(0, 5))

    @p.Block([1, 2])
    def part(block, number):
        block.y = pyo.Var(bounds=(0, number))
        block.row = pyo.Constraint(expr=block.y + p.x <= number)

        @block.Block()
        def inner(deeper):
            deeper.row = pyo.Constraint(expr=block.y >= 0.5)

    p.cut = pyo.Constraint(expr=p.x <= 0.25)
    p.goal = pyo.Objective(expr=p.x + p.part[1].y, sense=pyo.maximize)
    p.other_goal = pyo.Objective(expr=p.x)
    p.other_goal.deactivate()
    p.part[2].deactivate()
    p.cut.deactivate()
    form = from_pyomo(p)
    assert form.column_names == ["x", "part[1].y"]
    assert form.row_names == ["part[1].row", "part[1].inner.row"]
    assert form.maximize
    assert solved(p).objective == pytest.approx(1.0)
    p.extra = pyo.Constraint(expr=p.part[2].y >= 1)
    assert from_pyomo(p).column_names == ["x", "part[1].y", "part[2].y"]


def test_sparse_index_sets_keep_their_names() -> None:
    p = pyo.ConcreteModel()
    p.flow = pyo.Var([("a", 1), ("b", 2), ("b", 1)])
    p.row = pyo.Constraint([3, 5], rule=lambda m, k: m.flow["a", 1] <= k)
    form = from_pyomo(p)
    assert form.column_names == ["flow[a,1]", "flow[b,2]", "flow[b,1]"]
    assert form.row_names == ["row[3]", "row[5]"]
    assert form.columns[0].shape == (3,)


def test_a_model_without_an_objective_or_anything_else() -> None:
    form = from_pyomo(pyo.ConcreteModel())
    assert (form.n_columns, form.n_rows, form.offset, form.is_quadratic) == (0, 0, 0.0, False)


def _with(statement):
    p = pyo.ConcreteModel()
    p.x = pyo.Var([0, 1], bounds=(0, 1))
    statement(p)
    return p


def _two_objectives(p):
    p.first, p.second = pyo.Objective(expr=p.x[0]), pyo.Objective(expr=p.x[1])


def _gap_in_the_domain(p):
    p.y = pyo.Var(domain=pyo.Set(initialize=[1, 3, 7]))


def _fixed_without_value(p):
    p.y = pyo.Var()
    p.y.fix()
    p.row = pyo.Constraint(expr=p.x[0] <= 1)


def _parameter_without_value(p):
    p.rate = pyo.Param(mutable=True)
    p.row = pyo.Constraint(expr=p.rate * p.x[0] <= 1)


def _quadratic_row(p):
    p.row = pyo.Constraint(expr=p.x[0] ** 2 <= 1)


def _nonlinear_objective(p):
    p.goal = pyo.Objective(expr=pyo.exp(p.x[0]))


def _cubic_objective(p):
    p.goal = pyo.Objective(expr=p.x[0] ** 3)


def _ordered_set(p):
    p.chain = pyo.SOSConstraint(var=p.x, sos=1)


def _complementarity(p):
    from pyomo.mpec import Complementarity, complements

    p.pair = Complementarity(expr=complements(p.x[0] >= 0, p.x[1] >= 0))


def _disjunction(p):
    from pyomo.gdp import Disjunction

    p.either = Disjunction(expr=[[p.x[0] <= 0], [p.x[1] <= 0]])


def _logic(p):
    p.truth = pyo.BooleanVar()
    p.always = pyo.LogicalConstraint(expr=p.truth)


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (_two_objectives, "2 active objectives, 'first' and 'second' first"),
        (_gap_in_the_domain, "domain .* of variable 'y' has gaps"),
        (_fixed_without_value, "variable 'y' is fixed without a value"),
        (_parameter_without_value, "constraint 'row' cannot be read: .*rate"),
        (_quadratic_row, r"constraint 'row' is not linear \(x\[0\]\*\*2\)"),
        (_nonlinear_objective, r"objective 'goal' is neither linear nor quadratic \(exp"),
        (_cubic_objective, "objective 'goal' is neither linear nor quadratic"),
        (_ordered_set, "component 'chain' is a SOSConstraint"),
        (_complementarity, "component 'pair' is a Complementarity"),
        (_disjunction, "component 'either.*' is a Disj"),
        (_logic, "component 'always' is a LogicalConstraint"),
    ],
)
def test_what_a_matrix_form_cannot_hold_is_named(statement, complaint) -> None:
    with pytest.raises(PyomoModelError, match=complaint):
        from_pyomo(_with(statement))


def test_it_prints_nothing(capfd) -> None:
    with pytest.raises(PyomoModelError):
        from_pyomo(_with(_parameter_without_value))
    assert capfd.readouterr() == ("", "")
