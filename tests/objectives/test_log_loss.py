from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from tolerance import at_least, same

from mipforest.objectives.losses import (
    MAX_POINTS,
    POSITIVE_POINTS,
    LogisticLoss,
    greedy_points,
    largest_error,
    log_loss,
    tangent_points,
)
from mipforest.problem.parameters import ParameterError

SETS = tuple(POSITIVE_POINTS)
GRID = np.linspace(-60, 60, 24001)


def area(points):
    """Area between the log-loss and its underestimator, by quadrature between the tangent points."""
    surrogate = LogisticLoss(points)

    def error(v):
        return float(log_loss(v) - surrogate.of_margin(v))

    ends = np.concatenate([[-60.0], points, [60.0]])
    return sum(quad(error, low, high, limit=200)[0] for low, high in pairwise(ends))


@pytest.mark.parametrize(("name", "count"), [("V0", 1), ("V1", 3), ("V2", 7), ("V3", 15)])
def test_the_greedy_rule_gives_the_published_points(name, count):
    # The published points have two digits behind the point.
    np.testing.assert_allclose(greedy_points(count), tangent_points(name), atol=0.0051)


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_each_greedy_point_leaves_the_least_area(count):
    points = greedy_points(count)
    before = greedy_points(count - 1)
    left = area(points)
    for other in np.linspace(-8, 8, 33):
        assert area(np.sort(np.append(before, other))) >= left - 1e-7


@pytest.mark.parametrize("name", SETS)
def test_the_surrogate_lies_below_and_touches(name):
    points = tangent_points(name)
    surrogate = LogisticLoss(points)
    assert (surrogate.of_margin(GRID) <= log_loss(GRID) + 1e-15).all()
    np.testing.assert_allclose(surrogate.of_margin(points), log_loss(points), rtol=1e-12)
    assert surrogate.of_margin(np.array([-700.0]))[0] == pytest.approx(700.0)
    assert surrogate.of_margin(np.array([surrogate.flat_from * (1 + 1e-12)]))[0] == 0
    assert surrogate.of_margin(np.array([surrogate.flat_from - 1e-6]))[0] > 0


@given(st.integers(1, 20))
@settings(max_examples=15)
def test_the_largest_error_is_that_of_a_fine_grid(count):
    points = greedy_points(count)
    on_grid = (log_loss(GRID) - LogisticLoss(points).of_margin(GRID)).max()
    assert on_grid <= largest_error(LogisticLoss(points)) + 1e-12
    assert (
        largest_error(LogisticLoss(points)) - on_grid < 2.6e-3
    )  # the grid's width times half the largest slope


def test_the_largest_error_of_v0():
    # At its corner 2 log 2 the log-loss is log(1 + 1/4), the surrogate 0.
    assert largest_error(LogisticLoss(tangent_points("V0"))) == pytest.approx(np.log(1.25), rel=1e-12)


@pytest.mark.parametrize(("finer", "coarser"), [("V1", "V0"), ("V2", "V1"), ("V3", "V2")])
def test_more_points_are_nowhere_worse(finer, coarser):
    fine, coarse = (LogisticLoss(tangent_points(name)).of_margin(GRID) for name in (finer, coarser))
    assert at_least(fine, coarse)
    assert largest_error(LogisticLoss(tangent_points(finer))) < largest_error(
        LogisticLoss(tangent_points(coarser))
    )


@pytest.mark.parametrize("wrong", ["V4", "0", "-3", "2.5", str(MAX_POINTS + 1), "", "many"])
def test_what_is_no_set_of_points_is_refused(wrong):
    with pytest.raises(ParameterError, match="V0, V1, V2, V3"):
        tangent_points(wrong)


def test_no_overflow():
    with np.errstate(over="raise", invalid="raise"):
        assert same(log_loss(np.array([-1e4, 0.0, 1e4])).tolist(), [1e4, np.log(2), 0.0])
