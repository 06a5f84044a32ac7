"""Neighbourhoods of the best tree: which groups are decided anew, and that better trees are found there."""

import numpy as np
import pytest
from margin_data import random_data, random_tree
from tolerance import less

from formulations.margot import Margot
from mipforest.problem.driver import Driver, Incumbent
from mipforest.searches.routing.plugin import Routing, _CandidateTrees
from mipforest.searches.routing.plunge import COMPLETE
from mipforest.searches.routing.search import Neighbourhoods, near
from mipforest.searches.routing.svm_backend import SvmBackend


def test_groups_close_to_a_hyperplane_wait_there_and_the_others_stay_where_the_tree_has_them():
    distance = np.array([[4.0, 1, 9], [1, 9, 9], [3, 2, 9], [5, 9, 1], [2, 9, 9], [6, 9, 2]])
    goes_right = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0], [1, 0, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    distance, goes_right = (np.pad(a, ((0, 0), (0, 4))) for a in (distance, goes_right))  # the last level
    none, some, every = (near(goes_right, distance, share) for share in (0.0, 0.3, 1.0))
    assert none.tolist() == [4, 3, 3, 6, 5, 5]
    assert some.tolist() == [
        1,
        0,
        3,
        2,
        0,
        5,
    ]  # two of six at the root, then one of two at both of its children
    assert every.tolist() == [0] * 6


@pytest.fixture(scope="module")
def poor():
    """A problem with a poor tree, the value of that, and a backend."""
    problem = Margot(C=(0.1, 100.0)).build(random_data(5, n=40, p=3), 2)
    trees = _CandidateTrees(Driver(Routing(), problem), None)
    known = random_tree(np.random.default_rng(0), problem.data, 2, epsilon=1e-3)
    trees._driver.incumbent = Incumbent(problem)
    trees._driver.incumbent.offer(known)
    return problem, trees, SvmBackend(trees.convex_nodes())


def test_a_better_tree_is_found_within_few_steps(poor):
    problem, trees, backend = poor
    around, stop, start = Neighbourhoods(trees.scores, backend.at), np.zeros(1, np.int64), trees._driver.value
    for _ in range(60):
        node, max_steps = around.start(trees._driver.value, trees._driver.value)
        result = backend.plunge(node, trees._driver.value, max_steps, stop)
        if result.end == COMPLETE:
            trees.realised(result)
        around.record(result.steps, result.open, trees._driver.value)
    assert less(trees._driver.value, start)
    assert trees._driver.value == pytest.approx(problem.formulation.evaluate(trees.best, problem.instance))
    assert not problem.worst_violation(problem.encoded(trees.best))


def test_they_take_their_share_of_the_steps_and_begin_anew_around_a_better_tree(poor):
    _, trees, backend = poor
    around = Neighbourhoods(trees.scores, backend.at)
    assert around.due(0, gap=0.0)
    around.record(100, [], 1.0)
    assert not around.due(150, gap=1.0)
    assert around.due(200, gap=0.0)  # no neighbourhood has used up its steps yet
    around.start(1.0, 1.0)
    around.record(400, [(0.0, backend.first())], 1.0)
    around.start(1.0, 1.0)
    assert not around.due(5000, gap=0.09)
    assert around.due(5000, gap=0.11)
    around.reset()
    assert around.due(5000, gap=0.0)
