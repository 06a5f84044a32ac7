"""Fitted estimators in the forms that other systems take: tables with texts, gaps and labels of their own."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

from mipforest.estimators import OCTClassifier, OptimalPrescriptiveTree, ORTRegressor, RiskScoreClassifier

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
