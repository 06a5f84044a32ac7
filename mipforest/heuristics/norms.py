r"""Norms that the objective of a tree of linear classifiers charges for the weights of a branch node.

A norm states itself in a model, gives its value, and bounds weights: a charge of at most c keeps
:math:`\|w\| \le r(c)` in the norm itself, hence :math:`|w^\top u| \le r(c) \|u\|_*` in its dual.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import LinearExpr, Model, QuadraticExpr, VarArray, sum_squares


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
        """Charge for weights."""

    @abstractmethod
    def of_parts(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Charge for nonnegative parts (2p,), whose difference is w, as a smooth function: value and gradient."""

    def encode(self, w: FloatArray) -> dict[str, FloatArray]:  # noqa: ARG002 - most norms need no blocks
        """Values of the blocks that :meth:`declare` makes."""
        return {}

    @abstractmethod
    def radius(self, charge: FloatArray) -> FloatArray:
        """Largest norm of weights that are charged at most this; infinite where nothing bounds them."""

    @abstractmethod
    def dual(self, X: FloatArray) -> FloatArray:
        """(n,) dual norm of each row of X."""

    def __repr__(self) -> str:
        return self.name


class NoNorm(Norm):
    """No charge."""

    name = "none"
    dual_distance = "chebyshev"

    def declare(self, m: Model, w: VarArray) -> float:  # noqa: ARG002
        """Charge nothing."""
        return 0.0

    def value(self, w: FloatArray) -> float:  # noqa: ARG002
        """Zero."""
        return 0.0

    def of_parts(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Zero, with slope zero."""
        return 0.0, np.zeros_like(parts)

    def radius(self, charge: FloatArray) -> FloatArray:
        """Infinite: nothing bounds the weights."""
        return np.full_like(charge, np.inf)

    def dual(self, X: FloatArray) -> FloatArray:
        """(n,) largest absolute entry of each row; any norm would do."""
        return L1.dual(X)


class L1Norm(Norm):
    """``sum_j |w_j|``, as the sum of the positive and the negative part of w; its dual is the largest entry."""

    name = "l1"
    dual_distance = "chebyshev"

    def declare(self, m: Model, w: VarArray) -> LinearExpr:
        """Write ``w = w_plus - w_minus`` and charge the sum of both parts."""
        over = tuple(labels or length for labels, length in zip(w.labels, w.shape, strict=True))
        positive, negative = m.nonnegative("w_plus", over), m.nonnegative("w_minus", over)
        m.add("parts", w == positive - negative, over=over)
        charge: LinearExpr = positive.sum() + negative.sum()
        return charge

    def value(self, w: FloatArray) -> float:
        """Sum of the absolute weights."""
        return float(np.abs(w).sum())

    def of_parts(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Sum of the parts: that of the absolute weights where one of each two is 0, else more."""
        return float(parts.sum()), np.ones_like(parts)

    def encode(self, w: FloatArray) -> dict[str, FloatArray]:
        """Positive and negative parts."""
        return {"w_plus": np.maximum(w, 0.0), "w_minus": np.maximum(-w, 0.0)}

    def radius(self, charge: FloatArray) -> FloatArray:
        """Return the charge itself."""
        return charge

    def dual(self, X: FloatArray) -> FloatArray:
        """(n,) largest absolute entry of each row."""
        largest: FloatArray = np.abs(X).max(axis=1)
        return largest


class HalfSquaredL2Norm(Norm):
    """``1/2 sum_j w_j^2``; the Euclidean norm is its own dual."""

    name = "l2"
    dual_distance = "euclidean"

    def declare(self, m: Model, w: VarArray) -> QuadraticExpr:  # noqa: ARG002
        """Write half the sum of squares."""
        charge: QuadraticExpr = 0.5 * sum_squares(w)
        return charge

    def value(self, w: FloatArray) -> float:
        """Half the sum of squares."""
        return 0.5 * float(np.vdot(w, w))

    def of_parts(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Half the sum of squares of the difference."""
        p = len(parts) // 2
        w = parts[:p] - parts[p:]
        return self.value(w), np.concatenate([w, -w])

    def radius(self, charge: FloatArray) -> FloatArray:
        """Square root of twice the charge."""
        radius: FloatArray = np.sqrt(2 * charge)
        return radius

    def dual(self, X: FloatArray) -> FloatArray:
        """(n,) length of each row."""
        length: FloatArray = np.linalg.norm(X, axis=1)
        return length


NO_NORM, L1, HALF_SQUARED_L2 = NoNorm(), L1Norm(), HalfSquaredL2Norm()

#: All of them, by the value of the parameter that chooses one.
NORMS: dict[str, Norm] = {norm.name: norm for norm in (NO_NORM, L1, HALF_SQUARED_L2)}
