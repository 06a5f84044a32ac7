"""Tree searches: solvers that know the structure of a tree. Their loops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile a function on its first call, and keep the machine code on disk for later processes."""
    fast: _F = njit(cache=True, nogil=True, error_model="numpy")(function)
    return fast
