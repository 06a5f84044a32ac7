"""Tables in: names, categories, labels; and the same answers as the command line gives."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mipforest import Dataset
from mipforest.cli.main import app
from mipforest.estimators import MargotClassifier, OCTClassifier, ORTRegressor

pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, size=24)
    colour = rng.choice(["red", "green", "blue"], size=24)
    member = rng.choice([True, False], size=24)
    answer = np.where((age > 45) & (colour != "red"), "yes", "no")
    return pd.DataFrame({"age": age, "colour": colour, "member": member, "answer": answer})


def features(people):
    return people.drop(columns="answer")


def test_columns_of_texts_are_encoded_as_data_sets_do(people):
    fitted = OCTClassifier(depth=2, time_limit=0).fit(features(people), people["answer"])
    data = Dataset.from_frame(people, "answer")
    assert fitted.tree_.features == data.features.labels
    assert list(fitted.feature_names_in_) == ["age", "colour", "member"]
    assert fitted.n_features_in_ == 3
    assert set(fitted.features_used_) <= set(data.features.labels)
    assert fitted.score(features(people), people["answer"]) == 1.0


@pytest.mark.parametrize("kind", ["category", "string", object])
def test_texts_may_be_of_any_kind(people, kind):
    table = features(people).astype({"colour": kind})
    fitted = OCTClassifier(depth=2, time_limit=0).fit(table, people["answer"].astype(kind))
    assert list(fitted.predict(features(people))) == list(people["answer"])


def test_an_array_of_the_same_columns_is_read_like_the_table(people):
    fitted = OCTClassifier(depth=2, time_limit=0).fit(features(people), people["answer"])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        predicted = fitted.predict(features(people).to_numpy(dtype=object))
    assert list(predicted) == list(people["answer"])


def test_a_new_level_is_refused(people):
    fitted = OCTClassifier(depth=1, time_limit=0).fit(features(people), people["answer"])
    with pytest.raises(ValueError, match="'purple'"):
        fitted.predict(features(people).assign(colour="purple"))


def test_columns_in_another_order_are_refused(people):
    fitted = OCTClassifier(depth=1, time_limit=0).fit(features(people), people["answer"])
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(features(people)[["colour", "age", "member"]])
    with pytest.raises(ValueError, match="missing"):
        fitted.predict(features(people)[["age", "member"]])


def test_missing_values_are_refused(people):
    table = features(people).astype({"age": float})
    fitted = OCTClassifier(depth=1, time_limit=0).fit(table, people["answer"])
    table.loc[3, "age"] = np.nan
    with pytest.raises(ValueError, match="missing values"):
        OCTClassifier(depth=1).fit(table, people["answer"])
    with pytest.raises(ValueError, match="missing values"):
        fitted.predict(table)


def test_columns_without_text_names_are_told_by_position(people):
    table = features(people)[["age", "member"]].astype(float).set_axis([0, 1], axis="columns")
    fitted = OCTClassifier(depth=1, time_limit=0).fit(table, people["answer"])
    assert not hasattr(fitted, "feature_names_in_")
    np.testing.assert_array_equal(fitted.predict(table), fitted.predict(table.to_numpy()))


@pytest.mark.parametrize(
    "labels", [["b", "a"], [True, False], [2, -1], [1.5 - 0.5, 3.0], ["10", "9"], [np.int8(1), np.int8(0)]]
)
def test_predictions_are_labels_as_they_were_given(people, labels):
    y = np.where(people["answer"] == "yes", *np.array(labels)[:, None])
    fitted = MargotClassifier(depth=1, time_limit=0).fit(features(people)[["age"]], y)
    np.testing.assert_array_equal(fitted.classes_, np.unique(y))
    predicted = fitted.predict(features(people)[["age"]])
    assert predicted.dtype == y.dtype
    assert set(predicted.tolist()) <= set(y.tolist())
    assert fitted.score(features(people)[["age"]], y) > 0.6


@pytest.mark.parametrize(
    ("model", "estimator", "target"),
    [
        ("margot", MargotClassifier(depth=2, C=10.0, time_limit=0, random_state=7), "answer"),
        ("oct", OCTClassifier(depth=2, alpha=0.01, time_limit=0, random_state=7), "answer"),
        ("ort", ORTRegressor(depth=2, alpha=0.01, time_limit=0, random_state=7), "height"),
    ],
)
def test_the_command_line_gives_the_same_predictions(people, model, estimator, target, tmp_path):
    heights = people["age"] * 0.1 + np.arange(len(people)) ** 1.5
    table = people if target == "answer" else features(people).assign(height=heights)
    X, y = table.drop(columns=target), table[target]
    table.to_csv(tmp_path / "table.csv", index=False)
    parameter = "C=10" if model == "margot" else "alpha=0.01"
    options = ["--model", model, "--depth", "2", "--param", parameter, "--time-limit", "0", "--seed", "7"]
    where = ["--data", str(tmp_path / "table.csv"), "--target", target, "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, ["solve", *options, *where])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["predict", str(tmp_path / "run"), str(tmp_path / "table.csv"), "--json"])
    told = json.loads(done.stdout)
    assert list(estimator.fit(X, y).predict(X)) == told["predictions"]
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert estimator.objective_ == pytest.approx(kept["objective"], rel=1e-12)
    assert list(estimator.features_used_) == kept["features_used"]


def test_a_new_level_is_none_of_those_known_where_it_may_be(people):
    fitted = OCTClassifier(depth=1, time_limit=0, handle_unknown="ignore").fit(
        features(people), people["answer"]
    )
    new = features(people).assign(colour="purple")
    none = fitted.tree_.predict(np.column_stack([new["age"], *np.zeros((3, len(new))), new["member"]]))
    assert list(fitted.predict(new)) == list(fitted.classes_[none])


@pytest.mark.parametrize("as_table", [True, False])
def test_missing_numbers_count_as_the_lower_median_of_training(as_table):
    X, y = np.array([[1.0], [2.0], [np.nan], [8.0], [9.0], [9.0]]), np.array([0, 0, 0, 1, 1, 1])
    given = pd.DataFrame(X, columns=["size"]) if as_table else X
    fitted = OCTClassifier(depth=1, time_limit=0, missing="impute").fit(given, y)
    filled = np.where(np.isnan(X), 8.0, X)
    assert list(fitted.predict(given)) == list(fitted.tree_.predict(filled))
    assert fitted.apply(given)[2] == fitted.apply(given)[3]
    with pytest.raises(ValueError, match=r"NaN|missing"):
        OCTClassifier(depth=1, time_limit=0).fit(given, y)


def test_samples_of_weight_0_do_not_tell_what_a_missing_value_counts_as():
    X, y = np.array([[1.0], [2.0], [50.0], [60.0], [70.0], [np.nan]]), np.array([0, 0, 1, 1, 1, 0])
    fitted = OCTClassifier(depth=1, time_limit=0, missing="impute").fit(
        X, y, sample_weight=[1, 1, 1, 0, 0, 1]
    )
    assert fitted.apply(X)[5] == fitted.apply(X)[1]


def test_a_missing_level_counts_as_the_most_frequent_one(people):
    table = features(people)
    fitted = OCTClassifier(depth=2, time_limit=0, missing="impute").fit(table, people["answer"])
    often = table["colour"].mode()[0]
    lacking = fitted.predict(table.assign(colour=None))
    assert list(lacking) == list(fitted.predict(table.assign(colour=often)))


@pytest.mark.parametrize("wrong", [{"missing": "drop"}, {"handle_unknown": "none"}])
def test_other_treatments_are_refused(people, wrong):
    with pytest.raises(ValueError, match="choose 'error' or"):
        OCTClassifier(**wrong).fit(features(people), people["answer"])


def test_missing_values_go_to_a_side_and_sets_of_levels_are_split(people):
    table = features(people)
    table.loc[::5, "age"] = np.nan
    fitted = OCTClassifier(depth=2, missing="branch", categorical="all").fit(table, people["answer"])
    assert fitted.score(table, people["answer"]) > 0.9
    assert fitted.n_features_in_ == table.shape[1] == len(fitted.feature_importances_)
    lacking = fitted.predict(table.assign(age=np.nan))
    assert len(lacking) == len(table)
    with pytest.raises(ValueError, match="missing values in 1 column"):
        fitted.predict(table.assign(colour=None))
    # Arrays have no column of text; NaN goes to a side all the same, and whole numbers may be levels.
    X = table[["age"]].to_numpy()
    array = OCTClassifier(depth=1, missing="branch").fit(X, people["answer"])
    assert array.predict(X).tolist() == array.predict(X.tolist()).tolist()
    wards = OCTClassifier(depth=1, categorical=["x0"]).fit(np.arange(24)[:, None] % 4, [0, 1, 1, 0] * 6)
    assert wards.to_text().startswith("n0: x0 in {1, 2}")
    assert "categorical" in OCTClassifier.__doc__
    with pytest.raises(ValueError, match="no feature column is called 'color'"):
        OCTClassifier(categorical=["color"]).fit(table.drop(columns="age"), people["answer"])


@pytest.mark.parametrize("missing", ["error", "branch", "impute"])
def test_missing_values_are_taken_where_the_tree_does_not_read(missing):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": np.arange(40.0), "b": rng.integers(0, 3, 40), "c": rng.choice(["u", "v", "w"], 40)}
    )
    fitted = OCTClassifier(depth=1, missing=missing).fit(table, np.arange(40) >= 20)
    new = pd.DataFrame({"a": [3.0, 30.0], "b": [None, 1], "c": [None, "u"]})
    assert fitted.predict(new).tolist() == [False, True]
    new.loc[0, "a"] = None
    if missing != "impute":
        with pytest.raises(ValueError, match=r"missing values in 1 column.* 'a'") as refused:
            fitted.predict(new)
        assert f"missing='{missing}'" not in str(refused.value)
