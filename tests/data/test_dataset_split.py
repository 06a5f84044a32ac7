import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from mipforest.data import DataError, Dataset, load

SHARED = Path(__file__).parents[3] / "shared" / "data"

#: First digits of the MD5 of the unscaled training features, split as in the MARGOT paper.
TRAINING_MD5 = {
    "breast_cancer_diagnostic": "acd7ec0ae7",
    "breast_cancer_wisconsin": "413e57fca3",
    "climate_model": "6b6bd4644d",
    "cleveland": "2957f6c82b",
    "ionosphere": "5bce577cfa",
    "parkinsons": "7fa14030df",
    "sonar": "fc56a36526",
    "spectf": "947fdd6890",
    "tic_tac_toe_margot18": "54689cbf28",
    "wholesale": "b2f46f87dd",
}
often = settings(deadline=None, max_examples=20)


def arrays(n_classes=3, n=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), np.arange(n) % n_classes


@often
@given(st.integers(0, 1000), st.sampled_from([0.2, 0.5, 7]), st.booleans())
def test_split_takes_the_rows_of_scikit_learn_and_scales_by_the_training_part(seed, test_size, stratify):
    X, y = arrays(seed=seed)
    data = Dataset.from_arrays(X, y)
    train, test = data.split(test_size, seed=seed, stratify=stratify)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=test_size, random_state=seed, stratify=y if stratify else None
    )
    np.testing.assert_array_equal(train.X_raw, X_train)
    np.testing.assert_array_equal(test.X_raw, X_test)
    np.testing.assert_array_equal(train.y, y_train)
    np.testing.assert_array_equal(test.y, y_test)
    scaler = MinMaxScaler().fit(X_train)
    np.testing.assert_allclose(train.X, scaler.transform(X_train), atol=1e-12)
    np.testing.assert_allclose(test.X, scaler.transform(X_test), atol=1e-12)
    np.testing.assert_array_equal(
        data.X_raw[[data.samples.position(sample) for sample in test.samples]], X_test
    )
    assert not set(train.samples) & set(test.samples)


def test_split_says_what_it_did():
    train, test = Dataset.from_arrays(*arrays()).split(0.2, seed=3)
    assert train.notes[-1] == "training part of a stratified split, test_size=0.2, seed=3"
    assert test.notes[-1] == "test part of a stratified split, test_size=0.2, seed=3"


def test_regression_is_split_without_strata():
    train, test = Dataset.from_arrays(arrays()[0], np.linspace(0, 1, 30)).split(0.2)
    assert (train.n, test.n) == (24, 6)


def test_splits_that_cannot_be():
    data = Dataset.from_arrays(np.arange(6)[:, None], ["no", "yes", "no", "yes", "no", "maybe"])
    with pytest.raises(DataError, match=r"class\(es\) maybe have one sample"):
        data.split(0.5)
    train, test = data.split(0.5, stratify=False)
    assert train.n == test.n == 3
    for size in (0.0, 1.5, 30, 2):
        with pytest.raises(DataError, match=f"30 samples cannot be split with test_size={size}"):
            Dataset.from_arrays(*arrays()).split(size)


@pytest.mark.skipif(not SHARED.is_dir(), reason="benchmark data not there")
@pytest.mark.parametrize("name", TRAINING_MD5)
def test_margot_paper_splits(name):
    train, test = load(SHARED / f"{name}.csv").split(0.2, seed=0)
    assert hashlib.md5(np.ascontiguousarray(train.X_raw).tobytes()).hexdigest()[:10] == TRAINING_MD5[name]
    if name == "cleveland":
        train, test = train.binarise([1, 2, 3, 4]), test.binarise([1, 2, 3, 4])
        assert (train.sign == -1).sum() + (test.sign == -1).sum() == 160
    assert set(train.sign) == {-1.0, 1.0}


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="benchmark data not there")
def test_benchmark_manifest():
    manifest = pd.read_csv(SHARED / "MANIFEST.csv")
    for entry in manifest.itertuples():
        data = load(SHARED / f"{entry.name}.csv", task=entry.task)
        assert (data.n, data.p) == (entry.n, entry.p), entry.name
        if entry.task == "classification":
            counts = " ".join(
                f"{name}:{count}" for name, count in zip(data.classes, data.class_counts, strict=True)
            )
            assert counts == " ".join(
                sorted(entry.class_counts.split(), key=lambda part: data.classes.index(part.split(":")[0]))
            )
