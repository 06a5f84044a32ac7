"""Folds: which samples, how scaled, what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipforest import DataError, Dataset, load
from mipforest.tuning import TuningError
from mipforest.tuning.fit import make_folds


@pytest.mark.parametrize("source", ["iris", "diabetes"])
def test_every_sample_is_validated_once(source):
    data = load(source)
    folds = make_folds(data, 4, seed=3)
    assert sorted(label for fold in folds for label in fold.validation.samples) == sorted(data.samples)
    for fold in folds:
        assert not set(fold.train.samples) & set(fold.validation.samples)
        assert fold.train.n + fold.validation.n == data.n


@pytest.mark.parametrize("scaling", ["minmax", "standard", "none"])
def test_the_scaling_is_fitted_on_the_training_samples_of_the_fold(scaling):
    data = load("iris").with_scaling(scaling)
    for fold in make_folds(data, 3, seed=0):
        alone = Dataset.from_arrays(fold.train.X_raw, fold.train.y, scaling=scaling)
        np.testing.assert_array_equal(fold.train.X, alone.X)
        assert fold.train.encoding.scaling == scaling


@given(st.lists(st.integers(4, 12), min_size=2, max_size=4), st.integers(2, 4), st.integers(0, 9))
def test_every_fold_has_its_share_of_every_class(counts, folds, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    data = Dataset.from_arrays(np.arange(len(y), dtype=float)[:, None], y, task="classification")
    shares = np.array([fold.validation.class_counts for fold in make_folds(data, folds, seed)])
    assert np.all(shares >= np.array(counts) // folds)
    assert np.all(shares <= -(-np.array(counts) // folds))


def test_the_seed_decides():
    data = load("iris")
    one, same, other = (make_folds(data, 3, seed)[0].validation.samples for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_class_of_few_samples_is_refused():
    data = Dataset.from_arrays(np.arange(12.0)[:, None], ["a"] * 9 + ["b"] * 3)
    with pytest.raises(DataError, match=r"4 folds need 4 samples of every class.*b \(3\); take 3 folds"):
        make_folds(data, 4, seed=0)
    assert len(make_folds(data, 3, seed=0)) == 3


def test_a_class_of_one_sample_has_no_folds():
    data = Dataset.from_arrays(np.arange(12.0)[:, None], ["a"] * 11 + ["b"])
    with pytest.raises(DataError, match=r"b \(1\); merge classes"):
        make_folds(data, 2, seed=0)


def test_a_class_that_does_not_occur_asks_for_nothing():
    data = load("iris")
    two = data.take(data.y < 2)
    assert len(make_folds(two, 4, seed=0)) == 4


def test_a_regression_of_few_samples_is_refused():
    data = load("diabetes").take(np.arange(7))
    with pytest.raises(DataError, match="7 samples, 4 folds of a regression need 8"):
        make_folds(data, 4, seed=0)


@pytest.mark.parametrize("folds", [1, 0, -2, 2.5, True, "4"])
def test_what_is_no_number_of_folds_is_refused(folds):
    with pytest.raises(TuningError, match="2 or more"):
        make_folds(load("iris"), folds, seed=0)
