"""Terms that a user adds to the objective: the value is the definition with them, and bounds hold for it."""

from itertools import product

import numpy as np
import pytest
from labelled_trees import labelled_trees
from tolerance import at_least, at_most, same

from formulations.leaves import baseline_error
from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.miret import Miret
from formulations.oct import Oct
from formulations.ort import Ort
from formulations.ort_l import OrtL
from mipforest import constraints
from mipforest.data import Dataset

PROVEN = {"time_limit": 60, "gap": 1e-7}
ALPHA = 0.02


def classes(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (10, 2)).astype(float)
    y = ((X[:, 0] + rng.integers(0, 4, 10)) > 3).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y)


def check(result, expected):
    """The value, the bound on it, and what is said of it."""
    assert result.verified, result.failed_checks
    assert result.status == "optimal"
    assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-7)
    assert result.evaluated_objective == pytest.approx(expected, rel=1e-6, abs=1e-7)
    assert result.bound == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert result.proven_for == "definition"
    assert "no bound" not in repr(result)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("variant", ["paper", "valid", "tight"])
@pytest.mark.parametrize("seed", [0, 2])
def test_features_cost_something_once(variant, seed):
    data, price = classes(seed), np.array([0.3, -0.05])
    expected = min(
        (tree.predicted != data.y).sum() / baseline_error(data)
        + ALPHA * sum(split is not None for split in tree.splits)
        + price[[j in tree.features for j in (0, 1)]].sum()
        for tree in labelled_trees(data.X_raw)
    )
    problem = Oct(alpha=ALPHA, variant=variant).build(data, 2)
    m = problem.model
    m.minimize(m.objective_expression + price @ constraints.features_used(problem))
    check(problem.solve("highs", **PROVEN), expected)


@pytest.mark.parametrize("variant", ["paper", "tight"])
def test_splits_cost_more(variant):
    """The sum is that of another parameter."""
    data = classes(2)
    dearer = Oct(alpha=ALPHA + 0.1, variant=variant).build(data, 2).solve("highs", **PROVEN)
    problem = Oct(alpha=ALPHA, variant=variant).build(data, 2)
    problem.model.minimize(problem.model.objective_expression + 0.1 * problem.model["d"].sum() + 3.0)
    check(problem.solve("highs", **PROVEN), dearer.objective + 3.0)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("slope", [2.0, -6.0])
@pytest.mark.parametrize("formulation", [Margot, HfsMargot])
def test_weights_of_hyperplanes_cost_something(formulation, slope):
    """Limits on weights may leave out the best tree: no bound is claimed, and the result says so."""
    gurobipy = pytest.importorskip("gurobipy")
    rng = np.random.default_rng(3)
    X = rng.random((7, 2)).round(2)
    data = Dataset.from_arrays(X, (X[:, 0] + 0.4 * rng.random(7) > 0.7).astype(int))
    C, epsilon = 5.0, 1e-3
    values = []
    with gurobipy.Env(params={"OutputFlag": 0}) as env:
        for side in product([-1.0, 1.0], repeat=data.n):
            with gurobipy.Model(env=env) as g:
                w, b = g.addMVar(2, lb=-np.inf), g.addVar(lb=-np.inf)
                xi, score = g.addMVar(data.n), data.X @ w + b
                if formulation is HfsMargot:  # one feature
                    s = g.addMVar(2, vtype="B")
                    g.addConstr(s.sum() <= 1)
                    g.addConstr(w <= 500 * s)
                    g.addConstr(w >= -500 * s)
                g.addConstr(np.diag(data.sign) @ score + xi >= 1)
                g.addConstr(np.diag(side) @ score >= np.where(np.array(side) > 0, 0.0, epsilon))
                g.setObjective(0.5 * w @ w + C * xi.sum() + slope * w[0])
                g.optimize()
                if g.Status == gurobipy.GRB.OPTIMAL:
                    values.append(g.ObjVal)
    given = {"B": 1} if formulation is HfsMargot else {}
    problem = formulation(C=C, epsilon=epsilon, **given).build(data, 1)
    m = problem.model
    m.minimize(m.objective_expression + slope * m["w"][0, 0])
    result = problem.solve("highs", **PROVEN)
    assert result.verified, result.failed_checks
    assert at_least(result.objective, min(values) - 1e-4)
    # Without limits on weights nothing bounds the terms from below.
    assert result.status != "optimal"
    assert result.bound == -np.inf
    assert "variant valid proves no bound on the objective as it was changed" in repr(result)
    assert any("no better bound than -inf is proven" in said for said in result.solution.warnings)


def test_a_price_of_each_feature_of_a_hyperplane():
    """It is that of the soft model, whose parameter it is there: with limits that hold for it."""
    rng = np.random.default_rng(3)
    X = rng.random((12, 3)).round(2)
    data = Dataset.from_arrays(X, (X[:, 0] + 0.4 * rng.random(12) > 0.7).astype(int))
    soft = SfsMargot(C=5.0, B=1, alpha=2.0).build(data, 1).solve("highs", **PROVEN)
    problem = SfsMargot(C=5.0, B=1, alpha=1.0).build(data, 1)
    m = problem.model
    # Features beyond the budget of one are paid: as much again.
    m.minimize(m.objective_expression + m["u"].sum())
    result = problem.solve("highs", **PROVEN)
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(soft.objective, rel=1e-5)
    assert at_most(result.bound, soft.objective + 1e-4)
    assert result.bound == pytest.approx(soft.objective, rel=1e-4)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "formulation",
    [
        HfsMargot(C=5.0, B=1),
        OrtL(alpha=0.0, lam=0.01),
        Miret(ensemble="random-forest:trees=5", alpha=0.05, proximity=1.5),
    ],
    ids=["hfs-margot", "ort-l", "miret"],
)
def test_a_dear_feature_is_left_out(formulation):
    """Limits from a tree that uses it would leave out the best tree without it."""
    rng = np.random.default_rng(3)
    X = rng.random((12, 2)).round(2)
    y = X[:, 0] + 0.4 * rng.random(12)
    data = Dataset.from_arrays(X, y if formulation.name == "ort-l" else (y > 0.7).astype(int))
    without = formulation.build(data, 1)
    constraints.forbid_features(without, "x0")
    expected = without.solve("highs", **PROVEN)
    problem = formulation.build(data, 1)
    m = problem.model
    m.minimize(m.objective_expression + 1e3 * constraints.features_used(problem)[0])
    check(problem.solve("highs", **PROVEN), expected.objective)
    assert expected.objective > formulation.build(data, 1).solve("highs", **PROVEN).objective + 1e-6


def test_a_bound_from_the_definition_counts_what_was_added():
    """No tree costs less than 0, nor than the terms are at least."""
    problem = Oct(alpha=0.0, variant="paper").build(classes(0), 1)
    m = problem.model
    m.minimize(m.objective_expression - 0.25 * m["d"].sum())
    assert same(problem.least_objective(), -0.25)
    m.minimize(m.objective_expression + 1.0)
    assert same(problem.least_objective(), 0.75)
    result = problem.solve("highs", time_limit=0)
    assert same(result.bound, 0.75)
    assert at_least(result.objective, 0.75)


def test_a_bound_that_is_lost_is_said():
    problem = Oct(alpha=0.0).build(classes(0), 1)
    problem.model.maximize(problem.model.objective_expression)
    result = problem.solve("highs", time_limit=20)
    assert not result.verified
    assert "proves no bound on the objective as it was changed" in repr(result)
    problem = Ort(variant="tight").build(
        Dataset.from_arrays(np.arange(6.0)[:, None], np.arange(6.0) ** 2, task="regression"), 1
    )
    m = problem.model
    m.minimize(m.objective_expression - 0.01 * m["beta0"].sum())
    result = problem.solve("highs", time_limit=20)
    assert "variant tight proves no bound on the objective as it was changed" in repr(result)
