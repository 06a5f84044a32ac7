import numpy as np
import pytest
from enumerate_trees import best_tree_value, misclassified
from seeds import seeds
from tolerance import at_most, same

import mipforest.heuristics.contree as contree_module
from formulations.oct import Oct
from mipforest.data import Dataset, load
from mipforest.errors import SolverError, SolverUnavailable, Unsupported
from mipforest.heuristics.contree import contree, contree_within, fitted_nodes
from mipforest.searches.exact.search import compile_kernels
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", seeds(2, 8))
@pytest.mark.parametrize("depth", [1, 2])
def test_fewest_errors(seed, depth):
    pytest.importorskip("pycontree")
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (12, 2)).astype(float)
    data = Dataset.from_arrays(X, np.append([0, 1, 2], rng.integers(0, 3, 9)))
    tree = contree(data, Topology(depth))
    errors = (tree.predict(data.X) != data.y).sum()
    assert same(errors, best_tree_value(data.X, misclassified(data.y), depth, 0.0, 1))


@pytest.mark.slow
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


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("alpha", "depth"), [(0.0, 2), (0.07, 2), (0.02, 1)])
def test_as_a_search_it_proves_the_optimum_of_the_exact_search(alpha, depth):
    pytest.importorskip("pycontree")
    problem = Oct(alpha=alpha).build(load("wine"), depth)
    found, expected = problem.solve("contree"), problem.solve("exact-search", gap=0.0)
    assert found.status == "optimal"
    assert found.verified
    assert found.objective == pytest.approx(expected.objective, abs=1e-9)
    assert at_most(found.bound, found.objective)
    assert found.objective <= found.bound + 1e-8


@pytest.mark.slow
def test_without_time_to_end_it_claims_nothing():
    pytest.importorskip("pycontree")
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.random((200, 5)), rng.integers(0, 2, 200))
    found = Oct(variant="paper").build(data, 5).solve("contree", start="cart", time_limit=0.1)
    assert (found.status, found.bound) == ("time_limit", 0.0)
    assert found.verified


def test_it_refuses_what_it_does_not_count():
    pytest.importorskip("pycontree")
    with pytest.raises(Unsupported, match="N_min is 3"):
        Oct(N_min=3).build(load("wine"), 1).solve("contree")


def test_a_stop_or_the_limit_ends_its_process_and_leaves_no_tree():
    pytest.importorskip("pycontree")
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.random((3000, 8)), rng.integers(0, 2, 3000))
    budget = TimeBudget()
    # A stop while the search compiles ends the solve: building asks for it.
    compile_kernels(budget, Oct(variant="valid").build(data, 4, declare=False).structure, 4)
    budget.stop()
    assert contree_within(data, Topology(5), budget=budget) == (None, False)
    found = Oct().build(data, 4, budget=budget, whole=False).solve("contree")
    assert found.status == "interrupted"
    assert found.tree is not None


@pytest.mark.slow
def test_what_its_process_says_is_told():
    pytest.importorskip("pycontree")
    words = np.full((4, 2), "x")
    given = {"depth": 1, "split_cost": 0.0, "time_limit": 9.0}
    with pytest.raises(SolverError, match="contree ended with code 1; it said: "):
        fitted_nodes(words, np.array([0, 1, 0, 1]), **given, stopped=lambda: False, loaded=lambda _: None)
