"""What names of columns and features stand for."""

import numpy as np
import pandas as pd
import pytest

from mipforest.data import DataError, Dataset
from mipforest.data.columns import column_of_features, counted_as_one, directions, features_named, name_of


def data(missing="branch", categorical=()):
    frame = pd.DataFrame(
        {
            "a": [1.0, 2.0, np.nan, 4.0],
            "c": ["r", "g", "b", None],
            "s": ["no", "yes", None, "no"],
            "y": list("uvuv"),
        }
    )
    return Dataset.from_frame(frame, "y", missing=missing, categorical=categorical)


def names(data, features):
    return [data.features.labels[j] for j in features]


def test_a_column_is_all_of_its_features():
    d = data()
    assert names(d, features_named(d, "a")) == ["a (missing low)", "a (missing high)"]
    assert names(d, features_named(d, "s")) == ["s=no", "s=yes", "s is missing"]
    assert names(d, features_named(d, "c=r")) == ["c=r"]
    assert [name_of(d, features_named(d, name)) for name in ("c", "c=r")] == ["c", "c=r"]
    assert np.bincount(column_of_features(d)).tolist() == [2, 7, 3]
    with pytest.raises(DataError, match="data has no feature 'colour'; it has a, c, s"):
        features_named(d, "colour")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a (missing high)", ["a (missing low)", "a (missing high)"]),
        ("c=r", ["c=r", "c=r or missing"]),
        ("s=yes", ["s=no", "s=yes"]),
        ("s is missing", ["s is missing"]),
    ],
)
def test_features_that_differ_in_missing_values_alone_count_as_one(name, expected):
    d = data()
    assert names(d, counted_as_one(d, name)) == expected


@pytest.mark.parametrize(
    ("name", "rise", "fall"),
    [
        ("a", {"a (missing low)", "a (missing high)"}, set()),
        ("a (missing low)", {"a (missing low)", "a (missing high)"}, set()),
        ("s", {"s=yes"}, {"s=no"}),
        ("s=no", {"s=no"}, {"s=yes"}),
        ("s is missing", {"s is missing"}, {"s=no", "s=yes"}),
        ("c=r", {"c=r", "c=r or missing"}, {"c=b", "c=b or missing", "c=g", "c=g or missing"}),
    ],
)
def test_what_rises_with_a_column(name, rise, fall):
    d = data()
    found = [(d.features.labels[j], up) for j, up in directions(d, name)]
    assert {label for label, up in found if up} == rise
    assert {label for label, up in found if not up} == fall


def test_sets_of_levels_may_rise_and_fall():
    d = Dataset.from_frame(pd.DataFrame({"c": list("rgbk"), "y": list("uvuv")}), "y", categorical="all")
    found = {}
    for j, up in directions(d, "c=r"):
        found.setdefault(d.features.labels[j], set()).add(up)
    assert found["c=r"] == {True}
    assert found["c=b"] == {False}
    assert found["c in {g, r}"] == {True}
    both = [label for label, ups in found.items() if len(ups) == 2]
    assert not both, "a set with r rises from any level without; one without r falls"
    found = {}
    for j, up in directions(d, "c in {g, r}"):
        found.setdefault(d.features.labels[j], set()).add(up)
    assert found["c in {k, r}"] == {True, False}
