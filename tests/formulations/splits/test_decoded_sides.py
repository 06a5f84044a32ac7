"""Decoded trees send every sample where the solution assigns it, summed in a batch or sample by sample."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_data import with_gaps_everywhere
from tolerance import same

from formulations.loss_optimal import LossOptimal
from formulations.margot import Margot
from formulations.oct_h import OctH
from formulations.ort import OrtH
from formulations.ort_l import OrtLH
from mipforest.data import Dataset
from mipforest.trees import Topology, Tree

#: A solver's tolerance on the threshold of a split.
TOLERANCE = 1e-7


def data_of(rng, n, p, power, *, task="classification", scaling="minmax"):
    """Points on a coarse grid, so that scores tie; features in units of 10^power."""
    X = rng.integers(0, 5, (n, p)) * 10.0**power
    X[:2] = [[0.0] * p, [4 * 10.0**power] * p]
    y = np.arange(n) % 2 if task == "classification" else rng.random(n)
    return Dataset.from_arrays(X, y, task=task, scaling=scaling)


def random_splits(rng, data, depth, gap):
    """A tree of oblique splits, some with one side only, whose sides are at least a gap apart, for any scale of X."""
    topology = Topology(depth)
    w = rng.normal(size=(topology.n_branches, data.p))
    w /= np.abs(w).sum(axis=1, keepdims=True) * np.ptp(data.X)
    b = np.empty(topology.n_branches)
    for t in topology.branches:
        scores = np.unique(data.X @ w[t])
        wide = np.flatnonzero(np.diff(scores) > 2 * gap)
        kind = rng.integers(3)
        if kind == 0 and len(wide):
            k = rng.choice(wide)
            b[t] = -(scores[k] + scores[k + 1]) / 2
        else:
            b[t] = -scores[0] + gap if kind == 1 else -scores[-1] - 2 * gap
    labels = np.arange(topology.n_leaves) % 2
    leaf_w = None if data.classes else np.zeros((topology.n_leaves, data.p))
    return Tree(depth, w, b, labels, tuple(data.classes), tuple(data.features.labels), leaf_w=leaf_w)


def assert_same_sides(decoded, tree, data):
    """Scaled and raw samples; one by one, all at once, and by weights in original units."""
    leaf = tree.apply(data.X)
    np.testing.assert_array_equal(decoded.apply(data.X), leaf)
    delivered = decoded.with_scaling(data.encoding.offset, data.encoding.scale)
    weights, intercepts = delivered.original_units()
    in_units = Tree(tree.depth, weights, intercepts, np.zeros(tree.topology.n_leaves))
    for each in (delivered, in_units):
        np.testing.assert_array_equal(each.apply(data.X_raw), leaf)
        np.testing.assert_array_equal([each.apply(x[None])[0] for x in data.X_raw], leaf)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("model", [OctH, OrtH, OrtLH])
@given(depth=st.integers(1, 3), power=st.integers(-9, 9), seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_splits_that_keep_a_margin(model, depth, power, seed):
    rng = np.random.default_rng(seed)
    formulation = model(mu=0.01)
    data = data_of(rng, int(rng.integers(4, 16)), int(rng.integers(1, 5)), power, task=formulation.task)
    instance = formulation.bind(data, Topology(depth))
    tree = random_splits(rng, data, depth, 0.01)
    values = formulation.encode(tree, instance)
    values["b"] = values["b"] + TOLERANCE * rng.choice([-1, 0, 1], len(tree.b))
    assert_same_sides(formulation.decode(values, instance), tree, data)


@pytest.mark.parametrize("model", [OctH, OrtH])
def test_a_split_that_sends_all_samples_left_fits_the_box(model):
    """The largest score is 1 and the threshold at most 1, so the weights shrink until mu fits between."""
    formulation = model(mu=0.1)
    X = np.array([[0.0], [0.5], [1.0]])
    data = Dataset.from_arrays(X, [0, 1, 0], task=formulation.task)
    problem = formulation.build(data, 1)
    classes = tuple(data.classes)
    tree = formulation.polish(Tree(1, [[1.0]], [-1.5], [0, 0], classes, ("x0",)), problem.instance)
    values = formulation.encode(tree, problem.instance)
    assert problem.model.violations(values).max <= 1e-9
    assert problem.model.objective(values) == pytest.approx(formulation.evaluate(tree, problem.instance))


@pytest.mark.parametrize(
    "model", [Margot(variant="paper"), LossOptimal(variant="paper", loss="misclassification")]
)
@given(
    depth=st.integers(1, 3),
    power=st.integers(-9, 9),
    scaling=st.sampled_from(["none", "minmax", "standard"]),
    seed=st.integers(0, 10**6),
)  # fmt: skip
@settings(max_examples=20)
def test_splits_that_keep_a_gap(model, depth, power, scaling, seed):
    rng = np.random.default_rng(seed)
    data = data_of(rng, int(rng.integers(4, 16)), int(rng.integers(1, 5)), power, scaling=scaling)
    instance = model.bind(data, Topology(depth))
    tree = with_gaps_everywhere(random_splits(rng, data, depth, 0.01), data, model.epsilon)
    values = model.encode(tree, instance)
    values["b"] = values["b"] + TOLERANCE * rng.choice([-1, 0, 1], len(tree.b))
    decoded = model.decode(values, instance)
    if model.name == "margot":  # sides of its last level are free
        decoded = replace(
            decoded, b=np.where(np.arange(len(tree.b)) < 2 ** (depth - 1) - 1, decoded.b, tree.b)
        )
    assert_same_sides(decoded, tree, data)


def test_a_split_that_parts_nothing_is_paid_for_where_one_below_it_needs_it():
    """Rows (2.5) let a node split only below a split; a constraint may leave the root none that helps."""
    X = np.array([[0.0, 0.3], [0.1, 1.0], [0.2, 0.0], [0.8, 0.2], [0.9, 0.8], [1.0, 0.5]])
    problem = OctH(alpha=0.02).build(Dataset.from_arrays(X, np.array([0, 0, 0, 1, 1, 1])), 2)
    w, b = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]), np.array([0.0, 0.0, -0.5])
    tree = Tree(2, w, b, np.array([0, 0, 0, 1]), ("0", "1"), ("x0", "x1"))
    values = problem.encoded(tree)
    values["a"][0] = values["a_abs"][0] = values["b"][0] = 0.0  # a solver has no use for the weight
    assert problem.worst_violation(values) == ""
    decoded = problem.formulation.decode(values, problem.instance)
    assert decoded.apply(X).tolist() == tree.apply(X).tolist()
    assert same(problem.formulation.evaluate(decoded, problem.instance), problem.model.objective(values))
    assert same(problem.model.objective(values), 0.04)
    assert problem.worst_violation(problem.encoded(decoded)) == ""
