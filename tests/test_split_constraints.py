"""Constraints on trees of linear classifiers: the MARGOT family."""

from itertools import product

import numpy as np
import pytest

from formulations.margot import HfsMargot, Margot
from formulations.olct import Olct
from mipforest import constraints
from mipforest.data import Dataset
from mipforest.problem import repair
from mipforest.problem.expressions import NotExpressed

pytestmark = pytest.mark.usefixtures("few_penalties")

gurobipy = pytest.importorskip("gurobipy")

PROVEN = {"time_limit": 60, "gap": 1e-7}
EPSILON = 1e-3
C = 10.0


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """Draw few trees where a start is looked for: a search of 5000 takes seconds, and is tested with the repairs."""
    monkeypatch.setattr(repair, "CANDIDATES", 100)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(3)
    X = rng.random((8, 2)).round(2)
    y = (X[:, 0] + 0.4 * rng.random(8) > 0.7).astype(int)
    return Dataset.from_arrays(X, y, scaling="minmax")


@pytest.fixture(scope="module")
def best_by_sides(small):
    """Least value of a node for every way to route the samples, by Gurobi."""
    sides = [np.array(side, dtype=bool) for side in product([False, True], repeat=small.n)]
    with gurobipy.Env(params={"OutputFlag": 0}) as env:
        return [(side, best_split(env, small, np.where(side, 1.0, -1.0))) for side in sides]


def best_split(env, data, side):
    """Least value of a support vector machine whose scores keep the given sides."""
    X, sign = data.X, data.sign
    with gurobipy.Model(env=env) as m:
        w = m.addMVar(X.shape[1], lb=-np.inf)
        b, xi = m.addVar(lb=-np.inf), m.addMVar(len(X))
        score = X @ w + b
        m.addConstr(np.diag(sign) @ score + xi >= 1)
        m.addConstr(np.diag(side) @ score >= np.where(side > 0, 0.0, EPSILON))
        m.setObjective(0.5 * w @ w + C * xi.sum())
        m.optimize()
        return m.ObjVal if m.Status == gurobipy.GRB.OPTIMAL else np.inf


@pytest.mark.parametrize(
    ("constrain", "holds"),
    [
        # Enumerated for OCT in test_custom_constraints.py, and proven for MARGOT in test_repair_of_limits.py.
        pytest.param(
            lambda p: constraints.demographic_parity(p, p.data.y, 0.25),
            lambda right, y: abs(right[y == 0].mean() - right[y == 1].mean()) <= 0.25,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda p: constraints.max_false_negatives(p, 0),
            lambda right, y: not (~right & (y == 1)).any(),
            marks=pytest.mark.slow,
        ),
        (
            lambda p: constraints.min_samples_leaf(p, 5),
            lambda right, y: right.sum() in (0, 8),
        ),
    ],
    ids=["parity", "false_negatives", "leaf_size"],
)
def test_depth_one_equals_all_sides_by_quadratic_programmes(small, best_by_sides, constrain, holds):
    values = [value for side, value in best_by_sides if holds(side, small.y)]
    problem = Margot(C=C).build(small, 1)
    problem.model["w"].set_bounds(-100, 100)
    problem.model["b"].set_bounds(-200, 200)
    constrain(problem)
    result = problem.solve("highs", **PROVEN)
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(min(values), rel=1e-5)
    free = Margot(C=C).build(small, 1).solve("highs", **PROVEN)
    assert result.objective > free.objective + 1e-3, "the constraint must bind to be tested"
    assert holds(result.tree.predict(small.X_raw) == 1, small.y)


@pytest.fixture(scope="module")
def tumours():
    """20 tumours, four features."""
    from sklearn.datasets import load_breast_cancer

    frame = load_breast_cancer(as_frame=True).frame.iloc[:60:3]
    columns = ["mean radius", "mean texture", "mean area", "worst concavity", "target"]
    return Dataset.from_frame(frame[columns], target="target", scaling="minmax")


def solved(formulation, data, depth, *added):
    problem = formulation.build(data, depth)
    for constrain in added:
        constrain(problem)
    result = problem.solve("highs", time_limit=20)
    assert result.verified, result.failed_checks
    return result


@pytest.mark.parametrize(
    "formulation",
    # Those of a budgeted tree are written by the same rows, with binaries that the model has.
    [pytest.param(Margot(C=10), marks=pytest.mark.slow), HfsMargot(C=10, B=2)],
    ids=["margot", "hfs-margot"],
)
def test_features(tumours, formulation):
    without = solved(formulation, tumours, 1, lambda p: constraints.forbid_features(p, "mean area"))
    assert "mean area" not in without.features_used
    cheap = solved(formulation, tumours, 2, lambda p: constraints.feature_budget(p, 1))
    assert len(cheap.features_used) <= 1
    with_texture = solved(formulation, tumours, 1, lambda p: constraints.require_features(p, "mean texture"))
    assert "mean texture" in with_texture.features_used
    apart = solved(formulation, tumours, 2, constraints.once_per_path)
    used = apart.tree.features_used().per_node
    assert not set(used[0]) & (set(used[1]) | set(used[2]))


@pytest.mark.parametrize(
    "increasing", [True, pytest.param(False, marks=pytest.mark.slow)]
)  # the signs turned
def test_monotone_in_the_tree(tumours, increasing):
    result = solved(
        Margot(C=10), tumours, 2, lambda p: constraints.monotone(p, "mean texture", increasing=increasing)
    )
    X = np.repeat(tumours.X_raw[:20], 15, axis=0)
    X[:, 1] = np.tile(np.linspace(5, 45, 15), 20)
    steps = np.diff(result.tree.predict(X).reshape(20, 15), axis=1)
    assert (steps >= 0).all() if increasing else (steps <= 0).all()


def test_a_fixed_split_keeps_its_exact_threshold(tumours):
    result = solved(Margot(C=10), tumours, 2, lambda p: constraints.fix_split(p, "mean radius", 15.0))
    weights, biases = result.tree.original_units()
    assert np.flatnonzero(weights[0]).tolist() == [0]
    assert -biases[0] / weights[0, 0] == pytest.approx(15.0)
    assert (result.tree.scores(tumours.X_raw)[:, 0] >= 0).tolist() == (tumours.X_raw[:, 0] >= 15).tolist()


def test_samples_per_leaf_in_the_tree(tumours):
    result = solved(Olct(C=1.0, refinement=False), tumours, 2, lambda p: constraints.min_samples_leaf(p, 7))
    sizes = np.bincount(result.tree.apply(tumours.X_raw), minlength=7)[3:]
    assert all(size == 0 or size >= 7 for size in sizes)


def test_without_bounds_the_message_says_what_to_do(tumours):
    problem = Margot(variant="paper").build(tumours, 1)
    with pytest.raises(NotExpressed, match="build variant 'valid', or bound them"):
        constraints.max_false_negatives(problem, 0)
    problem.model["w"].set_bounds(-50, 50)
    problem.model["b"].set_bounds(-50, 50)
    constraints.max_false_negatives(problem, 0)
    result = problem.solve("highs", time_limit=20)
    assert result.verified
    assert not ((result.tree.predict(tumours.X_raw) == 0) & (tumours.y == 1)).any()


@pytest.mark.parametrize("formulation", [Margot(C=C), HfsMargot(C=C, B=1), Olct()])
def test_a_fixed_root_has_a_start(small, formulation):
    """No default start has the split; the best tree for its sides is one."""
    problem = formulation.build(small.with_scaling(formulation.scaling), 2)
    x1 = np.sort(small.X_raw[:, 1])
    threshold = float((x1[3] + x1[4]) / 2)
    constraints.fix_split(problem, small.features.labels[1], threshold, node=0)
    values, warnings = problem.start_values(problem.start_tree())
    assert values is not None
    assert warnings[-1] == "the fixed splits were put in, and the other nodes solved anew"
    started = problem.formulation.decode(values, problem.instance).with_scaling(
        problem.data.encoding.offset, problem.data.encoding.scale
    )
    right = started.apply(small.X_raw) >= started.topology.leaves[2]
    assert right.tolist() == (small.X_raw[:, 1] >= threshold).tolist()  # exact: data, as they are
