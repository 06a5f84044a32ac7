import numpy as np
import pytest

from formulations.oct import Oct
from formulations.oct_h import OctH
from mipforest.data import load
from mipforest.heuristics.cart import cart
from mipforest.problem.formulation import deepened
from mipforest.trees import Topology

pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("formulation", [Oct(alpha=0.01), OctH(alpha=0.01)], ids=str)
def test_a_solution_starts_the_next_depth(formulation):
    data = load("iris").take(np.arange(0, 150, 10))
    shallow = formulation.build(data, 1).solve("highs", time_limit=20)
    problem = formulation.build(data, 2)
    start = formulation.start("previous-depth", problem.instance)
    assert formulation.evaluate(start, problem.instance) <= shallow.objective + 1e-9
    assert problem.model.violations(formulation.encode(start, problem.instance)).max <= 1e-6
    result = problem.solve("highs", start="previous-depth", time_limit=0.3)
    assert result.objective <= shallow.objective + 1e-9
    assert result.verified


def test_deepened_predicts_the_same():
    data = load("wine")
    tree = cart(data, Topology(2))
    deeper = deepened(tree)
    assert deeper.depth == 3
    np.testing.assert_array_equal(deeper.predict(data.X), tree.predict(data.X))


def test_depth_one_falls_back_to_cart():
    data = load("wine")
    formulation = Oct()
    instance = formulation.bind(data, Topology(1))
    one, other = (formulation.start(name, instance) for name in ("previous-depth", "cart"))
    np.testing.assert_array_equal(one.predict(data.X), other.predict(data.X))
