"""Optimal risk scores behind scikit-learn's interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import FloatArray, IntArray
from mipforest.cards import ScoreCard, card_to_text, risk_table
from mipforest.estimators.generic import TreeClassifier
from mipforest.estimators.papers import PaperEstimator
from mipforest.problem.result import Result


@dataclass(eq=False, repr=False, kw_only=True)
class RiskScoreClassifier(PaperEstimator, TreeClassifier):
    """Score card of least log-loss: a few rules with whole points, whose total stands for a risk, two classes.

    Source: Aldinucci, PhD thesis, chapter 4. With up to three rules the optimum is proven by an exact search in
    seconds to minutes; beyond, within the time limit as far as a solver gets.

    Parameters
    ----------
    rules
        Most rules of the card, at least 1.
    binary
        Whether all features are 0 or 1, and rules are the features themselves (ORS); else rules are
        ``x >= threshold`` (OGRS).
    min_points, max_points
        Least and most points of a rule; whole numbers, 0 between them.
    exact_rules
        Whether the card has exactly that many rules.
    tangents
        Tangent points of the log-loss in models for matrix solvers: ``V0`` to ``V3``, or an odd number of them.
    min_support
        Least number of training samples that a rule holds for, and that it does not hold for.
    round_thresholds
        Whether thresholds have as few digits as they can without moving a training sample.
    epsilon
        Gap that stands for a strict inequality, in variant ``paper`` of OGRS.
    variant, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`. A card has no depth; ``min_weight_fraction_leaf`` is
        the least share on either side of a rule; ``start`` takes a :class:`~mipforest.cards.ScoreCard`.

    Attributes
    ----------
    card_
        The fitted :class:`~mipforest.cards.ScoreCard`, without negative points, in original units.
    classes_
        (2,) labels, sorted; risks are those of the second one.
    feature_importances_
        (n_features_in_,) share of each column of X in the points of the card; 0 without rules.

    All others but ``tree_`` are those of :class:`~mipforest.estimators.base.TreeEstimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> card = RiskScoreClassifier(rules=1).fit(X, y == 2)
    >>> card.status_, card.n_features_used_
    ('optimal', 1)
    """

    _fitted_name: ClassVar[str] = "card_"

    depth: int = field(default=1, init=False, repr=False)
    rules: int = 3
    binary: bool = False
    min_points: int = -5
    max_points: int = 5
    exact_rules: bool = False
    tangents: str = "V3"
    min_support: int = 1
    round_thresholds: bool = True
    epsilon: float = 1e-4

    def _formulation_name(self) -> str:
        return "ors" if self.binary else "ogrs"

    def _keep(self, result: Result) -> None:
        assert isinstance(result.tree, ScoreCard)
        self.card_ = result.tree.nonnegative()
        self._keep_outcome(result)
        points = np.zeros(result.problem.data.p)
        for rule in self.card_.rules:
            points[rule.feature] += rule.points
        self.feature_importances_ = self._by_column(points / max(1.0, points.sum()))

    # ------------------------------------------------------------------ predict

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return (n,) predicted labels: the second one where its risk is at least one half."""
        X_raw = self._features(X)
        labels: npt.NDArray[Any] = self.classes_[self.card_.predict(X_raw)]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return (n, 2) probabilities of the classes; the second one is the risk."""
        X_raw = self._features(X)
        return self.card_.predict_proba(X_raw)

    def decision_function(self, X: Any) -> FloatArray:
        """Return (n,) log-odds of the second class: totals plus the intercept."""
        X_raw = self._features(X)
        return self.card_.scores(X_raw)

    def apply(self, X: Any) -> IntArray:
        """Return (n,) totals: samples of one total have one risk."""
        X_raw = self._features(X)
        return self.card_.totals(X_raw)

    # A card has no nodes.
    decision_path = get_depth = get_n_leaves = None  # type: ignore[assignment]

    # ------------------------------------------------------------------ text and picture

    def to_text(self, X: Any = None, y: npt.ArrayLike | None = None) -> str:  # type: ignore[override]
        """Write the card as text, with the samples at each total counted if some are given."""
        check_is_fitted(self, self._fitted_name)
        if X is None or y is None:
            return card_to_text(self.card_)
        return card_to_text(self.card_, risk_table(self.card_, self._features(X), self._numbers(y)))

    def plot(self, X: Any = None, y: npt.ArrayLike | None = None) -> Any:  # type: ignore[override]
        """Draw the card as it is printed, with the samples at each total counted if some are given."""
        check_is_fitted(self, self._fitted_name)
        if X is None or y is None:
            return self.card_.plot()
        return self.card_.plot(self._features(X), self._numbers(y))
