"""The local search of oblique trees: what it begins with, and which trees it may report."""

import numpy as np
import pytest
from tolerance import at_most, same

from formulations.oct_h import OctH
from mipforest.data import Dataset
from mipforest.problem.driver import Driver
from mipforest.searches.oblique.descent import Descent, Splits
from mipforest.searches.oblique.plugin import ObliqueSearch, _offer_splits, _raised
from mipforest.searches.oblique.problem import ObliqueProblem

#: Price from which on supports are of no use: none is.
NO_LIMIT = 1e9


def majority(n_features=9, n=160, seed=0):
    """Samples whose class is the sign of a sum of many features: no few of them say it."""
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, 1.0], (n, n_features))
    return Dataset.from_arrays(X, (X.sum(axis=1) > n_features / 2).astype(int))


def descent_of(problem):
    own = ObliqueProblem.of(problem.structure, problem.data.X, problem.topology.depth)
    return Descent(own, NO_LIMIT, seed=0)


def test_one_split_on_all_features_is_tried_first():
    problem = OctH(alpha=0.05).build(majority(), depth=2)
    descent, found = descent_of(problem), []
    nothing = Splits(np.zeros((3, 9)), np.ones(3))
    descent.run(nothing, found.append, expired=lambda: False, visits=0)
    value = descent.value(found[-1]) / problem.structure.unit
    assert same(value, 9 * 0.05)  # no errors
    driver = Driver(ObliqueSearch(), problem)
    _offer_splits(driver, found[-1].w, found[-1].b)
    assert same(driver.value, value)


@pytest.mark.first_cases(6)
@pytest.mark.parametrize("seed", range(20))
def test_every_tree_of_the_descent_is_one_of_the_model(seed):
    """A node without a split sends all to the right, where the descent may split; rows have such splits further up."""
    problem = OctH(alpha=0.05, N_min=1 + seed % 3).build(majority(4, 30, seed), depth=2)
    descent, driver, found = descent_of(problem), Driver(ObliqueSearch(), problem), []
    descent.run(Splits(np.zeros((3, 4)), np.ones(3)), found.append, expired=lambda: False, visits=30)
    assert found
    for tree in found:
        _offer_splits(driver, tree.w, tree.b)
        assert at_most(driver.value, descent.value(tree) / problem.structure.unit)


def test_splits_below_a_node_without_one_move_up():
    w, b = np.zeros((7, 2)), np.arange(7.0)
    w[2], w[5], w[6] = (1, 0), (0, 1), (1, 1)  # the root has none; node 2 has two below it
    raised, intercepts = _raised(w, b)
    assert (raised[[0, 1, 2]] == w[[2, 5, 6]]).all()
    assert not raised[3:].any()
    assert (intercepts[[0, 1, 2]] == b[[2, 5, 6]]).all()
    assert not any(part.any() for part in _raised(np.zeros((3, 2)), b[:3]))
