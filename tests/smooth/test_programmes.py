"""Smooth models by general solvers: the same model, the same kind of answer."""

import numpy as np
import pytest
from test_smooth_models import STEP, cost_model
from test_squared_error import error_model

from mipforest import get_formulation, load
from mipforest.errors import SolverUnavailable
from mipforest.problem.tree_search import search_classes, solver_or_search
from mipforest.smooth.model import RowNorms
from mipforest.smooth.programmes import Ipopt, Programme

needs_ipopt = pytest.mark.skipif(not Ipopt.available(), reason="cyipopt is not installed")
SOLVERS = ["scipy:slsqp", "scipy:trust-constr", pytest.param("ipopt", marks=needs_ipopt)]


def models(rng):
    yield cost_model(rng, gamma=4.0, rates={0: 0.5})
    yield cost_model(rng, gamma=4.0, norms=RowNorms(("a",), 0.1, 0.3))
    yield error_model(rng, gamma=4.0, ridge=0.01, lam_local=0.1, lam_global=0.2)


def test_a_programme_has_the_models_value_and_gradients():
    rng = np.random.default_rng(0)
    for model in models(rng):
        programme = Programme(model)
        point = model.random_point(rng)
        flat = programme.flat_of(point)
        assert programme.value(flat)[0] == pytest.approx(model.objective(point))
        for name, part in programme.point_of(flat).items():
            assert part == pytest.approx(point[name])
        matrix, low, high = programme.linear()
        assert ((matrix @ flat >= low - 1e-9) & (matrix @ flat <= high + 1e-9)).all()
        flat = np.clip(
            flat + 0.01 * rng.random(len(flat)), programme.lower + 10 * STEP, programme.upper - 10 * STEP
        )
        gradient = programme.value(flat)[1]
        direction = rng.normal(size=len(flat))
        ends = [programme.value(flat + sign * STEP * direction)[0] for sign in (1, -1)]
        assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-5, abs=1e-8)
        jacobian = programme.constraints(flat)[1]
        ends = [programme.constraints(flat + sign * STEP * direction)[0] for sign in (1, -1)]
        assert jacobian @ direction == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-5, abs=1e-8)


#: Where the solvers stop, as a share of the value: 3e-6 at most here.
STOPPED = 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_find_the_same_local_optimum_from_the_same_start(solver):
    # From other starts some of them step over to another valley.
    rng = np.random.default_rng(6)
    for model in (
        cost_model(rng, gamma=8.0, K=2, depth=1),
        error_model(rng, gamma=4.0, depth=1, ridge=0.01),
        error_model(rng, gamma=4.0, depth=1, ridge=0.01, lam_local=0.02, lam_global=0.02),
    ):
        start = model.random_point(rng)
        own, other = (
            solver_or_search(name).descend(model, start, lambda: False) for name in ("l-bfgs", solver)
        )
        assert model.objective(own) < 0.995 * model.objective(start)
        assert model.objective(other) == pytest.approx(model.objective(own), rel=STOPPED)
        assert model.violation(other) <= 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_general_solvers_find_verified_local_optima(solver):
    data = load("iris").binarise("virginica").take(np.arange(0, 150, 3))
    result = (
        get_formulation("orct")(gamma=32.0, n_starts=1, rates=0.6)
        .build(data, 1)
        .solve(solver, time_limit=None)
    )
    assert result.verified
    assert result.solution.solver == solver
    assert result.objective < 0.2
    sparse = get_formulation("s-orct")(gamma=32.0, n_starts=1, stages=1, lam_global=0.05)
    own = sparse.build(data, 1).solve(time_limit=None)
    other = sparse.build(data, 1).solve(solver, time_limit=None)
    assert other.verified
    assert other.objective == pytest.approx(own.objective, rel=0.2)


def test_names_of_methods():
    problem = get_formulation("orct")(n_starts=1).build(load("iris").binarise("virginica"), 1)
    assert problem.solve("scipy", time_limit=0).solution.solver == "scipy:slsqp"
    with pytest.raises(
        SolverUnavailable, match=r"no method 'cobyla' of scipy.*known: scipy:slsqp, scipy:trust"
    ):
        problem.solve("scipy:cobyla")
    with pytest.raises(SolverUnavailable, match="'l-bfgs' has no methods: leave ':fast' out"):
        problem.solve("l-bfgs:fast")


def test_a_solver_that_is_not_there_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(search_classes()["ipopt"], "package", "no_such_package")
    with pytest.raises(SolverUnavailable, match="pip install cyipopt-wheels"):
        get_formulation("orct")().build(load("iris"), 2).solve("ipopt")
