"""What constraints cost: the optima with and without each; which ones cannot hold together is said of the problem."""

import numpy as np
import pandas as pd
import pytest
from tolerance import same

from mipforest import get_formulation
from mipforest.data import Dataset
from mipforest.problem.constraints import AtMostFeatures, Forbid, LimitLabel, MinLeaf, Require
from mipforest.problem.prices import priced
from mipforest.problem.result import held_in_words


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({name: rng.integers(0, 4, 20) for name in ("age", "dose", "sex")})
    frame["ill"] = np.where(frame.age + frame.dose > 3, "yes", "no")
    return Dataset.from_frame(frame, "ill")


def solved(data, *constraints):
    problem = get_formulation("oct")().build(data, depth=1)
    problem.constrain(*constraints)
    return problem, problem.solve(time_limit=20)


def test_a_price_is_the_difference_of_two_optima(data):
    asked = [Forbid("age"), MinLeaf(2), LimitLabel("yes", 0.9)]
    problem, result = solved(data, *asked)
    prices = [held.price for held in priced(problem, result, 20).constraints]
    for k, price in enumerate(prices):
        _, without = solved(data, *asked[:k], *asked[k + 1 :])
        assert without.status == "optimal"
        assert price.objective == pytest.approx(without.objective)
        assert same(price.least, price.most)
        assert price.most == pytest.approx(result.objective - without.objective, abs=1e-9)


def test_without_a_proof_the_price_has_limits(data):
    problem, result = solved(data, Forbid("age"))
    free = get_formulation("oct")().build(data, depth=1).solve(time_limit=20)
    price = priced(problem, result, 1e-9).constraints[0].price
    if price is not None and price.most is not None:
        assert price.least <= result.objective - free.objective + 1e-9
        assert price.most >= result.objective - free.objective - 1e-9


def test_constraints_that_cannot_hold_together_are_named(data):
    _, result = solved(data, Forbid("sex"), Require("age"), Require("dose"), LimitLabel("yes", 0.9))
    assert result.tree is None
    said = result.solution.warnings[-1]
    assert said.startswith("no tree satisfies require age and require dose together")  # of one split
    _, result = solved(data, AtMostFeatures(0), MinLeaf(1), Require("age"))
    said = result.solution.warnings[-1]
    assert said.startswith(
        "no tree satisfies at-most-features 0 and require age together; with any one of them"
    )


def test_constraints_are_not_blamed_for_rows_by_hand(data):
    problem = get_formulation("oct")().build(data, depth=1)
    problem.constrain(Forbid("age"), MinLeaf(2))
    branches = problem.model["d"]
    problem.model.add("one", branches.sum() >= 1)
    problem.model.add("none", branches.sum() <= 0)
    result = problem.solve(time_limit=20)
    assert result.tree is None
    assert not any("forbid age" in text for text in result.solution.warnings)
    assert {"one", "none"} <= set(result.conflict.blocks)


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (None, ""),
        ({"objective": 0.1, "bound": 0.1, "least": 0.0, "most": 0.0}, "costs nothing"),
        (
            {"objective": 0.1, "bound": 0.1, "least": 0.05, "most": 0.05},
            "costs 0.05: without it the optimum is 0.1",
        ),
        ({"objective": 0.1, "bound": 0.0, "least": 0.05, "most": 0.15}, "costs 0.05 to 0.15"),
        ({"objective": 0.1, "bound": 0.0, "least": 0.0, "most": 0.15}, "costs at most 0.15"),
        ({"objective": 0.1, "bound": None, "least": 0.05, "most": None}, "costs at least 0.05"),
        ({"objective": None, "bound": None, "least": 0.0, "most": None}, "its cost is not known"),
    ],
)
def test_prices_in_words(price, said):
    held = {"value": 0.912, "limit": 0.9, "share": True, "binds": True, "price": price}
    assert held_in_words(held) == ("91.2%, limit 90.0%", "binds", said)


def test_a_constraint_without_degrees_holds():
    held = {"value": 0.0, "limit": 0.0, "share": False, "binds": None}
    assert held_in_words(held) == ("holds", "", "")
    assert held_in_words(held | {"value": 2.0}) == ("2, limit 0", "", "")
