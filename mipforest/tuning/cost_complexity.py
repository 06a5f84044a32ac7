r"""Cost-complexity pruning: which cost of a split makes trees that do best on samples they were not fitted to.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 2.4, after Breiman,
Friedman, Olshen and Stone 1984. With :math:`R(t)` the loss of node t as a leaf and :math:`R(T_t)` that of its subtree,
both over the loss :math:`\hat L` of the best single leaf, and :math:`C(T_t)` the number of splits there (of features,
for hyperplanes), the splits below t are worth their cost up to

.. math::  \alpha = \frac{R(t) - R(T_t)}{C(T_t)}.

Making a leaf of the node where this is least, again and again, gives for every :math:`\alpha \in [0, 1]` the pruning of
least :math:`R + \alpha C`, and its validation loss as a step function of :math:`\alpha` (Algorithm 2.4). The curve of
one tree is unstable: that of a **batch** is the mean over many good trees (Algorithm 2.6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.errors import TuningError, did_you_mean
from mipforest.objectives.leaf_losses import PrescriptionLoss
from mipforest.problem.structure import TreeCharges
from mipforest.trees import Tree
from mipforest.trees.reachable import ReachableNode, reachable_tree

Midpoint = Literal["interval", "paper"]

#: Relative difference up to which two mean losses are the same: sums taken in another order differ by less.
SAME_LOSS = 1e-12

#: Duality gap at which the fit of a linear leaf ends, as a share of the leaf's own squared loss: far below any
#: difference between prunings that matters.
LASSO_GAP, LASSO_ROUNDS = 1e-7, 10_000


@dataclass(frozen=True, eq=False)
class NodeLosses:
    """What the nodes of a tree lose as leaves, with the prediction that is best for their training samples.

    Nodes stand in preorder: each before its children. Node 0 is the root.

    Attributes
    ----------
    end
        (m,) number behind the last node of each one's subtree, which is ``t`` to ``end[t] - 1``; ``t + 1`` of a leaf.
    complexity
        (m,) number of features in the split of each node: 1 for univariate splits, 0 for a leaf.
    training
        (m,) loss of the training samples that reach a node, and what its coefficients cost if leaves are linear.
    validation
        (m,) loss of the validation samples that reach it.
    unit
        Loss of the best single leaf on the training samples.
    """

    end: IntArray
    complexity: FloatArray
    training: FloatArray
    validation: FloatArray
    unit: float


@dataclass(frozen=True, eq=False)
class PruningSequence:
    """The prunings of a tree from all of it to its root alone, each best for an interval of costs.

    Attributes
    ----------
    alpha
        (s,) least cost at which each is best, from 0 on, ascending; a cost that occurs again belongs to the last one.
    validation
        (s,) validation loss of each.
    pruned
        (s - 1,) the node that is made a leaf next, by its place in preorder.
    """

    alpha: FloatArray
    validation: FloatArray
    pruned: IntArray

    def curve(self) -> Curve:
        """Return the validation loss by the cost of a split."""
        last = np.append(self.alpha[1:] > self.alpha[:-1], True)
        return Curve(self.alpha[last], self.validation[last])


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """Validation loss by the cost of a split: a step function on [0, 1], continuous from the right.

    Attributes
    ----------
    alpha
        (s,) where its steps begin, ascending from 0.
    loss
        (s,) its values.
    """

    alpha: FloatArray
    loss: FloatArray

    def __repr__(self) -> str:
        return f"Curve({len(self.alpha)} steps, least loss {self.loss.min():.4g})"

    def at(self, alpha: FloatArray) -> FloatArray:
        """Return its values at costs of any shape."""
        return self.loss[np.searchsorted(self.alpha, alpha, side="right") - 1]


# ---------------------------------------------------------------------- one tree


def node_losses(tree: Tree, charges: TreeCharges, train: Dataset, validation: Dataset) -> NodeLosses:
    """Fit every node of a tree as if it were a leaf, and measure it on both parts of the data.

    A node that no training sample reaches predicts what its parent does.

    Parameters
    ----------
    tree
        For scaled features; what its leaves predict does not matter.
    charges
        What trees are charged for the training samples; its cost of a split does not matter.
    train
        Training samples, scaled.
    validation
        Other samples; those in original units (``X_raw``) are scaled as the training samples were.
    """
    leaves = _leaves(charges, train, validation)
    samples = train.X, train.encoding.to_scaled(validation.X_raw)
    end: list[int] = []
    complexity: list[int] = []
    losses: list[tuple[float, float]] = []

    def visit(node: ReachableNode, reached: tuple[IntArray, IntArray], above: Predictor | None) -> None:
        here = len(end)
        prediction = leaves.fit(reached[0], above) if above is None or len(reached[0]) else above
        end.append(0)
        complexity.append(int(np.count_nonzero(tree.w[node.number])) if node.children else 0)
        losses.append((prediction.cost if len(reached[0]) else 0.0, prediction.loss(reached[1])))
        if node.left is not None and node.right is not None:
            w, b = tree.w[node.number], tree.b[node.number]
            goes_right = [X[rows] @ w + b >= 0 for X, rows in zip(samples, reached, strict=True)]
            for child, side in ((node.left, False), (node.right, True)):
                parts = [rows[right == side] for rows, right in zip(reached, goes_right, strict=True)]
                visit(child, (parts[0], parts[1]), prediction)
        end[here] = len(end)

    visit(reachable_tree(tree), (np.arange(train.n), np.arange(validation.n)), None)
    training, held_out = np.array(losses).T
    return NodeLosses(np.array(end), np.array(complexity, dtype=float), training, held_out, leaves.unit)


def pruning_sequence(nodes: NodeLosses) -> PruningSequence:
    """Prune a tree node by node, each time the one whose splits are worth least (Algorithm 2.4).

    Validation losses are sums over samples, as those of the nodes are.
    """
    training, validation = nodes.training.copy(), nodes.validation.copy()
    complexity = nodes.complexity.copy()
    m = len(nodes.end)
    for t in reversed(range(m)):  # subtrees from nodes: a node's own loss is kept in ``nodes``
        if complexity[t] > 0:
            right = nodes.end[t + 1]
            training[t] = training[t + 1] + training[right]
            validation[t] = validation[t + 1] + validation[right]
            complexity[t] += complexity[t + 1] + complexity[right]
    alphas, losses, pruned = [0.0], [validation[0]], []
    while complexity[0] > 0:
        splits = np.flatnonzero(complexity > 0)
        worth = (nodes.training[splits] - training[splits]) / (complexity[splits] * nodes.unit)
        least = int(np.argmin(worth))
        t = int(splits[least])
        change = (nodes.training[t] - training[t], nodes.validation[t] - validation[t], complexity[t])
        for above in np.flatnonzero((np.arange(m) <= t) & (nodes.end > t)):
            training[above] += change[0]
            validation[above] += change[1]
            complexity[above] -= change[2]
        training[t], validation[t] = nodes.training[t], nodes.validation[t]  # not by differences, which round
        complexity[t : nodes.end[t]] = 0.0
        alphas.append(max(float(worth[least]), alphas[-1]))
        losses.append(validation[0])
        pruned.append(t)
    return PruningSequence(np.array(alphas), np.array(losses), np.array(pruned, dtype=np.int64))


# ---------------------------------------------------------------------- many trees


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """Return the mean of curves, with a step wherever one of them has one."""
    alpha = np.unique(np.concatenate([curve.alpha for curve in curves]))
    return Curve(alpha, np.mean([curve.at(alpha) for curve in curves], axis=0))


class Minimum(NamedTuple):
    """The least value of a curve, and the cost of a split that stands for where it is attained."""

    loss: float
    alpha: float


def minimum(curve: Curve, midpoint: Midpoint = "interval") -> Minimum:
    """Return where a curve is least.

    Parameters
    ----------
    curve
        A step function on [0, 1].
    midpoint
        ``"interval"``: the middle of the longest interval with the least value. ``"paper"``: the middle between the
        first and the last cost with the least value (Algorithm 2.6), where the value may be a greater one if there
        are several intervals.

    Raises
    ------
    TuningError
        If there is no such rule.
    """
    check_midpoint(midpoint)
    ends = np.append(curve.alpha[1:], max(1.0, curve.alpha[-1]))
    least = float(curve.loss.min())
    attained = curve.loss <= least + SAME_LOSS * abs(least)
    first = np.flatnonzero(attained & ~np.append(False, attained[:-1]))
    last = np.flatnonzero(attained & ~np.append(attained[1:], False))
    begins, ends = curve.alpha[first], ends[last]
    if midpoint == "paper":
        begins, ends = begins[:1], ends[-1:]
    longest = int(np.argmax(ends - begins))
    return Minimum(least, float((begins[longest] + ends[longest]) / 2))


def check_midpoint(midpoint: str) -> None:
    """Refuse a rule that is unknown.

    Raises
    ------
    TuningError
        Naming the rules.
    """
    rules = get_args(Midpoint)
    if midpoint not in rules:
        raise TuningError(
            f"no midpoint is called {midpoint!r}{did_you_mean(midpoint, rules)}; choose from: {', '.join(rules)}"
        )


# ---------------------------------------------------------------------- what leaves predict


class Predictor(NamedTuple):
    """A leaf's prediction: what it costs on its training samples, and the loss of some validation samples under it.

    ``lines`` (m, p + 1) are coefficients and intercepts of what a prescription estimates under each treatment.
    """

    cost: float
    loss: Callable[[IntArray], float]
    lines: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class _Leaves:
    """How the best leaf for some training samples (by number) below a node is found, and the loss of the best one."""

    fit: Callable[[IntArray, Predictor | None], Predictor]
    unit: float


def _leaves(charges: TreeCharges, train: Dataset, validation: Dataset) -> _Leaves:
    if isinstance(charges.loss, PrescriptionLoss):
        return _treatment_leaves(charges, charges.loss, train, validation)
    return _predicting_leaves(charges, train, validation)


def _predicting_leaves(charges: TreeCharges, train: Dataset, validation: Dataset) -> _Leaves:
    """Leaves that predict a class or a number."""
    loss = charges.loss
    y = np.asarray(charges.y, dtype=float)  # in the units of the charges
    per_unit = np.ptp(y) / np.ptp(train.y)
    others_y = y.min() + per_unit * (validation.y - train.y.min())
    X, others_X = train.X, train.encoding.to_scaled(validation.X_raw)
    in_target_units = per_unit ** float(-loss.degree)
    price = charges.coefficient_cost

    def fit(rows: IntArray, above: Predictor | None) -> Predictor:
        del above
        target, weight = y[rows], train.weights[rows]
        constant = loss.best_constant(target, weight)
        cost, beta = loss.total(constant, target, weight), np.zeros(train.p)
        if price is not None:
            beta = _lasso(X[rows], target, weight, price)
            intercept = loss.best_constant(target - X[rows] @ beta, weight)
            linear = loss.total(X[rows] @ beta + intercept, target, weight) + price * float(
                np.abs(beta).sum()
            )
            if linear < cost:
                cost, constant = linear, intercept
            else:
                beta = np.zeros(train.p)

        def held_out(others: IntArray) -> float:
            predicted = others_X[others] @ beta + constant
            return float(
                in_target_units * loss.total(predicted, others_y[others], validation.weights[others])
            )

        return Predictor(cost, held_out)

    return _Leaves(fit, loss.baseline(y, train.weights))


def _treatment_leaves(
    charges: TreeCharges, loss: PrescriptionLoss, train: Dataset, validation: Dataset
) -> _Leaves:
    """Leaves that prescribe; a treatment that no sample of a leaf had is estimated as at the node above."""
    assert validation.treatments is not None
    y, given, m = np.asarray(charges.y, dtype=float), loss.treatment, len(train.classes)
    low, high = int(np.argmin(train.y)), int(np.argmax(train.y))
    per_unit = (y[high] - y[low]) / (train.y[high] - train.y[low])  # below 0 where higher outcomes are better
    others_y, others_given = y[low] + per_unit * (validation.y - train.y[low]), validation.treatments
    X, others_X = train.X, train.encoding.to_scaled(validation.X_raw)
    price = charges.coefficient_cost

    def fit(rows: IntArray, above: Predictor | None) -> Predictor:
        lines = np.zeros((m, train.p + 1))
        lines[:, -1] = y.mean()
        if above is not None and above.lines is not None:
            lines = above.lines.copy()
        errors = 0.0
        for t in np.unique(given[rows]):
            own = rows[given[rows] == t]
            lines[t] = 0.0
            if price is not None:
                lines[t, :-1] = _lasso(X[own], y[own], np.ones(len(own)), price)
                errors += price * float(np.abs(lines[t]).sum())
            rest = y[own] - X[own] @ lines[t, :-1]
            lines[t, -1] = rest.mean()
            errors += float(((rest - rest.mean()) ** 2).sum())
        enough = np.bincount(given[rows], minlength=m) >= loss.n_treatment
        outcome = lines[:, :-1] @ X[rows].mean(axis=0) + lines[:, -1]
        outcome[~enough] = np.inf
        prescribed = int(outcome.argmin())

        def held_out(others: IntArray) -> float:
            known, had = others_y[others], others_given[others]
            estimates = others_X[others] @ lines[:, :-1].T + lines[:, -1]
            under = np.where(had == prescribed, known, estimates[:, prescribed])
            residuals = known - estimates[np.arange(len(others)), had]
            error = float(residuals @ residuals)
            return loss.mu * float(under.sum()) + (1 - loss.mu) * error + charges.offset * len(others)

        best = loss.mu * len(rows) * float(outcome.min()) if enough.any() else nothing
        return Predictor(best + (1 - loss.mu) * errors, held_out, lines)

    # A search may end with a leaf that may prescribe nothing; it goes first, as no other tree is charged as much.
    nothing = loss.mu * len(y) * float(y.max()) + len(y) * float(np.ptp(y) ** 2) + float(np.ptp(y))
    spread = sum(float(((y[given == t] - y[given == t].mean()) ** 2).sum()) for t in np.unique(given))
    return _Leaves(fit, spread or 1.0)


def _lasso(X: FloatArray, y: FloatArray, weight: FloatArray, price: float) -> FloatArray:
    """Return the coefficients of least weighted squared loss and ``price`` times the sum of their sizes."""
    from sklearn.linear_model import Lasso  # takes seconds; only linear leaves need it

    varies = np.ptp(X, axis=0) > 0
    beta = np.zeros(X.shape[1])
    if varies.any():
        learner = Lasso(price / (2 * weight.sum()), tol=LASSO_GAP, max_iter=LASSO_ROUNDS)
        beta[varies] = learner.fit(X[:, varies], y, sample_weight=weight).coef_
    return beta


def curves_of(
    trees: Sequence[Tree], charges: TreeCharges, train: Dataset, validation: Dataset
) -> Iterator[Curve]:
    """Return the curve of each tree, its loss per validation sample (per unit of weight)."""
    total = float(validation.weights.sum())
    for tree in trees:
        curve = pruning_sequence(node_losses(tree, charges, train, validation)).curve()
        yield Curve(curve.alpha, curve.loss / total)
