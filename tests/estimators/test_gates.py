"""Rewards, gradients of the policy, and gates that choose trees."""

import numpy as np
import pytest
from tolerance import at_least

from mipforest.data import Dataset
from mipforest.estimators.gates import (
    NeighbourGate,
    Training,
    TreeGate,
    best_single,
    grow_gate,
    policy_gradient,
    policy_objective,
    rewards_of_labels,
    rewards_of_values,
    softmax,
    train_network,
    without_own_samples,
)

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("scale", ["per_sample", "global"])
def test_rewards_of_values_are_1_for_the_best_tree_and_within_bounds(scale):
    predicted, y = RNG.normal(size=(30, 6)), RNG.normal(size=30)
    predicted[0] = 2.0  # all trees agree
    rewards, errors = rewards_of_values(predicted, y, scale), (predicted - y[:, None]) ** 2
    assert (rewards <= 1).all()
    assert (rewards >= -1).all()
    assert (rewards[0] == 1).all()
    rows = np.arange(30)
    assert (rewards[rows, errors.argmin(axis=1)] == 1).all()
    worst = rewards[rows, errors.argmax(axis=1)]
    if scale == "per_sample":
        assert worst[1:] == pytest.approx(-1)
    else:
        assert worst.min() == pytest.approx(-1)
        # One unit: sums of rewards rank trees as sums of squared errors do.
        assert (np.argsort(-rewards.sum(axis=0)) == np.argsort(errors.sum(axis=0))).all()


def test_rewards_of_labels():
    assert rewards_of_labels(np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([1, 2])).tolist() == [
        [-1, 1],
        [1, 1],
    ]


def test_rewards_without_own_samples_speak_for_no_tree():
    rewards = np.array([[1.0, -1.0, 1.0], [1.0, -1.0, -1.0]])
    in_bag = np.array([[True, False, False], [True, True, True]])
    assert without_own_samples(rewards, in_bag).tolist() == [[0.0, -1.0, 1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("entropy", ["full", "printed"])
def test_gradient_by_logits_is_that_of_the_objective(entropy):
    logits, rewards, weight, step = RNG.normal(size=(5, 7)), RNG.uniform(-1, 1, (5, 7)), 0.3, 1e-5
    gradient = policy_gradient(logits, rewards, weight, entropy)
    numeric = np.empty_like(gradient)
    for place in np.ndindex(*logits.shape):
        bump = np.zeros_like(logits)
        bump[place] = step
        above, below = (policy_objective(logits + sign * bump, rewards, weight, entropy) for sign in (1, -1))
        numeric[place] = len(logits) * (above - below) / (2 * step)  # the objective is a mean over samples
    assert gradient == pytest.approx(numeric, abs=1e-6)


@pytest.mark.parametrize("entropy", ["full", "printed"])
def test_gradients_of_drawn_trees_have_the_full_gradient_as_their_expectation(entropy):
    logits, rewards = RNG.normal(size=(1, 4)), RNG.uniform(-1, 1, (1, 4))
    p = softmax(logits)[0]
    drawn = [policy_gradient(logits, rewards, 0.3, entropy, np.array([a])) for a in range(4)]
    expected = sum(p[a] * gradient for a, gradient in enumerate(drawn))
    assert expected == pytest.approx(policy_gradient(logits, rewards, 0.3, entropy), abs=1e-12)


def test_printed_entropy_points_against_the_entropy_near_the_uniform_policy():
    logits = np.random.default_rng(0).normal(0, 0.01, (1, 50))
    nothing = np.zeros_like(logits)
    printed, full = (
        policy_gradient(logits, nothing, 1.0, entropy).ravel() for entropy in ("printed", "full")
    )
    assert printed @ full / np.linalg.norm(printed) / np.linalg.norm(full) < -0.99


def regions(n=200):
    """Features, and rewards of three trees: the first two are right on either side of 0, the third by chance."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    rewards = np.column_stack(
        [np.where(X[:, 0] > 0, 1.0, -1.0), np.where(X[:, 0] > 0, -1.0, 1.0), rng.choice([-1.0, 1.0], n)]
    )
    return X, rewards


def test_a_gate_tree_finds_the_regions_of_the_trees():
    X, rewards = regions()
    gate = TreeGate(
        grow_gate(Dataset.from_arrays(X, X[:, 0], scaling="none"), rewards, np.ones(200), 1, 20, 0)
    )
    assert (gate.select(X) == np.where(X[:, 0] > 0, 0, 1)).all()


@pytest.mark.parametrize("objective", ["expected", "sampled"])
def test_a_network_collects_more_than_the_best_single_tree(objective):
    X, rewards = regions()
    gate = train_network(X, rewards, np.ones(200), Training(objective=objective, epochs=60))
    reached = policy_objective(gate.logits(X), rewards, 0.0, "full")
    assert at_least(reached, rewards.mean(axis=0).max())
    assert (gate.select(X) == np.where(X[:, 0] > 0, 0, 1)).mean() > 0.95


def test_neighbours_that_rank_trees_alike_leave_the_choice_to_all_samples():
    X, rewards = regions()
    gate = NeighbourGate.of(X, rewards, np.ones(200), 5)
    assert (gate.select(X) == np.where(X[:, 0] > 0, 0, 1)).mean() > 0.9
    alike = np.array([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0]])
    assert best_single(alike.sum(axis=0)) == 1
    three = np.array([[0.0], [1.0], [2.0]])
    assert NeighbourGate.of(three, alike, np.ones(3), 1).select(np.array([[0.0]])) == 1
    best = best_single(rewards.mean(axis=0))
    assert NeighbourGate.of(X, rewards, np.ones(200), 10**6).select(X[:3]).tolist() == [best] * 3


def test_gates_take_whole_weights_as_repeated_samples():
    X, rewards = regions(60)
    counts = np.random.default_rng(3).integers(1, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    once, repeated = (Dataset.from_arrays(X[r], X[r, 0], scaling="none") for r in (np.arange(60), rows))
    weighted = grow_gate(once, rewards, counts.astype(float), 2, 1, 0)
    again = grow_gate(repeated, rewards[rows], np.ones(len(rows)), 2, 1, 0)
    assert (weighted.predict(X) == again.predict(X)).all()
    one, other = (
        NeighbourGate.of(X[r], rewards[r], weights, 10**6)
        for r, weights in ((np.arange(60), counts.astype(float)), (rows, np.ones(len(rows))))
    )
    assert one.scale.mean == pytest.approx(other.scale.mean)
    assert one.scale.deviation == pytest.approx(other.scale.deviation)
    assert (one.select(X) == other.select(X)).all()


def test_a_network_follows_the_samples_that_weigh():
    X, rewards = np.zeros((40, 1)), np.tile([1.0, -1.0], (40, 1))
    rewards[:10] *= -1.0
    weights = np.where(np.arange(40) < 10, 9.0, 1.0)
    training = Training(epochs=40)
    assert (train_network(X, rewards, np.ones(40), training).select(X) == 0).all()
    assert (train_network(X, rewards, weights, training).select(X) == 1).all()
