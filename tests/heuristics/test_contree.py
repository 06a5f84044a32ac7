import numpy as np
import pytest
from enumerate_trees import best_tree_value, misclassified

import mipforest.heuristics.cart as contree_module
from mipforest.data import Dataset, load
from mipforest.errors import SolverUnavailable
from mipforest.heuristics.cart import contree
from mipforest.trees import Topology


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("depth", [1, 2])
def test_fewest_errors(seed, depth):
    pytest.importorskip("pycontree")
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (12, 2)).astype(float)
    data = Dataset.from_arrays(X, np.append([0, 1, 2], rng.integers(0, 3, 9)))
    tree = contree(data, Topology(depth))
    errors = (tree.predict(data.X) != data.y).sum()
    assert errors == best_tree_value(data.X, misclassified(data.y), depth, 0.0, 1)


def test_cost_of_a_split():
    pytest.importorskip("pycontree")
    data = load("wine")
    splits = [contree(data, Topology(2), split_cost=cost).n_splits for cost in (0.0, 0.06, 0.3)]
    assert splits == sorted(splits, reverse=True)
    assert splits[0] == 3
    assert splits[-1] < 3


def test_says_what_to_install(monkeypatch):
    monkeypatch.setattr(contree_module, "find_spec", lambda name: None)
    with pytest.raises(SolverUnavailable, match=r"pip install 'mipforest\[dp\]'"):
        contree(load("iris"), Topology(2))
