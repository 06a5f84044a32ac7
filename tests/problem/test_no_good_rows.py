"""The trees near the optimum by a matrix solver are those of the exact listing, or of an enumeration."""

import numpy as np
import pytest
from tolerance import at_most, same
from univariate_cases import hold_for_all

from mipforest.constraints import feature_budget, features_used, forbid_features, limit_label
from mipforest.data import Dataset
from mipforest.problem.registry import make_formulation
from mipforest.problem.tree_search import get_search
from mipforest.solvers.base import get_solver

#: Distance within which HiGHS' tolerances may put a tree on either side of a limit.
UNDECIDED = 1e-5


def build(seed, *, depth=None, n=10, p=2, **parameters):
    """A small random problem: two or three classes, or few numbers."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, p)).astype(float)
    name, K = "ort" if seed % 5 == 4 else "oct", 2 + seed % 2
    y = rng.integers(0, 3 if name == "ort" else K, n)
    y[:3] = np.arange(3) % K
    data = Dataset.from_arrays(X, y, task="regression" if name == "ort" else "classification")
    own = {"alpha": (0.0, 0.05, 0.1)[seed % 3], "N_min": 1 + seed % 2, **parameters}
    variant = "paper" if seed % 7 == 6 else "tight"
    return make_formulation(name, own, variant).build(data, depth=depth or 1 + seed % 2)


def keys(trees, X):
    """Leaf of each sample, feature of each node and prediction of each leaf in use."""
    found = []
    for tree in trees:
        leaf = tree.apply(X)
        used = np.unique(leaf) - tree.topology.n_branches
        feature = np.where(tree.w.any(axis=1), np.abs(tree.w).argmax(axis=1), -1)
        found.append((leaf.tobytes(), feature.tobytes(), tuple(np.round(tree.leaf_value[used], 9))))
    return found


def check(seed, asked, add=None, **own):
    """The same trees, none twice, or as good ones where equally good ones are left out."""
    problem = build(seed, **own)
    if add is not None:
        add(problem)
    trees = problem.solve("highs", **asked).trees
    expected = problem.solve(**asked).trees
    assert trees.complete
    assert expected.complete
    X = problem.data.X_raw
    listed, other = keys(trees, X), keys(expected, X)
    assert len(set(listed)) == len(listed) == len(other)
    if "keep_trees" in asked:
        assert np.allclose(trees.objectives, expected.objectives, atol=UNDECIDED)
        return
    assert set(listed) == set(other)
    if not problem.changed():
        assert {tuple(row) for row in trees.threshold} == {tuple(row) for row in expected.threshold}


@pytest.mark.parametrize(("seed", "asked"), [(2, {"within": 0.4}), (4, {"keep_trees": 3})])
def test_the_trees_are_those_of_the_exact_listing(seed, asked):
    check(seed, asked)


@pytest.mark.slow
def test_the_trees_are_those_of_the_exact_listing_on_more_cases():
    def one(seed):
        check(seed, {"within": 0.3})
        check(seed, {"keep_trees": 4})

    hold_for_all(one, range(20))


@pytest.mark.slow
def test_constraints_leave_trees_out():
    def one(seed):
        check(seed, {"within": 0.2}, lambda problem: limit_label(problem, "0", 0.4), depth=1)
        check(seed, {"keep_trees": 3}, lambda problem: forbid_features(problem, "x0"))

    hold_for_all(one, [seed for seed in range(12) if seed % 5 != 4])


@pytest.mark.slow
def test_variables_of_a_user():
    """A tree tells no values of them; whether there are any is up to the solver."""
    problem, plain = (build(2, p=3, depth=2, alpha=0.05) for _ in range(2))
    features_used(problem)
    feature_budget(problem, 1.0)
    size = problem.size()
    trees = problem.solve(within=0.2).trees
    assert trees.complete
    assert problem.size() == size
    everything = get_search("exact-search").list_trees(
        plain, budget=np.inf, most=10**6, shrink=False, all_labels=True, stopped=lambda: False
    )
    feature = np.where(everything.chosen < 0, -1, plain.structure.thresholds.feature[everything.chosen])
    one = np.array([len(set(row[row >= 0].tolist())) <= 1 for row in feature])
    values = np.sort(everything.value[one])
    assert same(trees.objectives, values[values <= 1.2 * values[0] + UNDECIDED])
    assert at_most(trees.uses().sum(axis=1), 1)
    X = problem.data.X_raw
    assert len(set(keys(trees, X))) == len(trees)


@pytest.mark.slow
def test_trees_of_depth_four():
    problem = build(0, depth=4, n=8, alpha=0.05)
    trees = problem.solve(keep_trees=3).trees
    assert trees.complete
    shallow = build(0, depth=3, n=8, alpha=0.05).solve(keep_trees=3).trees
    assert at_most(trees.objectives, shallow.objectives)
    assert len(set(keys(trees, problem.data.X_raw))) == 3


class Expires:
    """HiGHS, and a budget that is over after some solves."""

    def __new__(cls, problem, solves):
        class Counted(type(get_solver("highs"))):
            left = solves

            def solve(self, *arguments, **keywords):
                type(self).left -= 1
                found = super().solve(*arguments, **keywords)
                if type(self).left <= 0:
                    problem.budget.stop()
                return found

        return Counted()


@pytest.mark.parametrize("solves", [1, 3])
def test_a_listing_without_time_claims_nothing(solves):
    problem = build(2, depth=2, alpha=0.05)
    everything = problem.solve(within=2.0)
    assert len(everything.trees) > solves
    result = problem.solve(Expires(problem, solves), within=2.0)
    trees = result.trees
    assert not trees.ended
    assert not trees.counted
    assert not trees.complete
    assert "there may be more" in trees.in_words()
    assert at_most(result.bound, everything.objective)
    X = problem.data.X_raw
    assert set(keys(trees, X)) <= set(keys(everything.trees, X))
    few = problem.solve(Expires(problem, solves), keep_trees=50).trees
    assert not few.complete
