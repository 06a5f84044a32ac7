"""A limit on the features of a split: rows, definition, starts and searches against all trees within it."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from every_tree import is_parted, optimum
from tolerance import at_most, less

import mipforest
from formulations.oct_h import OctH
from formulations.ort import OrtH
from mipforest.data import Dataset
from mipforest.errors import ParameterError
from mipforest.problem.parameters import check_parameters, parse_parameters
from mipforest.searches.oblique.problem import ObliqueProblem, cheap_supports
from mipforest.trees import Tree

#: What rows may be missed by, in units of the objective here.
NEAR = 1e-6


def points(seed, n, p=3):
    """Samples of p features whose target needs all of them."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)), 1)
    return X, X @ rng.uniform(0.5, 1.0, p) + 0.2 * rng.standard_normal(n)


def classes(seed, n=8):
    X, score = points(seed, n)
    y = (score > np.median(score)).astype(int)
    return Dataset.from_arrays(X, y, scaling="none")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("seed", "K", "alpha", "depth"), [(0, 1, 0.0, 1), (1, 2, 0.0, 1), (2, 2, 0.05, 1), (3, 2, 0.0, 2)]
)
def test_oct_h_has_the_optimum_of_all_trees_within_the_limit(seed, K, alpha, depth):
    problem = OctH(max_features=K, alpha=alpha).build(classes(seed), depth)
    own = ObliqueProblem.of(problem.structure, problem.data.X, depth)
    expected = optimum(own) / problem.structure.unit
    for solver in ("highs", "oblique-search"):
        result = problem.solve(solver=solver, start="cart", gap=0)
        assert result.status == "optimal"
        assert result.verified
        assert result.objective == pytest.approx(expected, abs=NEAR)
        assert ((result.tree.w != 0).sum(axis=1) <= K).all()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("K", [1, 2])
def test_ort_h_has_the_optimum_of_all_splits_within_the_limit(K):
    X, y = points(4, 8)
    data = Dataset.from_arrays(X, y, task="regression", scaling="none")
    problem = OrtH(max_features=K).build(data, 1)
    groups = ObliqueProblem.of(OctH().build(classes(4), 1).structure, data.X, 1)
    assert groups.n_groups == data.n  # no two samples are equal

    def loss(side):
        values = np.array([y[np.flatnonzero((groups.X[g] == data.X).all(axis=1))[0]] for g in side])
        return ((values - values.mean()) ** 2).sum()

    everything = range(data.n)
    best = min(
        loss(left) + loss(right)
        for size in range(1, data.n)
        for left in combinations(everything, size)
        for right in [tuple(g for g in everything if g not in left)]
        if any(is_parted(groups, F, left, right) for F in combinations(range(3), K))
    )
    result = problem.solve(solver="highs", gap=0)
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(best / loss(everything), abs=NEAR)
    assert ((result.tree.w != 0).sum(axis=1) <= K).all()


def test_a_limit_costs_something_and_more_features_never_do():
    data = classes(5, n=12)
    values = [OctH(max_features=K).build(data, 1).solve(solver="highs").objective for K in (1, 2, 3, 0)]
    assert all(at_most(later, earlier) for earlier, later in pairwise(values))
    assert less(values[3] + NEAR, values[0])


@pytest.mark.parametrize("model", ["oct-h", "ort-h", "ort-lh"])
def test_a_tree_beyond_the_limit_is_refused_by_definition_and_rows(model):
    X, y = points(6, 20)
    task = "classification" if model == "oct-h" else "regression"
    data = Dataset.from_arrays(X, y > y.mean() if model == "oct-h" else y, task=task)
    problem = mipforest.get_formulation(model)(max_features=2).build(data, 1)
    wide = Tree(1, np.full((1, 3), 1 / 3), np.array([-0.5]), np.array([0, 1] if model == "oct-h" else [0.0, 1.0]),
                tuple(data.classes) if model == "oct-h" else (), tuple(data.features.labels))  # fmt: skip
    polished = problem.formulation.relabel(wide, problem.instance)
    assert problem.formulation.evaluate(polished, problem.instance) == np.inf
    assert "feature_budget" in {row.name for row in problem.model.matrix().rows}


@pytest.mark.parametrize("start", OctH.starts)
def test_every_start_keeps_the_limit(start):
    X, y = points(7, 60, p=5)
    data = Dataset.from_arrays(X, (y > np.median(y)).astype(int))
    formulation = OctH(max_features=2)
    instance = formulation.build(data, 2).instance
    tree = formulation.start(start, instance)
    assert ((tree.w != 0).sum(axis=1) <= 2).all()
    assert np.isfinite(formulation.evaluate(tree, instance))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("solver", ["local-search", "oblique-search"])
def test_searches_keep_the_limit(solver):
    X, y = points(8, 150, p=5)
    data = Dataset.from_arrays(X, (y > np.median(y)).astype(int))
    problem = OctH(max_features=2).build(data, 2)
    result = problem.solve(solver=solver, start="cart", time_limit=5)
    assert result.verified
    assert ((result.tree.w != 0).sum(axis=1) <= 2).all()
    assert (result.tree.w != 0).sum(axis=1).max() == 2


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("oct", "one feature"),
        ("policy", "one feature"),
        ("ort", "one feature"),
        ("ort-l", "one feature"),
        ("opt", "one feature"),
        ("univariate-olct", "one feature"),
        ("margot", "hfs-margot .* B"),
        ("hfs-margot", "hfs-margot .* B"),
        ("sfs-margot", "hfs-margot .* B"),
        ("olct", "budgeted-olct .* B"),
    ],
)
def test_models_without_it_say_why(model, reason):
    cls = mipforest.get_formulation(model)
    with pytest.raises(ParameterError, match=f"{model} takes no max_features: .*{reason}"):
        check_parameters(cls, {"max_features": 2})
    with pytest.raises(ParameterError, match=f"{model} takes no max_features: .*{reason}"):
        parse_parameters(cls, ["max_features=2"])


def test_supports_have_free_features_up_to_the_limit():
    found, rest = cheap_supports(np.array([0.0, 0.0, 0.0, 0.5, 2.0]), 1.0, 2)
    assert found == [((0, 1), 0.0), ((0, 2), 0.0), ((1, 2), 0.0), ((0, 3), 0.5), ((1, 3), 0.5), ((2, 3), 0.5)]
    assert rest == np.inf
