"""Sparsity paths: warm starts, the papers' grid, and going on where one was ended."""

import numpy as np
import pytest
from tolerance import less

from mipforest import get_formulation, load
from mipforest.data import Dataset
from mipforest.problem.parameters import ParameterError
from mipforest.smooth.path import penalty_grid, sparsity_path
from mipforest.smooth.search import descend
from mipforest.trees import Topology


@pytest.fixture(scope="module")
def wine():
    return load("wine").split(0.25, seed=0)


def sparse(**given):
    return get_formulation("s-orct")(n_starts=1, stages=1, **given)


def test_the_papers_grid_is_divided_by_the_number_of_coefficients():
    local, glob = penalty_grid(sparse(), p=10, depth=2)
    assert (len(local), len(glob)) == (17, 17)
    assert (local[0], local[-1], glob[1]) == (0.0, 8 / 30, 2**-12 / 10)
    assert penalty_grid(get_formulation("s-orrt")(), p=40, depth=1)[0][-1] == 8 / 120


def test_zeros_grow_along_a_path_and_a_path_goes_on_where_it_was_ended(wine, tmp_path):
    train, test = wine
    store, grid = tmp_path / "path.jsonl", [0.0, 0.005, 0.05, 5.0]
    path = sparsity_path(sparse(), train, 2, test=test, glob=grid, store=store)
    zeros = path["global_sparsity"].to_numpy()
    assert (np.diff(zeros) >= 0).all()
    assert zeros[-1] == 1
    assert path["test"][0] > 0.8
    lines = store.read_text().splitlines()
    store.write_text("\n".join(lines[:2]) + "\n" + lines[2][:40])  # killed while it wrote the third line
    assert sparsity_path(sparse(), train, 2, test=test, glob=grid, store=store).equals(path)
    assert len(store.read_text().splitlines()) == 4
    with pytest.raises(ParameterError, match="is of another path"):
        sparsity_path(sparse(), train, 2, glob=[0.0, 1.0], store=store)
    with pytest.raises(ParameterError, match="ascending"):
        sparsity_path(sparse(), train, 2, glob=[1.0, 0.0])
    with pytest.raises(ParameterError, match="orct has no penalties"):
        sparsity_path(get_formulation("orct")(), train, 2)


def test_a_large_penalty_makes_steep_splits_small_rather_than_none():
    X = np.random.default_rng(0).random((100, 2))
    data = Dataset.from_arrays(X, (X[:, 0] > 0.5) + 0)
    model = sparse(lam_local=1.0).bind(data, Topology(1)).smooth
    steep = model.with_best_leaves({"a": np.array([[1.0, 0.0]]), "mu": np.array([0.25])})
    empty = model.with_best_leaves({"a": np.zeros((1, 2)), "mu": np.zeros(1)})
    # The empty tree is stationary, and better than the steep split: one step could lead there.
    assert less(model.objective(empty), model.objective(steep))
    found = descend(model, steep, lambda: False)
    assert model.objective(found) < 0.6 * model.objective(empty)
    assert found["a"][0, 1] == 0.0
