"""A tree of splits of one feature as scikit-learn's decision tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray
from mipforest.data.encoding import Encoding
from mipforest.deployment.cuts import (
    Cuts,
    Inputs,
    cuts_of,
    fill_ins,
    inputs_of,
    labels_by_target,
    leaf_probabilities,
)
from mipforest.trees import NodeStatistics, RandomizedTree, Tree

#: Samples that a leaf without training samples counts for: SHAP divides by the samples at a node.
EMPTY_LEAF = 1e-9


def to_sklearn(
    tree: Tree,
    statistics: NodeStatistics | None = None,
    *,
    encoding: Encoding | None = None,
    classes: npt.ArrayLike | None = None,
    certain: bool = False,
) -> Any:
    """Return a fitted ``DecisionTreeClassifier`` or ``DecisionTreeRegressor`` that predicts as the tree does.

    What reads scikit-learn's trees (SHAP's ``TreeExplainer``, dtreeviz, treelite, m2cgen, PMML) then reads this one.

    scikit-learn rounds samples to float32 before it compares them. For samples that are float32 numbers, predictions
    and probabilities are those of the tree. A sample of doubles may go to the other side of a split where it lies
    between the threshold and the nearest float32 number, about 6e-8 of its size away.

    Parameters
    ----------
    tree
        A tree whose splits have one feature each, and whose leaves are constant.
    statistics
        Training samples by node. They give the probabilities of a classifier, the impurities, and the numbers of
        samples that SHAP weighs branches by. Without them every leaf counts for one sample, and a class is certain.
    encoding
        What the columns are: a missing number goes to the side of what it is filled in with. Without, NaN goes to the
        side of large values.
    classes
        (K,) labels in place of the tree's names of classes, in their order; a list of these of several targets.
    certain
        Whether every leaf gives its class the probability 1, in place of its share of the training samples. Labels of
        several targets have no others.

    Returns
    -------
    sklearn.tree.DecisionTreeClassifier or sklearn.tree.DecisionTreeRegressor
        It has the tree's features as columns, in original units: one for each level of a column of texts. A column of
        numbers whose missing values splits send to a side is one column, with NaN where a value is missing.

    Raises
    ------
    ValueError
        If scikit-learn has no such tree: it has a split of several features or linear leaves, it is logistic or
        randomised, or a score card; or a leaf predicts another class than the most frequent one of its samples.
    """
    _check_form(tree)
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
    from sklearn.tree._tree import Tree as Arrays

    if len(tree.targets) == 1:
        tree, classes = tree.of_target(0), classes if tree.target_classes else None
        statistics = None if tree.is_classifier else statistics
    leaves = _leaf_values(tree, statistics, certain=certain)
    labels = [np.asarray(tree.classes if classes is None else classes)] if tree.is_classifier else []
    if tree.targets:
        labels = labels_by_target(tree, classes)
    inputs = inputs_of(tree)
    filled = np.where(np.isnan(inputs.missing), fill_ins(encoding, tree.n_features), inputs.missing)
    rows = _NodeTable(tree, cuts_of(tree), leaves, _samples(tree, statistics), filled, inputs)
    rows.add(0)
    depth, nodes, values = rows.depth, rows.nodes(), np.array(rows.values)
    T = leaves.shape[1]
    numbers = np.array(list(map(len, labels)) or [1] * T, dtype=np.intp)
    arrays = Arrays(len(inputs.names), numbers, T)
    arrays.__setstate__(
        {"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": np.ascontiguousarray(values)}
    )
    fitted = (DecisionTreeClassifier if labels else DecisionTreeRegressor)(max_depth=depth or None)
    fitted.n_features_in_, fitted.n_outputs_ = len(inputs.names), T
    fitted.max_features_ = fitted.n_features_in_
    if tree.features:
        fitted.feature_names_in_ = np.array(inputs.names, dtype=object)
    if labels:
        fitted.classes_ = labels if T > 1 else labels[0]
        fitted.n_classes_ = list(map(np.int64, numbers)) if T > 1 else np.int64(numbers[0])
    fitted.tree_ = arrays
    return fitted


def _check_form(tree: Tree) -> None:
    """Refuse trees that scikit-learn does not have."""
    elsewhere = "use to_onnx, which keeps it"
    if not isinstance(tree, Tree):
        raise ValueError(f"{tree!r} is no tree; {elsewhere}")
    if isinstance(tree, RandomizedTree):
        raise ValueError(f"a randomised tree predicts a mean over all its leaves; {elsewhere}")
    if tree.is_oblique:
        t = int(np.argmax(np.count_nonzero(tree.w, axis=1) > 1))
        count = int(np.count_nonzero(tree.w[t]))
        raise ValueError(
            f"node {t} splits on {count} features, and a split of scikit-learn has one; {elsewhere}"
        )
    if tree.has_linear_leaves:
        raise ValueError(
            f"leaves of this tree predict linear functions, those of scikit-learn numbers; {elsewhere}"
        )
    if tree.logistic:
        raise ValueError(
            f"the probabilities of a logistic tree follow the score of a sample, those of scikit-learn its leaf; "
            f"{elsewhere}"
        )


def _leaf_values(tree: Tree, statistics: NodeStatistics | None, *, certain: bool) -> FloatArray:
    """Return the (|L|, T, K) probabilities, or the (|L|, T, 1) values, of the leaves, of T targets."""
    if tree.target_classes:
        known = np.arange(max(map(len, tree.target_classes)))
        return np.asarray(tree.leaf_value[:, :, None] == known, dtype=np.float64)
    if not tree.is_classifier:
        return tree.leaf_value.astype(np.float64).reshape(len(tree.leaf_value), -1, 1)
    label = tree.leaf_value.astype(np.int64)
    shares = leaf_probabilities(tree, None if certain or tree.prescribes else statistics)
    other = np.flatnonzero(shares.argmax(axis=1) != label)
    if len(other):
        k = int(other[0])
        raise ValueError(
            f"leaf {k + tree.topology.n_branches} predicts {tree.classes[label[k]]!r}, and most of its training "
            f"samples are {tree.classes[int(shares[k].argmax())]!r}: scikit-learn's trees predict the most probable "
            "class; give certain=True for the same predictions, with probabilities of 0 and 1"
        )
    return shares[:, None]


def _samples(tree: Tree, statistics: NodeStatistics | None) -> tuple[FloatArray, FloatArray]:
    """Return the (|L|,) samples of the leaves and their weight."""
    n = tree.topology.n_leaves
    if statistics is None:
        return np.ones(n), np.ones(n)
    samples = statistics.samples[-n:].astype(np.float64)
    weights = (
        samples if statistics.class_weights is None else np.asarray(statistics.class_weights)[-n:].sum(axis=1)
    )
    return samples, np.maximum(weights, EMPTY_LEAF)


class _NodeTable:
    """Collects the nodes in scikit-learn's order, a node before its left subtree before its right one.

    Nodes that send every sample to one side are left out.
    """

    def __init__(
        self,
        tree: Tree,
        cuts: Cuts,
        leaves: FloatArray,
        samples: tuple[FloatArray, FloatArray],
        filled: FloatArray,
        inputs: Inputs,
    ) -> None:
        self._tree, self._cuts, self._leaves, self._filled = tree, cuts, leaves, filled
        self._inputs = inputs
        self._samples, self._weights = samples
        self._rows: list[dict[str, Any]] = []
        self.values: list[FloatArray] = []
        self._squares: list[FloatArray] = []
        self.depth = 0

    def nodes(self) -> Any:
        """Return the nodes in scikit-learn's own type of record."""
        from sklearn.tree._tree import NODE_DTYPE

        nodes = np.zeros(len(self._rows), dtype=NODE_DTYPE)
        for record, row in zip(nodes, self._rows, strict=True):
            for name, value in row.items():
                record[name] = value
        return nodes

    def add(self, t: int, level: int = 0) -> int:
        """Add the subtree of node t; return its number in scikit-learn's tree."""
        topology, cuts = self._tree.topology, self._cuts
        while t < topology.n_branches and (side := cuts.only_side(t)) is not None:
            t = topology.right(t) if side else topology.left(t)
        self.depth = max(self.depth, level)
        number = len(self._rows)
        self._rows.append({})
        if t >= topology.n_branches:
            k = t - topology.n_branches
            value = self._leaves[k]
            self.values.append(value)
            self._squares.append(value**2)
            self._describe(number, self._samples[k], self._weights[k])
            self._rows[number] |= {"left_child": -1, "right_child": -1, "feature": -2, "threshold": -2.0}
            return number
        # Replaced below, when those of its children are known.
        self.values.append(self._leaves[0])
        self._squares.append(self._leaves[0])
        j = int(cuts.feature[t])
        # scikit-learn sends x <= threshold left: the last double below the cut.
        lower, upper = (
            (topology.left(t), topology.right(t))
            if cuts.upper_is_right[t]
            else (topology.right(t), topology.left(t))
        )
        left, right = self.add(lower, level + 1), self.add(upper, level + 1)
        n = [self._rows[child]["n_node_samples"] for child in (left, right)]
        weight = [self._rows[child]["weighted_n_node_samples"] for child in (left, right)]
        for means in (self.values, self._squares):
            means[number] = np.average([means[left], means[right]], axis=0, weights=weight)
        self._describe(number, sum(n), sum(weight))
        self._rows[number] |= {
            "left_child": left,
            "right_child": right,
            "feature": int(self._inputs.source[j]),
            "threshold": self._threshold(j, float(cuts.cut[t])),
            "missing_go_to_left": self._filled[j] < cuts.cut[t],
        }
        return number

    def _threshold(self, j: int, cut: float) -> float:
        """Return the largest value that goes left; of a split that tells missing values alone none, or any."""
        if cut <= self._inputs.least[j]:
            return -np.inf
        return np.inf if cut > self._inputs.most[j] else float(np.nextafter(cut, -np.inf))

    def _describe(self, number: int, samples: float, weight: float) -> None:
        """Set what branch nodes and leaves both have; the impurity is Gini's, or the variance of the predictions."""
        value = self.values[number]
        is_regression = not (self._tree.is_classifier or self._tree.target_classes)
        spread = (self._squares[number] - value**2 if is_regression else 1.0 - (value**2).sum(axis=1)).mean()
        self._rows[number] |= {
            "impurity": max(float(spread), 0.0),
            "n_node_samples": int(samples),
            "weighted_n_node_samples": weight,
        }
