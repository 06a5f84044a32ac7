"""The structure that a formulation states for searches."""

from dataclasses import dataclass

import numpy as np
import pytest

from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.problem.registry import formulation_classes, get_formulation
from mipforest.problem.structure import HyperplaneCharges
from mipforest.problem.tree_search import search_classes
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology


def few_samples(formulation):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 0]], dtype=float)
    y = np.array([0, 1, 1, 1, 0, 0, 1, 0])
    if formulation.task == "prescription":
        treatments = np.array([0, 1, 0, 1, 1, 0, 1, 0])
        return Dataset.from_arrays(X, y + 1.0, treatments=treatments, scaling=formulation.scaling)
    if formulation.task == "decision":
        return Dataset.from_arrays(X, rewards=np.column_stack([y, 1 - y]), scaling=formulation.scaling)
    if formulation.task == "multi-output":
        return Dataset.from_arrays(X, np.column_stack([y, X[:, 0]]), scaling=formulation.scaling)
    return Dataset.from_arrays(X, y, task=formulation.task, scaling=formulation.scaling)


@pytest.mark.parametrize("name", formulation_classes())
def test_a_structure_is_of_the_kind_that_its_formulation_says(name):
    formulation = formulation_classes()[name]()
    instance = formulation.bind(few_samples(formulation), Topology(1), TimeBudget())
    structure, kind = formulation.structure(instance), formulation.structure_type
    assert structure is None if kind is None else isinstance(structure, kind)


def test_splits_of_hyperplanes_have_a_margin():
    formulation = get_formulation("opt-h")(epsilon=0.25)
    structure = formulation.structure(formulation.bind(few_samples(formulation), Topology(1)))
    assert isinstance(structure, HyperplaneCharges)
    assert structure.margin == 0.25  # exact: a copy


@dataclass(frozen=True, kw_only=True)
class OfAnotherPackage(get_formulation("oct")):
    name = "of-another-package"


def test_formulations_of_other_packages_are_searched_by_their_structure():
    formulation = OfAnotherPackage()
    result = formulation.build(few_samples(formulation), 2).solve()
    assert result.solution.solver == "exact-search"
    assert (result.status, result.verified) == ("optimal", True)


def test_a_search_refuses_another_structure_in_words():
    formulation = get_formulation("oct-h")()
    problem = formulation.build(few_samples(formulation), 1)
    with pytest.raises(
        Unsupported,
        match="it takes trees of univariate splits and constant leaves, and oct-h has trees of hyperplane splits",
    ):
        search_classes()["exact-search"]().check(problem)
    without = get_formulation("ort-l")(regulariser="l1", lam=0.0)
    problem = without.build(few_samples(without), 1)
    assert "no structure for searches, with these parameters" in search_classes()["local-search"]().refusal(
        problem
    )
