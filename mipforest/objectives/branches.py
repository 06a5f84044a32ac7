r"""What an objective charges at a branch node: a loss of the scores :math:`w^\top x_i + b`, a norm of the weights w.

**Losses.** A loss states itself in a model by a slack :math:`\xi_i` per sample, which the objective minimises, gives
its value, and says from which margin on it vanishes (``flat_from``): then, once all scores lie beyond, moving ``b``
back to there changes nothing, which bounds ``b``. Losses are plug-ins: see :mod:`mipforest.objectives.branches`.

**Norms.** A norm states itself in a model, gives its value, and bounds weights: a charge of at most c keeps
:math:`\|w\| \le r(c)` in the norm itself, hence :math:`|w^\top u| \le r(c) \|u\|_*` in its dual.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.model import LinearExpr, Model, QuadraticExpr, VarArray, sum_squares

#: A big-M: one number, or one per sample and node.
BigM = float | FloatArray


# ------------------------------------------------------------------ losses


class BranchLoss(ABC):
    """What an objective charges for the scores of samples with labels -1 and +1.

    The value is never negative, and 0 from the margin :attr:`flat_from` on. For a tree's scores, the least slacks that
    the rows of :meth:`declare` allow are :meth:`values`: "verified" rests on this.
    """

    #: Name in the registry and on the command line.
    name: ClassVar[str]
    #: Whether scores are log-odds: predictions are then probabilities, the last level may be refitted by logistic
    #: regressions, and results say how far the loss lies below the log-loss.
    log_odds: ClassVar[bool] = False

    @classmethod
    def build(cls, *, epsilon: float, tangents: str) -> BranchLoss:  # noqa: ARG003
        """Return the loss with a formulation's settings.

        Parameters
        ----------
        epsilon
            Gap that stands for a strict inequality.
        tangents
            Tangent points, for a loss that is approximated by tangents.

        Raises
        ------
        ParameterError
            If the loss cannot be had with these settings.
        """
        return cls()

    @property
    @abstractmethod
    def flat_from(self) -> float:
        """Smallest margin from which on the loss is 0: ``score >= flat_from`` for +1, ``<= -flat_from`` for -1.

        At least the formulation's epsilon, as the proofs of bounds want.
        """

    @property
    @abstractmethod
    def convex(self) -> PiecewiseLinearLoss:
        """The loss itself where it is convex and piecewise linear: problems of single nodes are then solved exactly.

        Else a stand-in that is: it proposes which samples a split sends where.
        """

    @abstractmethod
    def values(self, scores: FloatArray, sign: FloatArray) -> FloatArray:
        """Return the loss of each sample; ``scores`` and ``sign`` broadcast."""

    @abstractmethod
    def slack(self, m: Model, over: tuple[object, ...]) -> VarArray:
        """Make the block ``xi`` of slacks."""

    @abstractmethod
    def declare(
        self, m: Model, xi: LinearExpr | VarArray, score: LinearExpr, sign: FloatArray,
        away: LinearExpr, M: tuple[BigM, ...], over: tuple[object, ...],
    ) -> None:  # fmt: skip
        """Write the rows that keep slacks at the loss of the scores.

        Parameters
        ----------
        m
            The model.
        xi, score, away
            (n, nodes) slacks, scores, and 1 where a sample is elsewhere (else 0).
        sign
            (n, 1) labels.
        M
            What :meth:`big_ms` returns, or constants: one big-M per row of a sample and node.
        over
            Index sets that label the rows: samples and nodes.
        """

    @abstractmethod
    def big_ms(self, score: FloatArray) -> tuple[BigM, ...]:
        """Return the slack that each row of a sample elsewhere needs, from bounds (n, nodes) on the size of scores."""

    def predicted_right(self, xi: FloatArray) -> BoolArray | None:
        """Return which samples the slacks of a solution count as predicted right, where the loss jumps.

        There a solver's tolerance must not decide a side. ``None`` for a loss that does not jump.
        """
        return None


class PiecewiseLinearLoss(BranchLoss):
    r"""The largest of 0 and some falling lines of the margin ``v = y (w.x + b)``: ``max(0, a_k + d_k v)``.

    Parameters
    ----------
    intercepts, slopes
        (K,) lines; every slope is below 0.
    row
        Name of the rows; with several lines the number of the line is added.
    """

    def __init__(self, intercepts: FloatArray, slopes: FloatArray, *, row: str = "loss") -> None:
        self.intercepts, self.slopes, self.row = intercepts, slopes, row

    @property
    def flat_from(self) -> float:
        """The largest zero of the lines."""
        return float((-self.intercepts / self.slopes).max())

    @property
    def convex(self) -> PiecewiseLinearLoss:
        """Itself."""
        return self

    def of_margin(self, v: FloatArray) -> FloatArray:
        """Return the loss at margins."""
        total = np.zeros(np.shape(v))
        for intercept, slope in zip(self.intercepts, self.slopes, strict=True):
            total = np.maximum(total, intercept + slope * v)
        return total

    def kinks(self) -> FloatArray:
        """Return (K, 2) kinks ``v_k`` and changes of slope ``c_k``; the loss is the sum of ``c_k max(0, v_k - v)``."""
        intercepts, slopes, kinks = np.append(0.0, self.intercepts), np.append(0.0, self.slopes), []
        line = 0
        while (steeper := slopes < slopes[line]).any():
            crossings = (intercepts - intercepts[line]) / np.where(steeper, slopes[line] - slopes, np.inf)
            next_line = int(np.where(steeper, crossings, -np.inf).argmax())
            kinks.append((crossings[next_line], slopes[line] - slopes[next_line]))
            line = next_line
        return np.array(kinks)

    def values(self, scores: FloatArray, sign: FloatArray) -> FloatArray:
        return self.of_margin(sign * scores)

    def slack(self, m: Model, over: tuple[object, ...]) -> VarArray:
        return m.nonnegative("xi", over)

    def declare(
        self, m: Model, xi: LinearExpr | VarArray, score: LinearExpr, sign: FloatArray,
        away: LinearExpr, M: tuple[BigM, ...], over: tuple[object, ...],
    ) -> None:  # fmt: skip
        lines = zip(self.intercepts, self.slopes, M, strict=True)
        for k, (intercept, slope, big_m) in enumerate(lines):
            name = self.row if len(self.slopes) == 1 else f"{self.row}_{k}"
            m.add(
                name, -slope * (sign * score) >= intercept - xi - big_m * away, over=over
            )  # Aldinucci (3.15)

    def big_ms(self, score: FloatArray) -> tuple[BigM, ...]:
        return tuple(a - slope * score for a, slope in zip(self.intercepts, self.slopes, strict=True))


class Hinge(PiecewiseLinearLoss):
    """``max(0, 1 - v)``."""

    name = "hinge"

    def __init__(self) -> None:
        super().__init__(np.array([1.0]), np.array([-1.0]), row="margin")


HINGE = Hinge()


class Misclassification(BranchLoss):
    """1 for a sample that the sign of its score does not give its label.

    Scores of samples predicted -1 must be at most ``-epsilon``, right or wrong, as a score of 0 predicts +1: no score
    lies between. The least number of errors of a node is itself a hard problem; the hinge stands in for it where node
    problems are solved.

    Parameters
    ----------
    epsilon
        Gap that stands for the strict inequality.
    """

    name = "misclassification"

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    @classmethod
    def build(cls, *, epsilon: float, tangents: str) -> Misclassification:  # noqa: ARG003
        return cls(epsilon)

    @property
    def flat_from(self) -> float:
        """Epsilon: it satisfies both signs."""
        return self.epsilon

    @property
    def convex(self) -> PiecewiseLinearLoss:
        """The hinge, as a stand-in."""
        return HINGE

    def values(self, scores: FloatArray, sign: FloatArray) -> FloatArray:
        wrong: FloatArray = ((scores >= 0) != (sign > 0)).astype(float)
        return wrong

    def slack(self, m: Model, over: tuple[object, ...]) -> VarArray:
        return m.binary("xi", over)

    def declare(
        self, m: Model, xi: LinearExpr | VarArray, score: LinearExpr, sign: FloatArray,
        away: LinearExpr, M: tuple[BigM, ...], over: tuple[object, ...],
    ) -> None:  # fmt: skip
        right, wrong = np.where(sign < 0, self.epsilon, 0.0), np.where(sign > 0, self.epsilon, 0.0)
        m.add("predict", sign * score >= right - M[0] * (xi + away), over=over)  # Aldinucci (3.9)
        m.add("mispredict", sign * score <= -wrong + M[0] * (1 - xi + away), over=over)  # Aldinucci (3.9)

    def big_ms(self, score: FloatArray) -> tuple[BigM, ...]:
        return (score + self.epsilon,)

    def predicted_right(self, xi: FloatArray) -> BoolArray:
        right: BoolArray = xi < 0.5
        return right


# ------------------------------------------------------------------ norms


class Norm(ABC):
    """What an objective charges for weights ``w`` (nodes, p), or (p,) of one node."""

    #: Name of the parameter value that chooses it.
    name: ClassVar[str]
    #: scipy's name of the distance of the dual norm.
    dual_distance: ClassVar[str]

    @abstractmethod
    def declare(self, m: Model, w: VarArray) -> LinearExpr | QuadraticExpr | float:
        """Write the charge for all nodes together, with the blocks and rows it needs."""

    @abstractmethod
    def value(self, w: FloatArray) -> float:
        """Return the charge for weights."""

    @abstractmethod
    def of_parts(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Return the charge for nonnegative parts (2p,), whose difference is w, and its gradient: it is smooth."""

    def encode(self, w: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the blocks that :meth:`declare` makes."""
        return {}

    @abstractmethod
    def radius(self, charge: FloatArray) -> FloatArray:
        """Return the largest norm of weights that are charged at most this; infinite where nothing bounds them."""

    @abstractmethod
    def dual(self, X: FloatArray) -> FloatArray:
        """Return the (n,) dual norms of the rows of X."""

    def __repr__(self) -> str:
        return self.name


class NoNorm(Norm):
    """No charge."""

    name = "none"
    dual_distance = "chebyshev"

    def declare(self, m: Model, w: VarArray) -> float:
        return 0.0

    def value(self, w: FloatArray) -> float:
        return 0.0

    def of_parts(self, parts: FloatArray) -> tuple[float, FloatArray]:
        return 0.0, np.zeros_like(parts)

    def radius(self, charge: FloatArray) -> FloatArray:
        return np.full_like(charge, np.inf)

    def dual(self, X: FloatArray) -> FloatArray:
        return L1.dual(X)


class L1Norm(Norm):
    """``sum_j |w_j|``, as the sum of the positive and the negative part of w; its dual is the largest entry."""

    name = "l1"
    dual_distance = "chebyshev"

    def declare(self, m: Model, w: VarArray) -> LinearExpr:
        over = tuple(labels or length for labels, length in zip(w.labels, w.shape, strict=True))
        positive, negative = m.nonnegative("w_plus", over), m.nonnegative("w_minus", over)
        m.add("parts", w == positive - negative, over=over)  # Aldinucci (3.16)
        charge: LinearExpr = positive.sum() + negative.sum()
        return charge

    def value(self, w: FloatArray) -> float:
        return float(np.abs(w).sum())

    def of_parts(self, parts: FloatArray) -> tuple[float, FloatArray]:
        return float(parts.sum()), np.ones_like(parts)

    def encode(self, w: FloatArray) -> dict[str, FloatArray]:
        return {"w_plus": np.maximum(w, 0.0), "w_minus": np.maximum(-w, 0.0)}

    def radius(self, charge: FloatArray) -> FloatArray:
        return charge

    def dual(self, X: FloatArray) -> FloatArray:
        largest: FloatArray = np.abs(X).max(axis=1)
        return largest


class HalfSquaredL2Norm(Norm):
    """``1/2 sum_j w_j^2``; the Euclidean norm is its own dual."""

    name = "l2"
    dual_distance = "euclidean"

    def declare(self, m: Model, w: VarArray) -> QuadraticExpr:
        charge: QuadraticExpr = 0.5 * sum_squares(w)
        return charge

    def value(self, w: FloatArray) -> float:
        return 0.5 * float(np.vdot(w, w))

    def of_parts(self, parts: FloatArray) -> tuple[float, FloatArray]:
        p = len(parts) // 2
        w = parts[:p] - parts[p:]
        return self.value(w), np.concatenate([w, -w])

    def radius(self, charge: FloatArray) -> FloatArray:
        radius: FloatArray = np.sqrt(2 * charge)
        return radius

    def dual(self, X: FloatArray) -> FloatArray:
        length: FloatArray = np.linalg.norm(X, axis=1)
        return length


NO_NORM, L1, HALF_SQUARED_L2 = NoNorm(), L1Norm(), HalfSquaredL2Norm()

#: All of them, by the value of the parameter that chooses one.
NORMS: dict[str, Norm] = {norm.name: norm for norm in (NO_NORM, L1, HALF_SQUARED_L2)}
