import json

import numpy as np
import pytest
from deployed_trees import KINDS, labelled_by_majority, random_card, random_tree, samples_for

from mipforest.data import Encoding
from mipforest.data.encoding import Column
from mipforest.deployment import to_onnx
from mipforest.trees import Tree, leaf_shares

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def run(model, X):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": np.asarray(X, dtype=np.float64)}), strict=True))


def check(fitted, X, statistics=None):
    """Compare what onnxruntime gives with what the tree or card does."""
    found = run(to_onnx(fitted, statistics), X)
    if fitted.is_classifier:
        assert found["prediction"].tolist() == fitted.predict_labels(X).tolist()
    else:
        np.testing.assert_allclose(found["prediction"], fitted.predict(X), rtol=1e-9, atol=1e-12)
    if "leaf" in found:
        assert found["leaf"].tolist() == fitted.apply(X).tolist()
    if "total" in found:
        assert found["total"].tolist() == fitted.totals(X).tolist()
    if fitted.prescribes:
        np.testing.assert_allclose(found["outcomes"], fitted.predict_outcomes(X), rtol=1e-9, atol=1e-12)
    elif statistics is not None:
        leaf = fitted.apply(X) - fitted.topology.n_branches
        np.testing.assert_array_equal(found["probabilities"], leaf_shares(fitted, statistics)[leaf])
    elif fitted.gives_probabilities:
        np.testing.assert_allclose(found["probabilities"], fitted.predict_proba(X), rtol=1e-9)


def check_random_trees(numbers):
    """Half of them have splits of several features; of the others samples lie on and beside the thresholds."""
    for number in numbers:
        rng, kind = np.random.default_rng(number), KINDS[number % len(KINDS)]
        tree = random_tree(rng, oblique=number % 2 == 0, kind=kind)
        X = 2 * rng.normal(size=(60, tree.n_features)) if tree.is_oblique else samples_for(tree, rng)
        check(tree, X)


def test_random_trees_predict_alike():
    check_random_trees(range(150))


@pytest.mark.parametrize("kind", ["targets", "labels of targets"])
def test_trees_of_several_targets_predict_alike(kind):
    rng = np.random.default_rng(4)
    for _ in range(10):
        tree = random_tree(rng, oblique=False, kind=kind)
        X = samples_for(tree, rng)
        found = run(to_onnx(tree), X)["prediction"]
        assert found.tolist() == (tree.predict_labels(X) if tree.target_classes else tree.predict(X)).tolist()
    if kind == "labels of targets":
        numbers = [np.arange(len(of)) + 7 for of in tree.target_classes]
        assert run(to_onnx(tree, classes=numbers), X)["prediction"].tolist() == (tree.predict(X) + 7).tolist()


@pytest.mark.slow
def test_a_thousand_random_trees_predict_alike():
    check_random_trees(range(150, 1000))


def test_shares_of_training_samples_are_probabilities():
    rng = np.random.default_rng(1)
    for _ in range(20):
        tree, statistics = labelled_by_majority(random_tree(rng, oblique=False), rng)
        check(tree, samples_for(tree, rng), statistics)


def test_random_cards_predict_alike():
    rng = np.random.default_rng(2)
    for _ in range(100):
        card = random_card(rng)
        check(card, samples_for(card, rng))


def test_a_missing_number_counts_as_what_it_is_filled_in_with():
    tree = Tree(1, [[1.0, 0.0]], [-2.0], [0, 1], classes=("low", "high"))
    encoding = Encoding.unscaled([Column("a", fill=3.0), Column("b")])
    found = run(to_onnx(tree, encoding=encoding), [[np.nan, 0.0], [1.0, np.nan]])
    assert found["prediction"].tolist() == ["high", "low"]


def test_labels_stay_whole_numbers_and_names_go_into_the_metadata():
    tree = Tree(1, [[1.0]], [-2.0], [0, 1], classes=("3", "7"), features=("age",))
    model = to_onnx(tree, classes=np.array([3, 7]))
    assert run(model, [[1.0], [2.0]])["prediction"].tolist() == [3, 7]
    about = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert about == {"features": ["age"], "classes": ["3", "7"]}


def test_no_samples_give_no_predictions():
    tree = Tree(1, [[1.0]], [-2.0], [0, 1], classes=("low", "high"))
    assert run(to_onnx(tree), np.zeros((0, 1)))["prediction"].tolist() == []
