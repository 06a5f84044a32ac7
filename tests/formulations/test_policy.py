"""Policy trees: the value of enumeration, the same by rows and by searches, for rewards of any sign and size."""

import numpy as np
import pytest
from enumerate_trees import best_tree_value
from seeds import seeds
from tolerance import at_most

from formulations.oct import Oct
from formulations.policy import Policy, regrets
from mipforest.constraints import equal_opportunity, limit_label
from mipforest.data import DataError, Dataset
from mipforest.problem.expressions import NotExpressed
from mipforest.searches.exact.search import exact_search
from mipforest.searches.local import LocalProblem
from mipforest.searches.local.search import local_search

#: Two sums of the same rewards in another order, relative to what all samples lose together.
SUMS = 1e-9


def rewards_of(rng, n, K, kind):
    R = rng.normal(size=(n, K))
    if kind == "ties":
        R = rng.integers(-1, 2, (n, K)).astype(float)
    if kind == "large beside small":
        R *= np.where(rng.random((n, K)) < 0.5, 1e9, 1e-9)
    if kind == "a decision that nobody needs":
        R[:, 0] = R.min() - 1.0
    return R


def random_case(seed):
    """Return data, a depth, the cost of a split and the least size of leaves."""
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(3, 16)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    kinds = ("normal", "ties", "large beside small", "a decision that nobody needs")
    X = rng.integers(0, 5, (n, p)) / 4 if seed % 2 else rng.random((n, p))
    R = rewards_of(rng, n, K, kinds[seed % 4])
    weights = rng.integers(1, 4, n) if seed % 3 == 0 else None
    data = Dataset.from_arrays(X, rewards=R, weights=weights)
    alpha = float(rng.choice([0.0, 0.05])) * float(regrets(data).sum()) / float(data.weights.sum())
    return data, int(rng.integers(1, 3)), alpha, int(rng.choice([1, 1, 2]))


def least_loss(data, depth, alpha, n_min):
    """Return the least mean loss of a tree, by enumeration, straight from the definition."""
    R, w = data.rewards, data.weights

    def leaf(rows):
        rows = list(rows)
        return min(sum(w[i] * (R[i].max() - R[i, k]) for i in rows) for k in range(R.shape[1]))

    total = float(w.sum())
    return best_tree_value(data.X, leaf, depth, alpha * total, n_min) / total


@pytest.mark.first_cases(12)
@pytest.mark.parametrize("seed", seeds(30, 100))
def test_the_exact_search_equals_enumeration(seed):
    data, depth, alpha, n_min = random_case(seed)
    model = Policy(alpha=alpha, N_min=n_min)
    if not regrets(data).any():
        with pytest.raises(DataError, match="nothing to decide"):
            model.build(data, depth)
        return
    problem, scale = model.build(data, depth), float(regrets(data).max())
    expected = least_loss(data, depth, alpha, n_min)
    result = problem.solve("exact-search")
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(expected, rel=SUMS, abs=SUMS * scale)
    assert at_most(result.bound, result.objective + SUMS * scale)
    own = data.rewards[np.arange(data.n), result.tree.predict(data.X_raw).astype(int)]
    value = np.average(data.rewards.max(axis=1), weights=data.weights) - np.average(own, weights=data.weights)
    splits = alpha * result.tree.n_splits
    assert result.objective == pytest.approx(value + splits, rel=SUMS, abs=SUMS * scale)
    assert result.measures(data)["mean_reward"] == pytest.approx(
        np.average(own, weights=data.weights), rel=SUMS, abs=SUMS * scale
    )


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("variant", Policy.variants)
@pytest.mark.parametrize("seed", range(6))
def test_rows_have_the_same_optimum(seed, variant):
    data, _, alpha, n_min = random_case(4 * seed)  # normal rewards
    model = Policy(alpha=alpha, N_min=n_min, variant=variant)
    result = model.build(data, 2).solve("highs", start="none", gap=1e-6, time_limit=60)
    assert result.verified
    assert result.objective == pytest.approx(least_loss(data, 2, alpha, n_min), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_local_search_is_never_below_and_mostly_there(seed):
    rng = np.random.default_rng(seed)
    X, R = rng.random((60, 3)), rng.normal(size=(60, 3))
    R[:, 0] += X[:, 0] > 0.6
    problem = Policy().build(Dataset.from_arrays(X, rewards=R), 2)
    best = exact_search(problem.structure, 2).value
    found = local_search(LocalProblem.of(problem.structure, problem.data.X), 2, starts=10, seed=0)
    assert at_most(best, found.value)
    assert found.value == pytest.approx(best, rel=0.02)


def test_two_decisions_are_weighted_classes():
    """The same optimum as OCT, for the better decision as class and what the other one loses as weight."""
    rng = np.random.default_rng(0)
    X, R = rng.random((80, 3)), rng.normal(size=(80, 2))
    difference = R[:, 1] - R[:, 0]
    policy = Policy().build(Dataset.from_arrays(X, rewards=R), 2).solve("exact-search")
    classes = Dataset.from_arrays(X, (difference > 0).astype(int), weights=np.abs(difference))
    oct_ = Oct().build(classes, 2).solve("exact-search")
    unit = Oct().unit(classes)
    assert policy.objective * 80 == pytest.approx(oct_.objective * unit, rel=SUMS)


def test_labels_that_are_best_for_nobody_may_be_decided():
    X = np.arange(4.0)[:, None]
    R = np.array([[3.0, 0, 2], [0, 3, 2], [3, 0, 2], [0, 3, 2]])
    result = Policy(alpha=0.6).build(Dataset.from_arrays(X, rewards=R, classes=["a", "b", "c"]), 1).solve()
    assert result.status == "optimal"
    assert result.tree.n_splits == 0
    assert result.tree.classes[result.tree.predict(X).astype(int)[0]] == "c"


@pytest.mark.parametrize(
    ("rewards", "told"),
    [
        (np.ones((4, 1)), "a column for each of two or more decisions"),
        (np.ones(4), "one row per sample"),
        ([[1.0, 2], [1, np.nan], [1, 2], [1, 2]], "decision 1 in row 1 is nan"),
        (np.ones((3, 2)), "rewards have 3 rows, and X has 4"),
        ([["a", "b"]] * 4, "rewards must be numbers"),
    ],
)
def test_rewards_that_are_none_are_refused(rewards, told):
    with pytest.raises(DataError, match=told):
        Dataset.from_arrays(np.ones((4, 1)), rewards=rewards)


def test_who_takes_what_is_said():
    X, R = np.arange(4.0)[:, None], np.eye(4)[:, :2]
    with pytest.raises(DataError, match="oct predicts a target"):
        Oct().build(Dataset.from_arrays(X, rewards=R), 1)
    with pytest.raises(DataError, match="policy takes rewards"):
        Policy().build(Dataset.from_arrays(X, [0, 1, 0, 1]), 1)
    with pytest.raises(DataError, match="give y, y and treatments, or rewards"):
        Dataset.from_arrays(X, [0, 1, 0, 1], rewards=R)
    with pytest.raises(DataError, match="nothing to decide"):
        Policy().build(Dataset.from_arrays(X, rewards=np.ones((4, 3))), 1)
    with pytest.raises(DataError, match="do not sum up to a number"):
        Policy().build(Dataset.from_arrays(X, rewards=np.array([[1e308, -1e308]] * 4)), 1)


def test_rewards_are_kept_by_what_selects_and_weighs_samples():
    rng = np.random.default_rng(0)
    X, R = rng.random((10, 2)), rng.normal(size=(10, 3))
    data = Dataset.from_arrays(X, rewards=R, classes=["a", "b", "c"], weights=[0.0] + [1.0] * 9)
    np.testing.assert_array_equal(data.rewards, R[1:])  # exact: a copy
    np.testing.assert_array_equal(data.take([2, 4]).rewards, R[[3, 5]])  # exact: a copy
    train, test = data.split(0.3, seed=1)
    assert train.rewards.shape == (6, 3)
    assert test.rewards.shape == (3, 3)
    other = Dataset.from_arrays(X, rewards=R + 1.0, classes=["a", "b", "c"], weights=[0.0] + [1.0] * 9)
    assert other.sha256 != data.sha256
    assert repr(data) == "Dataset('data': 9 samples, 2 features, 3 decisions)"


def all_losses(data, depth):
    """Return the mean loss and the decisions of every tree, by recursion over splits."""
    X, R = data.X, data.rewards
    loss = (R.max(axis=1, keepdims=True) - R) / data.n

    def trees(rows, levels):
        found = {(k,) * len(rows) for k in range(R.shape[1])}
        if levels:
            for j in range(X.shape[1]):
                for cut in np.unique(X[rows, j])[1:]:
                    right = X[rows, j] >= cut
                    for low in trees(rows[~right], levels - 1):
                        for high in trees(rows[right], levels - 1):
                            decided = np.empty(len(rows), np.int64)
                            decided[~right], decided[right] = low, high
                            found.add(tuple(decided.tolist()))
        return found

    for decided in trees(np.arange(data.n), depth):
        yield float(loss[np.arange(data.n), decided].sum()), np.array(decided)


@pytest.mark.parametrize("seed", range(10))
def test_a_limit_on_a_decision_gives_the_best_tree_of_those_that_keep_it(seed):
    rng = np.random.default_rng(seed)
    X, R = (
        rng.integers(0, 4, (8, 2)).astype(float),
        rng.normal(size=(8, 2 + seed % 2)) + [1.0, 0.0, 0.0][: 2 + seed % 2],
    )
    data = Dataset.from_arrays(X, rewards=R, classes=["a", "b", "c"][: 2 + seed % 2])
    cost = rng.integers(1, 5, 8).astype(float) if seed % 3 else None
    shares = np.full(8, 1 / 8) if cost is None else cost / cost.sum()
    share = float(rng.choice([0.0, 0.3, 0.5]))
    expected = min(
        loss for loss, decided in all_losses(data, 2) if shares[decided == 0].sum() <= share + 1e-9
    )
    problem = Policy().build(data, 2)
    limit_label(problem, "a", share, cost=cost)
    result = problem.solve(time_limit=60)
    assert result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_limits_that_are_none_are_refused():
    problem = Policy().build(Dataset.from_arrays(np.arange(4.0)[:, None], rewards=np.eye(4)[:, :2]), 1)
    with pytest.raises(DataError, match="share is 2"):
        limit_label(problem, "0", 2.0)
    with pytest.raises(DataError, match=r"cost has shape \(3,\)"):
        limit_label(problem, "0", 0.5, cost=[1, 2, 3])
    with pytest.raises(DataError, match="no class '7'"):
        limit_label(problem, "7", 0.5)
    with pytest.raises(NotExpressed, match="prescribe or decide"):
        equal_opportunity(problem, [0, 0, 1, 1], 0.1)
