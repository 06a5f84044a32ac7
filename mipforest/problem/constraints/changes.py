r"""Trees near a given one: a limit on what differs from it, such as last year's tree on this year's data.

Let the given tree have split :math:`s^0_t` at node t, or none, and :math:`s_t` be that of another tree. A node costs

.. math::

    c_t(s_t) = \begin{cases}
        0 & s_t = s^0_t \text{, with a threshold within the tolerance,} \\
        c^{\text{threshold}} & \text{if both split on the same column,} \\
        c^{\text{feature}} & \text{otherwise: another column, or a split in one of them alone,}
    \end{cases}

and a node that is a leaf of both trees costs :math:`c^{\text{label}}` where their labels differ, and a training sample
is in it. The distance of the trees is the sum over all nodes. It is additive, so that a search keeps it as what nodes
split on: each node has thresholds that cost alike (:class:`~mipforest.problem.restrictions.ChoiceRow`). Labels are
asked of the trees that are found. No weight is above that of the feature: a split between two leaves of one label is
never worth having, but where the given tree has it.

Bertsimas and Digalakis (Improving Stability in Decision Tree Models, 2023) trade accuracy for such a distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from mipforest.data import Dataset
from mipforest.data.columns import column_of_features
from mipforest.errors import DataError
from mipforest.formatting import number
from mipforest.heuristics.thresholds import Thresholds
from mipforest.problem.constraints import rows as helpers
from mipforest.problem.constraints.constraint import Built, Constraint, Holding, share
from mipforest.problem.restrictions import ChoiceRow, Restrictions
from mipforest.trees import Predictor, Topology, Tree
from mipforest.trees.topology import subtree


class Change(NamedTuple):
    """What differs at a node.

    Attributes
    ----------
    node
        Its number.
    words
        The difference, as a sentence without its full stop.
    cost
        What it costs.
    """

    node: int
    words: str
    cost: float


@dataclass(frozen=True)
class AtMostChanges(Constraint):
    """A limit on the distance of the tree from a given one.

    Attributes
    ----------
    most
        The limit.
    splits
        (|B|,) feature and threshold (original units) of each node of the given tree, ``None`` where it does not split.
    labels
        (2 |B| + 1,) label of each node that is a leaf of the given tree, ``None`` of all others. Empty where labels
        do not count.
    tolerance
        Share of the range of a feature in the training samples up to which thresholds are the same.
    weights
        Costs of another feature, of another threshold, and of another label; none is above the first.
    """

    most: float
    splits: tuple[tuple[str, float] | None, ...]
    labels: tuple[str | None, ...] = ()
    tolerance: float = 0.0
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)

    kind: ClassVar[str] = "at-most-changes"

    def __post_init__(self) -> None:
        try:
            splits = tuple(None if one is None else (str(one[0]), float(one[1])) for one in self.splits)
            most, (feature, threshold, label) = float(self.most), map(float, self.weights)
        except (TypeError, ValueError, IndexError):
            raise DataError(
                f"{self.kind}: a limit, splits (feature and threshold, or null) and three weights are asked for, not "
                f"{self.most!r:.40}, {self.splits!r:.60} and {self.weights!r:.60}"
            ) from None
        if not len(splits) or len(splits) & (len(splits) + 1):
            raise DataError(f"{self.kind}: {len(splits)} splits are those of no tree; give 1, 3, 7 or so")
        if self.labels and len(self.labels) != 2 * len(splits) + 1:
            raise DataError(f"{self.kind}: {len(self.labels)} labels for {2 * len(splits) + 1} nodes")
        if not most >= 0.0:
            raise DataError(f"{self.kind}: the limit is {self.most}; give a number of at least 0")
        if not (0.0 <= threshold <= feature and 0.0 <= label <= feature < np.inf):
            raise DataError(
                f"{self.kind}: the weights of feature, threshold and label are {feature:g}, {threshold:g}, {label:g}; "
                "none is below 0, or above that of the feature"
            )
        object.__setattr__(self, "splits", splits)
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "weights", (feature, threshold, label))
        object.__setattr__(self, "tolerance", share(self.kind, self.tolerance))

    @classmethod
    def of(
        cls,
        tree: Tree,
        most: float = np.inf,
        *,
        depth: int | None = None,
        tolerance: float = 0.0,
        weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
    ) -> Self:
        """Return the limit on the distance from a tree.

        Parameters
        ----------
        tree
            The tree; a split that sends all samples to one side is none.
        most, tolerance, weights
            As above.
        depth
            Depth of the trees that are compared with it; its own unless given.

        Raises
        ------
        DataError
            If it has splits on several features, or is deeper.
        """
        if tree.is_oblique:
            raise DataError(
                f"{cls.kind}: the tree has splits on several features, and distances are of one each"
            )
        n_own = 2 ** (tree.depth if depth is None else depth) - 1
        splits: list[tuple[str, float] | None] = [None] * n_own
        labels: list[str | None] = [None] * (2 * n_own + 1)
        weight, intercept = tree.original_units()
        for at, node in _reached(tree, 0, 0):
            if node < len(tree.w):
                if at >= n_own:
                    raise DataError(f"{cls.kind}: the tree splits node {at}, below the depth of {depth}")
                j = int(np.flatnonzero(tree.w[node])[0])
                splits[at] = tree.feature_names[j], float(-intercept[node] / weight[node, j])
            elif tree.is_classifier:
                labels[at] = str(tree.classes[int(tree.leaf_value[node - len(tree.w)])])
        return cls(most, tuple(splits), tuple(labels) if tree.is_classifier else (), tolerance, weights)

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """No option has a tree; see :meth:`of`."""
        raise DataError(f"{cls.kind}: {text!r} is no tree; 'mipforest update' reads the one of a run")

    @property
    def words(self) -> str:
        """The limit, and how many splits the given tree has."""
        given = sum(split is not None for split in self.splits)
        tolerance = f", thresholds within {100 * self.tolerance:g}%" if self.tolerance else ""
        return f"{self.most:g} from a tree of {given} splits{tolerance}"

    # ------------------------------------------------------------------ the definition

    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Sum up what its changes cost."""
        cost = sum(change.cost for change in self.changes(tree, data))
        return self.at_most(cost, self.most, min((one for one in self.weights if one > 0.0), default=np.inf))

    def changes(self, tree: Predictor, data: Dataset) -> list[Change]:
        """Return what differs from the given tree at each node, on training samples, from the root down."""
        if not isinstance(tree, Tree) or tree.is_oblique:
            raise DataError(f"{self.kind}: distances are of trees with one feature in each split")
        feature, threshold, label = self.weights
        scaled = tree.rescaled(data.encoding.offset, data.encoding.scale)
        column, names = column_of_features(data), data.features.labels
        found = []
        for t, given in enumerate(self._for_depth(tree.depth)):
            own = np.flatnonzero(scaled.w[t])
            if not len(own):
                if given is not None:
                    found.append(Change(t, f"node {t} no longer splits on {given[0]}", feature))
                continue
            j, at = int(own[0]), float(-scaled.b[t] / scaled.w[t, own[0]])
            shown = number(at * data.encoding.scale[j] + data.encoding.offset[j])
            if given is None:
                found.append(Change(t, f"node {t} splits on {names[j]} at {shown}", feature))
            elif given[0] not in names or column[names.index(given[0])] != column[j]:
                found.append(
                    Change(t, f"node {t} splits on {names[j]} at {shown} in place of {given[0]}", feature)
                )
            else:
                x, (first, last) = np.unique(data.X[:, j]), self._same(data, given)
                if given[0] != names[j] or not first <= int((x < at).sum()) <= last:
                    words = f"node {t} splits on {names[j]} at {shown} in place of {number(given[1])}"
                    found.append(Change(t, words, threshold))
        return [*found, *self._other_labels(tree, data, label)]

    def with_given_thresholds(self, tree: Tree, data: Dataset) -> Tree:
        """Return a tree with the thresholds of the given one at splits that part all training samples like these."""
        b, offset, scale = tree.b.copy(), tree.offset, tree.scale
        for t, given in enumerate(self._for_depth(tree.depth)):
            own = np.flatnonzero(tree.w[t])
            if given is None or not len(own) or data.features.labels[int(own[0])] != given[0]:
                continue
            j = int(own[0])
            x, weights, intercepts = np.unique(data.X_raw[:, j]), *tree.original_units()
            below = int((x < -intercepts[t] / weights[t, j]).sum())
            if 0 < below < len(x) and x[below - 1] < given[1] < x[below]:
                scaled = given[1] if offset is None or scale is None else (given[1] - offset[j]) / scale[j]
                b[t] = -tree.w[t, j] * scaled
        return replace(tree, b=b)

    def _other_labels(self, tree: Tree, data: Dataset, cost: float) -> Iterator[Change]:
        if cost == 0.0 or not any(self.labels):
            return
        reached = np.unique(tree.apply(data.X_raw)) - len(tree.w)
        for at, node in _leaves(tree):
            given = self.labels[at] if at < len(self.labels) else None
            label = str(tree.classes[int(tree.leaf_value[node])])
            if given not in (None, label) and node in reached:
                yield Change(at, f"leaf {at} predicts {label} in place of {given}", cost)

    def _for_depth(self, depth: int) -> tuple[tuple[str, float] | None, ...]:
        """Return the splits of the nodes of trees of a depth."""
        n = 2**depth - 1
        if any(split is not None for split in self.splits[n:]):
            raise DataError(
                f"{self.kind}: the given tree has splits below depth {depth}; compare it with trees of its depth"
            )
        return (*self.splits[:n], *[None] * (n - len(self.splits)))

    def _same(self, data: Dataset, given: tuple[str, float]) -> tuple[int, int]:
        """Return how many distinct values are below thresholds that are the same: from and to; from 1 to 0 for none."""
        j = data.features.labels.index(given[0])
        x = np.unique(data.X[:, j])
        at = (given[1] - data.encoding.offset[j]) / data.encoding.scale[j]
        reach = self.tolerance * float(x[-1] - x[0])
        first, last = int((x < at - reach).sum()), int((x < at + reach).sum())
        if self.tolerance == 0.0 and not 0 < first < len(x):
            return 1, 0
        return max(1, first), min(len(x) - 1, last)

    # ------------------------------------------------------------------ searches and models

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:
        """Charge each node for its threshold; labels are asked of trees."""
        data, splits = problem.data, self._for_depth(problem.topology.depth)
        column, names = column_of_features(data), data.features.labels
        feature, threshold, label = self.weights
        cost = np.full((len(splits), len(thresholds) + 1), feature)
        for t, given in enumerate(splits):
            if given is None:
                cost[t, -1] = 0.0
            elif given[0] in names:
                j = names.index(given[0])
                cost[t, :-1][column[thresholds.feature] == column[j]] = threshold
                first, last = self._same(data, given)
                cost[t, thresholds.first[j] + first - 1 : thresholds.first[j] + last] = 0.0
        limited = replace(own, choices=(*own.choices, ChoiceRow(cost, self.most)))
        if not (label > 0.0 and any(self.labels)):
            return limited
        numbers = {str(one): k for k, one in enumerate(data.classes)}
        unreached = np.full(problem.topology.n_leaves, -1)
        for v, one in enumerate(self.labels[: 2 * problem.topology.n_branches + 1]):
            if one in numbers:
                unreached[_last_leaf(v, problem.topology)] = numbers[one]
        return super().restrict(replace(limited, unreached=unreached), problem, thresholds)

    def rows(self, problem: Built) -> None:
        """Add the row on splits and labels, with a variable for each label that may differ."""
        data, splits = problem.data, self._for_depth(problem.topology.depth)
        said = problem.formulation.expressions(problem.model, problem.instance)
        uses, (feature, threshold, label) = said.features(), self.weights
        column, names = column_of_features(data), data.features.labels
        total = 0.0 * uses[0, 0]
        for t, given in enumerate(splits):
            if given is None:
                total = total + feature * uses[t].sum()
                continue
            total = total + feature
            if given[0] in names:
                j = names.index(given[0])
                same = said.splits_within(t, j, *self._same(data, given))
                on_column = uses[t, np.flatnonzero(column == column[j])].sum()
                total = total - (feature - threshold) * on_column - threshold * same
        if label > 0.0 and any(self.labels):
            total = total + label * self._label_rows(problem, uses)
        problem.model.add(problem.free_name("at_most_changes"), total <= self.most)

    def _label_rows(self, problem: Built, uses: Any) -> Any:
        """Add a variable for each leaf of the given tree, at least 1 where it is a leaf, and has another label."""
        topology, model, classes = problem.topology, problem.model, problem.data.classes
        n = topology.n_branches
        leaves = [v for v in range(min(len(self.labels), 2 * n + 1)) if self.labels[v] is not None]
        shown = problem.formulation.expressions(model, problem.instance).labels()
        label = np.zeros((len(leaves), topology.n_leaves, len(classes)))
        splits, n_above = np.zeros((len(leaves), n)), np.zeros(len(leaves))
        for k, v in enumerate(leaves):
            label[k, _last_leaf(v, topology)] = [str(one) != self.labels[v] for one in classes]
            at = v
            while at > 0:
                at = topology.parent(at)
                splits[k, at] = 1.0
            n_above[k] = splits[k].sum()
            splits[k, subtree(v, n)] = -1.0
        name = problem.free_name(helpers.OTHER_LABEL)
        differs = model.nonnegative(name, len(leaves), upper=1.0)
        other = label.reshape(len(leaves), -1) @ shown.reshape(-1)
        model.add(f"{name}{helpers.DIFFERS}", differs - other - splits @ uses.sum(axis=1) >= -n_above)
        return differs.sum()


def _last_leaf(v: int, topology: Topology) -> int:
    """Return the position of the leaf to which the samples of a node without a split go."""
    while v < topology.n_branches:
        v = topology.right(v)
    return v - topology.n_branches


def _reached(tree: Tree, node: int, at: int) -> Iterator[tuple[int, int]]:
    """Go through the nodes of a tree that split, and its leaves: where they are once others are left out, and are."""
    while node < len(tree.w) and tree.is_trivial(node):
        node = tree.topology.right(node) if tree.b[node] >= 0 else tree.topology.left(node)
    yield at, node
    if node < len(tree.w):
        yield from _reached(tree, 2 * node + 1, 2 * at + 1)
        yield from _reached(tree, 2 * node + 2, 2 * at + 2)


def _leaves(tree: Tree) -> Iterator[tuple[int, int]]:
    """Go through the nodes without a split below others that have one, and the leaf of the samples of each."""
    for at, node in _reached(tree, 0, 0):
        if node >= len(tree.w):
            yield at, node - len(tree.w)
