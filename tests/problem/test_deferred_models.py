"""Models of large problems are declared when they are first read, and a tree search reads none."""

import numpy as np
import pytest
from tolerance import same

from formulations.margot import Margot
from formulations.oct import Oct
from formulations.ort import Ort
from mipforest.data import Dataset
from mipforest.problem import formulation
from mipforest.problem.constraints import AtMostFeatures, Forbid, MinLeaf


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(formulation, "MAX_ASSIGNED", 0)


def samples(task="classification"):
    rng = np.random.default_rng(3)
    X = np.round(rng.random((10, 3)), 2)
    y = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(10)
    y = y if task == "regression" else (y > np.median(y)).astype(int)
    return Dataset.from_arrays(X, y, features=["a", "b", "c"], task=task)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("constraints", [(), (Forbid(("a",)),), (AtMostFeatures(1), MinLeaf(3))], ids=str)
@pytest.mark.parametrize(
    ("model", "task", "search"),
    [(Oct(), "classification", "exact-search"), (Ort(), "regression", "exact-search")],
)
def test_a_search_reads_no_model_and_others_read_the_same_one(
    model, task, search, constraints, all_are_large, monkeypatch
):
    deferred = model.build(samples(task), 2)
    deferred.constrain(*constraints)
    found = deferred.solve(search)
    assert deferred.waits
    assert "declared when it is read" in repr(deferred)
    assert found.verified, found.failed_checks
    assert found.status == "optimal"
    monkeypatch.undo()
    at_once = model.build(samples(task), 2)
    at_once.constrain(*constraints)
    assert not at_once.waits
    assert same(at_once.solve(search).objective, found.objective)
    assert deferred.model.matrix().columns == at_once.model.matrix().columns
    assert (deferred.model.matrix().A != at_once.model.matrix().A).nnz == 0
    assert not deferred.waits
    assert deferred.is_stated
    assert deferred.changed() == bool(constraints)
    assert same(deferred.solve("highs", gap=1e-7).objective, at_once.solve("highs", gap=1e-7).objective)
    assert deferred.solve(search).status == "optimal"


def test_rows_by_hand_and_constraints_of_hyperplanes_have_the_model_declared(all_are_large):
    problem = Margot(C=2.0).build(samples(), 1)
    assert problem.waits
    problem.constrain(Forbid(("a",)))
    assert not problem.waits
    assert problem.solve().status == "optimal"
    problem = Oct().build(samples(), 1)
    problem.model.add("no_a", problem.model["u"][0, :1] <= 0)
    assert problem.changed()
    assert problem.solve("highs").verified


def test_a_declaration_that_fails_is_begun_again(all_are_large, monkeypatch):
    def fails(*_):
        raise MemoryError

    problem = Oct().build(samples(), 1)
    with monkeypatch.context() as patched:
        patched.setattr(Oct, "declare", fails)
        with pytest.raises(MemoryError):
            problem.model.matrix()
    assert problem.waits
    assert problem.size() == Oct().build(samples(), 1).size()
