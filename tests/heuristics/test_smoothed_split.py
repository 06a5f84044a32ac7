"""Splits of many samples with a smooth loss: nearly the best value."""

from dataclasses import replace

import numpy as np
import pytest
from margin_data import random_data

from mipforest.heuristics.linear_starts import svm_path
from mipforest.heuristics.node_problems import NodeProblems, margin_split, smoothed_split
from mipforest.objectives.losses import HALF_SQUARED_L2, HINGE, L1, LogisticLoss, tangent_points
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology

DATA = random_data(1, n=150, p=4)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(
    ("loss", "norm"), [(HINGE, HALF_SQUARED_L2), (LogisticLoss(tangent_points("V0")), L1), (HINGE, L1)]
)
def test_the_value_found_is_nearly_the_exact_one(loss, norm, C):
    exact = margin_split(DATA.X, DATA.sign, C, loss=loss, norm=norm)
    found = smoothed_split(DATA.X, DATA.sign, C, loss=loss, norm=norm)
    assert exact.value * (1 - 1e-7) <= found.value <= 1.02 * exact.value


def test_once_time_has_run_out_a_start_is_found_by_smoothed_problems_alone(monkeypatch):
    over = TimeBudget()
    over.stop()
    monkeypatch.setattr("mipforest.heuristics.node_problems.margin_split", None)  # none is solved exactly
    tree = svm_path(DATA, Topology(2), NodeProblems(np.ones(3), 1e-3, time=over))
    left = tree.scores(DATA.X)[:, 0]
    assert not ((left > -1e-3) & (left < 0)).any()


def test_the_path_of_many_samples_is_searched_on_few_and_lifted_to_all(monkeypatch):
    nodes = NodeProblems(np.ones(3), 1e-3)
    monkeypatch.setattr("mipforest.heuristics.linear_starts.MAX_SAMPLES", 60)
    many = svm_path(DATA, Topology(2), replace(nodes, exact_up_to=100))
    assert (many.scores(DATA.X)[:, 0] >= 0).any()
    again = svm_path(DATA, Topology(2), replace(nodes, exact_up_to=100))
    assert np.array_equal(many.w, again.w)
