"""Fitted estimators in the forms that other systems take: tables with texts, gaps and labels of their own."""

import json
import pickle
import sqlite3

import numpy as np
import pandas as pd
import pytest

from mipforest.estimators import OCTClassifier, OptimalPrescriptiveTree, ORTRegressor, RiskScoreClassifier
from mipforest.trees import from_dict, to_dict, to_python, to_text

rng = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"age": rng.integers(20, 80, 60).astype(float), "city": rng.choice(["Roma", "Bari", "Lecce"], 60)}
)
LABELS = np.where((TABLE["age"] >= 50) & (TABLE["city"] != "Bari"), 7, 3)


@pytest.fixture(scope="module")
def classifier():
    with_gaps = TABLE.copy()
    with_gaps.loc[::7, "age"] = np.nan
    with_gaps.loc[::11, "city"] = None
    return OCTClassifier(depth=2, missing="impute").fit(with_gaps, LABELS), with_gaps


def select(expression, table):
    with sqlite3.connect(":memory:") as database:
        table.to_sql("t", database, index=False)
        return [value for (value,) in database.execute(f"SELECT {expression} FROM t ORDER BY rowid")]


def test_sql_reads_the_columns_of_the_table(classifier):
    fitted, table = classifier
    assert select(fitted.to_sql(), table) == fitted.predict(table).tolist()
    found = select(fitted.to_sql(probability_of=7), table)
    assert found == pytest.approx(fitted.predict_proba(table)[:, 1].tolist())


def test_scikit_learn_has_the_labels_probabilities_and_encoded_features(classifier):
    fitted, table = classifier
    same, X = fitted.to_sklearn(), fitted._features(table)
    encoded = pd.DataFrame(X, columns=same.feature_names_in_)
    assert same.predict(encoded).tolist() == fitted.predict(table).tolist()
    # exact: copies of the leaves' shares
    np.testing.assert_array_equal(same.predict_proba(encoded), fitted.predict_proba(table))
    encoded["age"] = table["age"]
    assert same.predict(encoded).tolist() == fitted.predict(table).tolist()


def test_an_onnx_model_has_the_labels_and_probabilities(classifier):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    fitted, table = classifier
    session = runtime.InferenceSession(fitted.to_onnx().SerializeToString())
    labels, shares = session.run(["prediction", "probabilities"], {"X": fitted._features(table)})
    assert labels.tolist() == fitted.predict(table).tolist()
    # exact: copies of the leaves' shares
    np.testing.assert_array_equal(shares, fitted.predict_proba(table))


def test_regressors_cards_and_prescriptions_are_expressions_too():
    y = TABLE["age"].to_numpy() * np.where(TABLE["city"] == "Roma", 2.0, 1.0)
    regressor = ORTRegressor(depth=1, N_min=5).fit(TABLE, y)
    assert select(regressor.to_sql(), TABLE) == pytest.approx(regressor.predict(TABLE).tolist())
    card = RiskScoreClassifier(rules=1).fit(TABLE, LABELS)
    assert select(card.to_sql(), TABLE) == card.predict(TABLE).tolist()
    had = np.array(["drug", "rest"] * 30)
    prescribing = OptimalPrescriptiveTree(depth=1, n_treatment=2).fit(TABLE, had, y)
    assert select(prescribing.to_sql(), TABLE) == prescribing.predict(TABLE).tolist()


def table_with_branches(seed):
    """A table, fitted so that splits part levels and send missing values to a side, and one with all combinations."""
    rng = np.random.default_rng(seed)
    n = 60
    table = pd.DataFrame(
        {
            "age": rng.integers(0, 12, n).astype(float),
            "city": rng.choice(["Roma", "Bari", "Lecce", "Pisa", "l'Aquila"], n),
            "smoker": rng.choice(["no", "yes"], n),
        }
    ).mask(rng.random((n, 3)) < 0.2)
    ages = [np.nan, *np.arange(-20.0, 30.0)]
    cities = [None, "Roma", "Bari", "Lecce", "Pisa", "l'Aquila"]
    every = pd.MultiIndex.from_product([ages, cities, [None, "no", "yes"]], names=table.columns)
    return table, every.to_frame(index=False), rng


@pytest.mark.first_cases(6)
@pytest.mark.parametrize("seed", range(12))
def test_sets_and_missing_values_are_the_same_everywhere(seed):
    """Ages beyond those of training are known ones: no form takes them for missing."""
    table, every, rng = table_with_branches(seed)
    categorical = ["city"] if seed % 3 else ()
    y = rng.integers(2, size=len(table))
    fitted = OCTClassifier(depth=2 + seed % 2, missing="branch", categorical=categorical, N_min=2).fit(
        table, y
    )
    expected = fitted.predict(every).tolist()
    assert select(fitted.to_sql(), every) == expected
    code: dict = {}
    exec(to_python(fitted.tree_), code)
    encoded = fitted.encoded(every)
    rows = [
        read | known for read, known in zip(encoded.to_dict("records"), every.to_dict("records"), strict=True)
    ]
    assert [int(code["predict"](row)) for row in rows] == expected
    assert fitted.to_sklearn(certain=True).predict(encoded).tolist() == expected
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(every).tolist() == expected
    tree = from_dict(json.loads(json.dumps(to_dict(fitted.tree_))))
    assert tree.levels == fitted.tree_.levels
    assert to_text(tree) == fitted.to_text()


@pytest.mark.parametrize("seed", range(4))
def test_onnx_takes_missing_values_to_the_same_side(seed):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    table, every, rng = table_with_branches(seed)
    y = rng.normal(size=len(table))
    fitted = ORTRegressor(depth=2, missing="branch", categorical="all").fit(table, y)
    session = runtime.InferenceSession(fitted.to_onnx().SerializeToString())
    (found,) = session.run(["prediction"], {"X": fitted.encoded(every).to_numpy()})
    # exact: copies of the leaves' values
    assert found.tolist() == fitted.predict(every).tolist()
