"""Whole numbers beyond 2^53 keep their differences, or are refused with the reason."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from mipforest.data import DataError, Dataset, Encoding, load
from mipforest.estimators import OCTClassifier

#: The first whole number that float64 lacks is one more.
LIMIT = 2**53
NOON = 1_700_000_000_000_000_000


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "toy.csv"
        path.write_text(content)
        return path

    return write


def test_labels_beyond_the_limit_stay_apart(write):
    data = load(write(f"a,target\n1,{LIMIT}\n2,{LIMIT + 1}\n3,{LIMIT}\n"))
    assert data.class_values == (LIMIT, LIMIT + 1)
    np.testing.assert_array_equal(data.y, [0, 1, 0])
    given = Dataset.from_arrays([[1.0], [2.0]], np.array([LIMIT + 1, LIMIT]))
    assert given.class_values == (LIMIT, LIMIT + 1)


def test_labels_are_sorted_by_their_exact_values(write):
    data = load(write(f"a,target\n1,{-LIMIT}\n2,{-LIMIT - 1}\n3,{LIMIT + 1}\n"))
    assert data.class_values == (-LIMIT - 1, -LIMIT, LIMIT + 1)


def test_nanoseconds_keep_all_differences(write):
    data = load(write(f"time,target\n{NOON + 1},x\n{NOON + 2},y\n{NOON},z\n"), scaling="none")
    assert data.features.labels == (f"time-{NOON}",)
    np.testing.assert_array_equal(data.X_raw, [[1], [2], [0]])
    assert "exact difference" in data.notes[0]


def test_a_column_that_lacks_a_value_keeps_its_digits(write):
    """pandas itself reads such a column as float64."""
    content = f"time,other,target\n{NOON + 1},1,x\n{NOON + 2},2,y\n,3,z\n"
    data = load(write(content), scaling="none", missing="drop")
    np.testing.assert_array_equal(data.X_raw[:, 0], [0, 1])


def test_a_parquet_column_that_lacks_a_value_keeps_its_digits(tmp_path):
    pytest.importorskip("pyarrow")
    times = pd.array([NOON + 1, NOON + 2, None], dtype="Int64")
    frame = pd.DataFrame({"time": times, "other": [1, 2, 3], "target": ["x", "y", "z"]})
    frame.to_parquet(tmp_path / "toy.parquet")
    data = load(tmp_path / "toy.parquet", scaling="none", missing="drop")
    np.testing.assert_array_equal(data.X_raw[:, 0], [0, 1])


def test_new_samples_are_shifted_alike(write):
    train = load(write(f"time,target\n{NOON + 1},x\n{NOON + 2},y\n{NOON},z\n"), scaling="none")
    encoding = Encoding.from_dict(train.encoding.to_dict())
    frame = pd.DataFrame({"time": [NOON - 5, NOON + 7]})
    np.testing.assert_array_equal(encoding.encode(frame), [[-5], [7]])
    with pytest.raises(DataError, match="would round"):
        encoding.encode(pd.DataFrame({"time": [2 * NOON + 1]}))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([LIMIT + 1, -1], "range exceeds"),
        ([-1, 2**64 - 1], "range exceeds"),
        (["9" * 400, 1], "range exceeds"),
        ([LIMIT + 1, 0.5], "would round"),
    ],
)
def test_features_that_float64_would_merge_are_refused(write, values, reason):
    with pytest.raises(DataError, match=reason):
        load(write(f"a,target\n{values[0]},x\n{values[1]},y\n"))


def test_targets_that_float64_would_merge_are_refused(write):
    rows = "".join(f"{k},{LIMIT + k}\n" for k in range(30))
    with pytest.raises(DataError, match=f"line 3, holds {LIMIT + 1}, which float64 would round"):
        load(write("a,target\n" + rows))


@pytest.mark.parametrize(
    "X",
    [
        [[LIMIT], [LIMIT + 1]],
        [[LIMIT + 1, 0.5], [1, 2]],
        np.array([[LIMIT], [LIMIT + 1]]),
        pd.DataFrame({"a": [LIMIT + 1, 1], "b": [0.5, 1]}),
        [[10**400], [1]],
        [[Decimal(LIMIT + 1)], [Decimal(1)]],
    ],
    ids=["list", "among fractions", "array", "frame", "400 digits", "decimal"],
)
def test_arrays_that_float64_would_round_are_refused(X):
    with pytest.raises(DataError, match=r"would round|too large"):
        Dataset.from_arrays(X, [0, 1])


def test_large_numbers_that_float64_holds_are_as_before():
    X = np.array([[LIMIT * 2], [LIMIT * 4]])
    np.testing.assert_array_equal(Dataset.from_arrays(X, [0, 1], scaling="none").X_raw, X)
    np.testing.assert_array_equal(Dataset.from_arrays(X + 0.5, [0, 1], scaling="none").X_raw, X.astype(float))


def test_estimators_keep_or_refuse_them():
    times = np.array([[NOON], [NOON + 1], [NOON + 2], [NOON + 3]])
    y = [0, 0, 1, 1]
    model = OCTClassifier(depth=1, time_limit=10).fit(pd.DataFrame(times, columns=["time"]), y)
    np.testing.assert_array_equal(model.predict(pd.DataFrame(times, columns=["time"])), y)
    with pytest.raises(DataError, match="would round"):
        OCTClassifier(depth=1).fit(times, y)
