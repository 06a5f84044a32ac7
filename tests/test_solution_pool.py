"""The k best solutions, against enumeration."""

from itertools import product

import numpy as np
import pytest
from tolerance import same

from mipforest import Model, solve
from mipforest.errors import NotAllowed, Unsupported


def knapsack(maximize):
    m = Model()
    x = m.binary("x", 5)
    m.add("weight", [2.0, 3.0, 4.0, 5.0, 6.0] @ x <= 9)
    m.add("some", x.sum() >= 1)
    worth = [3.1, 4.2, 5.4, 6.8, 7.7] @ x
    (m.maximize if maximize else m.minimize)(worth)
    return m


@pytest.mark.parametrize("maximize", [False, True])
def test_the_best_solutions(maximize):
    m = knapsack(maximize)
    points = [np.array(x, dtype=float) for x in product([0, 1], repeat=5)]
    values = sorted((m.objective(x) for x in points if m.violations(x).max == 0), reverse=maximize)
    pool = m.solution_pool(4, gap=0.0)
    assert same([one.objective for one in pool], values[:4])
    assert len({tuple(one["x"]) for one in pool}) == 4
    assert len(m.solution_pool(100)) == len(values)


def mixed(seed, *, quadratic):
    """Binaries, an integer with values between its bounds, continuous variables, an indicator."""
    rng = np.random.default_rng(seed)
    m = Model()
    b, i = m.binary("b", 2), m.integer("i", lower=-1, upper=2)
    x = m.continuous("x", 2, lower=-1, upper=2)
    c = rng.integers(-3, 4, (4, 5)).astype(float)
    m.add("row", c[:3, :2] @ b + c[:3, 2] * i + c[:3, 3:] @ x <= 2.5)
    m.add_indicator("if", b[0], 0, x[0] + 2 * x[1] <= 0.5)
    objective = c[3, :2] @ b + c[3, 2] * i + c[3, 3:] @ x
    m.minimize(objective + (x[0] - 0.3) ** 2 + x[1] ** 2 if quadratic else objective)
    return m


def enumerated(m):
    """Return the least objective for each choice of the integers that has a feasible point."""
    found = {}
    for b0, b1, i in product((0, 1), (0, 1), (-1, 0, 1, 2)):
        fixed = m.copy()
        fixed["b"].fix([b0, b1])
        fixed["i"].fix(i)
        solution = solve(fixed, gap=0.0)
        if solution.found:
            found[b0, b1, i] = solution.objective
    return found


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_choice_of_integers_comes_once_with_its_best_continuous_part(seed, quadratic):
    m = mixed(seed, quadratic=quadratic)
    expected = enumerated(m)
    for k in (3, 20):
        pool = m.solution_pool(k, gap=1e-9)
        keys = [(*one["b"].tolist(), float(one["i"])) for one in pool]
        assert len(set(keys)) == len(pool) == min(k, len(expected))
        assert [one.objective for one in pool] == pytest.approx([expected[key] for key in keys], abs=1e-6)
        assert sorted(expected.values())[: len(pool)] == pytest.approx(
            [one.objective for one in pool], abs=1e-6
        )


def test_the_continuous_part_is_optimal_whatever_the_gap():
    m = mixed(0, quadratic=False)
    expected = enumerated(m)
    pool = m.solution_pool(3, gap=0.9)
    found = {(*one["b"].tolist(), float(one["i"])): one.objective for one in pool}
    assert len(found) == 3
    assert list(found.values()) == pytest.approx([expected[key] for key in found], abs=1e-6)


def test_gurobi_finds_the_same():
    pytest.importorskip("gurobipy")
    m = mixed(1, quadratic=False)
    both = [[one.objective for one in m.solution_pool(5, solver, gap=1e-9)] for solver in ("gurobi", "highs")]
    assert both[0] == pytest.approx(both[1], abs=1e-6)


def test_what_has_no_pool_is_refused():
    m = knapsack(maximize=True)
    with pytest.raises(NotAllowed, match="k is 0"):
        m.solution_pool(0)
    m["x"].relax()
    with pytest.raises(Unsupported, match="without integers"):
        m.solution_pool(3)
