"""Weights of samples: read, checked, kept by whatever selects or scales samples, refused where a model has no use."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.class_weight import compute_sample_weight
from tolerance import same

from mipforest.data import DataError, Dataset, load
from mipforest.problem import Formulation
from mipforest.runs import DataSource

X = np.array([[0.0, 5.0], [1.0, 7.0], [2.0, 1.0], [4.0, 2.0], [9.0, 3.0]])
Y = [0, 1, 0, 1, 2]
WEIGHTS = [1.0, 3.0, 2.0, 2.0, 0.0]


def table(**changed):
    columns = {"a": X[:, 0], "b": X[:, 1], "y": ["no", "yes", "no", "yes", "maybe"], "n": WEIGHTS}
    return pd.DataFrame(columns | changed)


def test_samples_count_once_unless_weights_are_given():
    data = Dataset.from_arrays(X, Y)
    assert data.weights.tolist() == [1.0] * 5
    assert not data.weighted
    assert Dataset.from_arrays(X, Y, weights=np.ones(5)).sha256 == data.sha256
    assert Dataset.from_arrays(X, Y, weights=np.full(5, 2.0)).sha256 != data.sha256
    with pytest.raises(ValueError, match="read-only"):
        data.weights[0] = 2.0


@pytest.mark.parametrize("scaling", ["minmax", "standard", "none"])
def test_weight_zero_leaves_out_and_whole_weights_scale_as_repeated_rows(scaling):
    data = Dataset.from_arrays(X, Y, weights=WEIGHTS, scaling=scaling)
    again = Dataset.from_frame(table(), "y", weight="n", scaling=scaling)
    repeated = Dataset.from_arrays(
        np.repeat(X, np.array(WEIGHTS, int), axis=0), np.repeat(Y, np.array(WEIGHTS, int)), scaling=scaling
    )
    assert data.weighted
    assert data.weights.tolist() == [1.0, 3.0, 2.0, 2.0]
    assert data.samples.labels == again.samples.labels == ("0", "1", "2", "3")
    assert data.classes == ("0", "1")
    assert again.classes == ("no", "yes")
    assert again.features.labels == ("a", "b")
    assert again.weight == "n"
    assert data.notes == again.notes == ("1 of 5 rows left out because their weight is 0",)
    for one in (data, again, Dataset.from_arrays(X, Y, scaling=scaling).with_weights(WEIGHTS)):
        np.testing.assert_allclose(one.encoding.offset, repeated.encoding.offset, rtol=1e-14)
        np.testing.assert_allclose(one.encoding.scale, repeated.encoding.scale, rtol=1e-14)


def test_weights_stay_with_their_samples():
    weights = np.arange(1.0, 151.0)
    data = load("iris").with_weights(weights)
    train, test = data.binarise("setosa").with_scaling("standard").split(0.3, seed=1)
    for part in (train, test, data.take([3, 1]), data.relabel({"virginica": "versicolor"})):
        assert part.weights.tolist() == [1.0 + int(sample) for sample in part.samples.labels]
    mean = np.average(train.X_raw, axis=0, weights=train.weights)
    np.testing.assert_allclose(train.encoding.offset, mean)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"weights has shape \(2,\), it must be \(5,\)"),
        ([1, 1, -2, 1, 1], "row 2 has the weight -2; weights are numbers of at least 0"),
        ([1, np.nan, 1, 1, 1], "row 1 has the weight nan"),
        ([0, 0, 0, 0, 0], "all 5 weights are zero"),
        (["a"] * 5, "weights must be numbers"),
        ([1, 0, 1, 0, 0], "one class only"),
    ],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(X, Y, weights=weights)


@pytest.mark.parametrize(
    ("frame", "weight", "message"),
    [
        (table(), "m", "no column is called 'm'"),
        (table(), "y", "both the target and the column of weights"),
        (table()[["y", "n"]], "n", "are the only columns"),
        (table(n=[1, 1, -1, 1, 1]).set_axis(list("ABCDE")), "n", "column 'n': row C has the weight -1"),
        (table(n=list("vwxyz")), "n", "column 'n' must hold numbers"),
        (table(n=[1, 1, np.nan, 1, 1]), "n", "missing values"),
    ],
)
def test_columns_of_weights_that_are_none(frame, weight, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_frame(frame, "y", weight=weight)


def test_a_test_table_may_have_weights_or_none():
    train = Dataset.from_frame(table(), "y", weight="n")
    rows = table()[:4]
    assert Dataset.from_frame_like(train, rows).weights.tolist() == WEIGHTS[:4]
    unweighted = Dataset.from_frame_like(train, rows.drop(columns="n"))
    assert unweighted.weights.tolist() == [1.0] * 4
    assert unweighted.notes == ("no column 'n': every sample counts once",)


def test_a_source_remembers_its_column_of_weights(tmp_path):
    path = tmp_path / "people.csv"
    table().to_csv(path, index=False)
    source = DataSource(data=str(path), target="y", weight="n")
    restored = DataSource.from_dict(source.to_dict())
    assert restored == source
    assert "weight" not in DataSource(data=str(path)).to_dict()
    assert restored.load().train.weights.tolist() == WEIGHTS[:4]
    with pytest.raises(TypeError, match="texts"):
        DataSource.from_dict(source.to_dict() | {"weight": 3})
    with pytest.raises(DataError, match="iris has no column of weights"):
        load("iris", weight="n")


def test_models_that_do_not_say_what_weights_do_refuse_them():
    class Forgetful(Formulation):
        name = "forgetful"
        declare = encode = decode = evaluate = None

    data = Dataset.from_arrays(X[:4], Y[:4], weights=WEIGHTS[:4])
    with pytest.raises(
        DataError, match="forgetful takes no sample weights, and data has weights from 1 to 3"
    ):
        Forgetful().build(data, 1)


def test_balanced_classes_weigh_as_in_scikit_learn():
    loaded = DataSource(data="breast_cancer", test_size=0.25, balanced=True).load()
    expected = compute_sample_weight("balanced", loaded.train.y)
    np.testing.assert_allclose(loaded.train.weights, expected)
    assert same(loaded.train.weights.sum(), loaded.train.n)
    np.testing.assert_allclose(
        sorted(set(loaded.test.weights)), sorted(set(loaded.train.weights))
    )  # the test samples weigh as those of training
    with pytest.raises(DataError, match="no classes to balance"):
        DataSource(data="diabetes", balanced=True).load()
