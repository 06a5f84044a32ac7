"""What a fit finds is what the toolkit finds; what is kept of it; and what the tree does with samples."""

import inspect
import pickle
from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from estimators_at_hand import SHAPES
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import few_of
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from tolerance import less, same

from mipforest import Dataset, constraints, get_formulation
from mipforest.data import DataError
from mipforest.estimators import FitWarning, OCTClassifier, OCTHClassifier, ORTRegressor
from mipforest.problem.parameters import parameters_of
from mipforest.problem.problem import Problem

pytestmark = pytest.mark.usefixtures("few_penalties")

#: Two classes, few samples and columns: trees of depth one are solved to optimality at once.
CANCER = load_breast_cancer(as_frame=True)
FEATURES = CANCER.data.iloc[::12, :4]
LABELS = np.where(CANCER.target[::12] == 1, "benign", "malignant")
VALUES = load_diabetes().target[: len(FEATURES)]


def targets_for(estimator):
    return LABELS if is_classifier(estimator) else VALUES


def quick(name, **settings):
    return clone(SHAPES[name]).set_params(**{"depth": 1, "time_limit": 0} | settings)


#: Classes of the same code as a shorter name beside them.
ALIKE = ("sfs-margot", "budgeted-olct", "univariate-olct", "ort-l")


@pytest.mark.first_cases(5)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in ALIKE else []) for name in SHAPES]
)
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
def test_a_fit_is_what_building_and_solving_the_formulation_gives(name):
    estimator = quick(name, gap=1e-6, random_state=3).fit(FEATURES, targets_for(quick(name)))
    kind = get_formulation(name)
    frame = FEATURES.assign(answer=targets_for(estimator))
    task = "classification" if is_classifier(estimator) else "regression"
    data = Dataset.from_frame(frame, "answer", task=task, scaling=kind.scaling)
    own = {"B": 2} if name == "budgeted-olct" else {}
    own |= {"ensemble": "random-forest:trees=5"} if name == "miret" else {}
    own |= {"tau": 0.8} if name == "quantile" else {}
    result = kind(**own).build(data, 1).solve("highs", time_limit=0, gap=1e-6, seed=3)
    np.testing.assert_array_equal(estimator.tree_.w, result.tree.w)
    np.testing.assert_array_equal(estimator.tree_.b, result.tree.b)
    assert same(estimator.tree_.leaf_value, result.tree.leaf_value)
    assert estimator.tree_.classes == result.tree.classes
    assert same(estimator.objective_, result.objective)
    assert estimator.features_used_ == result.features_used


@pytest.mark.parametrize("name", SHAPES)
def test_hyperparameters_and_their_defaults_are_the_formulations(name):
    kind = get_formulation(name)
    given = inspect.signature(type(SHAPES[name])).parameters
    for parameter in parameters_of(kind).values():
        # None stands for the formulation's own default.
        assert given[parameter.name].default in (parameter.default, None)
    if "ensemble" in {field.name for field in fields(kind)}:
        assert given["ensemble"].default == kind.ensemble
    if "scaling" in given:
        assert given["scaling"].default == kind.scaling
    solve = inspect.signature(Problem.solve).parameters
    for setting in ("solver", "start", "time_limit", "gap", "threads", "solver_options", "bridges"):
        assert given[setting].default == solve[setting].default
    assert given["random_state"].default == solve["seed"].default


def test_shapes_cover_all_formulations_of_the_estimators():
    named = {clone(estimator)._formulation_name() for estimator in SHAPES.values()}
    assert named == set(SHAPES)


def test_what_is_kept_of_a_proven_optimum():
    X, y = load_iris(return_X_y=True, as_frame=True)
    flowers = OCTClassifier(depth=1).fit(X[::5], y[::5])
    assert flowers.status_ == "optimal"
    assert flowers.verified_ is True
    assert flowers.gap_ <= 1e-4
    assert flowers.bound_ <= flowers.objective_ + 1e-9
    assert flowers.objective_ == pytest.approx(0.5)
    assert flowers.n_features_used_ == len(flowers.features_used_) == 1
    assert set(flowers.features_used_) <= set(X.columns)
    assert flowers.features_used_ == flowers.result_.features_used
    assert flowers.solution_ is flowers.result_.solution
    assert list(flowers.classes_) == [0, 1, 2]
    assert flowers.n_features_in_ == 4
    assert flowers.score(X[::5], y[::5]) == pytest.approx(2 / 3)


def test_targets_of_a_regression_keep_their_units():
    X, y = load_diabetes(return_X_y=True)
    one, other = (
        ORTRegressor(depth=1, time_limit=0).fit(X[:50], values) for values in (y[:50], 1000 * y[:50] + 7)
    )
    np.testing.assert_allclose(other.predict(X), 1000 * one.predict(X) + 7)
    assert one.score(X[:50], y[:50]) == pytest.approx(one.result_.measures(one.result_.problem.data)["r2"])


@pytest.mark.parametrize("name", few_of(["oct", "margot", "olct", "miret"], 2))
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
def test_the_same_fit_twice_gives_the_same_tree(name):
    # Solved to optimality: a time limit would make the incumbent depend on the clock.
    one = quick(name, time_limit=None, threads=1).fit(FEATURES, LABELS)
    other = clone(one).fit(FEATURES, LABELS)
    assert one.status_ == "optimal"
    assert same(one.objective_, other.objective_)
    np.testing.assert_array_equal(one.tree_.w, other.tree_.w)
    np.testing.assert_array_equal(one.predict(FEATURES), one.fit(FEATURES, LABELS).predict(FEATURES))


@st.composite
def samples(draw):
    n, p = draw(st.integers(6, 14)), draw(st.integers(1, 3))
    X = draw(st.lists(st.lists(st.integers(-3, 3), min_size=p, max_size=p), min_size=n, max_size=n))
    y = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n).filter(lambda y: len(set(y)) > 1))
    return np.array(X, dtype=float), np.array(y)


@given(samples(), st.sampled_from([1, 2]))
@settings(max_examples=15)
def test_answers_are_those_of_the_tree(data, depth):
    X, y = data
    fitted = OCTClassifier(depth=depth, time_limit=0).fit(X, y)
    tree = fitted.tree_
    np.testing.assert_array_equal(fitted.predict(X), tree.predict_labels(X))
    np.testing.assert_array_equal(fitted.apply(X), tree.apply(X))
    np.testing.assert_array_equal(fitted.decision_path(X).toarray(), tree.decision_path(X))
    shares = fitted.predict_proba(X)
    assert shares.shape == (len(X), len(set(y)))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    # OCT labels a leaf by a most frequent class, so the largest share is that of the prediction.
    np.testing.assert_array_equal(fitted.classes_[shares.argmax(axis=1)], fitted.predict(X))


def test_shares_of_classes_are_those_of_the_training_samples_in_the_leaf():
    fitted = quick("margot").fit(FEATURES, LABELS)
    leaf, shares = fitted.apply(FEATURES), fitted.predict_proba(FEATURES)
    for number in np.unique(leaf):
        here = leaf == number
        expected = [(LABELS[here] == label).mean() for label in fitted.classes_]
        np.testing.assert_allclose(shares[here], np.tile(expected, (here.sum(), 1)), atol=1e-15)


def test_a_logistic_tree_gives_the_probabilities_of_its_model():
    fitted = quick("olct").fit(FEATURES, LABELS)
    # Laid out row by row, as in training: another layout rounds differently.
    expected = fitted.tree_.predict_proba(np.ascontiguousarray(FEATURES))
    assert same(fitted.predict_proba(FEATURES), expected)
    assert len(np.unique(expected)) > 4
    np.testing.assert_array_equal(fitted.classes_[expected.argmax(axis=1)], fitted.predict(FEATURES))


def test_text_and_picture_count_labels_of_any_kind():
    # A colon parts a number from its count.
    for y, apart in ((LABELS, " "), (np.where(LABELS == "benign", 7, 3), ": ")):
        fitted = quick("margot").fit(FEATURES, y)
        text = fitted.to_text(FEATURES, y)
        assert f"{fitted.classes_[0]}{apart}{(y == fitted.classes_[0]).sum()}" in text
        assert "[" not in fitted.to_text()
        assert fitted.plot(FEATURES, y).axes
        assert fitted.plot().axes


def test_pictures_of_a_regression():
    fitted = quick("ort-l").fit(FEATURES, VALUES)
    assert "mean" in fitted.to_text(FEATURES, VALUES)
    assert fitted.plot(FEATURES, VALUES).axes


def test_progress_is_printed_when_asked_for(capsys):
    events = []
    quick("margot", verbose=1, on_progress=events.append).fit(FEATURES, LABELS)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("[MargotClassifier]") for line in lines)
    assert "margot (valid), depth 1, 48 samples" in lines[0]
    assert "incumbent" in lines[1]
    assert "time_limit" in lines[-1]
    assert len(events) >= len(lines) - 2
    quick("margot", verbose=0).fit(FEATURES, LABELS)
    assert capsys.readouterr().out == ""


def test_a_function_can_stop_the_solve_and_keep_the_incumbent():
    hard = quick("margot", depth=2, time_limit=60, on_progress=lambda event: np.isfinite(event.objective))
    X, y = CANCER.data, np.where(np.arange(569) % 7 == 0, 1 - CANCER.target, CANCER.target)
    fitted = hard.fit(X.iloc[::3], y[::3])
    assert fitted.status_ == "interrupted"
    assert fitted.verified_


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0), np.int64(5)])
def test_any_kind_of_random_state_is_taken(random_state):
    assert quick("oct", random_state=random_state).fit(FEATURES, LABELS).verified_


def test_a_tree_of_another_estimator_is_a_start():
    known = quick("margot").fit(FEATURES, LABELS)
    again = quick("hfs-margot", B=4, start=known.tree_).fit(FEATURES, LABELS)
    assert again.objective_ == pytest.approx(known.objective_)


def test_weights_and_class_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    X, y, counts = rng.integers(0, 5, (24, 2)), np.arange(24) % 3, rng.integers(0, 4, 24)
    again = OCTClassifier(depth=1).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    by_class = np.array([1, 2, 3])
    for fitted in (
        OCTClassifier(depth=1).fit(X, y, sample_weight=counts),
        OCTClassifier(depth=1, class_weight={k: 1 / by_class[k] for k in range(3)}).fit(
            X, y, sample_weight=counts * by_class[y]
        ),
    ):
        assert fitted.objective_ == pytest.approx(again.objective_)
        np.testing.assert_allclose(fitted.predict_proba(X), again.predict_proba(X))
        assert fitted.score(X, y, sample_weight=counts) == pytest.approx(
            again.score(np.repeat(X, counts, axis=0), np.repeat(y, counts))
        )
        measured = fitted.result_.to_dict()["train_accuracy"]
        assert measured == pytest.approx(fitted.score(X, y, sample_weight=counts))


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


@pytest.mark.first_cases(1)
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
