"""The estimator of semi-supervised trees: -1 for samples without a label, as in scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from formulations.semi import SemiOct
from mipforest import SemiSupervisedTreeClassifier
from mipforest.data import Dataset
from mipforest.problem.parameters import ParameterError

X, Y = load_iris(return_X_y=True)
HIDDEN = np.random.default_rng(0).random(len(Y)) < 0.8
SHARES = {str(k): float((Y[HIDDEN] == k).sum()) for k in (0, 1)}


def test_it_is_the_model():
    y = np.where(HIDDEN, -1, Y)
    tree = SemiSupervisedTreeClassifier(depth=1, totals=SHARES, alpha=0.1).fit(X, y)
    data = Dataset.from_arrays(X[~HIDDEN], Y[~HIDDEN], unlabelled=X[HIDDEN])
    result = SemiOct(alpha=0.1, totals=SHARES).build(data, 1).solve()
    assert tree.objective_ == pytest.approx(result.objective, abs=1e-7)
    assert tree.classes_.tolist() == [0, 1, 2]
    assert tree.verified_


def test_texts_as_labels():
    frame = pd.DataFrame(X, columns=list("abcd"))
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[Y]
    names[HIDDEN] = -1
    totals = {"setosa": SHARES["0"]}
    tree = SemiSupervisedTreeClassifier(depth=1, totals=totals, total_price=5.0).fit(frame, names)
    assert (tree.predict(frame[HIDDEN]) == "setosa").sum() == SHARES["0"]
    assert list(tree.predict_proba(frame).shape) == [150, 3]


def test_weights_of_labelled_samples_count():
    y = np.where(HIDDEN, -1, Y)
    weights = np.where(Y == 1, 2.0, 1.0)
    tree = SemiSupervisedTreeClassifier(depth=1, totals=SHARES).fit(X, y, sample_weight=weights)
    assert tree.result_.problem.data.weights.tolist() == weights[~HIDDEN].tolist()  # exact: a copy


def test_without_totals_it_says_what_is_needed():
    with pytest.raises(ParameterError, match="totals is needed"):
        SemiSupervisedTreeClassifier(depth=1).fit(X, np.where(HIDDEN, -1, Y))
