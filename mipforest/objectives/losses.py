r"""What an objective charges: at a branch node a loss of the scores :math:`w^\top x_i + b`, a norm of the weights w.

**Losses.** A loss states itself in a model by a slack :math:`\xi_i` per sample, which the objective minimises, gives
its value, and says from which margin on it vanishes (``flat_from``): then, once all scores lie beyond, moving ``b``
back to there changes nothing, which bounds ``b``. Losses are plug-ins, found through the
entry-point group ``mipforest.losses``.

**Norms.** A norm states itself in a model, gives its value, and bounds weights: a charge of at most c keeps
:math:`\|w\| \le r(c)` in the norm itself, hence :math:`|w^\top u| \le r(c) \|u\|_*` in its dual.

**Leaves** that predict a number have losses of their own (:mod:`mipforest.objectives.leaf_losses`).

**Log-loss**, :math:`f(v) = \log(1 + e^{-v})`, by tangents. f is convex, so every tangent lies below it, and so does
the largest of several (T. Sato, Y. Takano, R. Miyashiro, A. Yoshise, *Feature subset selection for logistic regression
via mixed integer optimization*, Computational Optimization and Applications 64 (2016)). The tangents at
:math:`\pm\infty` are the lines 0 and :math:`-v`; they always belong to the set, so that the area between f and the
underestimator is finite. Points are chosen greedily: each further tangent is the one that leaves the least area. The
published sets are these points to two digits:

.. math::

    V_0 = \{0, \pm\infty\}, \quad V_1 = V_0 \cup \{\pm 1.9\}, \quad V_2 = V_1 \cup \{\pm 0.89, \pm 3.55\}, \quad
    V_3 = V_2 \cup \{\pm 0.44, \pm 1.37, \pm 2.63, \pm 5.16\} .

**Squared hinge**, :math:`f(v) = \max(0, 1 - v)^2`, by K tangents at :math:`v = 1 - s_k`,
:math:`s_k = (2k - 1) / K`, with the line 0: at margins from -1 on the largest of them lies at most :math:`1 / K^2`
below f. Below -1 it goes on as a line, as the modified Huber loss does (T. Zhang, *Solving large scale linear
prediction problems using stochastic gradient descent algorithms*, ICML 2004).

**A step of the greedy rule.** Between two neighbouring tangents the underestimator has a corner, where they cross. A
new tangent cuts this corner off: the area gained is a triangle, with a side on the new tangent and a height that is the
rise of the new tangent above the corner. No integral is needed. As the triangle depends on its two neighbours only,
every corner has its own best cut, and the greedy rule takes the largest one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import ClassVar

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.errors import ParameterError
from mipforest.model import LinearExpr, Model, QuadraticExpr, VarArray, sum_squares
from mipforest.special import expit

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
    #: Whether no score of a sample lies within the gap below 0 at any node that charges it, as the loss jumps there.
    keeps_gap: ClassVar[bool] = False

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
        return m.nonnegative("xi", over, meaning="loss of a sample at a node or level")

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
    keeps_gap = True

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
        return m.binary("xi", over, meaning="loss of a sample at a node or level")

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
        positive, negative = (
            m.nonnegative("w_plus", over, meaning="positive parts of the weights"),
            m.nonnegative("w_minus", over, meaning="negative parts of the weights"),
        )
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


#: The published sets, without :math:`\pm\infty`.
POSITIVE_POINTS: dict[str, tuple[float, ...]] = {
    "V0": (),
    "V1": (1.9,),
    "V2": (0.89, 1.9, 3.55),
    "V3": (0.44, 0.89, 1.37, 1.9, 2.63, 3.55, 5.16),
}

#: Most tangents at finite points: each costs a row per sample and branch node.
MAX_POINTS = 63

#: Beyond this value f is below 1e-17: the interval in which a tangent point next to infinity is looked for.
_FAR = 40.0

#: Two cuts that gain equal areas up to this count as equal, as mirror images do; each is found as closely.
_EQUAL_AREAS = 1e-9


def log_loss(v: FloatArray) -> FloatArray:
    """Return ``log(1 + exp(-v))``, without overflow."""
    loss: FloatArray = np.logaddexp(0.0, -v)
    return loss


def tangent_points(tangents: str) -> FloatArray:
    """Return the (K,) finite tangent points, ascending, of a published set (``V0`` .. ``V3``) or of K greedy ones.

    Raises
    ------
    ParameterError
        If the text is neither.
    """
    if tangents in POSITIVE_POINTS:
        positive = np.array(POSITIVE_POINTS[tangents])
        return np.concatenate([-positive[::-1], [0.0], positive])
    if not tangents.isdecimal() or not 1 <= int(tangents) <= MAX_POINTS:
        raise ParameterError(
            f"parameter tangents is {tangents!r}; give {', '.join(POSITIVE_POINTS)}, or the number of finite "
            f"tangent points, 1 to {MAX_POINTS}"
        )
    return greedy_points(int(tangents))


def greedy_points(count: int) -> FloatArray:
    """Return the (count,) finite tangent points, ascending, by the greedy rule; the first one is 0.

    Points come in mirror pairs, first the positive one, so that an odd count gives a symmetric set.
    """
    return np.array(_greedy(count))


@cache
def _greedy(count: int) -> tuple[float, ...]:
    points, cuts = [-np.inf, np.inf], [_best_cut(-np.inf, np.inf)]
    for _ in range(count):
        areas = np.array([area for _, area in cuts])
        corner = int(np.flatnonzero(areas >= areas.max() - _EQUAL_AREAS)[-1])
        u, x, v = points[corner], cuts[corner][0], points[corner + 1]
        points.insert(corner + 1, x)
        cuts[corner : corner + 1] = [_best_cut(u, x), _best_cut(x, v)]
    return tuple(points[1:-1])


class LogisticLoss(PiecewiseLinearLoss):
    """Largest of the tangents of the log-loss at finite points and at both infinities.

    Parameters
    ----------
    points
        (K,) finite tangent points, ascending.
    """

    name = "logistic"
    log_odds = True

    def __init__(self, points: FloatArray) -> None:
        super().__init__(*_tangents(np.concatenate([[-np.inf], points])))

    @classmethod
    def build(cls, *, epsilon: float, tangents: str) -> LogisticLoss:  # noqa: ARG003
        return cls(tangent_points(tangents))


class SquaredHinge(PiecewiseLinearLoss):
    """Largest of 0 and tangents of ``max(0, 1 - v)^2``, evenly spaced over the margins from -1 to 1.

    Parameters
    ----------
    count
        Number of tangents.
    """

    name = "squared-hinge"

    def __init__(self, count: int) -> None:
        shortfall = (2.0 * np.arange(count) + 1.0) / count
        # The tangent at v = 1 - s is s^2 - 2 s (v - 1 + s).
        super().__init__(2 * shortfall - shortfall**2, -2 * shortfall)

    @classmethod
    def build(cls, *, epsilon: float, tangents: str) -> SquaredHinge:  # noqa: ARG003
        return cls(len(tangent_points(tangents)))


def largest_error(loss: PiecewiseLinearLoss) -> float:
    """Return how far at most a loss, the tangents at both infinities among its lines, lies below the log-loss.

    Between two corners their difference is convex: it is largest at one of the corners.
    """
    intercepts, slopes = np.append(loss.intercepts, 0.0), np.append(loss.slopes, 0.0)
    first, second = np.triu_indices(len(slopes), 1)
    corners = (intercepts[first] - intercepts[second]) / (slopes[second] - slopes[first])
    return float((log_loss(corners) - loss.of_margin(corners)).max())


def _tangents(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return intercepts and slopes of the tangents at points, infinite ones included."""
    slopes = -expit(-points)
    # The intercept f(v) - v f'(v) is an even function of v.
    size = np.abs(points)
    finite = np.isfinite(size)
    intercepts = np.zeros_like(points)
    intercepts[finite] = np.logaddexp(0.0, -size[finite]) + size[finite] * expit(-size[finite])
    return intercepts, slopes


def _crossing(u: float, v: float) -> float:
    """Return where the tangents at u < v cross."""
    (a, b), (slope_u, slope_v) = _tangents(np.array([u, v]))
    return float((a - b) / (slope_v - slope_u))


def _best_cut(u: float, v: float) -> tuple[float, float]:
    """Return the point between two neighbouring tangent points whose tangent gains the most area, and that area."""
    if not np.isfinite(u) and not np.isfinite(v):
        return 0.0, _area_gained(0.0, u, v)
    from scipy.optimize import minimize_scalar  # late: slow to import, and most runs do without

    found = minimize_scalar(
        lambda x: -_area_gained(x, u, v),
        bounds=(max(u, -_FAR), min(v, _FAR)),
        method="bounded",
        options={"xatol": _EQUAL_AREAS},
    )
    return float(found.x), -float(found.fun)


def _area_gained(x: float, u: float, v: float) -> float:
    """Return the area of the triangle that the tangent at x cuts off the corner of the tangents at u < x < v."""
    corner = _crossing(u, v)
    (at_x, at_u), (slope_x, slope_u) = _tangents(np.array([x, u]))
    rise = (at_x - at_u) + (slope_x - slope_u) * corner
    return 0.5 * float(rise) * (_crossing(x, v) - _crossing(u, x))
