"""Seeds of tests with random cases."""

from typing import Any

import pytest


def seeds(quick: int, all_of_them: int) -> list[Any]:
    """Return ``all_of_them`` seeds; those from ``quick`` on are slow: the first ones have every kind of case."""
    return [pytest.param(s, marks=() if s < quick else pytest.mark.slow) for s in range(all_of_them)]
