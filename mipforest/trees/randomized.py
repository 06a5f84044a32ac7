"""A tree whose splits are random: every sample reaches every leaf with some probability.

A functional tree is one that looks at curves, through means over a few intervals of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.special import expit
from mipforest.trees.tree import Tree

#: How far the class probabilities of a leaf may miss the sum 1: what solvers and files leave of it.
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class RandomizedTree(Tree):
    """A complete binary tree whose branch nodes send samples to both sides, with probabilities.

    With the score ``s_t = w_t . ((x - offset) / scale) + b_t``, branch node t sends a sample right with the
    probability ``1 / (1 + exp(-gamma s_t))``, so that :class:`~mipforest.trees.tree.Tree` is the limit for large
    gamma. A prediction is the mean over the leaves, by the probability of reaching each: of the classes'
    probabilities there, or of values.

    In the papers' symbols (Blanquero, Carrizosa, Molero-Rio, Romero Morales 2020), with p features, ``a_t = -p w_t``
    and ``mu_t = b_t``: there a sample goes left with the probability ``F(a_t . x / p - mu_t)``.

    Parameters
    ----------
    depth, w, b, leaf_value, classes, features, offset, scale, levels, leaf_w
        As for :class:`~mipforest.trees.tree.Tree`; of a classifier ``leaf_value`` is the most probable class of each
        leaf.
    gamma
        Steepness of the probabilities, above 0.
    leaf_proba
        (|L|, K) probabilities of the classes in each leaf, of a classifier; ``None`` for certainty of ``leaf_value``.

    Raises
    ------
    ValueError
        As for :class:`~mipforest.trees.tree.Tree`; if gamma is not above 0, or a row of ``leaf_proba`` is no
        distribution.
    """

    gamma: float = 512.0
    leaf_proba: FloatArray | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.gamma) and self.gamma > 0):
            raise ValueError(f"gamma must be a finite number above 0, got {self.gamma}")
        object.__setattr__(self, "gamma", float(self.gamma))
        if self.logistic:
            raise ValueError("a randomised tree has probabilities of its own; leave logistic out")
        if not self.is_classifier:
            if self.leaf_proba is not None:
                raise ValueError("leaf_proba are probabilities of classes, and the tree has no classes")
            return
        given = self.leaf_proba
        certain = np.eye(len(self.classes))[self.leaf_value.astype(np.int64)]
        self._store("leaf_proba", certain if given is None else given, certain.shape)
        assert self.leaf_proba is not None
        sums = self.leaf_proba.sum(axis=1)
        if (self.leaf_proba < 0).any() or (np.abs(sums - 1) > SUM_TOLERANCE).any():
            worst = int(np.argmax(np.abs(sums - 1)))
            raise ValueError(
                f"every row of leaf_proba must hold probabilities that sum to 1, but that of leaf {worst} has the sum "
                f"{sums[worst]:.9g} and the smallest entry is {self.leaf_proba.min():.3g}"
            )

    def __repr__(self) -> str:
        kind = f"{len(self.classes)} classes" if self.is_classifier else "regression"
        return f"RandomizedTree(depth={self.depth}, {self.n_features} features, {kind}, gamma={self.gamma:g})"

    @property
    def gives_probabilities(self) -> bool:
        """Whether it predicts probabilities of classes: every classifier does."""
        return self.is_classifier

    def leaf_probabilities(self, X: Any) -> FloatArray:
        """Return the (n, |L|) probability that each sample reaches each leaf; rows sum to 1.

        Parameters
        ----------
        X
            (n, p) samples in original units.

        Raises
        ------
        ValueError
            As for :meth:`Tree.scores <mipforest.trees.tree.Tree.scores>`.
        """
        return self._reached_by_level(self.scores(X))[-1]

    def _reached_by_level(self, scores: FloatArray) -> list[FloatArray]:
        """Return, by level, the (n, 2^level) probability of coming to each of its nodes."""
        right, left = expit(self.gamma * scores), expit(-self.gamma * scores)
        reached = [np.ones((len(scores), 1))]
        for level in range(self.depth):
            here = slice(2**level - 1, 2 ** (level + 1) - 1)
            both = np.stack([reached[-1] * left[:, here], reached[-1] * right[:, here]], axis=2)
            reached.append(both.reshape(len(scores), -1))
        return reached

    def predict(self, X: Any) -> IntArray | FloatArray:
        """Return the (n,) most probable classes, the first of equally probable ones, or expected values."""
        if self.is_classifier:
            return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.int64)
        scaled = self._scaled(X)
        found: FloatArray = (
            self._reached_by_level(self._scores(scaled))[-1] * self._leaf_values(scaled)
        ).sum(axis=1)
        return found

    def _leaf_values(self, scaled: FloatArray) -> FloatArray:
        """Return (n, |L|) what each leaf of a regression tree predicts for each sample."""
        constant = np.broadcast_to(self.leaf_value.astype(np.float64), (len(scaled), len(self.leaf_value)))
        return constant if self.leaf_w is None else constant + scaled @ self.leaf_w.T

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the (n, K) probabilities of the classes: those in the leaves, by the probability of reaching each.

        Raises
        ------
        ValueError
            If the tree is a regression tree, or as for :meth:`leaf_probabilities`.
        """
        if self.leaf_proba is None:
            raise ValueError("a regression tree predicts no classes; use predict for its values")
        found: FloatArray = self.leaf_probabilities(X) @ self.leaf_proba
        return found

    def explanations(self, X: Any) -> list[str]:  # noqa: ARG002
        """Refuse with a ValueError: a sample has no path, it reaches every leaf with some probability."""
        raise ValueError(
            f"{self!r} has no path of a sample, which reaches every leaf with some probability; see leaf_probabilities"
        )

    def importances(self, kind: str = "sum") -> FloatArray:
        """Return the (p,) importance of each feature by its coefficients ``a`` at the branch nodes.

        Parameters
        ----------
        kind
            ``"sum"`` of their sizes over the nodes (SIM), or the largest one, ``"max"`` (MIM).

        Raises
        ------
        ValueError
            If the kind is neither.
        """
        if kind not in ("sum", "max"):
            raise ValueError(f"kind is {kind!r}; choose 'sum' or 'max'")
        sizes = np.abs(self.w) * self.n_features
        found: FloatArray = sizes.sum(axis=0) if kind == "sum" else sizes.max(axis=0)
        return found

    def contributions(self, X: Any, reference: Any) -> FloatArray:
        """Return (n, depth, p) how much more each feature sends a sample right, level by level, than a reference.

        At level l this is ``sum_t R_t(x) w_tj (x_j - r_j)`` over its nodes, R the probability of coming to them and
        x, r scaled: summed over the features, what the expected score of the sample is above that of the reference at
        the same nodes.

        Parameters
        ----------
        X
            (n, p) samples in original units.
        reference
            (p,) the sample to compare with, such as the mean of the training samples.

        Raises
        ------
        ValueError
            As for :meth:`leaf_probabilities`.
        """
        scaled = self._scaled(X)
        apart = scaled - self._scaled(np.asarray(reference, dtype=np.float64)[None, :])
        reached = self._reached_by_level(self._scores(scaled))
        found = [
            (reached[level] @ self.w[2**level - 1 : 2 ** (level + 1) - 1]) * apart
            for level in range(self.depth)
        ]
        return np.stack(found, axis=1)

    def derivatives(self, X: Any) -> FloatArray:
        """Return the (n, p) derivatives of a regression tree's prediction in the scaled features, at each sample.

        A local explanation: near x, the prediction is that of x plus these times the change of the scaled features.
        Features scaled to [0, 1] are comparable; divide by the scale for original units.

        Raises
        ------
        ValueError
            If the tree is a classifier, or as for :meth:`leaf_probabilities`.
        """
        if self.is_classifier:
            raise ValueError(
                "derivatives explain the value that a regression tree predicts; this one predicts classes"
            )
        scaled = self._scaled(X)
        scores = self._scores(scaled)
        reached, value = self._reached_by_level(scores), self._leaf_values(scaled)
        found = np.zeros_like(scaled) if self.leaf_w is None else reached[-1] @ self.leaf_w
        right, left = expit(self.gamma * scores), expit(-self.gamma * scores)
        for level in reversed(range(self.depth)):
            here = slice(2**level - 1, 2 ** (level + 1) - 1)
            to_left, to_right = value[:, 0::2], value[:, 1::2]
            steep = self.gamma * reached[level] * left[:, here] * right[:, here] * (to_right - to_left)
            found = found + steep @ self.w[here]
            value = left[:, here] * to_left + right[:, here] * to_right
        return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class Curve:
    """Features that are the values of one curve, or a feature that is one number, a constant curve.

    Attributes
    ----------
    name
        Its name.
    columns
        Positions of its features among all, by growing ``at``.
    at
        Where on its domain they are, growing: wavelengths, times. Of a number, nothing.
    offset, scale
        Its values are ``(x - offset) / scale`` to the tree: one scaling for all of its points, so that it keeps its
        shape.
    """

    name: str
    columns: tuple[int, ...]
    at: tuple[float, ...]
    offset: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        fits = len(self.at) == len(self.columns) > 1 or (len(self.columns) == 1 and not self.at)
        growing = all(low < high for low, high in pairwise(self.at))
        if not (
            fits and growing and self.scale > 0 and np.isfinite([self.offset, self.scale, *self.at]).all()
        ):
            raise ValueError(
                f"curve {self.name!r} has {len(self.columns)} features at {self.at!r:.60}, offset {self.offset} and "
                f"scale {self.scale}; give as many growing places as features, none for a number, and a scale above 0"
            )

    def on_domain(self, shares: FloatArray) -> FloatArray:
        """Return places on the domain by shares 0 to 1 of its length; of a number, the shares."""
        if not self.at:
            return shares
        found: FloatArray = self.at[0] + shares * (self.at[-1] - self.at[0])
        return found


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalTree(RandomizedTree):
    """A randomised regression tree whose splits and leaves see means of curves over intervals.

    The mean of a curve over an interval is a linear function of its values, so that the tree is the
    :class:`~mipforest.trees.randomized.RandomizedTree` with these linear functions: ``w`` and ``leaf_w`` predict.
    Intervals and heights tell what the linear functions are made of.

    Parameters
    ----------
    depth, w, b, leaf_value, gamma, and all others
        As for :class:`~mipforest.trees.randomized.RandomizedTree`.
    curves
        J curves.
    intervals
        (H, 2) begin and end of each interval, in shares 0 to 1 of the curves' domains.
    heights
        (|B|, H, J) coefficients of the means at the branch nodes, the papers' ``a``.
    leaf_heights
        (|L|, H, J) coefficients in the leaves, in the target's units.

    Raises
    ------
    ValueError
        As for :class:`~mipforest.trees.randomized.RandomizedTree`; if a curve names a feature that there is not, or an
        interval does not lie within 0 to 1.
    """

    curves: Sequence[Curve] = ()
    intervals: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))
    heights: FloatArray = field(default_factory=lambda: np.zeros(0))
    leaf_heights: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "curves", tuple(self.curves))
        H, J = len(self.intervals), len(self.curves)
        self._store("intervals", self.intervals, (H, 2))
        self._store("heights", self.heights, (self.topology.n_branches, H, J))
        self._store("leaf_heights", self.leaf_heights, (self.topology.n_leaves, H, J))
        ends = self.intervals.ravel()
        if not (H and J and ends[0] >= 0 and ends[-1] <= 1 and (np.diff(ends) >= 0).all()):
            raise ValueError(
                f"a functional tree needs curves, and intervals in order within 0 to 1, got {J} curves and the ends "
                f"{ends.tolist()!r:.80}"
            )
        for curve in self.curves:
            if not 0 <= min(curve.columns) <= max(curve.columns) < self.n_features:
                raise ValueError(
                    f"curve {curve.name!r} names a feature beyond the {self.n_features} of the tree"
                )

    def __repr__(self) -> str:
        return (
            f"FunctionalTree(depth={self.depth}, {len(self.curves)} curves, {len(self.intervals)} intervals, "
            f"gamma={self.gamma:g})"
        )

    @property
    def length_sparsity(self) -> float:
        """Share of the domain that lies in no interval."""
        return 1.0 - float((self.intervals[:, 1] - self.intervals[:, 0]).sum())

    def intervals_of(self, curve: Curve) -> FloatArray:
        """Return the (H, 2) intervals on the domain of a curve."""
        return curve.on_domain(self.intervals)

    def to_json(self) -> dict[str, Any]:
        """Return what a file of the tree holds besides what it does of other randomised trees."""
        curves = [
            {
                "name": curve.name,
                "columns": list(curve.columns),
                "at": list(curve.at),
                "offset": curve.offset,
                "scale": curve.scale,
            }
            for curve in self.curves
        ]
        arrays = {name: getattr(self, name).tolist() for name in ("intervals", "heights", "leaf_heights")}
        return {"curves": curves, **arrays}
