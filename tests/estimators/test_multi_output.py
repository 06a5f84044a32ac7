"""Estimators of several targets: shapes, names and labels as those of scikit-learn's multi-output trees."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_linnerud
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tolerance import at_least, same

from mipforest import MultiTreeClassifier, MultiTreeRegressor, ORTRegressor
from mipforest.data import DataError
from mipforest.problem.constraints import Forbid

X, Y = load_linnerud(return_X_y=True, as_frame=True)
LABELS = np.column_stack([np.where(Y["Pulse"] > 56, "high", "low"), np.digitize(Y["Weight"], [160, 185])])


def test_numbers_have_the_shapes_and_the_score_of_scikit_learn():
    tree, theirs = MultiTreeRegressor(depth=2).fit(X, Y), DecisionTreeRegressor(max_depth=2).fit(X, Y)
    assert tree.predict(X).shape == theirs.predict(X).shape
    assert tree.n_outputs_ == theirs.n_outputs_ == 3
    assert same(tree.score(X, Y), r2_score(Y, tree.predict(X)))
    assert same(tree.score(X, Y), 1.0 - tree.objective_)
    assert at_least(tree.score(X, Y), theirs.score(X, Y))
    assert tree.tree_.targets == ("Weight", "Waist", "Pulse")
    assert same(tree.feature_importances_.sum(), 1.0)


def test_equal_weights_are_the_criterion_of_scikit_learn():
    depth = 2
    tree = MultiTreeRegressor(depth=depth, target_weights="equal").fit(X, Y)
    theirs = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, Y)
    lost, grown = (((Y - of.predict(X)) ** 2).to_numpy().sum() for of in (tree, theirs))
    assert lost < grown
    assert same(lost, tree.objective_ * ((Y - Y.mean()) ** 2).to_numpy().sum())


def test_one_target_is_one_column():
    y = Y["Weight"].to_numpy()
    one, other = MultiTreeRegressor(depth=2).fit(X, y), ORTRegressor(depth=2).fit(X, y)
    assert one.predict(X).shape == y.shape
    assert same(one.objective_, other.objective_)
    assert MultiTreeRegressor(depth=1).fit(X, y[:, None]).predict(X).shape == y.shape
    labels = MultiTreeClassifier(depth=1).fit(X, LABELS[:, 0])
    assert labels.classes_.tolist() == ["high", "low"]
    assert labels.predict_proba(X).shape == (20, 2)


def test_labels_have_the_shapes_of_scikit_learn():
    tree, theirs = (
        MultiTreeClassifier(depth=2).fit(X, LABELS),
        DecisionTreeClassifier(max_depth=2).fit(X, LABELS),
    )
    assert [known.tolist() for known in tree.classes_] == [known.tolist() for known in theirs.classes_]
    assert [of.shape for of in tree.predict_proba(X)] == [of.shape for of in theirs.predict_proba(X)]
    predicted = tree.predict(X)
    assert predicted.shape == LABELS.shape
    for shares, known, column in zip(tree.predict_proba(X), tree.classes_, predicted.T, strict=True):
        np.testing.assert_array_equal(known[shares.argmax(axis=1)], column)
    assert same(tree.score(X, LABELS), (predicted == LABELS).all(axis=1).mean())
    wrong = (predicted != LABELS).sum()
    assert wrong <= (theirs.predict(X) != LABELS).sum()
    assert [np.isneginf(of).any() for of in tree.predict_log_proba(X)] == [
        (of == 0).any() for of in tree.predict_proba(X)
    ]


def test_labels_of_different_kinds_stay_what_they_are():
    y = pd.DataFrame(
        {"pulse": np.where(Y["Pulse"] > 56, "high", "low"), "size": np.digitize(Y["Weight"], [160, 185])}
    )
    tree = MultiTreeClassifier(depth=1).fit(X, y)
    first = tree.predict(X)[0].tolist()
    assert isinstance(first[0], str)
    assert isinstance(first[1], int)
    assert tree.score(X, y) > 0


def test_weights_repeat_samples_and_zero_leaves_out():
    weights = np.tile([1, 2, 0, 1], 5)
    rows = np.repeat(np.arange(20), weights)
    for model, y in ((MultiTreeRegressor(depth=2), Y.to_numpy()), (MultiTreeClassifier(depth=2), LABELS)):
        weighed = model.fit(X, y, sample_weight=weights).objective_
        assert same(weighed, model.fit(X.iloc[rows], y[rows]).objective_)


def test_they_are_cross_validated_pickled_and_constrained():
    tree = MultiTreeRegressor(depth=1, N_min=2)
    assert len(cross_val_score(tree, X, Y, cv=3)) == 3
    fitted = MultiTreeClassifier(depth=1, constraints=[Forbid("Chins")]).fit(X, LABELS)
    assert "Chins" not in fitted.features_used_
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_a_tree_is_shown_and_deployed():
    tree = MultiTreeRegressor(depth=1).fit(X, Y)
    assert "Weight" in tree.to_text(X, Y)
    tree.plot(X, Y)
    assert tree.explain(X)[0].endswith(f"Pulse {tree.predict(X)[0, 2]:.4g}")
    assert tree.to_sql().count(" AS ") == 3
    samples = tree.encoded(X)
    assert tree.to_sklearn().predict(samples).tolist() == tree.predict(X).tolist()
    labels = MultiTreeClassifier(depth=1).fit(X, LABELS)
    assert labels.to_sklearn().predict(samples).tolist() == labels.predict(X).tolist()
    assert labels.to_sql().count(" AS ") == LABELS.shape[1]


@pytest.mark.parametrize(
    ("model", "y", "says"),
    [
        (MultiTreeRegressor(), None, "requires y"),
        (MultiTreeRegressor(), np.ones((20, 2)), "nothing to predict"),
        (MultiTreeRegressor(target_weights=(1.0, 2.0)), Y, "3 targets"),
        (MultiTreeClassifier(), np.ones((20, 2)), "one class only"),
        (MultiTreeClassifier(), Y + 0.5, "continuous"),
        (MultiTreeRegressor(), np.ones((20, 2, 2)), "dim|shape"),
    ],
)
def test_what_does_not_fit_is_refused(model, y, says):
    with pytest.raises((ValueError, DataError), match=says):
        model.fit(X, y)
