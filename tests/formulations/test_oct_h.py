import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent_routes import scip_optimum
from tolerance import less, same

from formulations.leaves import baseline_error, with_cheapest_labels
from formulations.oct import Oct
from formulations.oct_h import OctH
from mipforest.data import Dataset
from mipforest.problem.repair import feasible_values
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

PROVEN = {"time_limit": None, "gap": 1e-9}


def grid_data(seed, n=12, p=2, K=2):
    """Points on a coarse grid, so that sides of a univariate split are far apart; labels at random."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, p)).astype(float)
    y = rng.integers(0, K, n)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y)


def separable_data(seed, n=40, p=3):
    """Two classes on the two sides of one oblique hyperplane, with a margin."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(p)
    X = rng.random((n * 4, p))
    score = (X - 0.5) @ w / np.abs(w).sum()
    X = X[np.abs(score) > 0.03][:n]
    return Dataset.from_arrays(X, ((X - 0.5) @ w > 0).astype(int))


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))]
)  # more data
def test_one_hyperplane_separates_without_an_error(seed):
    data = separable_data(seed)
    result = OctH().build(data, 1).solve("highs", **PROVEN)
    assert result.verified
    assert result.objective == pytest.approx(0)
    assert (result.tree.predict(data.X_raw) == data.y).all()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)  # more data
def test_equals_scip_and_never_loses_to_univariate_splits(seed):
    data = grid_data(seed, n=10, K=2 + seed % 2)
    alpha = (0.0, 0.05)[seed % 2]
    formulation = OctH(alpha=alpha)
    problem = formulation.build(data, 1)
    result = problem.solve("highs", **PROVEN)
    assert result.verified
    assert result.objective == pytest.approx(scip_optimum(problem.model.matrix()), abs=1e-6)
    assert result.objective <= Oct(alpha=alpha).build(data, 1).solve("highs", **PROVEN).objective + 1e-6


def test_depth_two_solves_the_exclusive_or_with_a_cost_per_feature():
    X = np.array([[a, b] for a in (0.0, 0.1, 1.0) for b in (0.0, 0.9, 1.0)])
    data = Dataset.from_arrays(X, ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int))
    result = OctH(alpha=0.01).build(data, 2).solve("highs", **PROVEN)
    assert result.verified
    # No error; no fewer than three features can do it with axis-parallel splits, nor with oblique ones.
    assert result.objective == pytest.approx(0.03)


@given(seed=st.integers(0, 10**6), depth=st.integers(1, 4))
@settings(max_examples=15)
def test_evaluate_is_the_definition(seed, depth):
    rng = np.random.default_rng(seed)
    data = grid_data(seed, n=int(rng.integers(5, 30)), p=int(rng.integers(1, 4)), K=int(rng.integers(2, 4)))
    formulation = OctH(alpha=0.02)
    tree = random_oblique_tree(rng, data, depth, formulation.mu)
    instance = formulation.bind(data, Topology(depth))
    errors = (tree.predict(data.X) != data.y).sum() / baseline_error(data)
    expected = errors + 0.02 * (tree.w != 0).sum()
    assert formulation.evaluate(tree, instance) == pytest.approx(expected, abs=1e-12)


def random_oblique_tree(rng, data, depth, mu):
    """Random hyperplanes that keep samples of both sides at least mu apart; nodes below an unsplit one do not split."""
    topology = Topology(depth)
    w, b = np.zeros((topology.n_branches, data.p)), np.zeros(topology.n_branches)
    here = {0: np.arange(data.n)}
    for t in topology.branches:
        rows = here.get(t, np.zeros(0, dtype=int))
        direction = rng.uniform(-1, 1, data.p) * (rng.random(data.p) < 0.7)
        parent_splits = t == 0 or w[topology.parent(t)].any()
        if len(rows) and parent_splits and direction.any():
            direction /= np.abs(direction).sum()
            values = np.unique(data.X[rows] @ direction)
            wide = np.flatnonzero(np.diff(values) > mu * 1.01)
            if len(wide):
                k = int(rng.choice(wide))
                w[t], b[t] = direction, -(values[k] + values[k + 1]) / 2
        goes_right = data.X[rows] @ w[t] + b[t] >= 0
        here[topology.left(t)], here[topology.right(t)] = rows[~goes_right], rows[goes_right]
    tree = Tree(depth, w, b, np.zeros(topology.n_leaves), tuple(data.classes), tuple(data.features.labels))
    return with_cheapest_labels(tree, OctH().bind(data, topology))


def test_greedy_is_no_worse_than_its_first_split():
    data = separable_data(3, n=60)
    formulation = OctH()
    instance = formulation.bind(data, Topology(2))
    tree = formulation.start("greedy", instance)
    assert formulation.evaluate(tree, instance) == pytest.approx(0)


def test_the_default_start_is_never_worse_than_carts():
    data = separable_data(1, n=60)
    weighted = data.with_weights(1.0 + np.arange(data.n) % 3)
    for formulation, samples in (
        (OctH(), data),
        (OctH(alpha=0.02, N_min=5, costs=((0.0, 1.0), (3.0, 0.0))), weighted),
    ):
        problem = formulation.build(samples, 2)
        start, grown = problem.start_tree(), problem.start_tree("cart")
        value, of_cart = (formulation.evaluate(tree, problem.instance) for tree in (start, grown))
        assert less(value, of_cart)  # an oblique line parts the classes
        assert feasible_values(problem, start) is not None
        late = formulation.build(samples, 2, budget=TimeBudget(1e-9))
        assert same(formulation.evaluate(late.start_tree(), late.instance), of_cart)


def test_a_split_that_pays_for_a_feature_and_sends_all_left_is_the_trees_too():
    # Weight 0 and a threshold of mu: all samples go left, and the feature switched on costs alpha.
    problem = OctH(alpha=0.1).build(grid_data(0), 1)
    labels = np.array([[0.0, 0.0], [1.0, 0.0]])
    start = problem.encoded(problem.start_tree("cart"))
    values = start | {
        "a": np.zeros((1, 2)),
        "a_abs": np.zeros((1, 2)),
        "s": np.array([[0.0, 1.0]]),
        "b": np.array([0.005]),
        "d": np.ones(1),
        "z": np.tile([1.0, 0.0], (12, 1)),
        "l": np.array([1.0, 0.0]),
        "c": labels if problem.data.y.mean() >= 0.5 else labels[::-1],
        "L": np.array([min(problem.data.y.sum(), 12 - problem.data.y.sum()), 0.0]),
    }
    assert problem.worst_violation(values) == ""
    tree = problem.formulation.decode(values, problem.instance)
    assert problem.formulation.evaluate(tree, problem.instance) == pytest.approx(
        problem.model.objective(values)
    )
    assert (tree.apply(problem.data.X) == 1).all()
