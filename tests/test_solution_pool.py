"""The k best solutions, against enumeration."""

from itertools import product

import numpy as np
import pytest
from tolerance import same

from mipforest import Model
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


def test_what_has_no_pool_is_refused():
    m = knapsack(maximize=True)
    with pytest.raises(Unsupported, match="solver highs keeps its best solution only"):
        m.solution_pool(3, "highs")
    with pytest.raises(NotAllowed, match="k is 0"):
        m.solution_pool(0)
    m["x"].relax()
    with pytest.raises(Unsupported, match="without integers"):
        m.solution_pool(3)
