"""Every registered formulation holds the contract between its operations."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from margin_data import random_tree as margin_tree
from margin_data import with_gaps_everywhere
from miret_data import random_split_tree

from mipforest.data import Dataset
from mipforest.problem.problem import Problem
from mipforest.problem.registry import formulation_classes
from mipforest.testing import FormulationTest, formulation_tests
from mipforest.testing.formulation_trial import random_tree
from mipforest.trees import Tree


def linear_tree(problem: Problem, rng: np.random.Generator) -> Tree:
    """A tree of linear classifiers that suits its samples, or any one within the budget of features, at random."""
    if rng.random() < 0.4:
        return random_tree(problem, rng)
    formulation, data = problem.formulation, problem.data
    hard = formulation.name in ("hfs-margot", "budgeted-olct")
    budgets = [1] if formulation.name == "univariate-olct" or hard else [1, 2, data.p]
    tree = margin_tree(
        rng, data, problem.topology.depth, epsilon=formulation.epsilon, budget=int(rng.choice(budgets))
    )
    errors_counted = getattr(formulation, "loss", "") == "misclassification"
    return with_gaps_everywhere(tree, data, formulation.epsilon) if errors_counted else tree


def mimicking_tree(problem: Problem, rng: np.random.Generator) -> Tree:
    """Random splits of the features that MIRET allows at each level."""
    return random_split_tree(rng, problem.data, problem.topology.depth, problem.instance.target.allowed)


def regression_data() -> Dataset:
    """Ten samples with two features, for models whose leaves are linear."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 8, (10, 2))
    return Dataset.from_arrays(X, X @ [1.0, 2.0] + rng.integers(0, 5, 10), task="regression")


def two_classes() -> Dataset:
    """Twelve samples with two features, for models whose starts solve a problem for each node."""
    rng = np.random.default_rng(4)
    X = rng.integers(0, 20, (12, 2)) / 20
    return Dataset.from_arrays(X, (X.sum(axis=1) + 0.4 * rng.standard_normal(12) > 1).astype(int))


LINEAR = {"trees": linear_tree, "n_trees": 8}
OLCT = {**LINEAR, "data": two_classes().with_scaling("standard"), "n_trees": 5}
MIRET = {"ensemble": "random-forest:trees=5", "alpha": 0.05, "proximity": 1.5}
MIRET_LABEL = "".join(f" {name}={value}" for name, value in MIRET.items())

#: What the tests of a formulation need that differs from the defaults.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "oct": {"settings": [{"alpha": 0.05}, {"N_min": 3}], "depths": (1, 3), "n_trees": 8},
    "oct-h": {"settings": [{"alpha": 0.02, "N_min": 2}], "depths": (1, 3), "n_trees": 8},
    "ort": {"settings": [{"alpha": 0.05}, {"loss": "absolute", "N_min": 2}], "n_trees": 8},
    "ort-h": {"settings": [{"alpha": 0.05, "loss": "absolute"}], "n_trees": 8},
    "ort-l": {"settings": [{"alpha": 0.05}], "data": regression_data(), "n_solved": 5},
    "ort-lh": {
        "settings": [{"loss": "absolute", "regulariser": "l0"}],
        "data": regression_data(),
        "n_solved": 5,
    },
    "margot": {**LINEAR, "data": two_classes(), "settings": [{"C": 2.0}]},
    "hfs-margot": {**LINEAR, "data": two_classes()},
    "sfs-margot": {**LINEAR, "data": two_classes()},
    "olct": OLCT,
    "budgeted-olct": OLCT,
    "univariate-olct": OLCT,
    "loss-optimal": {
        **OLCT,
        "settings": [
            {"loss": "misclassification", "epsilon": 0.01, "regulariser": "l2", "selection": "soft"}
        ],
    },
    "miret": {
        "settings": [MIRET],
        "trees": mimicking_tree,
        # Its model may hold a tree with its subtrees swapped in the place of the tree.
        "exact_leaves": False,
        "same_optimum": ("tight", "paper"),
        "opt_out": {
            f"{test} [improved{MIRET_LABEL}]": "it leaves out trees without a split"
            for test in ("encode is feasible", "starts are feasible")
        },
    },
}


def contracts() -> list[Any]:
    return [
        pytest.param(test, id=f"{name}: {test}")
        for name, formulation in formulation_classes().items()
        for test in formulation_tests(formulation, **OPTIONS.get(name, {}))
    ]


@pytest.mark.parametrize("contract", contracts())
def test_contract(contract: FormulationTest) -> None:
    contract()
