"""Estimators that take any formulation, somebody else's included."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from linear_leaves import LinearLeaves
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerance import same

from mipforest.data import DataError
from mipforest.estimators import (
    MargotClassifier,
    OCTClassifier,
    OLCTClassifier,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    ORTRegressor,
)
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.problem.registry import UnknownFormulation, formulation_classes

pytestmark = pytest.mark.usefixtures("few_penalties")

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::6, :5], np.where(Y[::6] == 1, "benign", "malignant")
VALUES = load_diabetes().target[: len(X)]


@dataclass(frozen=True, kw_only=True)
class PricedLeaves(LinearLeaves):
    """A formulation that comes with another package."""

    name = "priced-leaves"

    price: float = parameter(1.0, "price of a unit of error", above=0)

    def declare(self, m, *arguments):
        super().declare(m, *arguments)
        m.minimize(self.price * m["e"].sum())

    def evaluate(self, *arguments):
        return self.price * super().evaluate(*arguments)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package that brings the formulation, as its users would."""
    package = tmp_path / "priced_leaves-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: priced-leaves\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        f"[mipforest.formulations]\npriced-leaves = {__name__}:PricedLeaves\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    formulation_classes.cache_clear()
    yield
    formulation_classes.cache_clear()


def quick(model, **settings):
    return OptimalTreeClassifier(model=model, **{"depth": 1, "time_limit": 0} | settings)


@pytest.mark.parametrize(
    ("generic", "named"),
    [
        (quick("oct", parameters={"N_min": 20}), OCTClassifier(depth=1, N_min=20, time_limit=0)),
        (
            quick("hfs-margot", parameters={"B": 1, "C": 3.0}, variant="paper"),
            MargotClassifier(1, feature_selection="hard", B=1, C=3.0, variant="paper", time_limit=0),
        ),
        (
            quick("olct", parameters={"C": 2.0}, scaling="minmax"),
            OLCTClassifier(1, C=2.0, scaling="minmax", time_limit=0),
        ),
        (
            OptimalTreeRegressor(model="ort-l", parameters={"lam": 0.1}, depth=1, time_limit=0),
            ORTRegressor(1, leaves="linear", lam=0.1, time_limit=0),
        ),
    ],
    ids=["oct", "hfs-margot", "olct", "ort-l"],
)
def test_a_model_by_name_is_the_estimator_of_its_paper(generic, named):
    targets = VALUES if isinstance(named, ORTRegressor) else Y
    found, expected = generic.fit(X, targets), named.fit(X, targets)
    assert same(found.objective_, expected.objective_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_the_general_loss_optimal_tree_is_fitted():
    fitted = quick("loss-optimal", parameters={"loss": "misclassification", "selection": "hard", "B": 1})
    fitted.fit(X, Y)
    assert fitted.verified_
    assert fitted.n_features_used_ == 1
    assert fitted.score(X, Y) > 0.8
    assert set(fitted.predict(X)) <= set(fitted.classes_)


@pytest.mark.usefixtures("installed")
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
def test_a_formulation_of_another_package_is_fitted_by_its_name():
    fitted = OptimalTreeRegressor(model="priced-leaves", parameters={"price": 2.0}, depth=1).fit(X, VALUES)
    assert fitted.verified_
    assert fitted.status_ == "optimal"
    assert fitted.objective_ == pytest.approx(2 * np.abs(fitted.predict(X) - VALUES).sum())
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
def test_a_formulation_may_be_given_as_its_class():
    by_class = OptimalTreeRegressor(model=PricedLeaves, parameters={"price": 2.0}, depth=1)
    fitted = clone(by_class).fit(X, VALUES)
    assert fitted.result_.problem.formulation == PricedLeaves(price=2.0)


def test_hyperparameters_are_seen_and_set_one_by_one():
    given = {"C": 5.0}
    tree = quick("margot", parameters=given)
    assert tree.get_params()["parameters__C"] == 5.0
    assert tree.get_params()["parameters__epsilon"] == 1e-3
    assert "parameters__C" not in tree.get_params(deep=False)
    tree.set_params(parameters__epsilon=0.01, depth=2)
    assert tree.parameters == {"C": 5.0, "epsilon": 0.01}
    assert tree.depth == 2
    assert given == {"C": 5.0}
    tree.set_params(model="oct", parameters=None, parameters__N_min=3)
    assert tree.parameters == {"N_min": 3}


def test_a_search_goes_over_hyperparameters_of_the_model():
    grid = {"C": [0.1, 10.0]}
    named = GridSearchCV(MargotClassifier(1, epsilon=0.01, time_limit=0), grid, cv=2).fit(X, Y)
    grid = {"parameters__C": [0.1, 10.0]}
    generic = quick("margot", parameters={"epsilon": 0.01})
    search = GridSearchCV(generic, grid, cv=2, error_score="raise").fit(X, Y)
    assert same(search.cv_results_["mean_test_score"], named.cv_results_["mean_test_score"])
    assert search.best_params_["parameters__C"] == named.best_params_["C"]
    assert search.best_estimator_.parameters == {"epsilon": 0.01, "C": named.best_params_["C"]}


def test_a_search_goes_over_models():
    search = GridSearchCV(quick("oct"), {"model": ["oct", "margot"]}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_score_ > 0.8


def test_a_pipeline_sets_hyperparameters_of_its_last_step():
    pipeline = make_pipeline(StandardScaler(), quick("margot", scaling="none"))
    pipeline.set_params(optimaltreeclassifier__parameters__C=10.0)
    assert pipeline.fit(X, Y).score(X, Y) > 0.85
    assert pipeline[-1].result_.problem.formulation.C == 10.0


def test_a_file_holds_the_settings_and_the_tree():
    fitted = quick("loss-optimal", parameters={"C": 2.0}).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert not hasattr(again, "result_")


@pytest.mark.parametrize("fitted_before", [True, False])
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
def test_an_ensemble_is_a_hyperparameter(fitted_before):
    forest = RandomForestClassifier(5, max_depth=1, random_state=0)
    target = forest.fit(X, Y) if fitted_before else forest
    tree = clone(quick("miret", parameters={"ensemble": target})).fit(X, Y)
    answers = tree.classes_[tree.result_.problem.instance.target.ensemble.predict(X)]
    np.testing.assert_array_equal(answers, clone(forest).fit(X, Y).predict(X))
    assert hasattr(target, "estimators_") == fitted_before


def test_how_many_classes_a_model_takes_is_known():
    flowers = load_iris()
    three = OptimalTreeClassifier(model="oct", depth=2, time_limit=0).fit(flowers.data, flowers.target)
    assert three.score(flowers.data, flowers.target) > 0.9
    with pytest.raises(DataError, match=r"y has 3: wrap it as .*OneVsRestClassifier"):
        quick("loss-optimal").fit(flowers.data, flowers.target)


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ({"model": "margott"}, UnknownFormulation, "did you mean 'margot'"),
        ({"model": "ort"}, ParameterError, "ort is for regression; fit it with OptimalTreeRegressor"),
        ({"model": 3}, ParameterError, "model is 3; give the name of a formulation or its class"),
        ({"model": OCTClassifier}, ParameterError, "model is"),
        ({"parameters": {"C": 1}}, ParameterError, "oct has no parameter 'C'; it has alpha, N_min"),
        ({"parameters": {"n_min": 1}}, ParameterError, "did you mean 'N_min'"),
        ({"parameters": {"alpha": -1}}, ParameterError, "alpha is -1"),
        ({"parameters": ["alpha"]}, ParameterError, "give hyperparameters by name"),
        ({"scaling": "max"}, ValueError, "unknown scaling 'max'"),
    ],
)
def test_what_no_model_takes_is_refused(settings, error, told):
    with pytest.raises(error, match=told):
        OptimalTreeClassifier(time_limit=0, **settings).fit(X, Y)


def test_a_hyperparameter_that_the_model_lacks_cannot_be_set():
    with pytest.raises(ValueError, match="oct has no parameter 'C'"):
        quick("oct").set_params(parameters__C=1)
    with pytest.raises(ValueError, match=r"has no parameter 'C'; .* parameters=\{'C': ...\}"):
        quick("oct").set_params(C=1)


def test_an_unknown_model_is_shown_all_the_same():
    tree = quick("margott", parameters={"C": 1})
    assert "margott" in repr(tree)
    assert tree.get_params()["parameters__C"] == 1
