"""Trees that prescribe treatments, and what they are compared with: one model of outcomes for each treatment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.table import checked_weights
from mipforest.errors import some_of
from mipforest.estimators.papers import PaperEstimator
from mipforest.problem.parameters import ParameterError
from mipforest.problem.result import Result

#: Formulation by splits and estimates.
_OPT = {
    ("univariate", "constant"): "opt",
    ("hyperplane", "constant"): "opt-h",
    ("univariate", "linear"): "opt-l",
    ("hyperplane", "linear"): "opt-lh",
}


class _Known(NamedTuple):
    """What is known of the samples: the treatment that each had, and the outcome that it led to."""

    treatment: Any
    outcome: Any


@dataclass(eq=False, repr=False, kw_only=True)
class OptimalPrescriptiveTree(PaperEstimator):
    """Optimal prescriptive tree: leaves prescribe a treatment, and estimate the outcome under each (Dunn 2018, ch. 6).

    With ``time_limit=0`` it is the greedy tree of the same objective; with ``mu=1`` too, that is the personalisation
    tree of Kallus (2017).

    Parameters
    ----------
    splits
        ``"univariate"`` or ``"hyperplane"``.
    estimates
        ``"constant"``: the mean outcome under each treatment in a leaf; ``"linear"``: a lasso.
    mu
        Weight of the outcomes under the prescriptions, 0 to 1; that of the estimates' squared error is 1 - mu. It
        depends on the units of outcomes unless ``outcome_scale="standard"``.
    n_treatment
        Least number of samples in a leaf that had the treatment it prescribes; at least 1.
    alpha
        Cost of a split (of a feature in a hyperplane split), relative to the error of the estimates without splits.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    better
        Which outcomes are better: ``"lower"`` or ``"higher"``.
    outcome_scale
        ``"none"`` or ``"standard"``: outcomes count in standard deviations.
    epsilon
        Margin that stands for the strict inequality to the left of a hyperplane; above 0, below 1.
    lam
        Weight of the coefficients of linear estimates, in units of the outcome; above 0.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes, without
        ``feature_importances_``. From depth 3 on, and for hyperplanes, ``solver="local-search"`` finds good trees soon.

    Attributes
    ----------
    treatments_
        (m,) labels of the treatments, sorted.

    Examples
    --------
    >>> import numpy as np
    >>> age = np.array([20, 25, 30, 35, 60, 65, 70, 75])[:, None]
    >>> had = np.array(["drug", "rest"] * 4)
    >>> days = np.array([3.0, 9, 4, 8, 9, 5, 10, 4])
    >>> tree = OptimalPrescriptiveTree(depth=1, n_treatment=2).fit(age, had, days)
    >>> tree.predict([[22], [72]]).tolist(), tree.predict_outcomes([[22]]).tolist()
    (['drug', 'rest'], [[3.5, 8.5]])
    """

    splits: str = "univariate"
    estimates: str = "constant"
    mu: float = 0.5
    n_treatment: int = 10
    alpha: float = 0.0
    N_min: int = 1
    better: str = "lower"
    outcome_scale: str = "none"
    epsilon: float = 0.005
    lam: float = 0.1

    def _formulation_name(self) -> str:
        if (self.splits, self.estimates) not in _OPT:
            raise ParameterError(
                f"parameters splits and estimates are {self.splits!r} and {self.estimates!r}; choose 'univariate' or "
                "'hyperplane', and 'constant' or 'linear'"
            )
        return _OPT[self.splits, self.estimates]

    def fit(  # type: ignore[override]
        self, X: Any, treatment: Any, y: Any, sample_weight: Any = None
    ) -> OptimalPrescriptiveTree:
        """Find an optimal prescriptive tree.

        Parameters
        ----------
        X
            (n, p) features, as for :meth:`TreeEstimator.fit <mipforest.estimators.base.TreeEstimator.fit>`.
        treatment
            (n,) labels of the treatments that the samples had.
        y
            (n,) outcomes that these led to.
        sample_weight
            (n,) weights of the samples, at least 0; 1 unless given. ``n_treatment`` and ``N_min`` count samples,
            whatever they weigh.

        Returns
        -------
        self

        Raises
        ------
        ValueError, NoTreeFound, SolverError
            As for :meth:`TreeEstimator.fit <mipforest.estimators.base.TreeEstimator.fit>`.
        """
        self._fit(X, _Known(treatment, y), sample_weight)
        return self

    def _read(
        self, X_raw: FloatArray, y: _Known, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        given, outcomes = column_or_1d(y.treatment), column_or_1d(y.outcome, dtype=np.float64)
        check_consistent_length(X_raw, given, outcomes)
        data = Dataset.from_arrays(
            X_raw, outcomes, treatments=given, features=features, scaling=scaling, weights=weights
        )
        self.treatments_ = np.array(data.class_values)
        return data

    def _keep(self, result: Result) -> None:
        super()._keep(result)
        del self.feature_importances_  # splits explain no treatments that samples had

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return (n,) prescribed treatments, of :attr:`treatments_`."""
        X_raw = self._features(X)
        labels: npt.NDArray[Any] = self.treatments_[self.tree_.predict(X_raw)]
        return labels

    def predict_outcomes(self, X: Any) -> FloatArray:
        """Return (n, m) estimated outcomes under each treatment, in the order of :attr:`treatments_`."""
        X_raw = self._features(X)
        return self.tree_.predict_outcomes(X_raw)

    def _numbers(self, y: Any) -> IntArray:
        return _numbers(column_or_1d(y), self.treatments_)


@dataclass(eq=False, repr=False)
class RegressAndCompare(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Regress and compare: one regression of the outcome for each treatment; prescribe the best prediction.

    Parameters
    ----------
    regressor
        A regressor of scikit-learn's kind, fitted anew to the samples of each treatment.
    better
        Which outcomes are better: ``"lower"`` or ``"higher"``.

    Attributes
    ----------
    treatments_
        (m,) labels of the treatments, sorted.
    regressors_
        The fitted regressors, in that order.
    """

    regressor: Any
    better: str = "lower"

    def fit(self, X: Any, treatment: Any, y: Any, sample_weight: Any = None) -> RegressAndCompare:
        """Fit one regressor to the samples of each treatment.

        Parameters
        ----------
        X, treatment, y
            (n, p) features, (n,) treatments and (n,) outcomes.
        sample_weight
            (n,) weights, for regressors that take them; all samples count alike unless given.
        """
        if self.better not in ("lower", "higher"):
            raise ParameterError(f"parameter better is {self.better!r}; choose 'lower' or 'higher'")
        X, given, outcomes = check_array(X), column_or_1d(treatment), column_or_1d(y, dtype=np.float64)
        check_consistent_length(X, given, outcomes)
        self.treatments_ = np.unique(given)
        weights = None if sample_weight is None else checked_weights(sample_weight, len(X), "sample_weight")
        self.regressors_ = []
        for label in self.treatments_:
            had = given == label
            named = {} if weights is None else {"sample_weight": weights[had]}
            self.regressors_.append(clone(self.regressor).fit(X[had], outcomes[had], **named))
        return self

    def predict_outcomes(self, X: Any) -> FloatArray:
        """Return (n, m) predicted outcomes under each treatment, in the order of :attr:`treatments_`."""
        check_is_fitted(self, "regressors_")
        X = check_array(X)
        return np.column_stack([fitted.predict(X) for fitted in self.regressors_])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return (n,) treatments with the best predicted outcome."""
        outcomes = self.predict_outcomes(X)
        best = outcomes.argmin(axis=1) if self.better == "lower" else outcomes.argmax(axis=1)
        labels: npt.NDArray[Any] = self.treatments_[best]
        return labels


def _numbers(labels: Any, known: npt.NDArray[Any]) -> IntArray:
    """Return the (n,) numbers of labels among the known ones, sorted."""
    strange = ~np.isin(labels, known)
    if strange.any():
        raise DataError(
            f"there is {labels[strange].tolist()[0]!r}, which is no treatment of the training data "
            f"({some_of(known.tolist())})"
        )
    numbers: IntArray = np.searchsorted(known, labels).astype(np.int64)
    return numbers
