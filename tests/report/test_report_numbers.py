"""Numbers of a page against other ways to them."""

import numpy as np
from sklearn.metrics import confusion_matrix

from mipforest.report.content import FittedTree, content_of
from mipforest.report.markup import Chart, span, thinned, ticks
from mipforest.report.quality import counts_of, training_counts
from mipforest.report.tree_section import NodeTexts, node_confidence, uses_by_level
from mipforest.runs import read_run
from mipforest.trees import Tree, node_statistics
from mipforest.trees.plot import node_box
from mipforest.trees.reachable import reachable_tree


def test_confusion_matrices_are_those_of_scikit_learn(classes_run):
    content = content_of(read_run(classes_run))
    tree, train = content.fitted.tree, content.samples.train
    expected = confusion_matrix(train.y, tree.predict(train.X_raw), labels=[0, 1, 2])
    assert np.array_equal(training_counts(content.fitted), expected)
    assert np.array_equal(counts_of(train.y, tree.predict(train.X_raw), 3), expected)


def test_confidence_of_nodes_is_that_of_paths(logistic_run):
    content = content_of(read_run(logistic_run))
    tree, X = content.fitted.tree, content.samples.train.X_raw
    found, of_paths = node_confidence(tree, X), tree.path_confidences(X)
    assert np.isclose(found[0], of_paths[:, 0].mean())
    leaves = tree.apply(X)
    for leaf in np.unique(leaves):
        assert np.isclose(found[leaf], of_paths[leaves == leaf, -1].mean())
    assert np.isnan(found[sorted(set(range(3, 7)) - set(leaves.tolist()))]).all()


def test_words_and_picture_name_the_features_of_a_split_in_one_order():
    tree = Tree(
        1, np.array([[2.0, 1.0]]), np.array([-1.0]), np.array([0, 1]), ("no", "yes"), ("steady", "lively")
    )
    X, y = np.array([[0.5, 0.0], [0.4, 1.0], [0.5, 2.0], [0.4, 3.0]]), np.array([0, 1, 1, 1])
    fitted = FittedTree(tree, node_statistics(tree, X, y), reachable_tree(tree))
    root = fitted.nodes[0]
    assert NodeTexts(fitted, None).headline(root) == "lively + 2 steady ≥ 1"
    drawn = [line.text for line in node_box(tree, root, fitted.statistics, 3).lines]
    assert drawn.index("+ 2 steady") == drawn.index("lively") + 1


def test_uses_of_features_are_counted_by_level(deep_run):
    fitted = content_of(read_run(deep_run)).fitted
    counts, nodes, names = uses_by_level(fitted)
    splits = [node.number for node in fitted.nodes if node.children]
    assert np.array_equal(counts.sum(axis=0), np.count_nonzero(fitted.tree.w[splits], axis=0))
    assert sum(nodes) == len(splits)
    assert names[0] == "Level 0"
    assert nodes[0] == 1


def test_charts_keep_what_lies_outside_at_the_edge():
    chart = Chart((0.0, 10.0), (-1.0, 1.0), "x", "y")
    assert chart.place((20, 0)) == chart.place((10, 0))
    assert chart.place((5, -7)) == chart.place((5, -1))
    assert chart.place((0, 1))[1] < chart.place((0, -1))[1]


def test_axes_show_all_values_and_round_numbers():
    low, high = span([3.0, 3.0])
    assert low < 3 < high
    assert np.allclose(ticks(0.0, 1.0), [0, 0.2, 0.4, 0.6, 0.8, 1])
    assert thinned(5) == [0, 1, 2, 3, 4]
    chosen = thinned(12345)
    assert len(chosen) == len(set(chosen)) == 1000
    assert chosen[0] == 0
    assert chosen[-1] == 12344
