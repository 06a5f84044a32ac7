"""What differs between the versions of scikit-learn that are supported, 1.5 and later."""

from __future__ import annotations

from typing import Any

from sklearn.utils import validation


def validate(estimator: Any, X: Any, *, reset: bool, skip_check_array: bool = False, **checks: Any) -> Any:
    """Check samples, and set or compare ``n_features_in_`` and ``feature_names_in_``.

    Parameters
    ----------
    estimator
        Who asks.
    X
        (n, p) samples.
    reset
        Whether this is a fit, which sets the attributes.
    skip_check_array
        Check only names and number of columns, and give X as it is.
    checks
        As for :func:`sklearn.utils.check_array`.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn states.
    """
    if hasattr(validation, "validate_data"):
        return validation.validate_data(
            estimator, X, reset=reset, skip_check_array=skip_check_array, **checks
        )
    if skip_check_array:
        return estimator._validate_data(X, reset=reset, cast_to_ndarray=False)
    return estimator._validate_data(X, reset=reset, **checks)
