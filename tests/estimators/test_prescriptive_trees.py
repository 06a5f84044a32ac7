"""Trees that prescribe behind scikit-learn's interface, what they are compared with, and measures of policies."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from mipforest import OptimalPrescriptiveTree
from mipforest.data import DataError
from mipforest.estimators import RegressAndCompare, imputed_outcomes, policy_measures
from mipforest.problem.parameters import ParameterError

rng = np.random.default_rng(0)
AGE = rng.integers(20, 80, 60)
HAD = rng.choice(["drug", "surgery"], 60)
DAYS = np.where((AGE < 50) == (HAD == "drug"), 4.0, 10.0) + 0.1 * rng.standard_normal(60)
FRAME = pd.DataFrame({"age": AGE, "city": rng.choice(["Roma", "Pisa", "Siena"], 60)})


@pytest.fixture(scope="module")
def fitted():
    return OptimalPrescriptiveTree(depth=1, n_treatment=5).fit(FRAME, HAD, DAYS)


def test_it_prescribes_and_estimates(fitted):
    new = pd.DataFrame({"age": [30, 70], "city": ["Roma", "Pisa"]})
    assert fitted.predict(new).tolist() == ["drug", "surgery"]
    np.testing.assert_allclose(fitted.predict_outcomes(new), [[4, 10], [10, 4]], atol=0.1)
    assert fitted.treatments_.tolist() == ["drug", "surgery"]
    assert (fitted.status_, fitted.verified_) == ("optimal", True)
    assert not hasattr(fitted, "feature_importances_")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_outcomes(new), fitted.predict_outcomes(new))
    assert clone(fitted).get_params()["n_treatment"] == 5


def test_levels_are_told_by_their_column():
    had = np.where(FRAME["city"] == "Roma", DAYS > 7, DAYS <= 7)
    days = np.where((FRAME["city"] == "Roma") == had, 4.0, 10.0)
    tree = OptimalPrescriptiveTree(depth=1, n_treatment=5, time_limit=0).fit(FRAME, had, days)
    assert tree.to_text().startswith("n0: city is Roma")
    assert "city is Roma" in tree.result_._repr_html_()


def test_text_and_pictures_tell_treatments_and_outcomes(fitted, tmp_path):
    told = fitted.to_text(FRAME, HAD)
    assert "drug (drug: 3.9" in told
    assert f"[drug {(HAD == 'drug').sum()}, surgery {(HAD == 'surgery').sum()}]" in told
    fitted.plot(FRAME, HAD).savefig(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").stat().st_size > 0
    with pytest.raises(DataError, match="no treatment of the training data"):
        fitted.to_text(FRAME, np.where(HAD == "drug", "sun", HAD))


def test_higher_outcomes_may_be_better():
    tree = OptimalPrescriptiveTree(depth=1, n_treatment=5, better="higher").fit(FRAME, HAD, DAYS)
    assert tree.predict(FRAME.assign(age=30))[0] == "surgery"


def test_without_time_it_is_the_greedy_tree():
    # Neither feature alone tells which treatment is better: greedy growth finds no first split, the search does.
    X = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 10, float)
    had = np.repeat([0, 1], 20)
    y = np.where((X.sum(axis=1) == 1) == had, 0.0, 1.0)
    greedy = OptimalPrescriptiveTree(depth=2, mu=1, n_treatment=1, time_limit=0).fit(X, had, y)
    best = OptimalPrescriptiveTree(depth=2, mu=1, n_treatment=1).fit(X, had, y)
    assert greedy.objective_ == pytest.approx(0.5)
    assert best.objective_ == pytest.approx(0.0)


def test_wrong_settings_are_refused():
    with pytest.raises(ParameterError, match="are 'curved' and 'constant'; choose"):
        OptimalPrescriptiveTree(splits="curved").fit(FRAME, HAD, DAYS)


def test_weights_are_repeated_samples():
    counts = 1 + np.arange(60) % 3
    rows = np.repeat(np.arange(60), counts)
    tree = OptimalPrescriptiveTree(depth=1, n_treatment=5, time_limit=0)
    compared = RegressAndCompare(LinearRegression())
    for model, X in ((tree, FRAME), (compared, AGE[:, None])):
        weighted = clone(model).fit(X, HAD, DAYS, sample_weight=counts)
        again = clone(model).fit(pd.DataFrame(X).iloc[rows], HAD[rows], DAYS[rows])
        np.testing.assert_allclose(weighted.predict_outcomes(X), again.predict_outcomes(X))


def test_regress_and_compare_fits_one_regression_for_each_treatment():
    x = AGE[:, None].astype(float)
    y = np.where(HAD == "drug", 0.1 * AGE, 8 - 0.06 * AGE)
    for better, expected in (("lower", ["drug", "surgery"]), ("higher", ["surgery", "drug"])):
        fitted = RegressAndCompare(LinearRegression(), better=better).fit(x, HAD, y)
        np.testing.assert_allclose(fitted.predict_outcomes([[20.0]]), [[2.0, 6.8]])
        assert fitted.predict([[20.0], [79.0]]).tolist() == expected
    with pytest.raises(ParameterError, match="better is 'more'"):
        RegressAndCompare(LinearRegression(), better="more").fit(x, HAD, y)


def test_policies_are_measured_by_known_outcomes():
    outcomes = np.array([[1.0, 3.0], [5.0, 1.0], [2.0, 2.0]])
    found = policy_measures(outcomes, np.array([0, 0, 1]), outcomes)
    assert found == pytest.approx((2 / 3, 1.0, (1 + 5 + 2) / 3))
    assert policy_measures(outcomes, np.array([1, 0, 1]), outcomes, better="higher").treatment_accuracy == 1.0
    flat = policy_measures(outcomes, np.array([0, 1, 0]), np.zeros((3, 2)))
    assert flat.effect_accuracy == pytest.approx(1 - np.mean([4, 16, 0]) / np.var([2, -4, 0]))


def test_unknown_outcomes_are_those_of_the_nearest_that_had_the_treatment():
    X, had, y = (
        np.array([[0.0], [1.0], [10.0], [11.0]]),
        np.array([0, 1, 0, 1]),
        np.array([1.0, 2.0, 3.0, 4.0]),
    )
    found = imputed_outcomes(X, had, y, 2, k=1)
    np.testing.assert_array_equal(found, [[1, 2], [1, 2], [3, 4], [3, 4]])
    np.testing.assert_array_equal(imputed_outcomes(X, had, y, 2, k=10)[:, 0], [1, 2, 3, 2])
    with pytest.raises(DataError, match="no sample had treatment 2"):
        imputed_outcomes(X, had, y, 3)
