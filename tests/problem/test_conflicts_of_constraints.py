"""Custom constraints that contradict each other are named, and harmless ones are not."""

import numpy as np
import pytest
from margin_data import random_data

from formulations.margot import Margot
from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.ort import Ort
from mipforest import constraints
from mipforest.data import Dataset

pytestmark = pytest.mark.usefixtures("few_penalties")

FEATURES = ["x0", "x1", "x2"]


def data_of(formulation, seed):
    if formulation.task == "regression":
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(6, 3))
        return Dataset.from_arrays(X, X[:, 0] + (X[:, 1] > 0.5), task="regression")
    return random_data(seed, n=6, p=3).with_scaling(formulation.scaling)


def forbidden_and_required(problem, a, b):
    constraints.forbid_features(problem, a)
    constraints.require_features(problem, a)
    return f"forbid_{a}"


def budget_too_small(problem, a, b):
    constraints.require_features(problem, [a, b])
    constraints.feature_budget(problem, 3.0, {a: 2.0, b: 2.0})
    return "feature_budget"


def none_of_the_group(problem, a, b):
    constraints.at_most_of(problem, [a, b], 0)
    constraints.require_features(problem, a)
    return "at_most_of"


def own_rows(problem, a, b):
    used = constraints.features_used(problem)
    problem.model.add("both", used[[FEATURES.index(a), FEATURES.index(b)]].sum() >= 2)
    problem.model.add("one", used[[FEATURES.index(a), FEATURES.index(b)]].sum() <= 1)
    return "both", "one"


CONFLICTS = (forbidden_and_required, budget_too_small, none_of_the_group, own_rows)
FORMULATIONS = (Oct(), OctH(), Margot(C=1), Ort())

#: A tree must be able to use two features, so that nothing but the constraints stands in the way.
DEPTH = {"oct": 2, "ort": 2}


@pytest.mark.first_cases(6)
@pytest.mark.parametrize("seed", range(20))
def test_conflicting_constraints_are_named(seed):
    rng = np.random.default_rng(seed)
    formulation, conflict = FORMULATIONS[seed % 4], CONFLICTS[seed // 4 % 4]
    problem = formulation.build(data_of(formulation, seed), DEPTH.get(formulation.name, 1))
    own = set(problem.model.constraints)
    a, b, c = rng.permutation(FEATURES)
    constraints.forbid_features(problem, c, nodes=[0])
    wanted = np.atleast_1d(conflict(problem, a, b))
    problem.model.add("harmless", constraints.features_used(problem).sum() <= 3)
    found = problem.model.explain_infeasibility()
    named = set(found.blocks) - own
    assert set(wanted) <= named, (wanted, found)
    assert not named & {"harmless", f"forbid_{c}"}, found
    assert found.irreducible, found


def test_a_solve_without_a_tree_says_why():
    problem = Oct().build(data_of(Oct(), 0), 1)
    forbidden_and_required(problem, "x0", "x1")
    result = problem.solve("highs", time_limit=10)
    assert result.status == "infeasible"
    assert set(result.conflict.blocks) == {"forbid_x0", "require_x0"}
    assert "require_x0: " in result.to_dict()["conflict"]


def test_limits_for_good_trees_are_no_part_of_a_conflict():
    """MARGOT's constants hold for trees up to a cutoff: they must not be named where no tree at all is left."""
    problem = Margot(C=10).build(random_data(4, n=16, p=4).with_scaling("minmax"), 2)
    constraints.min_samples_leaf(problem, 1000)
    result = problem.solve("highs", time_limit=20)
    assert result.status == "infeasible"
    assert any(block.startswith("leaf_size") for block in result.conflict.blocks)
    assert not set(result.conflict.blocks) & problem.formulation.rows_below_cutoff


def test_a_solve_with_a_tree_has_no_conflict():
    result = Oct().build(data_of(Oct(), 0), 1).solve("highs", time_limit=10)
    assert result.conflict is None
    assert "conflict" not in result.to_dict()
