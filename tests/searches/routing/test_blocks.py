"""Bounds by blocks of samples: never above a tree, above that of the root, and within limits."""

from time import monotonic

import numpy as np
import pytest
from margin_data import random_data, random_tree
from seeds import seeds
from tolerance import at_least, at_most, in_order, less

from formulations.margot import Margot
from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.problem.driver import Driver
from mipforest.searches.routing import blocks as blocks_module
from mipforest.searches.routing import plugin
from mipforest.searches.routing.blocks import BlockBound, root_bound
from mipforest.searches.routing.plugin import Routing, _CandidateTrees

#: A bound is proven by duals that are solved to a relative accuracy of about 1e-5.
GAP = 1e-6


def overlapping(seed: int, n: int, p: int = 2, *, weighted: bool = False) -> Dataset:
    """Labels of an oblique tree of depth 2, a tenth of them wrong; some samples are equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, (n, p)) / 7.0 if seed % 3 == 0 else rng.random((n, p))
    y = (X[:, 0] > 0.5) ^ (X[:, -1] > 0.4) ^ (rng.random(n) < 0.1)
    y[:2] = 0, 1
    return Dataset.from_arrays(X, y.astype(int), weights=rng.uniform(0.5, 2.0, n) if weighted else None)


def block_bound(problem) -> tuple[BlockBound, _CandidateTrees]:
    trees = _CandidateTrees(Driver(Routing(), problem), None)
    return BlockBound(trees.convex_nodes()), trees


def to_its_end(bound: BlockBound, tree) -> list[float]:
    told = []
    bound.run(tree.w, tree.b, deadline=np.inf, threads=1, on_progress=lambda found, _: told.append(found))
    return told


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", seeds(2, 6))
def test_the_bound_is_between_that_of_the_root_and_the_optimum(seed, monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK", 8)
    C = float(10.0 ** np.random.default_rng(seed).uniform(-1, 2))
    problem = Margot(C=(C, 2.0 * C)).build(overlapping(seed, 40, weighted=seed % 2 == 1), 2)
    optimum = problem.solve("routing", gap=GAP, threads=1, time_limit=60)
    assert optimum.status == "optimal"
    bound, trees = block_bound(problem)
    root = bound.bound
    told = to_its_end(bound, trees.best)
    assert in_order([root, *told])
    assert at_most(bound.bound, optimum.objective)


@pytest.mark.slow
def test_it_is_above_that_of_the_root_where_classes_overlap():
    problem = Margot(C=1.0).build(overlapping(1, 130), 2)
    bound, trees = block_bound(problem)
    root = root_bound(trees.convex_nodes())
    to_its_end(bound, trees.best)
    assert bound.bound > 1.1 * root


def test_at_depth_three_it_is_below_every_tree(monkeypatch):
    monkeypatch.setattr(blocks_module, "PASSES", (500,))
    data = overlapping(2, 130)
    problem = Margot(C=3.0).build(data, 3)
    bound, trees = block_bound(problem)
    to_its_end(bound, trees.best)
    rng = np.random.default_rng(0)
    grown = [random_tree(rng, data, 3, epsilon=1e-3) for _ in range(10)]
    polished = [problem.formulation.polish(tree, problem.instance) for tree in grown]
    values = [
        problem.formulation.evaluate(tree, problem.instance) for tree in (*grown, *polished, trees.best)
    ]
    assert all(at_most(bound.bound, value) for value in values)


def test_the_linear_terms_add_up_to_nothing_and_keep_what_the_root_pays():
    problem = Margot(C=1.0).build(overlapping(4, 240), 2)
    nodes = _CandidateTrees(Driver(Routing(), problem), None).convex_nodes()
    tree = problem.instance.known
    found = blocks_module._blocks(nodes, *blocks_module._root(nodes), tree.w, tree.b, 60)
    assert len(found) == 4
    total = np.sum([block.nodes.pull for block in found], axis=0)
    assert float(np.abs(total).max()) <= 1e-9 * max(float(np.abs(block.nodes.pull).max()) for block in found)
    # The value of one tree in all blocks is that for all samples: what the inequality of the proof begins with.
    whole = problem.formulation.evaluate(tree, problem.instance)
    assert np.mean([block.known for block in found]) == pytest.approx(whole, rel=1e-9)
    bound = BlockBound(nodes)
    first = [bound._searched(block, 1)[0] for block in found]
    assert np.mean(first) >= 0.98 * root_bound(nodes)


@pytest.mark.slow
def test_many_samples_have_a_tree_and_a_bound_within_limits(monkeypatch):
    monkeypatch.setattr(plugin, "MAX_GROUPS", 100)
    problem = Margot(C=1.0).build(overlapping(5, 600), 2, declare=False)
    began = monotonic()
    result = problem.solve("routing", time_limit=3.0)
    assert monotonic() - began < 3.0 + 2.0 + problem.budget.excluded_seconds
    assert result.status == "time_limit"
    assert result.verified, result.doubts
    events = result.solution.events
    assert in_order([event.bound for event in events])
    assert in_order([-event.objective for event in events])
    root = root_bound(_CandidateTrees(Driver(Routing(), problem), None).convex_nodes())
    assert less(root, result.bound)
    assert at_most(result.bound, result.objective)


def test_many_samples_are_stopped_by_an_event_with_the_bound_of_the_root(monkeypatch):
    monkeypatch.setattr(plugin, "MAX_GROUPS", 100)
    problem = Margot(C=1.0).build(overlapping(5, 600), 2)
    began = monotonic()
    result = problem.solve("routing", on_progress=lambda event: event.bound > 0.0)
    assert monotonic() - began < 2.0 + problem.budget.excluded_seconds
    assert result.status == "interrupted"
    assert result.bound > 0.0


def test_above_the_limit_of_plunges_no_certificate_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(plugin, "MAX_GROUPS", 20)
    problem = Margot().build(overlapping(7, 50), 2)
    with pytest.raises(Unsupported, match="certificates of at most 20 different samples"):
        problem.solve("routing", certificate=tmp_path / "proof.gz")


@pytest.mark.slow
def test_plunges_that_close_little_give_way_to_blocks(monkeypatch):
    monkeypatch.setattr(plugin, "MIN_BLOCKS", 100)
    monkeypatch.setattr(plugin, "LITTLE", 1.0)
    monkeypatch.setattr(plugin, "JUDGED_AFTER", 0.1)
    problem = Margot(C=1.0).build(overlapping(8, 400), 2)
    result = problem.solve("routing", time_limit=4.0)
    assert "blocks of samples" in result.solution.message
    assert result.status == "time_limit"
    assert at_most(result.bound, result.objective)
    assert in_order([event.bound for event in result.solution.events])


def test_without_a_limit_blocks_do_not_take_the_place_of_a_proof(monkeypatch):
    monkeypatch.setattr(plugin, "MIN_BLOCKS", 10)
    result = Margot(C=10.0).build(random_data(5, n=40, p=3), 2).solve("routing", time_limit=None)
    assert result.status == "optimal"
    assert at_least(result.bound, result.objective * (1 - 2e-4))
