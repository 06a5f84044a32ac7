"""Distances of trees: fronts of loss against distance are those of an enumeration, and rows say the same."""

from itertools import product

import numpy as np
import pytest
from tolerance import at_most, same

import mipforest
from mipforest.data import Dataset
from mipforest.errors import DataError
from mipforest.heuristics.thresholds import tree_of_thresholds
from mipforest.problem.constraints import AtMostChanges, AtMostFeatures, Forbid, Recall, constraint_of
from mipforest.problem.expressions import NotExpressed


def drawn(seed, n=12, p=2, model="oct"):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, p)).astype(float)
    X[:2] = [[0.0] * p, [3.0] * p]
    y = X[:, 0] + X[:, 1] + rng.integers(0, 3, n)
    names = [f"x{j}" for j in range(p)]
    if model == "ort":
        return Dataset.from_arrays(X, y, features=names, task="regression")
    y = (y > np.median(y)).astype(int)
    y[:2] = 0, 1
    return Dataset.from_arrays(X, y, features=names)


def every_tree(problem):
    """All trees of depth 2 in which nodes below one without a split have none, with all labels or the best numbers."""
    charged, topology, data = problem.structure, problem.topology, problem.data
    q = len(charged.thresholds)
    for a, b, c in product(range(-1, q), repeat=3):
        if a < 0 and max(b, c) >= 0:
            continue
        splits = tree_of_thresholds(data, topology, charged.thresholds, np.array([a, b, c]))
        if data.classes:
            for labels in product(range(len(data.classes)), repeat=4):
                yield splits.__class__(**{**vars(splits), "leaf_value": np.array(labels)})
        else:
            yield problem.formulation.relabel(splits, problem.instance)


def given_tree(seed, model="oct"):
    """Last year's tree: the best one of other samples of the same columns."""
    problem = mipforest.get_formulation(model)(alpha=0.01).build(drawn(1000 + seed, model=model), 2)
    return problem.solve("exact-search", time_limit=20).tree


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", range(100))
def test_a_front_is_that_of_an_enumeration(seed):
    rng = np.random.default_rng(seed)
    model = "ort" if seed % 3 == 2 else "oct"
    alpha, tolerance = float(rng.choice([0.0, 0.02])), float(rng.choice([0.0, 0.35]))
    weights = [(1.0, 1.0, 1.0), (1.0, 0.5, 0.0), (2.0, 1.0, 1.0), (1.0, 0.0, 0.5)][seed % 4]
    data, last = drawn(seed, model=model), given_tree(seed, model)
    problem = mipforest.get_formulation(model)(alpha=alpha).build(data, 2)
    encoding = data.encoding
    beside = [(), (Forbid("x0"),), (AtMostFeatures(1),), (Recall("1", 0.8),)][
        int(rng.integers(4 - (model == "ort")))
    ]
    distance = AtMostChanges.of(last, tolerance=tolerance, weights=weights)
    values = []
    for tree in every_tree(problem):
        own = tree.with_scaling(encoding.offset, encoding.scale)
        if all(one.admits(own, data) for one in beside):
            far = distance.holds(own, data).value
            values.append((far, problem.formulation.evaluate(tree, problem.instance)))
    values = np.array(values)
    for most in np.unique(values[:, 0])[:4].tolist() if len(values) else []:
        best = values[values[:, 0] <= most + 1e-9, 1].min()
        asked = AtMostChanges.of(last, most, tolerance=tolerance, weights=weights)
        for solver in ("exact-search", "highs")[: 1 + (seed % 10 == 1)]:
            result = problem.with_only([*beside, asked]).solve(solver, time_limit=60, gap=1e-9)
            assert result.status == "optimal"
            assert result.verified, result.failed_checks
            assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
            assert at_most(result.bound, best + 1e-6)
            assert asked.admits(result.tree, data)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", range(8))
def test_an_update_is_the_nearest_tree_that_is_good_enough(seed):
    data, last = drawn(seed), given_tree(seed)
    problem = mipforest.get_formulation("oct")(alpha=0.01).build(data, 2)
    found = mipforest.update(problem, last, within=0.3, whole_front=True)
    encoding, distance = data.encoding, AtMostChanges.of(last)
    values = np.array(
        [
            (
                distance.holds(tree.with_scaling(encoding.offset, encoding.scale), data).value,
                problem.formulation.evaluate(tree, problem.instance),
            )
            for tree in every_tree(problem)
        ]
    )
    assert same(found.best.objective, values[:, 1].min())
    assert found.is_proven
    assert same(found.distance, values[values[:, 1] <= found.limit + 1e-9, 0].min())
    assert same(found.distance, distance.holds(found.nearest.tree, data).value)
    assert at_most(found.nearest.objective, found.limit)
    assert [point.distance for point in found.front] == list(range(len(found.front)))
    for point in found.front:
        near = values[values[:, 0] <= point.distance, 1]
        if len(near):
            assert same(point.result.objective, near.min())
        else:
            assert point.result.status == "infeasible"
    assert same(found.front[-1].result.objective, found.best.objective)


def test_a_split_that_stays_keeps_its_threshold():
    X = np.arange(8.0)[:, None]
    old = Dataset.from_arrays(X, (X[:, 0] > 3).astype(int), features=["x"])
    new = Dataset.from_arrays(X + 0.3, (X[:, 0] > 3).astype(int), features=["x"])
    last, problem = (mipforest.get_formulation("oct")().build(data, 1) for data in (old, new))
    found = mipforest.update(problem, last.solve(time_limit=20).tree, within=0.0)
    weights, intercepts = found.nearest.tree.original_units()
    assert same(-intercepts[0] / weights[0, 0], 3.5)
    assert not found.changes
    assert found.distance == 0.0  # exact: a sum of nothing


def test_what_no_distance_is():
    tree = given_tree(0)
    for weights in ((1.0, 2.0, 1.0), (1.0, 1.0, -1.0)):
        with pytest.raises(DataError, match="weights"):
            AtMostChanges.of(tree, 1, weights=weights)
    with pytest.raises(DataError, match="below the depth of 1"):
        AtMostChanges.of(tree, 1, depth=1)
    problem = mipforest.get_formulation("oct")(variant="paper").build(drawn(0), 2)
    with pytest.raises(NotExpressed, match="variant 'tight'"):
        problem.constrain(AtMostChanges.of(tree, 1))
    asked = AtMostChanges.of(tree, 2.0, tolerance=0.1)
    assert constraint_of(asked.to_dict()) == asked
