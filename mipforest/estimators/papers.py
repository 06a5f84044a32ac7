"""One estimator for each paper, with the hyperparameters of its formulations in its signature.

Hyperparameters have the papers' names and the formulations' defaults; ``None`` leaves a value to the formulation.
Estimators that prescribe treatments can be compared with a baseline: one model of outcomes for each treatment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.cards import ScoreCard, card_to_text, risk_table
from mipforest.data import DataError, Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.table import checked_weights
from mipforest.data.target import read_rewards
from mipforest.errors import some_of
from mipforest.estimators.base import NotTaken, TreeEstimator
from mipforest.estimators.generic import TreeClassifier, TreeRegressor, read_values
from mipforest.estimators.scikit import BaseEstimator
from mipforest.objectives.leaf_losses import PoissonLoss
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError, PerNode, parameters_of
from mipforest.problem.registry import get_formulation
from mipforest.problem.result import Result
from mipforest.survival import StepFunction, concordance
from mipforest.trees import FunctionalTree, RandomizedTree, RewardMeasures, reward_measures

#: Formulation of MARGOT by its feature selection.
_MARGOT = {None: "margot", "hard": "hfs-margot", "soft": "sfs-margot"}

#: Formulation of ORT by splits and leaves.
_ORT = {
    ("univariate", "constant"): "ort",
    ("hyperplane", "constant"): "ort-h",
    ("univariate", "linear"): "ort-l",
    ("hyperplane", "linear"): "ort-lh",
}

#: Formulation of policy trees by their splits.
_POLICY = {"univariate": "policy", "hyperplane": "policy-h"}


@dataclass(eq=False, repr=False)
class PaperEstimator(TreeEstimator):
    """An estimator whose formulation's hyperparameters are its own, by the same names."""

    #: Names of the formulations that it may build.
    _formulations: ClassVar[tuple[str, ...]] = ()

    def _formulation_name(self) -> str:
        """Return the name of the formulation in the registry; by default the first one that it may build."""
        return self._formulations[0]

    def _model(self) -> type[Formulation]:
        return get_formulation(self._formulation_name())

    def _hyperparameters(self) -> dict[str, Any]:
        # What another formulation of the estimator takes, such as B without a feature selection, does not count.
        values = {name: getattr(self, name) for name in parameters_of(self._model())}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(eq=False, repr=False, kw_only=True)
class OCTClassifier(PaperEstimator, TreeClassifier):
    """Optimal classification tree with univariate splits, any number of classes (Dunn 2018, chapter 2).

    Parameters
    ----------
    alpha
        Cost of a split, relative to the error of the best constant prediction; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    costs
        K rows of K costs of predicting the class of the column for a sample of the class of the row, classes sorted;
        a DataFrame with the names of the classes as index and columns, in any order; or a ``.csv`` file of either.
        ``None`` for 1 per error.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> flowers = OCTClassifier(depth=1).fit(X, y)
    >>> flowers.status_, flowers.n_features_used_
    ('optimal', 1)
    """

    _formulations = ("oct",)

    alpha: float = 0.0
    N_min: int = 1
    costs: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class OCTHClassifier(PaperEstimator, TreeClassifier):
    """Optimal classification tree with hyperplane splits, any number of classes (Dunn 2018, chapter 3).

    Parameters
    ----------
    alpha
        Cost of a feature in a split, relative to the error of the best constant prediction; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    mu
        Margin that stands for the strict inequality to the left; above 0, below 1.
    max_features
        Most features in a split; 0 for any number.
    costs
        K rows of K costs of predicting the class of the column for a sample of the class of the row, classes sorted;
        a DataFrame with the names of the classes as index and columns, in any order; or a ``.csv`` file of either.
        ``None`` for 1 per error.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    """

    _formulations = ("oct-h",)

    alpha: float = 0.0
    N_min: int = 1
    mu: float = 0.005
    max_features: int = 0
    costs: Any = None


#: What stands in y for a sample without a label, as in ``sklearn.semi_supervised``.
UNLABELLED = -1


@dataclass(eq=False, repr=False, kw_only=True)
class SemiSupervisedTreeClassifier(PaperEstimator, TreeClassifier):
    """Optimal tree of labelled samples and of others whose classes are known in total (:mod:`formulations.semi`).

    ``y`` has -1 for a sample without a label, as in :mod:`sklearn.semi_supervised`; labels that are texts stand beside
    it in an array of objects. Attributes of training samples, such as shares in leaves, count those with a label.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the error of the best constant prediction of labelled samples; at least 0.
    N_min
        Least number of samples, with a label or without, in a leaf that holds any; at least 1.
    costs
        As for :class:`OCTClassifier`.
    totals
        Number of the samples without a label in each class, classes sorted, or a dictionary by the text of some
        classes; a number below 1 is a share. Needed where samples have no label.
    total_price
        Price of each sample by which totals are missed, in errors of labelled samples; at least 0.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.

    Examples
    --------
    >>> X = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
    >>> tree = SemiSupervisedTreeClassifier(depth=1, totals={"b": 3}).fit(X, ["a", -1, -1, -1, -1, "b"])
    >>> tree.predict(X).tolist()
    ['a', 'a', 'b', 'b', 'b', 'b']
    """

    _formulations = ("semi-oct",)

    alpha: float = 0.0
    N_min: int = 1
    costs: Any = None
    totals: Any = None
    total_price: float = 1.0

    def _read(
        self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        given = np.asarray(y, dtype=object) if isinstance(y, list) else np.asarray(y)
        has_label = given.astype(object) != UNLABELLED
        if given.shape != (len(X_raw),) or has_label.all():
            return super()._read(X_raw, y, weights, features, scaling)
        labels = np.array(given[has_label].tolist())
        data = super()._read(X_raw[has_label], labels, weights[has_label], features, scaling)
        others = X_raw[~has_label & (weights > 0)]
        return replace(data, unlabelled=others if len(others) else None).with_scaling(scaling)


@dataclass(eq=False, repr=False, kw_only=True)
class MargotClassifier(PaperEstimator, TreeClassifier):
    """Margin optimal classification tree: a support vector machine at every node, two classes.

    Source: D'Onofrio, Grani, Monaci, Palagi 2024, sections 3 and 4.

    Parameters
    ----------
    C
        Penalty of margin violations, above 0: one value, one per level, or one per branch node.
    feature_selection
        ``None``; ``"hard"``: at most ``B`` features per node (HFS-MARGOT); ``"soft"``: every feature beyond ``B``
        costs ``alpha`` (SFS-MARGOT).
    B
        Features per node, with a feature selection only: one value, one per level, or one per branch node;
        ``None`` for 2 (hard) or 1 (soft).
    alpha
        Cost of every feature beyond ``B``, with soft feature selection only; above 0.
    epsilon
        Gap that stands for the strict inequality to the left; above 0, below 1, or ``"relative"``: a number for the
        training samples (:mod:`formulations.splits.linear`).
    scaling
        How features are scaled before the model is built: ``"minmax"`` (to [0, 1]), ``"standard"``, ``"none"``.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    """

    _formulations = tuple(_MARGOT.values())

    C: PerNode = 1.0
    feature_selection: str | None = None
    B: PerNode | None = None
    alpha: float = 1.0
    epsilon: float | str = 1e-3
    scaling: Scaling = "minmax"

    def _formulation_name(self) -> str:
        if self.feature_selection not in tuple(_MARGOT):
            raise ParameterError(
                f"parameter feature_selection is {self.feature_selection!r}; choose None, 'hard' or 'soft'"
            )
        return _MARGOT[self.feature_selection]


@dataclass(eq=False, repr=False, kw_only=True)
class OLCTClassifier(PaperEstimator, TreeClassifier):
    """Optimal logistic classification tree: a sparse logistic regression at every node, two classes.

    Source: Aldinucci, PhD thesis, section 3.2. :meth:`predict_proba` gives the probabilities of the model.

    Parameters
    ----------
    C
        Penalty of the log-loss, above 0: one value, one per level, or one per branch node.
    B
        Most features a node may use: one value (1 gives univariate splits), one per level, or one per branch
        node; ``None`` for no limit.
    epsilon
        Gap that stands for the strict inequality to the left; above 0, below 1, or ``"relative"``: a number for the
        training samples (:mod:`formulations.splits.linear`).
    tangents
        Tangent points of the log-loss: ``V0`` to ``V3``, or the number of finite ones, chosen greedily.
    refinement
        Whether the last branching level is refitted with the log-loss itself after the solve.
    scaling
        How features are scaled before the model is built: ``"minmax"`` (to [0, 1]), ``"standard"``, ``"none"``.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    """

    _formulations = ("olct", "budgeted-olct")

    C: PerNode = 1.0
    B: PerNode | None = None
    epsilon: float | str = 1e-3
    tangents: str = "V0"
    refinement: bool = True
    scaling: Scaling = "standard"

    def _formulation_name(self) -> str:
        return "olct" if self.B is None else "budgeted-olct"


@dataclass(eq=False, repr=False, kw_only=True)
class MIRETClassifier(PaperEstimator, TreeClassifier):
    """One multivariate tree that mimics a tree ensemble, two classes (Di Teodoro, Monaci, Palagi 2024).

    Parameters
    ----------
    ensemble
        What to mimic:

        - a text such as ``"random-forest:trees=100,seed=1"``: fitted on the training samples with trees of
          ``depth``. Its seed is its own, 100 if it names none, whatever ``random_state`` is;
        - a fitted ``RandomForestClassifier``, ``ExtraTreesClassifier``, ``GradientBoostingClassifier`` or
          ``XGBClassifier`` with trees of at most ``depth``: taken as it is. **scikit-learn's** ``clone``, hence
          grid search and cross-validation, **makes it unfitted**, unless it is wrapped in
          ``sklearn.frozen.FrozenEstimator`` (scikit-learn 1.6 and later);
        - one of these, not fitted: a clone is fitted on the training samples, with classes 0 and 1;
        - the path of a ``.joblib`` file (loading it runs code that it contains), or an
          :class:`~mipforest.ensembles.Ensemble`.

    alpha
        Cost of a feature in a split, divided by the feature's frequency at the level; at least 0.
    gamma
        Least frequency (0 to 1) of the features that splits of a level may use: one value, or one per level.
    gamma_percentile
        The same as a percentile (0 to 100) of the level's positive frequencies; the larger threshold counts.
    proximity
        Samples that share at least this share of the ensemble's leaves share a leaf of the tree; above 1, none do.
    epsilon
        Gap that stands for the strict inequality to the left; above 0, below 1.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    """

    _formulations = ("miret",)

    ensemble: Any = "random-forest:trees=100"
    alpha: float = 0.2
    gamma: PerNode = 0.0
    gamma_percentile: PerNode = 0.0
    proximity: float = 1.0
    epsilon: float = 1e-3


@dataclass(eq=False, repr=False, kw_only=True)
class ORTRegressor(PaperEstimator, TreeRegressor):
    """Optimal regression tree (Dunn 2018, chapters 4 and 5).

    Parameters
    ----------
    splits
        ``"univariate"`` or ``"hyperplane"``.
    leaves
        ``"constant"`` or ``"linear"``: what a leaf predicts.
    alpha
        Cost of a split (of a feature in a hyperplane), relative to the loss of the best constant; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    loss
        ``"squared"`` or ``"absolute"``.
    mu
        Margin that stands for the strict inequality to the left, of hyperplane splits only; above 0, below 1.
    max_features
        Most features in a split, of hyperplane splits only; 0 for any number.
    lam
        Weight of the coefficients of linear leaves, at least 0; a coefficient of 1 moves the prediction by the whole
        range of the target along the whole range of the feature.
    regulariser
        ``"l1"``: size of the coefficients of linear leaves; ``"l0"``: their number.
    M_r
        Greatest size of such a coefficient, with l0 or ``lam=0``; above 0.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    """

    _formulations = tuple(_ORT.values())

    splits: str = "univariate"
    leaves: str = "constant"
    alpha: float = 0.0
    N_min: int = 1
    loss: str = "squared"
    mu: float = 0.005
    max_features: int = 0
    lam: float = 0.01
    regulariser: str = "l1"
    M_r: float = 10.0

    def _formulation_name(self) -> str:
        for name, value, known in (
            ("splits", self.splits, ("univariate", "hyperplane")),
            ("leaves", self.leaves, ("constant", "linear")),
        ):
            if value not in known:
                raise ParameterError(f"parameter {name} is {value!r}; choose from: {', '.join(known)}")
        return _ORT[self.splits, self.leaves]


@dataclass(eq=False, repr=False, kw_only=True)
class QuantileTreeRegressor(PaperEstimator, TreeRegressor):
    """Optimal tree of univariate splits whose leaves predict a quantile (:mod:`formulations.quantile`).

    Parameters
    ----------
    tau
        Level of the quantile, above 0 and below 1: 0.9 for a number that nine of ten targets are below.
    alpha
        Cost of a split, relative to the loss of the best constant; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.

    Notes
    -----
    ``score`` is that of every regressor, R2. :func:`sklearn.metrics.mean_pinball_loss` and
    :func:`sklearn.metrics.d2_pinball_score` with ``alpha=tau`` say how good the quantiles are.
    """

    _formulations = ("quantile",)

    tau: float = 0.5
    alpha: float = 0.0
    N_min: int = 1


@dataclass(eq=False, repr=False, kw_only=True)
class PoissonTreeRegressor(PaperEstimator, TreeRegressor):
    """Optimal tree of univariate splits whose leaves predict the rate of a count (:mod:`formulations.poisson`).

    Targets are counts per unit of exposure, and weights are exposures, as for scikit-learn's Poisson models:
    ``fit(X, counts / exposure, sample_weight=exposure)``.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the deviance of the best constant; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    tangents
        Tangents of the logarithm in models for matrix solvers, at least 2; tree searches have the deviance itself.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.

    Notes
    -----
    A leaf whose training samples have no counts predicts 0; a larger ``N_min`` makes these fewer.
    ``feature_importances_`` are of squared errors, as those of other regressors.

    Examples
    --------
    >>> import numpy as np
    >>> age, years = np.array([[20], [25], [30], [60], [65], [70]]), np.array([1, 2, 1, 2, 4, 2])
    >>> claims = np.array([1, 2, 1, 1, 2, 1])
    >>> tree = PoissonTreeRegressor(depth=1).fit(age, claims / years, sample_weight=years)
    >>> tree.predict([[22], [72]]).tolist(), tree.score(age, claims / years, sample_weight=years)
    ([1.0, 0.5], 1.0)
    """

    _formulations = ("poisson",)

    alpha: float = 0.0
    N_min: int = 1
    tangents: int = 32

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D2, the share of the Poisson deviance that predictions explain.

        Parameters
        ----------
        X, y
            (n, p) samples and (n,) rates, at least 0.
        sample_weight
            (n,) exposures; 1 unless given.

        Returns
        -------
        float
            1 - deviance / deviance of the best constant, at most 1, as :func:`sklearn.metrics.d2_tweedie_score` with
            ``power=1`` and scikit-learn's ``PoissonRegressor`` have it. It is minus infinity if a sample has a count
            where its leaf predicts 0: its deviance is infinite. Where all rates are equal, it is 1 for exact
            predictions and 0 for any others.

        Raises
        ------
        DataError
            If a rate is negative.
        """
        predicted, rates = self.predict(X), read_values(self, y)
        check_consistent_length(predicted, rates)
        if rates.min() < 0:
            raise DataError(
                f"y is {rates.min():g} in row {rates.argmin()}, and deviances are of rates; give counts per unit of "
                "exposure, at least 0"
            )
        weights = checked_weights(sample_weight, len(rates), "sample_weight")
        # A sample without exposure does not count, whatever is predicted for it.
        counted = weights > 0
        return PoissonLoss().explained(predicted[counted], rates[counted], weights[counted])


class FunctionOfTime(StepFunction):
    """A step function that is called with times, as those of scikit-survival are; it has no end.

    Attributes
    ----------
    x, y
        (m,) times and values, by scikit-survival's names.
    """

    __slots__ = ()

    def __call__(self, time: npt.ArrayLike) -> Any:
        """Return the values at times of any shape, in the same shape; a number for a number."""
        return self.at(time)[()]

    @property
    def x(self) -> FloatArray:
        """The times."""
        return self.times

    @property
    def y(self) -> FloatArray:
        """The values."""
        return self.values


@dataclass(eq=False, repr=False, kw_only=True)
class SurvivalTree(PaperEstimator):
    """Optimal tree of univariate splits whose leaves predict a hazard ratio, from times of which some are censored.

    Its interface is that of scikit-survival's ``SurvivalTree``, whose place it takes in ``cross_val_score``,
    ``GridSearchCV`` and metrics. Sources: LeBlanc and Crowley 1992; Huisman, van der Linden and Demirović 2024;
    :mod:`formulations.survival`.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the deviance without a split; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    tangents
        Tangents of the logarithm in models for matrix solvers, at least 2; tree searches have the deviance itself.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.

    Attributes
    ----------
    unique_times_
        (m,) distinct times of the training samples, ascending.
    event_times_
        Those of them at which an event was seen.
    baseline_hazard_
        Cumulative hazard of all training samples together, a :class:`FunctionOfTime` with steps at ``event_times_``;
        that of a leaf is its hazard ratio times as much.

    Notes
    -----
    Samples weigh in ``min_weight_fraction_leaf`` and ``feature_importances_`` by their exposure, the number of events
    that the baseline expects of them; the latter are of squared errors, as those of regressors. ``to_text`` and
    ``plot`` count samples, and show nothing of their times.

    Examples
    --------
    >>> import numpy as np
    >>> age = np.array([30, 40, 50, 60, 70, 80])[:, None]
    >>> seen, days = np.array([False, True, False, True, True, True]), np.array([9, 8, 9, 3, 2, 1])
    >>> tree = SurvivalTree(depth=1).fit(age, (seen, days))
    >>> bool(tree.predict([[75]]) > tree.predict([[35]])), tree.score(age, (seen, days)) > 0.8
    (True, True)
    """

    _formulations = ("survival",)

    alpha: float = 0.0
    N_min: int = 1
    tangents: int = 32

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find an optimal survival tree.

        Parameters
        ----------
        X
            (n, p) features, as for :meth:`TreeEstimator.fit <mipforest.estimators.base.TreeEstimator.fit>`.
        y
            Whether the event of each sample was seen, or its time is that until which it was followed; and the times,
            at least 0. A structured array (n,) of two fields in this order, as ``sksurv.util.Surv`` makes it; an array
            or a DataFrame (n, 2); or a pair of two arrays (n,). Searches over parameters cannot take parts of a pair.
        sample_weight
            (n,) weights of the samples, at least 0; 1 unless given. ``N_min`` counts samples, whatever they weigh.

        Returns
        -------
        self

        Raises
        ------
        ValueError, NoTreeFound, SolverError
            As for :meth:`TreeEstimator.fit <mipforest.estimators.base.TreeEstimator.fit>`;
            :class:`~mipforest.data.DataError` if no event was seen.
        """
        self._fit(X, y, sample_weight)
        return self

    def _read(
        self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        seen, times = _read_times(self, y)
        check_consistent_length(X_raw, times)
        return Dataset.from_arrays(
            X_raw, times, event=seen, target="time", features=features, scaling=scaling, weights=weights
        )

    def _store(self, result: Result) -> None:
        super()._store(result)
        data = result.problem.data
        assert data.followed is not None
        assert data.baseline_hazard is not None
        self.unique_times_ = np.unique(data.followed[:, 0])
        self.baseline_hazard_ = FunctionOfTime(*data.baseline_hazard)
        self.event_times_ = self.baseline_hazard_.times

    # ------------------------------------------------------------------ predict

    def predict(self, X: Any) -> FloatArray:
        """Return (n,) hazard ratios, at least 0: a sample with a larger one is predicted to have its event earlier."""
        X_raw = self._features(X)
        return np.asarray(self.tree_.predict(X_raw), dtype=np.float64)

    def predict_cumulative_hazard_function(self, X: Any, return_array: bool = False) -> npt.NDArray[Any]:
        """Predict the cumulative hazard function of each sample.

        Parameters
        ----------
        X
            (n, p) samples.
        return_array
            Whether to return numbers in place of functions.

        Returns
        -------
        numpy.ndarray
            (n,) functions (:class:`FunctionOfTime`) that are called with times, with steps at ``unique_times_``; or
            (n, m) their values at ``unique_times_``. Beyond the longest time they stay as they are.
        """
        return self._of_time(X, lambda hazard: hazard, 0.0, return_array)

    def predict_survival_function(self, X: Any, return_array: bool = False) -> npt.NDArray[Any]:
        """Predict the survival function of each sample: the probability that its event is after a time.

        Parameters
        ----------
        X, return_array
            As for :meth:`predict_cumulative_hazard_function`.

        Returns
        -------
        numpy.ndarray
            As :meth:`predict_cumulative_hazard_function`: the exponential of minus that.
        """
        return self._of_time(X, lambda hazard: np.exp(-hazard), 1.0, return_array)

    def _of_time(
        self, X: Any, of_hazard: Callable[[FloatArray], FloatArray], first: float, return_array: bool
    ) -> npt.NDArray[Any]:
        """Return functions of cumulative hazards, one for all samples of a hazard ratio, or their values."""
        ratios, which = np.unique(self.predict(X), return_inverse=True)
        values = of_hazard(np.outer(ratios, self.baseline_hazard_.at(self.unique_times_)))
        if return_array:
            return values[which]
        functions = np.empty(len(ratios), dtype=object)
        for k, row in enumerate(values):
            functions[k] = FunctionOfTime(self.unique_times_, row, first)
        return functions[which]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return Harrell's C of the hazard ratios (:func:`mipforest.survival.concordance`).

        Parameters
        ----------
        X, y
            (n, p) samples, and their events and times as for :meth:`fit`.
        sample_weight
            (n,) weights of the samples, at least 0; 1 unless given. A pair weighs the product of both.

        Returns
        -------
        float
            Share, 0 to 1, of the comparable pairs in which the sample with the earlier event has the larger ratio;
            pairs of equal ratios count one half.

        Raises
        ------
        DataError
            If no two samples can be compared.
        """
        ratios, (seen, times) = self.predict(X), _read_times(self, y)
        check_consistent_length(ratios, times)
        weights = checked_weights(sample_weight, len(times), "sample_weight")
        kept = weights > 0
        return concordance(times[kept], seen[kept], ratios[kept], weights[kept])

    def _numbers(self, y: Any) -> None:
        """Return no targets: a mean of these would have to weigh exposures."""
        _read_times(self, y)


#: What a survival tree takes.
_GIVE_TIMES = (
    "give a structured array whose first field says whether the event was seen and whose second is the time, as "
    "sksurv.util.Surv.from_arrays(event, time) makes it, an (n, 2) array of these, or the pair (event, time)"
)


def _read_times(estimator: Any, y: Any) -> tuple[BoolArray, FloatArray]:
    """Return (n,) whether the event of each sample was seen, and (n,) its time, of what an estimator was given.

    Raises
    ------
    DataError
        If it is none of the forms that :meth:`SurvivalTree.fit` takes, an event is neither true nor false, or a time is
        no number of 0 or more.
    """
    if y is None:
        raise DataError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; {_GIVE_TIMES}"
        )
    event, time = (np.asarray(part) for part in _two_parts(y))
    if event.ndim != 1 or event.shape != time.shape:
        raise DataError(f"y has events of shape {event.shape} and times of shape {time.shape}; {_GIVE_TIMES}")
    for name, part in (("event", event), ("time", time)):
        if part.dtype.kind not in "biufO":
            raise DataError(f"y has {name}s of type {part.dtype}, which are no numbers; {_GIVE_TIMES}")
    try:
        seen, times = event.astype(np.float64), time.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y holds something that is no number ({error}); {_GIVE_TIMES}") from error
    if (strange := (seen != 0) & (seen != 1)).any():
        row = int(strange.argmax())
        swapped = "the times come second" if np.isin(times, (0, 1)).all() else _GIVE_TIMES
        raise DataError(
            f"y has the event {seen[row]:g} in row {row}, which is neither true nor false; {swapped}"
        )
    if (strange := ~(np.isfinite(times) & (times >= 0))).any():
        row = int(strange.argmax())
        raise DataError(
            f"y has the time {times[row]:g} in row {row}; give finite times of 0 or more, or leave the row out"
        )
    return seen == 1, times


def _two_parts(y: Any) -> tuple[Any, Any]:
    """Return events and times, whatever they are."""
    if isinstance(y, tuple) and len(y) == 2:
        return y
    if isinstance(y, pd.DataFrame):
        names, found = list(y.columns), [column for _, column in y.items()]
    elif names := list(getattr(getattr(y, "dtype", None), "names", None) or ()):
        found = [y[name] for name in names]
    else:
        try:
            table = np.asarray(y)
        except ValueError as error:
            raise DataError(f"y is no table ({error}); {_GIVE_TIMES}") from error
        if table.ndim != 2 or table.shape[1] != 2:
            raise DataError(f"y has shape {table.shape}; {_GIVE_TIMES}")
        return table[:, 0], table[:, 1]
    if len(found) != 2:
        raise DataError(f"y has {len(found)} columns ({some_of(names)}); {_GIVE_TIMES}")
    return found[0], found[1]


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

    _formulations = ("ors", "ogrs")

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

    def _store(self, result: Result) -> None:
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

    def _picture(self) -> Any:
        return self.plot()

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
        As for :class:`~mipforest.estimators.base.TreeEstimator`, without ``min_weight_fraction_leaf`` and
        ``monotonic_cst``: every sample is
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
    monotonic_cst: ClassVar[NotTaken] = NotTaken()  # type: ignore[misc,assignment]

    def _store(self, result: Result) -> None:
        super()._store(result)
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

    _formulations = ("orct", "s-orct")

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

    _formulations = ("s-orrt",)

    n_starts: int = 5
    y_scale: str = "standard"
    ridge: float = 1e-3
    leaf_bound: float = 0.0
    group: str = ""
    asked: str = "mean"
    limit: float = 0.0

    def explain(self, X: Any) -> FloatArray:  # type: ignore[override] # samples have no path
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

    _formulations = ("s-orrt-fd",)

    ridge: float = 1e-6
    intervals: int = 1
    lam_length: float = 0.0
    pattern: str = ""
    interpolation: str = "cubic"

    def _store(self, result: Result) -> None:
        super()._store(result)
        tree = cast("FunctionalTree", self.tree_)
        self.intervals_ = {
            curve.name: [(low, high) for low, high in tree.intervals_of(curve).tolist()]
            for curve in tree.curves
            if curve.at
        }
        self.length_sparsity_ = tree.length_sparsity


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

    _formulations = tuple(_OPT.values())

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
    ) -> Self:
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

    def _store(self, result: Result) -> None:
        super()._store(result)
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

    def _labels(self) -> npt.NDArray[Any]:
        return self.treatments_


class _Rewards(NamedTuple):
    """What a policy is found for."""

    rewards: Any
    decisions: Any


@dataclass(eq=False, repr=False, kw_only=True)
class PolicyTreeClassifier(PaperEstimator):
    """Policy tree: leaves decide so that the mean reward is highest (Athey and Wager 2021; proven to be the best tree).

    Parameters
    ----------
    splits
        ``"univariate"`` or ``"hyperplane"``.
    alpha
        Cost of a split (of a feature in a hyperplane), in units of the mean reward; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    mu
        Margin that stands for the strict inequality to the left, of hyperplane splits only; above 0, below 1.
    max_features
        Most features in a split, of hyperplane splits only; 0 for any number.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes, without
        ``feature_importances_``.

    Attributes
    ----------
    decisions_
        (K,) names of the decisions: the columns of a DataFrame of rewards, else 0, 1, ...

    Examples
    --------
    >>> import numpy as np
    >>> age = np.array([20, 25, 30, 35, 60, 65, 70, 75])[:, None]
    >>> earned = np.column_stack([np.zeros(8), [3, 2, 4, 1, -2, -1, -3, -2]])
    >>> policy = PolicyTreeClassifier(depth=1).fit(age, earned)
    >>> policy.decide([[22], [72]]).tolist(), policy.value(age, earned).mean_reward
    ([1, 0], 1.25)
    """

    _formulations = tuple(_POLICY.values())

    splits: str = "univariate"
    alpha: float = 0.0
    N_min: int = 1
    mu: float = 0.005
    max_features: int = 0

    def _formulation_name(self) -> str:
        if self.splits not in _POLICY:
            raise ParameterError(f"parameter splits is {self.splits!r}; choose from: {', '.join(_POLICY)}")
        return _POLICY[self.splits]

    def fit(self, X: Any, rewards: Any, sample_weight: Any = None) -> Self:
        """Find the best policy tree.

        Parameters
        ----------
        X
            (n, p) features, as for :meth:`TreeEstimator.fit <mipforest.estimators.base.TreeEstimator.fit>`.
        rewards
            (n, K) what each decision is worth for each sample, higher is better: numbers, or a DataFrame whose columns
            name the decisions. :func:`mipforest.reward_scores` estimates them of treatments and outcomes.
        sample_weight
            (n,) weights of the samples, at least 0; 1 unless given. ``N_min`` counts samples, whatever they weigh.

        Returns
        -------
        self

        Raises
        ------
        ValueError, NoTreeFound, SolverError
            As for :meth:`TreeEstimator.fit <mipforest.estimators.base.TreeEstimator.fit>`.
        """
        names = list(rewards.columns) if hasattr(rewards, "columns") else None
        self._fit(X, _Rewards(rewards, names), sample_weight)
        return self

    def _read(
        self, X_raw: FloatArray, y: _Rewards, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        names = None if y.decisions is None else list(map(str, y.decisions))
        data = Dataset.from_arrays(
            X_raw, rewards=y.rewards, classes=names, features=features, scaling=scaling, weights=weights
        )
        self.decisions_ = np.arange(data.n_classes) if y.decisions is None else np.array(y.decisions)
        return data

    def _store(self, result: Result) -> None:
        super()._store(result)
        del self.feature_importances_  # they are of samples that belong to a class

    def decide(self, X: Any) -> npt.NDArray[Any]:
        """Return (n,) decisions, of :attr:`decisions_`."""
        X_raw = self._features(X)
        labels: npt.NDArray[Any] = self.decisions_[self.tree_.predict(X_raw)]
        return labels

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return (n,) decisions; as :meth:`decide`."""
        return self.decide(X)

    def value(self, X: Any, rewards: Any, sample_weight: Any = None) -> RewardMeasures:
        """Return the mean reward of the decisions with its standard error, and that of the best single decision.

        Parameters
        ----------
        X, rewards
            (n, p) features and (n, K) rewards of other samples than those of the fit.
        sample_weight
            (n,) weights of the samples; 1 unless given.

        Raises
        ------
        DataError
            If the rewards have another shape, or are not finite.
        """
        X_raw = self._features(X)
        table = read_rewards(rewards, list(map(str, self.decisions_))).rewards
        assert table is not None
        check_consistent_length(X_raw, table)
        weights = (
            None if sample_weight is None else checked_weights(sample_weight, len(X_raw), "sample_weight")
        )
        return reward_measures(table, self.tree_.predict(X_raw).astype(np.int64), weights)

    def score(self, X: Any, rewards: Any, sample_weight: Any = None) -> float:
        """Return the mean reward of the decisions, which searches of hyperparameters maximise; see :meth:`value`."""
        return self.value(X, rewards, sample_weight).mean_reward

    def _numbers(self, y: Any) -> IntArray:
        return _numbers(column_or_1d(y), self.decisions_)

    def _labels(self) -> npt.NDArray[Any]:
        return self.decisions_


@dataclass(eq=False, repr=False)
class RegressAndCompare(BaseEstimator):
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

    def fit(self, X: Any, treatment: Any, y: Any, sample_weight: Any = None) -> Self:
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
