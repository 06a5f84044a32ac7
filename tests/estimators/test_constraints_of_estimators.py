"""Constraints of estimators: objects, and scikit-learn's name for monotone columns."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mipforest.estimators import (
    OCTClassifier,
    OptimalTreeClassifierCV,
    ORTRegressor,
    RandomizedTreeClassifier,
)
from mipforest.problem.constraints import AtMostFeatures, Forbid, Monotone, Parity, Recall
from mipforest.problem.expressions import NotExpressed

#: Starts are repaired, and a short solve may stop before its proof.
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(1)
X = pd.DataFrame(
    {"age": RNG.integers(0, 6, 24), "dose": RNG.integers(0, 6, 24), "sex": RNG.choice(["f", "m"], 24)}
)
Y = np.where(X.age - X.dose + RNG.normal(0, 1, 24) > 0, "yes", "no")


def test_objects_are_constraints_and_the_result_says_whether_they_bind():
    asked = [Forbid("age"), AtMostFeatures(1), Recall("yes", 0.9), Parity("sex", 0.5)]
    tree = OCTClassifier(depth=1, constraints=asked, time_limit=20).fit(X, Y)
    assert "age" not in tree.features_used_
    recall = (tree.predict(X)[Y == "yes"] == "yes").mean()
    held = tree.result_.constraints
    assert [own.constraint for own in held] == asked
    assert held[2].value == pytest.approx(recall)
    assert recall >= 0.9 - 1e-9
    again = pickle.loads(pickle.dumps(clone(tree)))
    assert again.constraints == asked


def test_one_object_is_enough():
    assert (
        "dose"
        not in OCTClassifier(depth=1, constraints=Forbid("dose"), time_limit=20).fit(X, Y).features_used_
    )


@pytest.mark.parametrize("given", [{"age": -1, "sex": 0}, [-1, 0, 0], np.array([-1, 0, 0])])
def test_monotonic_cst_is_by_name_or_position(given):
    tree = OCTClassifier(depth=2, monotonic_cst=given, time_limit=5)
    tree.fit(X, Y)
    (held,) = tree.result_.constraints
    assert held.constraint == Monotone("age", increasing=False)
    assert held.value == 0  # exact: a count
    rows = X.iloc[np.repeat(np.arange(len(X)), 6)].assign(age=np.tile(np.arange(6), len(X)))
    rises = (tree.predict(rows) == "yes").reshape(len(X), 6)
    assert (np.diff(rises.astype(int), axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"monotonic_cst": [1, 0]}, "has shape (2,), and X has 3 columns"),
        ({"monotonic_cst": [1, 0, 2]}, "has 2 for sex; give 1, 0 or -1"),
        ({"monotonic_cst": {"agee": 1}}, "names 'agee' (did you mean 'age'?)"),
        ({"constraints": "forbid"}, "parameter constraints is 'forbid'"),
        ({"constraints": [3]}, "parameter constraints is [3]"),
        ({"constraints": Forbid("agee")}, "did you mean 'age'?"),
    ],
)
def test_what_is_not_allowed(given, said):
    with pytest.raises(ValueError) as refused:
        OCTClassifier(depth=1, time_limit=5, **given).fit(X, Y)
    assert said in str(refused.value)


@pytest.mark.parametrize("cls", [RandomizedTreeClassifier, OptimalTreeClassifierCV])
def test_estimators_that_take_no_rows_have_no_such_parameter(cls):
    assert "monotonic_cst" not in cls._get_param_names()
    with pytest.raises(TypeError, match="nothing that does what monotonic_cst does"):
        cls(monotonic_cst=[1])


def test_a_model_that_cannot_express_it_says_so():
    with pytest.raises(NotExpressed, match="what makes its predictions monotone"):
        ORTRegressor(depth=1, monotonic_cst={"age": 1}).fit(X, X.age + X.dose)
