import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from mipforest.data import DataError, catalogue, load


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_catalogue_tells_the_truth(entry):
    data = load(entry.name)
    assert (data.task, data.n, data.p, data.n_classes) == (entry.task, entry.n, entry.p, entry.classes)
    assert entry.description


def test_breast_cancer_is_that_of_scikit_learn():
    data, bunch = load("breast_cancer"), load_breast_cancer()
    np.testing.assert_array_equal(data.X_raw, bunch.data)
    np.testing.assert_array_equal(data.y, bunch.target)
    assert data.classes == ("malignant", "benign")
    assert data.class_values == (0, 1)
    assert data.features[0] == "mean radius"


def test_diabetes_is_in_original_units():
    data = load("diabetes")
    assert data.X_raw[:, data.features.position("age")].max() == 79
    np.testing.assert_array_equal(data.y, load_diabetes().target)


def test_constant_pixels_are_0():
    data = load("digits", scaling="standard")
    constant = np.ptp(data.X_raw, axis=0) == 0
    assert constant.any()
    np.testing.assert_array_equal(data.X[:, constant], 0.0)


def test_scaling_and_task_are_passed_on():
    assert load("iris", scaling="none").X.max() > 1
    assert load("wine", task="regression").task == "regression"
    assert load("synthetic:tree,n=50", scaling="standard").encoding.scaling == "standard"


def test_unknown_name_names_the_nearest_and_what_else_there_is():
    with pytest.raises(
        DataError, match=r"'brest_cancer' \(did you mean 'breast_cancer'\?\).*wine.*openml:NAME.*\.csv"
    ):
        load("brest_cancer")


@pytest.mark.parametrize("name", ["iris", "synthetic:4-partitions"])
def test_fixed_targets(name):
    with pytest.raises(DataError, match=r"fixed target"):
        load(name, target="petal")


def test_generated_task_is_part_of_the_name():
    with pytest.raises(DataError, match=r"task=regression"):
        load("synthetic:tree", task="regression")
    assert load("synthetic:tree,task=regression", task="regression").task == "regression"
