import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)

from mipforest.trees import (
    calibration_measures,
    class_measures,
    diagnostic_measures,
    regression_measures,
)
from mipforest.trees.measures import reliability

values = st.integers(-100, 100).map(lambda k: k / 8)


@settings(deadline=None, max_examples=25)
@given(st.data(), st.integers(2, 12))
def test_measures_are_those_of_scikit_learn(data, n):
    y, predicted = (data.draw(hnp.arrays(float, n, elements=values)) for _ in range(2))
    measures = regression_measures(y, predicted)
    assert measures.r2 == pytest.approx(r2_score(y, predicted))
    assert measures.mse == pytest.approx(mean_squared_error(y, predicted))
    assert measures.mae == pytest.approx(mean_absolute_error(y, predicted))


@pytest.mark.parametrize("n", [1, 3, 10])
def test_constant_targets_are_predicted_or_not(n):
    y = np.full(n, 0.1)  # sums of 0.1 are rounded
    assert regression_measures(y, y) == (1.0, 0.0, 0.0)
    assert regression_measures(y, y + 0.5) == pytest.approx((0.0, 0.25, 0.5))


def test_without_samples_nothing_is_known():
    assert np.isnan(regression_measures(np.zeros(0), np.zeros(0))).all()


def test_class_measures_against_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, predicted = rng.integers(0, 3, 30), rng.integers(0, 3, 30)
        found = class_measures(y, predicted)
        assert found.accuracy == pytest.approx(accuracy_score(y, predicted))
        assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, predicted))
    # A class that is predicted and never occurs does not count.
    assert class_measures(np.array([0, 0, 1]), np.array([0, 2, 1])) == (pytest.approx(2 / 3), 0.75)
    assert np.isnan(class_measures(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).accuracy)


@pytest.mark.parametrize(
    ("counts", "published"),
    [
        ((80, 1, 2300, 6193), (98.8, 72.9, 3.4, 100.0, 3.65, 0.02)),  # tables 7.2 and 7.5, training
        (
            (17, 0, 459, 1668),
            (100.0, 78.4, 3.6, 100.0, None, None),
        ),  # test: the ratios there add 1/2 to each count
        ((241, 3, 9020, 16091), (98.8, 64.1, 2.6, 100.0, 2.75, 0.02)),  # tables 7.3 and 7.6, training
        ((33, 1, 1804, 4501), (97.1, 71.4, 1.8, 100.0, 3.39, 0.04)),
    ],
)
def test_diagnostic_measures_are_those_of_dunns_thesis(counts, published):
    y, predicted = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
    found = diagnostic_measures(y, predicted, np.array(counts, float))
    assert found == diagnostic_measures(np.repeat(y, counts), np.repeat(predicted, counts))
    shares = [round(100 * share, 1) for share in found[:4]]
    assert tuple(shares) == published[:4]
    for ratio, printed in zip(found[4:], published[4:], strict=True):
        assert printed is None or round(ratio, 2) == printed


def test_diagnostic_measures_without_samples_to_count_are_nan():
    found = diagnostic_measures(np.array([0, 0]), np.array([0, 1]))
    assert np.isnan(found.sensitivity)
    assert found.specificity == 0.5
    assert found.ppv == 0.0
    assert diagnostic_measures(np.array([0, 1]), np.array([0, 1])).lr_plus == np.inf


#: Probabilities, the ends and the borders of bins among them.
probabilities = st.floats(0, 1) | st.integers(0, 10).map(lambda k: k / 10)
outcomes = st.lists(st.tuples(st.integers(0, 1), probabilities), min_size=1, max_size=40)


def split(pairs):
    y, second = np.array([k for k, _ in pairs]), np.array([p for _, p in pairs])
    return y, np.column_stack([1 - second, second])


@settings(max_examples=20)
@given(outcomes)
def test_scores_are_those_of_the_definition_and_of_scikit_learn(pairs):
    y, proba = split(pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = calibration_measures(y, proba)
    assert found.brier_score == pytest.approx(np.mean((proba[:, 1] - y) ** 2), abs=1e-12)
    assert found.brier_score == pytest.approx(brier_score_loss(y, proba[:, 1], pos_label=1))
    given_to_truth = np.clip(proba[np.arange(len(y)), y], np.finfo(float).eps, 1)
    assert found.log_loss == pytest.approx(-np.mean(np.log(given_to_truth)), abs=1e-9)
    assert found.log_loss == pytest.approx(log_loss(y, proba, labels=[0, 1]))
    if 0 < y.sum() < len(y):
        assert found.auc == pytest.approx(roc_auc_score(y, proba[:, 1]), abs=1e-12)
    assert math.isfinite(found.log_loss)


@settings(max_examples=20)
@given(outcomes)
def test_the_reliability_table_holds_every_sample_once_and_agrees_with_scikit_learn(pairs):
    y, proba = split(pairs)
    second = proba[:, 1]
    table = reliability(y, second)
    assert sum(part.count for part in table.bins) == len(y)
    for part in table.bins:
        assert part.count >= 1
        assert part.lower - 1e-12 <= part.predicted <= part.upper + 1e-12
        inside = (second > part.lower) & (second <= part.upper) | ((second == 0) & (part.lower == 0))
        assert part.count == inside.sum()
        assert part.observed == pytest.approx(y[inside].mean())
    observed, predicted = calibration_curve(y, second, n_bins=10)
    assert [part.observed for part in table.bins] == pytest.approx(observed.tolist())
    assert [part.predicted for part in table.bins] == pytest.approx(predicted.tolist())
    n = len(y)
    assert sum(part.count * part.observed for part in table.bins) / n == pytest.approx(y.mean())
    assert sum(part.count * part.predicted for part in table.bins) / n == pytest.approx(second.mean())


def test_a_table_by_hand_and_as_json():
    table = reliability(np.array([0, 1, 1, 0]), np.array([0.0, 0.05, 0.95, 0.95]))
    listed = table.to_list()
    assert json.loads(json.dumps(listed)) == listed
    assert [(part["lower"], part["upper"], part["count"]) for part in listed] == [
        (0.0, 0.1, 2),
        (0.9, 1.0, 2),
    ]
    assert [part["predicted"] for part in listed] == pytest.approx([0.025, 0.95])
    assert [part["observed"] for part in listed] == [0.5, 0.5]


def test_no_samples_and_a_single_class_are_no_trouble():
    nothing = calibration_measures(np.zeros(0, dtype=int), np.zeros((0, 2)))
    assert np.isnan([nothing.auc, nothing.brier_score, nothing.log_loss]).all()
    assert nothing.reliability.bins == ()
    for k in (0, 1):
        found = calibration_measures(np.full(3, k), np.tile([0.25, 0.75], (3, 1)))
        assert found.brier_score == pytest.approx([0.75, 0.25][k] ** 2)
        assert found.log_loss == pytest.approx(-math.log([0.25, 0.75][k]))
        assert np.isnan(found.auc)
