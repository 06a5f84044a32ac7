"""Every search under every kind of constraint: it refuses, or its tree satisfies all, by definition and by rows."""

import numpy as np
import pytest
from tolerance import at_least

import mipforest
from mipforest.data import Dataset
from mipforest.errors import MipforestError, Unsupported
from mipforest.problem.constraints import (
    AtMostFeatures,
    AtMostSplits,
    Condition,
    Forbid,
    LimitLabel,
    MinLeaf,
    Monotone,
    OncePerPath,
    Parity,
    Recall,
    Require,
    Split,
)
from mipforest.problem.expressions import NotExpressed

N, NAMES = 24, ["a", "b", "c"]
#: What a bound may exceed an optimum by, relatively: that of the solver's gap.
GAP = 1e-4


def not_at_root(tree):
    """Whether the root does not read the first feature."""
    return not tree.features_used().per_node or 0 not in tree.features_used().per_node[0]


CONSTRAINTS = [
    Forbid("a"),
    Forbid("a", (0,)),
    Require("c"),
    AtMostFeatures(1),
    OncePerPath(),
    Split("c", 0.5),
    AtMostSplits(1),
    Monotone("a"),
    MinLeaf(4),
    Recall("1", 0.95),
    LimitLabel("1", 0.3),
    Parity("g", 0.05, groups=np.arange(N) % 2),
    Condition("the root does not read a", not_at_root),
]
FEW = {"starts": 2, "kicks": 5}
SEARCHES = [
    ("local-search", "oct", FEW),
    ("oblique-search", "oct-h", {}),
    ("local-search", "ort", FEW),
    ("prescription-search", "opt", {}),
    ("cut-loop", "ogrs", {}),
    ("local-search", "oct-h", FEW),
    ("local-search", "ort-l", FEW),
    ("local-search", "opt-l", FEW),
    ("prescription-search", "opt-l", {}),
    ("card-enumeration", "ogrs", {}),
    ("oblique-search", "ort-h", {}),
    ("local-search", "margot", FEW),
    ("tao", "oct", {}),
]


def data_for(model):
    rng = np.random.default_rng(3)
    X = np.round(rng.random((N, 3)), 1)
    y = (X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(N) > 1).astype(int)
    if model.startswith("opt"):
        treatments = rng.integers(0, 2, N).astype(str)
        return Dataset.from_arrays(X, X[:, 0] + 0.1 * rng.random(N), treatments=treatments, features=NAMES)
    if model.startswith("ort"):
        return Dataset.from_arrays(X, X[:, 0] + 0.1 * rng.random(N), features=NAMES)
    return Dataset.from_arrays(X, y, features=NAMES, scaling="none" if model == "ogrs" else "minmax")


@pytest.mark.first_cases(2 * len(CONSTRAINTS))
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@pytest.mark.parametrize(("search", "model", "options"), SEARCHES, ids=lambda part: str(part))
def test_it_refuses_or_keeps_them(search, model, options, constraint):
    problem = mipforest.get_formulation(model)().build(data_for(model), 1 if model == "ogrs" else 2)
    try:
        problem.constrain(constraint)
    except NotExpressed:
        return
    try:
        result = problem.solve(search, time_limit=0.5, solver_options=options)
    except Unsupported as refused:
        told = str(refused)
        assert str(constraint) in told or "features" in told
        return
    if result.tree is None:
        assert any("no tree" in warning for warning in result.solution.warnings)
        return
    assert result.verified, result.failed_checks
    assert constraint.admits(result.tree, problem.data)


@pytest.mark.parametrize("constraint", [MinLeaf(4), Recall("1", 0.95), Forbid("a", (0,))], ids=str)
def test_the_bound_of_the_oblique_search_holds_within_constraints(constraint):
    data = data_for("oct-h").take(np.arange(10))
    formulation = mipforest.get_formulation("oct-h")(alpha=0.1)
    within, proven = formulation.build(data, 1), formulation.build(data, 1)
    for problem in (within, proven):
        problem.constrain(constraint)
    found = within.solve("oblique-search", time_limit=5)
    other = proven.solve("highs", time_limit=60)
    assert other.status == "optimal"
    assert at_least(other.objective * (1 + GAP), found.bound)
    assert at_least(found.objective * (1 + GAP), other.bound)


def test_limits_on_features_of_estimates_that_all_features_fit_are_refused():
    problem = mipforest.get_formulation("opt-l")().build(data_for("opt-l"), 1)
    problem.constrain(Forbid("a"))
    for search in ("prescription-search", "local-search"):
        with pytest.raises(Unsupported, match="fitted to all features"):
            problem.solve(search)


def test_a_function_of_a_card_is_no_row():
    problem = mipforest.get_formulation("ogrs")().build(data_for("ogrs"), 1)
    problem.require(not_at_root, "the first rule does not read a")
    with pytest.raises(MipforestError, match="a function of the card"):
        problem.solve("cut-loop")


@pytest.mark.parametrize("depth", [2, 4])
@pytest.mark.parametrize("solver", ["local-search", "auto"])
@pytest.mark.parametrize("constraint", [Recall("1", 1.0), Split("c", 0.5), MinLeaf(9)], ids=str)
def test_without_rows_no_tree_breaks_a_constraint(constraint, solver, depth):
    problem = mipforest.get_formulation("oct")(alpha=0.0).build(data_for("oct"), depth, declare=False)
    problem.constrain(constraint)
    options = FEW if solver == "local-search" else {}
    result = problem.solve(solver, time_limit=2, solver_options=options)
    if result.tree is not None:
        assert result.verified, result.failed_checks
        assert constraint.admits(result.tree, problem.data)
    if solver == "auto" and depth == 2:
        assert result.status == "optimal"
