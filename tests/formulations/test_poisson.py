"""Poisson and survival trees: the definition is scikit-learn's deviance, enumeration has the optimum, rows bound it."""

from dataclasses import replace

import numpy as np
import pytest
from enumerate_trees import best_tree_value
from seeds import few_of, seeds
from sklearn.datasets import load_linnerud
from sklearn.metrics import mean_poisson_deviance
from sklearn.tree import DecisionTreeRegressor
from tolerance import at_least, at_most, same
from univariate_cases import leaf_cost

from formulations.poisson import Poisson
from formulations.survival import Survival
from mipforest.certificates import certify
from mipforest.data import Dataset
from mipforest.errors import DataError, TuningError
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives import leaf_losses
from mipforest.objectives.leaf_losses import PoissonLoss, SquaredLoss
from mipforest.problem.constraints import AtMostFeatures, Forbid, MinLeaf
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact.search import exact_search
from mipforest.searches.leaf_sums import POISSON, SMALL, loss_of_sums
from mipforest.tuning import tune_batch


def counts(seed, n=16):
    rng = np.random.default_rng(seed)
    X, exposure = rng.integers(0, 5, (n, 3)).astype(float), rng.uniform(0.3, 3.0, n)
    k = rng.poisson(exposure * np.exp(X[:, 0] / 2 - 1.5 * (X[:, 1] > 2)))
    k[0] = 1 + k[0]
    return Dataset.from_arrays(X, k / exposure, weights=exposure, task="regression")


def followed(seed, n=16):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 3)).astype(float)
    time, end = np.round(rng.exponential(1 + X[:, 0]), 1), np.round(rng.exponential(4.0, n), 1)
    event = time <= end
    event[np.argmax(np.minimum(time, end))] = True
    weights = rng.choice([1.0, 2.0], n)
    return Dataset.from_arrays(X, np.minimum(time, end), event=event, weights=weights)


def enumerated(data, depth, alpha, N_min):
    cost = leaf_cost("deviance", data.y, data.weights, None)
    baseline = cost(np.arange(data.n))
    least = best_tree_value(
        data.X, lambda rows: cost(np.array(rows)), depth, alpha * baseline, min(N_min, data.n)
    )
    return least / baseline


@pytest.mark.parametrize("seed", seeds(8, 300))
def test_search_is_enumeration_and_rows_are_below_by_what_tangents_miss(seed):
    rng = np.random.default_rng(seed)
    model, data = ((Poisson, counts), (Survival, followed))[seed % 2]
    data, depth = data(seed), 1 + seed // 2 % 2
    given = {"alpha": float(rng.choice([0.0, 0.03])), "N_min": 1 + seed // 4 % 3}
    given |= {"variant": ("tight", "valid")[seed // 3 % 2]}
    found = model(**given).build(data, depth).solve("exact-search", time_limit=60)
    assert found.status == "optimal"
    assert found.verified, found.failed_checks
    assert same(found.objective, enumerated(data, depth, given["alpha"], given["N_min"]))
    problem = model(tangents=24, **given).build(data, depth)
    rows = problem.solve("highs", start="none", gap=1e-7, time_limit=60)
    assert at_most(rows.bound, found.objective + 1e-6)
    leaves = problem.instance.leaves
    weight, y = data.weights, leaves.y
    counted = np.bincount(problem.instance.routing.group, weight * y)
    ratio = np.log(y.max() * weight.sum() / counted[counted > 0].min()) / 23
    missed = counted.sum() * ratio**2 / 8 / leaves.baseline
    assert at_least(rows.solution.objective + missed, found.objective - 1e-6)


def test_the_definition_is_scikit_learns_deviance():
    data = counts(3, n=60)
    found = Poisson(alpha=0.02).build(data, 2).solve("exact-search", time_limit=60)
    predicted = found.tree.predict(data.X_raw)
    assert (predicted > 0).all()

    def deviance(rates):
        return mean_poisson_deviance(data.y, rates, sample_weight=data.weights)

    constant = np.full(data.n, np.average(data.y, weights=data.weights))
    own = deviance(predicted) / deviance(constant) + 0.02 * found.tree.n_splits
    assert same(own, found.objective)


@pytest.mark.parametrize("seed", range(10))
def test_one_split_is_never_worse_than_scikit_learns(seed):
    data = counts(seed, n=40)
    found = Poisson().build(data, 1).solve("exact-search", time_limit=60)
    grown = DecisionTreeRegressor(criterion="poisson", max_depth=1).fit(
        data.X, data.y, sample_weight=data.weights
    )
    loss = PoissonLoss()
    least = loss.total(grown.predict(data.X), data.y, data.weights) / loss.baseline(data.y, data.weights)
    assert at_most(found.objective, least)


@pytest.mark.parametrize("seed", few_of([2, 0, 1, 3, 4, 5]))  # all constraints, then some
def test_constraints_are_kept_and_proven(seed):
    data = followed(seed)
    problem = Survival().build(data, 2)
    constraints = [Forbid(("x0",)), AtMostFeatures(1), MinLeaf(4)]
    limited = problem.with_only(constraints[: 1 + seed % 3])
    found, rows = (limited.solve(solver, time_limit=60) for solver in ("auto", "highs"))
    assert found.status == "optimal"
    assert found.solution.solver == "exact-search"
    assert all(one.admits(found.tree, data) for one in limited.constraints)
    assert at_most(rows.bound, found.objective)
    assert at_most(found.objective, rows.objective)


def test_near_optimal_trees_are_within_and_the_first_is_best():
    problem = Poisson(alpha=0.01).build(counts(1, n=40), 2)
    found = problem.solve("exact-search", within=0.05)
    best = found.objective
    values = list(found.trees.objectives)
    assert len(values) > 1
    assert same(min(values), best)
    assert all(at_most(value, best * 1.05) for value in values)


def test_hazard_ratios_of_all_samples_are_one_and_leaves_have_theirs():
    data = followed(4, n=80)
    assert same(np.average(data.y, weights=data.weights), 1.0)
    found = Survival(N_min=5).build(data, 2).solve("exact-search", time_limit=60)
    leaf = found.tree.apply(data.X_raw)
    for t in np.unique(leaf):
        here = leaf == t
        expected = (data.weights * data.y)[here].sum() / data.weights[here].sum()
        assert same(float(found.tree.predict(data.X_raw[here])[0]), expected)


def test_bad_data_are_refused_by_name():
    X = np.arange(6.0)[:, None]
    negative = Dataset.from_arrays(X, [0.0, 1, 2, -1, 0, 1], task="regression")
    with pytest.raises(DataError, match="-1 in some row"):
        Poisson().build(negative, 1)
    with pytest.raises(DataError, match="takes times and whether events were seen"):
        Survival().build(counts(0), 1)
    with pytest.raises(DataError, match="had its event"):
        Dataset.from_arrays(X, np.arange(6), event=np.zeros(6, dtype=bool))


@pytest.mark.parametrize("exercise", few_of([0, 1, 2]))
def test_counts_of_others_have_their_optimum(exercise, tmp_path):
    """Chin-ups, sit-ups and jumps of 20 men by weight, waist and pulse (Linnerud, in scikit-learn)."""
    men = load_linnerud(as_frame=True)
    X, y = men.target, men.data.iloc[:, exercise].to_numpy(float)
    data = Dataset.from_arrays(X.to_numpy(float), y, features=list(X), task="regression")
    result = Poisson(alpha=0.02, N_min=2).build(data, 2).solve("exact-search", certificate=tmp_path / "c.gz")
    assert result.objective == pytest.approx(enumerated(data, 2, 0.02, 2), rel=1e-9)
    grown = DecisionTreeRegressor(criterion="poisson", max_depth=2, min_samples_leaf=2, random_state=0)
    losses = [
        mean_poisson_deviance(y, predicted)
        for predicted in (np.full(20, y.mean()), grown.fit(X, y).predict(X))
    ]
    assert at_most(result.objective, losses[1] / losses[0] + 0.02 * (grown.get_n_leaves() - 1))
    found = certify(tmp_path / "c.gz", exact=True)
    assert same(found.objective, result.objective)
    assert found.gap < 1e-8


@pytest.mark.parametrize("spread", [1e-3, 1e-5, 1e-7])
def test_rates_that_are_nearly_equal_lose_what_squares_say(spread):
    """Half the deviance is half the squared error over the mean there, where sums of logarithms would cancel."""
    rng = np.random.default_rng(3)
    data = Dataset.from_arrays(
        rng.integers(0, 4, (30, 2)), 5 * (1 + spread * rng.integers(0, 5, 30)), task="regression"
    )
    y, w = np.asarray(data.y), np.ones(30)
    loss, thresholds = PoissonLoss(), find_thresholds(data)
    squares = ((y - y.mean()) ** 2).sum() / (2 * y.mean())
    assert loss.baseline(y, w) == pytest.approx(squares, rel=10 * spread)
    sums = loss.statistics(y, w).sum(axis=0)
    assert float(loss.of_sums(sums, 0.1)) == pytest.approx(squares, rel=10 * spread)
    assert loss_of_sums.py_func(POISSON, *sums) == pytest.approx(squares, rel=10 * spread)
    shared = {"thresholds": thresholds, "unit": squares, "split_cost": 0.02 * squares}
    found = exact_search(UnivariateProblem(y=y, loss=PoissonLoss(), **shared), 2)
    total = 2 * y.mean() * squares
    by_squares = UnivariateProblem(y=y - y.mean(), loss=SquaredLoss(), **shared)
    other = exact_search(replace(by_squares, unit=total, split_cost=0.02 * total), 2)
    assert found.ended
    assert found.value == pytest.approx(other.value, rel=20 * spread, abs=1e-7)
    assert at_most(found.bound, found.value)
    assert SMALL == leaf_losses.SMALL  # exact: a copy


def test_rates_that_hardly_differ_are_left_to_squares():
    near = Dataset.from_arrays(np.arange(6.0)[:, None], 7 + 1e-4 * np.arange(6.0), task="regression")
    with pytest.raises(DataError, match="use ort"):
        Poisson().build(near, 1)


def test_all_samples_may_have_their_event_and_a_batch_is_refused():
    data = Dataset.from_arrays(np.arange(8.0)[:, None], np.arange(8) + 1.0, treatments=np.ones(8, dtype=int))
    assert data.with_events_of_labels().followed[:, 1].all()
    with pytest.raises(TuningError, match="may be infinite there"):
        tune_batch("poisson", counts(0, n=40), depth=2)
