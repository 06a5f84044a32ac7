"""Classifiers and regressors: how they read targets, what they predict; those of any formulation, and tuned ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import effective_n_jobs
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.table import refuse_rounding, text
from mipforest.errors import did_you_mean, some_of
from mipforest.estimators.base import NotTaken, PrintedProgress, TreeEstimator
from mipforest.estimators.scikit import ClassifierMixin, RegressorMixin
from mipforest.interruption import Interruption
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError, parameters_of
from mipforest.problem.registry import get_formulation
from mipforest.problem.result import Result
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Event
from mipforest.time_budget import TimeBudget
from mipforest.trees import leaf_shares
from mipforest.tuning.fit import Splits
from mipforest.tuning.run import tune_batch


@dataclass(eq=False, repr=False)
class TreeClassifier(ClassifierMixin, TreeEstimator):
    """A classifier that is an optimal tree; see :class:`~mipforest.estimators.base.TreeEstimator`.

    Parameters
    ----------
    class_weight
        What the weights of a class's samples are multiplied with: a dictionary by label, ``"balanced"`` (n over K times
        the number of samples of the class), or ``None``.

    Attributes
    ----------
    classes_
        (K,) labels, sorted.
    """

    _: KW_ONLY
    class_weight: Any = None

    # ------------------------------------------------------------------ fit

    def _read(
        self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        data = read_classes(self, X_raw, y, weights, features, scaling)
        if len(self.classes_) > 2 and self._two_classes_only():
            # The first two sentences are those that scikit-learn's checks expect.
            name = type(self).__name__
            raise DataError(
                f"Only binary classification is supported. The type of the target is {type_of_target(self.classes_)}. "
                f"{name} takes two classes, y has {len(self.classes_)}: wrap it as "
                f"sklearn.multiclass.OneVsRestClassifier({name}(...)), or use OCTClassifier"
            )
        return data

    def _two_classes_only(self) -> bool:
        try:
            return self._model().two_classes
        except ValueError:  # a model that is unknown is refused by the fit
            return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._two_classes_only()
        return tags

    def _store(self, result: Result) -> None:
        super()._store(result)
        self._leaf_frequencies = leaf_shares(self.tree_, self._statistics)

    # ------------------------------------------------------------------ predict

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return (n,) predicted labels, of :attr:`classes_`."""
        X_raw = self._features(X)
        labels: npt.NDArray[Any] = self.classes_[self.tree_.predict(X_raw)]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return (n, K) probabilities of the classes, in the order of :attr:`classes_`; rows sum to 1.

        A logistic or randomised tree gives those of its model (see :meth:`Tree.predict_proba
        <mipforest.trees.Tree.predict_proba>`), whose largest one is that of the predicted class.

        Any other tree gives the shares of the classes among the training samples in the leaf that a sample
        reaches, as scikit-learn's trees do; in a leaf that holds none, 1 for the leaf's label. The largest
        share is that of the predicted class wherever the leaf's label is a most frequent one. A model that
        labels leaves by other rules, as MARGOT by the side of the last split, may predict another.
        """
        X_raw = self._features(X)
        if self.tree_.gives_probabilities:
            return self.tree_.predict_proba(X_raw)
        found: FloatArray = self._leaf_frequencies[self.tree_.apply(X_raw) - self.tree_.topology.n_branches]
        return found

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return (n, K) natural logarithms of :meth:`predict_proba`; minus infinity where a probability is 0."""
        return logarithms(self.predict_proba(X))

    def _numbers(self, y: Any) -> IntArray:
        labels = column_or_1d(y)
        known = np.isin(labels, self.classes_)
        if not known.all():
            raise DataError(
                f"y holds {labels[~known].tolist()[0]!r}, which is no class of the training data "
                f"({some_of(self.classes_.tolist())})"
            )
        numbers: IntArray = np.searchsorted(self.classes_, labels).astype(np.int64)
        return numbers


def logarithms(probabilities: FloatArray) -> FloatArray:
    """Return natural logarithms; minus infinity of 0."""
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(probabilities)
    return found


def read_labels(estimator: Any, y: Any) -> npt.NDArray[Any]:
    """Return the (n,) labels, none missing, that an estimator was given."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give one label per row"
        )
    labels: npt.NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    lacking = int(pd.isna(labels).sum())
    if lacking:
        raise DataError(f"y lacks {lacking} of {len(labels)} labels; drop these rows of X and y")
    check_classification_targets(labels)
    return labels


def read_classes(
    estimator: Any,
    X_raw: FloatArray,
    y: Any,
    weights: FloatArray,
    features: tuple[str, ...],
    scaling: Scaling,
) -> Dataset:
    """Put features and labels together, weights times those of the classes; ``classes_`` of the estimator is set."""
    labels = read_labels(estimator, y)
    check_consistent_length(X_raw, labels)
    if estimator.class_weight is not None:
        weights = weights * compute_sample_weight(estimator.class_weight, labels)
    # A class whose samples are all left out is no class of the model.
    kept = weights > 0
    X_raw, labels, weights = X_raw[kept], labels[kept], weights[kept]
    estimator.classes_, numbers = np.unique(labels, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise DataError(
            f"y has one class only, {estimator.classes_.tolist()[0]!r} in all {len(labels)} rows: nothing can be "
            "told apart; add rows of another class"
        )
    return Dataset.from_arrays(
        X_raw,
        numbers,
        features=features,
        classes=[text(label) for label in estimator.classes_.tolist()],
        task="classification",
        scaling=scaling,
        weights=weights,
    )


@dataclass(eq=False, repr=False)
class TreeRegressor(RegressorMixin, TreeEstimator):
    """A regressor that is an optimal tree; see :class:`~mipforest.estimators.base.TreeEstimator`."""

    def _read(
        self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        values = read_values(self, y)
        check_consistent_length(X_raw, values)
        return Dataset.from_arrays(
            X_raw, values, features=features, task="regression", scaling=scaling, weights=weights
        )

    def predict(self, X: Any) -> FloatArray:
        """Return (n,) predicted values, in the target's units."""
        X_raw = self._features(X)
        return np.asarray(self.tree_.predict(X_raw), dtype=np.float64)


def read_values(estimator: Any, y: Any) -> FloatArray:
    """Return the (n,) finite values that an estimator was given."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give one value per row"
        )
    values: FloatArray = column_or_1d(y, dtype=np.float64, warn=True)
    assert_all_finite(values, input_name="y")
    refuse_rounding(y, values, "y")
    return values


#: Begins the names of single hyperparameters in ``get_params`` and ``set_params``.
_PREFIX = "parameters__"

#: Estimator for each task of a formulation.
_ESTIMATORS = {
    "classification": "OptimalTreeClassifier",
    "regression": "OptimalTreeRegressor",
    "prescription": "OptimalPrescriptiveTree",
}


@dataclass(eq=False, repr=False, kw_only=True)
class FormulationEstimator(TreeEstimator):
    """An estimator that has its formulation as a parameter; see :class:`OptimalTreeClassifier`."""

    #: Task of the formulations that it takes.
    _task: ClassVar[str]

    model: str | type[Formulation]
    parameters: Mapping[str, Any] | None = None
    scaling: Scaling | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the estimator by name.

        Parameters
        ----------
        deep
            Whether to add every hyperparameter of the model, as ``parameters__NAME``.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            params |= {f"{_PREFIX}{name}": value for name, value in self._values_in_use().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator; ``parameters__NAME`` sets one hyperparameter and keeps the others.

        Raises
        ------
        ValueError
            If the estimator, or its model, has no parameter of a name.
        """
        own = {name: value for name, value in params.items() if not name.startswith(_PREFIX)}
        super().set_params(**own)
        values = {name.removeprefix(_PREFIX): params[name] for name in params if name not in own}
        if values:
            _check_names(self._model(), values)
            # A new dictionary: the one that the user gave may be that of other estimators, too.
            self.parameters = {**(self.parameters or {}), **values}
        return self

    def _values_in_use(self) -> dict[str, Any]:
        """Return all hyperparameters of the model, only those given if there is no such model."""
        # What is not allowed is refused by the fit, not when the estimator is shown.
        given = self.parameters if isinstance(self.parameters, Mapping) else {}
        try:
            known = parameters_of(self._model())
        except ValueError:
            return dict(given)
        return {name: parameter.default for name, parameter in known.items()} | dict(given)

    def _model(self) -> type[Formulation]:
        if isinstance(self.model, str):
            return get_formulation(self.model)
        if isinstance(self.model, type) and issubclass(self.model, Formulation):
            return self.model
        raise ParameterError(
            f"parameter model is {self.model!r:.80}; give the name of a formulation or its class, and its "
            "hyperparameters as parameters={...}"
        )

    def _hyperparameters(self) -> dict[str, Any]:
        return dict(self.parameters or {})

    def _check_settings(self) -> None:
        super()._check_settings()
        model = self._model()
        if not model.gives.is_tree:
            raise ParameterError(
                f"the model {model.name} finds a {model.gives.noun}; fit it with RiskScoreClassifier"
            )
        if model.task != self._task:
            raise ParameterError(
                f"the model {model.name} is for {model.task}; fit it with {_ESTIMATORS[model.task]}"
            )
        if self.parameters is not None and not isinstance(self.parameters, Mapping):
            raise ParameterError(
                f"parameter parameters is {self.parameters!r:.80}; give hyperparameters by name, as in {{'C': 1}}"
            )
        _check_names(model, self.parameters or {})


@dataclass(eq=False, repr=False, kw_only=True)
class OptimalTreeClassifier(FormulationEstimator, TreeClassifier):
    """Optimal classification tree of any formulation.

    Parameters
    ----------
    model
        Name of a formulation for classification, built in or from another package (``mipforest models`` lists
        them), or its class.
    parameters
        Hyperparameters of the model by name; its defaults for the others. ``mipforest models NAME`` describes them.
        In ``set_params`` and in searches, ``parameters__C`` is the hyperparameter ``C``. An estimator among them
        that is not fitted, such as the ensemble that ``miret`` mimics, is fitted on the training samples.
    scaling
        How features are scaled before the model is built: ``"minmax"`` (to [0, 1]), ``"standard"``, ``"none"``;
        as the model does unless given.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> sparse = OptimalTreeClassifier(
    ...     model="loss-optimal", parameters={"selection": "hard", "B": 1}, depth=1, time_limit=0
    ... )
    >>> sparse.fit(X, y).n_features_used_
    1
    >>> sparse.set_params(parameters__C=0.1).parameters
    {'selection': 'hard', 'B': 1, 'C': 0.1}
    """

    _task = "classification"

    model: str | type[Formulation] = "oct"


@dataclass(eq=False, repr=False, kw_only=True)
class OptimalTreeRegressor(FormulationEstimator, TreeRegressor):
    """Optimal regression tree of any formulation.

    Parameters
    ----------
    model
        Name of a formulation for regression, built in or from another package, or its class.
    parameters, scaling
        As for :class:`OptimalTreeClassifier`.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.
    """

    _task = "regression"

    model: str | type[Formulation] = "ort"


def _check_names(model: type[Formulation], names: Collection[str]) -> None:
    known = parameters_of(model)
    for name in names:
        if name not in known:
            raise ParameterError(
                f"the model {model.name} has no parameter {name!r}{did_you_mean(name, known)}; "
                f"it has {', '.join(known)}"
            )


@dataclass(eq=False, repr=False)
class TunedTree(FormulationEstimator):
    """What tuned trees share; see :class:`OptimalTreeClassifierCV`."""

    depth: int = 5
    _: KW_ONLY
    grid: Mapping[str, Sequence[Any]] | None = None
    cv: Any = None
    starts: int = 50
    n_jobs: int | None = None

    #: A local search keeps least numbers of samples in leaves, not weights.
    min_weight_fraction_leaf: ClassVar[NotTaken] = NotTaken()  # type: ignore[misc,assignment]
    monotonic_cst: ClassVar[NotTaken] = NotTaken()  # type: ignore[misc,assignment]

    def _check_settings(self) -> None:
        super()._check_settings()
        unused = {
            "constraints": self.constraints is None,
            "start": isinstance(self.start, str) and self.start == "default",
        }
        for name, default in unused.items():
            if not default:
                raise ParameterError(
                    f"parameter {name} is not for tuning, whose trees come from a local search; fit "
                    f"{type(self).__name__.removesuffix('CV')} with it, the depth_ and alpha_ found without it"
                )

    def _found(
        self,
        model: Formulation,
        data: Dataset,
        settings: SolveSettings,
        interruption: Interruption,
        progress: PrintedProgress,
    ) -> Result:
        """Choose depth and alpha by pruning curves, and fit a tree with them."""

        def last_fit(event: Event) -> bool:
            # Only from the last fit on there is a tree to keep.
            interruption.solving(TimeBudget())
            return progress(event)

        tuning = tune_batch(
            model,
            data,
            self.depth,
            grid=self.grid,
            folds=_folds(self.cv, data),
            starts=self.starts,
            solver=self.solver,
            settings=settings,
            jobs=effective_n_jobs(self.n_jobs),
            on_progress=last_fit,
        )
        progress.ended(tuning.result)
        self.tuning_ = tuning
        self.alpha_, self.depth_ = tuning.alpha, tuning.depth
        self.cv_results_ = tuning.table.to_dict("list")
        curve = tuning.curves[tuning.chosen]
        self.pruning_path_ = np.column_stack([curve.alpha, curve.loss])
        return tuning.result

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "tuning_"}


def _folds(cv: Any, data: Dataset) -> int | Splits | None:
    """Return folds of the samples that have a weight; positions are given among all samples of a fit."""
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        return cast("int | None", cv)  # checked with the others
    if hasattr(cv, "split"):
        splits: Splits = cv.split(data.X_raw, data.labels)
        return splits
    place = {int(sample): row for row, sample in enumerate(data.samples)}

    def kept(part: Any) -> list[int]:
        return [place[row] for row in np.asarray(part).tolist() if row in place]

    try:
        return [(kept(train), kept(rest)) for train, rest in cv]
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"parameter cv has no pairs of positions to train on and validate ({error}); give a number, a splitter of "
            "scikit-learn, or such a pair for each fold"
        ) from error


@dataclass(eq=False, repr=False, kw_only=True)
class OptimalTreeClassifierCV(TunedTree, OptimalTreeClassifier):
    """Optimal classification tree that chooses its depth and its cost of a split, and is fitted on all samples.

    Named as scikit-learn's estimators that tune themselves are: ``fit`` makes good trees of every depth in every fold
    by a local search, prunes them, and takes the depth and the cost of a split with the least error on the held-out
    samples (batch cost-complexity tuning, :func:`~mipforest.tuning.run.tune_batch`); then it fits all samples.

    Parameters
    ----------
    depth
        Greatest depth that is tried, from 1 on.
    model
        ``"oct"``, or ``"oct-h"`` for splits with several features.
    parameters
        Hyperparameters of the model by name, such as ``{"N_min": 5}``; ``alpha`` is chosen.
    grid
        Values of one other hyperparameter that are tried at the chosen depth, by name.
    cv
        Folds, as in scikit-learn: their number, shuffled by ``random_state`` and stratified for a classification; a
        splitter, such as ``ShuffleSplit(1, test_size=0.3)`` for one validation part; or, for each fold, the positions
        of its training and of its validation samples. ``None`` for 4, fewer where a class has fewer samples.
    starts
        Starts of the local search for each depth and fold.
    n_jobs
        Processes, as in scikit-learn; ``None`` for this one, -1 for one on each processor. The tree does not depend on
        it.
    solver
        ``"auto"``: a local search finds the tree, and up to depth 3 an exact search proves it, where it ends within 5
        seconds; else as for :class:`~mipforest.estimators.base.TreeEstimator`.
    scaling, class_weight, missing, random_state, and all others
        As for :class:`OptimalTreeClassifier`; ``time_limit`` is for every search. ``constraints`` and ``start`` are
        not for tuning, and there is no ``min_weight_fraction_leaf`` or ``monotonic_cst``.

    Attributes
    ----------
    depth_, alpha_
        Chosen depth, and cost of a split relative to the error of the best single leaf.
    cv_results_
        Table with a row per depth, as a dictionary of columns; see :class:`~mipforest.tuning.run.BatchTuning`.
    pruning_path_
        (s, 2) array at ``depth_``: the costs of a split at which prunings change, ascending from 0, and the mean loss
        of the held-out samples from there on.
    tuning_
        The :class:`~mipforest.tuning.run.BatchTuning` itself, with its curves; left out of pickles.
    status_, bound_, gap_
        Of the last fit: ``"optimal"`` where the tree is proven to be the best one for ``depth_`` and ``alpha_``,
        ``"best_found"``, without a bound, where it is the best that the local search has found.
    tree_, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tuned = OptimalTreeClassifierCV(depth=3, starts=20).fit(X, y)
    >>> tuned.depth_, tuned.status_, tuned.get_n_leaves()
    (2, 'optimal', 3)
    """

    model: str | type[Formulation] = "oct"


@dataclass(eq=False, repr=False, kw_only=True)
class OptimalTreeRegressorCV(TunedTree, OptimalTreeRegressor):
    """Optimal regression tree that chooses its depth and its cost of a split, and is fitted on all samples.

    Parameters
    ----------
    model
        ``"ort"``; ``"ort-h"`` for splits with several features; ``"ort-l"``, ``"ort-lh"`` for leaves that predict a
        linear function, whose cost of coefficients ``lam`` is chosen, too.
    depth, grid, cv, starts, n_jobs, solver, and all others
        As for :class:`OptimalTreeClassifierCV`, and so are the attributes.
    """

    model: str | type[Formulation] = "ort"
