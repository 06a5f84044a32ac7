"""What the solution of a model stands for: something that predicts samples in original units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from mipforest.trees import Picture


class FeaturesUsed(NamedTuple):
    """Features with a non-zero weight.

    Attributes
    ----------
    per_node
        For each branch node, the numbers of its features, ascending; a score card counts as one node.
    overall
        The numbers of the features of all branch nodes and linear leaves together, ascending.
    """

    per_node: tuple[tuple[int, ...], ...]
    overall: tuple[int, ...]


class Predictor(ABC):
    """A fitted :class:`~mipforest.trees.Tree`, or a :class:`~mipforest.cards.ScoreCard`: what the core asks of either.

    What only one of them has, such as the nodes of a tree or the points of a card, is read where it is shown: in texts,
    pictures and pages.

    Attributes
    ----------
    noun
        What it is called in sentences.
    is_tree
        Whether it is a tree.
    features
        Names of the p features, or ``()``.
    classes
        Names of the classes, or ``()`` where values are predicted.
    levels
        As of :class:`~mipforest.trees.Tree`.
    logistic
        Whether :meth:`predict_proba` gives probabilities of its own.
    """

    noun: ClassVar[str]
    is_tree: ClassVar[bool] = False
    features: tuple[str, ...]
    classes: tuple[str, ...]
    levels: tuple[tuple[str, str] | None, ...]
    logistic: bool

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features, p."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; ``x0, x1, ...`` where none were given."""
        return self.features or tuple(f"x{j}" for j in range(self.n_features))

    @property
    def is_classifier(self) -> bool:
        """Whether classes are predicted (else real values)."""
        return bool(self.classes)

    @property
    def prescribes(self) -> bool:
        """Whether its classes are treatments, with estimated outcomes."""
        return False

    @property
    def gives_probabilities(self) -> bool:
        """Whether it predicts probabilities of the classes by its own model (see :meth:`predict_proba`)."""
        return self.logistic

    @abstractmethod
    def features_used(self, tolerance: float = 0.0) -> FeaturesUsed:
        """Return the features that predictions depend on."""

    @abstractmethod
    def unscaled(self) -> Self:
        """Return the same for data that are scaled already."""

    @abstractmethod
    def with_scaling(self, offset: npt.ArrayLike, scale: npt.ArrayLike) -> Self:
        """Return the same over features scaled by ``(X - offset) / scale``, (p,) each."""

    def with_levels(self, levels: tuple[tuple[str, str] | None, ...]) -> Self:
        """Return the same with the names of the values of features that stand for one value of a column."""
        return cast(Self, replace(cast(Any, self), levels=levels))

    @abstractmethod
    def apply(self, X: Any) -> IntArray:
        """Return the (n,) number of the group of samples predicted alike that each is in: its leaf, or its total."""

    @abstractmethod
    def predict(self, X: Any) -> IntArray | FloatArray:
        """Return the (n,) predictions: class numbers, or values in the target's units."""

    @abstractmethod
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the (n, K) probabilities of the classes; ValueError if it has none of its own."""

    def predict_outcomes(self, X: Any) -> FloatArray:  # noqa: ARG002
        """Return the (n, m) outcomes estimated under each treatment; ValueError where none is prescribed."""
        raise ValueError(f"{self!r} prescribes no treatment and estimates no outcomes; use predict")

    def predict_labels(self, X: Any) -> npt.NDArray[np.str_]:
        """Return the (n,) names of the predicted classes; ValueError where values are predicted."""
        if not self.is_classifier:
            raise ValueError(f"a regression {self.noun} predicts no classes; use predict for its values")
        return np.asarray(self.classes)[self.predict(X)]

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""

    @abstractmethod
    def plot(self, X: Any = None, y: npt.ArrayLike | None = None, *, max_terms: int = 3) -> Picture:
        """Draw it, with samples counted if some are given."""

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.plot()._repr_svg_()}"
