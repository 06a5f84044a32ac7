from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_data import random_data, random_tree, with_gaps_everywhere

from formulations.loss_optimal import LossOptimal
from formulations.margins import moved_into_limits, proven_limits
from mipforest.model import Model
from mipforest.objectives.losses import HINGE as HINGE_LOSS
from mipforest.objectives.losses import Misclassification
from mipforest.problem import repair
from mipforest.problem.parameters import ParameterError
from mipforest.trees import Topology

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": None, "gap": 1e-7}


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """Draw few trees where a start is looked for: a search of 5000 takes seconds, and is tested with the repairs."""
    monkeypatch.setattr(repair, "CANDIDATES", 100)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "formulation",
    [
        LossOptimal(loss="hinge", C=3.0),
        # More tangents of the same loss.
        pytest.param(LossOptimal(loss="logistic", tangents="V2", C=1.0), marks=pytest.mark.slow),
        # The norm of MARGOT, whose limits test_margot.py looks at.
        pytest.param(LossOptimal(loss="logistic", regulariser="l2", C=1.0), marks=pytest.mark.slow),
        LossOptimal(loss="misclassification", C=1.0, epsilon=0.1),
    ],
    ids=str,
)
def test_valid_limits_contain_every_polished_tree_up_to_their_upper_bound(formulation):
    data, rng = random_data(1, n=9, p=2), np.random.default_rng(0)
    instance = formulation.bind(data, Topology(2))
    trees = [formulation.start("greedy-logistic", instance)]
    trees += [
        formulation.polish(random_tree(rng, data, 2, epsilon=formulation.epsilon, bound=4.0), instance)
        for _ in range(20)
    ]
    values = np.array([formulation.evaluate(tree, instance) for tree in trees])
    limit = float(np.median(values))
    model = Model()
    limits = proven_limits(
        data.X, formulation.epsilon, limit, n_branches=3,
        root_share=formulation.root_share(instance),
        loss=instance.nodes.loss, norm=instance.nodes.norm,
    )  # fmt: skip
    formulation.declare(model, replace(instance, limits=limits))
    inside = np.flatnonzero(values <= limit)
    assert len(inside) >= 10
    for k in inside:
        assert model.violations(formulation.encode(trees[k], instance)).max <= 1e-6


@given(st.integers(0, 10**6), st.sampled_from([HINGE_LOSS, Misclassification(0.1)]))
@settings(max_examples=15)
def test_moving_biases_into_the_limits_is_free(seed, loss):
    rng = np.random.default_rng(seed)
    data = random_data(seed, n=15, p=2)
    formulation = LossOptimal(
        loss="hinge" if loss is HINGE_LOSS else "misclassification", epsilon=0.1, variant="paper"
    )
    instance = formulation.bind(data, Topology(2))
    tree = random_tree(rng, data, 2, epsilon=0.1)
    tree = replace(tree, b=tree.b + rng.choice([-9.0, 0.0, 9.0], 3))
    tree = with_gaps_everywhere(tree, data, 0.1)
    moved = moved_into_limits(tree, data.X, loss.flat_from)
    np.testing.assert_array_equal(moved.apply(data.X), tree.apply(data.X))
    assert formulation.evaluate(moved, instance) <= formulation.evaluate(tree, instance) + 1e-9
    scores = moved.scores(data.X)
    assert (scores.min(axis=0) <= loss.flat_from + 1e-9).all()
    assert (scores.max(axis=0) >= -loss.flat_from - 1e-9).all()


@pytest.mark.parametrize("open_weights", [{"regulariser": "none"}, {"levels": "last"}], ids=str)
def test_without_a_norm_everywhere_nothing_is_proven(open_weights):
    data = random_data(0, n=10, p=2)
    with pytest.raises(ParameterError, match="build variant 'paper'"):
        LossOptimal(**open_weights).build(data, 2)
    problem = LossOptimal(**open_weights, variant="paper").build(data, 2)
    problem.model.add("moved", problem.model["b"] >= 1)
    assert problem.changes().blocks == {"b"}
    assert problem.formulation.valid_below(problem.instance, problem.changes()) == np.inf
    assert not problem.formulation.constants_proven(problem.instance, 1.0, problem.changes())


@pytest.mark.slow  # by default the helpers of constraints are held against literal models
def test_bounds_stay_honest_when_users_add_constraints():
    data = random_data(1, n=5, p=2)
    formulation = LossOptimal(C=1.0)
    expected = {}
    for variant in LossOptimal.variants:
        problem = replace(formulation, variant=variant).build(data, 2)
        problem.model.add("apart", problem.model["w"][0].sum() >= 30)
        expected[variant] = problem.solve("highs", **PROVEN)
    free, limited = expected["paper"], expected["valid"]
    assert free.verified
    assert limited.bound <= free.objective + 1e-6
    assert limited.objective == pytest.approx(free.objective, rel=1e-5)
    assert limited.proven_for == "definition"
    problem = formulation.build(data, 2)
    problem.model.add("shifted", problem.model["b"][0] >= 3)
    assert problem.solve("highs", time_limit=0.0).bound == 0  # what holds of every sum of losses
