import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import OneHotEncoder

from mipforest.data import DataError, Dataset, Encoding
from mipforest.data.encoding import Column
from mipforest.estimators import ORTRegressor
from mipforest.meanings import LevelSet
from mipforest.trees import Tree

finite = st.floats(-1e9, 1e9, allow_subnormal=False)
matrices = hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=finite)
often = settings(deadline=None, max_examples=20)


def encoding_of(X):
    return Encoding.fit(pd.DataFrame(X).rename(columns=str))


@pytest.fixture
def fruit():
    return pd.DataFrame(
        {
            "size": [1.5, 2.0, 3.0],
            "colour": ["red", "green", "red"],
            "ripe": [True, False, True],
            "grade": pd.Categorical([10, 9, 10], categories=[10, 9, 8]),
        }
    )


def test_features_are_named_after_column_and_sorted_level(fruit):
    encoding = Encoding.fit(fruit)
    assert encoding.features == ("size", "colour=red", "ripe=True", "grade=10")
    np.testing.assert_array_equal(encoding.encode(fruit), [[1.5, 1, 1, 1], [2, 0, 0, 0], [3, 1, 1, 1]])
    three = Encoding.fit(pd.DataFrame({"grade": [10, 9, 100]}).astype(str))
    assert three.features == ("grade=9", "grade=10", "grade=100")


@often
@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12))
def test_one_hot_agrees_with_scikit_learn(values):
    frame = pd.DataFrame({"c": values})
    expected = OneHotEncoder(sparse_output=False, drop="if_binary").fit_transform(frame)
    np.testing.assert_array_equal(Encoding.fit(frame).encode(frame), expected)


@often
@given(matrices)
def test_minmax_reaches_0_and_1_exactly_and_constants_become_0(X):
    encoding = encoding_of(X).fit_scaling("minmax", X)
    scaled = encoding.to_scaled(X)
    varying = X.min(axis=0) < X.max(axis=0)
    np.testing.assert_array_equal(scaled.min(axis=0), 0.0)
    np.testing.assert_array_equal(scaled.max(axis=0), varying.astype(float))
    assert (encoding.scale > 0).all()


@often
@given(matrices)
def test_standard_has_mean_0_and_deviation_1(X):
    X = np.round(X, 3)
    encoding = encoding_of(X).fit_scaling("standard", X)
    scaled = encoding.to_scaled(X)
    wide = np.ptp(X, axis=0) > 1e-6 * np.abs(X).max(axis=0)
    np.testing.assert_allclose(scaled[:, wide].mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(scaled[:, wide].std(axis=0), 1.0, atol=1e-6)
    np.testing.assert_array_equal(scaled[:, np.ptp(X, axis=0) == 0], 0.0)


@often
@given(matrices)
def test_no_scaling_changes_nothing(X):
    np.testing.assert_array_equal(encoding_of(X).fit_scaling("none", X).to_scaled(X), X)


@often
@given(matrices, st.sampled_from(["minmax", "standard", "none"]))
def test_scaling_is_undone(X, scaling):
    encoding = encoding_of(X).fit_scaling(scaling, X)
    np.testing.assert_allclose(
        encoding.to_scaled(X) * encoding.scale + encoding.offset, X, rtol=1e-9, atol=1e-6
    )


@often
@given(matrices, st.integers(0, 2**32 - 1))
def test_hyperplanes_score_the_same_in_original_units(X, seed):
    X = np.round(X / 1e6, 2)
    encoding = encoding_of(X).fit_scaling("minmax", X)
    rng = np.random.default_rng(seed)
    w, b = rng.normal(size=(3, X.shape[1])), rng.normal(size=3)
    tree = Tree(2, w, b, np.zeros(4)).with_scaling(encoding.offset, encoding.scale)
    w_raw, b_raw = tree.original_units()
    np.testing.assert_allclose(X @ w_raw.T + b_raw, encoding.to_scaled(X) @ w.T + b, rtol=1e-6, atol=1e-5)


@often
@given(matrices, st.sampled_from(["minmax", "standard", "none"]))
def test_json_round_trip_is_exact(X, scaling):
    encoding = encoding_of(X).fit_scaling(scaling, X)
    saved = json.dumps(encoding.to_dict())
    restored = Encoding.from_dict(json.loads(saved))
    assert restored.columns == encoding.columns
    assert restored.scaling == encoding.scaling
    np.testing.assert_array_equal(restored.offset, encoding.offset)
    np.testing.assert_array_equal(restored.scale, encoding.scale)


def test_json_round_trip_with_levels(fruit):
    encoding = Encoding.fit(fruit)
    restored = Encoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    np.testing.assert_array_equal(restored.encode(fruit), encoding.encode(fruit))


@pytest.mark.parametrize("damage", [{"offset": [0.0]}, {"scale": []}])
def test_damaged_json_is_refused(fruit, damage):
    with pytest.raises(DataError, match=r"4 features"):
        Encoding.from_dict({**Encoding.fit(fruit).to_dict(), **damage})


def test_incomplete_json_is_refused(fruit):
    saved = Encoding.fit(fruit).to_dict()
    del saved["offset"]
    with pytest.raises(DataError, match=r"'offset' is absent"):
        Encoding.from_dict(saved)


def test_unknown_scaling_names_the_known(fruit):
    encoding = Encoding.fit(fruit)
    with pytest.raises(DataError, match=r"'min-max'.*did you mean 'minmax'"):
        encoding.fit_scaling("min-max", encoding.encode(fruit))


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
def test_range_beyond_floating_point_is_refused(scaling):
    X = np.array([[-1.7e308, 0.0], [1.7e308, 1.0]])
    with pytest.raises(DataError, match=r"values of 0 are too large"):
        encoding_of(X).fit_scaling(scaling, X)


def test_duplicate_feature_column_is_refused(fruit):
    twice = pd.concat([fruit, fruit[["size"]]], axis="columns")
    with pytest.raises(DataError, match=r"column names must differ.*'size'"):
        Encoding.fit(fruit).encode(twice)


def test_extra_columns_and_their_order_do_not_matter(fruit):
    encoding = Encoding.fit(fruit)
    shuffled = fruit.assign(extra="?")[["extra", "grade", "ripe", "colour", "size"]]
    np.testing.assert_array_equal(encoding.encode(shuffled), encoding.encode(fruit))


def test_levels_match_as_text_across_types(fruit):
    encoding = Encoding.fit(fruit)
    other = fruit.assign(grade=["10", "9", "10"], ripe=["True", "False", "True"])
    np.testing.assert_array_equal(encoding.encode(other), encoding.encode(fruit))
    other = fruit.assign(grade=[10.0, 9.0, 10.0])
    np.testing.assert_array_equal(encoding.encode(other), encoding.encode(fruit))


def test_missing_column_is_named(fruit):
    with pytest.raises(DataError, match=r"lacks 1 feature column\(s\): size.*did you mean 'Size'"):
        Encoding.fit(fruit).encode(fruit.rename(columns={"size": "Size"}))


def test_unknown_level_names_level_and_row(fruit):
    with pytest.raises(DataError, match=r"'colour' has the level 'blue' in row 2.*green, red"):
        Encoding.fit(fruit).encode(fruit.assign(colour=["red", "green", "blue"]))


def test_missing_values_are_counted_by_column(fruit):
    holey = fruit.assign(size=[1.0, None, None], colour=["red", None, "red"])
    with pytest.raises(DataError, match=r"'size' \(2\), 'colour' \(1\).*missing='drop'"):
        Encoding.fit(holey)
    with pytest.raises(DataError, match=r"'size' \(2\), 'colour' \(1\)"):
        Encoding.fit(fruit).encode(holey)


def test_text_where_numbers_are_due(fruit):
    with pytest.raises(DataError, match=r"'size' must hold numbers, but row 1 holds 'big'"):
        Encoding.fit(fruit).encode(fruit.assign(size=["1.0", "big", "2"]))


def test_infinite_values_are_refused(fruit):
    with pytest.raises(DataError, match=r"'size' has 1 value\(s\) that are not finite, the first in row 2"):
        Encoding.fit(fruit).encode(fruit.assign(size=[1.0, 2.0, np.inf]))


@pytest.mark.parametrize(
    "values",
    [pd.to_datetime(["2020-01-01", "2020-01-02"]), [1 + 2j, 3j], [[1], [2]]],
    ids=["dates", "complex", "lists"],
)
def test_columns_of_other_kinds_are_refused(values):
    with pytest.raises(DataError, match=r"column 'when'.*turn"):
        Encoding.fit(pd.DataFrame({"when": values}))


def test_one_hot_name_that_is_a_column_already():
    with pytest.raises(DataError, match=r"'c=b'"):
        Encoding.fit(pd.DataFrame({"c": ["a", "b"], "c=b": [0, 1]}))


def test_numbers_in_object_columns_stay_numbers():
    frame = pd.DataFrame(
        {"x": pd.Series([1, 2.5, 3], dtype=object), "k": pd.Series([1, 2, 3], dtype="Int64")}
    )
    encoding = Encoding.fit(frame)
    assert encoding.features == ("x", "k")
    np.testing.assert_array_equal(encoding.encode(frame), [[1, 1], [2.5, 2], [3, 3]])


@pytest.mark.parametrize(
    "damage",
    [
        {"columns": [{"name": "a", "levels": [[], []]}]},
        {"columns": [{"name": 3, "levels": None}]},
        {"columns": [{"name": "a", "levels": None, "base": "x"}]},
        {"columns": ["a"]},
        {"columns": 7},
        {"offset": ["x"]},
        {"scale": [0.0]},
    ],
)
def test_a_damaged_encoding_is_refused(damage):
    saved = Encoding.unscaled([Column("a")]).to_dict()
    with pytest.raises(DataError, match="not a saved encoding"):
        Encoding.from_dict(saved | damage)


# -- columns of tables


def test_a_column_of_two_levels_is_one_feature():
    frame = pd.DataFrame({"sex": ["male", "female", "male"], "ill": [True, False, False], "y": [0, 1, 1]})
    data = Dataset.from_frame(frame, "y")
    assert data.features.labels == ("sex=male", "ill=True")
    np.testing.assert_array_equal(data.X_raw, [[1, 1], [0, 0], [1, 0]])
    assert data.encoding.levels == (LevelSet("sex", ("male",), "female"), LevelSet("ill", ("True",), "False"))
    again = Encoding.from_dict(json.loads(json.dumps(data.encoding.to_dict())))
    np.testing.assert_array_equal(again.encode(frame), data.X_raw)


def test_dates_and_identifiers_are_refused_dropped_or_kept():
    frame = pd.DataFrame({"day": [f"day {k}a" for k in range(150)], "size": range(150), "y": [0, 1] * 75})
    with pytest.raises(DataError, match=r"'day' \(150 levels\).*drop=\['day'\].*keep=\['day'\]") as refused:
        Dataset.from_frame(frame, "y")
    assert "--drop day" in refused.value.option
    assert Dataset.from_frame(frame, "y", drop=["day"]).features.labels == ("size",)
    assert Dataset.from_frame(frame, "y", keep=["day"]).p == 151
    with pytest.raises(DataError, match="did you mean 'day'") as unknown:
        Dataset.from_frame(frame, "y", drop=["dya"])
    assert "--drop COLUMN" in unknown.value.option
    with pytest.raises(ValueError, match="150 levels"):
        ORTRegressor(time_limit=0).fit(frame[["day", "size"]], frame["y"])


def test_a_slip_among_numbers_is_refused_and_named():
    values = [*map(str, range(30)), "n/a?", *map(str, range(29))]
    frame = pd.DataFrame({"age": values, "size": range(60), "y": [0, 1] * 30}, index=range(100, 160))
    told = r"'age' .*row 130 holds 'n/a\?', and 30 of its 31 .*drop=\['age'\].*keep=\['age'\]"
    with pytest.raises(DataError, match=told) as refused:
        Dataset.from_frame(frame, "y")
    assert "--keep age" in refused.value.option
    with pytest.raises(ValueError, match="row 130 holds 'n/a"):
        ORTRegressor(time_limit=0).fit(frame[["age", "size"]], frame["y"])
    assert Dataset.from_frame(frame, "y", keep=["age"]).p == 32
    assert Dataset.from_frame(frame.astype({"age": "category"}), "y").p == 32
    comma = frame.assign(age=[f"{k % 20},5" for k in range(60)])
    with pytest.raises(DataError, match=r"'age' .*'0,5' in row 100.*looks like decimal commas"):
        Dataset.from_frame(comma, "y")
    assert Dataset.from_frame(frame.assign(age=[f"{k % 20}" for k in range(60)]), "y").p == 21


def test_few_numbers_beside_a_text_are_levels():
    frame = pd.DataFrame({"doors": ["2", "3", "4", "5more"], "y": [0, 1, 0, 1]})
    notes = Dataset.from_frame(frame, "y").notes
    assert notes == ("column 'doors' one-hot encoded: row 3 holds '5more', which is no number: 4 levels",)


def test_an_unseen_level_is_refused_or_none_of_those_known():
    frame = pd.DataFrame({"city": ["Roma", "Bari", "Pisa"], "sex": ["m", "f", "m"], "y": [0, 1, 1]})
    encoding = Dataset.from_frame(frame, "y").encoding
    new = pd.DataFrame({"city": ["Lucca", "Roma"], "sex": ["x", "m"]})
    with pytest.raises(DataError, match=r"'Lucca' in row 0.*unseen='none'"):
        encoding.encode(new)
    np.testing.assert_array_equal(encoding.encode(new, unseen="none"), [[0, 0, 0, 0], [0, 0, 1, 1]])


def test_test_samples_of_an_unseen_level_are_told_no_option_that_they_lack():
    frame = pd.DataFrame({"city": ["Roma", "Bari", "Pisa"], "y": [0, 1, 1]})
    with pytest.raises(DataError, match="'Lucca' in row 1") as refused:
        Dataset.from_frame_like(Dataset.from_frame(frame, "y"), frame.replace("Bari", "Lucca"))
    assert "unseen" not in refused.value.on_command_line


def test_missing_values_are_filled_in_as_training_samples_are():
    nan = float("nan")
    frame = pd.DataFrame(
        {
            "size": [1.0, nan, 3.0, 10.0],
            "city": ["Roma", "Bari", None, "Roma"],
            "ok": [True, None, False, False],
            "y": [0, 1, 1, 0],
        }
    )
    data = Dataset.from_frame(frame, "y", missing="impute")
    assert data.features.labels == ("size", "city=Roma", "ok=True")
    np.testing.assert_array_equal(data.X_raw, [[1, 1, 1], [3, 0, 0], [3, 1, 0], [10, 1, 0]])
    assert "3 missing values filled in" in " ".join(data.notes)
    # New samples are filled in with what the training samples gave, also after a detour through a file.
    encoding = Encoding.from_dict(json.loads(json.dumps(data.encoding.to_dict())))
    new = pd.DataFrame({"size": [nan], "city": [None], "ok": [None]})
    np.testing.assert_array_equal(encoding.encode(new), [[3, 1, 0]])
    other = Dataset.from_frame(frame, "y", missing="impute", fill_from=["0", "1"])
    np.testing.assert_array_equal(other.X_raw[1:3], [[1, 0, 1], [3, 0, 0]])
    with pytest.raises(DataError, match="'size' has no value in the training samples"):
        Dataset.from_frame(frame, "y", missing="impute", fill_from=["1"])
    with pytest.raises(DataError, match="'size' has no value in any row"):
        Dataset.from_frame(frame.assign(size=nan), "y", missing="impute")
    unlabelled = Dataset.from_frame(frame.assign(y=[0, 1, None, 0]), "y", missing="impute")
    assert unlabelled.n == 3


# -- sets of levels, and missing values on either side


def test_every_way_to_part_levels_is_a_feature_once():
    for levels in range(3, 8):
        column = Column("c", tuple("abcdefg"[:levels]), sets=True)
        told = column.table[:levels]
        assert told.shape == (levels, 2 ** (levels - 1) - 1)
        sides = {frozenset({tuple(column), tuple(1 - column)}) for column in told.T}
        assert len(sides) == told.shape[1]
        assert (2 * told.astype(int).sum(axis=0) <= levels).all()
        # With missing values as one more level.
        told = Column("c", tuple("abcdefg"[:levels]), sets=True, branch=True).table[: levels + 1]
        sides = {frozenset({tuple(column), tuple(1 - column)}) for column in told.T}
        assert len(sides) == told.shape[1] == 2**levels - 1


def test_a_column_with_missing_values_is_there_twice():
    frame = pd.DataFrame({"age": [20.0, None, 40.0, 30.0], "sex": ["f", "m", None, "f"], "y": [0, 1, 0, 1]})
    data = Dataset.from_frame(frame, "y", missing="branch")
    assert data.features.labels == (
        "age (missing low)", "age (missing high)", "sex=f", "sex=m", "sex is missing",
    )  # fmt: skip
    expected = [[20, 20, 1, 0, 0], [10, 50, 0, 1, 0], [40, 40, 0, 0, 1], [30, 30, 1, 0, 0]]
    np.testing.assert_array_equal(data.X_raw, expected)
    # Values beyond those of training are known ones, and stay on their side of the missing ones.
    new = pd.DataFrame({"age": [-90.0, 900.0, None], "sex": ["m", "m", None]})
    encoded = data.encoding.encode(new)
    np.testing.assert_array_equal(encoded[:, :2], [[20, -90], [900, 40], [10, 50]])
    assert data.encoding.missing_notes(new) == ["", "", "age missing; sex missing"]


def test_sets_and_sides_survive_a_file_and_damage_is_refused():
    frame = pd.DataFrame({"age": [1.0, None, 3.0] * 4, "city": list("abcd") * 3, "y": [0, 1] * 6})
    encoding = Dataset.from_frame(frame, "y", missing="branch", categorical="all").encoding
    saved = json.loads(json.dumps(encoding.to_dict()))
    again = Encoding.from_dict(saved)
    assert again.columns == encoding.columns
    np.testing.assert_array_equal(again.encode(frame), encoding.encode(frame))
    for damage in ({"ends": [3.0, 1.0, 3.0, 4.0]}, {"ends": None}, {"ends": [0.0, 1.0, "x", 4.0]}):
        columns = [saved["columns"][0] | damage, saved["columns"][1]]
        with pytest.raises(DataError, match=r"not a saved encoding.*ends"):
            Encoding.from_dict(saved | {"columns": columns})
    columns = [saved["columns"][0], saved["columns"][1] | {"levels": [str(k) for k in range(30)]}]
    with pytest.raises(DataError, match="no sets of levels"):
        Encoding.from_dict(saved | {"columns": columns})


def test_columns_that_are_not_read_may_be_absent():
    frame = pd.DataFrame({"age": [1.0, 2.0], "city": ["a", "b"], "y": [0, 1]})
    encoding = Dataset.from_frame(frame, "y").encoding
    np.testing.assert_array_equal(encoding.encode(frame[["city"]], needed=[1]), [[0, 0], [0, 1]])
    with pytest.raises(DataError, match=r"lacks 1 feature column\(s\): age"):
        encoding.encode(frame[["city"]], needed=[0])


@pytest.mark.parametrize("missing", ["error", "drop", "impute", "branch"])
def test_a_column_without_any_value_is_refused(missing):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [None] * 3, "c": [float("nan")] * 3, "y": [0, 1, 0]})
    with pytest.raises(
        DataError, match=r"columns 'b', 'c' have no value in any row.*drop=\['b', 'c'\]"
    ) as refused:
        Dataset.from_frame(frame, "y", missing=missing)
    assert "--drop b --drop c" in refused.value.on_command_line
    assert Dataset.from_frame(frame, "y", missing=missing, drop=["b", "c"]).p == 1
    if missing in ("impute", "branch"):
        with pytest.raises(DataError, match="no value"):
            ORTRegressor(missing=missing, time_limit=0).fit(frame[["a", "b"]], [1.0, 2.0, 3.0])
