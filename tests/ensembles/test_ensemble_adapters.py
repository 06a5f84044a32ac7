"""Every family against the library that grew it, on real data."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from tolerance import same

from mipforest.data import Dataset, load
from mipforest.ensembles import ensemble_for, libraries
from mipforest.ensembles.libraries import fit_forest
from mipforest.errors import NoTreeFound
from mipforest.time_budget import TimeBudget

KINDS = ("random-forest", "extra-trees", "gradient-boosting", "xgboost")
LEARNERS = {
    "random-forest": (RandomForestClassifier, {"n_estimators": 12}),
    "extra-trees": (ExtraTreesClassifier, {"n_estimators": 12, "bootstrap": True}),
    "gradient-boosting": (GradientBoostingClassifier, {"n_estimators": 12, "subsample": 0.7}),
    "xgboost": (None, {"n_estimators": 12, "subsample": 0.7, "gamma": 1.0, "n_jobs": 1}),
}


def learner_of(kind, **options):
    learner, own = LEARNERS[kind]
    if kind == "xgboost":
        learner = pytest.importorskip("xgboost").XGBClassifier
    return learner(**{"max_depth": 3, "random_state": 0} | own | options)


@pytest.fixture(scope="module")
def cancer():
    return load("breast_cancer")


def frame_of(data):
    return pd.DataFrame(data.X_raw, columns=list(data.features.labels))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:X has feature names")  # scikit-learn: in apply, fitted on a table
@pytest.mark.parametrize("table", [False, True], ids=["array", "table"])
def test_answers_are_the_estimators_own(cancer, kind, table):
    X = frame_of(cancer) if table else cancer.X_raw
    estimator = learner_of(kind).fit(X, cancer.y)
    ensemble = ensemble_for(estimator, cancer, 3)
    assert ensemble.kind == kind
    assert ensemble.n_features == 30
    assert len(ensemble.members) == 12
    assert ensemble.depth == 3
    assert (ensemble.leaves(cancer.X_raw) == estimator.apply(X).reshape(cancer.n, -1)).all()
    assert (ensemble.predict(cancer.X_raw) == estimator.predict(X)).all()
    assert same(ensemble.probability(cancer.X_raw), estimator.predict_proba(X).max(axis=1))


def leaf_by_thresholds(member, X, *, ties_go_left):
    """Route single-precision samples by the member's arrays."""
    node = np.zeros(len(X), dtype=np.int64)
    while (inner := member.left[node] >= 0).any():
        split = node[inner]
        value, threshold = X[inner, member.feature[split]], member.threshold[split]
        goes_left = value <= threshold if ties_go_left else value < threshold
        node[inner] = np.where(goes_left, member.left[split], member.right[split])
    return node


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["breast_cancer", "wine"])
def test_structure_routes_as_the_library_does(kind, name):
    data = load(name)
    data = data if data.n_classes == 2 else data.binarise(data.classes[0])
    ensemble = ensemble_for(learner_of(kind).fit(data.X_raw, data.y), data, 3)
    X = data.X_raw.astype(np.float32)
    found = [leaf_by_thresholds(member, X, ties_go_left=kind != "xgboost") for member in ensemble.members]
    assert (ensemble.leaves(data.X_raw) == np.array(found).T).all()
    for member in ensemble.members:
        is_leaf = member.left < 0
        assert (member.feature[is_leaf] == -1).all()
        assert (member.feature[~is_leaf] >= 0).all()
        assert ((member.right < 0) == is_leaf).all()


@pytest.mark.parametrize("kind", KINDS)
def test_values_at_thresholds_go_where_the_library_sends_them(kind):
    """A forest on a grid, asked at its own thresholds and just beside them in double precision."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 7, (60, 2)) / 10
    data = Dataset.from_arrays(X, (X.sum(axis=1) > 0.6).astype(int))
    estimator = learner_of(kind).fit(data.X_raw, data.y)
    ensemble = ensemble_for(estimator, data, 3)
    cuts = np.concatenate([member.threshold[member.feature == 0] for member in ensemble.members])
    beside = np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)])
    points = np.column_stack([beside, np.full(len(beside), 0.3)])
    assert (ensemble.leaves(points) == estimator.apply(points).reshape(len(points), -1)).all()
    assert (ensemble.predict(points) == estimator.predict(points)).all()


@pytest.mark.parametrize("kind", KINDS[:3])
def test_labels_are_matched_whatever_their_order(cancer, kind):
    names = np.array(cancer.classes)[cancer.y]
    estimator = learner_of(kind).fit(cancer.X_raw, names)
    assert list(estimator.classes_) == ["benign", "malignant"]
    ensemble = ensemble_for(estimator, cancer, 3)
    predicted = np.array(cancer.classes)[ensemble.predict(cancer.X_raw)]
    assert (predicted == estimator.predict(cancer.X_raw)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_class_numbers_are_understood(kind):
    iris = load("iris").binarise("versicolor")
    estimator = learner_of(kind).fit(iris.X_raw, iris.y)
    ensemble = ensemble_for(estimator, iris, 3)
    assert (ensemble.predict(iris.X_raw) == estimator.predict(iris.X_raw)).all()


def test_ties_are_broken_as_the_library_breaks_them():
    data = Dataset.from_arrays([[0.0], [0.0], [1.0], [1.0]], ["b", "a", "b", "b"])
    estimator = RandomForestClassifier(4, max_depth=1, bootstrap=False).fit(data.X_raw, ["b", "a", "b", "b"])
    ensemble = ensemble_for(estimator, data, 1)
    assert ensemble.probability(data.X_raw).tolist() == [0.5, 0.5, 1.0, 1.0]
    names = np.array(data.classes)[ensemble.predict(data.X_raw)]
    assert names.tolist() == estimator.predict(data.X_raw).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_fits_on_the_spot(cancer, kind):
    if kind == "xgboost":
        pytest.importorskip("xgboost")
    ensemble = ensemble_for(f"{kind}:trees=7", cancer, 2)
    assert (ensemble.kind, len(ensemble.members), ensemble.depth) == (kind, 7, 2)
    again = ensemble_for(f"{kind}:trees=7,seed=100", cancer, 2, seed=3)
    assert (ensemble.leaves(cancer.X_raw) == again.leaves(cancer.X_raw)).all()
    assert (ensemble.predict(cancer.X_raw) == cancer.y).mean() > 0.9
    assert "7 trees of depth 2" in ensemble.description


@pytest.mark.parametrize("learner", [RandomForestClassifier, ExtraTreesClassifier])
def test_a_forest_is_the_same_however_many_trees_are_grown_at_once(cancer, learner, monkeypatch):
    settings = {"max_depth": 2, "max_features": None, "class_weight": "balanced", "random_state": 7}
    whole = learner(8, **settings).fit(cancer.X_raw, cancer.y)
    monkeypatch.setattr(libraries, "ENTRIES_AT_ONCE", 3 * cancer.X_raw.size)
    grown = fit_forest(learner, cancer.X_raw, cancer.y, trees=8, depth=2, seed=7, budget=TimeBudget())
    assert (grown.apply(cancer.X_raw) == whole.apply(cancer.X_raw)).all()
    assert same(grown.predict_proba(cancer.X_raw), whole.predict_proba(cancer.X_raw))
    assert grown.get_params() == whole.get_params()


@pytest.mark.parametrize("kind", ["random-forest", "extra-trees", "gradient-boosting"])
def test_an_ensemble_that_time_runs_out_for_is_refused(cancer, kind, monkeypatch):
    monkeypatch.setattr(libraries, "ENTRIES_AT_ONCE", 1)
    looks = iter(range(10))
    budget = TimeBudget(4.0, clock=lambda: next(looks))  # a second passes between two looks at the clock
    with pytest.raises(NoTreeFound, match=r"of the 7 trees .* more time, an ensemble of fewer trees"):
        ensemble_for(f"{kind}:trees=7", cancer, 2, budget=budget)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_while_an_ensemble_is_fitted_leaves_nothing_to_keep(cancer, kind):
    if kind == "xgboost":
        pytest.importorskip("xgboost")
    budget = TimeBudget()
    budget.stop()
    with pytest.raises(KeyboardInterrupt):
        ensemble_for(f"{kind}:trees=7", cancer, 2, budget=budget)
    assert "load" in budget.seconds  # the library, which the limit does not count


def test_forests_have_the_papers_settings(cancer):
    ensemble = ensemble_for("random-forest", cancer, 3)
    settings = ensemble.adapter.estimator.get_params()
    expected = {"n_estimators": 100, "max_depth": 3, "class_weight": "balanced", "max_features": None}
    assert expected.items() <= settings.items()
    assert settings["random_state"] == 100
    assert ensemble.total_weight == 100


@pytest.mark.parametrize("kind", KINDS)
def test_from_a_joblib_file(cancer, kind, tmp_path):
    estimator = learner_of(kind).fit(frame_of(cancer), cancer.y)
    path = tmp_path / "target.joblib"
    joblib.dump(estimator, path)
    for target in (path, str(path)):
        ensemble = ensemble_for(target, cancer, 3)
        assert "target.joblib" in ensemble.description
        assert (ensemble.predict(cancer.X_raw) == estimator.predict(frame_of(cancer))).all()


def test_an_ensemble_is_given_back(cancer):
    ensemble = ensemble_for("random-forest:trees=3", cancer, 2)
    assert ensemble_for(ensemble, cancer, 2) is ensemble


def test_weight_of_a_boosted_tree_is_the_variance_of_its_output(cancer):
    estimator = GradientBoostingClassifier(n_estimators=9, max_depth=2).fit(cancer.X_raw, cancer.y)
    ensemble = ensemble_for(estimator, cancer, 2)
    variances = [np.var(tree.predict(cancer.X_raw)) for tree in estimator.estimators_[:, 0]]
    assert [member.weight for member in ensemble.members] == pytest.approx(variances)


def test_early_stopped_xgboost_ends_at_its_best_round(cancer):
    train, test = cancer.split(0.4, seed=1)
    estimator = learner_of("xgboost", n_estimators=200, early_stopping_rounds=3, learning_rate=0.6)
    estimator.fit(train.X_raw, train.y, eval_set=[(test.X_raw, test.y)], verbose=False)
    rounds = estimator.best_iteration + 1
    assert rounds < estimator.get_booster().num_boosted_rounds()
    ensemble = ensemble_for(estimator, train, 3)
    assert len(ensemble.members) == rounds
    assert ensemble.leaves(test.X_raw).shape == (test.n, rounds)
    assert (ensemble.predict(test.X_raw) == estimator.predict(test.X_raw)).all()


def test_early_stopped_gradient_boosting(cancer):
    estimator = GradientBoostingClassifier(n_estimators=300, n_iter_no_change=2, random_state=0)
    estimator.fit(cancer.X_raw, cancer.y)
    ensemble = ensemble_for(estimator, cancer, 3)
    assert len(ensemble.members) == estimator.n_estimators_ < 300


def test_a_random_forest_of_xgboost(cancer):
    estimator = pytest.importorskip("xgboost").XGBRFClassifier(n_estimators=8, max_depth=3, n_jobs=1)
    estimator.fit(cancer.X_raw, cancer.y)
    ensemble = ensemble_for(estimator, cancer, 3)
    assert len(ensemble.members) == 8
    assert (ensemble.leaves(cancer.X_raw) == estimator.apply(cancer.X_raw)).all()
