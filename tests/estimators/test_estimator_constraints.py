"""Constraints of users in estimators."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from tolerance import less

from mipforest import constraints
from mipforest.data import DataError
from mipforest.estimators import FitWarning, OCTClassifier, OCTHClassifier

pytestmark = pytest.mark.usefixtures("few_penalties")

FLOWERS = load_iris(as_frame=True)
X, Y = FLOWERS.data[::3], FLOWERS.target[::3]
WITHOUT_PETALS = partial(constraints.forbid_features, features=["petal length (cm)", "petal width (cm)"])


def at_least_ten_in_a_leaf_and_no_petal_width(problem):
    constraints.min_samples_leaf(problem, 10)
    constraints.forbid_features(problem, "petal width (cm)")


def test_features_are_kept_out():
    free = OCTClassifier(depth=1).fit(X, Y)
    bound = OCTClassifier(depth=1, start=None, constraints=WITHOUT_PETALS).fit(X, Y)
    assert free.features_used_[0].startswith("petal")
    assert bound.features_used_[0].startswith("sepal")
    assert bound.verified_
    assert less(free.objective_, bound.objective_)
    # All cuts of the sepal columns, tried one by one.
    sepals, errors = X.to_numpy()[:, :2], []
    for j in range(2):
        for value in np.unique(sepals[:, j])[1:]:
            right = sepals[:, j] >= value
            hits = sum(np.bincount(Y[side], minlength=3).max() for side in (right, ~right))
            errors.append(len(Y) - hits)
    baseline = len(Y) - np.bincount(Y).max()
    assert bound.objective_ == pytest.approx(min(errors) / baseline)


def test_a_start_that_breaks_a_constraint_is_repaired_and_told():
    with pytest.warns(FitWarning, match="the start tree violates the model") as told:
        fitted = OCTClassifier(depth=1, time_limit=0, constraints=WITHOUT_PETALS).fit(X, Y)
    assert len(told) == 1
    assert fitted.features_used_[0].startswith("sepal")


def test_several_constraints_are_one_function():
    fitted = OCTClassifier(depth=1, start=None, constraints=at_least_ten_in_a_leaf_and_no_petal_width).fit(
        X, Y
    )
    sizes = np.bincount(fitted.apply(X))
    assert (sizes[sizes > 0] >= 10).all()
    assert "petal width (cm)" not in fitted.features_used_


@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
@pytest.mark.parametrize(
    "classifier", [OCTClassifier(depth=1), OCTHClassifier(depth=1)], ids=["oct", "oct-h"]
)
def test_the_least_weight_of_a_leaf_holds_from_the_start_on(classifier):
    """A leaf of flowers that weigh next to nothing is pure, and too light: the start's split is dropped for it."""
    weights = np.where(Y == 2, 1.0, 1e-4)
    free = clone(classifier).set_params(time_limit=0).fit(X, Y, weights)
    assert (free.predict(X) != 2).any()
    for limit in (0, 2):
        light = clone(classifier).set_params(time_limit=limit, min_weight_fraction_leaf=0.1)
        leaves = light.fit(X, Y, weights).apply(X)
        assert all(weights[leaves == leaf].sum() >= 0.1 * weights.sum() for leaf in np.unique(leaves))
        assert light.verified_


def test_a_share_beyond_a_half_is_refused():
    with pytest.raises(ValueError, match=r"min_weight_fraction_leaf is 0\.6; give a share, 0 to 0\.5"):
        OCTClassifier(min_weight_fraction_leaf=0.6).fit(X, Y)


def test_constraints_go_along_into_clones_and_files():
    bound = OCTClassifier(depth=1, start=None, constraints=WITHOUT_PETALS)
    again = pickle.loads(pickle.dumps(clone(bound))).fit(X, Y)
    assert again.features_used_ == bound.fit(X, Y).features_used_


def test_what_a_constraint_refuses_is_told():
    with pytest.raises(DataError, match="no feature 'petal'"):
        OCTClassifier(constraints=partial(constraints.forbid_features, features="petal")).fit(X, Y)
