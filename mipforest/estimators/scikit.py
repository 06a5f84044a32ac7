"""The classes of scikit-learn that estimators inherit from, with types: scikit-learn has none.

A type checker that does not know a base takes any parameter and any attribute for right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin"]

if TYPE_CHECKING:
    import numpy.typing as npt

    class BaseEstimator:
        """What scikit-learn's ``BaseEstimator`` has, and what its checks of samples set."""

        n_features_in_: int
        feature_names_in_: npt.NDArray[Any]

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters."""

        def get_metadata_routing(self) -> Any:
            """Return which metadata methods take."""

        def set_fit_request(self, **requested: bool | str | None) -> Self:
            """Say which metadata ``fit`` takes."""

        def set_score_request(self, **requested: bool | str | None) -> Self:
            """Say which metadata ``score`` takes."""

        @classmethod
        def _get_param_names(cls) -> list[str]: ...

        def _html_repr(self) -> str: ...

        def __sklearn_tags__(self) -> Any: ...

        def __getstate__(self) -> dict[str, Any]: ...

    class ClassifierMixin:
        """What scikit-learn's ``ClassifierMixin`` has, and what the fit of a classifier sets."""

        classes_: npt.NDArray[Any]

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the accuracy."""

        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        """What scikit-learn's ``RegressorMixin`` has."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the coefficient of determination."""

        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
