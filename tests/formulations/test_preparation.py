"""A preparation that is stopped."""

import numpy as np
import pytest
from margin_data import random_data

from formulations.margot import Margot
from formulations.oct import Oct
from mipforest.time_budget import TimeBudget

DATA = random_data(2, n=40, p=3)


@pytest.mark.parametrize("formulation", [Oct(), Oct(variant="paper"), Margot()])
def test_a_preparation_that_is_stopped_keeps_a_tree_and_an_honest_bound(formulation):
    budget = TimeBudget(1e9)
    budget.stop()
    result = formulation.build(DATA, 2, budget=budget).solve()
    optimum = Oct().build(DATA, 2).solve().objective if isinstance(formulation, Oct) else np.inf
    assert result.verified
    # The exact search may have come to its end before it asked.
    assert result.status in (("interrupted", "optimal") if isinstance(formulation, Oct) else ("interrupted",))
    assert 0.0 <= result.bound <= result.objective
    assert result.objective >= (optimum if np.isfinite(optimum) else 0.0)
