"""Trees whose leaves predict several targets at once, behind the interface of scikit-learn's multi-output trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from mipforest.arrays import FloatArray
from mipforest.data import DataError, Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.table import checked_weights, refuse_rounding, text
from mipforest.estimators.generic import logarithms
from mipforest.estimators.papers import PaperEstimator
from mipforest.estimators.scikit import ClassifierMixin, RegressorMixin
from mipforest.problem.result import Result
from mipforest.trees.node_statistics import shares_of

#: Name of a target that has none.
TARGET = "y"


@dataclass(eq=False, repr=False, kw_only=True)
class MultiTree(PaperEstimator):
    """What the trees of several targets share."""

    _formulations = ("multi",)

    alpha: float = 0.0
    N_min: int = 1
    target_weights: Any = "variance"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def _store(self, result: Result) -> None:
        super()._store(result)
        self.n_outputs_ = len(result.problem.data.targets)

    def _columns(self, found: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return predictions (n, T), or (n,) of one target, as scikit-learn's trees do."""
        return found[:, 0] if self.n_outputs_ == 1 else found


def _read_columns(estimator: Any, y: Any, dtype: Any) -> tuple[npt.NDArray[Any], list[str]]:
    """Return targets (n, T), none missing, and their names."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give a column for each "
            "target"
        )
    names = list(map(str, y.columns)) if isinstance(y, pd.DataFrame) else None
    values: npt.NDArray[Any] = check_array(
        y, ensure_2d=False, dtype=dtype, input_name="y", ensure_min_samples=0
    )
    if values.ndim == 1:
        return values[:, None], [TARGET]
    if values.ndim != 2 or not values.shape[1]:
        raise DataError(f"y has shape {values.shape}; give (n, T): one column for each target")
    return values, names or [f"{TARGET}{t}" for t in range(values.shape[1])]


@dataclass(eq=False, repr=False, kw_only=True)
class MultiTreeRegressor(RegressorMixin, MultiTree):
    """Optimal tree of univariate splits whose leaves predict several numbers (:mod:`formulations.multi`).

    Parameters
    ----------
    alpha
        Cost of a split, relative to the loss of the best constant; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    target_weights
        What a squared error in each target counts: ``"variance"``, one over the variance of the target, so that units
        do not matter and training maximises ``score``; ``"equal"``, 1 each, as for scikit-learn's trees; or a number
        above 0 for each target.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.

    Attributes
    ----------
    n_outputs_
        Number of targets, T.

    Notes
    -----
    ``y`` is (n, T), or (n,) for one target. ``score`` is that of every regressor, the mean R2 of the targets.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> X, y = load_linnerud(return_X_y=True, as_frame=True)
    >>> tree = MultiTreeRegressor(depth=2).fit(X, y)
    >>> tree.status_, tree.predict(X).shape, round(tree.score(X, y), 4) == round(1 - tree.objective_, 4)
    ('optimal', (20, 3), True)
    """

    def _read(
        self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        values, names = _read_columns(self, y, np.float64)
        refuse_rounding(np.asarray(y).reshape(values.shape), values, "y")
        check_consistent_length(X_raw, values)
        return Dataset.from_arrays(
            X_raw,
            values,
            targets=names,
            features=features,
            task="regression",
            scaling=scaling,
            weights=weights,
        )

    def predict(self, X: Any) -> FloatArray:
        """Return (n, T) predicted values, in the targets' units; (n,) of one target."""
        X_raw = self._features(X)
        return self._columns(np.asarray(self.tree_.predict(X_raw), dtype=np.float64))


@dataclass(eq=False, repr=False, kw_only=True)
class MultiTreeClassifier(ClassifierMixin, MultiTree):
    """Optimal tree of univariate splits whose leaves predict several labels (:mod:`formulations.multi`).

    Parameters
    ----------
    alpha
        Cost of a split, relative to the errors of the best constant; at least 0.
    N_min
        Least number of samples in a leaf that holds any; at least 1.
    target_weights
        What an error in each target counts: a number above 0 for each; 1 each unless given.
    depth, and all others
        As for :class:`~mipforest.estimators.base.TreeEstimator`, and so are the attributes.

    Attributes
    ----------
    classes_
        Labels of each target, a list of arrays; one array of one target.
    n_outputs_
        Number of targets, T.

    Notes
    -----
    ``y`` is (n, T) labels, each target with its own, or (n,) for one target.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1], [2], [3], [4]])
    >>> y = np.array([["low", "a"], ["low", "a"], ["high", "b"], ["high", "a"]])
    >>> tree = MultiTreeClassifier(depth=1).fit(X, y)
    >>> tree.predict([[4]]).tolist(), tree.score(X, y)
    ([['high', 'a']], 0.75)
    """

    def _read(
        self, X_raw: FloatArray, y: Any, weights: FloatArray, features: tuple[str, ...], scaling: Scaling
    ) -> Dataset:
        labels, names = _read_columns(self, y, None)
        check_consistent_length(X_raw, labels)
        # Columns of a table may have a type each.
        columns = [np.array(of.tolist()) if of.dtype == object else of for of in labels.T]
        for column in columns:
            check_classification_targets(column)
        # A class whose samples are all left out is no class of the model.
        kept = weights > 0
        X_raw, weights = X_raw[kept], weights[kept]
        found = [np.unique(column[kept], return_inverse=True) for column in columns]
        known = [values for values, _ in found]
        if all(len(values) < 2 for values in known):
            raise DataError(
                f"y has one class only in each of its {len(known)} targets: nothing can be told apart; add rows of "
                "another class"
            )
        self.classes_ = known if len(known) > 1 else known[0]  # type: ignore[assignment] # as scikit-learn's trees
        data = Dataset.from_arrays(
            X_raw,
            np.column_stack([number for _, number in found]),
            targets=names,
            features=features,
            task="classification",
            scaling=scaling,
            weights=weights,
        )
        return replace(data, target_classes=tuple(tuple(map(text, values.tolist())) for values in known))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _store(self, result: Result) -> None:
        super()._store(result)
        tree, data = self.tree_, result.problem.data
        leaf, L = tree.apply(data.X_raw) - tree.topology.n_branches, tree.topology.n_leaves
        self._shares = []
        for k, names in enumerate(data.target_classes):
            counts = np.zeros((L, len(names)))
            np.add.at(counts, (leaf, data.y[:, k].astype(np.int64)), data.weights)
            self._shares.append(shares_of(counts, tree.leaf_value[:, k].astype(np.int64)))

    @property
    def _labels_by_target(self) -> list[npt.NDArray[Any]]:
        return [self.classes_] if self.n_outputs_ == 1 else list(self.classes_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return (n, T) predicted labels, of :attr:`classes_`; (n,) of one target."""
        X_raw = self._features(X)
        numbers = self.tree_.predict(X_raw).astype(np.int64)
        labels = [known[k] for known, k in zip(self._labels_by_target, numbers.T, strict=True)]
        if len({one.dtype.kind for one in labels}) > 1:
            labels = [one.astype(object) for one in labels]
        return self._columns(np.column_stack(labels))

    def predict_proba(self, X: Any) -> Any:
        """Return a list of T arrays (n, K), the shares of the labels of each target among the training samples.

        Those in the leaf that a sample reaches, by weight, in the order of :attr:`classes_`; one array of one target.
        In a leaf without training samples the predicted label has the share 1.
        """
        X_raw = self._features(X)
        leaf = self.tree_.apply(X_raw) - self.tree_.topology.n_branches
        found = [shares[leaf] for shares in self._shares]
        return found[0] if self.n_outputs_ == 1 else found

    def predict_log_proba(self, X: Any) -> Any:
        """Return the natural logarithms of :meth:`predict_proba`; minus infinity of 0."""
        found = self.predict_proba(X)
        return logarithms(found) if self.n_outputs_ == 1 else [logarithms(one) for one in found]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of samples of which all labels are predicted right.

        Parameters
        ----------
        X, y
            (n, p) samples, and their labels as for :meth:`fit`.
        sample_weight
            (n,) weights of the samples, at least 0; 1 unless given.
        """
        predicted, (labels, _) = self.predict(X), _read_columns(self, y, None)
        check_consistent_length(predicted, labels)
        weights = checked_weights(sample_weight, len(labels), "sample_weight")
        right = (predicted.reshape(labels.shape) == labels).all(axis=1)
        return float(np.average(right, weights=weights))
