"""Special functions of scipy, imported when first called: most commands do without, and the import takes long."""

from __future__ import annotations

from typing import Any


def expit(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)), elementwise; see :func:`scipy.special.expit`."""
    from scipy.special import expit as of_scipy

    return of_scipy(x)


def xlogy(x: Any, y: Any) -> Any:
    """Return x log y, elementwise, and 0 where x is 0; see :func:`scipy.special.xlogy`."""
    from scipy.special import xlogy as of_scipy

    return of_scipy(x, y)


def normal_cdf(x: Any) -> Any:
    """Return the distribution function of the standard normal distribution; see :func:`scipy.special.ndtr`."""
    from scipy.special import ndtr

    return ndtr(x)
