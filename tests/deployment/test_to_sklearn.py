import numpy as np
import pandas as pd
import pytest
from deployed_trees import labelled_by_majority, random_card, random_tree, samples_for

from mipforest.data import Encoding
from mipforest.data.encoding import Column
from mipforest.deployment import to_sklearn
from mipforest.trees import Tree, leaf_shares, node_statistics


def as_float32(X):
    """Round samples to what scikit-learn compares."""
    return np.asarray(X, dtype=np.float32).astype(np.float64)


def test_random_classifiers_predict_alike_on_float32_samples():
    """Every sample is a float32 number; some lie next to a threshold."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        tree, statistics = labelled_by_majority(random_tree(rng, oblique=False), rng)
        X = as_float32(samples_for(tree, rng))
        fitted = to_sklearn(tree, statistics)
        X = pd.DataFrame(X, columns=tree.features)
        assert fitted.predict(X).tolist() == tree.predict_labels(X).tolist()
        leaf = tree.apply(X) - tree.topology.n_branches
        # exact: copies of the leaves' shares
        np.testing.assert_array_equal(fitted.predict_proba(X), leaf_shares(tree, statistics)[leaf])
        assert to_sklearn(tree, certain=True).predict(X).tolist() == fitted.predict(X).tolist()


def test_random_regressors_predict_alike_on_float32_samples():
    rng = np.random.default_rng(1)
    for _ in range(60):
        tree = random_tree(rng, oblique=False, kind="values")
        X = pd.DataFrame(as_float32(samples_for(tree, rng)), columns=tree.features)
        # exact: copies of the leaves' values
        np.testing.assert_array_equal(to_sklearn(tree).predict(X), tree.predict(X))


@pytest.mark.parametrize("kind", ["targets", "labels of targets"])
def test_trees_of_several_targets_predict_alike_on_float32_samples(kind):
    rng = np.random.default_rng(2)
    for _ in range(20):
        tree = random_tree(rng, oblique=False, kind=kind)
        X = pd.DataFrame(as_float32(samples_for(tree, rng)), columns=tree.features)
        fitted, one = to_sklearn(tree), to_sklearn(tree.of_target(1))
        predicted = tree.predict_labels(X) if tree.target_classes else tree.predict(X)
        assert fitted.predict(X).tolist() == predicted.tolist()
        assert one.predict(X).tolist() == predicted[:, 1].tolist()
        assert fitted.n_outputs_ == 3


@pytest.mark.parametrize("threshold", [16777217.0, 0.1, -0.1])
def test_a_double_that_rounds_to_the_other_side_is_the_only_exception(threshold):
    """scikit-learn rounds a sample to float32 first: it may pass a threshold that is no float32 number."""
    tree = Tree(1, [[1.0]], [-threshold], [0, 1], classes=("low", "high"))
    fitted = to_sklearn(tree)
    nearest = np.float64(np.float32(threshold))
    neighbours = np.nextafter(np.float32(threshold), np.float32([-np.inf, np.inf])).astype(np.float64)
    X = np.array([neighbours[0], nearest, neighbours[1]])[:, None]
    assert fitted.predict(X).tolist() == tree.predict_labels(X).tolist()
    between = np.array([[threshold if nearest < threshold else np.nextafter(threshold, -np.inf)]])
    assert fitted.predict(between).tolist() != tree.predict_labels(between).tolist()


def test_counts_impurity_and_importances_are_those_of_the_training_samples():
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 0, 1])
    tree = Tree(1, [[1.0]], [-2.5], [0, 1], classes=("low", "high"), features=("age",))
    fitted = to_sklearn(tree, node_statistics(tree, X, y), classes=[10, 20])
    assert fitted.classes_.tolist() == [10, 20]
    assert fitted.feature_names_in_.tolist() == ["age"]
    assert fitted.tree_.n_node_samples.tolist() == [4, 2, 2]
    assert fitted.tree_.impurity == pytest.approx([0.375, 0.0, 0.5])
    assert fitted.get_depth() == 1
    assert fitted.get_n_leaves() == 2
    assert fitted.feature_importances_ == pytest.approx([1.0])


def test_a_missing_number_goes_where_its_fill_in_goes():
    tree = Tree(1, [[1.0]], [-2.0], [0, 1], classes=("low", "high"))
    for fill, expected in ((1.0, "low"), (2.0, "high")):
        fitted = to_sklearn(tree, encoding=Encoding.unscaled([Column("a", fill=fill)]))
        assert fitted.predict([[np.nan]]).tolist() == [expected]


def test_nodes_without_a_split_are_left_out():
    tree = Tree(2, [[0.0], [1.0], [1.0]], [-1.0, -2.0, 0.0], [0, 1, 0, 1], classes=("low", "high"))
    assert to_sklearn(tree).tree_.node_count == 3
    constant = Tree(1, [[0.0]], [1.0], [0.5, 1.5])
    assert to_sklearn(constant).predict([[7.0]]).tolist() == [1.5]


UNIVARIATE = {"depth": 1, "b": [0.0], "leaf_value": [0, 1]}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (Tree(w=[[1.0, 2.0]], classes=("a", "b"), **UNIVARIATE), "node 0 splits on 2 features"),
        (Tree(w=[[1.0]], classes=("a", "b"), logistic=True, **UNIVARIATE), "follow the score"),
        (Tree(w=[[1.0]], leaf_w=[[1.0], [2.0]], **UNIVARIATE), "linear functions"),
        (random_card(np.random.default_rng(0)), "no tree"),
        (random_tree(np.random.default_rng(0), oblique=False, kind="randomized"), "mean over all"),
    ],
)
def test_what_scikit_learn_does_not_have_is_refused(tree, message):
    with pytest.raises(ValueError, match=f"{message}.*to_onnx"):
        to_sklearn(tree)


def test_a_leaf_against_the_majority_is_refused_unless_classes_are_certain():
    tree = Tree(1, [[1.0]], [-2.0], [0, 1], classes=("low", "high"))
    statistics = node_statistics(tree, [[1.0], [3.0], [4.0]], [0, 0, 0])
    with pytest.raises(ValueError, match=r"leaf 2 predicts 'high'.*certain=True"):
        to_sklearn(tree, statistics)
    assert to_sklearn(tree, statistics, certain=True).predict([[3.0]]).tolist() == ["high"]


@pytest.mark.slow
def test_shap_values_sum_to_the_prediction():
    """Also with leaves and subtrees that no training sample reaches."""
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(3)
    for kind in ("classes", "values") * 5:
        tree = random_tree(rng, oblique=False, kind=kind)
        X = pd.DataFrame(as_float32(rng.normal(size=(30, tree.n_features))), columns=tree.features)
        if kind == "classes":
            tree, statistics = labelled_by_majority(tree, rng)
        else:
            statistics = node_statistics(tree, X[:10], rng.normal(size=10))
        fitted = to_sklearn(tree, statistics)
        explainer = shap.TreeExplainer(fitted)
        found = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
        expected = fitted.predict_proba(X) if kind == "classes" else fitted.predict(X)
        np.testing.assert_allclose(np.squeeze(found), np.squeeze(expected), atol=1e-6)
