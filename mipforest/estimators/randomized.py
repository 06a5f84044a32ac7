"""Estimators of randomised trees: smooth models, probabilities at every split, local optima."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import FloatArray
from mipforest.estimators.base import NotTaken
from mipforest.estimators.generic import TreeClassifier, TreeRegressor
from mipforest.estimators.papers import PaperEstimator
from mipforest.problem.result import Result
from mipforest.trees import FunctionalTree, RandomizedTree


@dataclass(eq=False, repr=False, kw_only=True)
class RandomizedEstimator(PaperEstimator):
    """What estimators of randomised trees share.

    Parameters
    ----------
    gamma
        Steepness of the probabilities at the splits, above 0.
    n_starts
        Points that the search starts from, at least 1: 20 for classes, 5 for numbers, each of which takes several times
        as long. The models' default is 20.
    stages
        Levels of gamma, doubling, of every second start.
    lam_local, lam_global
        Penalties of the l1 norms (features per split) and l-infinity norms (features of the tree) of the coefficients.
    zero_tol
        Size up to which a coefficient is 0 in the sparsity that is reported.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, without ``min_weight_fraction_leaf``: every sample is
        in every leaf with some probability.

    Attributes
    ----------
    start_objectives_
        Objective of the local optimum of each start.
    sparsity_
        Shares of zero coefficients (``local``), and of features that no split or leaf uses (``global``).
    """

    gamma: float = 512.0
    n_starts: int = 20
    stages: int = 4
    lam_local: float = 0.0
    lam_global: float = 0.0
    zero_tol: float = 0.0

    min_weight_fraction_leaf: ClassVar[NotTaken] = NotTaken()  # type: ignore[misc,assignment]

    def _keep(self, result: Result) -> None:
        super()._keep(result)
        content = result.to_dict()
        self.start_objectives_ = tuple(content["start_objectives"])
        self.sparsity_ = {"local": content["local_sparsity"], "global": content["global_sparsity"]}

    def _tree(self) -> RandomizedTree:
        check_is_fitted(self, "tree_")
        return cast("RandomizedTree", self.tree_)

    def leaf_probabilities(self, X: Any) -> FloatArray:
        """Return the (n, |L|) probability that each sample reaches each leaf."""
        X_raw = self._features(X)
        return self._tree().leaf_probabilities(X_raw)

    def importances(self, kind: str = "sum") -> FloatArray:
        """Return the importance of each (encoded) feature by its coefficients.

        See :meth:`RandomizedTree.importances <mipforest.trees.RandomizedTree.importances>`.
        """
        return self._tree().importances(kind)


@dataclass(eq=False, repr=False, kw_only=True)
class RandomizedTreeClassifier(RandomizedEstimator, TreeClassifier):
    """Optimal randomised classification tree, sparse where a penalty is above 0; any number of classes.

    Sources: Blanquero, Carrizosa, Molero-Rio, Romero Morales 2020 and 2021. The fit is a local optimum, the best of
    ``n_starts``; ``predict_proba`` gives the probabilities of the model.

    Parameters
    ----------
    costs
        K rows of K costs of predicting the class of the column for a sample of the class of the row, classes sorted, or
        a ``.csv`` file of them; ``None`` for 0.5 per error.
    coverage
        Whether every class must have leaves whose probabilities of it sum to 1 at least.
    rates
        Least share of the training samples that is expected to be predicted right: one for all classes, or a dictionary
        by the class as text; ``None`` for none.
    gamma, and all others
        As for :class:`RandomizedEstimator` and :class:`~mipforest.estimators.base.TreeEstimator`, and so are the
        attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> flowers = RandomizedTreeClassifier(depth=2, n_starts=4).fit(X, y)
    >>> flowers.status_, len(flowers.start_objectives_), bool(flowers.score(X, y) > 0.95)
    ('best_found', 4, True)
    """

    costs: Any = None
    coverage: bool = True
    rates: float | Mapping[str, float] | None = None

    def _formulation_name(self) -> str:
        return "orct" if self.lam_local == 0 and self.lam_global == 0 else "s-orct"


@dataclass(eq=False, repr=False, kw_only=True)
class RandomizedTreeRegressor(RandomizedEstimator, TreeRegressor):
    """Sparse optimal randomised regression tree with linear leaves.

    Source: Blanquero, Carrizosa, Molero-Rio, Romero Morales 2022. The fit is a local optimum, the best of ``n_starts``.

    Parameters
    ----------
    y_scale
        How targets are scaled: ``"standard"``, ``"minmax"`` (to [-1, 1]) or ``"none"``; penalties are relative to that.
    ridge
        Penalty of the squares of slopes and intercepts of the leaves, at least 0.
    leaf_bound
        Largest size of a slope or an intercept for scaled targets; 0 for no bound.
    group
        Samples of whom something is asked, by a feature: ``"age>60"``; empty for none.
    asked
        What: ``"mean"`` prediction or ``"error"`` within ``limit`` of that of all samples, ``"cost"``: a mean squared
        error of at most ``limit``.
    limit
        In units of the target (``"mean"``), or their squares.
    gamma, and all others
        As for :class:`RandomizedEstimator` and :class:`~mipforest.estimators.base.TreeEstimator`, and so are the
        attributes.
    """

    n_starts: int = 5
    y_scale: str = "standard"
    ridge: float = 1e-3
    leaf_bound: float = 0.0
    group: str = ""
    asked: str = "mean"
    limit: float = 0.0

    def _formulation_name(self) -> str:
        return "s-orrt"

    def explain(self, X: Any) -> FloatArray:
        """Return the (n, p') derivatives of the prediction in the scaled features, at each sample.

        A local explanation; see :meth:`RandomizedTree.derivatives <mipforest.trees.RandomizedTree.derivatives>`.
        """
        X_raw = self._features(X)
        return self._tree().derivatives(X_raw)


@dataclass(eq=False, repr=False, kw_only=True)
class FunctionalTreeRegressor(RandomizedTreeRegressor):
    """Randomised regression tree of curves, which looks at a few intervals of them, and learns which.

    Source: Molero-Rio, PhD thesis, 2022, chapter 5. The fit is a local optimum, the best of ``n_starts``.

    Parameters
    ----------
    intervals
        Number of intervals, at least 1.
    lam_length
        Penalty of the length of the intervals, as shares of the domain, for scaled targets; at least 0.
    pattern
        What the columns of a curve are called: ``{at}`` stands for the place, ``{curve}`` for the curve's name. Empty
        for the first of ``{curve}@{at}``, ``{at}``, ``{curve}{at}`` that two columns have; an array is one curve.
    interpolation
        What a curve is between its points: ``"cubic"`` splines or ``"linear"``.
    ridge, and all others
        As for :class:`RandomizedTreeRegressor`, and so are the attributes.

    Attributes
    ----------
    intervals_
        By curve, the begin and end of each interval on its domain.
    length_sparsity_
        Share of the domain that lies in no interval.
    """

    ridge: float = 1e-6
    intervals: int = 1
    lam_length: float = 0.0
    pattern: str = ""
    interpolation: str = "cubic"

    def _formulation_name(self) -> str:
        return "s-orrt-fd"

    def _keep(self, result: Result) -> None:
        super()._keep(result)
        tree = cast("FunctionalTree", self.tree_)
        self.intervals_ = {
            curve.name: [(low, high) for low, high in tree.intervals_of(curve).tolist()]
            for curve in tree.curves
            if curve.at
        }
        self.length_sparsity_ = tree.length_sparsity
