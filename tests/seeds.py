"""Seeds of tests with random cases, and other parameters of which the first ones are quick."""

from collections.abc import Sequence
from typing import Any

import pytest


def seeds(quick: int, all_of_them: int) -> list[Any]:
    """Return ``all_of_them`` seeds; those from ``quick`` on are slow: the first ones have every kind of case."""
    return [pytest.param(s, marks=() if s < quick else pytest.mark.slow) for s in range(all_of_them)]


def few_of(cases: Sequence[Any], quick: int = 1) -> list[Any]:
    """Return cases of a parameter; those from ``quick`` on are slow: the first ones stand for all."""
    return [pytest.param(case, marks=() if k < quick else pytest.mark.slow) for k, case in enumerate(cases)]
