"""Values of roots that are cut short stay lower bounds."""

import numpy as np
import pytest
from margin_data import random_data

from formulations.bounds.depth_two import DepthTwo
from formulations.margot import Margot
from formulations.oct import Oct
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology

DATA = random_data(2, n=40, p=3)


def budget_of(asks):
    """A budget that runs out after it was asked some times."""
    ticks = iter(range(10**6))
    return TimeBudget(float(asks), clock=lambda: float(next(ticks)))


@pytest.mark.parametrize("N_min", [1, 4])
@pytest.mark.parametrize("asks", [0, 7])
def test_roots_that_were_not_tried_have_proven_bounds(N_min, asks, monkeypatch):
    exact = Oct(N_min=N_min, alpha=0.01).bind(DATA, Topology(2)).exact
    part = exact.root_values(2, budget_of(asks))
    monkeypatch.setattr(DepthTwo, "_skips", False)
    whole = exact.root_values(2)
    assert whole.complete
    assert not part.complete
    assert (part.by_threshold <= whole.by_threshold + 1e-9).all()
    assert np.isfinite(part.by_threshold[whole.by_threshold < np.inf]).all()


@pytest.mark.parametrize("formulation", [Oct(), Oct(variant="paper"), Margot()])
def test_a_preparation_that_is_stopped_keeps_a_tree_and_an_honest_bound(formulation):
    budget = TimeBudget(1e9)
    budget.stop()
    result = formulation.build(DATA, 2, budget=budget).solve()
    optimum = Oct().build(DATA, 2).solve().objective if isinstance(formulation, Oct) else np.inf
    assert result.verified
    assert result.status == "interrupted"
    assert result.bound == 0.0
    assert result.objective >= (optimum if np.isfinite(optimum) else 0.0)
