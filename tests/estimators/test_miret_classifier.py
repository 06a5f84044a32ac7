"""Ensembles that a MIRET classifier may be given."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import cross_val_score
from tolerance import same

from mipforest import Dataset
from mipforest.ensembles import ensemble_for
from mipforest.errors import EnsembleError
from mipforest.estimators import MIRETClassifier

pytestmark = pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::6, :5], np.where(Y[::6] == 1, "benign", "malignant")


def forest(**settings):
    return RandomForestClassifier(**{"n_estimators": 5, "max_depth": 1, "random_state": 0} | settings)


def mimic(ensemble, **settings):
    return MIRETClassifier(depth=1, ensemble=ensemble, time_limit=0, **settings)


def answers(fitted):
    return fitted.result_.problem.instance.target.ensemble.predict(X)


def test_a_fitted_ensemble_is_taken_as_it_is():
    target = forest().fit(X, Y)
    fitted = mimic(target).fit(X, Y)
    np.testing.assert_array_equal(fitted.classes_[answers(fitted)], target.predict(X))


def test_an_ensemble_fitted_on_other_samples_stays_so():
    target = forest().fit(X[:40], Y[:40])
    fitted = mimic(target).fit(X[40:], Y[40:])
    np.testing.assert_array_equal(fitted.classes_[answers(fitted)], target.predict(X))


@pytest.mark.parametrize("target", [forest(), GradientBoostingClassifier(n_estimators=4, max_depth=1)])
def test_an_ensemble_that_is_not_fitted_is_fitted_on_the_training_samples(target):
    fitted = mimic(target).fit(X, Y)
    assert not hasattr(target, "estimators_")
    np.testing.assert_array_equal(fitted.classes_[answers(fitted)], clone(target).fit(X, Y).predict(X))


#: Fully grown trees have pure leaves: weights show in their samples alone, which earlier ones draw without them.
WEIGHTED_BOOTSTRAP = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="bootstrap samples are drawn by weight from scikit-learn 1.9 on",
)


@WEIGHTED_BOOTSTRAP
def test_weights_of_classes_weigh_in_the_forest_on_top_of_their_balance():
    fitted = mimic("random-forest:trees=5", class_weight={"benign": 10.0, "malignant": 0.1}).fit(X, Y)
    plain = mimic("random-forest:trees=5").fit(X, Y)
    assert (answers(fitted) == 0).sum() > (answers(plain) == 0).sum() + 5


@WEIGHTED_BOOTSTRAP
def test_a_forest_without_a_split_gives_a_tree_without_one():
    """A class of no weight to speak of is in no tree's sample."""
    fitted = mimic("random-forest:trees=5", class_weight={"benign": 1000.0, "malignant": 1e-4}).fit(X, Y)
    assert fitted.verified_
    assert fitted.get_n_leaves() == 1
    assert (fitted.predict(X) == "benign").all()
    assert any("no tree of the ensemble splits" in told for told in fitted.solution_.warnings)


def test_cross_validation_fits_the_ensemble_on_each_fold():
    scores = cross_val_score(mimic(forest().fit(X, Y)), X, Y, cv=2, error_score="raise")
    assert scores.min() > 0.6
    assert not hasattr(clone(mimic(forest().fit(X, Y))).ensemble, "estimators_")


def test_a_frozen_ensemble_survives_a_clone():
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn 1.6 brings it")
    target = forest().fit(X[:40], Y[:40])
    fitted = clone(mimic(frozen.FrozenEstimator(target))).fit(X, Y)
    np.testing.assert_array_equal(fitted.classes_[answers(fitted)], target.predict(X))


def test_a_text_and_an_ensemble_object_say_the_same():
    data = Dataset.from_arrays(X, Y)
    by_text = mimic("random-forest:trees=5,seed=3").fit(X, Y)
    by_object = mimic(ensemble_for("random-forest:trees=5,seed=3", data, 1)).fit(X, Y)
    assert same(by_text.objective_, by_object.objective_)
    np.testing.assert_array_equal(by_text.predict(X), by_object.predict(X))


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("forest", "no ensemble is called 'forest'"),
        (forest(max_depth=3), "deeper than the tree"),
        (RandomForestClassifier, "no classifier of these kinds"),
        (3, "no classifier of these kinds"),
    ],
)
def test_what_cannot_be_mimicked_is_refused(target, told):
    with pytest.raises(EnsembleError, match=told):
        mimic(target).fit(X, Y)
