"""Helpers on features hold for linear functions of leaves too: the optimum is that over all thresholds and features."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from formulations.opt_l import OptL
from formulations.ort_l import OrtL, OrtLH
from mipforest import constraints
from mipforest.data import Dataset
from mipforest.errors import MipforestError
from mipforest.heuristics.thresholds import find_thresholds, tree_of_thresholds

PROVEN = {"time_limit": 60, "gap": 1e-7}
LAM = 0.02

#: Helper, and the sets of features that it allows.
HELPERS = {
    "at_most_of": (
        lambda p: constraints.at_most_of(p, ["x0", "x1", "x2"], 1),
        lambda used: len(used) <= 1,
    ),
    "feature_budget": (
        lambda p: constraints.feature_budget(p, 2, {"x0": 2, "x1": 1, "x2": 1}),
        lambda used: not (0 in used and len(used) > 1),
    ),
    "features_used": (
        lambda p: p.model.add("not_x1", constraints.features_used(p)[1] == 0),
        lambda used: 1 not in used,
    ),
    "forbid_features": (lambda p: constraints.forbid_features(p, "x0"), lambda used: 0 not in used),
}


def regression():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 5, (12, 3)).astype(float)
    y = X[:, 0] + np.where(X[:, 1] > 2, X[:, 2], 0.0) + 0.2 * rng.random(12)
    return Dataset.from_arrays(X, y, task="regression", scaling="minmax")


def lasso_cost(X, y, baseline):
    """Least squared loss over the baseline plus LAM times the sizes, by coordinate descent."""
    if len(y) == 0:
        return 0.0
    fitted = Lasso(alpha=LAM * baseline / (2 * len(y)), tol=1e-12, max_iter=100_000).fit(X, y)
    return ((fitted.predict(X) - y) ** 2).sum() / baseline + LAM * np.abs(fitted.coef_).sum()


def best_regression_tree(data, allowed):
    """Least objective of a tree of depth one without a price of splits, over the allowed sets of features."""
    X, y = data.X, (data.y - data.y.min()) / np.ptp(data.y)
    baseline, costs = ((y - y.mean()) ** 2).sum(), []
    for used in (list(some) for k in (1, 2, 3) for some in combinations(range(3), k) if allowed(set(some))):
        costs.append(lasso_cost(X[:, used], y, baseline))
        for j in used:
            for threshold in np.unique(X[:, j])[1:]:
                right = X[:, j] >= threshold
                sides = (lasso_cost(X[side][:, used], y[side], baseline) for side in (right, ~right))
                costs.append(sum(sides))
    return min(costs)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("helper", HELPERS)
def test_the_best_regression_tree_with_allowed_features(helper):
    constrain, allowed = HELPERS[helper]
    data = regression()
    problem = OrtL(lam=LAM).build(data, 1)
    constrain(problem)
    result = problem.solve("highs", **PROVEN)
    assert result.verified, result.failed_checks
    assert (result.status, result.proven_for) == ("optimal", "definition")
    assert result.objective == pytest.approx(best_regression_tree(data, allowed), rel=1e-5)
    assert allowed({data.features.labels.index(name) for name in result.features_used})


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "formulation",
    [
        OrtL(lam=LAM, variant="paper"),
        OrtLH(lam=LAM, alpha=0.01),
        pytest.param(OrtL(lam=LAM, regulariser="l0"), marks=pytest.mark.slow),
        pytest.param(OrtLH(lam=LAM, regulariser="l0", alpha=0.2), marks=pytest.mark.slow),
        pytest.param(OrtL(lam=0.0), marks=pytest.mark.slow),
    ],
    ids=["paper", "lh-l1", "l0", "lh-l0", "free"],
)
def test_every_kind_of_linear_leaves_keeps_a_budget(formulation):
    data = regression()
    problem = formulation.build(data, 1)
    constraints.feature_budget(problem, 1)
    result = problem.solve("highs", time_limit=10)
    assert result.verified, result.failed_checks
    assert len(result.features_used) <= 1
    if result.status == "optimal" and result.proven_for == "definition":
        alone = formulation.build(data, 1)
        constraints.forbid_features(
            alone, [name for name in data.features if name not in result.features_used]
        )
        assert alone.solve("highs", **PROVEN).objective == pytest.approx(result.objective, rel=1e-4)


def test_without_bounds_on_coefficients_the_message_says_what_to_do():
    problem = OrtL(lam=0.0, variant="paper").build(regression(), 1)
    with pytest.raises(MipforestError, match="give a lam above 0, or bound them"):
        constraints.feature_budget(problem, 1)
    problem.model["beta"].set_bounds(-10, 10)
    constraints.feature_budget(problem, 1)
    assert len(problem.solve("highs", time_limit=5).features_used) <= 1


# ---------------------------------------------------------------------- prescriptions


def experiment():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 4, (14, 2)).astype(float)
    treatment = np.arange(14) % 2
    y = X[:, 0] + np.where(X[:, 1] > 1, 1 - 2 * treatment, 2 * treatment - 1) + 0.1 * rng.random(14)
    return Dataset.from_arrays(X, y, task="regression", scaling="minmax", treatments=treatment)


@pytest.mark.slow
@pytest.mark.parametrize("feature", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_best_prescriptive_tree_without_a_feature(feature):
    data = experiment()
    formulation = OptL(lam=0.3, n_treatment=2)
    problem = formulation.build(data, 1)
    constraints.at_most_of(problem, [data.features.labels[feature]], 0)
    result = problem.solve("highs", **PROVEN)
    thresholds, costs = find_thresholds(data), []
    for chosen in range(-1, len(thresholds)):
        splits = tree_of_thresholds(data, problem.topology, thresholds, np.array([chosen]))
        tree = problem.instance.leaves.with_estimates(splits)
        if feature not in tree.features_used().overall:
            costs.append(formulation.evaluate(tree, problem.instance))
    if not np.isfinite(min(costs, default=np.inf)):
        assert result.status == "infeasible"
        return
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(min(costs), rel=1e-5)
    assert data.features.labels[feature] not in result.features_used


def test_an_estimate_without_samples_uses_no_other_feature():
    """Nobody right of x1 = 1.5 had treatment 0: the root's estimate for it reads x0, which the tree does not use."""
    x1 = np.repeat([0.0, 1.0, 2.0], 4)
    X = np.column_stack([x1 == 1, x1]).astype(float)
    treatment = np.where(x1 == 2, 1, np.arange(12) % 2)
    y = np.where((treatment == 0) & (x1 == 1), 5.0, 1.0)
    data = Dataset.from_arrays(X, y, task="regression", scaling="minmax", treatments=treatment)
    problem = OptL(lam=0.1, n_treatment=1).build(data, 2)
    leaves, thresholds = problem.instance.leaves, find_thresholds(data)
    assert leaves.fit(np.ones(12, dtype=bool)).coefficients[0, 0] > 0
    on_x1 = np.flatnonzero(thresholds.feature == 1)
    splits = tree_of_thresholds(data, problem.topology, thresholds, np.array([on_x1[1], on_x1[0], -1]))
    tree = leaves.with_estimates(splits)
    assert tree.features_used().overall == (1,)
    assert tree.outcomes[3, 0] == pytest.approx(3.0)  # the mean of treatment 0
