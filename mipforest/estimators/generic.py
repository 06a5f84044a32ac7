"""Estimators that take any formulation: one for classes, one for numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mipforest.data.encoding import Scaling
from mipforest.errors import did_you_mean
from mipforest.estimators.base import TreeEstimator
from mipforest.estimators.tasks import TreeClassifier, TreeRegressor
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError, parameters_of
from mipforest.problem.registry import get_formulation

#: Begins the names of single hyperparameters in ``get_params`` and ``set_params``.
_PREFIX = "parameters__"

#: Estimator for each task of a formulation.
_ESTIMATORS = {"classification": "OptimalTreeClassifier", "regression": "OptimalTreeRegressor"}


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

    def set_params(self, **params: Any) -> FormulationEstimator:
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
        the model's own way when ``None``.
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
