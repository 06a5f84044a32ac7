"""Samples without a label: what a data set keeps of them, and what it counts."""

import numpy as np
import pandas as pd
import pytest

from mipforest.data import DataError, Dataset, load


def frame():
    return pd.DataFrame(
        {
            "x": [1.0, 2.0, 3.0, 9.0, 11.0, 4.0],
            "colour": ["red", "blue", "red", "green", "blue", "red"],
            "kind": ["a", None, "b", "b", None, "a"],
        }
    )


def test_rows_without_a_label_are_kept_apart():
    data = Dataset.from_frame(frame(), "kind", unlabelled=True)
    assert (data.n, data.classes, data.samples.labels) == (4, ("a", "b"), ("0", "2", "3", "5"))
    assert data.y.tolist() == [0, 1, 1, 0]
    assert data.unlabelled[:, list(data.features).index("x")].tolist() == [2.0, 11.0]  # exact: a copy
    assert not data.unlabelled.flags.writeable
    assert any("2 of 6 rows have no 'kind'" in note for note in data.notes)


def test_without_the_wish_they_are_missing_values():
    with pytest.raises(DataError, match=r"missing values in 1 column.*without a label.*semi-oct"):
        Dataset.from_frame(frame(), "kind")


def test_missing_features_stay_an_error():
    table = frame()
    table.loc[0, "x"] = np.nan
    with pytest.raises(DataError, match=r"'x' \(1\)") as error:
        Dataset.from_frame(table, "kind", unlabelled=True)
    assert "kind" not in error.value.message


@pytest.mark.parametrize(("missing", "n"), [("drop", 3), ("impute", 4), ("branch", 4)])
def test_missing_features_of_labelled_and_others(missing, n):
    table = frame()
    table.loc[[0, 1], "x"] = np.nan
    data = Dataset.from_frame(table, "kind", unlabelled=True, missing=missing)
    assert (data.n, len(data.unlabelled)) == (n, 1 if missing == "drop" else 2)


def test_numbers_as_labels_are_classes_still(tmp_path):
    (tmp_path / "t.csv").write_text("x,target\n1,0\n2,\n3,1\n4,1\n5,\n")
    data = load(tmp_path / "t.csv", unlabelled=True)
    assert (data.task, data.classes, len(data.unlabelled)) == ("classification", ("0", "1"), 2)


def test_the_scaling_is_that_of_all_samples():
    data = Dataset.from_arrays([[2.0], [4.0]], [0, 1], unlabelled=[[0.0], [8.0]])
    assert data.X[:, 0].tolist() == pytest.approx([0.25, 0.5])
    wider = data.with_scaling("standard")
    assert wider.encoding.offset[0] == pytest.approx(3.5)
    assert data.with_weights([1.0, 3.0]).X[:, 0].tolist() == pytest.approx([0.25, 0.5])


def test_parts_keep_them_and_test_samples_have_none():
    full = load("iris")
    data = Dataset.from_arrays(full.X_raw[::2], full.y[::2], unlabelled=full.X_raw[1::2])
    assert data.take(np.arange(10)).unlabelled is data.unlabelled
    train, test = data.split(0.3)
    assert len(train.unlabelled) == 75
    assert test.unlabelled is None
    assert train.relabel({0: 5}).unlabelled is data.unlabelled


def test_they_count_for_the_fingerprint():
    X, y = [[2.0], [4.0]], [0, 1]
    known = {Dataset.from_arrays(X, y, unlabelled=U).sha256 for U in (None, [[2.0]], [[3.0]])}
    assert len(known) == 3


def test_other_columns_are_refused():
    with pytest.raises(DataError, match="have 2 features, and X has 1"):
        Dataset.from_arrays([[2.0], [4.0]], [0, 1], unlabelled=[[0.0, 1.0]])


def test_no_label_at_all():
    table = frame()
    table["kind"] = None
    with pytest.raises(DataError, match="column 'kind' has no value in any row"):
        Dataset.from_frame(table, "kind", unlabelled=True)


def test_weights_of_samples_without_a_label():
    table = frame()
    table["w"] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    data = Dataset.from_frame(table, "kind", unlabelled=True, weight="w")
    assert data.weights.tolist() == [1.0, 3.0, 4.0, 6.0]  # exact: a copy
    assert any("which count once, whatever 'w' says" in note for note in data.notes)
