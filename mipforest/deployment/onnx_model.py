"""A tree or score card as an ONNX model of plain operators, computed in double precision."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray
from mipforest.cards import ScoreCard
from mipforest.data.encoding import Encoding
from mipforest.deployment.cuts import (
    Inputs,
    cuts_of,
    fill_ins,
    inputs_of,
    labels_by_target,
    leaf_probabilities,
)
from mipforest.errors import MipforestError
from mipforest.trees import NodeStatistics, Predictor, RandomizedTree, Tree

#: Operators up to this version are used: onnxruntime runs them from 1.12 on.
OPSET = 17

#: Version of the file format that comes with them.
IR_VERSION = 8


class OnnxAbsent(MipforestError, ImportError):
    """The package onnx is not installed."""


def to_onnx(
    fitted: Predictor,
    statistics: NodeStatistics | None = None,
    *,
    encoding: Encoding | None = None,
    classes: npt.ArrayLike | None = None,
) -> Any:
    """Return an ONNX model that predicts as a tree or score card does.

    The input ``X`` is an (n, p) tensor of doubles: the features in original units, in the order of
    :attr:`~mipforest.trees.Predictor.feature_names`, one for each level of a column of texts. A column of numbers whose
    missing values splits send to a side is one of them, with NaN where a value is missing. Outputs:

    =================  ==========================================================================================
    ``prediction``     (n,) labels (texts, or whole numbers where ``classes`` are), or values as doubles; (n, T) of
                       several targets
    ``probabilities``  (n, K) probabilities of the classes, of a classifier that is not prescriptive
    ``leaf``           (n,) number of the leaf, of a tree that is not randomised
    ``total``          (n,) points, of a score card
    ``outcomes``       (n, m) outcomes under each treatment, of a prescriptive tree
    =================  ==========================================================================================

    Splits of one feature and rules of a card decide as here for every double. Scores of several features are sums
    whose order is up to the runtime: a sample within a rounding error of a hyperplane may go to its other side. NaN
    stays unnoticed unless ``encoding`` says what it counts as.

    Parameters
    ----------
    fitted
        The tree or card.
    statistics
        Training samples by node: they give the probabilities of a classifier that has none of its own. Without them
        a class is certain.
    encoding
        What the columns are: a missing number counts as what it is filled in with.
    classes
        (K,) labels in place of the names of the classes, in their order; a list of these of several targets.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(model, path)`` writes it. Its metadata have ``features`` and ``classes``, as JSON.

    Raises
    ------
    OnnxAbsent
        If the package onnx is not installed (extra ``onnx``).
    """
    inputs = inputs_of(fitted)
    graph = _Graph(len(inputs.names))
    graph.part(inputs)
    if encoding is not None:
        graph.fill(fill_ins(encoding, fitted.n_features))
    about = {"features": list(inputs.names), "classes": list(fitted.classes)}
    if isinstance(fitted, Tree) and fitted.targets:
        about["targets"] = list(fitted.targets)
        _output_targets(graph, fitted, _add_tree(graph, fitted), labels_by_target(fitted, classes))
        return graph.model(repr(fitted), about)
    labels = np.asarray(fitted.classes if classes is None else classes)
    if isinstance(fitted, ScoreCard):
        _add_card(graph, fitted, labels)
    elif isinstance(fitted, RandomizedTree):
        _add_randomized(graph, fitted, labels)
    elif isinstance(fitted, Tree):
        _output_prediction(graph, fitted, _add_tree(graph, fitted), statistics, labels)
    else:
        raise TypeError(f"{fitted!r} is neither a tree nor a score card")
    return graph.model(repr(fitted), about)


class _Routed(NamedTuple):
    """What a tree makes of the samples, by name: scaled features, scores, and the node and the place of their leaf."""

    scaled: str
    scores: str
    node: str
    position: str


def _add_tree(graph: _Graph, tree: Tree) -> _Routed:
    """Send the samples through a tree, and output their leaf."""
    scaled = scores = ""
    if tree.is_oblique or tree.logistic:
        scaled, scores = _scores(graph, tree)
    if tree.is_oblique:
        right = graph.op("GreaterOrEqual", scores, 0.0)
    else:
        cuts = cuts_of(tree)
        read = graph.op("Gather", graph.X, cuts.feature, axis=1)
        above = graph.op("GreaterOrEqual", read, cuts.cut)
        right = graph.op("Xor", above, ~cuts.upper_is_right)
    node = _walk(graph, tree, graph.op("Cast", right, to=graph.types.INT64))
    graph.output("leaf", graph.op("Squeeze", node, [1]), graph.types.INT64)
    position = graph.op("Squeeze", graph.op("Sub", node, [tree.topology.n_branches]), [1])
    return _Routed(scaled, scores, node, position)


def _output_targets(graph: _Graph, tree: Tree, routed: _Routed, labels: list[npt.NDArray[Any]]) -> None:
    """Output the numbers, or the labels, of several targets: whole numbers where the labels of all are."""
    values, kind = tree.leaf_value.astype(np.float64), graph.types.DOUBLE
    if labels:
        whole = all(of.dtype.kind in "iu" for of in labels)
        kind = graph.types.INT64 if whole else graph.types.STRING
        columns = [of[k] for of, k in zip(labels, tree.leaf_value.T.astype(np.int64), strict=True)]
        texts = [list(map(str, of.tolist())) for of in columns]
        values = np.column_stack(columns) if whole else np.array(texts, object).T
    # Of a table of texts onnxruntime gathers the first column alone: the table is one line.
    T = len(tree.targets)
    first = graph.op("Unsqueeze", graph.op("Mul", routed.position, [T]), [1])
    predicted = graph.op("Gather", values.ravel(), graph.op("Add", first, np.arange(T)))
    graph.output("prediction", predicted, kind, columns=T)


def _output_prediction(
    graph: _Graph, tree: Tree, routed: _Routed, statistics: NodeStatistics | None, labels: npt.NDArray[Any]
) -> None:
    scaled, scores, node, position = routed
    if tree.is_classifier:
        _output_labels(graph, labels, graph.op("Gather", tree.leaf_value, position))
    if tree.prescribes:
        graph.output(
            "outcomes",
            _linear(graph, tree, position, scaled, tree.outcomes, tree.outcome_w),
            columns=len(labels),
        )
    elif tree.logistic:
        # The score at the last branch node: (node - 1) // 2.
        last = graph.op("Div", graph.op("Sub", node, [1]), [2])
        _output_sigmoid(graph, graph.op("GatherElements", scores, last, axis=1))
    elif tree.is_classifier:
        shares = leaf_probabilities(tree, statistics)
        graph.output("probabilities", graph.op("Gather", shares, position, axis=0), columns=len(labels))
    else:
        values = tree.leaf_value.astype(np.float64)
        graph.output("prediction", _linear(graph, tree, position, scaled, values, tree.leaf_w))


def _scaled(graph: _Graph, tree: Tree) -> str:
    if tree.offset is None or tree.scale is None:
        return graph.X
    return graph.op("Div", graph.op("Sub", graph.X, tree.offset), tree.scale)


def _scores(graph: _Graph, tree: Tree) -> tuple[str, str]:
    """Add the scaled features and the (n, |B|) scores."""
    scaled = _scaled(graph, tree)
    products = graph.op("MatMul", scaled, np.ascontiguousarray(tree.w.T))
    return scaled, graph.op("Add", products, tree.b)


def _walk(graph: _Graph, tree: Tree, right: str) -> str:
    """Add the (n, 1) number of the leaf that each sample reaches, from (n, |B|) sides."""
    # The root, 0, for every sample.
    node = graph.op("Mul", graph.op("Slice", right, [0], [1], [1]), [0])
    for _ in range(tree.depth):
        side = graph.op("GatherElements", right, node, axis=1)
        left = graph.op("Add", graph.op("Add", node, node), [1])
        node = graph.op("Add", left, side)
    return node


def _linear(
    graph: _Graph, tree: Tree, leaf: str, scaled: str, constants: FloatArray | None, slopes: FloatArray | None
) -> str:
    """Add ``constants[leaf] + slopes[leaf] . scaled``; the leaves' last axis is that of the features."""
    assert constants is not None
    found = graph.op("Gather", constants, leaf, axis=0)
    if slopes is None:
        return found
    scaled = scaled or _scaled(graph, tree)
    if slopes.ndim == 3:
        scaled = graph.op("Unsqueeze", scaled, [1])
    products = graph.op("Mul", scaled, graph.op("Gather", slopes, leaf, axis=0))
    return graph.op("Add", found, graph.op("ReduceSum", products, [-1], keepdims=0))


def _add_randomized(graph: _Graph, tree: RandomizedTree, labels: npt.NDArray[Any]) -> None:
    """Add the mean over all leaves, by the probability of reaching each."""
    scaled, scores = _scores(graph, tree)
    steep = graph.op("Mul", scores, tree.gamma)
    right, left = _sigmoid(graph, steep), _sigmoid(graph, graph.op("Neg", steep))
    reached = ""
    for level in range(tree.depth):
        here = np.arange(2**level - 1, 2 ** (level + 1) - 1)
        sides = []
        for side in (left, right):
            some = graph.op("Gather", side, here, axis=1)
            some = graph.op("Mul", reached, some) if reached else some
            sides.append(graph.op("Unsqueeze", some, [2]))
        both = graph.op("Concat", *sides, axis=2)
        reached = graph.op("Reshape", both, [0, 2 ** (level + 1)])
    if tree.leaf_proba is not None:
        probabilities = graph.op("MatMul", reached, tree.leaf_proba)
        graph.output("probabilities", probabilities, columns=len(labels))
        _output_labels(graph, labels, graph.op("ArgMax", probabilities, axis=1, keepdims=0))
        return
    values: Any = tree.leaf_value.astype(np.float64)
    if tree.leaf_w is not None:
        slopes = np.ascontiguousarray(tree.leaf_w.T)
        values = graph.op("Add", graph.op("MatMul", scaled, slopes), values)
    means = graph.op("ReduceSum", graph.op("Mul", reached, values), [1], keepdims=0)
    graph.output("prediction", means)


def _add_card(graph: _Graph, card: ScoreCard, labels: npt.NDArray[Any]) -> None:
    # A card without rules has the total 0 for every sample: one rule of 0 points that no sample meets.
    feature = np.array([rule.feature for rule in card.rules] or [0])
    threshold = np.array([rule.threshold for rule in card.rules] or [np.inf])
    below = np.array([rule.below for rule in card.rules] or [False])
    points = (card.points if card.rules else np.zeros(1)).astype(np.float64)
    values = graph.op("Gather", graph.X, feature, axis=1)
    above = graph.op("GreaterOrEqual", values, threshold)
    holds = graph.op("Cast", graph.op("Xor", above, below), to=graph.types.DOUBLE)
    # Sums of whole numbers are exact in any order.
    total = graph.op("MatMul", holds, points[:, None])
    flat = graph.op("Squeeze", total, [1])
    graph.output("total", graph.op("Cast", flat, to=graph.types.INT64), graph.types.INT64)
    log_odds = graph.op("Add", total, card.intercept)
    _output_sigmoid(graph, log_odds)
    second = graph.op("GreaterOrEqual", graph.op("Squeeze", log_odds, [1]), 0.0)
    _output_labels(graph, labels, graph.op("Cast", second, to=graph.types.INT64))


def _sigmoid(graph: _Graph, x: str) -> str:
    """Add 1 / (1 + exp(-x)); the operator Sigmoid rounds small probabilities to 0 in some runtimes."""
    return graph.op("Div", 1.0, graph.op("Add", 1.0, graph.op("Exp", graph.op("Neg", x))))


def _output_sigmoid(graph: _Graph, log_odds: str) -> None:
    """Output both probabilities from (n, 1) log-odds; that of the predicted class is the larger one, also at 0."""
    second = _sigmoid(graph, log_odds)
    raised = graph.op("Max", second, np.nextafter(0.5, 1.0))
    positive = graph.op("GreaterOrEqual", log_odds, 0.0)
    second = graph.op("Where", positive, raised, second)
    first = _sigmoid(graph, graph.op("Neg", log_odds))
    graph.output("probabilities", graph.op("Concat", first, second, axis=1), columns=2)


def _output_labels(graph: _Graph, labels: npt.NDArray[Any], number: str) -> None:
    """Output the label of (n,) class numbers: whole numbers where all labels are, texts otherwise."""
    whole = labels.dtype.kind in "iu"
    names = labels.astype(np.int64) if whole else np.array([str(label) for label in labels.tolist()], object)
    graph.output(
        "prediction",
        graph.op("Gather", names, number),
        graph.types.INT64 if whole else graph.types.STRING,
    )


class _Graph:
    """Collects the operators, constants and outputs of a model."""

    def __init__(self, p: int) -> None:
        try:
            import onnx
        except ImportError as error:
            raise OnnxAbsent("the package onnx is not installed; pip install 'mipforest[onnx]'") from error
        self._onnx = onnx
        self.types = onnx.TensorProto
        self.X = "X"
        self._input = onnx.helper.make_tensor_value_info("X", self.types.DOUBLE, ["n", p])
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._outputs: list[Any] = []

    def _constant(self, values: npt.NDArray[Any]) -> str:
        """Add a constant; return its name."""
        name = f"c{len(self._constants)}"
        if values.dtype.kind == "O":
            texts = [text.encode() for text in values.tolist()]
            self._constants.append(
                self._onnx.helper.make_tensor(name, self.types.STRING, [len(texts)], texts)
            )
        else:
            values = (
                values
                if values.dtype.kind == "b"
                else values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
            )
            self._constants.append(
                self._onnx.numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name)
            )
        return name

    def op(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """Add an operator on values by name and on constants; return the name of its output."""
        names = [value if isinstance(value, str) else self._constant(np.asarray(value)) for value in inputs]
        name = f"v{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, names, [name], **attributes))
        return name

    def part(self, inputs: Inputs) -> None:
        """Make features of columns, where some column has two: one for either side of its missing values."""
        if not inputs.two_sided:
            return
        values = self.op("Gather", self.X, inputs.source, axis=1)
        known = self.op("Min", self.op("Max", values, inputs.least), inputs.most)
        absent = self.op("And", self.op("IsNaN", values), ~np.isnan(inputs.missing))
        self.X = self.op("Where", absent, np.nan_to_num(inputs.missing, posinf=np.inf, neginf=-np.inf), known)

    def fill(self, numbers: FloatArray) -> None:
        """Put numbers in place of NaN, where one is known."""
        known = np.isfinite(numbers)
        if known.any():
            absent = self.op("And", self.op("IsNaN", self.X), self._constant(known))
            self.X = self.op("Where", absent, self._constant(np.where(known, numbers, 0.0)), self.X)

    def output(self, name: str, value: str, kind: int | None = None, columns: int | None = None) -> None:
        """Give a value out under a name; doubles, (n,) or (n, columns)."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        shape = ["n"] if columns is None else ["n", columns]
        kind = self.types.DOUBLE if kind is None else kind
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, kind, shape))

    def model(self, says: str, about: dict[str, list[str]]) -> Any:
        """Return the checked model, the prediction its first output."""
        helper = self._onnx.helper
        outputs = sorted(self._outputs, key=lambda output: output.name != "prediction")
        graph = helper.make_graph(self._nodes, "tree", [self._input], outputs, self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="mipforest",
            doc_string=says,
        )
        helper.set_model_props(model, {name: json.dumps(texts) for name, texts in about.items()})
        self._onnx.checker.check_model(model)
        return model
